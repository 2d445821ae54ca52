package coordinator

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// fakeStore holds workers and timers in memory. Its time is that of the bubble, and can be set.
type fakeStore struct {
	mu      sync.Mutex
	notify  func(engine.Notification)
	offset  time.Duration
	outage  bool
	slow    time.Duration // how long each call takes
	workers map[string]time.Time
	offline map[string]time.Time // when each was deregistered
	// the worker, the namespace or its outcome ("default FAILED"), or the schedule, that the store
	// takes too long for
	heavy      string
	unanswered string      // worker that is deregistered, and nobody hears of it
	steps      []time.Time // when attempts time out
	ended      []time.Time // of the steps: when they did
	locked     bool        // another server is at the steps
	runs       []time.Time // when leases of lost workers end that outlive them
	freed      []time.Time
	old        int         // COMPLETED runs of "default" to delete
	atOnce     int         // of them, how many a call deletes; 0: as many as are wanted
	expire     []time.Time // when runs expire
	bad        []time.Time // of the steps and runs, those that the store cannot cope with
	expired    []time.Time
	pruned     []engine.PruneParams
	records    []engine.PruneRecordsParams
	changes    int // audit events to delete
	spaces     []engine.Namespace
	plans      map[engine.ID]*engine.Schedule
	fired      []fire
	diverged   int  // runs that no build in service can continue
	stale      bool // another server has fired first
	overlaps   bool // the run of an earlier tick is active, and ticks are skipped
	calls      map[string]int
	amid       func(call string) // what happens in the middle of a call
}

// fire is one run that a schedule started.
type fire struct {
	schedule engine.ID
	tick, at time.Time
}

func newFakeStore() *fakeStore {
	return &fakeStore{workers: map[string]time.Time{}, offline: map[string]time.Time{}, calls: map[string]int{},
		spaces: []engine.Namespace{{Name: "default", Enabled: true}}, plans: map[engine.ID]*engine.Schedule{}}
}

func (f *fakeStore) Uncertainty() time.Duration { return 0 }

func (f *fakeStore) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now()
}

func (f *fakeStore) now() time.Time { return time.Now().Add(f.offset).UTC().Truncate(time.Microsecond) }

// enter counts a call and returns an error during an outage.
func (f *fakeStore) enter(name string) error {
	f.mu.Lock()
	slow := f.slow
	f.calls[name]++
	f.mu.Unlock()
	time.Sleep(slow)
	f.mu.Lock() // held until the caller leaves
	if f.amid != nil {
		f.amid(name)
	}
	if f.outage {
		return engine.ErrUnavailable
	}
	return nil
}

func (f *fakeStore) Health(context.Context) error {
	defer f.mu.Unlock()
	return f.enter("Health")
}

func (f *fakeStore) LiveWorkers(context.Context) ([]engine.LiveWorker, error) {
	defer f.mu.Unlock()
	if err := f.enter("LiveWorkers"); err != nil {
		return nil, err
	}
	var live []engine.LiveWorker
	for _, id := range slices.Sorted(maps.Keys(f.workers)) {
		live = append(live, engine.LiveWorker{ID: id, HeardAt: f.workers[id]})
	}
	return live, nil
}

func (f *fakeStore) ForceOfflineWorker(_ context.Context, p engine.OfflineWorkerParams) (taken engine.Deregistered,
	err error) {
	defer f.mu.Unlock()
	if err := f.enter("ForceOfflineWorker"); err != nil {
		return taken, err
	}
	if p.WorkerID == f.heavy {
		return taken, engine.ErrUnavailable
	}
	heard, ok := f.workers[p.WorkerID]
	if _, off := f.offline[p.WorkerID]; !ok && off {
		return taken, nil
	}
	if !ok {
		return taken, engine.WorkerNotFound(p.WorkerID)
	}
	if heard.After(p.HeardAt) || p.Reason != engine.OfflineLost || p.Now.IsZero() {
		return taken, nil
	}
	delete(f.workers, p.WorkerID)
	f.offline[p.WorkerID] = time.Now()
	if p.WorkerID == f.unanswered {
		return taken, engine.ErrUnavailable
	}
	return engine.Deregistered{Off: true, Freed: 1}, nil
}

func (f *fakeStore) FreeLost(_ context.Context, now time.Time) (engine.Freed, error) {
	defer f.mu.Unlock()
	if err := f.enter("FreeLost"); err != nil {
		return engine.Freed{}, err
	}
	n, next, err := f.sweep(&f.runs, &f.freed, now, len(f.runs), 0)
	return engine.Freed{Runs: make([]engine.ID, n), Next: next}, err
}

