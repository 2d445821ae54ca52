package server

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// early is a store whose starts are not over before somebody has claimed behind them.
type early struct {
	servertest.StubStore
	starting *atomic.Bool  // somebody is, and nobody has claimed since
	claims   chan struct{} // a claim that comes behind a start
}

func (e early) StartRuns(_ context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	e.starting.Store(true)
	p.Ticket.Admit()
	<-e.claims
	return []engine.Started{{RunID: p.Runs[0].ID}}, nil
}

func (e early) Claim(context.Context, engine.ClaimParams) (engine.Claimed, error) {
	if e.starting.CompareAndSwap(true, false) {
		e.claims <- struct{}{}
	}
	return engine.Claimed{}, nil
}

func TestAStartIsClaimedInItsOwnCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := early{starting: &atomic.Bool{}, claims: make(chan struct{})}
		d := matching.New(store, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go d.Run(ctx)
		s := New(store, d, Options{})
		d.Join(matching.Request{
			Worker: &engine.Worker{ID: "w", Namespace: "default"}, Queues: []string{"q"}, Types: []string{"t"},
			Deliver: func(engine.Task) bool { return true },
		}).AddCredit(1)
		synctest.Wait() // the first claim has found nothing
		start := engine.StartRun{Run: engine.Run{
			ID: servertest.NthID(1), Namespace: "default", Queue: "q", Type: "t", ConcurrencyKey: "k",
			ConcurrencyLimit: 9}}
		if _, err := s.startRuns(t.Context(), []engine.StartRun{start}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the claim has given its credit back
		later, given := start, start
		later.ID, later.AvailableAt = servertest.NthID(2), time.Now().Add(time.Hour)
		given.ID, given.ConcurrencyKey = servertest.NthID(3), ""
		for why, start := range map[string]engine.StartRun{
			"that is not due": later, "that he may be given in its start": given} {
			over := make(chan struct{})
			go func() {
				defer close(over)
				s.startRuns(t.Context(), []engine.StartRun{start})
			}()
			synctest.Wait()
			select {
			case <-over:
				t.Errorf("somebody came to claim a run %s", why)
			default:
				store.claims <- struct{}{}
				<-over
			}
		}
	})
}
