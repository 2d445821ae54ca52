//go:build race

package view

// corpusShare is which of the hostile strings are tried: one in thirty, for the race detector makes
// each cost ten times as much.
const corpusShare = 30

// raced is true: screens are compared without the race detector, which makes each cost ten times as
// much and finds nothing in drawing one.
const raced = true
