package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Claim reads the heads of the lanes that the offers meet, and takes the first of them all. If very
// many runs wait for slots of their concurrency keys, it takes several transactions, so that other
// writes get in between.
func (s *Store) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	c, err := s.claim(ctx, p)
	out := c.out
	for err == nil && c.unfinished {
		p.Slots, p.ByAge = c.slots[len(c.taken):], c.byAge
		if c, err = s.claim(ctx, p); err != nil && len(out.Tasks) > 0 {
			out.Limited = true // what was claimed is not taken back; the caller claims again
			return out, nil
		}
		out.Tasks, out.Offline = append(out.Tasks, c.out.Tasks...), append(out.Offline, c.out.Offline...)
		out.Limited, out.NextDue = c.out.Limited, c.out.NextDue
	}
	return out, err
}

// claim does not wait for the disk unless another write does. If a power cut undoes the claim, no
// harm is done: the run is due as before, and the token is refused. Nothing was recorded under the
// token, because the claim is on disk before any later write.
func (s *Store) claim(ctx context.Context, p engine.ClaimParams) (claim, error) {
	c, err := writeAs(ctx, s, &call{verb: "Claim", harmless: true}, func(t *tx) (claim, error) {
		c := claim{tx: t, p: &p, byAge: p.ByAge}
		err := c.run()
		return c, err
	})
	if len(c.out.Tasks) > 0 {
		engine.Failpoint("sqlite.after_claim")
	}
	return c, err
}

// claim is one Claim in progress.
type claim struct {
	*tx
	p          *engine.ClaimParams
	slots      []engine.ClaimSlot     // slots of ONLINE workers, for one run each
	lanes      []lane                 // the lanes whose runs the slots may take
	taken      []taken                // in the order of the slots
	leased     int                    // how many of these have their leases
	keys       map[concurrencyKey]int // places of concurrency keys that are taken
	gated      int                    // runs that were found to wait for a place
	held       map[string]*engine.Suspects
	blocked    bool      // a suspect was left because no worker may hold it
	kept       time.Time // until when runs were left to workers that keep them; zero: none were
	byAge      int       // how many more runs to take by age
	unfinished bool      // the rest is left to another transaction
	out        engine.Claimed
}

// taken is a run that a claim slot got.
type taken struct {
	id    engine.ID
	fresh *engine.Run // nil: it must be read
}

// candidate is a due run.
type candidate struct {
	lane    *lane
	id      engine.ID
	due     time.Time
	apart   bool
	suspect engine.Suspect
	decided bool // it was taken or gated
}

func (c *claim) run() error {
	if err := c.online(); err != nil || len(c.slots) == 0 || c.queues.disabled(c.p.Namespace) {
		return err
	}
	c.meet()
	limited, nextApart, err := c.takeApart()
	if err != nil {
		return err
	}
	for again := true; again; {
		due, err := c.heads()
		if err == nil {
			again, err = c.choose(due)
		}
		if err == nil {
			err = c.lease()
		}
		if err != nil {
			return err
		}
	}
	if err := c.tasks(); err != nil {
		return err
	}
	if len(c.taken) == len(c.slots) {
		c.out.Limited = false
		return nil
	}
	c.out.Limited = c.out.Limited || limited || c.blocked
	if c.out.NextDue, err = c.nextDue(); err != nil {
		return err
	}
	c.dueAt(nextApart)
	c.dueAt(c.kept)
	if c.blocked {
		c.dueAt(engine.Micros(c.p.Now).Add(engine.SuspectRetry))
	}
	return nil
}

// dueAt makes NextDue at if that is earlier.
func (c *claim) dueAt(at time.Time) {
	if !at.IsZero() && (c.out.NextDue.IsZero() || at.Before(c.out.NextDue)) {
		c.out.NextDue = at
	}
}

//go:embed sql/get_worker_status.sql
var getWorkerStatusSQL string

// online drops the claim slots of workers that may get nothing.
func (c *claim) online() error {
	seen := make(map[string]bool, 1)
	for _, g := range c.p.Slots {
		online, known := seen[g.WorkerID]
		if !known {
			status, err := c.workerStatus(g.WorkerID)
			if err != nil {
				return err
			}
			online = status == engine.WorkerOnline
			seen[g.WorkerID] = online
			if !online {
				c.out.Offline = append(c.out.Offline, g.WorkerID)
			}
		}
		if online {
			c.slots = append(c.slots, g)
		}
	}
	return nil
}

