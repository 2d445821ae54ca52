// Package memory keeps runs, steps and workers in the memory of the program, for tests and demos.
// It implements engine.Store. As in every backend, the operations that read before they write come
// from package storelogic; the few that backends do in statements of their own are written here as
// plainly as possible. The store is neither fast nor durable. A Database can be inspected whole,
// lose its last commits, and serve several Stores at once. Each Store may have a Transport, with
// which a simulation delays, fails or loses its calls.
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

// Database holds the rows. A row is never changed: a transaction replaces it and keeps the old one,
// so that it can be undone.
type Database struct {
	mu         sync.Mutex
	runs       map[engine.ID]*Run
	requests   map[name]request
	past       map[name]request // of deleted runs
	workers    map[string]*engine.Worker
	losses     map[string]*engine.Loss // by worker; only of those that were lost, and only what was counted
	schedules  map[engine.ID]*engine.Schedule
	fires      map[Fire]fired
	namespaces map[string]*engine.Namespace
	keys       map[engine.ID]*engine.APIKey
	sessions   map[engine.ID]engine.Session
	hooks      map[engine.ID]*engine.Hook
	audit      map[engine.ID]engine.AuditEvent
	stores     []*Store
	options    Options
	commits    [][]func() // what undoes each commit, in order
}

// Run is a run's row, with everything that belongs to it.
type Run struct {
	engine.Run
	FinalToken engine.Token
	TiedTo     bool
	Settled    int64  // number of results that were settled
	Lease      *Lease // nil: nobody holds it
	Steps      []*engine.Step
	Signals    []engine.Signal
	Receipts   map[engine.Token]storelogic.Receipt
}

// Lease names the worker that holds a run.
type Lease struct {
	Token      engine.Token
	Holder     string
	ClaimedAt  time.Time
	Progressed bool
}

// Fire identifies the record of a tick.
type Fire struct {
	Schedule engine.ID
	Tick     time.Time
}

type fired struct {
	run engine.ID
	at  time.Time
}

// name is the key of something in a namespace.
type name struct{ namespace, name string }

// request is what was asked for under a request id, if the answering run does not show it.
type request struct {
	run   engine.ID
	start *engine.StartRun
	made  time.Time
}

// Options change the default behaviour of a Database.
type Options struct {
	Keep    int  // how many commits Lose can undo
	Endings bool // Outcomes receive how runs ended
	// Watch, if set, is called for every call that was carried out, refused ones included, before
	// its commit is visible to anybody, with what it changed. The database is locked; Watch must
	// not change anything.
	Watch func(c *Call, changes []Change)
	// Now, if set, replaces the machine's clock.
	Now func() time.Time
	// Due, if set, is called for each run that is left without a worker, with its namespace, its
	// queue and the time from which a worker may claim it.
	Due func(namespace, queue string, at time.Time)
	// Notify, if set, is called for every notification before the call that caused it returns.
	Notify   func(engine.Notification)
	Outcomes engine.Outcomes // receives outcomes with Notify; nil: none
	// Wrote, if set, is called after every commit with a call that writes, before that call returns.
	Wrote func()
}

// Change is what a call changed of a run. Old is nil if it made the run, New if it deleted it.
type Change struct{ Old, New *Run }

// New returns an empty database.
func New(o Options) *Database {
	return &Database{
		runs: map[engine.ID]*Run{}, requests: map[name]request{}, past: map[name]request{},
		workers:   map[string]*engine.Worker{},
		losses:    map[string]*engine.Loss{},
		schedules: map[engine.ID]*engine.Schedule{}, fires: map[Fire]fired{},
		namespaces: map[string]*engine.Namespace{},
		keys:       map[engine.ID]*engine.APIKey{}, sessions: map[engine.ID]engine.Session{},
		hooks: map[engine.ID]*engine.Hook{},
		audit: map[engine.ID]engine.AuditEvent{}, options: o,
	}
}

// Call is one call of a Store.
type Call struct {
	Verb    string
	Params  any // of the method of engine.Store; nil if it has none
	Write   bool
	Ticket  *engine.Ticket // nil: the call has no place in a sequence
	Handoff Handoff        // of StartRuns, set once it was carried out
	Answer  any            // set once it was carried out without an error
	Err     error

	do   func(*tx) error
	from *Store
}

// Commit carries out calls in order, in one transaction. A call that is refused changes nothing and
// has its Err set; the others take effect.
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

// Clone returns a Database with the same rows, but without Stores and without commits to undo.
func (d *Database) Clone() *Database { return d.CloneWith(d.options) }

