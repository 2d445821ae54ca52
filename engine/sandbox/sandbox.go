// Package sandbox runs the real server in this process, on a clock that its owner moves: for
// demonstrations, and for tests of whatever shows a server. Hours are played through in
// milliseconds, and the same seed and calls make the same history, to the last id.
//
// Nothing in it happens by itself, and nothing has to be closed. A call has been carried out when
// it returns; the coordinator works when Upkeep is called; runs are claimed by workers that poll
// without waiting. What is made of a seed is the process's (engine.SeedIDs): two sandboxes at work
// at a time each have sound ids, but not the same ones each time.
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

// Hooks are what a store must do for a sandbox: take the time from it, and tell it at once what has changed.
type Hooks struct {
	Now func() time.Time
	// a run is left without a worker, which may claim it from at on
	Due      func(namespace, queue string, at time.Time)
	Notify   func(engine.Notification)
	Outcomes engine.Outcomes
	Wrote    func() // a write has been committed
}

// Options of a Sandbox.
type Options struct {
	Seed    uint64
	Begin   time.Time // what the clock says at first
	Version string    // of the program
	// Open makes the store.
	Open func(Hooks) engine.Store
}

// upkeepEvery is how often the coordinator works at least while anything is waited for.
const upkeepEvery = time.Minute

// Sandbox is a server and its clock. Make it with New or Snapshot.Open. One goroutine moves its
// time; any may call its server.
type Sandbox struct {
	seed    uint64
	version string
	clock   *clock
	store   engine.Store
	matcher *matching.Matcher
	server  *server.Server
	upkeep  *coordinator.Coordinator
	next    time.Time // when upkeep is next due; unset: when a notification says so

	mu       sync.Mutex
	notified bool // since the last upkeep
}

// Snapshot is what a Sandbox was, to go on from as often as one likes.
type Snapshot struct {
	options Options
	disk    rand.PCG
	due     dueRuns
	past    *server.Past
}

// New starts a server that nobody has used yet.
func New(o Options) *Sandbox {
	return open(&Snapshot{options: o, disk: *rand.NewPCG(o.Seed, 1)})
}

func open(from *Snapshot) *Sandbox {
	o := from.options
	ids := o.Seed
	if from.past != nil {
		ids = ^ids // not those once more that there are
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

// outcomes passes on to the server what the store commits.
type outcomes struct{ *Sandbox }

func (o outcomes) RunEnded(run engine.ID, e *engine.Ending) { o.server.RunEnded(run, e) }

func (o outcomes) SideEffects(e *engine.SideEffects) { o.server.SideEffects(e) }

// facts are what an operator is told of the server.
func (s *Sandbox) facts() []server.Fact {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return "nothing"
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	looks := s.upkeep.Looks()
	return []server.Fact{
		{Section: "coordinator", Name: "last look", Value: moment(looks.At)},
		{Section: "coordinator", Name: "next due", Value: moment(looks.Next)},
		{Section: "coordinator", Name: "interval", Value: looks.Interval.String()},
		{Section: "settings", Name: "db", Value: "memory:", Source: "flag"},
		{Section: "settings", Name: "seed", Value: strconv.FormatUint(s.seed, 10), Source: "flag"},
		{Section: "settings", Name: "worker-lease", Value: "30s", Source: "default"},
		{Section: "settings", Name: "retention", Value: "0s", Source: "default"},
	}
}

// Snapshot is what the sandbox is now. Call it while nobody else calls its server.
func (s *Sandbox) Snapshot() *Snapshot {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return &Snapshot{
		options: Options{Seed: s.seed, Version: s.version, Begin: s.clock.now}, disk: *rand.NewPCG(s.seed, 2),
		due:  slices.Clone(s.clock.due),
		past: s.server.Past(),
	}
}

// Open starts a server that goes on from the snapshot. The store holds a copy of what the first one's held.
func (p *Snapshot) Open(store func(Hooks) engine.Store) *Sandbox {
	from := *p
	from.options.Open = store
	return open(&from)
}

// Direct is a way to the server by which a call has been carried out when it returns.
func (s *Sandbox) Direct() grpc.ClientConnInterface { return s.server.Direct() }

// Now is what the clock says.
func (s *Sandbox) Now() time.Time { return s.clock.read() }

// SetNow moves the clock to t, and never back.
func (s *Sandbox) SetNow(t time.Time) { s.clock.set(t) }

// Commits is how many there were.
func (s *Sandbox) Commits() uint64 {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.n
}

// NextDue is when a run may next be claimed, as far as is known; unset when none may.
func (s *Sandbox) NextDue() time.Time { return s.clock.nextDue() }

// TakeDue is the namespaces and queues in which runs may be claimed by now. It tells of each once.
func (s *Sandbox) TakeDue() [][2]string { return s.clock.takeDue() }

// notify passes a notification of the store on.
func (s *Sandbox) notify(r engine.Notification) {
	s.matcher.Notify(r)
	s.server.Notify(r)
	s.upkeep.Notify(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notified = s.notified || r.Kind == engine.NotifyAll || r.Kind == engine.NotifyTimer ||
		r.Kind == engine.NotifyWorker
}

// Upkeep does what the coordinator has to do by now, and is when it has to be called again at the
// latest; unset when only another call of the server can change that.
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
