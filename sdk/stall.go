package kagzi

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Results are handed over while all code of the run waits in calls of the SDK. Code that waits
// outside of them, on a channel or a lock, may wait for code that gets the next result. And plain
// goroutines of the author run whenever they like; what they do next, or whether they have ended, no
// call tells. So if a result waits for code that may be running, this file looks at the goroutines of
// the run: the branches', and those that these have started. Once none of them goes on by itself, the
// result is handed over. A branch that is blocked outside of calls is left alone until its next call.
//
// Results for plain goroutines wait neither for each other nor for their branch's own goroutine, whose
// order has no meaning. They have no part in the order of results by which First decides.

const (
	stallFirst = 20 * time.Millisecond // after the last change
	looseFirst = time.Millisecond      // likewise, of a run with plain goroutines
	stallMost  = time.Second
	stallShare = 10 // a look pauses for so many times what the last one took
)

// stall is the state of the looks. Guarded by e.mu.
type stall struct {
	timer      *time.Timer
	pause      time.Duration
	armed      time.Time
	generation int             // when it was armed
	family     map[string]bool // plain goroutines of the run that the last look saw, and who started them
}

// watchStall looks at the code in a while, if a result waits for it. Needs e.mu.
func (e *execution) watchStall() {
	if e.stall.timer != nil || !e.waitsForCode() {
		return
	}
	e.stall.pause = stallFirst
	if e.isLoose() || e.unsure {
		e.stall.pause = looseFirst
	}
	e.armStall()
}

// armStall sets the timer of the next look. Needs e.mu.
func (e *execution) armStall() {
	if e.stall.timer != nil {
		return
	}
	e.stall.armed, e.stall.generation = time.Now(), e.generation
	e.stall.timer = time.AfterFunc(max(e.stall.pause, e.w.stacks.pause()), e.lookForStall)
}

// waitsForCode reports whether something waits for the code to be in calls of the SDK: a result, or the
// parking of a run of which only plain goroutines are in calls. Needs e.mu.
func (e *execution) waitsForCode() bool {
	return len(e.endings) > 0 || e.busy == 0 || e.deliverable() || e.replay != nil && len(e.held) > 0
}

// lookForStall goes on if no code of the run goes on by itself.
func (e *execution) lookForStall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stall.timer = nil
	waits := func() bool {
		return !e.quitted && !e.closing && (e.coding > 0 || e.unsure) && e.waitsForCode()
	}
	if !waits() {
		return
	}
	armed, generation := e.stall.armed, e.stall.generation
	e.mu.Unlock()
	goroutines := e.w.stacks.since(armed)
	e.mu.Lock()
	if !waits() {
		return
	}
	switch {
	case generation != e.generation:
		e.armStall()
	case e.rests(goroutines):
		e.unsure = false
		var stuck []*branch // first all, because settle hands over results
		for b := range e.watch.branches {
			if b.coding && b.inside == 0 {
				b.detached = true
				e.detached++
				stuck = append(stuck, b)
			}
		}
		for _, b := range stuck {
			b.settle()
		}
		if len(stuck) == 0 {
			e.moved()
		}
	default:
		e.stall.pause = min(2*e.stall.pause, stallMost)
		e.armStall()
	}
}

// rests reports whether no goroutine of the run goes on by itself. One that was found running outside of
// calls counts as code again. For long, plain goroutines are not waited for. Needs e.mu.
func (e *execution) rests(goroutines map[string]*goroutine) bool {
	own := make(map[string]*branch, len(e.watch.branches))
	for b := range e.watch.branches {
		own[b.outside.goroutine] = b
	}
	rest, family := true, make(map[string]bool)
	for id, b := range own {
		g := goroutines[id]
		if b.inside > 0 || g != nil && g.waits && !g.inSDK {
			continue
		}
		rest = false
		if b.detached {
			b.attach()
			b.settle()
		}
	}
	for id, g := range goroutines {
		switch {
		case own[id] != nil:
		case g.descends(goroutines, func(id string) bool { return own[id] != nil || e.stall.family[id] }):
			family[id], family[g.creator] = true, true
			if e.stall.pause < stallMost && (g.runs || g.locks && g.inSDK) {
				rest = false
			}
		}
	}
	e.stall.family = family
	return rest
}

