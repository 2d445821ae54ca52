//go:build !race

package view

// corpusShare is which of the hostile strings are tried: all of them.
const corpusShare = 1

// raced says whether the race detector watches.
const raced = false
