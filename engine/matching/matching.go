// Package matching matches waiting workers with due runs. It keeps no state that matters: restart
// it and nothing is lost.
//
// A Poller is a worker that waits. Pollers that could take the same runs form a group, whose single
// goroutine claims for all of them at once. So a hundred idle workers cost one query, and nothing
// at all without a notification. A store that makes a run may ask for a waiting poller (Offer) and
// hand the run over in the same commit: a hand-off, or sync match.
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

// store is what the matcher needs of engine.Store.
type store interface {
	Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error)
	Release(ctx context.Context, p engine.ReleaseParams) error
	HeldBy(ctx context.Context, workerID string) ([]engine.Held, error)
	EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error)
	Now() time.Time
}

// Matcher hands due runs to pollers. Make it with New, run it with Run, and give it every notification of the store.
type Matcher struct {
	store    store
	log      *slog.Logger
	observer Observer
	alarm    alarm

	mu      sync.Mutex
	groups  map[string]*group
	queues  map[queueKey][]*group // the groups at which each queue is served
	asked   int                   // how often Offer found somebody: the group that is asked first goes round
	ctx     context.Context       // of Run; nil before it
	closed  bool
	running sync.WaitGroup
}

type queueKey struct{ namespace, queue string }

// New makes a matcher that claims from s.
func New(s store, log *slog.Logger) *Matcher {
	return &Matcher{store: s, log: log, observer: nobody{}, groups: map[string]*group{},
		queues: map[queueKey][]*group{}}
}

// Observer hears of every claim: how long it took and how many runs it brought; and which runs
// ended here because their time was up. It is called from many goroutines and must not wait.
type Observer interface {
	Claimed(took time.Duration, runs int, err error)
	RunsExpired(e engine.Expired)
}

// nobody is the Observer of a matcher that has none.
type nobody struct{}

func (nobody) Claimed(time.Duration, int, error) {}
func (nobody) RunsExpired(engine.Expired)        {}

// Observe has o hear of the claims. Call it before Run.
func (d *Matcher) Observe(o Observer) { d.observer = o }

// KeepTime has groups woken by a clock besides the timers of Go, which are less exact. Call it
// before Run, which closes the clock in the end.
func (d *Matcher) KeepTime(c Clock) { d.alarm.clock = c }

// Run serves the groups until ctx ends, and then waits until no claim is under way.
func (d *Matcher) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.alarm.start()
	for _, t := range d.groups {
		d.start(t)
	}
	d.mu.Unlock()
	defer d.alarm.stop()

	<-ctx.Done()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.running.Wait()
	return nil
}

// start needs d.mu.
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

// Request is what a poller wants to be given: runs of these queues, in order of preference, and types.
type Request struct {
	Worker *engine.Worker // its id, namespace, offers and limits
	Queues []string
	Types  []string
	// Deliver is called with each task, from any goroutine; it must not block. False means that the
	// worker is gone: the run is released. A call may be under way while the poller is left, so the
	// function must know by itself when nobody listens.
	Deliver func(engine.Task) bool
	// Refused is called, likewise without blocking, when the store says that the worker is not
	// ONLINE; the poller gets nothing any more.
	Refused func()
}

// Join makes a poller for a worker. It is given nothing until it has credit.
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

// Poller is one waiting worker in a group.
type Poller struct {
	request Request
	matcher *Matcher
	group   *group

	// Under group.mu.
	credit int
	place  *list.Element // in the group's ready list; nil without credit
	left   bool
}

// Poll claims what is due now, up to n runs, and returns when all of it has been delivered: for a
// worker that does not wait.
func (d *Matcher) Poll(ctx context.Context, r Request, n int) {
	t := newGroup(d, r.key(), r)
	poller := &Poller{request: r, matcher: d, group: t}
	t.join(poller)
	t.addCredit(poller, n)
	t.serve(ctx)
	t.leave(poller)
	t.lastTry(context.WithoutCancel(ctx))
}

// AddCredit adds credit: the right to be given so many more tasks.
func (s *Poller) AddCredit(n int) {
	s.group.addCredit(s, n)
}

// Look has the group look again although nobody notified: the safety net under lost notifications,
// used at the worker's heartbeats and polls, so that an idle server asks the database nothing in
// between.
func (s *Poller) Look() {
	s.group.look(s)
}

// Leave ends the poller. A task that was claimed for it by then and is not yet delivered is released.
func (s *Poller) Leave() {
	d := s.matcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if empty := s.group.leave(s); empty && d.groups[s.group.key] == s.group {
		d.drop(s.group)
	}
}

// drop ends an empty group. It needs d.mu.
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
