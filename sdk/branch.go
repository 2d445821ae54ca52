package kagzi

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
)

// branch is one line of execution of a run: the workflow function, or a function given to Go. All
// fields but the first three are guarded by e.mu.
//
// A branch is busy while it can continue by itself. It is not when all of its calls wait for
// another branch or for a time. When no branch is busy the run is parked. A branch is coding while
// its code runs outside of calls; when none is, the next result is handed over.
type branch struct {
	e         *execution
	parent    *branch
	ordinal   int // among the branches of its parent, from 1
	startedAt int // the parent's clock at the start
	clock     int // counts the named calls, forks and joins
	forks     int

	joinedBy *branch         // the parent, once it has waited for this branch
	joinedAt int             // the parent's clock at that time
	joins    map[*branch]int // other branches that have waited, with their clocks

	calls    int  // calls in progress
	blocked  int  // those of them that cannot continue by themselves
	inside   int  // those of them that the branch's own goroutine makes: at most one
	waits    int  // those of these whose result is handed over in order
	loose    bool // plain goroutines make calls of this branch
	busy     bool
	coding   bool // its code runs outside of SDK calls
	detached bool // its code is blocked there, so results of other branches do not wait for it
	done     bool
	order    int64 // key of the result during whose handing over it ended
	waiters  []*joining

	replayed  bool       // its latest call returned from the record
	ownResult bool       // the worker that made that call also made its result
	lines     []heldLine // log lines since that call
	outside   outside
	random    *rand.Rand
	uuids     *rand.ChaCha8
}

// Future is the pending result of a function started by Go.
type Future[T any] struct {
	b     *branch
	value T
	err   error
}

// Go runs fn concurrently as a branch of the run, with its own Context. If ctx comes from Cleanup,
// so does the branch's. The SDK knows all branches, so it parks the run exactly when none can
// continue.
//
// Step names must be unique among branches that can run at the same time: include in the name what
// the branch works on. Branches that are still running when the workflow function returns are
// dropped. A panic in fn fails the run.
func Go[T any](ctx Context, fn func(ctx Context) (T, error)) *Future[T] {
	f := &Future[T]{b: ctx.workflow().fork()}
	f.b.start(ctx.scope(), func(ctx Context) { f.value, f.err = fn(ctx) })
	return f
}

// Wait waits for the function and returns its result. ctx is the caller's. Wait may be called more
// than once; branches that all wait for each other fail the run. A cancellation of the run does not
// interrupt Wait, because the function may have to clean up: its own calls return ErrCancelled.
func (f *Future[T]) Wait(ctx Context) (T, error) {
	f.b.join(ctx.workflow())
	return f.value, f.err
}

// Map calls fn for all items at once, each in its own branch, and waits for all of them. Results
// are in the order of the items, with the zero value for an item that failed. The error joins the
// errors of all failed items, in the same order.
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

// enter begins each call of the SDK: it ends the goroutine if the code has to end.
func (b *branch) enter() {
	b.e.lock()
	b.e.mu.Unlock()
}

// enterOutsideSteps is enter for calls without a name that are not allowed inside steps.
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
	child := &branch{e: b.e, parent: b, ordinal: b.forks, startedAt: b.clock,
		replayed: b.replayed, ownResult: b.ownResult}
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
			b.writeRest()
			b.e.fail(errorDetail(err))
		}()
		id := goroutineID()
		b.e.mu.Lock()
		b.outside.goroutine = id
		b.e.watch.branches[b] = struct{}{}
		b.e.mu.Unlock()
		body(&workflowContext{scope, b})
		b.finish()
		returned = true
	})
}

// joining is a call that waits until one of some branches has ended.
type joining struct {
	by    *branch
	own   bool // by's own goroutine waits
	ended chan struct{}
	over  bool
}

// finish wakes the waiting branches before this one counts as done, so that the run never looks
// idle in between.
func (b *branch) finish() {
	b.e.mu.Lock()
	b.comesToWait()
	b.e.mu.Unlock()
	b.writeRest()
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	for _, w := range b.waiters {
		w.wake()
	}
	b.waiters = nil
	b.done, b.order = true, b.e.current
	delete(b.e.watch.branches, b)
	b.settle()
}

// wake lets the waiting branch go on. Needs e.mu.
func (w *joining) wake() {
	if w.over {
		return
	}
	w.over = true
	w.by.blocked--
	w.by.calls--
	if w.own {
		w.by.inside--
		w.by.waits--
	} else {
		w.by.e.unsure = true
	}
	w.by.settle()
	w.by.e.watchOutside()
	close(w.ended)
}