func (f *fakeStore) PauseDiverged(_ context.Context, p engine.PauseDivergedParams) ([]engine.ID, error) {
	defer f.mu.Unlock()
	if err := f.enter("PauseDiverged"); err != nil {
		return nil, err
	}
	n := min(f.diverged, p.Limit)
	f.diverged -= n
	return make([]engine.ID, n), nil
}

func (f *fakeStore) TimeoutSteps(_ context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	defer f.mu.Unlock()
	if err := f.enter("TimeoutSteps"); err != nil {
		return engine.TimedOut{}, err
	}
	limit := p.Limit
	if f.locked {
		limit = 0
	}
	n, next, err := f.sweep(&f.steps, &f.ended, p.Now, limit, p.Skip)
	return engine.TimedOut{Attempts: make([]engine.TimedOutAttempt, n), Next: next}, err
}

// sweep moves due items from one list to the other: at most limit, after the first skip. It moves
// nothing if one of them is bad.
func (f *fakeStore) sweep(from, to *[]time.Time, now time.Time, limit, skip int) (n int, next time.Time, err error) {
	slices.SortFunc(*from, time.Time.Compare)
	left := (*from)[min(skip, len(*from)):]
	for n < min(limit, len(left)) && !left[n].After(now) {
		if slices.ContainsFunc(f.bad, left[n].Equal) {
			return 0, time.Time{}, engine.ErrUnavailable
		}
		n++
	}
	for range n {
		*to = append(*to, time.Now())
	}
	if n < len(left) {
		next = left[n]
	}
	*from = slices.Delete(*from, len(*from)-len(left), len(*from)-len(left)+n)
	return n, next, nil
}

func (f *fakeStore) Prune(_ context.Context, p engine.PruneParams) (int, error) {
	defer f.mu.Unlock()
	if err := f.enter("Prune"); err != nil {
		return 0, err
	}
	if p.Namespace == f.heavy || p.Namespace+" "+p.Status.String() == f.heavy {
		return 0, engine.ErrUnavailable
	}
	f.pruned = append(f.pruned, p)
	if p.Namespace != "default" || p.Status != engine.RunCompleted {
		return 0, nil
	}
	n := min(f.old, p.Limit, cmp.Or(f.atOnce, p.Limit))
	f.old -= n
	return n, nil
}

func (f *fakeStore) PruneRecords(_ context.Context, p engine.PruneRecordsParams) (bool, error) {
	defer f.mu.Unlock()
	if err := f.enter("PruneRecords"); err != nil {
		return false, err
	}
	f.records = append(f.records, p)
	n := min(f.changes, p.Limit)
	if p.Audit.IsZero() {
		n = 0
	}
	f.changes -= n
	return n == p.Limit, nil
}

func (f *fakeStore) ListNamespaces(_ context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	defer f.mu.Unlock()
	if err := f.enter("ListNamespaces"); err != nil {
		return nil, engine.PageInfo{}, err
	}
	var list []engine.Namespace
	for _, n := range f.spaces {
		if p.After == nil || n.Name > p.After.Name {
			list = append(list, n)
		}
	}
	more := len(list) > p.Limit
	return list[:min(len(list), p.Limit)], engine.PageInfo{HasNext: more}, nil
}

// EndExpired returns every second run as cancelled.
func (f *fakeStore) EndExpired(_ context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	defer f.mu.Unlock()
	if err := f.enter("EndExpired"); err != nil {
		return engine.Expired{}, err
	}
	before := len(f.expired)
	n, next, err := f.sweep(&f.expire, &f.expired, p.Now, p.Limit, p.Skip)
	cancelled := (before+n)/2 - before/2
	return engine.Expired{Runs: n, Cancelled: make([]engine.ID, cancelled), TimedOut: make([]engine.ID, n-cancelled),
		Next: next}, err
}

func (f *fakeStore) DueSchedules(_ context.Context, now time.Time, limit int) (due []engine.Schedule, next time.Time,
	err error) {
	defer f.mu.Unlock()
	if err := f.enter("DueSchedules"); err != nil {
		return nil, time.Time{}, err
	}
	for _, s := range f.plans {
		switch {
		case !s.Enabled || s.Broken != "" || s.NextFireAt.IsZero():
		case !s.FiresAt().After(now):
			due = append(due, *s)
		case next.IsZero() || s.FiresAt().Before(next):
			next = s.FiresAt()
		}
	}
	slices.SortFunc(due, func(a, b engine.Schedule) int { return a.FiresAt().Compare(b.FiresAt()) })
	return due[:min(limit, len(due))], next, nil
}

