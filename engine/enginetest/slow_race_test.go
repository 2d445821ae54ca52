//go:build race

package enginetest

// slowness is how much longer things may take than they should: the race detector costs about this.
const slowness = 8
