package metrics

import (
	"math/bits"
	"time"
)

const (
	// fineness is the number of buckets per doubling, so that a quantile is at most an eighth too
	// large.
	fineness = 8
	// buckets reach up to about 19 hours; longer durations count as that.
	buckets = 34 * fineness
)

// histogram counts durations in exponential buckets. It does not allocate.
type histogram struct {
	counts [buckets]uint32
	total  uint32
}

// add counts one duration.
func (h *histogram) add(took time.Duration) {
	h.counts[bucketOf(took)]++
	h.total++
}

// clear sets all counts to zero.
func (h *histogram) clear() {
	if h.total > 0 {
		*h = histogram{}
	}
}

// quantile returns the q-quantile of the durations, at most an eighth too large; 0 if there are
// none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank, seen := uint32(q*float64(h.total-1))+1, uint32(0)
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return topOf(i)
		}
	}
	return topOf(buckets - 1)
}

// bucketOf returns a duration's bucket: one per microsecond at first, then fineness per doubling.
func bucketOf(took time.Duration) int {
	us := uint64(max(took.Microseconds(), 0))
	if us < fineness {
		return int(us)
	}
	double := bits.Len64(us) - bits.Len64(fineness) // how often to halve us to fit into fineness buckets
	return min((double+1)*fineness+int(us>>double)-fineness, buckets-1)
}

// topOf returns the longest duration of a bucket.
func topOf(bucket int) time.Duration {
	if bucket < fineness {
		return time.Duration(bucket) * time.Microsecond
	}
	double := bucket/fineness - 1
	us := (uint64(bucket%fineness+fineness+1) << double) - 1
	return time.Duration(us) * time.Microsecond
}
