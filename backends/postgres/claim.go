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
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// claimLooks limits how often a claim retries when other servers take the runs that it has chosen.
const claimLooks = 3

// Claim chooses among the heads of the lanes that the offers meet, and locks what it has chosen.
func (s *Store) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	if err := s.enter(); err != nil {
		return engine.Claimed{}, err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	c := claim{store: s, p: &p, slots: p.Slots, byAge: p.ByAge}
	return c.run()
}

// claim is one Claim in progress.
type claim struct {
	store *Store
	p     *engine.ClaimParams
	slots []engine.ClaimSlot // unused slots, of workers that are ONLINE as far as is known
	byAge int                // how many more runs to take by age
	out   engine.Claimed
	// waiting are the claimed runs to whose steps something may have happened while nobody held them,
	// or that their workers keep in memory
	waiting []engine.ID
	since   map[engine.ID]storelogic.Since // what happened to them
	keptDue time.Time                      // until when runs were left to workers that keep them
	whole   bool                           // the next look starts at the beginning of each lane
}

// look is what one transaction of a claim found.
type look struct {
	online     []string
	asked      int  // number of slots
	due        int  // due runs at the heads of the lanes
	candidates int  // those that slots and limits allow
	keyed      bool // some have a concurrency key, so they and the runs after them need pass; or runs apart are due
	bounded    bool // runs before the floors may have been skipped
	heads      []int64
	tasks      []engine.Task
	waiting    []engine.ID // claimed runs to whose steps something may have happened while nobody held them
	nextDue    time.Time
	apartDue   time.Time // when the next run apart becomes due, if slots are left
}

func (c *claim) run() (engine.Claimed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	err := c.take(ctx)
	if err != nil && len(c.out.Tasks) == 0 {
		return engine.Claimed{}, err
	}
	// Runs that were claimed before an error must reach their workers.
	if len(c.out.Tasks) > 0 {
		engine.Failpoint("postgres.after_claim")
	}
	err = c.read(ctx)
	return c.out, err
}

// take repeats lookOnce until no slot is left or nothing is due. It retries only a few times if
// other servers took the chosen runs.
func (c *claim) take(ctx context.Context) error {
	blocked := false // a suspect was left because no worker may hold it
	for futile := 0; len(c.slots) > 0; {
		found, err := c.lookOnce(ctx)
		if err != nil {
			return err
		}
		asked := len(workersOf(c.slots))
		c.use(found)
		if len(found.online) < asked {
			continue // without the slots of workers that are not ONLINE
		}
		if c.whole = found.bounded && found.candidates < found.asked; c.whole {
			continue
		}
		missed, limited := !found.keyed && found.candidates > len(found.tasks), false
		if found.keyed && len(c.slots) > 0 {
			passed, err := c.pass(ctx)
			if err != nil {
				return err
			}
			blocked = blocked || passed.blocked
			if passed.progress {
				continue
			}
			limited = passed.limited
			missed = passed.missed || !passed.apart && !passed.kept
		}
		if missed {
			if futile++; futile < claimLooks {
				continue
			}
		}
		if len(c.slots) > 0 {
			c.out.Limited = found.due > found.candidates && found.candidates < len(c.slots)+len(found.tasks)
			c.out.NextDue = found.nextDue
			c.dueAt(found.apartDue)
			c.dueAt(c.keptDue)
			c.out.Limited = c.out.Limited || limited || blocked
			if blocked {
				c.dueAt(c.p.Now.Add(engine.SuspectRetry))
			}
			if missed { // another transaction has them locked now, and may not claim them
				c.out.NextDue = c.p.Now.Add(10 * time.Millisecond)
			}
		}
		break
	}
	return nil
}

// dueAt makes NextDue at if that is earlier.
func (c *claim) dueAt(at time.Time) {
	if !at.IsZero() && (c.out.NextDue.IsZero() || at.Before(c.out.NextDue)) {
		c.out.NextDue = at
	}
}