// CloneWith is Clone with other options.
func (d *Database) CloneWith(o Options) *Database {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Database{
		runs: maps.Clone(d.runs), requests: maps.Clone(d.requests), past: maps.Clone(d.past),
		workers:   maps.Clone(d.workers),
		losses:    maps.Clone(d.losses),
		schedules: maps.Clone(d.schedules),
		fires:     maps.Clone(d.fires), namespaces: maps.Clone(d.namespaces), keys: maps.Clone(d.keys),
		sessions: maps.Clone(d.sessions), hooks: maps.Clone(d.hooks), audit: maps.Clone(d.audit), options: o,
	}
}

// Lose undoes the last n commits, as far as they are kept, and returns how many.
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

// Run returns a run's row, or nil. The caller must not change it.
func (d *Database) Run(id engine.ID) *Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}

// Runs returns all rows of runs, by id.
func (d *Database) Runs() []*Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.runs), func(a, b *Run) int { return compareIDs(a.ID, b.ID) })
}

// Schedules returns all schedules, by id.
func (d *Database) Schedules() []*engine.Schedule {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.schedules), func(a, b *engine.Schedule) int {
		return compareIDs(a.ID, b.ID)
	})
}

// Fires returns the run that each tick started.
func (d *Database) Fires() map[Fire]engine.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	fires := make(map[Fire]engine.ID, len(d.fires))
	for f, row := range d.fires {
		fires[f] = row.run
	}
	return fires
}

// Latest returns the latest attempt of a step; nil if it has not begun.
func (r *Run) Latest(name string) *engine.Step {
	for _, s := range r.Steps {
		if s.Name == name && s.Latest {
			return s
		}
	}
	return nil
}

// Store is one server's connection to a Database. Its methods are those of engine.Store.
type Store struct {
	storelogic.Operations

	db        *Database
	transport Transport
	listeners listeners

	closing sync.Once
	closed  chan struct{}
	fatal   chan struct{}
}

var _ engine.Store = (*Store)(nil)

// Transport takes a call to its database: it may commit the call or not, and returns what the
// caller is told.
type Transport func(ctx context.Context, c *Call) error

// Open makes a Store. Without a transport each call is its own commit, at once.
func (d *Database) Open(transport Transport) *Store {
	s := &Store{db: d, transport: transport, closed: make(chan struct{}), fatal: make(chan struct{})}
	s.Operations = storelogic.NewOperations(s.transact)
	if transport == nil {
		s.transport = func(_ context.Context, c *Call) error {
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

// call sends a call through the transport.
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
	if err := s.transport(ctx, c); err != nil {
		return none, err
	}
	return out, nil
}

// transact runs an operation of package storelogic.
func (s *Store) transact(ctx context.Context, c storelogic.Call, do func(storelogic.Tx) (any, error)) (any, error) {
	return write(ctx, s, c.Name, c.Params, func(t *tx) (any, error) { return do(t) })
}

func write[V any](ctx context.Context, s *Store, name string, params any, do func(*tx) (V, error)) (V, error) {
	return call(ctx, s, name, true, params, do)
}

func read[V any](ctx context.Context, s *Store, name string, do func(*tx) (V, error)) (V, error) {
	return call(ctx, s, name, false, nil, do)
}

// Uncertainty returns 0, because Now reads the clock itself.
func (s *Store) Uncertainty() time.Duration { return 0 }

// Now returns the time by the clock of the options, or else the wall clock (in a synctest bubble,
// the bubble's clock).
func (s *Store) Now() time.Time {
	if now := s.db.options.Now; now != nil {
		return engine.Micros(now())
	}
	return engine.Micros(time.Now())
}

// Health returns nil until Close.
func (s *Store) Health(ctx context.Context) error {
	_, err := read(ctx, s, "Health", func(*tx) (none struct{}, err error) { return none, nil })
	return err
}

// Describe returns the few facts that there are.
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

// Fatal returns a channel that is never closed.
func (s *Store) Fatal() <-chan struct{} { return s.fatal }

// Failure returns nil.
func (s *Store) Failure() error { return nil }

// Close makes later calls fail. The rows stay.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		s.db.stores = slices.DeleteFunc(slices.Clone(s.db.stores), func(other *Store) bool { return other == s })
	})
	return nil
}

// listeners holds the listeners of a Store.
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

// Gap makes listeners lose their pending events and receive NotifyAll instead, as after a gap in
// listening.
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

// RunSteps returns how many steps the run counts.
func (r *Run) RunSteps() int64 { return r.Run.Steps }
