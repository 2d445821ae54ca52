package postgres

import (
	"context"
	_ "embed"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// claimLooks is how often a claim looks for runs when rivals take what it has chosen.
const claimLooks = 3

// Claim chooses among the heads of the lanes that the offers meet, and locks what it has chosen.
func (s *Store) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	if err := s.enter(); err != nil {
		return engine.Claimed{}, err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	c := claim{store: s, p: &p, slots: p.Slots}
	return c.run()
}

// claim is one Claim at work.
type claim struct {
	store *Store
	p     *engine.ClaimParams
	slots []engine.ClaimSlot // that were not used yet, of workers that are ONLINE as far as is known
	out   engine.Claimed
	whole bool // the next look is to begin at the beginning of the lanes
}

// look is what one look found.
type look struct {
	online     []string
	asked      int // slots
	due        int // at the heads of the lanes
	candidates int // of those, what slots and limits allow
	// some of these have a concurrency key: they and what comes after them want a closer look; or suspects are due
	keyed      bool
	bounded    bool // what has come before the floors may have been passed
	heads      []int64
	tasks      []engine.Task
	nextDue    time.Time
	suspectDue time.Time // when the next suspect becomes due, as far as that matters
}

func (c *claim) run() (engine.Claimed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	err := c.take(ctx)
	if err != nil && len(c.out.Tasks) == 0 {
		return engine.Claimed{}, err
	}
	// What was claimed before an error must reach its workers.
	if len(c.out.Tasks) > 0 {
		engine.Failpoint("postgres.after_claim")
	}
	return c.out, c.histories(ctx)
}

// take looks until no slot is left, or nothing is due. Looks that only rivals made futile are few.
func (c *claim) take(ctx context.Context) error {
	for futile := 0; len(c.slots) > 0; {
		found, err := c.lookOnce(ctx)
		if err != nil {
			return err
		}
		asked := len(workersOf(c.slots))
		c.use(found)
		if len(found.online) < asked {
			continue // without the slots of workers that are gone
		}
		if c.whole = found.bounded && found.candidates < found.asked; c.whole {
			continue
		}
		missed, blocked := !found.keyed && found.candidates > len(found.tasks), false
		if found.keyed && len(c.slots) > 0 {
			passed, err := c.pass(ctx)
			if err != nil {
				return err
			}
			if passed.further {
				continue
			}
			blocked = passed.blocked
			missed = !blocked || passed.missed
		}
		if missed {
			if futile++; futile < claimLooks {
				continue
			}
		}
		if len(c.slots) > 0 {
			c.out.Limited = found.due > found.candidates && found.candidates < len(c.slots)+len(found.tasks)
			c.out.NextDue = found.nextDue
			c.dueAt(found.suspectDue)
			if blocked {
				c.out.Limited = true
				c.dueAt(c.p.Now.Add(engine.SuspectRetry))
			}
			if missed { // rivals hold them for the moment, and may let them go
				c.out.NextDue = c.p.Now.Add(10 * time.Millisecond)
			}
		}
		break
	}
	return nil
}

// dueAt has the next claim be no later than at.
func (c *claim) dueAt(at time.Time) {
	if !at.IsZero() && (c.out.NextDue.IsZero() || at.Before(c.out.NextDue)) {
		c.out.NextDue = at
	}
}

// use keeps what was found, and the slots that are left.
func (c *claim) use(found look) {
	used := map[engine.Token]bool{}
	for _, task := range found.tasks {
		used[task.Lease.Token] = true
	}
	c.out.Tasks = append(c.out.Tasks, found.tasks...)
	var left []engine.ClaimSlot
	for _, g := range c.slots {
		switch {
		case used[g.Token]:
		case slices.Contains(found.online, g.WorkerID):
			left = append(left, g)
		case !slices.Contains(c.out.Offline, g.WorkerID):
			c.out.Offline = append(c.out.Offline, g.WorkerID)
		}
	}
	c.slots = left
}

// lookOnce is one transaction, tried again when the database says that it did not happen.
func (c *claim) lookOnce(ctx context.Context) (look, error) {
	for attempt := 1; ; attempt++ {
		floored := c.store.floors.look(queueKey{c.p.Namespace, c.p.Queue}, c.whole)
		found := look{asked: len(c.slots), bounded: floored.bounded()}
		batch := c.store.newBatch()
		c.queue(batch, floored, &found)
		engine.Failpoint("postgres.before_commit")
		err := c.store.pool.SendBatch(ctx, batch).Close()
		floored.end(found.heads, err == nil && found.candidates == found.asked)
		if err == nil {
			engine.Failpoint("postgres.after_commit")
			events := make([]storekit.Event, len(found.tasks))
			for i := range found.tasks {
				events[i].Notification = engine.Notification{Kind: engine.NotifyRun, ID: found.tasks[i].Run.ID}
			}
			c.store.notifier.notify(events)
			return found, nil
		}
		if attempt == writeAttempts || !retryable(err) || !pause(ctx, attempt) {
			return look{}, translate("claim", err)
		}
	}
}

//go:embed sql/claim.sql
var claimText string

var claimSQL = hot(runColumns.Expand(claimText))

// queue fills the batch with the claim.
func (c *claim) queue(batch *pgx.Batch, floored *floored, found *look) {
	p := c.p
	if c.limited() {
		batch.Queue(lockKeysSQL, args{"keys": []int64{limitKey(p.Namespace, p.Queue)}})
	}
	holders, tokens := slotArrays(c.slots)
	var limited []string
	var limits []int64
	for kind, limit := range p.TypeLimits {
		limited, limits = append(limited, kind), append(limits, int64(max(limit, 0)))
	}
	a := merge(c.meeting(), args{
		"workers": workersOf(c.slots), "slot_workers": holders, "tokens": tokens, "limited_types": limited,
		"type_limits": limits, "queue_limit": int64(p.QueueLimit),
		"floor_lanes": floored.lanes, "floors": floored.from, "heads": int64(len(c.slots) + 1),
		"starved_since": micros(p.Now.Add(-engine.StarvationAfter)),
	})
	batch.Queue(claimSQL.text, claimSQL.bind(a)...).Query(func(rows pgx.Rows) error { return c.read(rows, found) })
}

func (c *claim) limited() bool { return c.p.QueueLimit > 0 || len(c.p.TypeLimits) > 0 }

// meeting is the arguments by which a claim finds its lanes.
func (c *claim) meeting() args {
	p := c.p
	keys, values := make([]string, len(p.Offers)), make([]string, len(p.Offers))
	for i, o := range p.Offers {
		keys[i], values[i] = o.Key, o.Value
	}
	return args{"namespace": p.Namespace, "task_queue": p.Queue, "types": p.Types, "offer_keys": keys,
		"offer_values": values, "now": micros(p.Now)}
}

func slotArrays(slots []engine.ClaimSlot) (workers []string, tokens [][16]byte) {
	workers, tokens = make([]string, len(slots)), make([][16]byte, len(slots))
	for i, g := range slots {
		workers[i], tokens[i] = g.WorkerID, g.Token
	}
	return workers, tokens
}

// workersOf returns the workers of the slots, each once.
func workersOf(slots []engine.ClaimSlot) []string {
	workers, _ := slotArrays(slots)
	slices.Sort(workers)
	return slices.Compact(workers)
}

// limitKey stands for a queue in advisory locks. Two queues that share one by chance wait for each other, no more.
func limitKey(namespace, queue string) int64 {
	h := fnv.New64a()
	h.Write([]byte("kagzi claim\x00" + namespace + "\x00" + queue))
	return int64(h.Sum64())
}

// read reads the rows of claim.sql.
func (c *claim) read(rows pgx.Rows, found *look) error {
	for rows.Next() {
		var task engine.Task
		first := []any{&found.online, &found.due, &found.candidates, &found.keyed, &found.heads, timeOf(&found.nextDue),
			timeOf(&found.suspectDue)}
		places := slices.Concat(first, []any{tokenOf(&task.Lease.Token)}, runPlaces(&task.Run),
			payloadPlaces(&task.Run.Input))
		claimed := rows.RawValues()[len(first)] != nil
		if !claimed {
			clear(places[len(first):]) // pgx passes over a column that has no place
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		if claimed {
			c.complete(&task)
			found.tasks = append(found.tasks, task)
		}
	}
	return rows.Err()
}

// complete sets what follows in a task from its run.
func (c *claim) complete(task *engine.Task) {
	task.Lease.Namespace, task.Lease.RunID, task.ClaimedAt = task.Run.Namespace, task.Run.ID, c.p.Now
}

// histories reads what the runs have recorded so far, after their claim: nobody else writes about them now.
func (c *claim) histories(ctx context.Context) error {
	batch := c.store.newBatch()
	queued := batch.Len()
	for i := range c.out.Tasks {
		task := &c.out.Tasks[i]
		if task.Run.Steps > 0 {
			queueHistory(batch, task.Run.ID, 0, c.p.HistoryBytes, &task.History, &task.NextSequence)
		}
	}
	if batch.Len() == queued {
		return nil
	}
	if err := c.store.pool.SendBatch(ctx, batch).Close(); err != nil {
		// The leases stand, but nobody knows of them: their workers' next heartbeats do not name
		// them, which frees them.
		c.out = engine.Claimed{}
		return translate("read the history of claimed runs", err)
	}
	return nil
}

//go:embed sql/get_history.sql
var historyText string

var historySQL = hot(historyText)

// queueHistory reads the latest attempts from a sequence on, about so many bytes of them, and where the rest begins.
func queueHistory(batch *pgx.Batch, run engine.ID, from int64, bytes int, steps *[]engine.Step, next *int64) {
	batch.Queue(historySQL.text, historySQL.bind(
		args{"run_id": [16]byte(run), "sequence": from, "bytes": int64(bytes)})...).
		Query(func(rows pgx.Rows) error {
			last := int64(0)
			for rows.Next() {
				var step engine.Step
				if err := rows.Scan(append([]any{&last}, stepPlaces(&step)...)...); err != nil {
					return err
				}
				*steps = append(*steps, step)
			}
			if n := len(*steps); n > 0 && (*steps)[n-1].Sequence < last {
				*next = (*steps)[n-1].Sequence + 1
			}
			return rows.Err()
		})
}

// wholeLook is which of a queue's looks, counted from the last that began at the beginning, begins
// there again, whatever is known.
const wholeLook = 16

// floors is where looks for due runs begin in the lanes of a queue that has more than is asked for:
// where the last one has found the head. It spares them what was claimed since the last vacuum,
// which may be a minute's work, but never hides a run of this server's: whatever makes one due says
// so before it is answered. One that another server makes due with an earlier time is found within
// wholeLook looks, and so is one that a crash of the database gives back; so is everything when
// fewer were found than asked for.
type floors struct {
	mu     sync.Mutex
	queues map[queueKey]*queueFloors
}

type queueKey struct{ namespace, queue string }

// queueFloors is there while one of its lanes has a floor, or somebody looks.
type queueFloors struct {
	lanes map[int64]int64 // times in microseconds
	looks int             // since the last from the beginning
	under map[*floored]struct{}
}

// floored is one look, and where it begins.
type floored struct {
	floors *floors
	key    queueKey
	lanes  []int64 // that have a floor
	from   []int64
	lowest int64 // what has become due meanwhile, at the earliest
}

// look begins a look. whole: at the beginning of each lane.
func (f *floors) look(key queueKey, whole bool) *floored {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[key]
	if q == nil {
		q = &queueFloors{lanes: map[int64]int64{}, under: map[*floored]struct{}{}}
		if f.queues == nil {
			f.queues = map[queueKey]*queueFloors{}
		}
		f.queues[key] = q
	}
	l := &floored{floors: f, key: key, lowest: math.MaxInt64}
	if q.looks++; whole || q.looks >= wholeLook {
		q.looks = 0
	} else {
		for lane, from := range q.lanes {
			l.lanes, l.from = append(l.lanes, lane), append(l.from, from)
		}
	}
	q.under[l] = struct{}{}
	return l
}

// bounded says that something may have been passed.
func (l *floored) bounded() bool { return len(l.lanes) > 0 }

// end says what a look has come to: the heads that it found, each behind its lane's id. more: as
// much as was asked for, so that there may be more. Otherwise the lanes that it knew of, and those
// that it found, have no floor from now on.
func (l *floored) end(heads []int64, more bool) {
	f := l.floors
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[l.key]
	delete(q.under, l)
	for _, lane := range l.lanes {
		delete(q.lanes, lane)
	}
	for i := 0; i+1 < len(heads); i += 2 {
		lane, head := heads[i], heads[i+1]
		delete(q.lanes, lane)
		if more {
			q.lanes[lane] = min(head, l.lowest)
		}
	}
	if len(q.lanes) == 0 && len(q.under) == 0 {
		delete(f.queues, l.key)
	}
}

// dueRun is what there is to say of a run that becomes due.
type dueRun struct {
	queueKey
	at int64 // microseconds
}

// dueOf is the runs that a group starts.
func dueOf(group []*call) (due []dueRun) {
	for _, c := range group {
		if c.start == nil {
			continue
		}
		for i := range c.start.starts {
			r := &c.start.starts[i]
			due = append(due, dueRun{queueKey{r.Namespace, r.Queue}, micros(r.AvailableAt)})
		}
	}
	return due
}

// due says which runs have become due, or will be, or may have: a transaction about them has come to its end.
func (f *floors) due(runs []dueRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queues) == 0 {
		return
	}
	for _, r := range runs {
		q := f.queues[r.queueKey]
		if q == nil {
			continue
		}
		for lane, from := range q.lanes {
			q.lanes[lane] = min(from, r.at)
		}
		for l := range q.under {
			l.lowest = min(l.lowest, r.at)
		}
	}
}
