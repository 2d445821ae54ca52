// Package memory keeps runs, steps and workers in the memory of the program, for tests and
// demonstrations. It implements engine.Store: the operations that read before they write are
// package storelogic's, as in every backend, and the few that backends have statements of their own
// for are written here as plainly as can be. Nothing in it is fast, durable or hidden: a Database
// can be looked at whole, taken back by some commits, and served by several Stores at once, each of
// which may send its calls down a road of its own (Road), on which a simulation has them wait, fail
// or get lost.
package memory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// Database is the rows. Rows are never changed: a transaction puts new ones in their place and
// knows the old ones, so it can be undone.
type Database struct {
	mu         sync.Mutex
	runs       map[engine.ID]*Run
	requests   map[name]request
	workers    map[string]*engine.Worker
	losses     map[string]*engine.Loss // by worker; only of those that were lost, and only what was counted
	schedules  map[engine.ID]*engine.Schedule
	fires      map[Fire]fired
	namespaces map[string]*engine.Namespace
	keys       map[engine.ID]*engine.APIKey
	audit      map[engine.ID]engine.AuditEvent
	stores     []*Store
	options    Options
	commits    [][]func() // what undoes each of them, in order
}

// Run is a run's row, with all that belongs to it.
type Run struct {
	engine.Run
	FinalToken engine.Token
	TiedTo     bool
	Lease      *Lease // nil: nobody holds it
	Steps      []*engine.Step
	Signals    []engine.Signal
	Receipts   map[engine.Token]storelogic.Receipt
}

// Lease is who holds a run.
type Lease struct {
	Token      engine.Token
	Holder     string
	ClaimedAt  time.Time
	Progressed bool
}

// Fire is the record of a tick, by what makes it the only one.
type Fire struct {
	Schedule engine.ID
	Tick     time.Time
}

type fired struct {
	run engine.ID
	at  time.Time
}

// name is of something in a namespace.
type name struct{ namespace, name string }

// request is what was asked for under a request id, where the run that it was answered with does not tell.
type request struct {
	run   engine.ID
	start *engine.StartRun
}

// Options say how a Database differs from the plainest one.
type Options struct {
	Keep    int  // how many commits can be taken back (Lose)
	Endings bool // Outcomes hear how runs ended
	// Watch, if set, is told of every call that was carried out, refused ones too, before its
	// commit is known to anybody, and of what it has changed. It is called with the database
	// locked, and changes nothing.
	Watch func(c *Call, changes []Change)
	// Now, if set, is the clock in place of the machine's.
	Now func() time.Time
	// Due, if set, is told of each run that is left without a worker: its namespace and queue, and
	// from when on a worker may claim it.
	Due func(namespace, queue string, at time.Time)
	// Notify, if set, is told of every notification before the call that caused it returns.
	Notify   func(engine.Notification)
	Outcomes engine.Outcomes // hears the outcomes with Notify; nil: nobody does
	// Wrote, if set, is called after every commit with a call that writes, before that call returns.
	Wrote func()
}

// Change is what a call has made of a run. Old is nil where it made the run, New where it deleted it.
type Change struct{ Old, New *Run }

// New makes an empty database.
func New(o Options) *Database {
	return &Database{
		runs: map[engine.ID]*Run{}, requests: map[name]request{}, workers: map[string]*engine.Worker{}, losses: map[string]*engine.Loss{},
		schedules: map[engine.ID]*engine.Schedule{}, fires: map[Fire]fired{},
		namespaces: map[string]*engine.Namespace{},
		keys:       map[engine.ID]*engine.APIKey{}, audit: map[engine.ID]engine.AuditEvent{}, options: o,
	}
}

// Call is one call of a Store.
type Call struct {
	Verb    string
	Params  any // as the method of engine.Store has it; nil when it has none
	Write   bool
	Ticket  *engine.Ticket // nil: it stands behind nothing
	Handoff Handoff        // of StartRuns, once it was carried out
	Answer  any            // once it was carried out without an error
	Err     error

	do   func(*tx) error
	from *Store
}

