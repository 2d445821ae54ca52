package world

import (
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
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

// in is when something is to happen, as the server says it.
func in(at, now time.Time) string { return render.Near(min(now.Sub(at), 0)) }
