package cron

import (
	"iter"
	"slices"
	"sort"
	"time"
)

// Missed returns the most recent ticks after one time, up to and including another: at most keep,
// in order of time. skipped is how many other ticks there are. The cost grows with keep and the
// days in between, not with the number of ticks.
func (s *Schedule) Missed(after, until time.Time, keep int) (recent []time.Time, skipped int64) {
	from, end := clamp(after)+1, clamp(until)+1
	if keep > 0 {
		for instant := range s.backward(from, end) {
			recent = append(recent, time.Unix(instant, 0).UTC())
			end = instant
			if len(recent) == keep {
				break
			}
		}
	}
	slices.Reverse(recent)
	if len(recent) < keep {
		return recent, 0
	}
	return recent, s.count(from, end)
}

// count returns the number of ticks from one time (inclusive) to another (exclusive).
func (s *Schedule) count(from, end int64) int64 {
	if s.every > 0 {
		return s.countMultiples(from, end)
	}
	var n int64
	for from < end {
		p := s.periodAt(from)
		until := min(end, p.end)
		n += s.countWalls(max(from+p.offset, s.firstWall(p)), until+p.offset)
		if from == p.start && s.jumped(p) {
			n++
		}
		from = until
	}
	return n
}

// countWalls returns the number of wall-clock times of the expression, from one time (inclusive) to
// another (exclusive).
func (s *Schedule) countWalls(from, end int64) int64 {
	if from >= end {
		return 0
	}
	var n int64
	for day := floorDay(from); day*secondsPerDay < end; day++ {
		if s.days.match(day) {
			midnight := day * secondsPerDay
			n += s.timesBefore(end-midnight) - s.timesBefore(from-midnight)
		}
	}
	return n
}

// timesBefore returns the number of the expression's times of day before a second of the day; the
// second may be outside the day.
func (s *Schedule) timesBefore(second int64) int64 {
	clock := int(min(max(second, 0), secondsPerDay))
	hour, minute := clock/3600, clock/60%60
	n, found := rank(s.hours, hour)
	n *= len(s.minutes) * len(s.seconds)
	if !found {
		return int64(n)
	}
	before, found := rank(s.minutes, minute)
	n += before * len(s.seconds)
	if !found {
		return int64(n)
	}
	before, _ = rank(s.seconds, clock%60)
	return int64(n + before)
}

// rank returns how many of the values are below v, and whether v is one of them.
func rank(values []int, v int) (int, bool) {
	i := sort.SearchInts(values, v)
	return i, i < len(values) && values[i] == v
}

// backward yields the ticks from one time (inclusive) to another (exclusive), latest first.
func (s *Schedule) backward(from, end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if s.every > 0 {
			s.multiplesBackward(from, end, yield)
			return
		}
		for from < end {
			p := s.periodAt(end - 1)
			first := max(from, p.start)
			for wall := range s.wallsBackward(max(first+p.offset, s.firstWall(p)), end+p.offset) {
				if !yield(wall - p.offset) {
					return
				}
			}
			if first == p.start && s.jumped(p) && !yield(first) {
				return
			}
			end = first
		}
	}
}

// wallsBackward yields the wall-clock times of the expression from one time (inclusive) to another
// (exclusive), latest first.
func (s *Schedule) wallsBackward(from, end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for day := floorDay(end - 1); (day+1)*secondsPerDay > from; day-- {
			if s.days.match(day) && !s.timesBackward(day*secondsPerDay, from, end, yield) {
				return
			}
		}
	}
}

// timesBackward yields the expression's times of the day that begins at midnight, from one time
// (inclusive) to another (exclusive).
func (s *Schedule) timesBackward(midnight, from, end int64, yield func(int64) bool) bool {
	for _, hour := range slices.Backward(s.hours) {
		for _, minute := range slices.Backward(s.minutes) {
			start := midnight + int64(hour*60+minute)*60
			if start >= end || start+60 <= from {
				continue
			}
			for _, second := range slices.Backward(s.seconds) {
				wall := start + int64(second)
				if from <= wall && wall < end && !yield(wall) {
					return false
				}
			}
		}
	}
	return true
}
