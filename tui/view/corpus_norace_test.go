//go:build !race

package view

// corpusShare selects the hostile texts to test: all of them.
const corpusShare = 1

// raced reports whether the race detector is on.
const raced = false
