package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
)

// programLimit limits one random program with all that is done to it.
const programLimit = 5 * time.Minute

// writers are workers of the Go SDK in this process. They write scripts.
type writers struct {
	free chan *lane
	all  []*lane
}

func newWriters(ctx context.Context, stores Stores, n int) (*writers, error) {
	w := &writers{free: make(chan *lane, n)}
	for range n {
		l, err := newLane(stores, "the Go SDK", nil, false, programLease)
		if err == nil {
			w.all = append(w.all, l)
			err = l.begin(ctx, nil)
		}
		if err != nil {
			w.close()
			return nil, err
		}
		w.free <- l
	}
	return w, nil
}

func (w *writers) close() {
	for _, l := range w.all {
		l.close()
	}
}

// script writes the script of a program.
func (w *writers) script(ctx context.Context, t test, m *mode) (*script, error) {
	l := <-w.free
	defer func() { w.free <- l }()
	cancelAt := -1
	if m.cancel {
		cancelAt = rand.New(rand.NewPCG(t.Seed, 0x63616e63656c)).IntN(8)
	}
	return l.write(ctx, t, cancelAt)
}

// trial runs one program under a mode on a subject and compares. It returns the script and what is wrong:
// an ownError if the suite itself failed.
func (w *writers) trial(ctx context.Context, l *lane, t test, m *mode) (*script, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, programLimit, errors.New("the time for a program is over"))
	defer cancel()
	if err := l.alive(ctx); err != nil {
		return nil, err
	}
	sc, err := w.script(ctx, t, m)
	if err != nil {
		return nil, &ownError{fmt.Errorf("the Go SDK: %w", err)}
	}
	return sc, l.compare(ctx, t, sc, m)
}

// compare runs a program by its script, and once more as it may fall.
func (l *lane) compare(ctx context.Context, t test, sc *script, m *mode) error {
	rnd := rand.New(rand.NewPCG(t.Seed, 0x6661756c74))
	if m.tamper != nil && l.proxy != nil {
		l.proxy.set(m.tamper(l, rnd))
		defer l.proxy.set(tamper{})
	}
	var disturb func(context.Context, *family, int) error
	if m.at != nil {
		disturb = m.at(rnd, l, len(sc.events))
	}
	got, err := l.follow(ctx, t, sc, !m.interrupts, disturb)
	if err != nil {
		return err
	}
	want := sc.records
	if m.interrupts {
		want = withoutAttempts(want)
	}
	if d := difference(got, want); d != "" {
		return errors.New(d)
	}
	if m.cancel {
		return nil
	}
	if m.tamper != nil && l.proxy != nil {
		l.proxy.set(m.tamper(l, rnd))
	}
	return l.free(ctx, t, sc)
}

// ownError is a failure of the suite or of the Go SDK.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

func withoutAttempts(list []Record) []Record {
	all := make([]Record, len(list))
	for i, r := range list {
		r.Rows = append([]Row(nil), r.Rows...)
		for j := range r.Rows {
			r.Rows[j].Attempt = 0
		}
		all[i] = r
	}
	return all
}

// randomOptions say which random programs are run.
type randomOptions struct {
	stores   Stores
	command  []string
	from, n  uint64
	modes    []mode
	progress func(Finding)
}

// Each lane has at least so many programs, so that it pays to start its subject.
const programsPerLane = 3

