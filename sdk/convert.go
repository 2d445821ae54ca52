package kagzi

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Numbers and times as the wire has them.

// narrow is a number as the wire has it. One that does not fit becomes the nearest that does, which the server refuses, instead of another.
func narrow(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// wholeMs rounds away from 0, which means the default, so that a short duration is a short one, and one below 0 is refused.
func wholeMs(d time.Duration) int64 {
	if d < 0 {
		return min(d.Milliseconds(), -1)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func when(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
