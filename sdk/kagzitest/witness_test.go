package kagzitest_test

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// activation is one activation of the program's run on a worker.
type activation struct {
	*oracle
	run  string
	mu   sync.Mutex
	seen map[string]outcome
}

// outcome is what a call returned.
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

// oracle is what is known of a program's calls over all activations.
type oracle struct {
	*among
	before map[string][]string // by call: the calls before it
	steps  map[string]bool     // names of steps

	mu     sync.Mutex
	number int
	begun  map[string]int     // how often the code of a step has started
	final  map[string]outcome // final outcomes of calls
}

// newOracle returns the oracle of a program, or of several in sequence.
func newOracle(a *among, programs ...program) *oracle {
	l := &oracle{among: a, before: map[string][]string{}, steps: map[string]bool{}, begun: map[string]int{},
		final: map[string]outcome{}}
	var before []string
	for _, p := range programs {
		before = l.order(p, before)
	}
	return l
}

// order notes for each call of a program which calls come before it, and returns those before what
// follows.
func (l *oracle) order(p program, before []string) []string {
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

func (l *oracle) activation(ctx kagzi.Context) *activation {
	return &activation{oracle: l, run: kagzi.Info(ctx).RunID, seen: map[string]outcome{}}
}

// values returns the results of calls without errors.
func (s *activation) values() map[string]int {
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

// saw notes the outcome of a call. A result from the server is final. One made by this worker, a
// step's result or a cancellation, is final when it is recorded, and never if the lease is lost.
func (s *activation) saw(name string, value int, err error) {
	o := outcome{value, err}
	s.mu.Lock()
	s.seen[name] = o
	s.mu.Unlock()
	if err != nil || s.steps[name] {
		return
	}
	s.oracle.mu.Lock()
	defer s.oracle.mu.Unlock()
	final, is := s.final[name]
	if is && final.err == nil && final.value != value {
		s.Errorf("%s came to %s for good, and later to %s", name, final, o)
	}
	if !is {
		s.final[name] = o
	}
}

// begins is called by a step's code: what it depends on must be recorded by then. Each call returns
// another result.
func (s *activation) begins(name string) int {
	recorded := s.recorded(s.run)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oracle.mu.Lock()
	defer s.oracle.mu.Unlock()
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

// recorded returns the results of a run's steps by name.
func (l *oracle) recorded(run string) map[string]string {
	recorded := map[string]string{}
	for _, s := range l.recordsOf(run) {
		if s.Latest && s.Status == engine.StepCompleted {
			recorded[s.Name] = string(s.Output.Data)
		}
	}
	return recorded
}

// check compares the run's result with the record and with the program.
func (l *oracle) check(run *kagzi.Run, p program, got map[string]int, failures int) {
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
	if err != nil || d.Status != kagzi.StatusCompleted || d.Attempts > 1+l.fails || d.StepRetries > failures ||
		l.gentle && (d.Attempts != 1+l.fails || d.StepRetries != failures) {
		l.Errorf("the run is %v, %v, want it completed at attempt %d at most with %d retries of steps at most", d, err,
			1+l.fails, failures)
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
