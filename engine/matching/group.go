package matching

import (
	"container/list"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// maxClaim limits the slots of one claim, so that a large backlog reaches the workers in
	// portions.
	maxClaim = 100
	// lookEvery is the shortest interval at which heartbeats make a group claim without a
	// notification.
	lookEvery = 5 * time.Second
	// retryAfter is the pause after a failed claim.
	retryAfter = time.Second
	// standBack is how long a queue comes after the others when a claim from it has failed.
	standBack = 5 * time.Second
)

// group holds the pollers that can take the same runs.
type group struct {
	matcher   *Matcher
	key       string
	namespace string
	types     []string
	offers    []engine.Offer
	limited   bool               // its workers have a limit for the queue or for a type
	cancel    context.CancelFunc // under matcher.mu
	notified  chan struct{}      // capacity one

	mu      sync.Mutex
	pollers map[*Poller]struct{}
	ready   list.List // the pollers with credit, in the order in which they are served
	queues  []*queue
	looked  time.Time // when a heartbeat last marked its queues
}

// queue is the state of one queue in a group.
type queue struct {
	name    string
	dirty   bool      // runs may be due: notified, or the last claim filled all slots
	claimed bool      // a claim from it is in progress
	limited bool      // a limit stopped the last claim: claim again when a slot is free
	again   time.Time // after a failed claim: not before this time
	last    time.Time // after a failed claim: until then the other queues come first
	due     time.Time // when the next run is due, from the last claim; zero: none known

	// unknown holds the slots of claims whose outcome is unknown: worker ids by token.
	unknown map[engine.Token]string
}

func newGroup(d *Matcher, key string, r Request) *group {
	t := &group{
		matcher: d, key: key, namespace: r.Worker.Namespace, types: r.Types, offers: r.Worker.Offers(),
		limited: r.Worker.QueueLimit > 0 || len(r.Worker.TypeLimits) > 0, notified: make(chan struct{}, 1),
		pollers: map[*Poller]struct{}{},
	}
	for _, q := range r.Queues {
		t.queues = append(t.queues, &queue{name: q, dirty: true})
	}
	return t
}

func (t *group) wake() {
	select {
	case t.notified <- struct{}{}:
	default: // already notified
	}
}

func (t *group) join(s *Poller) {
	t.mu.Lock()
	t.pollers[s] = struct{}{}
	t.mu.Unlock()
}

func (t *group) leave(s *Poller) (empty bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut(s)
	delete(t.pollers, s)
	return len(t.pollers) == 0
}

// shut takes all credit of a poller for good. t.mu is held.
func (t *group) shut(s *Poller) {
	s.left, s.credit = true, 0
	t.stepOut(s)
}

func (t *group) addCredit(s *Poller, n int) {
	t.mu.Lock()
	t.addCreditLocked(s, n)
	t.mu.Unlock()
	t.wake()
}

// addCreditLocked adds credit to a poller. If it had none, it goes to the end of the ready list.
// t.mu is held.
func (t *group) addCreditLocked(s *Poller, n int) {
	if s.left {
		return
	}
	s.credit += n
	if s.place == nil && s.credit > 0 {
		s.place = t.ready.PushBack(s)
	}
}

// serveNext returns the first poller of the ready list, takes one credit from it and moves it to
// the end; nil if no poller has credit. t.mu is held.
func (t *group) serveNext() *Poller {
	first := t.ready.Front()
	if first == nil {
		return nil
	}
	s := first.Value.(*Poller)
	if s.credit--; s.credit > 0 {
		t.ready.MoveToBack(first)
	} else {
		t.stepOut(s)
	}
	return s
}

// stepOut removes a poller from the ready list. t.mu is held.
func (t *group) stepOut(s *Poller) {
	if s.place != nil {
		t.ready.Remove(s.place)
		s.place = nil
	}
}

// mark marks the queues that a notification is about; it must be of this group's namespace. A free
// slot matters if a limit stopped the last claim. It also matters if a claim is in progress, which
// may have counted the lease that has just ended.
func (t *group) mark(r engine.Notification) {
	t.mu.Lock()
	found := false
	for _, q := range t.queues {
		if r.Kind == engine.NotifyAll || q.name == r.Name &&
			(r.Kind == engine.NotifyQueue || q.limited || t.limited && q.claimed) {
			q.dirty, found = true, true
		}
	}
	t.mu.Unlock()
	if found {
		t.wake()
	}
}

// look marks all queues if the poller has credit, at most once per lookEvery.
func (t *group) look(s *Poller) {
	now := time.Now()
	t.mu.Lock()
	due := s.credit > 0 && now.Sub(t.looked) >= lookEvery
	if due {
		t.looked = now
		for _, q := range t.queues {
			q.dirty = true
		}
	}
	t.mu.Unlock()
	if due {
		t.wake()
	}
}

