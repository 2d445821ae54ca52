// Package coordinator does what the passing of time asks for: workers that are not heard from are
// lost, attempts time out, deadlines pass, schedules tick, ended runs grow old. It keeps no state
// that matters: restart it and nothing is lost, and several servers may each run one on the same
// store.
//
// It sleeps until the next moment at which something can be due, or until a notification says that
// there is a new such moment. When nothing is to be waited for it asks the store nothing at all.
package coordinator

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// store is what the coordinator needs of engine.Store.
type store interface {
	LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error)
	ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error)
	FreeLost(ctx context.Context, now time.Time) (engine.Freed, error)
	TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error)
	EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error)
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]engine.Schedule, time.Time, error)
	FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error)
	ListNamespaces(ctx context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error)
	Prune(ctx context.Context, p engine.PruneParams) (int, error)
	PruneRecords(ctx context.Context, p engine.PruneRecordsParams) (bool, error)
	Health(ctx context.Context) error
	Now() time.Time
	Uncertainty() time.Duration
}

// Options are the lengths and sizes of the upkeep.
type Options struct {
	// how often the clocks are compared while something is waited for, and the pause after an error; 0: 5 s
	Interval          time.Duration
	BatchSize         int           // attempts or runs a sweep; 0: 100
	WorkerLease       time.Duration // how long a worker may be silent; 0: 30 s
	HeartbeatInterval time.Duration // how often workers beat; 0: 10 s
	Retention         time.Duration // how long ended runs are kept where their namespace does not say; 0: for good
	AuditRetention    time.Duration // how long audit events are kept; 0: for good
	CatchupRate       int           // missed ticks that fire in a second, over all schedules; 0: 100
	// Net is how often everything is looked at although nobody notified, for stores whose
	// notifications can be lost on the way from another server; 0: never.
	Net      time.Duration
	Clock    func() time.Time // by which pauses and delays are measured; nil: time.Now, which nobody can set
	Log      *slog.Logger     // nil: none
	Observer Observer         // nil: nobody
}

// Observer hears what the coordinator did that nobody asked for in a call. It is called from the
// goroutine of Run and must not wait.
type Observer interface {
	// RunsExpired tells that runs have ended by their deadline, or by the end of their grace.
	RunsExpired(e engine.Expired)
	// RunsDeleted tells that n runs are gone because they ended long ago.
	RunsDeleted(n int)
	// StepsTimedOut tells which attempts have run for too long.
	StepsTimedOut(attempts []engine.TimedOutAttempt)
	// WorkerLost tells that a worker was deregistered because it was not heard from.
	WorkerLost()
	// LeasesLost tells that n runs were freed whose workers had been lost.
	LeasesLost(n int)
	// ScheduleFired tells what became of the ticks of a schedule. missed is how many of those that
	// were to fire had been missed, and late how late the newest of the others was when its run had
	// been started; negative: there was none.
	ScheduleFired(s *engine.Schedule, f engine.Fired, missed int, late time.Duration)
}

// nobody is the Observer of a coordinator that has none.
type nobody struct{}

func (nobody) RunsExpired(engine.Expired)                                       {}
func (nobody) RunsDeleted(int)                                                  {}
func (nobody) StepsTimedOut([]engine.TimedOutAttempt)                           {}
func (nobody) WorkerLost()                                                      {}
func (nobody) LeasesLost(int)                                                   {}
func (nobody) ScheduleFired(*engine.Schedule, engine.Fired, int, time.Duration) {}

func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, 5*time.Second)
	o.BatchSize = cmp.Or(o.BatchSize, 100)
	o.WorkerLease = cmp.Or(o.WorkerLease, 30*time.Second)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 10*time.Second)
	o.CatchupRate = cmp.Or(o.CatchupRate, 100)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	return o
}

// Coordinator does the upkeep of a store. Make it with New, run it with Run, and give it every
// notification of the store.
type Coordinator struct {
	store   store
	options Options
	log     *slog.Logger
	wake    chan struct{} // capacity one

	mu       sync.Mutex
	notified notifications
	looks    Looks

	// The rest belongs to the goroutine of Run.
	net, workers, probe, lost, timeouts, expiry, schedules, prune *duty

	duties   []*duty // all of them, in the order in which they are done when several are due
	seen     map[string]liveness
	blind    bool // seen was forgotten since the last look
	backlogs map[engine.ID]backlog
	round    round
	// schedules that could not fire, and until when they are left alone, by the monotonic clock
	unable   map[engine.ID]time.Time
	catchup  allowance
	deletion deletion
	begun    time.Time // when Run began to listen, by the store's clock
	clock    clock
}

// notifications is what has been notified since the last pass.
type notifications struct{ all, worker, timer bool }