// attach takes the branch's code into account again. Needs e.mu.
func (b *branch) attach() {
	b.detached = false
	b.e.detached--
}

// stopStall ends the looks. Needs e.mu.
func (e *execution) stopStall() {
	if e.stall.timer != nil {
		e.stall.timer.Stop()
	}
}

// goroutine is what a look knows about a goroutine of the process.
type goroutine struct {
	creator string // id of the goroutine that started it
	waits   bool   // for another goroutine
	locks   bool   // it waits for a lock
	runs    bool   // it computes, or is about to
	inSDK   bool   // its innermost frames are the SDK's: it is about to make or to leave a call, or waits in it
	step    bool   // it runs a step's code
}

// descends reports whether it was started by one of some goroutines, or by one that descends from them,
// and not by a step's code.
func (g *goroutine) descends(all map[string]*goroutine, from func(id string) bool) bool {
	for range len(all) {
		if g.step || g.creator == "" {
			return false
		}
		if from(g.creator) {
			return true
		}
		if g = all[g.creator]; g == nil {
			return false
		}
	}
	return false
}

// stacks looks at the goroutines of the process for all runs of a worker.
type stacks struct {
	mu    sync.Mutex
	began time.Time
	took  time.Duration
	all   map[string]*goroutine
}

// pause returns how long the next look should wait, so that looks take a small share of the time.
func (s *stacks) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stallShare * s.took
}

// since returns the goroutines as they were at some time after t.
func (s *stacks) since(t time.Time) map[string]*goroutine {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began.After(t) {
		s.began = time.Now()
		s.all = allGoroutines()
		s.took = time.Since(s.began)
	}
	return s.all
}

// allGoroutines returns the goroutines of the process by their ids; none if their stacks are too long.
func allGoroutines() map[string]*goroutine {
	all := make(map[string]*goroutine)
	for size := 256 << 10; size <= maxStacks; size *= 2 {
		text := make([]byte, size)
		n := runtime.Stack(text, true)
		if n == size && size < maxStacks {
			continue
		}
		for stack := range bytes.SplitSeq(text[:n], []byte("\n\n")) {
			title, frames, _ := bytes.Cut(stack, []byte("\n"))
			if id, state, ok := strings.Cut(strings.TrimPrefix(string(title), "goroutine "), " ["); ok {
				all[id] = readGoroutine(state, string(frames))
			}
		}
		break
	}
	return all
}

func readGoroutine(state, frames string) *goroutine {
	is := func(states ...string) bool {
		for _, s := range states {
			if strings.HasPrefix(state, s) {
				return true
			}
		}
		return false
	}
	g := &goroutine{locks: is("sync.", "semacquire"), runs: is("running", "runnable"), inSDK: inSDK(frames),
		step: strings.Contains(frames, "\ngithub.com/kagzi/kagzi/sdk.stepGoroutine(")}
	// One that sleeps or waits for the network goes on by itself.
	g.waits = g.locks || is("chan receive", "chan send", "select")
	if _, creator, ok := strings.Cut(frames, "\ncreated by "); ok {
		line, _, _ := strings.Cut(creator, "\n")
		_, g.creator, _ = strings.Cut(line, " in goroutine ")
	}
	return g
}

// inSDK reports whether the innermost frames of a stack are the SDK's.
func inSDK(frames string) bool {
	for line := range strings.Lines(frames) {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "runtime.") || strings.HasPrefix(line, "sync.") ||
			strings.HasPrefix(line, "internal/") {
			continue
		}
		return strings.HasPrefix(line, "github.com/kagzi/kagzi/sdk.(*") ||
			strings.HasPrefix(line, "github.com/kagzi/kagzi/sdk.await[")
	}
	return false
}