// run serves the group until ctx ends.
func (t *group) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	wakeups := &t.matcher.wakeups
	defer wakeups.drop(t)
	for {
		select {
		case <-ctx.Done():
			t.lastTry(context.WithoutCancel(ctx))
			return
		case <-t.notified:
		case <-timer.C:
		}
		t.serve(ctx)
		timer.Stop()
		if wait, ok := t.untilDue(); ok {
			timer.Reset(wait)
			wakeups.set(t, wait)
		}
	}
}

// untilDue returns how long until a run is due for a poller with credit, as far as is known.
func (t *group) untilDue() (wait time.Duration, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready.Len() == 0 {
		return 0, false
	}
	now, mono := t.matcher.store.Now(), time.Now()
	for _, q := range t.queues {
		left := max(q.again.Sub(mono), 0) // of the pause
		if !q.dirty {
			left = max(q.due.Sub(now), left)
		}
		if waits := q.dirty && left > 0 || !q.dirty && !q.due.IsZero(); waits && (!found || left < wait) {
			wait, found = left, true
		}
	}
	return wait, found
}

// serve claims from the queues, in order of preference, until nothing is due or no poller has
// credit.
func (t *group) serve(ctx context.Context) {
	for ctx.Err() == nil {
		q := t.nextQueue()
		if q == nil {
			return
		}
		if !t.resolve(ctx, q) {
			t.leaveDirty(q, retryAfter)
			continue
		}
		pollers, slots := t.slots()
		if len(slots) == 0 {
			t.leaveDirty(q, 0)
			return
		}
		began := time.Now()
		claimed, err := t.claim(q, pollers[0].request, slots)
		t.matcher.observer.Claimed(time.Since(began), len(claimed.Tasks), err)
		t.settle(ctx, q, pollers, slots, claimed)
		if err != nil {
			t.leaveDirty(q, retryAfter)
			t.suspect(q, slots...)
			t.matcher.log.Warn("claim failed; trying again in 1s", "namespace", t.namespace, "queue", q.name,
				"error", err)
		}
	}
}

// suspect records the slots of a failed claim. The claim may have taken effect although its answer
// was lost.
func (t *group) suspect(q *queue, slots ...engine.ClaimSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.unknown == nil {
		q.unknown = map[engine.Token]string{}
	}
	for _, g := range slots {
		q.unknown[g.Token] = g.WorkerID
	}
}

