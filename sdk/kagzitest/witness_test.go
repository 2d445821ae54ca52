package kagzitest_test

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// stay is one stay of the program's run on a worker.
type stay struct {
	*ledger
	run  string
	mu   sync.Mutex
	seen map[string]outcome
}

// outcome is what a call came to.
type outcome struct {
	value int
	err   error
}

func (o outcome) String() string {
	if step := (*kagzi.StepError)(nil); errors.As(o.err, &step) {
		return fmt.Sprintf("%d, %+v", o.value, *step)
	}
	return fmt.Sprintf("%d, %v", o.value, o.err)
}

// ledger is what is known of a program's calls over all stays.
type ledger struct {
	*among
	before map[string][]string // by call: those that come before it
	steps  map[string]bool     // the names of steps

	mu     sync.Mutex
	number int
	begun  map[string]int     // how often its code has begun, by step
	final  map[string]outcome // what a call has come to for good
}

// newLedger is that of a program, or of some that follow each other.
func newLedger(a *among, programs ...program) *ledger {
	l := &ledger{among: a, before: map[string][]string{}, steps: map[string]bool{}, begun: map[string]int{},
		final: map[string]outcome{}}
	var before []string
	for _, p := range programs {
		before = l.order(p, before)
	}
	return l
}

// order notes for each call of a program which come before it, and returns those that come before what follows.
func (l *ledger) order(p program, before []string) []string {
	for _, c := range p {
		l.before[c.name] = before
		l.steps[c.name] = c.kind == "step" || c.kind == "retried"
		first, n := before, len(before)
		before = append(before[:n:n], c.name)
		for _, branch := range c.branches {
			before = append(before, l.order(branch, first)[n:]...)
		}
	}
	return before
}

func (l *ledger) stay(ctx kagzi.Context) *stay {
	return &stay{ledger: l, run: kagzi.Info(ctx).RunID, seen: map[string]outcome{}}
}

// values is what the calls without an error came to.
func (s *stay) values() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := map[string]int{}
	for name, o := range s.seen {
		if o.err == nil {
			values[name] = o.value
		}
	}
	return values
}

// saw notes what a call came to. A result that the server has told is so for good. What this worker
// has made, a step's result or that a call was cancelled, is so when it is recorded, and of a lease
// that is lost it never is.
func (s *stay) saw(name string, value int, err error) {
	o := outcome{value, err}
	s.mu.Lock()
	s.seen[name] = o
	s.mu.Unlock()
	if err != nil || s.steps[name] {
		return
	}
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	final, is := s.final[name]
	if is && final.err == nil && final.value != value {
		s.Errorf("%s came to %s for good, and later to %s", name, final, o)
	}
	if !is {
		s.final[name] = o
	}
}

// begins is told when a step's code does: what its code builds on has to be recorded by then. The
// result is another one each time.
func (s *stay) begins(name string) int {
	recorded := s.recorded(s.run)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	for _, before := range s.before[name] {
		o, seen := s.seen[before]
		if !seen {
			continue
		}
		if final, is := s.final[before]; is && final.String() != o.String() {
			s.Errorf("step %s begins behind %s, which came to %s here, and to %s for good", name, before, o, final)
		}
		s.final[before] = o
		if s.steps[before] && o.err == nil && recorded[before] != fmt.Sprint(o.value) {
			s.Errorf("step %s begins behind %s, whose result %d is recorded as %q", name, before, o.value,
				recorded[before])
		}
	}
	s.number++
	s.begun[name]++
	return s.number
}

// viewer is the witness of a replay, which runs no step.
type viewer struct {
	mu   sync.Mutex
	seen map[string]int
}

func (v *viewer) saw(name string, value int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		v.seen[name] = value
	}
}

func (v *viewer) begins(string) int { return -1 }

// recorded is the results of a run's steps, by name.
func (l *ledger) recorded(run string) map[string]string {
	recorded := map[string]string{}
	for _, s := range l.recordsOf(run) {
		if s.Latest && s.Status == engine.StepCompleted {
			recorded[s.Name] = string(s.Output.Data)
		}
	}
	return recorded
}

// check holds the run's result against what is recorded, and against what the program is.
func (l *ledger) check(run *kagzi.Run, p program, got map[string]int, failures int) {
	recorded := l.recorded(run.ID())
	p.each(func(c *call) {
		if c.kind != "step" && c.kind != "retried" {
			return
		}
		value, saw := got[c.name]
		if !saw || recorded[c.name] != fmt.Sprint(value) || l.faults.recordOf(run.ID(), c.name) != recorded[c.name] {
			l.Errorf("step %s came to %d, is recorded as %q and was taken as %q", c.name, value, recorded[c.name],
				l.faults.recordOf(run.ID(), c.name))
		}
		if begun := l.begun[c.name]; begun < 1 || l.gentle && begun != 1+c.fails {
			l.Errorf("the code of step %s ran %d times, want %d", c.name, begun, 1+c.fails)
		}
	})
	d, err := run.Describe(l.ctx)
	if err != nil || d.Status != kagzi.StatusCompleted || d.Attempts > 1+failures+l.fails || l.gentle &&
		d.Attempts != 1+failures+l.fails {
		l.Errorf("the run is %v, %v, want it completed and at most %d failures counted", d, err, failures)
	}
	signals, _, err := l.env.Store().ListSignals(l.ctx, namespace, idOf(l.T, run.ID()), engine.Page{Limit: 1000})
	for _, s := range signals {
		if s.StepName != s.Name {
			l.Errorf("signal %s was taken by %q", s.Name, s.StepName)
		}
	}
	if err != nil {
		l.Error(err)
	}
}