// Commit carries calls out, in their order, in one transaction. One that is refused changes nothing
// and has its Err; the others happen.
func (d *Database) Commit(calls ...*Call) {
	d.mu.Lock()
	t := &tx{db: d, fresh: map[engine.ID]bool{}, old: map[engine.ID]*Run{}, effects: map[*engine.SideEffects]*Store{}}
	for _, c := range calls {
		undo, events := len(t.undo), len(t.events)
		t.call = c
		if c.Err = c.Ticket.Err(); c.Err == nil {
			c.Err = c.do(t)
		}
		if c.Err != nil {
			t.rollback(undo)
			t.events = t.events[:events]
		}
		c.Ticket.Resolve(c.Err)
		if d.options.Watch != nil {
			d.options.Watch(c, t.changes())
		}
		if d.options.Due != nil {
			t.tellDue()
		}
		clear(t.fresh)
		clear(t.old)
	}
	if d.options.Keep > 0 && len(t.undo) > 0 {
		d.commits = append(d.commits, t.undo)
		d.commits = d.commits[max(0, len(d.commits)-d.options.Keep):]
	}
	if d.options.Endings {
		t.addEndings()
	}
	stores, notify, outcomes, wrote := d.stores, d.options.Notify, d.options.Outcomes, d.options.Wrote
	d.mu.Unlock()
	if notify != nil {
		for i := range t.events {
			t.events[i].Tell(notify, outcomes)
		}
	}
	if wrote != nil && slices.ContainsFunc(calls, func(c *Call) bool { return c.Write }) {
		wrote()
	}
	if len(t.events) > 0 {
		for _, s := range stores {
			s.tell(t.eventsFor(s))
		}
	}
}

// Clone is a Database that has the same rows and nothing else of this one: no Stores, and no
// commits that can be taken back.
func (d *Database) Clone() *Database { return d.CloneWith(d.options) }

// CloneWith is Clone with other options.
func (d *Database) CloneWith(o Options) *Database {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Database{
		runs: maps.Clone(d.runs), requests: maps.Clone(d.requests), workers: maps.Clone(d.workers), losses: maps.Clone(d.losses),
		schedules: maps.Clone(d.schedules),
		fires:     maps.Clone(d.fires), namespaces: maps.Clone(d.namespaces), keys: maps.Clone(d.keys),
		audit: maps.Clone(d.audit), options: o,
	}
}

// Lose takes the last n commits back, as far as they are known, and returns how many it was.
func (d *Database) Lose(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n = min(n, len(d.commits))
	for range n {
		last := len(d.commits) - 1
		for _, undo := range slices.Backward(d.commits[last]) {
			undo()
		}
		d.commits = d.commits[:last]
	}
	return n
}

// Run is a run's row, nil when there is none. Nobody changes it.
func (d *Database) Run(id engine.ID) *Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}

// Runs is all rows of runs, by id.
func (d *Database) Runs() []*Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.runs), func(a, b *Run) int { return compareIDs(a.ID, b.ID) })
}

// Schedules is all schedules, by id.
func (d *Database) Schedules() []*engine.Schedule {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.schedules), func(a, b *engine.Schedule) int {
		return compareIDs(a.ID, b.ID)
	})
}

// Fires is which run each tick has made.
func (d *Database) Fires() map[Fire]engine.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	fires := make(map[Fire]engine.ID, len(d.fires))
	for f, row := range d.fires {
		fires[f] = row.run
	}
	return fires
}

// Latest is the latest attempt of a step; nil when it has not begun.
func (r *Run) Latest(name string) *engine.Step {
	for _, s := range r.Steps {
		if s.Name == name && s.Latest {
			return s
		}
	}
	return nil
}

// Store is one server's way to a Database. Its methods are those of engine.Store.
type Store struct {
	storelogic.Operations

	db        *Database
	road      Road
	listeners listeners

	closing sync.Once
	closed  chan struct{}
	fatal   chan struct{}
}

var _ engine.Store = (*Store)(nil)

// Road is how a call comes to its database: it has the call committed, or not, and returns what the caller is told.
type Road func(ctx context.Context, c *Call) error

// Open makes a Store. Without a road each call is a commit of its own, at once.
func (d *Database) Open(road Road) *Store {
	s := &Store{db: d, road: road, closed: make(chan struct{}), fatal: make(chan struct{})}
	s.Operations = storelogic.NewOperations(s.transact)
	if road == nil {
		s.road = func(_ context.Context, c *Call) error {
			d.Commit(c)
			c.Ticket.Admit()
			return c.Err
		}
	}
	d.mu.Lock()
	d.stores = append(slices.Clip(d.stores), s)
	d.mu.Unlock()
	return s
}

var errClosed = &engine.Error{Kind: engine.KindUnavailable, Message: "the database is closed"}

