package kagzi

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strconv"
)

// branch is one line of execution of a run: the workflow function, or a function given to Go. All
// fields but the first three are guarded by e.mu.
//
// A branch is busy as long as it can go on by itself. It is not when every call of it that is under way
// waits for another branch or for a time to come. When no branch is busy the run is parked.
type branch struct {
	e         *execution
	parent    *branch
	ended     chan struct{}
	ordinal   int // among the branches of its parent, from 1
	startedAt int // the parent's clock then
	clock     int // counts the named calls, forks and joins
	forks     int

	joinedBy *branch         // the parent, once it has waited for this one
	joinedAt int             // the parent's clock then
	joins    map[*branch]int // the clocks of the others that have

	calls   int      // under way
	blocked int      // of these, how many cannot go on by themselves
	last    string   // its latest call that has a name
	behind  *branch  // the branch that it has waited for since, if any
	told    bool     // by a call, or by a branch that it has waited for, that the run is being cancelled
	untold  bool     // it has ended after its Context had, and no call had told it of that
	ends    []string // the latest calls of such branches that it has waited for
	loose   bool
	busy    bool
	done    bool
	waiters []*branch
	random  *rand.Rand
	uuids   *rand.ChaCha8
}

// Future is the result to come of a function that Go has started.
type Future[T any] struct {
	b     *branch
	value T
	err   error
}

// Go runs fn beside the calling code, as a branch of the run with a Context of its own, for
// cleaning up if ctx is one of Cleanup. Branches are how a run does several things at once: the SDK
// knows of them, and parks the run exactly when none can go on.
//
// Names of steps are unique over all branches that could run at the same time, so name a branch's steps after
// what it works on. What is still under way when the workflow function returns is dropped. A panic in fn fails the run.
func Go[T any](ctx Context, fn func(ctx Context) (T, error)) *Future[T] {
	f := &Future[T]{b: ctx.workflow().fork()}
	f.b.start(ctx.scope(), func(ctx Context) { f.value, f.err = fn(ctx) })
	return f
}

// Wait returns what the function returned, waiting for it as long as it takes; branches that all
// wait for one another fail the run. It may be called more than once. ctx is that of the caller.
// The cancellation of the run does not cut it short, for the function is told of it itself and may
// have something to clean up: its calls return ErrCancelled, and so does Wait if the function
// returns what they do.
func (f *Future[T]) Wait(ctx Context) (T, error) {
	f.b.join(ctx.workflow())
	return f.value, f.err
}

