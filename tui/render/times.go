package render

import (
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// View says how people want to see values: what time it is, and whether times are relative to it.
type View struct {
	Now      time.Time
	ISO      bool // times as RFC 3339 in UTC instead of "3m ago"
	Payloads int  // bytes of a payload to show; negative means all
	// Moment shows times another way, full where there is room; nil: as ISO says.
	Moment func(t *timestamppb.Timestamp, full bool) string
}

// Time shows a moment, "-" when there is none.
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

// FullTime shows a moment both ways, for places with room.
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

// near is FullTime to two units where times are relative; "" when there is none.
func (v View) near(t *timestamppb.Timestamp) string {
	switch {
	case t == nil:
		return ""
	case v.Moment != nil || v.ISO:
		return v.FullTime(t)
	}
	return Near(v.Now.Sub(t.AsTime())) + " (" + t.AsTime().UTC().Format("2006-01-02T15:04:05.000Z") + ")"
}

// Took shows the time between two moments; the end may be missing and is now then. "-" without a begin.
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

// Ago shows a distance from now: "3m ago", "in 2h", "now".
func Ago(d time.Duration) string {
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + coarse(ahead(d)) // rounded up: what was just put off by 2h is due in 2h
	}
	return coarse(d) + " ago"
}

// ahead is how far off a moment of the future is, rounded up to the second; d is below zero. No
// distance is longer than 292 years, and one that is farther off, such as the year 9999 of what is
// to be never, comes as that.
func ahead(d time.Duration) time.Duration {
	return -max(d, math.MinInt64+time.Second) + time.Second - 1
}

// coarse keeps the largest unit, which is what a column of ages needs.
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

// Near is Ago to the two largest units, for sentences and what stands beside them: "3m12s ago", "in
// 2h5m", "now". The explanations of the server (engine/explain_words.go) say distances alike.
func Near(d time.Duration) string {
	switch {
	case d <= 0 && d > -time.Second:
		return "now"
	case d < 0:
		return "in " + Brief(ahead(d)) // rounded up, as by Ago
	}
	return Brief(d) + " ago"
}

// Brief is a length of time in a sentence: its two largest units at most, "2m5s", never negative.
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

// Duration shows how long something took, to about three digits: "350ms", "1.2s", "2m3s", "26h5m".
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

// Bytes shows a size: "512 B", "1.5 MiB".
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