// awaitAny waits until one of the branches has ended.
func (by *branch) awaitAny(branches []*branch) {
	e, own := by.e, onBranchGoroutine()
	e.lock()
	by.clock++
	by.comesToWait()
	if slices.ContainsFunc(branches, func(b *branch) bool { return b.done }) {
		e.mu.Unlock()
		return
	}
	w := &joining{by: by, own: own, ended: make(chan struct{})}
	for _, b := range branches {
		b.waiters = append(b.waiters, w)
	}
	by.calls++
	by.blocked++
	if own {
		by.inside++
		by.waits++
	} else {
		by.loose = true
		e.outsiders++
	}
	by.settle()
	by.waitsToo()
	e.mu.Unlock()
	await(e, w.ended)
	if !own {
		e.lock()
		e.outsiders--
		e.mu.Unlock()
	}
}

func (b *branch) join(by *branch) {
	e := b.e
	by.enterOutsideSteps("a wait for a branch")
	by.awaitAny([]*branch{b})
	e.lock()
	var lines []heldLine
	if b.replayed {
		by.ownResult = by.ownResult && b.ownResult
	} else {
		lines = by.fresh()
	}
	b.joined(by)
	e.mu.Unlock()
	writeLines(lines)
}

// joined records that another branch has waited for this one: what this one did comes before what
// that one does now. Needs e.mu.
func (b *branch) joined(by *branch) {
	switch _, again := b.joins[by]; {
	case by == b.parent && b.joinedBy == nil:
		b.joinedBy, b.joinedAt = by, by.clock
	case by == b.parent, again:
	case b.joins == nil:
		b.joins = map[*branch]int{by: by.clock}
	default:
		b.joins[by] = by.clock
	}
}

// settle updates what the branch counts as. Needs e.mu.
func (b *branch) settle() {
	e := b.e
	busy := !b.done && (b.calls == 0 || b.blocked < b.calls)
	coding := !b.done && b.waits == 0
	back := b.detached && (!coding || b.inside > 0)
	if back {
		b.attach()
	}
	coding = coding && !b.detached
	if busy == b.busy && coding == b.coding && !back {
		return
	}
	e.generation++
	e.busy += change(b.busy, busy)
	e.coding += change(b.coding, coding)
	b.busy, b.coding = busy, coding
	e.moved()
}

// waitsToo follows settle when a goroutine comes to wait. If others of its branch wait already, the
// branch counts as before, and nothing else would let the run go on. Needs e.mu.
func (b *branch) waitsToo() {
	if b.loose {
		b.e.moved()
	}
}

func change(from, to bool) int {
	switch {
	case to && !from:
		return 1
	case from && !to:
		return -1
	}
	return 0
}

// alone reports whether nothing else of the run is active, asked about or holds a timer, so that a
// call of this branch may park the run in one message. More plain goroutines of a loose branch may be
// about to call. Needs e.mu.
func (b *branch) alone() bool {
	e := b.e
	return e.busy == 1 && e.asking == 0 && b.calls == 1 && !b.loose && len(e.parked) == 0 && len(e.results) == 0 &&
		len(e.endings) == 0 && len(e.held) == 0 && (e.cancelled || !e.cancelAsked)
}

// path returns the ordinals of the branch's ancestors and itself: "" for the workflow function,
// "2.1" for the first branch of its second branch. It is the same in every replay.
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

// ordinals is path as numbers.
func (b *branch) ordinals() []int {
	if b.parent == nil {
		return nil
	}
	return append(b.parent.ordinals(), b.ordinal)
}

// branchGoroutine is the first function of every goroutine that the SDK starts for workflow code.
//
//go:noinline
func branchGoroutine(f func()) { f() }

var branchEntry = reflect.ValueOf(branchGoroutine).Pointer()

// onBranchGoroutine reports whether the SDK, not the user's code, started the calling goroutine.
func onBranchGoroutine() bool { return onGoroutine(branchEntry) }

// onGoroutine reports whether a function is at the root of the calling goroutine.
func onGoroutine(entry uintptr) bool {
	var pcs [64]uintptr
	for skip := 0; ; skip += len(pcs) - 8 {
		n := runtime.Callers(skip, pcs[:])
		if n == len(pcs) {
			continue
		}
		for _, pc := range pcs[max(0, n-3):n] { // below it are at most two frames of the runtime
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == entry {
				return true
			}
		}
		return false
	}
}
