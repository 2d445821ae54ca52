//go:build !race

package e2e

// slowness is how much longer things may take than they should.
const slowness = 1

// raced says whether the race detector watches.
const raced = false
