package kagzitest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

var (
	programs     = flag.Int("programs", 15, "how many random programs are tried; at most 5 with -short")
	firstProgram = flag.Uint64("programs.from", 1, "the seed of the first of them")
)

// call is one call of a random program.
type call struct {
	kind     string // step, sleep, signal, child, children, retried or branches
	name     string
	takes    time.Duration // of a step, a sleep or a child; of retried calls, between attempts
	sent     time.Duration // time of the signal after the start
	limit    time.Duration // limit of the wait; 0 for none
	fails    int           // failing attempts of a retried call
	children []time.Duration
	branches []program
	options  kagzi.ChildOptions // of child and children
}

// program is what a workflow does: sequential calls, some of them with branches.
type program []*call

func (p program) String() string {
	var b strings.Builder
	p.write(&b, "")
	return b.String()
}

func (p program) write(b *strings.Builder, indent string) {
	for _, c := range p {
		fmt.Fprintf(b, "%s%s %s: takes %s, sent at %s, limit %s, fails %d times, children %v\n", indent, c.kind, c.name,
			c.takes, c.sent, c.limit, c.fails, c.children)
		for i, branch := range c.branches {
			fmt.Fprintf(b, "%sbranch %d\n", indent, i+1)
			branch.write(b, indent+"    ")
		}
	}
}

// each calls f for every call of the program.
func (p program) each(f func(*call)) {
	for _, c := range p {
		f(c)
		for _, branch := range c.branches {
			branch.each(f)
		}
	}
}

// end returns when the program ends if it starts at a time.
func (p program) end(at time.Duration) time.Duration {
	for _, c := range p {
		switch c.kind {
		case "step", "sleep", "child":
			at += c.takes
		case "signal":
			at = max(at, c.sent)
		case "children":
			longest := time.Duration(0)
			for _, takes := range c.children {
				longest = max(longest, takes)
			}
			at += longest
		case "retried":
			at += time.Duration(c.fails) * c.takes
		case "branches":
			last := at
			for _, branch := range c.branches {
				last = max(last, branch.end(at))
			}
			at = last
		}
	}
	return at
}

// author makes programs.
type author struct {
	*rand.Rand
	prefix string
	calls  int
}

func (a *author) duration() time.Duration {
	switch a.IntN(6) {
	case 0:
		return 0
	case 1, 2, 3: // as long as a branch waits beside a busy one before it asks the server
		return time.Duration(a.IntN(2000)) * time.Millisecond
	case 4:
		return time.Duration(a.IntN(20)) * time.Second
	}
	return time.Duration(a.IntN(600)) * time.Minute
}

// program returns one whose branches are nested at most depth deep.
func (a *author) program(depth int) (p program) {
	for range 1 + a.IntN(4) {
		a.calls++
		c := &call{name: fmt.Sprintf("%s%d", a.prefix, a.calls)}
		switch kind := a.IntN(10); {
		case kind < 2 || kind >= 7 && depth == 0:
			c.kind, c.takes = "step", min(a.duration(), 20*time.Second)
		case kind == 2:
			c.kind, c.takes = "sleep", a.duration()
		case kind == 3:
			c.kind, c.sent = "signal", 2*a.duration()
		case kind == 4:
			c.kind, c.takes = "child", a.duration()
		case kind == 5:
			c.kind = "children"
			for range 1 + a.IntN(3) {
				c.children = append(c.children, a.duration())
			}
		case kind == 6:
			c.kind, c.fails, c.takes = "retried", 1+a.IntN(2), max(a.duration(), time.Millisecond)
		default:
			c.kind = "branches"
			for range 2 + a.IntN(2) {
				c.branches = append(c.branches, a.program(depth-1))
			}
		}
		p = append(p, c)
	}
	return p
}

// witness sees what a program's code does.
type witness interface {
	saw(name string, value int, err error) // the outcome of a call
	begins(name string) (result int)       // called by a step's own code; returns its result
}