// New makes a coordinator of s.
func New(s store, o Options) *Coordinator {
	c := &Coordinator{store: s, options: o.withDefaults(), wake: make(chan struct{}, 1),
		seen: map[string]liveness{}, backlogs: map[engine.ID]backlog{}, unable: map[engine.ID]time.Time{}}
	c.catchup.rate = float64(c.options.CatchupRate)
	c.log = c.options.Log
	c.net = &duty{name: "look at everything", run: c.lookAtEverything}
	c.workers = &duty{name: "look for lost workers", run: c.lookForLost}
	c.probe = &duty{name: "watch the store", run: c.watchStore}
	c.lost = &duty{name: "free runs of lost workers", run: c.freeLost}
	c.timeouts = &duty{name: "time steps out", run: c.timeoutSteps}
	c.expiry = &duty{name: "end expired runs", run: c.endExpired}
	c.schedules = &duty{name: "fire schedules", run: c.fireSchedules}
	c.prune = &duty{name: "delete old runs", run: c.pruneOld}
	c.duties = []*duty{c.net, c.workers, c.probe, c.lost, c.timeouts, c.expiry, c.schedules, c.prune}
	return c
}

// Notify tells of a hint of the store. It does not block.
func (c *Coordinator) Notify(r engine.Notification) {
	c.mu.Lock()
	switch r.Kind {
	case engine.NotifyAll:
		c.notified.all = true
	case engine.NotifyWorker:
		c.notified.worker = true
	case engine.NotifyTimer:
		c.notified.timer = true
	default:
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // already notified
	}
}

// Run does what is due until ctx ends. Errors of the store are logged when they begin and when they
// are over; they do not end it.
func (c *Coordinator) Run(ctx context.Context) error {
	c.begin()
	for {
		c.pass(ctx)
		var moment <-chan time.Time
		wait, found := c.wait()
		if found {
			moment = time.After(wait)
		}
		c.clock.sleep(c.now().Add(wait), found)
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-moment:
		}
	}
}

// Begin starts upkeep that the caller does pass by pass with Pass, in place of Run.
func (c *Coordinator) Begin() { c.begin() }

// Pass does what is due and returns how long nothing is due after that, at most Options.Interval;
// false when only a notification can change that. It is not for a Coordinator that runs.
func (c *Coordinator) Pass(ctx context.Context) (wait time.Duration, found bool) {
	c.pass(ctx)
	wait, found = c.wait()
	c.clock.sleep(c.now().Add(wait), found)
	return wait, found
}

// now is by the clock for pauses and delays.
func (c *Coordinator) now() time.Time { return c.options.Clock() }

// begin plans the first pass, since nobody knows what has become due while no coordinator was at work.
func (c *Coordinator) begin() {
	now := c.store.Now()
	c.begun = now
	c.dueNow(now)
	if c.options.Net > 0 {
		c.net.due = now.Add(c.options.Net)
	}
	c.prune.due, c.prune.ran = now.Add(firstPrune), c.now()
}

// dueNow has everything looked at that a notification may tell of.
func (c *Coordinator) dueNow(now time.Time) {
	for _, d := range c.notifiedFor() {
		d.due = now
	}
}

// notifiedFor is the duties that a notification may tell of.
func (c *Coordinator) notifiedFor() []*duty {
	return []*duty{c.workers, c.lost, c.timeouts, c.expiry, c.schedules}
}

func (c *Coordinator) lookAtEverything(_ context.Context, now time.Time) (time.Time, error) {
	c.dueNow(now)
	return now.Add(c.options.Net), nil
}

// pass does every duty that is due.
func (c *Coordinator) pass(ctx context.Context) {
	c.checkClock()
	c.heed()
	at, begun, looked := c.store.Now(), c.now(), false
	for _, d := range c.duties {
		if ctx.Err() == nil && d.isDue(c.store.Now(), c.now()) {
			c.do(ctx, d)
			looked = true
		}
	}
	if looked {
		c.looked(at, c.now().Sub(begun))
	}
}

// heed plans what the notifications ask for.
func (c *Coordinator) heed() {
	c.mu.Lock()
	notified := c.notified
	c.notified = notifications{}
	c.mu.Unlock()

	now, mono := c.store.Now(), c.now()
	if notified.all {
		for _, d := range c.notifiedFor() {
			d.hasten(now, mono, c.options.Interval)
		}
		if c.prune.due.IsZero() {
			c.prune.hasten(now, mono, pruneEvery) // a namespace may have got a retention of its own
		}
		if !c.deletion.until.IsZero() {
			c.deletion = deletion{} // or another
		}
	}
	if notified.all || notified.timer {
		c.round.noLaterThan(now) // one that is under way was begun before
	}
	if notified.timer {
		for _, d := range []*duty{c.timeouts, c.expiry, c.schedules} {
			d.hasten(now, mono, timerGap)
		}
	}
	if notified.worker {
		// A worker that has just registered cannot be lost before a whole lease is over.
		c.workers.noLaterThan(now.Add(c.options.WorkerLease))
	}
}

// wait is how long nothing is due; false when there is nothing to wait for.
func (c *Coordinator) wait() (wait time.Duration, found bool) {
	now, mono := c.store.Now(), c.now()
	for _, d := range c.duties {
		if d.due.IsZero() {
			continue
		}
		if left := d.left(now, mono); !found || left < wait {
			wait, found = left, true
		}
	}
	c.planned(now, wait, found)
	return min(wait, c.options.Interval), found
}
