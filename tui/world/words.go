package world

import (
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The small words of sentences.

func attempt(n int32) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

func because(e *kagziv1.ErrorDetail) string {
	if e.GetMessage() == "" {
		return ""
	}
	return ": " + e.Message
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isAre(n int) string {
	if n == 1 {
		return "1 run is"
	}
	return fmt.Sprintf("%d runs are", n)
}

// in is "in 38 s", or "now" when the moment has come.
func in(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + brief(at.Sub(now))
}

// brief is a length of time for people: its two largest units at most, never negative.
func brief(d time.Duration) string {
	d = max(d, 0)
	units := []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}}
	for i, u := range units {
		if d < u.length {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.length, u.name)
		if rest := d % u.length; i < 3 && rest >= units[i+1].length {
			text += fmt.Sprintf(" %d %s", rest/units[i+1].length, units[i+1].name)
		}
		return text
	}
	return "0 s"
}
