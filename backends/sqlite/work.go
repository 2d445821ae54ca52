package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Claim looks at the heads of the lanes that the offers meet, and takes the first of them all.
// Where very many runs wait for slots of their concurrency keys, sorting them out takes several
// transactions, so that other writes come in between.
func (s *Store) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	c, err := s.claim(ctx, p)
	out := c.out
	for err == nil && c.unfinished {
		p.Slots = c.slots[len(c.taken):]
		if c, err = s.claim(ctx, p); err != nil && len(out.Tasks) > 0 {
			out.Limited = true // what was handed out is not taken back; the rest comes again
			return out, nil
		}
		out.Tasks, out.Offline = append(out.Tasks, c.out.Tasks...), append(out.Offline, c.out.Offline...)
		out.Limited, out.NextDue = c.out.Limited, c.out.NextDue
	}
	return out, err
}

// claim does not wait for the disk when no other write does. A claim that a power cut undoes has
// done no harm: the run is due as it was, nothing was recorded under the token, for the claim is on
// the disk before whatever is recorded later, and the token is refused from then on.
func (s *Store) claim(ctx context.Context, p engine.ClaimParams) (claim, error) {
	c, err := writeAs(ctx, s, &call{verb: "Claim", harmless: true}, func(t *tx) (claim, error) {
		c := claim{tx: t, p: &p}
		err := c.run()
		return c, err
	})
	if len(c.out.Tasks) > 0 {
		engine.Failpoint("sqlite.after_claim")
	}
	return c, err
}

// claim is one Claim at work.
type claim struct {
	*tx
	p          *engine.ClaimParams
	slots      []engine.ClaimSlot     // of workers that are ONLINE, for one run each
	lanes      []lane                 // whose runs they could take
	taken      []taken                // by the slots, in their order
	leased     int                    // of these: they have their leases
	keys       map[concurrencyKey]int // slots of concurrency keys in use
	hands      map[string]*engine.Suspects
	blocked    bool // a suspect was left, as no worker may hold it too
	gated      int  // runs that were found to wait for a slot
	unfinished bool // so many that the rest is for another transaction
	out        engine.Claimed
}

// taken is a run that a claim slot has got.
type taken struct {
	id    engine.ID
	fresh *engine.Run // nil: it is to be read
}

// candidate is a due run.
type candidate struct {
	lane    *lane
	id      engine.ID
	due     time.Time
	starved bool
	suspect engine.Suspect
}

func (c *claim) run() error {
	if err := c.online(); err != nil || len(c.slots) == 0 || c.queues.disabled(c.p.Namespace) {
		return err
	}
	c.meet()
	limited, nextSuspect, err := c.suspects()
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
	c.dueAt(nextSuspect)
	if c.blocked {
		c.dueAt(engine.Micros(c.p.Now).Add(engine.SuspectRetry))
	}
	return nil
}

// dueAt has the next claim be no later than at.
func (c *claim) dueAt(at time.Time) {
	if !at.IsZero() && (c.out.NextDue.IsZero() || at.Before(c.out.NextDue)) {
		c.out.NextDue = at
	}
}

//go:embed sql/get_worker_status.sql
var getWorkerStatusSQL string

// online sorts out the claim slots of workers that may get nothing.
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

// workerStatus is 0 for a worker that is not known.
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

// heads is the due runs that could be among the first, in the order in which they are to be taken:
// of each lane as many as there are claim slots left, and one more to tell whether any is left
// over; more of them once some were found to be gated.
func (c *claim) heads() ([]candidate, error) {
	limit := len(c.slots) - len(c.taken) + 1 + min(c.gated, maxGated)
	var due []candidate
	for i := range c.lanes {
		l := &c.lanes[i]
		l.ahead = 0
		err := c.query(&claimSQL, func(r *row) error {
			head := candidate{lane: l, id: r.id(), due: r.time()}
			head.starved = c.p.Now.Sub(head.due) >= engine.StarvationAfter
			due = append(due, head)
			l.ahead++
			return nil
		}, num("lane_id", l.id), instant("now", engine.Micros(c.p.Now)), num("limit", limit))
		if err != nil {
			return nil, err
		}
		l.more = l.ahead == limit
	}
	if len(c.lanes) > 1 {
		slices.SortFunc(due, inOrder)
	}
	return due, nil
}

// inOrder is the order in which runs are claimed.
func inOrder(a, b candidate) int {
	if a.starved != b.starved {
		if a.starved {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.lane.priority, a.lane.priority), a.due.Compare(b.due),
		slices.Compare(a.id[:], b.id[:]))
}

// choose takes in order what the limits leave free. again says that the heads of a lane were used
// up by runs that are gated now, so that what follows them is to be looked at before anything else
// is taken.
func (c *claim) choose(due []candidate) (again bool, err error) {
	free, err := c.free(len(due))
	if err != nil {
		return false, err
	}
	freeOf := map[string]int{}
	c.out.Limited = false
	for i, run := range due {
		if free == 0 {
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
		if fits, err := c.fits(run.suspect); err != nil {
			return false, err
		} else if !fits {
			c.blocked = true
			continue
		}
		taken, err := c.take(&due[i])
		if err != nil {
			return false, err
		}
		if taken {
			free--
			freeOf[run.lane.kind]--
		}
		if run.lane.ahead--; run.lane.ahead == 0 && run.lane.more && free > 0 {
			c.unfinished = c.gated >= maxGated
			return !c.unfinished, nil
		}
	}
	return false, nil
}

// free is how many more runs the claim slots and the queue's limit allow. What runs is counted
// before anything is taken: a run that was taken just now may have no lease yet.
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

// limited says that no more runs of a type are allowed; freeOf remembers how many are.
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

// running counts the RUNNING runs of the queue, of one type or, when that is empty, of all.
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

//go:embed sql/claim_run.sql
var claimRunSQL string

// take makes the run RUNNING under the next claim slot's token, unless no slot of its concurrency key is free.
func (c *claim) take(run *candidate) (bool, error) {
	to := c.slots[len(c.taken)]
	now := instant("now", engine.Micros(c.p.Now))
	args := []arg{idArg("run_id", run.id), text("worker_id", to.WorkerID), now, flag("counted", false)}
	statement := &claimRunSQL
	if run.suspect.Is() {
		statement = &claimSuspectSQL
	}
	made, err := c.direct(statement, args...)
	if err != nil {
		return false, err
	}
	if made == 0 {
		if slot, err := c.slot(run); err != nil || !slot {
			return false, err
		}
		args[3] = flag("counted", true)
		if _, err := c.exec(statement, args...); err != nil {
			return false, err
		}
	}
	if run.suspect.Is() {
		c.hands[to.WorkerID].Add(run.suspect)
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

// lease makes the leases that are still missing of the runs taken since the last time.
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

// nextDue is when the next run of the lanes becomes due.
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
