// Package sandbox runs the real server in this process, on a clock that its owner sets. It is for
// demos, and for tests of programs that show a server. Hours pass in milliseconds, and the same
// seed and calls produce the same history with the same ids.
//
// A sandbox has no background work and need not be closed. A call has taken effect when it returns,
// the coordinator works when Upkeep is called, and workers claim runs by polling without waiting.
// The seed applies to the whole process (engine.SeedIDs): with two sandboxes at the same time, ids
// are valid but not reproducible.
package sandbox

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
)

// Hooks connect a store to a sandbox: the store takes the time from it, and calls it for each
// change.
type Hooks struct {
	Now func() time.Time
	// called when a run without a worker may be claimed from at on
	Due      func(namespace, queue string, at time.Time)
	Notify   func(engine.Notification)
	Outcomes engine.Outcomes
	Wrote    func() // called after each commit
}

// Options configures a Sandbox.
type Options struct {
	Seed    uint64
	Begin   time.Time // initial time of the clock
	Version string    // of the program
	// Open makes the store.
	Open func(Hooks) engine.Store
}

// upkeepEvery is the longest interval of the coordinator while something can become due.
const upkeepEvery = time.Minute

// Sandbox is a server with its clock. Make it with New or Snapshot.Open. Only one goroutine may
// move its time; any goroutine may call its server.
type Sandbox struct {
	seed    uint64
	version string
	clock   *clock
	store   engine.Store
	matcher *matching.Matcher
	server  *server.Server
	upkeep  *coordinator.Coordinator
	next    time.Time // when upkeep is next due; unset: at the next notification

	mu       sync.Mutex
	notified bool // since the last upkeep
}

// Snapshot is the state of a Sandbox. Any number of sandboxes can continue from it.
type Snapshot struct {
	options Options
	disk    rand.PCG
	due     dueRuns
	past    *server.Past
}

// New starts a new server.
func New(o Options) *Sandbox {
	return open(&Snapshot{options: o, disk: *rand.NewPCG(o.Seed, 1)})
}

func open(from *Snapshot) *Sandbox {
	o := from.options
	ids := o.Seed
	if from.past != nil {
		ids = ^ids // so that new ids differ from those of the snapshot
	}
	engine.SeedIDs(ids)
	disk := from.disk
	s := &Sandbox{
		seed: o.Seed, version: o.Version,
		clock: &clock{now: o.Begin, disk: rand.New(&disk), due: slices.Clone(from.due)},
	}
	s.store = o.Open(Hooks{
		Now: s.Now, Notify: s.notify, Outcomes: outcomes{s}, Wrote: s.clock.commit,
		Due: func(namespace, queue string, at time.Time) { s.clock.expect(dueRun{at, namespace, queue}) },
	})
	events := &server.Events{Clock: s.Now}
	log := slog.New(events.Handler(slog.DiscardHandler))
	s.matcher = matching.New(s.store, log)
	s.server = server.New(s.store, s.matcher, server.Options{
		Log: log, Version: o.Version, Events: events, Clock: s.Now, Past: from.past, Trusted: true, Facts: s.facts,
		AutoNamespaces: true,
	})
	s.upkeep = coordinator.New(s.store, coordinator.Options{
		Interval: upkeepEvery, Clock: s.Now, Log: log, Observer: s.server})
	s.matcher.Observe(s.server)
	s.upkeep.Begin()
	s.next = s.Now()
	if from.past == nil {
		log.Info("server started", "version", o.Version, "backend", "memory")
	}
	s.Upkeep()
	return s
}

// outcomes passes the outcomes of the store to the server.
type outcomes struct{ *Sandbox }

func (o outcomes) RunEnded(run engine.ID, e *engine.Ending) { o.server.RunEnded(run, e) }

func (o outcomes) SideEffects(e *engine.SideEffects) { o.server.SideEffects(e) }

// facts returns the server's facts for operators.
func (s *Sandbox) facts() []server.Fact {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return "nothing"
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	looks := s.upkeep.Looks()
	return []server.Fact{
		{Section: "coordinator", Name: "last pass", Value: moment(looks.At)},
		{Section: "coordinator", Name: "next due", Value: moment(looks.Next)},
		{Section: "coordinator", Name: "interval", Value: looks.Interval.String()},
		{Section: "settings", Name: "db", Value: "memory:", Source: "flag"},
		{Section: "settings", Name: "seed", Value: strconv.FormatUint(s.seed, 10), Source: "flag"},
		{Section: "settings", Name: "worker-lease", Value: "30s", Source: "default"},
		{Section: "settings", Name: "retention", Value: "0s", Source: "default"},
	}
}

// Snapshot returns the current state of the sandbox. Do not call its server meanwhile.
func (s *Sandbox) Snapshot() *Snapshot {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return &Snapshot{
		options: Options{Seed: s.seed, Version: s.version, Begin: s.clock.now}, disk: *rand.NewPCG(s.seed, 2),
		due:  slices.Clone(s.clock.due),
		past: s.server.Past(),
	}
}

// Open starts a server that continues from the snapshot. The store must hold a copy of the first
// one's data.
func (p *Snapshot) Open(store func(Hooks) engine.Store) *Sandbox {
	from := *p
	from.options.Open = store
	return open(&from)
}

// Direct returns a connection to the server. A call has taken effect when it returns.
func (s *Sandbox) Direct() grpc.ClientConnInterface { return s.server.Direct() }

// Now returns the time of the clock.
func (s *Sandbox) Now() time.Time { return s.clock.read() }

// SetNow moves the clock forward to t. It never moves it back.
func (s *Sandbox) SetNow(t time.Time) { s.clock.set(t) }

// Commits returns the number of commits.
func (s *Sandbox) Commits() uint64 {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.n
}

// NextDue returns when a run may next be claimed, as far as is known; unset if none may.
func (s *Sandbox) NextDue() time.Time { return s.clock.nextDue() }

// TakeDue returns the namespaces and queues in which runs may be claimed now. It returns each once.
func (s *Sandbox) TakeDue() [][2]string { return s.clock.takeDue() }

// notify passes a notification of the store to the server's parts.
func (s *Sandbox) notify(r engine.Notification) {
	s.matcher.Notify(r)
	s.server.Notify(r)
	s.upkeep.Notify(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notified = s.notified || r.Kind == engine.NotifyAll || r.Kind == engine.NotifyTimer ||
		r.Kind == engine.NotifyWorker || r.Kind == engine.NotifyDiverged
}

// Upkeep does the coordinator's work that is due now. It returns the latest time for its next call;
// unset if only another call of the server can make something due.
func (s *Sandbox) Upkeep() (next time.Time) {
	s.mu.Lock()
	due := s.notified || !s.next.IsZero() && !s.next.After(s.Now())
	s.notified = false
	s.mu.Unlock()
	if !due {
		return s.next
	}
	wait, found := s.upkeep.Pass(context.Background())
	if s.next = (time.Time{}); found {
		s.next = s.Now().Add(max(wait, time.Millisecond))
	}
	return s.next
}