// runRandom runs random programs: seed s under mode s modulo their number.
func runRandom(ctx context.Context, o randomOptions) error {
	if o.n == 0 {
		return nil
	}
	w, err := newWriters(ctx, o.stores, 4)
	if err != nil {
		return err
	}
	defer w.close()
	var parts []func() error
	for i := range o.modes {
		m, seeds := &o.modes[i], make(chan uint64)
		programs := int((o.n + uint64(len(o.modes)-1-i)) / uint64(len(o.modes))) //nolint:gosec // few
		lanes := min(m.lanes, (programs+programsPerLane-1)/programsPerLane)
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		parts = append(parts, func() error {
			defer close(seeds)
			for k := range programs {
				select {
				case seeds <- o.from + uint64(i) + uint64(k)*uint64(len(o.modes)): //nolint:gosec // small
				case <-running.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
		for range lanes {
			parts = append(parts, func() error {
				err := w.lane(running, o, m, seeds)
				if err != nil {
					cancel() // the other lanes of the mode end, too
					return fmt.Errorf("mode %q: %w", m.name, err)
				}
				return nil
			})
		}
	}
	return together(parts)
}

// lane runs programs of one mode.
func (w *writers) lane(ctx context.Context, o randomOptions, m *mode, seeds <-chan uint64) error {
	l, err := newLane(o.stores, m.name, o.command, m.pages, programLease)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.begin(ctx, nil); err != nil {
		return err
	}
	for seed := range seeds {
		if ctx.Err() != nil {
			return nil
		}
		t, began := generate(seed), time.Now()
		f := Finding{Section: "random", Case: m.name, Seed: t.Seed}
		if err := w.confirm(ctx, l, t, m); err != nil {
			t = w.shrink(ctx, l, t, m)
			f.Failure, f.Program, f.Signals = err.Error(), t.Program, t.Signals
		}
		f.Millis = time.Since(began).Milliseconds()
		o.progress(f)
	}
	return nil
}

// confirm runs a program, and once more if it fails: a failure that the second time does not show is one
// all the same, unless the suite itself failed, or wrote two scripts.
func (w *writers) confirm(ctx context.Context, l *lane, t test, m *mode) error {
	first, err := w.trial(ctx, l, t, m)
	if err == nil || ctx.Err() != nil {
		return err
	}
	second, again := w.trial(ctx, l, t, m)
	var own *ownError
	switch {
	case again != nil:
		return again
	case errors.As(err, &own), !reflect.DeepEqual(first, second): // the script was of a program that did not rest
		return nil
	}
	return fmt.Errorf("%w (not when it was repeated)", err)
}

// Limits of shrinking.
const (
	shrinkTries = 200
	shrinkLimit = 60 * time.Second
)

// shrink returns a smaller program that fails as well.
func (w *writers) shrink(ctx context.Context, l *lane, t test, m *mode) test {
	ctx, cancel := context.WithTimeout(ctx, shrinkLimit)
	defer cancel()
	for tries := 0; tries < shrinkTries && ctx.Err() == nil; {
		smaller := false
		for _, s := range t.smaller() {
			if tries++; tries > shrinkTries || ctx.Err() != nil {
				break
			}
			var own *ownError
			if _, err := w.trial(ctx, l, s, m); err != nil && !errors.As(err, &own) && ctx.Err() == nil {
				t, smaller = s, true
				break
			}
		}
		if !smaller {
			break
		}
	}
	return t
}

// smaller returns the programs that lack one op, or have the ops within it in its place.
func (t test) smaller() []test {
	var all []test
	for i, list := range t.Program.Lists() {
		for j := range *list {
			s := test{Seed: t.Seed, Program: t.Program.Clone()}
			ops := s.Program.Lists()[i]
			*ops = append((*ops)[:j:j], (*ops)[j+1:]...)
			if i > 0 && len(*ops) == 0 {
				continue
			}
			s.Signals = t.signalsOf(s.Program)
			all = append(all, s)
			if inner := (*list)[j]; inner.Op == "branches" || inner.Op == "first" || inner.Op == "pool" || inner.Op == "try" {
				all = append(all, t.hoisted(i, j))
			}
		}
	}
	return all
}

// hoisted returns the program in which the ops within an op stand in its place.
func (t test) hoisted(i, j int) test {
	s := test{Seed: t.Seed, Program: t.Program.Clone()}
	ops := s.Program.Lists()[i]
	o := (*ops)[j]
	inner := slices.Concat(slices.Concat(o.Bodies...), o.Ops)
	*ops = slices.Concat((*ops)[:j:j], inner, (*ops)[j+1:])
	s.Signals = t.signalsOf(s.Program)
	return s
}

// signalsOf returns the signals for which a program waits.
func (t test) signalsOf(p *program.Program) []sending {
	waits := map[string]bool{}
	program.Each(p.Ops, func(o *program.Op) { waits[o.Name] = waits[o.Name] || o.Op == "signal" })
	var all []sending
	for _, s := range t.Signals {
		if waits[s.Name] {
			all = append(all, s)
		}
	}
	return all
}

// Finding is the result of one case or random program.
type Finding struct {
	Section string           `json:"section"` // of PROTOCOL.md, or "random"
	Case    string           `json:"case"`
	Seed    uint64           `json:"seed,omitempty"`
	Failure string           `json:"failure,omitempty"` // empty: passed
	Skipped string           `json:"skipped,omitempty"` // why it was not tried
	Program *program.Program `json:"program,omitempty"`
	Signals []sending        `json:"signals,omitempty"`
	Millis  int64            `json:"ms"`
}

func (f Finding) name() string { return strings.TrimSpace(f.Section + " " + f.Case) }
