package coordinator

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// notebook is an Observer that records its calls.
type notebook struct {
	mu      sync.Mutex
	expired []engine.Expired
	fired   []firing
	others  []string
}

type firing struct {
	schedule engine.ID
	runs     int
	skipped  int64
	missed   int
	late     time.Duration
}

func (n *notebook) RunsExpired(e engine.Expired) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.expired = append(n.expired, e)
}

func (n *notebook) RunsDeleted(runs int) { n.note("deleted", runs) }
func (n *notebook) RunsDiverged(runs []engine.ID) {
	n.note("diverged", len(runs))
}
func (n *notebook) WorkerLost()         { n.note("worker lost", 1) }
func (n *notebook) LeasesLost(runs int) { n.note("leases lost", runs) }

func (n *notebook) StepsTimedOut(attempts []engine.TimedOutAttempt) {
	n.note("timed out", len(attempts))
}

func (n *notebook) note(what string, how int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.others = append(n.others, what+" "+strconv.Itoa(how))
}

func (n *notebook) ScheduleFired(s *engine.Schedule, f engine.Fired, missed int, late time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fired = append(n.fired, firing{s.ID, f.Runs, f.Skipped, missed, late})
}

func TestTheObserverIsCalledForTicksWithTheirLateness(t *testing.T) {
	n := &notebook{}
	withCoordinator(t, Options{Observer: n}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.set(func() { f.slow = 20 * time.Millisecond })
		first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		id := f.plan("* * * * *", 2, first)
		pass(time.Until(first) + 30*time.Second)
		if len(n.fired) != 1 {
			t.Fatalf("heard %+v, want one tick", n.fired)
		}
		heard := n.fired[0]
		late := heard.late
		heard.late = 0
		if want := (firing{schedule: id, runs: 1}); heard != want || late < 40*time.Millisecond ||
			late > 100*time.Millisecond {
			t.Errorf("heard %+v %s late, want %+v and two calls of 20 ms", heard, late, want)
		}
		f.set(func() { // ten minutes ago, which nobody fired
			f.plans[id].NextFireAt, f.plans[id].Revision = first.Add(-10*time.Minute), 2
		})
		n.fired = nil
		f.notify(engine.Notification{Kind: engine.NotifyTimer})
		pass(10 * time.Second)
		if want := (firing{id, 2, 9, 2, -1}); len(n.fired) != 1 || n.fired[0] != want {
			t.Errorf("heard %+v, want %+v", n.fired, want)
		}
		n.fired = nil
		f.set(func() { f.stale = true })
		pass(time.Minute)
		if len(n.fired) != 0 {
			t.Errorf("heard %+v of what another server fired", n.fired)
		}
	})
}

func TestTheObserverIsCalledForExpiredRuns(t *testing.T) {
	n := &notebook{}
	withCoordinator(t, Options{Observer: n, BatchSize: 2}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		at := time.Now().Add(time.Minute).UTC()
		f.set(func() { f.expire = []time.Time{at, at, at} })
		f.notify(engine.Notification{Kind: engine.NotifyTimer})
		pass(2 * time.Minute)
		if one := make([]engine.ID, 1); !reflect.DeepEqual(
			n.expired, []engine.Expired{{Runs: 2, Cancelled: one, TimedOut: one},
				{Runs: 1, Cancelled: nil, TimedOut: one}}) {
			t.Errorf("heard %+v, want the sweeps of 2 and of 1", n.expired)
		}
	})
}

func TestTheObserverIsCalledForLossesTimeoutsAndDeletions(t *testing.T) {
	n := &notebook{}
	withCoordinator(t, Options{Observer: n, Retention: time.Hour}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		f.register("w1")
		at := time.Now().Add(10 * time.Second)
		f.set(func() {
			f.steps, f.runs, f.old = []time.Time{at, at}, []time.Time{at.Add(time.Second)}, 3
		})
		f.notify(engine.Notification{Kind: engine.NotifyAll})
		pass(2 * time.Minute)
		want := []string{"timed out 2", "leases lost 1", "worker lost 1", "leases lost 1", "deleted 3"}
		if !slices.Equal(n.others, want) {
			t.Errorf("heard %q, want %q", n.others, want)
		}
	})
}

func TestLooksReturnsWhenTheCoordinatorRanAndWillRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStore()
		c := New(f, Options{})
		f.notify = c.Notify
		f.set(func() { f.slow = 10 * time.Millisecond })
		if got := c.Looks(); got != (Looks{Interval: 5 * time.Second}) {
			t.Errorf("before it runs it says %+v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		begun := f.Now()
		go func() { done <- c.Run(ctx) }()
		pass(time.Second)
		looks := c.Looks()
		if !looks.At.Equal(begun) || looks.Took < 40*time.Millisecond || looks.Took > 100*time.Millisecond ||
			!looks.Next.Equal(begun.Add(firstPrune)) {
			t.Errorf("it says %+v, want a look at %v of five calls of 10 ms, and the next a minute later", looks, begun)
		}
		pass(2 * time.Minute)
		if looks = c.Looks(); !looks.Next.IsZero() || !looks.At.Equal(begun.Add(firstPrune)) {
			t.Errorf("with nothing to wait for it says %+v", looks)
		}
		at := f.Now().Add(time.Hour)
		f.timeoutAt(at)
		pass(time.Second)
		if looks = c.Looks(); !looks.Next.Equal(at) {
			t.Errorf("it says %+v, want the next at %v", looks, at)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