// resolve releases the runs that claims of unknown outcome took from the queue, because they were
// not delivered. It returns false if the store does not answer.
func (t *group) resolve(ctx context.Context, q *queue) bool {
	t.mu.Lock()
	unknown := maps.Clone(q.unknown)
	t.mu.Unlock()
	asked := map[string]bool{}
	for _, worker := range unknown {
		if asked[worker] {
			continue
		}
		asked[worker] = true
		held, err := t.matcher.store.HeldBy(ctx, worker)
		if err != nil {
			return false
		}
		for _, h := range held {
			if _, mine := unknown[h.Lease.Token]; mine {
				t.release(ctx, h.Lease)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for token := range unknown {
		delete(q.unknown, token)
	}
	return true
}

// lastTry resolves unknown claims before the group ends, except in queues where a claim has just
// failed.
func (t *group) lastTry(ctx context.Context) {
	for _, q := range t.queues {
		t.mu.Lock()
		early := time.Now().Before(q.again)
		t.mu.Unlock()
		if !early {
			t.resolve(ctx, q)
		}
	}
}

// leaveDirty marks the queue to be claimed from again, but not before the pause is over.
func (t *group) leaveDirty(q *queue, pause time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.dirty, q.claimed = true, false
	if pause > 0 {
		now := time.Now()
		q.last, q.again = now.Add(standBack), now.Add(pause)
	}
}

// nextQueue returns the first queue in which runs may be due, and clears its mark; nil if there is
// none. After a failed claim a queue is skipped for a pause and comes last for a while. So a queue
// that always fails does not block the others, and a backlog in another queue does not block this
// one for good.
func (t *group) nextQueue() *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, mono := t.matcher.store.Now(), time.Now()
	var next *queue
	for _, q := range t.queues {
		due := q.dirty || !q.due.IsZero() && !q.due.After(now)
		if due && !mono.Before(q.again) && (next == nil || mono.Before(next.last) && !mono.Before(q.last)) {
			next = q
		}
	}
	if next != nil {
		next.dirty, next.claimed, next.limited, next.due, next.last = false, true, false, time.Time{}, time.Time{}
	}
	return next
}

// slots takes credit and returns one claim slot for each, taking pollers in turn so that a backlog
// is spread evenly.
func (t *group) slots() ([]*Poller, []engine.ClaimSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pollers []*Poller
	var slots []engine.ClaimSlot
	for len(slots) < maxClaim {
		s := t.serveNext()
		if s == nil {
			break
		}
		pollers = append(pollers, s)
		slots = append(slots, engine.ClaimSlot{WorkerID: s.request.Worker.ID, Token: engine.NewToken()})
	}
	return pollers, slots
}

func (t *group) claim(q *queue, r Request, slots []engine.ClaimSlot) (engine.Claimed, error) {
	turn := turnKey{t.key, q.name}
	byAge := t.matcher.turns.get(turn).ByAge()
	// The group's context is not used: an aborted claim would leave runs claimed that nobody knows
	// of. The store limits the time of its writes.
	kept, prefer := t.keptFor(q.name)
	claimed, err := t.matcher.store.Claim(context.Background(), engine.ClaimParams{
		Namespace: t.namespace, Queue: q.name, Types: r.Types, Offers: r.Worker.Offers(),
		BuildID:    r.Worker.BuildID,
		QueueLimit: r.Worker.QueueLimit, TypeLimits: r.Worker.TypeLimits,
		Slots: slots, ByAge: byAge, HistoryBytes: engine.HistoryBytes, Kept: kept, Prefer: prefer,
		Now: t.matcher.store.Now(),
	})
	for i := range claimed.Tasks {
		t.matcher.kept.claimed(claimed.Tasks[i].Run.ID)
	}
	if len(claimed.Tasks) > 0 {
		t.matcher.turns.count(turn, byAge, len(claimed.Tasks))
	}
	return claimed, err
}

// settle delivers the claimed runs and gives back the credit of the other slots. A run that has
// expired is not delivered; it ends.
func (t *group) settle(ctx context.Context, q *queue, pollers []*Poller, slots []engine.ClaimSlot,
	claimed engine.Claimed) {
	engine.Failpoint("matching.after_claim")
	byToken := make(map[engine.Token]*Poller, len(slots))
	for i, g := range slots {
		byToken[g.Token] = pollers[i]
	}
	served := make(map[*Poller]bool, len(claimed.Tasks))
	now, late := t.matcher.store.Now(), false
	for _, task := range claimed.Tasks {
		if at := task.Run.ExpiresAt(); !at.IsZero() && !at.After(now) {
			late = true
			continue
		}
		poller := byToken[task.Lease.Token]
		delete(byToken, task.Lease.Token)
		served[poller] = true
		if !t.deliver(poller, task) {
			t.release(ctx, task.Lease)
		}
	}
	if late {
		t.endExpired(ctx, now)
	}
	t.mu.Lock()
	for _, g := range slices.Backward(slots) {
		if s := byToken[g.Token]; s != nil {
			t.addCreditLocked(s, 1)
			if s.place != nil && !served[s] {
				t.ready.MoveToFront(s.place) // before the pollers that were served, in their old order
			}
		}
	}
	q.claimed, q.limited, q.due = false, claimed.Limited, claimed.NextDue
	// If all slots were filled, or some did not count, more runs may be due.
	q.dirty = q.dirty || len(claimed.Tasks) == len(slots) || len(claimed.Offline) > 0
	var refused []*Poller
	if len(claimed.Offline) > 0 {
		refused = t.refuse(claimed.Offline)
	}
	t.mu.Unlock()
	for _, s := range refused {
		if s.request.Refused != nil {
			s.request.Refused()
		}
	}
}

// refuse takes the credit of workers that are not ONLINE, and returns their pollers. t.mu is held.
func (t *group) refuse(offline []string) []*Poller {
	var refused []*Poller
	for s := range t.pollers {
		if slices.Contains(offline, s.request.Worker.ID) {
			t.shut(s)
			refused = append(refused, s)
		}
	}
	return refused
}

// deliver delivers a task, unless its poller has left.
func (t *group) deliver(s *Poller, task engine.Task) bool {
	t.mu.Lock()
	left := s.left
	t.mu.Unlock()
	return !left && s.request.Deliver(task)
}

// endExpired ends runs that have expired. That is the coordinator's task, but it may be late: after
// downtime, or when very many runs expire at once.
func (t *group) endExpired(ctx context.Context, now time.Time) {
	d := t.matcher
	for e := (engine.Expired{Runs: maxClaim}); e.Runs == maxClaim && ctx.Err() == nil; {
		var err error
		if e, err = d.store.EndExpired(context.WithoutCancel(ctx),
			engine.EndExpiredParams{Now: now, Limit: maxClaim}); err != nil {
			// The run stays claimed until the next heartbeat of its worker, which does not name it.
			d.log.Warn("expired runs could not be ended; the coordinator tries again", "error", err)
			return
		}
		d.observer.RunsExpired(e)
	}
}

func (t *group) release(ctx context.Context, l engine.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := t.matcher.store.Release(ctx, engine.ReleaseParams{Lease: l, Now: t.matcher.store.Now()})
	if err != nil && !errors.Is(err, engine.ErrLeaseLost) { // a deregistered worker has lost its leases already
		t.matcher.log.Warn("run could not be released; the next heartbeat of its worker releases it", "run", l.RunID,
			"error", err)
	}
}
