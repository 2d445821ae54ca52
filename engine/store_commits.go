package engine

import (
	"math/bits"
	"sync/atomic"
)

// Commits is filled besides Store by stores that gather writes which wait into one commit.
type Commits interface {
	// CommitSizes tells how many writes shared a commit, since the store was opened. It waits for nothing.
	CommitSizes() CommitSizes
}

// CommitSizes is how many writes were in each commit.
type CommitSizes struct {
	Commits uint64
	Writes  uint64
	AtMost  map[float64]uint64 // how many commits held at most so many writes
}

// CommitTally counts CommitSizes, from any goroutine. It allocates nothing; the zero value is ready for use.
type CommitTally struct {
	writes  atomic.Uint64
	commits [11]atomic.Uint64 // of at most 1, 2, 4, .. 512 writes, and of more
}

// Add counts a commit.
func (t *CommitTally) Add(writes int) {
	t.writes.Add(uint64(writes))
	t.commits[min(bits.Len(uint(max(writes, 1)-1)), len(t.commits)-1)].Add(1)
}

// Sizes is what was counted.
func (t *CommitTally) Sizes() CommitSizes {
	s := CommitSizes{Writes: t.writes.Load(), AtMost: map[float64]uint64{}}
	for i := range t.commits {
		s.Commits += t.commits[i].Load()
		if i < len(t.commits)-1 {
			s.AtMost[float64(uint(1)<<i)] = s.Commits
		}
	}
	return s
}
