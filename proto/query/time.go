package query

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errTime = errors.New("want a time such as 2026-11-20T12:00:00Z, 2026-11-20 or -24h")

// ParseTime parses a time as people write it: RFC 3339, a date (midnight UTC), or a duration from
// now with its sign: "-24h", "+10m", "-7d".
func ParseTime(text string, now time.Time) (time.Time, error) {
	if relative(text) {
		d, err := ParseDuration(text)
		if err != nil {
			return now, errTime
		}
		return now.Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1 {
			return t, nil
		}
	}
	return time.Time{}, errTime
}

// relative says whether a time counts from now. Without a sign it could be meant either way.
func relative(text string) bool { return strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") }

// century is the longest duration in days or weeks.
const century = 100 * 366 * 24 * time.Hour

// ParseDuration parses a Go duration that may begin with whole weeks and days: "1h30m", "-7d",
// "2w", "1d12h". Weeks and days add up to at most a hundred years.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimLeft(text, "+-")
	if len(text)-len(rest) > 1 {
		return 0, notDuration(text)
	}
	var days time.Duration
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		head, tail, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(head, 10, 32)
		if err != nil {
			return 0, notDuration(text)
		}
		if n > uint64((century-days)/unit.length) { // stays far from overflow
			return 0, fmt.Errorf("%q is longer than a hundred years", text)
		}
		days, rest = days+time.Duration(n)*unit.length, tail
	}
	var d time.Duration
	if rest != "" || days == 0 && !strings.ContainsAny(text, "wd") {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
			return 0, notDuration(text)
		}
	}
	if d += days; d < 0 {
		return 0, fmt.Errorf("%q is longer than a hundred years", text)
	}
	if strings.HasPrefix(text, "-") {
		d = -d
	}
	return d, nil
}

func notDuration(text string) error {
	return fmt.Errorf("%q is not a duration such as 90s, 1h30m or 7d", text)
}
