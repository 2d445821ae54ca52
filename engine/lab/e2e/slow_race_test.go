//go:build race

package e2e

// slowness is how much longer things may take than they should: the race detector costs about this.
const slowness = 8

// raced is true: the race detector watches. With -short it is not shown what cannot hold anything new for it.
const raced = true
