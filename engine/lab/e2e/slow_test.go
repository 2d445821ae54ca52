//go:build !race

package e2e

// slowness multiplies time limits.
const slowness = 1

// raced reports whether the race detector runs.
const raced = false
