// Package convert converts numbers, times, texts and statuses to and from their wire form.
package convert

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Narrow returns n as an int32. A number that does not fit becomes the nearest that does, which the server refuses.
func Narrow(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// WholeMs returns d in milliseconds, rounded away from 0: 0 means the default on the wire. The
// server refuses negative values.
func WholeMs(d time.Duration) int64 {
	if d < 0 {
		return min(d.Milliseconds(), -1)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Timestamp returns t for the wire; nil for the zero time.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// When returns the time of t; the zero time for nil.
func When(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
