package model

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Range is how far back a series goes.
type Range uint8

const (
	FiveMinutes Range = iota // in steps of a second
	Hour                     // in steps of a minute
	Day
)

// String is the range as it is shown.
func (r Range) String() string { return [...]string{"5 m", "1 h", "24 h"}[r] }

// Step is how much time a point of the range stands for.
func (r Range) Step() time.Duration {
	if r == FiveMinutes {
		return time.Second
	}
	return time.Minute
}

func (r Range) points() int { return [...]int{300, 60, 1440}[r] }

// series is points of activity up to a moment. As long as nothing happens nothing is read, so time
// that has passed since is filled with points in which nothing was done.
type series struct {
	at     time.Time
	step   time.Duration
	points []*kagziv1.ActivityPoint
}

// last is the latest n points up to now, with empty ones where the series says nothing.
func (s *series) last(n int, now time.Time) []*kagziv1.ActivityPoint {
	list := make([]*kagziv1.ActivityPoint, n)
	quiet := 0
	if s.step > 0 && now.After(s.at) {
		quiet = int(min(now.Sub(s.at)/s.step, time.Duration(n)))
	}
	for i := range list {
		from := len(s.points) - n + quiet + i
		if i < n-quiet && from >= 0 {
			list[i] = s.points[from]
			continue
		}
		list[i] = &kagziv1.ActivityPoint{}
	}
	return list
}

// since is the points that began at a moment or later. Two answers of a server date the same moment
// a little apart, so half a step is allowed.
func (s *series) since(t time.Time) []*kagziv1.ActivityPoint {
	for i := range s.points {
		if s.at.Add(-time.Duration(len(s.points)-1-i) * s.step).After(t.Add(s.step / 2)) {
			return s.points[i:]
		}
	}
	return nil
}
