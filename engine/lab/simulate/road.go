package simulate

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

// traffic holds the calls of all servers until everything else in the bubble waits. Then randomness
// from the seed decides which of them are committed next, so the seed decides the order of calls.
type traffic struct {
	beside *beside
	plan   *Plan
	rnd    *rand.Rand
	fates  map[string]map[int]Fault // by verb and number
	come   chan struct{}            // capacity one
	report *Report

	mu      sync.Mutex
	calls   map[string]int // number of calls by verb
	waiting []*pendingCall
	healed  bool
	number  int
}

// pendingCall is a call on its way.
type pendingCall struct {
	*memory.Call
	server *server
	fate   Fault
	number int
	err    error // what the caller is told
	done   chan struct{}
}

func newTraffic(b *beside, plan *Plan, report *Report) *traffic {
	t := &traffic{
		beside: b, plan: plan, rnd: rand.New(rand.NewPCG(plan.Seed, 1)), fates: map[string]map[int]Fault{},
		come:  make(chan struct{}, 1),
		calls: map[string]int{}, report: report,
	}
	for _, f := range plan.Faults {
		if t.fates[f.Verb] == nil {
			t.fates[f.Verb] = map[int]Fault{}
		}
		t.fates[f.Verb][f.Nth] = f
	}
	return t
}

var (
	errFailed = &engine.Error{Kind: engine.KindUnavailable, Message: "the database does not answer"}
	errGaveUp = &engine.Error{Kind: engine.KindUnavailable, Message: "the caller stopped waiting"}
)

// road carries the calls of one server.
func (t *traffic) road(s *server) memory.Transport {
	return func(ctx context.Context, c *memory.Call) error {
		r := &pendingCall{Call: c, server: s, done: make(chan struct{})}
		if !t.enter(ctx, r) {
			c.Ticket.Resolve(errFailed)
			return errFailed
		}
		if t.plan.Early {
			c.Ticket.Admit()
		}
		select {
		case <-r.done:
			return r.err
		case <-ctx.Done():
			return errGaveUp
		}
	}
}

// enter returns false if the call never reaches the database.
func (t *traffic) enter(ctx context.Context, r *pendingCall) bool {
	t.mu.Lock()
	t.calls[r.Verb]++
	if !t.healed {
		r.fate = t.fates[r.Verb][t.calls[r.Verb]]
	}
	t.mu.Unlock()
	switch r.fate.Fate {
	case "fail":
		t.report.hit("call " + r.fate.Fate)
		return false
	case "late":
		t.report.hit("call " + r.fate.Fate)
		select {
		case <-time.After(r.fate.For):
		case <-ctx.Done():
			return false
		}
	}
	if r.server.isDead() {
		return false
	}
	t.mu.Lock()
	t.number++
	r.number = t.number
	t.waiting = append(t.waiting, r)
	t.mu.Unlock()
	select {
	case t.come <- struct{}{}:
	default:
	}
	return true
}

// heal ends all faults of calls.
func (t *traffic) heal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.healed = true
}

// direct commits waiting calls until stop is closed. No other goroutine of the bubble may wait for
// all others to block.
func (t *traffic) direct(stop <-chan struct{}) {
	for {
		synctest.Wait()
		group := t.next()
		if len(group) == 0 {
			select {
			case <-t.come:
				continue
			case <-stop:
				return
			}
		}
		t.commit(group)
		if t.rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(t.rnd.IntN(20_000)) * time.Microsecond)
		}
	}
}

// next takes some of the waiting calls: a read, or writes that share a commit.
func (t *traffic) next() (group []*pendingCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(group) < t.plan.Group {
		free := t.free()
		if len(free) == 0 {
			break
		}
		r := free[t.rnd.IntN(len(free))]
		if !r.Write && len(group) > 0 {
			break
		}
		t.waiting = slices.DeleteFunc(t.waiting, func(other *pendingCall) bool { return other == r })
		group = append(group, r)
		if !r.Write || t.rnd.IntN(3) == 0 {
			break
		}
	}
	return group
}

// free returns the calls that may be next; of calls with tickets, only the first of each run.
func (t *traffic) free() (free []*pendingCall) {
	behind := map[engine.ID]bool{}
	for _, r := range t.waiting {
		if r.Ticket != nil {
			run := leaseOf(r.Params).RunID
			if behind[run] {
				continue
			}
			behind[run] = true
		}
		free = append(free, r)
	}
	return free
}

// commit carries out a group and answers it. If one call must be told that it failed, all are,
// because nobody knows.
func (t *traffic) commit(group []*pendingCall) {
	calls := make([]*memory.Call, len(group))
	lost := false
	for i, r := range group {
		calls[i] = r.Call
		lost = lost || r.fate.Fate == "lose"
	}
	t.beside.commit(calls...)
	for _, r := range group {
		r.err = r.Err
		if lost {
			r.err = errFailed
			r.Ticket.Resolve(errFailed)
		}
		if lost || r.server.isDead() {
			t.report.hit("call lose")
		}
		close(r.done)
	}
}

// crash decides what happens to the calls of a server that died.
func (t *traffic) crash(s *server, rnd *rand.Rand) {
	t.mu.Lock()
	var its []*pendingCall
	t.waiting = slices.DeleteFunc(t.waiting, func(r *pendingCall) bool {
		if r.server == s {
			its = append(its, r)
		}
		return r.server == s
	})
	t.mu.Unlock()
	for _, r := range its {
		if rnd.IntN(2) == 0 {
			t.beside.commit(r.Call)
		} else {
			r.Ticket.Resolve(errFailed)
		}
		r.err = errFailed
		close(r.done)
	}
}

// leaseOf returns the lease that a call is about, or the zero lease.
func leaseOf(params any) engine.Lease {
	switch p := params.(type) {
	case engine.BeginStepParams:
		return p.Lease
	case engine.CompleteStepParams:
		return p.Lease
	case engine.FailStepParams:
		return p.Lease
	case engine.SleepParams:
		return p.Lease
	case engine.AwaitSignalParams:
		return p.Lease
	case engine.StartChildParams:
		return p.Lease
	case engine.AwaitChildrenParams:
		return p.Lease
	case engine.SetNoteParams:
		return p.Lease
	case engine.CompleteRunParams:
		return p.Lease
	case engine.FailRunParams:
		return p.Lease
	case engine.ReleaseParams:
		return p.Lease
	}
	return engine.Lease{}
}
