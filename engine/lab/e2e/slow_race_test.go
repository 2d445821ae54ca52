//go:build race

package e2e

// slowness multiplies time limits: the race detector costs about this much.
const slowness = 8

// raced reports whether the race detector runs. With -short, tests that cannot find a new race are
// skipped then.
const raced = true