// run is the program as workflow code.
func (p program) run(ctx kagzi.Context, w witness) error {
	for _, c := range p {
		if err := c.make(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) make(ctx kagzi.Context, w witness) error {
	var value int
	var err error
	switch c.kind {
	case "step":
		value, err = kagzi.Step(ctx, c.name, func(context.Context) (int, error) {
			result := w.begins(c.name)
			time.Sleep(c.takes)
			return result, nil
		})
	case "sleep":
		kagzi.Sleep(ctx, c.name, c.takes)
	case "signal":
		if value, err = kagzi.WaitSignal[int](ctx, c.name, c.limit); errors.Is(err, kagzi.ErrTimeout) {
			w.saw(c.name, value, err)
			return nil
		}
	case "child":
		value, err = kagzi.RunChild[int](ctx, c.name, "nap", c.takes, c.options)
	case "children":
		var children []*kagzi.Child[int]
		for i, takes := range c.children {
			name := fmt.Sprintf("%s-%d", c.name, i+1)
			child, err := kagzi.StartChild[int](ctx, name, "nap", takes, c.options)
			if w.saw(name, 0, err); err != nil {
				return err
			}
			children = append(children, child)
		}
		var values []int
		values, err = kagzi.WaitAll(ctx, children...)
		value = len(values)
	case "retried":
		value, err = kagzi.Step(ctx, c.name, func(ctx context.Context) (int, error) {
			result := w.begins(c.name)
			if kagzi.Attempt(ctx) <= c.fails {
				return 0, errors.New("again")
			}
			return result, nil
		}, kagzi.Retry{Attempts: 5, Initial: c.takes, Max: 24 * time.Hour, Coefficient: 1, Jitter: -1})
	case "branches":
		var futures []*kagzi.Future[int]
		for _, branch := range c.branches {
			futures = append(futures, kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
				return 0, branch.run(ctx, w)
			}))
		}
		for _, f := range futures {
			if _, failed := f.Wait(ctx); err == nil {
				err = failed
			}
		}
		return err
	}
	w.saw(c.name, value, err)
	return err
}

// outcomes compares what calls return in all activations of a run.
type outcomes struct {
	*testing.T
	mu   sync.Mutex
	seen map[string]string
}

func (o *outcomes) saw(name string, value int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := fmt.Sprintf("%d, %v", value, err)
	if step := (*kagzi.StepError)(nil); errors.As(err, &step) {
		text = fmt.Sprintf("%d, %+v", value, *step)
	}
	if before, again := o.seen[name]; again && before != text {
		o.Errorf("%s came to %s, and later to %s", name, before, text)
	}
	o.seen[name] = text
}

func (o *outcomes) begins(string) int { return 7 }

// unseen is the witness of a replay.
type unseen struct{}

func (unseen) saw(string, int, error) {}
func (unseen) begins(string) int      { return 0 }

// nap is the children's workflow.
func nap(ctx kagzi.Context, d time.Duration) (int, error) {
	kagzi.Sleep(ctx, "nap", d)
	return 1, nil
}

