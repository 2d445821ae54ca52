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
	// maxClaim bounds one claim, so that a large backlog reaches the workers in a stream and not in one lump.
	maxClaim = 100
	// lookEvery bounds how often heartbeats make a group look without a notification.
	lookEvery = 5 * time.Second
	// retryAfter is the pause after a claim that failed.
	retryAfter = time.Second
	// standBack is how long the queue of a claim that failed comes after the others.
	standBack = 5 * time.Second
)

// group is the pollers that could take the same runs.
type group struct {
	matcher   *Matcher
	key       string
	namespace string
	types     []string
	offers    []engine.Offer
	limited   bool               // by a limit of the queue or of a type
	cancel    context.CancelFunc // under matcher.mu
	notified  chan struct{}      // capacity one

	mu      sync.Mutex
	pollers map[*Poller]struct{}
	ready   list.List // of the pollers with credit, whoever is to be served next first
	queues  []*queue
	looked  time.Time // when a heartbeat last made it look
}

// queue is what a group knows of one of its queues.
type queue struct {
	name    string
	dirty   bool      // something may be due there: notified, or the last claim found as much as it could take
	claimed bool      // a claim from it is under way
	limited bool      // the last claim was stopped by a limit: look when a slot is free
	again   time.Time // after a failed claim: not before
	last    time.Time // until when the others come first, since the last claim failed
	due     time.Time // when the next run will be due, as the last claim said; zero: none known

	// unknown are the slots of claims of which nobody knows whether they counted, by token with their worker.
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

// shut takes all credit of a poller for good. It needs t.mu.
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

// addCreditLocked adds credit to a poller, which stands last if it had none. It needs t.mu.
func (t *group) addCreditLocked(s *Poller, n int) {
	if s.left {
		return
	}
	s.credit += n
	if s.place == nil && s.credit > 0 {
		s.place = t.ready.PushBack(s)
	}
}

// serveNext takes a credit of the poller that stands first, and puts it behind the others; nil when
// nobody has credit. It needs t.mu.
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

// stepOut takes a poller out of the ready list. It needs t.mu.
func (t *group) stepOut(s *Poller) {
	if s.place != nil {
		t.ready.Remove(s.place)
		s.place = nil
	}
}

// mark marks the queues that a notification is about; the notification is of this group's
// namespace. A slot matters where a limit has stopped the last claim, or may be stopping the one
// under way, which has perhaps counted the lease that was over then.
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

// look marks all queues, if the poller has credit, at most every lookEvery.
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
	alarm := &t.matcher.alarm
	defer alarm.drop(t)
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
			alarm.set(t, wait)
		}
	}
}

// untilDue is how long until somebody here who has credit can be given something, as far as is known.
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

// serve claims from the queues, in order of preference, until nothing is due or nobody has credit.
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
			t.matcher.log.Warn("claim failed; trying again", "namespace", t.namespace, "queue", q.name, "error", err)
		}
	}
}

// suspect remembers the slots of a claim that failed: its answer may be all that was lost.
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

// resolve releases the runs that a claim of unknown outcome took from the queue after all; nobody
// was given them. False: the store does not answer.
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

// lastTry releases what is unknown before the group ends, but where a claim has just failed.
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

// leaveDirty notes that the queue is still to be looked at, but not before the pause is over.
func (t *group) leaveDirty(q *queue, pause time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.dirty, q.claimed = true, false
	if pause > 0 {
		now := time.Now()
		q.last, q.again = now.Add(standBack), now.Add(pause)
	}
}

// nextQueue is the first queue where something may be due, no longer marked; nil when there is
// none. One whose last claim failed has a pause, and comes last for a while, so that one which
// nothing can be claimed from keeps no other, nor a backlog of another this one for good.
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

// slots turns credit into slots, one for each poller after the other, so that a backlog is spread evenly.
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
	// Not the group's own context: a claim that has begun must be carried through, or its runs
	// would belong to nobody. The store bounds its own writes.
	return t.matcher.store.Claim(context.Background(), engine.ClaimParams{
		Namespace: t.namespace, Queue: q.name, Types: r.Types, Offers: r.Worker.Offers(),
		QueueLimit: r.Worker.QueueLimit, TypeLimits: r.Worker.TypeLimits,
		Slots: slots, HistoryBytes: engine.HistoryBytes, Now: t.matcher.store.Now(),
	})
}

// settle delivers what was claimed and gives the credit of the other slots back. Of a run whose
// time is up nothing is to begin any more: it ends.
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
				t.ready.MoveToFront(s.place) // before who was served, in the order in which they had stood
			}
		}
	}
	q.claimed, q.limited, q.due = false, claimed.Limited, claimed.NextDue
	// As many as could be taken, so there may be more; and where some slots did not count, nothing is known.
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

// refuse takes the credit of workers that the store does not know as ONLINE. It needs t.mu.
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

// deliver hands a task over, unless its poller was left meanwhile.
func (t *group) deliver(s *Poller, task engine.Task) bool {
	t.mu.Lock()
	left := s.left
	t.mu.Unlock()
	return !left && s.request.Deliver(task)
}

// endExpired ends the runs whose time is up. It is the coordinator's duty, which may be behind:
// after a downtime, or where very many end at once.
func (t *group) endExpired(ctx context.Context, now time.Time) {
	d := t.matcher
	for e := (engine.Expired{Runs: maxClaim}); e.Runs == maxClaim && ctx.Err() == nil; {
		var err error
		if e, err = d.store.EndExpired(context.WithoutCancel(ctx),
			engine.EndExpiredParams{Now: now, Limit: maxClaim}); err != nil {
			// The coordinator tries again; the next heartbeat of its worker does not name the run,
			// which frees it until then.
			d.log.Warn("expired runs could not be ended", "error", err)
			return
		}
		d.observer.RunsExpired(e)
	}
}

func (t *group) release(ctx context.Context, l engine.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := t.matcher.store.Release(ctx, engine.ReleaseParams{Lease: l, Now: t.matcher.store.Now()})
	if err != nil && !errors.Is(err, engine.ErrLeaseLost) { // whoever said goodbye has given its runs back already
		// The next heartbeat of its worker does not name the run, which frees it as well.
		t.matcher.log.Warn("run could not be handed back", "run", l.RunID, "error", err)
	}
}