// workerStatus returns 0 for an unknown worker.
func (t *tx) workerStatus(id string) (status engine.WorkerStatus, err error) {
	_, err = t.session.found(&getWorkerStatusSQL, func(r *row) error {
		status = engine.WorkerStatus(r.num())
		return nil
	}, text("worker_id", id))
	return status, err
}

// meet finds the lanes whose type is asked for and whose requirements the offers meet.
func (c *claim) meet() {
	for _, l := range c.queues.lanesOf[queueKey{c.p.Namespace, c.p.Queue}] {
		if slices.Contains(c.p.Types, l.kind) && engine.Meets(c.p.Offers, l.requirements) {
			c.lanes = append(c.lanes, l)
		}
	}
}

//go:embed sql/claim.sql
var claimSQL string

// heads returns the due runs that may be among the first, by priority and then by age. Of each lane
// it reads as many as there are claim slots, and one more to tell whether any are left over; more
// once some were found to be gated.
func (c *claim) heads() ([]candidate, error) {
	limit := len(c.slots) - len(c.taken) + 1 + min(c.gated, maxGated)
	var due []candidate
	for i := range c.lanes {
		l := &c.lanes[i]
		l.ahead = 0
		err := c.query(&claimSQL, func(r *row) error {
			due = append(due, candidate{lane: l, id: r.id(), due: r.time()})
			l.ahead++
			return nil
		}, num("lane_id", l.id), instant("now", engine.Micros(c.p.Now)), num("limit", limit))
		if err != nil {
			return nil, err
		}
		l.more = l.ahead == limit
	}
	if len(c.lanes) > 1 {
		slices.SortFunc(due, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.lane.priority, a.lane.priority), byAge(&a, &b))
		})
	}
	return due, nil
}

func byAge(a, b *candidate) int {
	return cmp.Or(a.due.Compare(b.due), slices.Compare(a.id[:], b.id[:]))
}

// choose takes runs as far as limits allow: first those to take by age, then the others in claim
// order. again means that gated runs used up the heads of a lane, so that the runs after them must
// be read before anything else is taken.
func (c *claim) choose(due []candidate) (again bool, err error) {
	free, err := c.free(len(due))
	if err != nil {
		return false, err
	}
	order := make([]*candidate, len(due))
	for i := range due {
		order[i] = &due[i]
	}
	freeOf := map[string]int{}
	if c.byAge > 0 && len(c.lanes) > 1 { // in one lane both orders are the same
		aged := slices.Clone(order)
		slices.SortFunc(aged, byAge)
		if again, err = c.chooseIn(aged, true, &free, freeOf); again || c.unfinished || err != nil {
			return again, err
		}
	}
	return c.chooseIn(order, false, &free, freeOf)
}

// chooseIn is choose for runs in this order; with aged, only as many as must be taken by age.
func (c *claim) chooseIn(due []*candidate, aged bool, free *int, freeOf map[string]int) (again bool, err error) {
	c.out.Limited = false
	for _, run := range due {
		switch {
		case aged && c.byAge == 0:
			return false, nil
		case run.decided:
			continue
		case *free == 0:
			c.out.Limited = true
			return false, nil
		}
		limited, err := c.limited(run.lane.kind, freeOf)
		if err != nil {
			return false, err
		}
		if limited {
			c.out.Limited = true
			continue
		}
		if run.suspect.Is() {
			fits, err := c.fits(run.suspect)
			if err != nil {
				return false, err
			}
			if !fits {
				c.blocked = true
				continue
			}
		}
		if !run.suspect.Is() && !c.prefer(run) {
			continue
		}
		taken, err := c.take(run)
		if err != nil {
			return false, err
		}
		run.decided = true
		if taken {
			*free--
			freeOf[run.lane.kind]--
			c.byAge = max(0, c.byAge-1)
		}
		if run.lane.ahead--; run.lane.ahead == 0 && run.lane.more && *free > 0 {
			c.unfinished = c.gated >= maxGated
			return !c.unfinished, nil
		}
	}
	return false, nil
}

