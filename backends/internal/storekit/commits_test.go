package storekit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kagzi/kagzi/engine"
)

func TestCommitsAreCountedByHowManyWritesShareThem(t *testing.T) {
	var counts CommitCounts
	for _, writes := range []int{1, 1, 2, 3, 4, 5, 512, 513, 100_000} {
		counts.Add(writes)
	}
	want := engine.CommitSizes{Commits: 9, Writes: 101_041, AtMost: map[float64]uint64{
		1: 2, 2: 3, 4: 5, 8: 6, 16: 6, 32: 6, 64: 6, 128: 6, 256: 6, 512: 7,
	}}
	if diff := cmp.Diff(want, counts.Sizes()); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	if n := testing.AllocsPerRun(100, func() { counts.Add(3) }); n != 0 {
		t.Errorf("%v allocations a commit, want none", n)
	}
}
