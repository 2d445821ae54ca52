package cron

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
)

// MaxEvery is the longest interval of @every, ten years. The shortest is one second.
const MaxEvery = 10 * 365 * 24 * time.Hour

// parseEvery returns the interval of "@every DURATION" in seconds.
func parseEvery(fields []string) (int64, error) {
	if len(fields) != 2 {
		return 0, refuse("@every needs one duration without spaces, such as @every 90s or @every 1h30m")
	}
	d, err := time.ParseDuration(strings.ToLower(fields[1]))
	switch {
	case err != nil:
		return 0, refuse("%s is no duration for @every; durations such as 90s and 1h30m are", quote(fields[1]))
	case d < time.Second || d > MaxEvery || d%time.Second != 0:
		return 0, refuse("@every must be whole seconds between 1s and %dh (10 years), got %s",
			int64(MaxEvery/time.Hour), quote(fields[1]))
	}
	return int64(d / time.Second), nil
}

// The ticks of @every are the multiples of the interval since 1970 in UTC. So they depend neither on
// a start, which servers and restarts would not share, nor on the time zone.

// nextMultiple returns the first tick of @every strictly after an instant.
func (s *Schedule) nextMultiple(instant int64) int64 {
	return (floorDiv(instant, s.every) + 1) * s.every
}

// countMultiples returns the number of ticks of @every from one instant (inclusive) to another
// (exclusive).
func (s *Schedule) countMultiples(from, end int64) int64 {
	if from >= end {
		return 0
	}
	return floorDiv(end-1, s.every) - floorDiv(from-1, s.every)
}

// multiplesBackward yields the ticks of @every from one instant (inclusive) to another (exclusive),
// latest first.
func (s *Schedule) multiplesBackward(from, end int64, yield func(int64) bool) {
	for at := floorDiv(end-1, s.every) * s.every; at >= from && yield(at); at -= s.every {
	}
}

func floorDiv(a, b int64) int64 {
	n := a / b
	if a%b < 0 {
		n--
	}
	return n
}

// Delay returns how long after a tick its run starts if the schedule has jitter: a fixed time for
// each schedule and tick, at least 0, less than jitter and less than the time until the next tick,
// in whole milliseconds. So every server computes the same, and ticks keep their order. The last
// tick of all is not delayed.
func (s *Schedule) Delay(id [16]byte, tick time.Time, jitter time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	next, ok := s.Next(tick)
	if !ok {
		return 0
	}
	jitter = min(jitter, next.Sub(tick))
	sum := sha256.Sum256(append(id[:], tick.UTC().Format(time.RFC3339)...))
	share := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	return time.Duration(share * float64(jitter)).Truncate(time.Millisecond)
}
