package engine

import "time"

// Micros is t as it is stored: UTC, whole microseconds.
func Micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// MicrosUp is Micros rounded up: a bound within a microsecond stays above what was stored in that microsecond.
func MicrosUp(t time.Time) time.Time {
	if floor := Micros(t); floor.Before(t) {
		return floor.Add(time.Microsecond)
	}
	return Micros(t)
}
