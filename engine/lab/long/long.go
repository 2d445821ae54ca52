// Package long decides how much of a large set a test tries: every text on every screen, every
// failpoint many times, hundreds of seeds. With KAGZI_TEST_LONG set, as in .ci/run, tests try
// everything; otherwise a share that a new seed chooses each time. The seed is logged, and
// KAGZI_TEST_SEED repeats it.
//
// Only tests import this package. It imports no other package of Kagzi, so the tests of every
// package can import it.
package long

import (
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// Variable names the environment variable that makes tests try everything.
const Variable = "KAGZI_TEST_LONG"

// SeedVariable names the environment variable that repeats a choice.
const SeedVariable = "KAGZI_TEST_SEED"

// T is the part of testing.TB that logs a choice.
type T interface {
	Helper()
	Logf(format string, args ...any)
}

// Enabled reports whether tests try everything.
func Enabled() bool { return os.Getenv(Variable) != "" }

// Count returns full when tests try everything, and otherwise brief.
func Count(brief, full int) int {
	if Enabled() {
		return full
	}
	return brief
}

// Seed returns KAGZI_TEST_SEED, or a new seed if that is not set, and logs it.
func Seed(t T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%s=%d replays this choice", SeedVariable, seed)
	return seed
}

// Share returns all items if tests try everything. Otherwise it returns one item of each group of
// neighbours, chosen by the seed, so that no part of the list is left out.
func Share[E any](t T, all []E, every int) []E {
	t.Helper()
	if Enabled() || every <= 1 {
		return all
	}
	r := rand.New(rand.NewPCG(Seed(t), 0))
	var chosen []E
	for from := 0; from < len(all); from += every {
		group := all[from:min(from+every, len(all))]
		chosen = append(chosen, group[r.IntN(len(group))])
	}
	return chosen
}
