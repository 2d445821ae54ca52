package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// witness notes the claims and releases that a store answers.
type witness struct {
	engine.Store
	mu     sync.Mutex
	events []string
}

func (w *witness) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

func (w *witness) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func (w *witness) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	c, err := w.Store.Claim(ctx, p)
	for range c.Tasks {
		w.note("claim")
	}
	return c, err
}

func (w *witness) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	started, err := w.Store.StartRuns(ctx, p)
	if err == nil {
		w.note("start")
	}
	return started, err
}

func (w *witness) Release(ctx context.Context, p engine.ReleaseParams) error {
	err := w.Store.Release(ctx, p)
	if err == nil {
		w.note("release")
	}
	return err
}

// A run that waits for a signal while its worker holds the lease gets it over that lease: nothing is
// parked and nothing claimed in between, and the same activation of the code goes on.
func TestASignalReachesTheRunThatItsWorkerHolds(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		const signals = 20
		var w *witness
		o := patient
		o.Wrap = func(s engine.Store) engine.Store {
			w = &witness{Store: s}
			return w
		}
		s := New(t, openStore(t, url), o)
		var activations sync.Map
		held, over, got := make(chan struct{}), make(chan struct{}), make(chan int)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "held", func(ctx kagzi.Context, _ int) (int, error) {
				activations.Store(new(int), true)
				hold := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					return 0, kagzi.Do(ctx, "hold", func(context.Context) error {
						close(held)
						<-over
						return nil
					})
				})
				for range signals {
					n, err := kagzi.WaitSignal[int](ctx, "go", 0)
					if err != nil {
						return 0, err
					}
					got <- n
				}
				return hold.Wait(ctx)
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "held", 0, kagzi.StartOptions{}))(t)
		receiveClosed(t, "the step that holds the run", held)
		before := w.seen()
		holder := s.get(t, run.ID()).GetWorkerId()
		for n := range signals {
			if err := kagzi.Signal(ctx, run, "go", n, kagzi.SignalOptions{}); err != nil {
				t.Fatal(err)
			}
			if v := receive(t, "the signal", got); v != n {
				t.Errorf("received %d, want %d", v, n)
			}
			if r := s.get(t, run.ID()); r.Status != running || r.GetWorkerId() != holder {
				t.Errorf("after signal %d the run is %s with worker %q, want RUNNING with %q", n, r.Status,
					r.GetWorkerId(), holder)
			}
		}
		if after := w.seen(); !slices.Equal(after, before) {
			t.Errorf("%q came to the store, want nothing between %q and the last signal", after[len(before):], before)
		}
		close(over)
		fine(kagzi.Result[int](ctx, run))(t)
		count := 0
		activations.Range(func(any, any) bool { count++; return true })
		if count != 1 {
			t.Errorf("the code began %d times, want once", count)
		}
	})
}