// perform starts the program's workflow, sends its signals, and replays it at some times with code
// that only looks. It returns how long the run took.
func (p program) perform(t *testing.T, env *kagzitest.Env, code, look func(kagzi.Context, int) (int, error),
	cancelAt time.Duration, moments ...time.Duration) (time.Duration, error) {
	kagzi.Handle(env.Worker, "nap", nap)
	kagzi.Handle(env.Worker, "program", code)
	env.Start()
	began := time.Now()
	run, err := kagzi.Start(t.Context(), env.Client, "program", 0, kagzi.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var timers []*time.Timer
	at := func(moment time.Duration, f func()) { timers = append(timers, time.AfterFunc(moment, f)) }
	p.each(func(c *call) {
		if c.kind == "signal" {
			// refused if the run has ended
			at(c.sent, func() { _ = kagzi.Signal(context.Background(), run, c.name, 1, kagzi.SignalOptions{}) })
		}
	})
	if cancelAt >= 0 {
		at(cancelAt, func() { _ = run.CancelGracefully(context.Background(), 24*time.Hour, "") }) // likewise
	}
	replay := func(when string) {
		if err := kagzi.Replay(exported(t, env, run), look, kagzi.ReplayOptions{}); err != nil {
			t.Errorf("a replay %s: %v", when, err)
		}
	}
	for _, moment := range moments {
		at(moment, func() { replay("at " + moment.String()) })
	}
	_, err = kagzi.Result[int](t.Context(), run)
	took := time.Since(began)
	for _, timer := range timers {
		timer.Stop()
	}
	replay("at the end")
	return took, err
}

// eachProgram tries as many seeds as requested.
func eachProgram(t *testing.T, try func(t *testing.T, env *kagzitest.Env, r *rand.Rand)) {
	n := *programs
	if testing.Short() {
		n = min(n, 5)
	}
	for seed := *firstProgram; seed < *firstProgram+uint64(n) && !t.Failed(); seed++ {
		kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d; again: go test ./sdk/kagzitest -run '%s' -args -programs=1 -programs.from=%[1]d",
						seed, t.Name())
				}
			}()
			try(t, env, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

// late limits how much longer a program may take than its calls: beside a busy branch, others ask
// for what they wait for only from time to time.
const late = time.Minute

func TestARandomProgramTakesAsLongAsItsCallsAndIsReplayedAsItWent(t *testing.T) {
	eachProgram(t, func(t *testing.T, env *kagzitest.Env, r *rand.Rand) {
		p := (&author{Rand: r, prefix: "call-"}).program(2)
		want := p.end(0)
		all := outcomes{T: t, seen: map[string]string{}}
		code := func(ctx kagzi.Context, _ int) (int, error) { return 1, p.run(ctx, &all) }
		look := func(ctx kagzi.Context, _ int) (int, error) { return 1, p.run(ctx, unseen{}) }
		took, err := p.perform(t, env, code, look, -1, want/7, want/3, want/2)
		if err != nil || took < want || took > want+late {
			t.Errorf("it took %s and came to %v, want %s and no error\n%s", took, err, want, p)
		}
	})
}

func TestARandomProgramThatIsCancelledCleansUpInFull(t *testing.T) {
	eachProgram(t, func(t *testing.T, env *kagzitest.Env, r *rand.Rand) {
		p := (&author{Rand: r, prefix: "call-"}).program(2)
		undo := (&author{Rand: r, prefix: "undo-"}).program(1)
		p.each(func(c *call) {
			if c.kind == "signal" && r.IntN(3) == 0 {
				c.limit = time.Second + time.Duration(r.IntN(600))*time.Second
			}
		})
		calls := 0
		undo.each(func(c *call) {
			c.takes, c.limit = min(c.takes, time.Minute), time.Minute
			for i := range c.children {
				c.children[i] = min(c.children[i], time.Minute)
			}
			calls++
		})
		cancelAt := time.Millisecond + time.Duration(r.Int64N(int64(p.end(0))+1)) // after its code has started
		all := outcomes{T: t, seen: map[string]string{}}
		done := false
		codeOf := func(w witness, done func(error)) func(kagzi.Context, int) (int, error) {
			return func(ctx kagzi.Context, _ int) (int, error) {
				err := p.run(ctx, w)
				if errors.Is(err, kagzi.ErrCancelled) || ctx.Err() != nil {
					done(undo.run(kagzi.Cleanup(ctx), w))
				}
				return 1, err
			}
		}
		code := codeOf(&all, func(err error) {
			if err != nil {
				t.Errorf("the clean-up came to %v", err)
			}
			done = true
		})
		took, err := p.perform(t, env, code, codeOf(unseen{}, func(error) {}), cancelAt, cancelAt/2,
			cancelAt+time.Second, cancelAt+30*time.Second)
		if err != nil && !done || took > cancelAt+time.Duration(calls)*2*time.Minute+late {
			t.Errorf("cancelled at %s it took %s and came to %v, cleaned up: %v\n%s\n%s", cancelAt, took, err,
				done, p, undo)
		}
	})
}