// call sends a call down the road.
func call[V any](ctx context.Context, s *Store, verb string, write bool, params any,
	do func(*tx) (V, error)) (V, error) {
	var none, out V
	select {
	case <-s.closed:
		return none, errClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return none, &engine.Error{Kind: engine.KindUnavailable, Message: "the caller stopped waiting: " + err.Error()}
	}
	c := &Call{Verb: verb, Params: params, Write: write, from: s}
	if p, ok := params.(interface{ GetTicket() *engine.Ticket }); ok {
		c.Ticket = p.GetTicket()
	}
	c.do = func(t *tx) (err error) {
		if out, err = do(t); err == nil {
			c.Answer = out
		}
		return err
	}
	if err := s.road(ctx, c); err != nil {
		return none, err
	}
	return out, nil
}

// transact carries out an operation of package storelogic.
func (s *Store) transact(ctx context.Context, c storelogic.Call, do func(storelogic.Tx) (any, error)) (any, error) {
	return write(ctx, s, c.Name, c.Params, func(t *tx) (any, error) { return do(t) })
}

func write[V any](ctx context.Context, s *Store, name string, params any, do func(*tx) (V, error)) (V, error) {
	return call(ctx, s, name, true, params, do)
}

func read[V any](ctx context.Context, s *Store, name string, do func(*tx) (V, error)) (V, error) {
	return call(ctx, s, name, false, nil, do)
}

// Now is the clock of the options, else the wall clock, or that of the bubble which the test runs in.
func (s *Store) Now() time.Time {
	if now := s.db.options.Now; now != nil {
		return engine.Micros(now())
	}
	return engine.Micros(time.Now())
}

// Health is nil until Close.
func (s *Store) Health(ctx context.Context) error {
	_, err := read(ctx, s, "Health", func(*tx) (none struct{}, err error) { return none, nil })
	return err
}

// Describe tells what little there is to tell.
func (s *Store) Describe(context.Context) (engine.Description, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	bytes := int64(1)
	for _, r := range s.db.runs {
		bytes += r.Bytes
	}
	return engine.Description{
		Backend: "memory", Version: "1", Database: "memory", Bytes: bytes, Schema: 1, Notifications: "in-process",
		Facts: []engine.Fact{{Name: "kept", Value: "until the program ends"}},
	}, nil
}

// Fatal is never closed.
func (s *Store) Fatal() <-chan struct{} { return s.fatal }

// Failure is nil.
func (s *Store) Failure() error { return nil }

// Close has later calls refused. The rows stay.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		s.db.stores = slices.DeleteFunc(slices.Clone(s.db.stores), func(other *Store) bool { return other == s })
	})
	return nil
}

// listeners are those who listen to a Store.
type listeners struct {
	mu   sync.Mutex
	list []*listener
}

type listener struct {
	events []storekit.Event
	wake   chan struct{} // capacity one
}

func (s *Store) tell(events []storekit.Event) {
	s.listeners.mu.Lock()
	defer s.listeners.mu.Unlock()
	for _, l := range s.listeners.list {
		l.events = append(l.events, events...)
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Gap has listeners miss the events that they have not been told of, and hear NotifyAll instead, as
// after a gap in listening.
func (s *Store) Gap() {
	s.listeners.mu.Lock()
	for _, l := range s.listeners.list {
		l.events = l.events[:0]
	}
	s.listeners.mu.Unlock()
	s.tell(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
}

// Listen sends NotifyAll first, because a new listener has missed what was before.
func (s *Store) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	l := &listener{events: storekit.Events(engine.Notification{Kind: engine.NotifyAll}), wake: make(chan struct{}, 1)}
	l.wake <- struct{}{}
	s.listeners.mu.Lock()
	s.listeners.list = append(s.listeners.list, l)
	s.listeners.mu.Unlock()
	defer func() {
		s.listeners.mu.Lock()
		s.listeners.list = slices.DeleteFunc(s.listeners.list, func(other *listener) bool { return other == l })
		s.listeners.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return errors.New("the database is closed")
		case <-l.wake:
		}
		s.listeners.mu.Lock()
		taken := l.events
		l.events = nil
		s.listeners.mu.Unlock()
		for i := range taken {
			taken[i].Tell(notify, o)
		}
	}
}

// RunSteps is how many steps the run counts.
func (r *Run) RunSteps() int64 { return r.Run.Steps }
