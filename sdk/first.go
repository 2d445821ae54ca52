package kagzi

import "time"

// Awaitable is what First waits for: a *Future or a *Child.
type Awaitable interface {
	awaited(ctx Context) *branch
}

func (f *Future[T]) awaited(Context) *branch { return f.b }

// awaited returns a branch that ends with the child. All waits of First share it.
func (c *Child[Out]) awaited(ctx Context) *branch {
	b := ctx.workflow()
	b.enter()
	if c.c.branch == nil {
		child := []*startedChild{c.c}
		c.c.branch = Go(ctx, func(ctx Context) (struct{}, error) {
			return struct{}{}, ctx.workflow().awaitAll(ctx.scope(), child)
		}).b
	}
	return c.c.branch
}

// First waits until the first of the futures and child runs has ended, and returns its index. Its
// result, or error, is what its Wait then returns:
//
//	approval := kagzi.GoSignal[bool](ctx, "approval", 0)
//	late := kagzi.GoSleep(ctx, "deadline", 48*time.Hour)
//	if kagzi.First(ctx, approval, late) == 1 {
//		return escalate(ctx)
//	}
//	approved, err := approval.Wait(ctx)
//
// The first is the one whose result reached the code first, the same in every replay; of several that
// ended with one result, it is the one named first. The others go on: a later call of First or Wait
// can wait for them, and a signal that the code has not received when the run ends goes back to the
// queue. A cancellation of the run does not interrupt First, but ends what it waits for. At least one
// is required.
func First(ctx Context, waits ...Awaitable) int {
	b := ctx.workflow()
	b.enterOutsideSteps("a wait for the first of several")
	branches := make([]*branch, len(waits))
	for i, w := range waits {
		branches[i] = w.awaited(ctx)
	}
	if len(branches) == 0 {
		panic("kagzi: First: nothing to wait for")
	}
	b.awaitAny(branches)
	e := b.e
	e.lock()
	defer e.mu.Unlock()
	first := -1
	for i, one := range branches {
		if one.done && (first < 0 || one.order < branches[first].order) {
			first = i
		}
	}
	return first
}

// GoSignal is Go with WaitSignal: it waits for a signal beside other calls of the branch.
func GoSignal[T any](ctx Context, name string, limit time.Duration) *Future[T] {
	return Go(ctx, func(ctx Context) (T, error) { return WaitSignal[T](ctx, name, limit) })
}

// GoSleep is Go with Sleep: a timer beside other calls of the branch.
func GoSleep(ctx Context, name string, d time.Duration) *Future[struct{}] {
	return Go(ctx, func(ctx Context) (struct{}, error) {
		Sleep(ctx, name, d)
		return struct{}{}, nil
	})
}
