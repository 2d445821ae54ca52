package render

import (
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// View says how to show values: the current time, and the style of times.
type View struct {
	Now      time.Time
	ISO      bool // times as RFC 3339 in UTC instead of "3m ago"
	Payloads int  // bytes of a payload to show; negative: all
	// Moment replaces the style of times; full asks for the long form. nil: ISO applies.
	Moment func(t *timestamppb.Timestamp, full bool) string
}

// Time writes a time; "-" if it is unset.
func (v View) Time(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	if v.Moment != nil {
		return v.Moment(t, false)
	}
	if v.ISO {
		return t.AsTime().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return Ago(v.Now.Sub(t.AsTime()))
}

// FullTime writes a time relative and as a date, where there is room.
func (v View) FullTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	if v.Moment != nil {
		return v.Moment(t, true)
	}
	iso := t.AsTime().UTC().Format("2006-01-02T15:04:05.000Z")
	if v.ISO {
		return iso
	}
	return Ago(v.Now.Sub(t.AsTime())) + " (" + iso + ")"
}

// near is FullTime to two units if times are relative; "" if unset.
func (v View) near(t *timestamppb.Timestamp) string {
	switch {
	case t == nil:
		return ""
	case v.Moment != nil || v.ISO:
		return v.FullTime(t)
	}
	return Near(v.Now.Sub(t.AsTime())) + " (" + t.AsTime().UTC().Format("2006-01-02T15:04:05.000Z") + ")"
}

// Took writes the time between two moments; without an end it counts to now, and without a start it
// is "-".
func (v View) Took(from, to *timestamppb.Timestamp) string {
	if from == nil {
		return "-"
	}
	end := v.Now
	if to != nil {
		end = to.AsTime()
	}
	return Duration(max(end.Sub(from.AsTime()), 0))
}

// Ago writes a distance from now: "3m ago", "in 2h", "now".
func Ago(d time.Duration) string {
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + coarse(ahead(d)) // rounded up: a run just delayed by 2h is due in 2h
	}
	return coarse(d) + " ago"
}

// ahead returns how far in the future a moment is, rounded up to the second; d is negative. A
// duration is at most 292 years, so a later moment, such as the year 9999 for "never", counts as
// that.
func ahead(d time.Duration) time.Duration {
	return -max(d, math.MinInt64+time.Second) + time.Second - 1
}

// coarse keeps the largest unit, as needed in a column of ages.
func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Near is Ago with the two largest units, for sentences: "3m12s ago", "in 2h5m", "now". The
// server's explanations (engine/explain_words.go) use the same form.
func Near(d time.Duration) string {
	switch {
	case d <= 0 && d > -time.Second:
		return "now"
	case d < 0:
		return "in " + Brief(ahead(d)) // rounded up, as in Ago
	}
	return Brief(d) + " ago"
}

// Brief writes a duration with its two largest units: "2m5s". A negative one is "0s".
func Brief(d time.Duration) string {
	d = max(d, 0)
	units := []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}}
	for i, u := range units {
		if d < u.length {
			continue
		}
		text := fmt.Sprintf("%d%s", d/u.length, u.name)
		if rest := d % u.length; i < 3 && rest >= units[i+1].length {
			text += fmt.Sprintf("%d%s", rest/units[i+1].length, units[i+1].name)
		}
		return text
	}
	return "0s"
}

// Duration writes how long something took, to about three digits: "350ms", "1.2s", "2m3s", "26h5m".
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Bytes writes a size: "512 B", "1.5 MiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < 3 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, []string{"KiB", "MiB", "GiB", "TiB"}[unit])
}
