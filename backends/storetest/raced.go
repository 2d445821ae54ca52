//go:build race

package storetest

// raced says whether the race detector is on.
const raced = true
