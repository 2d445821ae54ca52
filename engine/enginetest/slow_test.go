//go:build !race

package enginetest

// slowness is how much longer things may take than they should.
const slowness = 1
