package metrics

import (
	"slices"
	"testing"
	"time"
)

func TestALengthIsInEveryBucketThatItFits(t *testing.T) {
	var l lengths
	for _, took := range []time.Duration{-1, 0, 100 * time.Microsecond, 100*time.Microsecond + 1, time.Second,
		time.Minute, time.Hour} {
		l.add(took)
	}
	got := l.read()
	if got.Count != 7 || len(got.Buckets) != len(bounds) {
		t.Fatalf("%d lengths in %d buckets, want 7 in %d", got.Count, len(got.Buckets), len(bounds))
	}
	for bound, want := range map[float64]uint64{0.0001: 3, 0.00025: 4, 0.5: 4, 1: 5, 10: 5, 60: 6} {
		if got.Buckets[bound] != want {
			t.Errorf("%d took at most %v s, want %d", got.Buckets[bound], bound, want)
		}
	}
	if !slices.IsSorted(bounds[:]) {
		t.Error("the bounds are not in order")
	}
}
