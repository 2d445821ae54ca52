package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// An open call is a stream or a long poll. It ends when the key that let it in ends, and one that
// needed none ends when the database gets its first key.

// openCalls are the calls that are open now.
type openCalls struct {
	wake chan struct{} // capacity one: look at the keys

	mu    sync.Mutex
	open  map[*openCall]struct{}
	keyed int       // of them, those with a key
	next  time.Time // when watchOpenCalls looks by itself; unset: not before it is notified
}

type openCall struct {
	key *Key // nil: local
	end context.CancelCauseFunc
}

// lateHandler is how long the handler of a call that is over has to return. One that is stuck in
// sending or receiving does not; then the call is answered without it, which frees it.
const lateHandler = 500 * time.Millisecond

// errCallOver is the answer to an open call whose key has ended.
var errCallOver = &engine.Error{
	Kind: engine.KindNoKey, Subject: "key", Message: "the call was ended: its API key has expired or was revoked, or a key is needed since it began",
}

// Open makes a context for a long call, which ends with errCallOver as its cause when the caller's
// key ends. Leave it when done.
func (g *Guard) Open(ctx context.Context) (_ context.Context, leave func()) {
	key := CallerOf(ctx)
	if g.trusted {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	v := &openCall{key: key, end: end}
	if g.open.add(v, g.store.Now(), time.Now(), g.keys.sure.Load()) {
		async.Notify(g.open.wake)
	}
	// A change of the keys between the look that let the call in and the line above has told nobody.
	if r := g.keys.current.Load(); r != nil && !r.admits(key, g.store.Now()) {
		end(errCallOver)
	}
	return ctx, func() {
		g.open.remove(v)
		end(nil)
	}
}

// add makes an open call known and says whether the keys have to be looked at earlier for it than planned.
func (v *openCalls) add(one *openCall, now, clock time.Time, sure bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = map[*openCall]struct{}{}
	}
	v.open[one] = struct{}{}
	if one.key == nil {
		return false
	}
	v.keyed++
	if v.keyed == 1 && !sure {
		return true
	}
	over := one.key.ExpiresAt
	return !over.IsZero() && (v.next.IsZero() || clock.Add(over.Sub(now)).Before(v.next))
}

func (v *openCalls) remove(one *openCall) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, one)
	if one.key != nil {
		v.keyed--
	}
}

// count is how many open calls there are, and how many of them have a key.
func (v *openCalls) count() (open, keyed int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open), v.keyed
}

// watchOpenCalls ends the open calls whose keys have ended, until ctx ends. It looks when it is
// notified, and every few seconds as long as a call has a key that expires or, where notifications
// may be lost, has a key at all. Otherwise it sleeps.
func (g *Guard) watchOpenCalls(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-g.open.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Stop()
		if wait := g.checkOpenCalls(ctx); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// retryKeysAfter is how soon the keys are asked for again when they could not be read.
const retryKeysAfter = time.Second

// checkOpenCalls ends the open calls that are over, and says when to look again by itself; 0 is never.
func (g *Guard) checkOpenCalls(ctx context.Context) time.Duration {
	open, keyed := g.open.count()
	if open == 0 {
		return g.open.plan(0)
	}
	age := time.Duration(0)
	if keyed > 0 {
		age = keyringAge
	}
	r, err := g.keys.read(ctx, age)
	if err != nil {
		return g.open.plan(retryKeysAfter)
	}
	wait := g.open.prune(r, g.store.Now())
	if keyed > 0 && !g.keys.sure.Load() {
		wait = sooner(wait, max(time.Millisecond, keyringAge-time.Since(r.readAt)))
	}
	return g.open.plan(wait)
}

// plan records when the next look is.
func (v *openCalls) plan(wait time.Duration) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.next = time.Time{}
	if wait > 0 {
		v.next = time.Now().Add(wait)
	}
	return wait
}

// prune ends the open calls that would not be let in now, and returns how long it is until the next
// key of the others may have expired; 0 is never. That is soon where any of them expires at all:
// the clock may be set, or the machine sleep, and no timer knows of it.
func (v *openCalls) prune(r *keyset, now time.Time) (wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if !r.admits(one.key, now) {
			one.end(errCallOver)
			continue
		}
		if one.key != nil && !one.key.ExpiresAt.IsZero() {
			wait = sooner(wait, min(max(time.Millisecond, one.key.ExpiresAt.Sub(now)), keyringAge))
		}
	}
	return wait
}

// sooner is the shorter of two waits, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// RunCall runs the handler of an open call to its end, or until the call is over.
func RunCall(ctx context.Context, handle func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- async.Recovered(v)
			}
		}()
		done <- handle()
	}()
	select {
	case err := <-done:
		return CallError(ctx, err)
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errCallOver) {
		return <-done // the caller hung up
	}
	late := time.NewTimer(lateHandler)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	return errCallOver
}

// CallError is the answer of a long call that came to its end with err.
func CallError(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errCallOver {
		return errCallOver
	}
	return err
}
