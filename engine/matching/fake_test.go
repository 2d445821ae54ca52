package matching

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// fakeStore is a store with runs that wait in queues. Its time is that of the bubble.
type fakeStore struct {
	mu       sync.Mutex
	waiting  map[string][]time.Time // by queue: when each run is due, in order
	limits   map[string]int         // by queue: how many may run; absent: no limit
	running  map[string]int
	offline  map[string]bool // workers that are not ONLINE
	fail     int             // so many claims fail
	bad      string          // the queue from which no claim can be made
	during   func()          // called within the next claim
	claims   []engine.ClaimParams
	at       []time.Time // of the claims
	released []engine.ID
	held     map[string][]engine.Held // by worker
	mute     int                      // number of claims that take effect but return an error
	deaf     int                      // number of calls of HeldBy that fail
	deadline map[string]time.Time     // by queue: of its runs; absent: none
	ends     []engine.Expired         // what each EndExpired ends; after the last one they fail
	ended    int                      // how many EndExpired there were
}

func newFakeStore() *fakeStore {
	return &fakeStore{waiting: map[string][]time.Time{}, limits: map[string]int{}, running: map[string]int{},
		offline: map[string]bool{},
		held:    map[string][]engine.Held{}, deadline: map[string]time.Time{}}
}

func (f *fakeStore) Now() time.Time { return engine.Micros(time.Now()) }

func (f *fakeStore) Uncertainty() time.Duration { return 0 }

// add adds n runs to a queue, due after d.
func (f *fakeStore) add(queue string, n int, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.waiting[queue] = append(f.waiting[queue], time.Now().Add(d))
	}
	slices.SortFunc(f.waiting[queue], time.Time.Compare)
}

func (f *fakeStore) Claim(_ context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.Slots = slices.Clone(p.Slots)
	f.claims, f.at = append(f.claims, p), append(f.at, time.Now())
	if f.during != nil {
		during := f.during
		f.during = nil
		f.mu.Unlock()
		during()
		f.mu.Lock()
	}
	if f.fail > 0 {
		f.fail--
		return engine.Claimed{}, engine.ErrUnavailable
	}
	if p.Queue == f.bad {
		return engine.Claimed{}, engine.ErrUnavailable
	}
	var c engine.Claimed
	left := 0
	for _, g := range p.Slots {
		if f.offline[g.WorkerID] {
			if !slices.Contains(c.Offline, g.WorkerID) {
				c.Offline = append(c.Offline, g.WorkerID)
			}
			continue
		}
		due := len(f.waiting[p.Queue]) > 0 && !f.waiting[p.Queue][0].After(p.Now)
		limit, limited := f.limits[p.Queue]
		if due && limited && f.running[p.Queue] >= limit {
			c.Limited, due = true, false
		}
		if !due {
			left++
			continue
		}
		f.waiting[p.Queue] = f.waiting[p.Queue][1:]
		f.running[p.Queue]++
		id := engine.NewID(p.Now)
		lease := engine.Lease{Namespace: p.Namespace, RunID: id, Token: g.Token}
		c.Tasks = append(c.Tasks, engine.Task{Run: engine.Run{
			ID: id, Queue: p.Queue, WorkerID: g.WorkerID, DeadlineAt: f.deadline[p.Queue]}, Lease: lease})
		f.held[g.WorkerID] = append(f.held[g.WorkerID], engine.Held{Lease: lease})
	}
	if f.mute > 0 {
		f.mute--
		return engine.Claimed{}, engine.ErrUnavailable
	}
	if left > 0 && len(f.waiting[p.Queue]) > 0 && f.waiting[p.Queue][0].After(p.Now) {
		c.NextDue = engine.Micros(f.waiting[p.Queue][0].Add(time.Microsecond - 1)) // rounded up
	}
	return c, nil
}

func (f *fakeStore) Release(ctx context.Context, p engine.ReleaseParams) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || p.Now.IsZero() {
		return engine.ErrUnavailable
	}
	f.released = append(f.released, p.Lease.RunID)
	return nil
}

func (f *fakeStore) EndExpired(_ context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended++
	if f.ended > len(f.ends) || p.Now.IsZero() || p.Limit != maxClaim {
		return engine.Expired{}, engine.ErrUnavailable
	}
	return f.ends[f.ended-1], nil
}

// handedBack returns the runs that were released.
func (f *fakeStore) handedBack() []engine.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.released)
}

func (f *fakeStore) HeldBy(_ context.Context, workerID string) ([]engine.Held, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf > 0 {
		f.deaf--
		return nil, engine.ErrUnavailable
	}
	return f.held[workerID], nil
}

// claimed returns the number of claims since its last call.
func (f *fakeStore) claimed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.claims)
	f.claims, f.at = nil, nil
	return n
}

// recorder is a poller that records its tasks.
type recorder struct {
	*Poller
	mu      sync.Mutex
	tasks   []engine.Task
	times   []time.Time
	gone    bool
	refused int
}

func (d *recorder) given() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tasks)
}

// queues returns the queue of each task, in order.
func (d *recorder) queues() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for _, t := range d.tasks {
		names = append(names, t.Run.Queue)
	}
	return names
}

// fixture is a running matcher in a bubble.
type fixture struct {
	*Matcher
	store *fakeStore
}

// inBubble runs f with a running matcher, in a bubble with fake time.
func inBubble(t *testing.T, f func(t *testing.T, r fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		d := New(store, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		f(t, fixture{d, store})
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// join makes a worker poll queues. change may alter its registration.
func (r fixture) join(id string, queues []string, change ...func(*Request)) *recorder {
	d := &recorder{}
	request := Request{
		Worker: &engine.Worker{ID: id, Namespace: "default"}, Queues: queues, Types: []string{"t"},
		Deliver: func(task engine.Task) bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.gone {
				return false
			}
			d.tasks, d.times = append(d.tasks, task), append(d.times, time.Now())
			return true
		},
		Refused: func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.refused++
		},
	}
	for _, c := range change {
		c(&request)
	}
	d.Poller = r.Join(request)
	return d
}

// notify sends a notification of a queue and waits until everything is idle.
func (r fixture) notify(kind engine.NotificationKind, queue string) {
	r.Notify(engine.Notification{Kind: kind, Namespace: "default", Name: queue})
	synctest.Wait()
}

func wantClaims(t *testing.T, r fixture, when string, want int) {
	t.Helper()
	synctest.Wait()
	if got := r.store.claimed(); got != want {
		t.Errorf("%s: %d claims, want %d", when, got, want)
	}
}
