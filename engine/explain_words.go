package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Words and phrases of an Explanation.

func withRequirements(r *Run) string {
	if len(r.Requirements) == 0 {
		return ""
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(r.Requirements)) {
		all = append(all, requirement(key, r.Requirements[key]))
	}
	return " with " + strings.Join(all, ", ")
}

// requirement writes a requirement: "gpu" if any value meets it, "zone=eu" if only one does.
func requirement(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + value
}

func listed(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}

// of returns " of 5" for a policy with 5 attempts, and nothing for one without a limit.
func of(p RetryPolicy) string {
	if p.attempts() < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", p.attempts())
}

func attempt(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

func because(f *Failure) string {
	if f == nil || f.Message == "" {
		return ""
	}
	return ": " + f.Message
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// in returns "in 38s", or "now" for less than a second. It rounds up and looks like times elsewhere
// (tui/render): a run that was just delayed by 1h is due in 1h.
func in(at, now time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	d := at.Sub(now)
	if d < time.Second {
		return "now"
	}
	// at.Sub saturates at the largest duration; adding to that would overflow
	return "in " + brief(min(d, math.MaxInt64-time.Second)+time.Second-1)
}

// brief writes a duration with its two largest units: "2m5s". A negative one is "0s".
func brief(d time.Duration) string {
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