// use keeps the claimed runs, and the slots that are left.
func (c *claim) use(found look) {
	used := map[engine.Token]bool{}
	for _, task := range found.tasks {
		used[task.Lease.Token] = true
	}
	c.out.Tasks, c.waiting = append(c.out.Tasks, found.tasks...), append(c.waiting, found.waiting...)
	c.byAge = max(0, c.byAge-len(found.tasks)) // these come first
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

// lookOnce is one transaction, retried when the database says that it did not happen.
func (c *claim) lookOnce(ctx context.Context) (look, error) {
	for attempt := 1; ; attempt++ {
		floored := c.store.floors.look(queueKey{c.p.Namespace, c.p.Queue}, c.whole)
		found := look{asked: len(c.slots), bounded: floored.bounded()}
		batch := &pgx.Batch{}
		c.queue(batch, floored, &found)
		engine.Failpoint("postgres.before_commit")
		err := c.store.pool.send(ctx, batch)
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

// queue adds the claim to the batch.
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
	a := merge(c.laneArgs(), args{
		"workers": workersOf(c.slots), "slot_workers": holders, "tokens": tokens, "limited_types": limited,
		"type_limits": limits, "queue_limit": int64(p.QueueLimit),
		"floor_lanes": floored.lanes, "floors": floored.from, "heads": int64(len(c.slots) + 1),
		"by_age": int64(c.byAge), "prefer": p.Prefer,
	})
	batch.Queue(claimSQL.text, claimSQL.bind(a)...).Query(func(rows pgx.Rows) error { return c.scan(rows, found) })
}

func (c *claim) limited() bool { return c.p.QueueLimit > 0 || len(c.p.TypeLimits) > 0 }

// laneArgs returns the arguments by which a claim finds its lanes.
func (c *claim) laneArgs() args {
	p := c.p
	keys, values := make([]string, len(p.Offers)), make([]string, len(p.Offers))
	for i, o := range p.Offers {
		keys[i], values[i] = o.Key, o.Value
	}
	return args{"namespace": p.Namespace, "task_queue": p.Queue, "types": p.Types, "offer_keys": keys,
		"offer_values": values, "mark": engine.BuildMark(p.BuildID), "now": micros(p.Now)}
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

// limitKey returns the advisory lock of a queue. If two queues share one by chance, they only wait
// for each other.
func limitKey(namespace, queue string) int64 {
	h := fnv.New64a()
	h.Write([]byte("kagzi claim\x00" + namespace + "\x00" + queue))
	return int64(h.Sum64())
}

// scan reads the rows of claim.sql.
func (c *claim) scan(rows pgx.Rows, found *look) error {
	for rows.Next() {
		var task engine.Task
		var waits bool
		first := []any{&found.online, &found.due, &found.candidates, &found.keyed, &found.heads, timeOf(&found.nextDue),
			timeOf(&found.apartDue)}
		places := slices.Concat(first, []any{tokenOf(&task.Lease.Token)}, runPlaces(&task.Run),
			payloadPlaces(&task.Run.Input), []any{&waits})
		claimed := rows.RawValues()[len(first)] != nil
		if !claimed {
			clear(places[len(first):]) // pgx skips a column whose place is nil
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		if claimed {
			c.complete(&task, waits, found)
		}
	}
	return rows.Err()
}

// complete sets the fields of a task that follow from its run, and adds it to what was found.
func (c *claim) complete(task *engine.Task, waits bool, found *look) {
	task.Lease.Namespace, task.Lease.RunID, task.ClaimedAt = task.Run.Namespace, task.Run.ID, c.p.Now
	found.tasks = append(found.tasks, *task)
	if waits || !c.kept(task).IsZero() {
		found.waiting = append(found.waiting, task.Run.ID)
	}
}

// kept returns the token under which the worker of a task's slot parked the run that it keeps.
func (c *claim) kept(task *engine.Task) engine.Token {
	for _, g := range c.p.Slots {
		if g.Token == task.Lease.Token {
			return c.p.KeptBy(g.WorkerID, task.Run.ID)
		}
	}
	return engine.Token{}
}

// read settles what happened while nobody held the claimed runs, and reads their histories. Nobody
// else writes to them now. If it fails, the leases exist, but nobody knows of them. The workers' next
// heartbeats do not name them, which frees them.
func (c *claim) read(ctx context.Context) error {
	err := c.settleWaiting()
	if err == nil {
		err = c.histories(ctx)
	}
	if err != nil {
		c.out = engine.Claimed{}
	}
	return err
}

// settleWaiting settles the steps of the claimed runs that may need it.
func (c *claim) settleWaiting() (err error) {
	if len(c.waiting) == 0 {
		return nil
	}
	kept := map[engine.ID]engine.Token{}
	for i := range c.out.Tasks {
		kept[c.out.Tasks[i].Run.ID] = c.kept(&c.out.Tasks[i])
	}
	c.since, err = c.store.settleClaimed(c.waiting, kept, c.p.Now)
	return err
}

// histories reads what the runs have recorded.
func (c *claim) histories(ctx context.Context) error {
	batch := &pgx.Batch{}
	for i := range c.out.Tasks {
		task := &c.out.Tasks[i]
		since, kept := c.since[task.Run.ID], c.kept(task)
		if task.Run.Steps > 0 && (!since.Knows(kept) || !task.SetSince(kept, since.Steps, c.p.HistoryBytes)) {
			queueHistory(batch, task.Run.ID, 0, c.p.HistoryBytes, &task.History, &task.NextSequence)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := c.store.pool.send(ctx, batch); err != nil {
		return translate("read the history of claimed runs", err)
	}
	return nil
}

//go:embed sql/get_history.sql
var historyText string

var historySQL = hot(historyText)

// queueHistory reads the latest attempts from a sequence on, about so many bytes of them, and the
// sequence of the rest.
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

// wholeLook is the number of looks of a queue after which one starts at the beginning of each lane
// again.
const wholeLook = 16

// floors stores, for each lane of a queue that has more due runs than were asked for, where the
// last look found the head; the next look starts there. This skips index entries of runs claimed
// since the last vacuum, which may be a minute's work. It never skips a run that this server makes
// due, because due is called before that write is answered. A run that another server makes due
// with an earlier time, or that a crash of the database gives back, is found within wholeLook
// looks. If fewer runs are found than were asked for, the floors are dropped.
type floors struct {
	mu     sync.Mutex
	queues map[queueKey]*queueFloors
}

type queueKey struct{ namespace, queue string }

// queueFloors exists while one of its lanes has a floor, or a look is running.
type queueFloors struct {
	lanes map[int64]int64 // times in microseconds
	looks int             // since the last from the beginning
	under map[*floored]struct{}
}

// floored is one look, and where it starts.
type floored struct {
	floors *floors
	key    queueKey
	lanes  []int64 // lanes that have a floor
	from   []int64
	lowest int64 // earliest time of a run that became due meanwhile
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

// bounded says whether runs may have been skipped.
func (l *floored) bounded() bool { return len(l.lanes) > 0 }

// end ends a look. heads holds pairs of a lane's id and its head's time. more: it found as many as
// were asked for, so there may be more. Otherwise the floors of all lanes that it knew or found are
// removed.
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

// dueRun describes a run that becomes due.
type dueRun struct {
	queueKey
	at int64 // in microseconds
}

// dueOf returns the runs that a group starts.
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

// due records runs that have become due, will be, or may have, when their transaction ends.
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
