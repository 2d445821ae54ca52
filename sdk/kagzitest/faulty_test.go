package kagzitest_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

var (
	faulty = flag.Int("programs.faulty", 15,
		"how many random programs are tried among faults; at most 5 with -short")
	faultyTold = flag.Bool("programs.told", false, "with -v: tell of each of these what happened in it")
)

// eachFaultyProgram tries as many seeds as requested.
func eachFaultyProgram(t *testing.T, try func(a *among, r *rand.Rand)) {
	n := *faulty
	if testing.Short() {
		n = min(n, 5)
	}
	for seed := *firstProgram; seed < *firstProgram+uint64(n) && !t.Failed(); seed++ {
		f := &faults{seed: seed, calls: map[string]int{}, hits: map[string]int{}, recorded: map[string]string{},
			ended: map[engine.ID]engine.Token{}}
		kagzitest.RunAmongFaults(t, heartbeat, lease, func(s engine.Store) engine.Store {
			f.Store = s
			return f
		}, func(t *testing.T, env *kagzitest.Env) {
			a := &among{T: t, env: env, faults: f}
			f.t = t
			defer func() {
				if t.Failed() || *faultyTold {
					t.Logf(
						"seed %d: %s events %v; again: go test ./sdk/kagzitest -run '%s' -args -programs.faulty=1 -programs.from=%[1]d", seed, f, a.events, t.Name())
				}
			}()
			try(a, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

// shorten limits what a program waits for.
func (p program) shorten() {
	p.each(func(c *call) {
		c.takes, c.sent = min(c.takes, longest), min(c.sent, 2*longest)
		if c.kind == "step" {
			c.takes = min(c.takes, 20*time.Second)
		}
		for i := range c.children {
			c.children[i] = min(c.children[i], longest)
		}
	})
}

// crowd makes children wait for each other's slots.
func (p program) crowd(r *rand.Rand) {
	limit := r.IntN(4)
	p.each(func(c *call) {
		if limit > 0 && r.IntN(2) == 0 {
			c.options.ConcurrencyKey, c.options.ConcurrencyLimit = "crowd", limit
		}
	})
}

// counts returns how many children a program starts, and how often its steps fail.
func (p program) counts() (children, failures int) {
	p.each(func(c *call) {
		switch c.kind {
		case "child":
			children++
		case "children":
			children += len(c.children)
		case "retried":
			failures += c.fails
		}
	})
	return children, failures
}

// replayed replays the current record of the run with its code, if it can be read.
func replayed[Out any](a *among, when string, look func(kagzi.Context, int) (Out, error)) {
	a.mu.Lock()
	run := a.run
	a.mu.Unlock()
	if run == nil {
		return
	}
	record, err := record(a.T, run)
	if err != nil {
		return
	}
	if err := kagzi.Replay(record, look, kagzi.ReplayOptions{}); err != nil {
		a.Errorf("a replay %s: %v", when, err)
	}
}

// The same programs as of TestARandomProgramTakesAsLong…, with shorter waits, on a server whose
// calls fail, are carried out and told to have failed, or come late, while connections are cut and
// fall silent, workers are killed, drained and taken off, leases end, and the run is paused: what
// that costs is time, and code that runs again. Many of them, and how a program is tried again:
//
//	go test ./sdk/kagzitest -run RandomProgramAmongFaults -args -programs.faulty=400
//	go test ./sdk/kagzitest -run RandomProgramAmongFaults -v \
//		-args -programs.faulty=1 -programs.from=258 -programs.told
func TestARandomProgramAmongFaultsComesToWhatItsCallsCameTo(t *testing.T) {
	eachFaultyProgram(t, func(a *among, r *rand.Rand) {
		p := (&author{Rand: r, prefix: "call-"}).program(2)
		p.shorten()
		want := p.end(0)
		a.prepare(newPlan(r, want))
		defer a.close()
		p.crowd(r)
		l := newOracle(a, p)
		var endings atomic.Int64
		code := func(ctx kagzi.Context, _ int) (map[string]int, error) {
			s := l.activation(ctx)
			err := p.run(ctx, s)
			if err == nil && endings.Add(1) <= int64(a.fails) {
				err = errors.New("again as a whole")
			}
			return s.values(), err
		}
		look := func(ctx kagzi.Context, _ int) (map[string]int, error) {
			s := &viewer{seen: map[string]int{}}
			err := p.run(ctx, s)
			return s.seen, err
		}
		a.open(func(w *kagzi.Worker) {
			kagzi.Handle(w, "nap", nap)
			kagzi.Handle(w, "program", code)
		})
		for _, at := range []time.Duration{want / 3, want * 3 / 4} {
			a.after(at, func() { replayed(a, "at "+at.String(), look) })
		}
		run := a.start(p)
		got, took, err := result[map[string]int](a, run, a.heal+want+rest)
		if err != nil || took < want || a.gentle && took > want+2*late {
			a.Errorf("it took %s and came to %v, want %s at least and no error; gently met: %v", took, err,
				want, a.gentle)
		}
		a.calmDown()
		children, failures := p.counts()
		if n := a.leftBehind(run); n != children {
			a.Errorf("it has %d children, want %d", n, children)
		}
		replayed(a, "at the end", look)
		l.check(run, p, got, failures)
		a.hasAllSlots()
		if *faultyTold {
			a.Logf("it took %s, want %s at least, gentle: %v", took, want, a.gentle)
		}
		if a.Failed() {
			a.Logf("the program, which takes %s:\n%s", want, p)
		}
	})
}

// Like TestARandomProgramThatIsCancelled…, with faults: they keep no run from its cleanup, and no
// cleanup from its end.
func TestARandomProgramAmongFaultsThatIsCancelledCleansUpInFull(t *testing.T) {
	eachFaultyProgram(t, func(a *among, r *rand.Rand) {
		p := (&author{Rand: r, prefix: "call-"}).program(2)
		undo := (&author{Rand: r, prefix: "undo-"}).program(1)
		p.shorten()
		undo.shorten()
		p.crowd(r)
		undo.crowd(r)
		p.each(func(c *call) {
			if c.kind == "signal" && r.IntN(3) == 0 {
				c.limit = time.Second + time.Duration(r.IntN(60))*time.Second
			}
		})
		calls := 0
		undo.each(func(c *call) {
			c.limit = time.Minute
			calls++
		})
		want := p.end(0)
		a.prepare(newPlan(r, want))
		defer a.close()
		l := newOracle(a, p, undo)
		began, done := make(chan struct{}), false
		var first sync.Once
		codeOf := func(witnessOf func(kagzi.Context) witness, done func(error)) func(kagzi.Context, int) (int, error) {
			return func(ctx kagzi.Context, _ int) (int, error) {
				w := witnessOf(ctx)
				err := p.run(ctx, w)
				if errors.Is(err, kagzi.ErrCancelled) || ctx.Err() != nil {
					done(undo.run(kagzi.Cleanup(ctx), w))
					return 2, err
				}
				return 1, err
			}
		}
		code := codeOf(func(ctx kagzi.Context) witness {
			first.Do(func() { close(began) })
			return l.activation(ctx)
		}, func(err error) {
			if err != nil {
				a.Errorf("the clean-up came to %v", err)
			}
			done = true
		})
		look := codeOf(func(kagzi.Context) witness { return &viewer{seen: map[string]int{}} }, func(error) {})
		a.open(func(w *kagzi.Worker) {
			kagzi.Handle(w, "nap", nap)
			kagzi.Handle(w, "program", code)
		})
		run := a.start(p)
		cancelAt := time.Duration(r.Int64N(int64(want + time.Second)))
		a.after(cancelAt, func() {
			select {
			case <-began: // else there is nothing to clean up
				// refused if it has ended
				_ = a.insist(func() error { return run.CancelGracefully(a.ctx, 24*time.Hour, "") })
			case <-a.eventful.Done():
			}
		})
		for _, at := range []time.Duration{cancelAt / 2, cancelAt + time.Second, cancelAt + 30*time.Second} {
			a.after(at, func() { replayed(a, "at "+at.String(), look) })
		}
		_, took, err := result[int](a, run, a.heal+want+time.Duration(calls)*2*time.Minute+rest)
		a.calmDown()
		a.leftBehind(run)
		replayed(a, "at the end", look)
		cleaned := err != nil && a.output(run) != "1" // else the code ended before it was told
		if cleaned && !done {
			a.Errorf("cancelled at %s it took %s and came to %v, cleaned up: %v", cancelAt, took, err, done)
		}
		undo.each(func(c *call) {
			if recorded := l.recorded(run.ID())[c.name]; cleaned && c.kind == "step" &&
				(recorded == "" || l.faults.recordOf(run.ID(), c.name) != recorded) {
				a.Errorf("step %s of the clean-up is recorded as %q, and was taken as %q", c.name, recorded,
					l.faults.recordOf(run.ID(), c.name))
			}
		})
		a.hasAllSlots()
		if a.Failed() {
			a.Logf("the program, which takes %s, and is cancelled at %s:\n%s\n%s", want, cancelAt, p, undo)
		}
	})
}
