// Package coordinator does the periodic work of a server: it detects lost workers, times out
// attempts, ends runs at their deadlines, fires schedules, and deletes old runs. Nothing in its
// memory must survive a restart, and several servers may each run a coordinator on the same store.
//
// It sleeps until the next time at which something can be due, or until a notification says that
// there is an earlier one. If nothing can become due, it sends no queries.
package coordinator

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// store is the part of engine.Store that the coordinator needs.
type store interface {
	LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error)
	ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error)
	FreeLost(ctx context.Context, now time.Time) (engine.Freed, error)
	TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error)
	EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error)
	PauseDiverged(ctx context.Context, p engine.PauseDivergedParams) ([]engine.ID, error)
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]engine.Schedule, time.Time, error)
	FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error)
	ListNamespaces(ctx context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error)
	Prune(ctx context.Context, p engine.PruneParams) (int, error)
	PruneRecords(ctx context.Context, p engine.PruneRecordsParams) (bool, error)
	Health(ctx context.Context) error
	Now() time.Time
	Uncertainty() time.Duration
}

// Options configures a Coordinator. The zero value works.
type Options struct {
	// how often the clocks are compared while something can become due, and the pause after an
	// error; 0: 5 s
	Interval          time.Duration
	BatchSize         int           // attempts or runs per call of the store; 0: 100
	WorkerLease       time.Duration // how long a worker may be silent; 0: 30 s
	HeartbeatInterval time.Duration // of workers; 0: 10 s
	Retention         time.Duration // of ended runs, unless their namespace sets one; 0: forever
	AuditRetention    time.Duration // of audit events; 0: forever
	RequestRetention  time.Duration // of request ids of deleted runs; 0: forever
	CatchupRate       int           // missed ticks that fire per second, over all schedules; 0: 100
	// Net is how often everything is checked without a notification, for stores whose notifications
	// from other servers can be lost; 0: never.
	Net      time.Duration
	Clock    func() time.Time // monotonic clock for pauses and delays; nil: time.Now
	Log      *slog.Logger     // nil: none
	Observer Observer         // nil: none
}

// Observer is called for what the coordinator does. It is called from the goroutine of Run and must
// not block.
type Observer interface {
	// RunsExpired is called with runs that ended at their deadline or at the end of their grace.
	RunsExpired(e engine.Expired)
	// RunsDeleted is called with the number of runs deleted by retention.
	RunsDeleted(n int)
	// RunsDiverged is called with runs that were paused because each build in service has diverged.
	RunsDiverged(runs []engine.ID)
	// StepsTimedOut is called with attempts that timed out.
	StepsTimedOut(attempts []engine.TimedOutAttempt)
	// WorkerLost is called when a worker became OFFLINE because it was not heard from.
	WorkerLost()
	// LeasesLost is called with the number of freed runs of lost workers.
	LeasesLost(n int)
	// ScheduleFired is called for the ticks of a schedule. missed is how many of the ticks that
	// fired had been missed. late is how late the newest other one fired; negative: there was none.
	ScheduleFired(s *engine.Schedule, f engine.Fired, missed int, late time.Duration)
}

// nobody is the default Observer. It does nothing.
type nobody struct{}

func (nobody) RunsExpired(engine.Expired)                                       {}
func (nobody) RunsDeleted(int)                                                  {}
func (nobody) RunsDiverged([]engine.ID)                                         {}
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

// Coordinator does the upkeep of a store. Make it with New, run it with Run, and pass it every
// notification of the store with Notify.
type Coordinator struct {
	store   store
	options Options
	log     *slog.Logger
	wake    chan struct{} // capacity one

	mu       sync.Mutex
	notified notifications
	looks    Looks

	// The rest belongs to the goroutine of Run.
	net, workers, probe, lost, diverged, timeouts, expiry, schedules, prune *duty

	duties   []*duty // all duties, in the order in which they are done if several are due
	seen     map[string]liveness
	blind    bool // seen was cleared since the last check of workers
	backlogs map[engine.ID]backlog
	round    round
	// schedules that could not fire, and until when they are skipped, by the monotonic clock
	unable   map[engine.ID]time.Time
	catchup  allowance
	deletion deletion
	begun    time.Time // when Run began to listen, by the store's clock
	clock    clock
}

