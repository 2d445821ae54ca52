package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// An open call is a stream or a long poll. It ends when its key or session ends; a call
// without a key ends when the database gets its first key.

// openCalls holds the calls that are open.
type openCalls struct {
	wake chan struct{} // capacity one: check the keys

	mu    sync.Mutex
	open  map[*openCall]struct{}
	keyed int       // number of open calls with a key
	next  time.Time // when watchOpenCalls checks by itself; unset: only when notified
}

type openCall struct {
	key *Key // nil: local
	end context.CancelCauseFunc
}

// lateHandler is how long the handler of an ended call has to return. If it is blocked in sending
// or receiving, the call is answered without it, which unblocks the handler.
const lateHandler = 500 * time.Millisecond

// sessionCheck is how often the sessions of open calls are checked while notifications tell when one
// was ended.
const sessionCheck = time.Minute

// errCallOver is the error of an open call whose key has ended.
var errCallOver = &engine.Error{
	Kind: engine.KindNoKey, Subject: "key",
	Message: "the call was ended: its API key or session has expired or was ended, " +
		"or calls have needed a key since it began",
}

// Open returns a context for a long call. It ends with the cause errCallOver when the caller's key
// ends. Call leave at the end of the call.
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
	// The keys may have changed after the call was authenticated and before it was added above.
	if r := g.keys.current.Load(); r != nil && !r.admits(key, g.store.Now()) {
		end(errCallOver)
	}
	if key != nil && key.session != nil && key.session.mark != g.keys.mark.Load() {
		async.Notify(g.open.wake)
	}
	return ctx, func() {
		g.open.remove(v)
		end(nil)
	}
}

// add adds an open call. It says whether the keys must be checked earlier than planned because of
// it.
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
	wait := one.key.checkIn(now)
	return wait > 0 && (v.next.IsZero() || clock.Add(wait).Before(v.next))
}

func (v *openCalls) remove(one *openCall) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, one)
	if one.key != nil {
		v.keyed--
	}
}

// count returns how many calls are open, and how many of them have a key.
func (v *openCalls) count() (open, keyed int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open), v.keyed
}

// watchOpenCalls ends the open calls whose keys have ended, until ctx ends. It checks when it is
// notified. While a call has a key that expires, or has any key and notifications may be lost, it
// also checks every few seconds. Otherwise it sleeps.
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

// retryKeysAfter is how long to wait after the keys could not be read.
const retryKeysAfter = time.Second

// checkOpenCalls ends the open calls whose keys have ended, and returns the time to the next check;
// 0: none.
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
	ended, err := g.endedSessions(ctx, r, g.open.sessions())
	if err != nil {
		return g.open.plan(retryKeysAfter)
	}
	wait := g.open.prune(r, ended, g.store.Now())
	if keyed > 0 && !g.keys.sure.Load() {
		wait = sooner(wait, max(time.Millisecond, keyringAge-time.Since(r.readAt)))
	}
	return g.open.plan(wait)
}

// plan sets the time of the next check; 0: none.
func (v *openCalls) plan(wait time.Duration) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.next = time.Time{}
	if wait > 0 {
		v.next = time.Now().Add(wait)
	}
	return wait
}

// prune ends the open calls that would be refused now, and returns the time until a key of the
// others may have expired; 0: never. The time is short if any key expires at all, because a timer
// does not notice that the clock was set or that the machine slept.
func (v *openCalls) prune(r *keyset, ended map[engine.ID]bool, now time.Time) (wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if !r.admits(one.key, now) || one.key.inSession(ended) {
			one.end(errCallOver)
			continue
		}
		wait = sooner(wait, one.key.checkIn(now))
	}
	return wait
}

// inSession says whether the caller uses one of the sessions.
func (k *Key) inSession(some map[engine.ID]bool) bool {
	return k != nil && k.session != nil && some[k.session.ID]
}

// checkIn returns after which time a caller's key or session may have expired; 0: never. That of a
// session moves with its use.
func (k *Key) checkIn(now time.Time) time.Duration {
	switch {
	case k == nil:
		return 0
	case k.session != nil:
		return sessionCheck
	case k.ExpiresAt.IsZero():
		return 0
	}
	return min(max(time.Millisecond, k.ExpiresAt.Sub(now)), keyringAge)
}

// sessions returns the sessions of the open calls.
func (v *openCalls) sessions() (ids []engine.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if one.key != nil && one.key.session != nil && !slices.Contains(ids, one.key.session.ID) {
			ids = append(ids, one.key.session.ID)
		}
	}
	return ids
}

// sooner returns the shorter of two waits; 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// RunCall runs the handler of an open call until it returns or the call's key ends.
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
		return <-done // the caller cancelled the call
	}
	late := time.NewTimer(lateHandler)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	return errCallOver
}

// CallError returns the error of a long call whose handler returned err.
func CallError(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errCallOver {
		return errCallOver
	}
	return err
}
