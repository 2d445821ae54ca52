package storekit

import (
	"math/bits"
	"sync/atomic"

	"github.com/kagzi/kagzi/engine"
)

// CommitCounts counts engine.CommitSizes, from any goroutine. It allocates nothing; the zero value
// is ready for use.
type CommitCounts struct {
	writes  atomic.Uint64
	commits [11]atomic.Uint64 // of at most 1, 2, 4, … 512 writes, and of more
}

// Add counts a commit.
func (t *CommitCounts) Add(writes int) {
	t.writes.Add(uint64(writes))
	t.commits[min(bits.Len(uint(max(writes, 1)-1)), len(t.commits)-1)].Add(1)
}

// Sizes returns the counts.
func (t *CommitCounts) Sizes() engine.CommitSizes {
	s := engine.CommitSizes{Writes: t.writes.Load(), AtMost: map[float64]uint64{}}
	for i := range t.commits {
		s.Commits += t.commits[i].Load()
		if i < len(t.commits)-1 {
			s.AtMost[float64(uint(1)<<i)] = s.Commits
		}
	}
	return s
}
