//go:build race

package storetest

// raced is true: the race detector watches.
const raced = true