// notifications says what was notified since the last pass.
type notifications struct{ all, worker, timer, diverged bool }

// New returns a coordinator for s.
func New(s store, o Options) *Coordinator {
	c := &Coordinator{store: s, options: o.withDefaults(), wake: make(chan struct{}, 1),
		seen: map[string]liveness{}, backlogs: map[engine.ID]backlog{}, unable: map[engine.ID]time.Time{}}
	c.catchup.rate = float64(c.options.CatchupRate)
	c.log = c.options.Log
	c.net = &duty{name: "check everything", run: c.lookAtEverything}
	c.workers = &duty{name: "find lost workers", run: c.lookForLost}
	c.probe = &duty{name: "check the health of the store", run: c.watchStore}
	c.lost = &duty{name: "free runs of lost workers", run: c.freeLost}
	c.diverged = &duty{name: "pause diverged runs", run: c.pauseDiverged}
	c.timeouts = &duty{name: "time out steps", run: c.timeoutSteps}
	c.expiry = &duty{name: "end expired runs", run: c.endExpired}
	c.schedules = &duty{name: "fire schedules", run: c.fireSchedules}
	c.prune = &duty{name: "delete old runs", run: c.pruneOld}
	c.duties = []*duty{c.net, c.workers, c.probe, c.lost, c.diverged, c.timeouts, c.expiry, c.schedules,
		c.prune}
	return c
}

// Notify passes a notification of the store to the coordinator. It does not block.
func (c *Coordinator) Notify(r engine.Notification) {
	c.mu.Lock()
	switch r.Kind {
	case engine.NotifyAll:
		c.notified.all = true
	case engine.NotifyWorker:
		c.notified.worker = true
	case engine.NotifyTimer:
		c.notified.timer = true
	case engine.NotifyDiverged:
		c.notified.diverged = true
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

// Run does what is due until ctx ends. It logs when errors of the store begin and when they are
// over, and continues meanwhile.
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

// Begin prepares for calls of Pass, which replace Run.
func (c *Coordinator) Begin() { c.begin() }

// Pass does what is due and returns how long nothing is due after that, at most Options.Interval.
// found is false if only a notification can make something due. Do not use it together with Run.
func (c *Coordinator) Pass(ctx context.Context) (wait time.Duration, found bool) {
	c.pass(ctx)
	wait, found = c.wait()
	c.clock.sleep(c.now().Add(wait), found)
	return wait, found
}

// now returns the time of the monotonic clock.
func (c *Coordinator) now() time.Time { return c.options.Clock() }

// begin plans the first pass: anything may have become due while no coordinator was running.
func (c *Coordinator) begin() {
	now := c.store.Now()
	c.begun = now
	c.dueNow(now)
	if c.options.Net > 0 {
		c.net.due = now.Add(c.options.Net)
	}
	c.prune.due, c.prune.ran = now.Add(firstPrune), c.now()
}

// dueNow makes every duty due that a notification can be about.
func (c *Coordinator) dueNow(now time.Time) {
	for _, d := range c.notifiedFor() {
		d.due = now
	}
}

// notifiedFor returns the duties that a notification can be about.
func (c *Coordinator) notifiedFor() []*duty {
	return []*duty{c.workers, c.lost, c.diverged, c.timeouts, c.expiry, c.schedules}
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

// heed plans the duties that the notifications are about.
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
			c.prune.hasten(now, mono, pruneEvery) // a namespace may have got a retention
		}
		if !c.deletion.until.IsZero() {
			c.deletion = deletion{} // a retention may have changed
		}
	}
	if notified.all || notified.timer {
		c.round.noLaterThan(now) // the current round began before the notification
	}
	if notified.timer {
		for _, d := range []*duty{c.timeouts, c.expiry, c.schedules} {
			d.hasten(now, mono, timerGap)
		}
	}
	if notified.worker || notified.diverged {
		c.diverged.hasten(now, mono, timerGap)
	}
	if notified.worker {
		// A worker that has just registered cannot be lost before a lease has passed.
		c.workers.noLaterThan(now.Add(c.options.WorkerLease))
	}
}

// wait returns how long nothing is due; false if nothing can become due.
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
