package model

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Range is how far back a series goes.
type Range uint8

const (
	FiveMinutes Range = iota // in steps of one second
	Hour                     // in steps of one minute
	Day
)

// String returns the label of the range.
func (r Range) String() string { return [...]string{"5 m", "1 h", "24 h"}[r] }

// Step returns the time between two points of the range.
func (r Range) Step() time.Duration {
	if r == FiveMinutes {
		return time.Second
	}
	return time.Minute
}

func (r Range) points() int { return [...]int{300, 60, 1440}[r] }

// series holds points of activity up to a moment. Nothing is loaded while nothing happens, so time
// since then is filled with empty points.
type series struct {
	at     time.Time
	step   time.Duration
	points []*kagziv1.ActivityPoint
}

// last returns the latest n points up to now; missing ones are empty.
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

// since returns the points that start at t or later. Two answers of a server may date one moment
// slightly differently, so half a step is tolerated.
func (s *series) since(t time.Time) []*kagziv1.ActivityPoint {
	for i := range s.points {
		if s.at.Add(-time.Duration(len(s.points)-1-i) * s.step).After(t.Add(s.step / 2)) {
			return s.points[i:]
		}
	}
	return nil
}
