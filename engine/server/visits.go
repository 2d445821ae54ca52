package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// A visit is a call that is open for long: a stream, or a long poll. It ends when the key that let it in ends, and one that needed none
// ends when the database gets its first key.

// visits are those that are under way.
type visits struct {
	bell chan struct{} // capacity one: look at the keys

	mu    sync.Mutex
	open  map[*visit]struct{}
	keyed int       // of them, those with a key
	wake  time.Time // when watchVisits looks by itself; unset: not before it is rung
}

type visit struct {
	key *heldKey // nil: local
	end context.CancelCauseFunc
}

// visitLate is how long the handler of a visit that is over has to come to its end. One that is stuck in sending or receiving does not;
// then the call is answered without it, which frees it.
const visitLate = 500 * time.Millisecond

// errVisitOver is the answer to a visit whose key has ended.
var errVisitOver = &engine.Error{
	Kind: engine.KindNoKey, Subject: "key", Message: "the call was ended: its API key has expired or was revoked, or a key is needed since it began",
}

// visit makes a context for a long call, which ends with errVisitOver as its cause when the caller's key ends. Leave it when done.
func (s *Server) visit(ctx context.Context) (_ context.Context, leave func()) {
	key := callerOf(ctx)
	if s.options.Trusted {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	v := &visit{key: key, end: end}
	if s.visits.add(v, s.now(), time.Now(), s.keys.sure.Load()) {
		async.Notify(s.visits.bell)
	}
	// A change of the keys between the look that let the call in and the line above has told nobody.
	if r := s.keys.current.Load(); r != nil && !r.admits(key, s.now()) {
		end(errVisitOver)
	}
	return ctx, func() {
		s.visits.remove(v)
		end(nil)
	}
}

// add makes a visit known and says whether the keys have to be looked at earlier for it than planned.
func (v *visits) add(one *visit, now, clock time.Time, sure bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = map[*visit]struct{}{}
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
	return !over.IsZero() && (v.wake.IsZero() || clock.Add(over.Sub(now)).Before(v.wake))
}

func (v *visits) remove(one *visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, one)
	if one.key != nil {
		v.keyed--
	}
}

// count is how many visits there are, and how many of them have a key.
func (v *visits) count() (open, keyed int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open), v.keyed
}

// watchVisits ends the visits whose keys have ended, until ctx ends. It looks when it is rung, and every few seconds as long as a visit has a key
// that expires or, where hints may be lost, has a key at all. Otherwise it sleeps.
func (s *Server) watchVisits(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.visits.bell:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Stop()
		if wait := s.lookAtVisits(ctx); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// visitsAgain is how soon the keys are asked for again when they could not be read.
const visitsAgain = time.Second

// lookAtVisits ends the visits that are over, and says when to look again by itself; 0 is never.
func (s *Server) lookAtVisits(ctx context.Context) time.Duration {
	open, keyed := s.visits.count()
	if open == 0 {
		return s.visits.plan(0)
	}
	age := time.Duration(0)
	if keyed > 0 {
		age = keyringAge
	}
	r, err := s.keys.read(ctx, age)
	if err != nil {
		return s.visits.plan(visitsAgain)
	}
	wait := s.visits.prune(r, s.now())
	if keyed > 0 && !s.keys.sure.Load() {
		wait = sooner(wait, max(time.Millisecond, keyringAge-time.Since(r.readAt)))
	}
	return s.visits.plan(wait)
}

// plan notes when the next look is.
func (v *visits) plan(wait time.Duration) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wake = time.Time{}
	if wait > 0 {
		v.wake = time.Now().Add(wait)
	}
	return wait
}

// prune ends the visits that would not be let in now, and returns how long it is until the next key of the others may have expired; 0 is never.
// That is soon where any of them expires at all: the clock may be set, or the machine sleep, and no timer knows of it.
func (v *visits) prune(r *keyset, now time.Time) (wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if !r.admits(one.key, now) {
			one.end(errVisitOver)
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

// carry runs the handler of a visit to its end, or until the visit is over.
func carry(ctx context.Context, handle func() error) error {
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
		return visitError(ctx, err)
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errVisitOver) {
		return <-done // the caller hung up
	}
	late := time.NewTimer(visitLate)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	return errVisitOver
}

// visitError is the answer of a long call that came to its end with err.
func visitError(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errVisitOver {
		return errVisitOver
	}
	return err
}