// free returns how many more runs the claim slots and the queue's limit allow. Leases are counted
// before anything is taken, because a run that was just taken may have no lease yet.
func (c *claim) free(due int) (int, error) {
	free := len(c.slots) - len(c.taken)
	if due == 0 || c.p.QueueLimit == 0 && len(c.p.TypeLimits) == 0 {
		return free, nil
	}
	running, err := c.running("")
	if c.p.QueueLimit == 0 {
		return free, err
	}
	return min(free, max(c.p.QueueLimit-running, 0)), err
}

// limited says whether a type has reached its limit; freeOf caches how many more runs of a type are
// allowed.
func (c *claim) limited(kind string, freeOf map[string]int) (bool, error) {
	limit, limited := c.p.TypeLimits[kind]
	if !limited {
		return false, nil
	}
	if _, counted := freeOf[kind]; !counted {
		running, err := c.running(kind)
		if err != nil {
			return false, err
		}
		freeOf[kind] = limit - running
	}
	return freeOf[kind] <= 0, nil
}

// running counts the RUNNING runs of the queue, of one type or, if that is empty, of all.
func (c *claim) running(kind string) (n int, err error) {
	kinds, err := c.tx.running(queueKey{c.p.Namespace, c.p.Queue})
	if kind != "" {
		return kinds[kind], err
	}
	for _, count := range kinds {
		n += count
	}
	return n, err
}

// prefer makes the slot of the worker that keeps the run in memory the next one. It returns false if
// the run is to be passed over, because that worker should get it.
func (c *claim) prefer(run *candidate) bool {
	left := c.slots[len(c.taken):]
	place, until := c.p.Choose(run.id, run.due, left)
	if !until.IsZero() {
		if c.kept.IsZero() || until.Before(c.kept) {
			c.kept = until
		}
		return false
	}
	slot := left[place]
	copy(left[1:place+1], left[:place])
	left[0] = slot
	return true
}

//go:embed sql/claim_run.sql
var claimRunSQL string

// take makes the run RUNNING under the next claim slot's token, unless its concurrency key has no
// free place.
func (c *claim) take(run *candidate) (bool, error) {
	to := c.slots[len(c.taken)]
	now := instant("now", engine.Micros(c.p.Now))
	args := []arg{idArg("run_id", run.id), text("worker_id", to.WorkerID), now, flag("counted", false)}
	statement := &claimRunSQL
	if run.apart {
		statement = &claimApartSQL
	}
	made, err := c.direct(statement, args...)
	if err != nil {
		return false, err
	}
	if made == 0 {
		if has, err := c.takePlace(run); err != nil || !has {
			return false, err
		}
		args[3] = flag("counted", true)
		if _, err := c.exec(statement, args...); err != nil {
			return false, err
		}
	}
	if run.suspect.Is() {
		c.held[to.WorkerID].Add(run.suspect)
	}
	c.notifyRun(run.id)
	delete(c.unclaimed, run.id)
	c.queues.leased(queueKey{c.p.Namespace, c.p.Queue}, run.lane.kind, 1)
	got := taken{id: run.id, fresh: c.recentRuns[run.id]}
	c.taken = append(c.taken, got)
	if got.fresh == nil {
		return true, nil
	}
	delete(c.recentRuns, run.id)
	return true, c.leaseRecent(got.fresh, to, engine.Micros(c.p.Now))
}

//go:embed sql/insert_leases.sql
var insertLeasesSQL string

// lease makes the missing leases of the runs taken since the last call.
func (c *claim) lease() error {
	n := len(c.taken)
	if c.leased == n {
		return nil
	}
	pairs := make([][]byte, 0, n-c.leased)
	for i := c.leased; i < n; i++ {
		if c.taken[i].fresh == nil {
			pairs = append(pairs, slices.Concat(c.taken[i].id[:], c.slots[i].Token[:]))
		}
	}
	if c.leased = n; len(pairs) == 0 {
		return nil
	}
	_, err := c.exec(&insertLeasesSQL, text("leases", encodeHex(pairs)), instant("now", engine.Micros(c.p.Now)))
	return err
}

//go:embed sql/next_due.sql
var nextDueSQL string

// nextDue returns when the next run of the lanes becomes due.
func (c *claim) nextDue() (next time.Time, err error) {
	for _, l := range c.lanes {
		err := c.query(&nextDueSQL, func(r *row) error {
			if at := r.time(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
			return nil
		}, num("lane_id", l.id), instant("now", engine.Micros(c.p.Now)))
		if err != nil {
			return time.Time{}, err
		}
	}
	return next, nil
}
