package kagzitest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// way is what the code of a script saw and did in one activation or replay.
type way struct {
	*stage
	hand    *hand // the worker
	run     string
	live    bool
	records map[string]bool // names of the records that a replay has; nil in an activation

	mu     sync.Mutex
	logs   map[string][]string // by branch, in the order of the code
	vars   map[string]int
	uses   map[string]int  // of names
	seeds  map[string]bool // branches that have drawn a random number
	made   map[string]int  // names of calls that the code has made, with their places in the script
	drew   bool            // it drew a value that is not recorded, so it may go another way from here
	output string
	ended  bool
}

// actor is a line of code: the workflow function, a branch or a goroutine.
type actor struct {
	*way
	ctx    kagzi.Context
	path   string // as the SDK names the branch
	label  string // of its log
	forks  *int
	clean  bool // it cleans up
	beside map[string]*kagzi.Future[int]
	sends  map[string]chan error
}

// Script code ends with these, or with errors of the SDK.
var errFailed = errors.New("the script failed")

func (a *actor) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.drew {
		a.logs[a.label] = append(a.logs[a.label], fmt.Sprintf(format, args...))
	}
}

// named returns the name of a call's record, which the code is about to make. own is that of a
// recorded value.
func (a *actor) named(name string, own bool, place int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own && a.path != "" {
		name += "/" + a.path
	}
	a.uses[name]++
	if n := a.uses[name]; n > 1 {
		name = fmt.Sprintf("%s:%d", name, n)
	}
	a.made[name] = place
	if own && a.records != nil && !a.records[name] {
		a.drew = true
	}
	return name
}

// seeded reports whether the branch draws its first random number.
func (a *actor) seeded(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.seeds[path]
	a.seeds[path] = true
	return first
}

// line returns another line of code below this one.
func (a *actor) line(ctx kagzi.Context, path, label string) *actor {
	return &actor{way: a.way, ctx: ctx, path: path, label: label, forks: new(int), clean: a.clean,
		beside: map[string]*kagzi.Future[int]{}, sends: map[string]chan error{}}
}

// fork runs f in a branch.
func (a *actor) fork(f func(*actor) error) *kagzi.Future[int] {
	path := a.branch()
	return kagzi.Go(a.ctx, func(ctx kagzi.Context) (int, error) { return 0, f(a.line(ctx, path, path)) })
}

// branch returns the path of the next branch of this line.
func (a *actor) branch() string {
	*a.forks++
	return strings.TrimPrefix(fmt.Sprintf("%s.%d", a.path, *a.forks), ".")
}

// does runs statements.
func (a *actor) does(s script) error {
	for _, t := range s {
		if err := a.do(t); err != nil {
			return err
		}
	}
	return nil
}

func (a *actor) do(t stmt) error {
	switch t.kind {
	case aStep, aSleep, aUntil, aWait, aChild, aBoom:
		value, err := a.call(t)
		return a.came(t.name, value, err)
	case aFork:
		a.beside[t.name] = a.fork(func(a *actor) error { return a.does(t.does[0]) })
	case aJoin:
		_, err := a.beside[t.name].Wait(a.ctx)
		a.say("join %s: %s", t.name, said(err))
		return a.cancelled()
	case aFirst:
		return a.first(t)
	case aSet:
		if !a.clean {
			a.mu.Lock()
			a.vars[t.name] = t.n
			a.mu.Unlock()
		}
	case ifVar:
		a.mu.Lock()
		value := a.vars[t.name]
		a.mu.Unlock()
		return a.choose(t, "var "+t.name, !a.clean && value > 0)
	case ifPatch:
		a.named("kagzi:patched:"+t.name, true, 0)
		return a.choose(t, "patched "+t.name, kagzi.Patched(a.ctx, t.name))
	case ifRandom:
		if a.seeded(a.path) {
			a.named("kagzi:seed", true, 0)
		}
		return a.choose(t, "random", kagzi.Random(a.ctx).IntN(2) == 1)
	case aNow:
		a.named("kagzi:now", true, 0)
		a.say("now %s", kagzi.Now(a.ctx).Format(time.StampMicro))
	case aLoop:
		for range t.n {
			if err := a.does(t.does[0]); err != nil {
				return err
			}
		}
	case aTry:
		err := a.does(t.does[0])
		if err == nil || errors.Is(err, kagzi.ErrCancelled) {
			return err
		}
		a.say("failed: %s", said(err))
		return a.does(t.does[1])
	case aClean:
		err := a.does(t.does[0])
		if !errors.Is(err, kagzi.ErrCancelled) {
			return err
		}
		a.say("cancelled")
		undo := *a
		undo.ctx, undo.clean = kagzi.Cleanup(a.ctx), true
		return errors.Join(err, undo.does(t.does[1]))
	case aRoutine:
		ended := make(chan error, 1)
		a.sends[t.name] = ended
		line := a.line(a.ctx, a.path, a.label+"~"+t.name)
		go func() { ended <- line.does(t.does[0]) }()
	case aReceive:
		select {
		case err := <-a.sends[t.name]:
			a.say("receive %s: %s", t.name, said(err))
		case <-kagzi.Cleanup(a.ctx).Done():
			runtime.Goexit() // the activation is over
		}
		return a.cancelled()
	}
	return nil
}

