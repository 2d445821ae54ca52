//go:build race

package view

// corpusShare selects the hostile texts to test: one in thirty, because the race detector makes
// each cost ten times as much.
const corpusShare = 30

// raced is true: screens are compared without the race detector, which makes drawing ten times as
// slow and finds nothing in it.
const raced = true
