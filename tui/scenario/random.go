package scenario

import (
	"math/rand/v2"
	"time"
)

// random is a seeded source of randomness. A copy made by clone continues with the same numbers.
type random struct {
	*rand.Rand
	source *rand.PCG
}

func newRandom(seed, stream uint64) random {
	source := rand.NewPCG(seed, stream)
	return random{rand.New(source), source}
}

func (l random) clone() random {
	source := *l.source
	return random{rand.New(&source), &source}
}

// between returns a duration from a to b, both included, in whole milliseconds; a if b is before a.
func (l random) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(l.Int64N(int64((b-a)/time.Millisecond)+1))*time.Millisecond
}

func (l random) chance(p float64) bool { return l.Float64() < p }

// pick returns a random element.
func pick[T any](l random, of []T) T { return of[l.IntN(len(of))] }

// mix returns a hash of numbers, for values that are derived again whenever they are needed.
func mix(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h ^= n
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