func (f *fakeStore) FireSchedule(_ context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	defer f.mu.Unlock()
	if err := f.enter("FireSchedule"); err != nil {
		return engine.Fired{}, err
	}
	if p.ScheduleID.String() == f.heavy {
		return engine.Fired{}, engine.ErrUnavailable
	}
	if p.Now.IsZero() || len(p.Ticks) > 2*firesAtOnce ||
		slices.ContainsFunc(p.Ticks, func(t engine.Tick) bool { return t.RunID.IsZero() }) {
		return engine.Fired{}, engine.Invalid("schedule", "has nothing that a store takes: %+v", p)
	}
	s := f.plans[p.ScheduleID]
	if f.stale || s == nil || s.Revision != p.Revision || !s.NextFireAt.Equal(p.Expect) {
		return engine.Fired{Stale: true}, nil
	}
	for _, tick := range p.Ticks {
		f.fired = append(f.fired, fire{s.ID, tick.At, p.Now})
	}
	s.NextFireAt, s.Delay, s.Broken = p.Next, p.Delay, p.Broken
	s.Skipped += p.Skipped
	if f.overlaps {
		return engine.Fired{Skipped: p.Skipped + int64(len(p.Ticks))}, nil
	}
	return engine.Fired{Runs: len(p.Ticks), Skipped: p.Skipped}, nil
}

// plan adds a schedule whose next tick is at next, and notifies as a store does.
func (f *fakeStore) plan(cronExpr string, catchup int, next time.Time) engine.ID {
	id := engine.NewID(time.Now())
	f.set(func() {
		f.plans[id] = &engine.Schedule{ID: id, Namespace: "default", CronExpr: cronExpr, Enabled: true,
			MaxCatchup: catchup, NextFireAt: next.UTC(), Revision: 1}
	})
	f.notify(engine.Notification{Kind: engine.NotifyTimer})
	return id
}

// fires returns what a schedule has fired.
// planned returns a schedule as it is now.
func (f *fakeStore) planned(id engine.ID) (plan engine.Schedule) {
	f.set(func() { plan = *f.plans[id] })
	return plan
}

func (f *fakeStore) fires(id engine.ID) (list []fire) {
	f.set(func() {
		for _, one := range f.fired {
			if one.schedule == id {
				list = append(list, one)
			}
		}
	})
	return list
}

// register adds a worker that is heard from now, and notifies as a store does.
func (f *fakeStore) register(id string) {
	f.mu.Lock()
	f.workers[id] = f.now()
	f.mu.Unlock()
	f.notify(engine.Notification{Kind: engine.NotifyWorker, Name: id})
}

// beat records a heartbeat, unless there is an outage or the worker is OFFLINE.
func (f *fakeStore) beat(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.workers[id]; ok && !f.outage {
		f.workers[id] = f.now()
	}
}

// beatEvery sends heartbeats of a worker until the test ends.
func (f *fakeStore) beatEvery(t *testing.T, id string, interval time.Duration) {
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(interval):
				f.beat(id)
			}
		}
	}()
}

func (f *fakeStore) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeStore) timeoutAt(t time.Time) {
	f.set(func() { f.steps = append(f.steps, t.UTC()) })
	f.notify(engine.Notification{Kind: engine.NotifyTimer})
}

func (f *fakeStore) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[name]
}

func (f *fakeStore) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.calls {
		n += calls
	}
	return n
}

// taken returns when a worker was made OFFLINE; false if it was not.
func (f *fakeStore) taken(id string) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.offline[id]
	return at, ok
}

// offlineIDs returns the workers that were deregistered.
func (f *fakeStore) offlineIDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.offline))
}

// moments returns a copy of one of the lists of times.
func (f *fakeStore) moments(list *[]time.Time) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(*list)
}

// asked returns how often each method was called.
func (f *fakeStore) asked() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

func (f *fakeStore) oldRuns() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.old
}

// withCoordinator runs a coordinator on a fake store in a bubble of its own.
func withCoordinator(t *testing.T, o Options, tell func(t *testing.T, f *fakeStore, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, log := newFakeStore(), &bytes.Buffer{}
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		c := New(f, o)
		f.notify = c.Notify
		done := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		tell(t, f, log)
		stop()
		if err := <-done; err != nil {
			t.Fatalf("Run ended with %v, want nil", err)
		}
	})
}

// failing makes the store fail for a second in the middle of a call, once.
func (f *fakeStore) failing(call string) {
	f.set(func() {
		f.amid = func(name string) {
			if name == call {
				f.amid, f.outage = nil, true
				time.AfterFunc(time.Second, func() { f.set(func() { f.outage = false }) })
			}
		}
	})
}

// pass lets time pass until everything is idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