// Map calls fn for all items at once, each in a branch of its own, and waits for all of them. The results stand in the
// order of the items, with a zero value for one that failed; the error joins all errors, in that order.
func Map[In, Out any](ctx Context, items []In, fn func(ctx Context, item In) (Out, error)) ([]Out, error) {
	futures := make([]*Future[Out], len(items))
	for i, item := range items {
		futures[i] = Go(ctx, func(ctx Context) (Out, error) { return fn(ctx, item) })
	}
	outs := make([]Out, len(items))
	var errs []error
	for i, f := range futures {
		out, err := f.Wait(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		outs[i] = out
	}
	if len(errs) == 1 {
		return outs, errs[0]
	}
	return outs, errors.Join(errs...)
}

// enter is the first thing that each call of the SDK does: it ends the goroutine if the code has to end.
func (b *branch) enter() {
	b.e.lock()
	b.e.mu.Unlock()
}

// enterOutsideSteps is enter for a call that has no name, and that the code of a step must not make.
func (b *branch) enterOutsideSteps(what string) {
	b.e.lock()
	err := b.outsideSteps(what)
	b.e.mu.Unlock()
	if err != nil {
		b.e.failAndExit(NonRetryable(err))
	}
}

func (b *branch) fork() *branch {
	child, err := b.forkLocked()
	if err != nil {
		b.e.failAndExit(NonRetryable(err))
	}
	return child
}

func (b *branch) forkLocked() (*branch, error) {
	b.e.lock()
	defer b.e.mu.Unlock()
	if err := b.outsideSteps("a branch"); err != nil {
		return nil, err
	}
	b.clock++
	b.forks++
	child := &branch{e: b.e, parent: b, ended: make(chan struct{}), ordinal: b.forks, startedAt: b.clock, told: b.told}
	child.settle()
	return child, nil
}

func (b *branch) start(scope context.Context, body func(ctx Context)) {
	b.e.w.code.Add(1)
	go branchGoroutine(func() {
		defer b.e.w.code.Done()
		returned := false
		defer func() {
			var err error
			switch p := recover(); {
			case p != nil:
				err = b.e.panicked(p)
			case !returned:
				err = &coded{kind: "goexit", text: "a branch of the workflow ended its goroutine (runtime.Goexit)"}
			default:
				return
			}
			if b.e.replay != nil {
				b.e.replay.broke(b, err)
			}
			b.e.fail(errorDetail(err))
		}()
		body(&workflowContext{scope, b})
		b.finish()
		returned = true
	})
}

// finish wakes those who wait before it counts as done, so that the run never looks idle in between.
func (b *branch) finish() {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	for _, w := range b.waiters {
		w.blocked--
		w.settle()
	}
	b.waiters = nil
	b.done = true
	b.untold = b.e.ctx.Err() != nil && !b.told
	close(b.ended)
	b.settle()
}

func (b *branch) join(by *branch) {
	e := b.e
	by.enterOutsideSteps("a wait for a branch")
	e.lock()
	by.clock++
	if !b.done {
		own := onBranchGoroutine() // only of who has to wait: in a run of many branches that is one call of a hundred
		if !own {
			e.outsiders++
		}
		by.calls++
		by.blocked++
		b.waiters = append(b.waiters, by)
		by.settle()
		e.mu.Unlock()
		await(e, b.ended)
		e.lock()
		if !own {
			e.outsiders--
		}
		by.calls--
		by.settle()
	}
	by.told = by.told || b.told
	if b.joined(by) {
		by.noteJoin(b)
	}
	e.mu.Unlock()
}

// joined notes that another branch has waited for this one, which is over from then on for that
// one. The first time counts, and is true. Needs e.mu.
func (b *branch) joined(by *branch) bool {
	switch _, again := b.joins[by]; {
	case by == b.parent && b.joinedBy == nil:
		b.joinedBy, b.joinedAt = by, by.clock
	case by == b.parent, again:
		return false
	case b.joins == nil:
		b.joins = map[*branch]int{by: by.clock}
	default:
		b.joins[by] = by.clock
	}
	return true
}

// begin and end frame a call that may block.
func (b *branch) begin() {
	if b.e.replay != nil {
		b.halt() // what the call is about to ask of the server is not recorded
	}
	b.e.lock()
	defer b.e.mu.Unlock()
	b.calls++
	if b.calls > 1 {
		b.loose = true
	}
	b.settle()
}

func (b *branch) end() {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.calls--
	b.settle()
}

// settle counts the branch as busy or not. Needs e.mu.
func (b *branch) settle() {
	busy := !b.done && (b.calls == 0 || b.blocked < b.calls)
	if busy == b.busy {
		return
	}
	b.busy = busy
	b.e.generation++
	if busy {
		b.e.busy++
		return
	}
	b.e.busy--
	if b.e.busy == 0 {
		b.e.idle()
	}
}

// alone reports whether nothing else of the run is at work or holds a timer, so that a call of this branch
// may park the run in one message. own says that the call comes from the branch's own goroutine; one from elsewhere
// marks the branch as loose: other goroutines of the author may be about to call as well. Needs e.mu.
func (b *branch) alone(own bool) bool {
	if !own {
		b.loose = true
	}
	return b.e.busy == 1 && b.calls == 1 && !b.loose && len(b.e.parked) == 0
}

// path names the branch by the ordinals of its ancestors and itself: "" for the workflow function, "2.1" for
// the first branch of its second branch. It is the same in every replay.
func (b *branch) path() string {
	if b.parent == nil {
		return ""
	}
	own := strconv.Itoa(b.ordinal)
	if above := b.parent.path(); above != "" {
		return above + "." + own
	}
	return own
}

// branchGoroutine is at the root of every goroutine that the SDK starts for workflow code.
//
//go:noinline
func branchGoroutine(f func()) { f() }

var branchEntry = reflect.ValueOf(branchGoroutine).Pointer()

// onBranchGoroutine reports whether the caller runs on a goroutine that the SDK started for workflow code,
// and not on one that the author's code started. Only calls that may park the run pay for it.
func onBranchGoroutine() bool { return onGoroutine(branchEntry) }

// onGoroutine reports whether the caller's goroutine has a function at its root.
func onGoroutine(entry uintptr) bool {
	var pcs [64]uintptr
	for skip := 0; ; skip += len(pcs) - 8 {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == entry {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
