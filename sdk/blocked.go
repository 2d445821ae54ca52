package kagzi

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// This file reports workflow code that is blocked outside of SDK calls. Such a run cannot be parked:
// it keeps its slot, and nothing else shows why it does not move.
//
// A branch without a call in progress is outside. While there is one, a timer looks at the branches
// once a second; a branch that was outside at each look for blockedAfter, without a call in between,
// is reported. The timer stops when every branch is inside a call, so a run that waits costs nothing.

const (
	blockedAfter = 5 * time.Second
	blockedLook  = time.Second
	// blockedPause is the time between the first two reports of a run. It doubles with each report.
	blockedPause = time.Minute
)

// watch is what an execution knows about code outside of SDK calls. Guarded by e.mu.
type watch struct {
	branches map[*branch]struct{} // that have not ended
	timer    *time.Timer          // nil while every branch is inside a call
	pause    time.Duration        // after the next report; 0 before the first
}

// outside is what the looks know about a branch. Guarded by e.mu.
type outside struct {
	goroutine string    // id of its goroutine
	since     time.Time // of the first look that found it outside, at this clock; zero if it is inside
	clock     int
}

// watchOutside looks at the branches in a while, if no look is due. Needs e.mu.
func (e *execution) watchOutside() {
	if e.watch.timer == nil && e.replay == nil && !e.quitted {
		e.watch.timer = time.AfterFunc(blockedLook, e.look)
	}
}

// stopWatch ends the looks. Needs e.mu.
func (e *execution) stopWatch() {
	if e.watch.timer != nil {
		e.watch.timer.Stop()
	}
}

// look reports the branches that are blocked.
func (e *execution) look() {
	type report struct {
		path, goroutine string
		d               time.Duration
	}
	var blocked []report
	e.mu.Lock()
	if e.quitted || e.closing {
		e.mu.Unlock()
		return
	}
	now, seen := time.Now(), false
	for b := range e.watch.branches {
		switch o := &b.outside; {
		case b.calls > 0:
			o.since = time.Time{}
			continue
		case o.since.IsZero() || o.clock != b.clock:
			o.since, o.clock = now, b.clock
		case now.Sub(o.since) >= blockedAfter:
			blocked = append(blocked, report{b.path(), o.goroutine, now.Sub(o.since)})
		}
		seen = true
	}
	switch {
	case len(blocked) > 0:
		e.watch.pause = max(blockedPause, 2*e.watch.pause)
		e.watch.timer.Reset(e.watch.pause)
	case seen:
		e.watch.timer.Reset(blockedLook)
	default:
		e.watch.timer = nil
	}
	e.mu.Unlock()
	for _, r := range blocked {
		args := []any{"for", r.d.Round(time.Second), "stack", stackOf(r.goroutine)}
		if r.path != "" {
			args = append([]any{"branch", r.path}, args...)
		}
		e.logger(e.w.log.Handler()).Warn("workflow code is blocked outside of SDK calls, so the run keeps its slot; "+
			"wait with Sleep, WaitSignal, Future.Wait or Child.Wait instead", args...)
	}
}

// goroutineID returns the id of the calling goroutine, as stacks show it.
func goroutineID() string {
	var title [40]byte
	text, _ := strings.CutPrefix(string(title[:runtime.Stack(title[:], false)]), "goroutine ")
	id, _, _ := strings.Cut(text, " ")
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return ""
	}
	return id
}

// maxStacks limits the text of all stacks that is searched for one.
const maxStacks = 64 << 20

// stackOf returns the stack of a goroutine down to the SDK's frames, "" if it has ended.
func stackOf(goroutine string) string {
	if goroutine == "" {
		return ""
	}
	for size := 256 << 10; size <= maxStacks; size *= 2 {
		all := make([]byte, size)
		n := runtime.Stack(all, true)
		all = append([]byte("\n\n"), all[:n]...)
		if _, from, found := bytes.Cut(all, []byte("\n\ngoroutine "+goroutine+" [")); found {
			own, _, whole := bytes.Cut(from, []byte("\n\n"))
			if whole || n < size {
				text, _, _ := strings.Cut("goroutine "+goroutine+" ["+string(own),
					"\ngithub.com/kagzi/kagzi/sdk.(*execution).run(")
				text, _, _ = strings.Cut(text, "\ngithub.com/kagzi/kagzi/sdk.(*branch).start.")
				return convert.CleanText(text, convert.MaxErrorText)
			}
		}
		if n < size {
			break
		}
	}
	return ""
}
