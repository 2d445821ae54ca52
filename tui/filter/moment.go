package filter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moment is a time, or a duration relative to now.
type moment struct {
	time    time.Time // may be year 1: programs write an unset time like that
	distant bool      // since, relative to now, applies instead of time
	since   time.Duration
}

func (m moment) at(now time.Time) time.Time {
	if m.distant {
		return now.Add(m.since)
	}
	return m.time
}

// ParseTime parses a time as people write it: RFC 3339, a date (midnight UTC), or a duration
// relative to now: "-24h", "+10m", "-7d".
func ParseTime(text string, now time.Time) (time.Time, error) {
	m, err := parseMoment(text)
	return m.at(now), err
}

var errMoment = errors.New("want a time such as 2026-11-20T12:00:00Z, 2026-11-20 or -24h")

func parseMoment(text string) (moment, error) {
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		d, err := ParseDuration(text)
		if err != nil {
			return moment{}, errMoment
		}
		return moment{distant: true, since: d}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1 {
			return moment{time: t}, nil
		}
	}
	return moment{}, errMoment
}

// century is the longest duration in days or weeks.
const century = 100 * 366 * 24 * time.Hour

// ParseDuration parses a Go duration, or whole days or weeks: "1h30m", "-7d", "2w".
func ParseDuration(text string) (time.Duration, error) {
	digits := strings.TrimLeft(text, "+-")
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, ok := strings.CutSuffix(digits, unit)
		n, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil || len(text)-len(digits) > 1 {
			continue
		}
		if n > uint64(century/length) { // stays far from overflow
			return 0, fmt.Errorf("%q is longer than a hundred years", text)
		}
		d := time.Duration(n) * length
		if strings.HasPrefix(text, "-") {
			d = -d
		}
		return d, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 1h30m or 7d", text)
	}
	return d, nil
}