func (a *actor) choose(t stmt, what string, yes bool) error {
	a.say("%s: %t", what, yes)
	if yes {
		return a.does(t.does[0])
	}
	return a.does(t.does[1])
}

func (a *actor) cancelled() error {
	if a.ctx.Err() != nil {
		return kagzi.ErrCancelled
	}
	return nil
}

// call makes a call and returns its result.
func (a *actor) call(t stmt) (value int, err error) {
	name := a.named(t.name, false, t.place)
	ctx := a.ctx
	switch t.kind {
	case aStep, aBoom:
		return kagzi.Step(ctx, t.name, func(ctx context.Context) (int, error) { return a.step(ctx, t, name) },
			kagzi.Retry{Attempts: finally, Initial: time.Second, Coefficient: 1, Jitter: -1})
	case aSleep:
		kagzi.Sleep(ctx, t.name, time.Duration(t.n)*time.Second)
		return 0, a.cancelled()
	case aUntil:
		kagzi.SleepUntil(ctx, t.name, a.began.Add(time.Duration(t.n)*time.Second))
		return 0, a.cancelled()
	case aWait:
		value, err = kagzi.WaitSignal[int](ctx, t.name, time.Duration(t.n)*time.Second)
		if errors.Is(err, kagzi.ErrTimeout) {
			return -1, nil
		}
		return value, err
	}
	child := "nap"
	if t.other {
		child = "doze"
	}
	return kagzi.RunChild[int](ctx, t.name, child, time.Duration(t.n)*time.Second, kagzi.ChildOptions{})
}

// came notes the result of a call.
func (a *actor) came(name string, value int, err error) error {
	a.say("%s: %d %s", name, value, said(err))
	return err
}

// said shortens an error: texts name runs, which a retry has other ones of.
func said(err error) string {
	var step *kagzi.StepError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, kagzi.ErrCancelled):
		return "cancelled"
	case errors.As(err, &step):
		return step.Step + " failed"
	}
	return err.Error()
}

// step is the code of a step.
func (a *actor) step(ctx context.Context, t stmt, name string) (int, error) {
	value := a.executes(a.way, name, t)
	if takes := time.Duration(value%4) * 150 * time.Millisecond; takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	fails := t.n
	if t.kind == aBoom {
		fails = a.boom()
	}
	if kagzi.Attempt(ctx) <= fails {
		return 0, errFailed
	}
	return value, nil
}

// first waits for the first of calls and branches.
func (a *actor) first(t stmt) error {
	waits := make([]kagzi.Awaitable, len(t.of))
	results := make([]func() (int, error), len(t.of))
	for i, m := range t.of {
		if m.kind == aFork {
			f := a.beside[m.name]
			waits[i], results[i] = f, func() (int, error) {
				_, err := f.Wait(a.ctx)
				if !errors.Is(err, kagzi.ErrCancelled) {
					err = nil // the branch's own matter, like that of join
				}
				return 0, err
			}
			continue
		}
		if m.kind == aChild {
			a.named(m.name, false, m.place)
			child, err := kagzi.StartChild[int](a.ctx, m.name, "nap", time.Duration(m.n)*time.Second,
				kagzi.ChildOptions{})
			if err != nil {
				return a.came(m.name, 0, err)
			}
			waits[i], results[i] = child, func() (int, error) { return child.Wait(a.ctx) }
			continue
		}
		path := a.branch()
		f := kagzi.Go(a.ctx, func(ctx kagzi.Context) (int, error) { return a.line(ctx, path, path).call(m) })
		waits[i], results[i] = f, func() (int, error) { return f.Wait(a.ctx) }
	}
	for _, m := range t.of {
		if m.kind == aChild {
			a.branch() // First waits for it in a branch
		}
	}
	i := kagzi.First(a.ctx, waits...)
	value, err := results[i]()
	a.say("first of %d: %d", len(waits), i)
	if err := a.came(t.of[i].name, value, err); err != nil {
		return err
	}
	return a.does(t.does[i])
}

// act is the workflow function of a script.
func (s script) act(ctx kagzi.Context, w *way, again int) (string, error) {
	a := &actor{way: w, ctx: ctx, forks: new(int), beside: map[string]*kagzi.Future[int]{},
		sends: map[string]chan error{}}
	err := a.does(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if err != nil {
		w.output = said(err)
		return "", err
	}
	if again == 0 && len(s) > 0 && s[len(s)-1].kind == anAgain {
		return kagzi.ContinueAsNew[string](ctx, again+1)
	}
	w.output = strings.Join(w.logs[""], "\n")
	return w.output, nil
}

// seen returns copies of the logs: goroutines of the script may still go on.
func (w *way) seen() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.logs)
}
