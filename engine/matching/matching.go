// Package matching matches waiting workers with due runs. Nothing in its memory must survive a
// restart.
//
// A Poller is a worker that waits. Pollers that can take the same runs form a group, whose single
// goroutine claims for all of them at once. So a hundred idle workers cost one query, and none at
// all without a notification. A store that makes a run may ask for a waiting poller (Offer) and
// give it the run in the same commit: a hand-off, or sync match.
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

// store is the part of engine.Store that the matcher needs.
type store interface {
	Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error)
	Release(ctx context.Context, p engine.ReleaseParams) error
	HeldBy(ctx context.Context, workerID string) ([]engine.Held, error)
	EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error)
	Now() time.Time
}

// Matcher delivers due runs to pollers. Make it with New, run it with Run, and pass it every
// notification of the store with Notify.
type Matcher struct {
	store    store
	log      *slog.Logger
	observer Observer
	wakeups  wakeups
	turns    turns
	kept     kept

	mu      sync.Mutex
	groups  map[string]*group
	queues  map[queueKey][]*group // the groups that serve each queue
	asked   int                   // rotates the group that Offer asks first
	ctx     context.Context       // of Run; nil before it
	closed  bool
	running sync.WaitGroup
}

type queueKey struct{ namespace, queue string }

// New returns a matcher that claims from s.
func New(s store, log *slog.Logger) *Matcher {
	return &Matcher{store: s, log: log, observer: nobody{}, groups: map[string]*group{},
		queues: map[queueKey][]*group{}, kept: kept{time: keepTime}}
}

// Observer is called for every claim, with its duration and the number of runs, and for runs that
// the matcher ended because they had expired. It is called from many goroutines and must not block.
type Observer interface {
	Claimed(took time.Duration, runs int, err error)
	RunsExpired(e engine.Expired)
}

// nobody is the default Observer. It does nothing.
type nobody struct{}

func (nobody) Claimed(time.Duration, int, error) {}
func (nobody) RunsExpired(engine.Expired)        {}

// Observe sets the observer. Call it before Run.
func (d *Matcher) Observe(o Observer) { d.observer = o }

// KeepTime sets a clock that wakes groups in addition to Go's timers, which are less exact. Call it
// before Run, which closes the clock at its end.
func (d *Matcher) KeepTime(c Clock) { d.wakeups.clock = c }

// Run serves the groups until ctx ends, and then waits for claims in progress.
func (d *Matcher) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.wakeups.start()
	for _, t := range d.groups {
		d.start(t)
	}
	d.mu.Unlock()
	defer d.wakeups.stop()

	<-ctx.Done()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.running.Wait()
	return nil
}

// start starts the goroutine of a group. d.mu is held.
func (d *Matcher) start(t *group) {
	if d.ctx == nil || d.closed {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	t.cancel = cancel
	d.running.Go(func() { t.run(ctx) })
}

// Notify wakes the groups that a notification of the store concerns. It does not block.
func (d *Matcher) Notify(r engine.Notification) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Kind {
	case engine.NotifyAll:
		for _, t := range d.groups {
			t.mark(r)
		}
	case engine.NotifyQueue, engine.NotifySlot:
		if r.Claimed {
			return
		}
		for _, t := range d.queues[queueKey{r.Namespace, r.Name}] {
			t.mark(r)
		}
	}
}

// Request describes the runs that a poller takes.
type Request struct {
	Worker *engine.Worker // its id, namespace, offers and limits
	Queues []string       // in order of preference
	Types  []string
	Keeps  int // parked runs that the worker keeps in memory; 0: none
	// Deliver is called with each task, from any goroutine; it must not block. If it returns false,
	// the worker is gone and the run is released. It may be called during and after Poller.Leave.
	Deliver func(engine.Task) bool
	// Refused is called when the store says that the worker is not ONLINE; it must not block. The
	// poller gets no more tasks.
	Refused func()
}

// Join adds a poller for a worker. It gets no tasks until it has credit.
func (d *Matcher) Join(r Request) *Poller {
	key := r.key()
	poller := &Poller{request: r, matcher: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.groups[key]
	if t == nil {
		t = newGroup(d, key, r)
		d.groups[key] = t
		for _, q := range r.Queues {
			in := queueKey{t.namespace, q}
			d.queues[in] = append(d.queues[in], t)
		}
		d.start(t)
	}
	poller.group = t
	t.join(poller)
	return poller
}

// key returns a key that is equal for requests that can take the same runs under the same limits.
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
	add(r.Worker.BuildID)
	b.WriteString(strconv.Itoa(r.Worker.QueueLimit))
	for _, name := range slices.Sorted(maps.Keys(r.Worker.TypeLimits)) {
		add(name, strconv.Itoa(r.Worker.TypeLimits[name]))
	}
	return b.String()
}

// Poller is one waiting worker in a group.
type Poller struct {
	request Request
	matcher *Matcher
	group   *group

	// Under group.mu.
	credit int
	place  *list.Element // in the group's ready list; nil without credit
	left   bool

	// Under matcher.kept.mu.
	kept list.List // the runs that its worker keeps in memory, oldest first
	gone bool
}

// Poll claims up to n runs that are due now, and returns when they are delivered. It is for workers
// that do not wait.
func (d *Matcher) Poll(ctx context.Context, r Request, n int) {
	t := newGroup(d, r.key(), r)
	poller := &Poller{request: r, matcher: d, group: t}
	t.join(poller)
	t.addCredit(poller, n)
	t.serve(ctx)
	t.leave(poller)
	t.lastTry(context.WithoutCancel(ctx))
}

// AddCredit allows n more tasks to be delivered to the poller.
func (s *Poller) AddCredit(n int) {
	s.group.addCredit(s, n)
}

// Look makes the group claim without a notification, in case notifications were lost. It is called
// at the worker's heartbeats and polls, so an idle server sends no other queries.
func (s *Poller) Look() {
	s.group.look(s)
}

// Leave removes the poller. A task that was claimed for it and is not yet delivered is released.
func (s *Poller) Leave() {
	d := s.matcher
	d.kept.leave(s)
	d.mu.Lock()
	defer d.mu.Unlock()
	if empty := s.group.leave(s); empty && d.groups[s.group.key] == s.group {
		d.drop(s.group)
	}
}

// drop ends an empty group. d.mu is held.
func (d *Matcher) drop(t *group) {
	delete(d.groups, t.key)
	for _, q := range t.queues {
		key := queueKey{t.namespace, q.name}
		d.queues[key] = slices.DeleteFunc(d.queues[key], func(other *group) bool { return other == t })
		if len(d.queues[key]) == 0 {
			delete(d.queues, key)
		}
	}
	if t.cancel != nil {
		t.cancel()
	}
}
