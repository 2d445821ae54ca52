package subject

import "sync"

// Watch follows where the code of runs stands, in the worker of the same process. Programs with
// children that are waited for in another call than they are started with are moving all the time.
type Watch struct {
	changed func() // is called at each change, while it is made
	mu      sync.Mutex
	runs    map[string]*place // the latest activation of each run
}

// NewWatch returns a Watch that calls changed at each change.
func NewWatch(changed func()) *Watch { return &Watch{changed: changed, runs: map[string]*place{}} }

// Standing is where the code of a run stands: in which calls of the SDK.
type Standing struct {
	Moving   bool     // a branch is not in a call, or its call is about to return
	Steps    int      // calls of steps
	Timers   int      // calls of sleeps and waits with a limit
	Signals  []string // names that are waited for without a limit
	Children []string // names that are waited for
}

// Look returns where the code of a run stands; false if it has not begun.
func (w *Watch) Look(run string) (s Standing, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.runs[run]
	if p == nil {
		return s, false
	}
	s.Moving = p.moving > 0
	for c := range p.calls {
		switch c.kind {
		case callStep:
			s.Steps++
		case callTimer:
			s.Timers++
		case callSignal:
			s.Signals = append(s.Signals, c.name)
		case callChild:
			s.Children = append(s.Children, c.name)
		case callBranches:
			for _, b := range c.branches {
				s.Moving = s.Moving || b.ended
			}
		}
	}
	return s, true
}

// Forget drops what is known of a run.
func (w *Watch) Forget(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, run)
}

// place is where the code of one activation stands. A nil place is not watched.
type place struct {
	watch  *Watch
	moving int // branches that are not in a call
	calls  map[*call]struct{}
}

// branch is one of a program.
type branch struct{ ended bool }

type callKind int

const (
	callStep callKind = iota
	callTimer
	callSignal
	callChild
	callBranches
)

// call is a call of the SDK that is open. One that waits for branches returns when one has ended.
type call struct {
	kind     callKind
	name     string
	branches []*branch
}

// begin starts to watch an activation.
func (w *Watch) begin(run string) *place {
	if w == nil {
		return nil
	}
	p := &place{watch: w, moving: 1, calls: map[*call]struct{}{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[run] = p
	w.changed()
	return p
}

// in makes a call of the SDK. If the activation is dropped in between, it stays open.
func (p *place) in(c call, do func()) {
	p.change(func() { p.moving--; p.calls[&c] = struct{}{} })
	do()
	p.change(func() { p.moving++; delete(p.calls, &c) })
}

// fork is called before a branch begins, and end when its code has ended.
func (p *place) fork() *branch {
	p.change(func() { p.moving++ })
	return &branch{}
}

func (p *place) end(b *branch) { p.change(func() { p.moving--; b.ended = true }) }

func (p *place) change(f func()) {
	if p == nil {
		return
	}
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	f()
	p.watch.changed()
}
