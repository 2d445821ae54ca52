package metrics

import (
	"sync/atomic"
	"time"
)

// bounds holds the longest duration of each bucket except the last.
var bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, time.Minute,
}

// lengths counts durations, from any goroutine. It does not allocate.
type lengths struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (l *lengths) add(took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(took))
}

// Lengths is a histogram of durations.
type Lengths struct {
	Count   uint64
	Sum     time.Duration
	Buckets map[float64]uint64 // number of durations of at most that many seconds
}

func (l *lengths) read() Lengths {
	read := Lengths{Sum: time.Duration(l.sum.Load()), Buckets: make(map[float64]uint64, len(bounds))}
	for i := range l.counts {
		read.Count += l.counts[i].Load()
		if i < len(bounds) {
			read.Buckets[bounds[i].Seconds()] = read.Count
		}
	}
	return read
}
