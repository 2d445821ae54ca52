//go:build !race

package storetest

// raced says whether the race detector watches.
const raced = false
