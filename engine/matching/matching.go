// Package matching matches waiting workers with due runs. It keeps no state that matters: restart it and nothing is lost.
//
// Workers that could take the same runs sit at one table, whose single goroutine claims for all of them at once; so a hundred
// idle workers cost one query, and nothing at all while nobody rings. A store that makes a run may as well take a grant for it there (Take),
// and hand it over in the same commit.
package matching

import (
	"container/list"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// store is what the dispatcher needs of engine.Store.
type store interface {
	Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error)
	Release(ctx context.Context, p engine.ReleaseParams) error
	HeldBy(ctx context.Context, workerID string) ([]engine.Held, error)
	EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error)
	Now() time.Time
}

// Dispatcher hands due runs to seats. Make it with New, run it with Run, and give it every ring of the store.
type Dispatcher struct {
	store    store
	log      *slog.Logger
	observer Observer
	alarm    alarm

	mu     sync.Mutex
	tables map[string]*table
	queues map[queueKey][]*table // the tables at which each queue is served
	asked  int                   // how often somebody took a grant: whom the next is asked of first goes round
	ctx    context.Context       // of Run; nil before it
	closed bool
	group  sync.WaitGroup
}

type queueKey struct{ namespace, queue string }

// New makes a dispatcher that claims from s.
func New(s store, log *slog.Logger) *Dispatcher {
	return &Dispatcher{store: s, log: log, observer: nobody{}, tables: map[string]*table{}, queues: map[queueKey][]*table{}}
}

// Observer hears of every claim: how long it took and how many runs it brought; and which runs ended here because their time was up. It is
// called from many goroutines and must not wait.
type Observer interface {
	Claimed(took time.Duration, runs int, err error)
	RunsExpired(e engine.Expired)
}

// nobody is the Observer of a dispatcher that has none.
type nobody struct{}

func (nobody) Claimed(time.Duration, int, error) {}
func (nobody) RunsExpired(engine.Expired)        {}

// Observe has o hear of the claims. Call it before Run.
func (d *Dispatcher) Observe(o Observer) { d.observer = o }

// KeepTime has tables woken by a clock besides the timers of Go, which are less exact. Call it before Run, which closes the clock in the end.
func (d *Dispatcher) KeepTime(c Clock) { d.alarm.clock = c }

// Run serves the tables until ctx ends, and then waits until no claim is under way.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.alarm.start()
	for _, t := range d.tables {
		d.start(t)
	}
	d.mu.Unlock()
	defer d.alarm.stop()

	<-ctx.Done()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.group.Wait()
	return nil
}

// start needs d.mu.
func (d *Dispatcher) start(t *table) {
	if d.ctx == nil || d.closed {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	t.cancel = cancel
	d.group.Go(func() { t.run(ctx) })
}

// Ring wakes the tables that a ring of the store concerns. It does not block.
func (d *Dispatcher) Ring(r engine.Ring) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Kind {
	case engine.RingAll:
		for _, t := range d.tables {
			t.rung(r)
		}
	case engine.RingQueue, engine.RingSlot:
		if r.Taken {
			return
		}
		for _, t := range d.queues[queueKey{r.Namespace, r.Name}] {
			t.rung(r)
		}
	}
}

// Request is what a seat wants to be given: runs of these queues, in order of preference, and types.
type Request struct {
	Worker *engine.Worker // its id, namespace, offers and limits
	Queues []string
	Types  []string
	// Deliver is called with each task, from any goroutine; it must not block. False means that the worker is gone: the run is
	// released. A call may be under way while the seat is left, so the function must know by itself when nobody listens.
	Deliver func(engine.Task) bool
	// Refused is called, likewise without blocking, when the store says that the worker is not ONLINE; the seat gets nothing any more.
	Refused func()
}

// Sit takes a place for a worker. It is given nothing until it has credit.
func (d *Dispatcher) Sit(r Request) *Seat {
	key := r.key()
	seat := &Seat{request: r, dispatcher: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[key]
	if t == nil {
		t = newTable(d, key, r)
		d.tables[key] = t
		for _, q := range r.Queues {
			in := queueKey{t.namespace, q}
			d.queues[in] = append(d.queues[in], t)
		}
		d.start(t)
	}
	seat.table = t
	t.join(seat)
	return seat
}

// key is equal for requests that could take the same runs under the same limits.
func (r *Request) key() string {
	var b strings.Builder
	add := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(strconv.Quote(p))
		}
		b.WriteByte(';')
	}
	add(r.Worker.Namespace)
	add(r.Queues...)
	add(slices.Sorted(slices.Values(r.Types))...)
	offers := r.Worker.Offers()
	slices.SortFunc(offers, func(a, b engine.Offer) int {
		return strings.Compare(a.Key+"\x00"+a.Value, b.Key+"\x00"+b.Value)
	})
	for _, o := range offers {
		add(o.Key, o.Value)
	}
	b.WriteString(strconv.Itoa(r.Worker.QueueLimit))
	for _, name := range slices.Sorted(maps.Keys(r.Worker.TypeLimits)) {
		add(name, strconv.Itoa(r.Worker.TypeLimits[name]))
	}
	return b.String()
}

// Seat is one worker's place at a table.
type Seat struct {
	request    Request
	dispatcher *Dispatcher
	table      *table

	// Under table.mu.
	credit int
	place  *list.Element // in the table's line; nil without credit
	left   bool
}

// Poll claims what is due now, up to n runs, and returns when all of it has been delivered: for a worker that does not wait.
func (d *Dispatcher) Poll(ctx context.Context, r Request, n int) {
	t := newTable(d, r.key(), r)
	seat := &Seat{request: r, dispatcher: d, table: t}
	t.join(seat)
	t.grant(seat, n)
	t.serve(ctx)
	t.leave(seat)
	t.lastTry(context.WithoutCancel(ctx))
}

// Grant adds credit: the right to be given so many more tasks.
func (s *Seat) Grant(n int) {
	s.table.grant(s, n)
}

// Look has the table look again although nobody rang: the safety net under lost rings, cast at the worker's heartbeats and
// polls, so that an idle server asks the database nothing in between.
func (s *Seat) Look() {
	s.table.look(s)
}

// Leave gives the place up. A task that was claimed for it by then and is not yet delivered is released.
func (s *Seat) Leave() {
	d := s.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if empty := s.table.leave(s); empty && d.tables[s.table.key] == s.table {
		d.drop(s.table)
	}
}

// drop ends an empty table. It needs d.mu.
func (d *Dispatcher) drop(t *table) {
	delete(d.tables, t.key)
	for _, q := range t.queues {
		key := queueKey{t.namespace, q.name}
		d.queues[key] = slices.DeleteFunc(d.queues[key], func(other *table) bool { return other == t })
		if len(d.queues[key]) == 0 {
			delete(d.queues, key)
		}
	}
	if t.cancel != nil {
		t.cancel()
	}
}
