package kagzi

import (
	"bytes"
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// This file reports workflow code that is blocked outside of SDK calls. Such a run cannot be parked:
// it keeps its slot, and nothing else shows why it does not move.
//
// A branch without a call in progress is outside. While there is one, a timer looks at the branches
// once a second; a branch that was outside at each look for blockedAfter, without a call in between,
// is reported. The timer stops when every branch is inside a call, so a run that waits costs nothing.
//
// It also reports new calls that have been held for as long (order.go): something runs, such as a step,
// so the code may still make the recorded calls that it owes.
//
// What is reported goes to the log and, with each heartbeat, to the server, whose explanation of the run
// shows it.

const (
	blockedAfter = 5 * time.Second
	blockedLook  = time.Second
	// blockedPause is the time between the first two reports of a run. It doubles with each report.
	blockedPause = time.Minute

	mostBlocked      = 16      // reports in a heartbeat
	mostBlockedStack = 4 << 10 // bytes of a stack in a heartbeat
	mostBlockedCalls = 10      // in each list of a heartbeat
)

// watch is what an execution knows about code outside of SDK calls. Guarded by e.mu.
type watch struct {
	branches map[*branch]struct{} // that have not ended
	timer    *time.Timer          // nil while every branch is inside a call
	pause    time.Duration        // after the next report; 0 before the first

	heldSince time.Time // of the first look that found calls held; zero if none are
}

// outside is what the looks know about a branch. Guarded by e.mu.
type outside struct {
	goroutine string    // id of its goroutine
	since     time.Time // of the first look that found it outside, at this clock; zero if it is inside
	clock     int
	stack     string // as reported last, at that clock
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

// isBlocked reports whether the branch's code has been outside for long. Needs e.mu.
func (b *branch) isBlocked(now time.Time) bool {
	o := &b.outside
	return b.calls == 0 && !o.since.IsZero() && o.clock == b.clock && now.Sub(o.since) >= blockedAfter
}

// holds reports whether calls have been held for long. Needs e.mu.
func (e *execution) holds(now time.Time) bool {
	return e.owing > 0 && len(e.held) > 0 && !e.watch.heldSince.IsZero() && now.Sub(e.watch.heldSince) >= blockedAfter
}

// look reports the branches that are blocked, and calls that are held.
func (e *execution) look() {
	type report struct {
		b               *branch
		path, goroutine string
		clock           int
		d               time.Duration
	}
	var blocked []report
	e.mu.Lock()
	if e.quitted || e.closing {
		e.mu.Unlock()
		return
	}
	now, seen := time.Now(), len(e.held) > 0
	for b := range e.watch.branches {
		switch o := &b.outside; {
		case b.calls > 0:
			o.since = time.Time{}
			continue
		case o.since.IsZero() || o.clock != b.clock:
			o.since, o.clock, o.stack = now, b.clock, ""
		case b.isBlocked(now):
			blocked = append(blocked, report{b, b.path(), o.goroutine, b.clock, now.Sub(o.since)})
		}
		seen = true
	}
	switch {
	case len(e.held) == 0:
		e.watch.heldSince = time.Time{}
	case e.watch.heldSince.IsZero():
		e.watch.heldSince = now
	}
	var held *kagziv1.Divergence
	if e.holds(now) {
		held = e.divergence()
	}
	switch {
	case len(blocked) > 0 || held != nil:
		e.watch.pause = max(blockedPause, 2*e.watch.pause)
		e.watch.timer.Reset(e.watch.pause)
	case seen:
		e.watch.timer.Reset(blockedLook)
	default:
		e.watch.timer = nil
	}
	heldFor := now.Sub(e.watch.heldSince)
	e.mu.Unlock()
	for _, r := range blocked {
		stack := stackOf(r.goroutine)
		e.mu.Lock()
		if r.b.clock == r.clock {
			r.b.outside.stack = stack
		}
		e.mu.Unlock()
		args := []any{"for", r.d.Round(time.Second), "stack", stack}
		if r.path != "" {
			args = append([]any{"branch", r.path}, args...)
		}
		e.logger(e.w.log.Handler()).Warn("workflow code is blocked outside of SDK calls, so the run keeps its slot; "+
			"wait with Sleep, WaitSignal, Future.Wait or Child.Wait instead", args...)
	}
	if held != nil {
		e.logger(e.w.log.Handler()).Warn("new calls of the workflow code are held until it has made the recorded calls "+
			"that it owes; if no branch can make them, the run diverges", "for", heldFor.Round(time.Second),
			"held", callNames(held.GetMade()), "owed", callNames(held.GetOwed()))
	}
}

// blockedCode returns what a heartbeat says of code that keeps held runs from moving on.
func (w *Worker) blockedCode() (list []*kagziv1.BlockedCode) {
	for _, e := range w.all() {
		list = append(list, e.blockedCode()...)
	}
	slices.SortFunc(list, func(a, b *kagziv1.BlockedCode) int {
		return cmp.Or(cmp.Compare(a.GetRunId(), b.GetRunId()), cmp.Compare(a.GetBranch(), b.GetBranch()),
			cmp.Compare(len(a.GetHeld()), len(b.GetHeld())))
	})
	return list[:min(len(list), mostBlocked)]
}

func (e *execution) blockedCode() (list []*kagziv1.BlockedCode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quitted || e.closing {
		return nil
	}
	now := time.Now()
	for b := range e.watch.branches {
		if b.isBlocked(now) && b.outside.stack != "" { // else the next look reads it
			list = append(list, &kagziv1.BlockedCode{RunId: e.info.RunID, Branch: b.path(),
				Since: timestamppb.New(e.at(b.outside.since)),
				Stack: convert.CleanText(b.outside.stack, mostBlockedStack)})
		}
	}
	if e.holds(now) {
		d := e.divergence()
		list = append(list, &kagziv1.BlockedCode{RunId: e.info.RunID, Since: timestamppb.New(e.at(e.watch.heldSince)),
			Held: d.Made[:min(len(d.Made), mostBlockedCalls)], Owed: d.Owed[:min(len(d.Owed), mostBlockedCalls)]})
	}
	return list
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
