// Package long says how much of a large product a test tries: every text on every screen, every
// failpoint many times, hundreds of seeds. With KAGZI_TEST_LONG set, as in .ci/run, that is all of
// it; without, a share that a seed chooses, another one each time. The seed is logged, and
// KAGZI_TEST_SEED replays it.
//
// Only tests import it. It imports nothing of ours, so that the tests of every package can.
package long

import (
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// Variable is the environment variable that asks for everything.
const Variable = "KAGZI_TEST_LONG"

// SeedVariable is the environment variable that replays a choice.
const SeedVariable = "KAGZI_TEST_SEED"

// T is the part of testing.TB that a choice is logged to.
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

// Seed returns the seed of KAGZI_TEST_SEED or else a new one, and logs it.
func Seed(t T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%s=%d replays this choice", SeedVariable, seed)
	return seed
}

// Share returns all items when tests try everything, and otherwise one of every items, in their
// order: from each group of neighbours one that the seed chooses, so that no stretch of the list is
// left out.
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
