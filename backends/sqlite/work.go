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
func (s *Store) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	claimed, err := write(ctx, s, "Claim", 0, func(t *tx) (engine.Claimed, error) {
		c := claim{tx: t, p: &p}
		return c.run()
	})
	if len(claimed.Tasks) > 0 {
		engine.Failpoint("sqlite.after_claim")
	}
	return claimed, err
}

// claim is one Claim at work.
type claim struct {
	*tx
	p      *engine.ClaimParams
	grants []engine.Grant // of workers that are ONLINE
	lanes  []lane         // whose runs they could take
	out    engine.Claimed
}

// candidate is a due run.
type candidate struct {
	lane    *lane
	id      engine.ID
	due     time.Time
	starved bool
}

func (c *claim) run() (engine.Claimed, error) {
	if err := c.online(); err != nil || len(c.grants) == 0 {
		return c.out, err
	}
	c.meet()
	due, err := c.heads()
	if err != nil {
		return engine.Claimed{}, err
	}
	taken, err := c.choose(due)
	if err != nil {
		return engine.Claimed{}, err
	}
	for i, run := range taken {
		if err := c.take(run.id, c.grants[i]); err != nil {
			return engine.Claimed{}, err
		}
	}
	if err := c.tasks(taken); err != nil {
		return engine.Claimed{}, err
	}
	if len(taken) < len(c.grants) {
		c.out.Limited = len(due) > len(taken)
		c.out.NextDue, err = c.nextDue()
	}
	return c.out, err
}

//go:embed sql/get_worker_status.sql
var getWorkerStatusSQL string

// online sorts out the grants of workers that may get nothing.
func (c *claim) online() error {
	seen := make(map[string]bool, 1)
	for _, g := range c.p.Grants {
		online, known := seen[g.WorkerID]
		if !known {
			_, err := c.found(&getWorkerStatusSQL, func(r *row) error {
				online = engine.WorkerStatus(r.num()) == engine.WorkerOnline
				return nil
			}, text("worker_id", g.WorkerID))
			if err != nil {
				return err
			}
			seen[g.WorkerID] = online
			if !online {
				c.out.Offline = append(c.out.Offline, g.WorkerID)
			}
		}
		if online {
			c.grants = append(c.grants, g)
		}
	}
	return nil
}

// meet finds the lanes whose type is asked for and whose requirements the offers meet.
func (c *claim) meet() {
	for _, l := range c.known.queues[queueKey{c.p.Namespace, c.p.Queue}] {
		if slices.Contains(c.p.Types, l.kind) && engine.Meets(c.p.Offers, l.requirements) {
			c.lanes = append(c.lanes, l)
		}
	}
}

//go:embed sql/claim.sql
var claimSQL string

// heads is the due runs that could be among the first, in the order in which they are to be taken: of each lane as many as
// there are grants, and one more to tell whether any is left over.
func (c *claim) heads() ([]candidate, error) {
	var due []candidate
	for i := range c.lanes {
		l := &c.lanes[i]
		err := c.query(&claimSQL, func(r *row) error {
			head := candidate{lane: l, id: r.id(), due: r.time()}
			head.starved = c.p.Now.Sub(head.due) >= engine.StarvationAfter
			due = append(due, head)
			return nil
		}, num("lane_id", l.id), instant("now", engine.Micros(c.p.Now)), num("limit", len(c.grants)+1))
		if err != nil {
			return nil, err
		}
	}
	if len(c.lanes) > 1 {
		slices.SortFunc(due, func(a, b candidate) int {
			if a.starved != b.starved {
				if a.starved {
					return -1
				}
				return 1
			}
			return cmp.Or(cmp.Compare(b.lane.priority, a.lane.priority), a.due.Compare(b.due), slices.Compare(a.id[:], b.id[:]))
		})
	}
	return due, nil
}

// choose takes in order what the limits leave free.
func (c *claim) choose(due []candidate) ([]candidate, error) {
	free := len(c.grants)
	freeOf := map[string]int{}
	if len(due) == 0 {
		return nil, nil
	}
	if c.p.QueueLimit > 0 {
		running, err := c.running("")
		if err != nil {
			return nil, err
		}
		free = min(free, max(c.p.QueueLimit-running, 0))
	}
	var taken []candidate
	for _, run := range due {
		if len(taken) == free {
			break
		}
		if limit, limited := c.p.TypeLimits[run.lane.kind]; limited {
			if _, counted := freeOf[run.lane.kind]; !counted {
				running, err := c.running(run.lane.kind)
				if err != nil {
					return nil, err
				}
				freeOf[run.lane.kind] = limit - running
			}
			if freeOf[run.lane.kind] <= 0 {
				continue
			}
			freeOf[run.lane.kind]--
		}
		taken = append(taken, run)
	}
	return taken, nil
}

//go:embed sql/count_leases.sql
var countLeasesSQL string

// running counts the RUNNING runs of the queue, of one type or, when that is empty, of all.
func (c *claim) running(kind string) (n int, err error) {
	err = c.query(&countLeasesSQL, func(r *row) error {
		n = int(r.num())
		return nil
	}, text("namespace", c.p.Namespace), text("task_queue", c.p.Queue), text("workflow_type", kind))
	return n, err
}

//go:embed sql/claim_run.sql
var claimRunSQL string

//go:embed sql/insert_lease.sql
var insertLeaseSQL string

// take makes the run RUNNING under the grant's token.
func (c *claim) take(id engine.ID, g engine.Grant) error {
	now := instant("now", engine.Micros(c.p.Now))
	if _, err := c.exec(&claimRunSQL, idArg("run_id", id), text("worker_id", g.WorkerID), now); err != nil {
		return err
	}
	_, err := c.exec(&insertLeaseSQL, idArg("run_id", id), tokenArg("token", g.Token), text("worker_id", g.WorkerID), now)
	c.ringRun(id)
	return err
}

//go:embed sql/list_claimed.sql
var listClaimedSQL string

// tasks puts together what the workers get.
func (c *claim) tasks(taken []candidate) error {
	if len(taken) == 0 {
		return nil
	}
	now := engine.Micros(c.p.Now)
	place := make(map[engine.ID]int, len(taken))
	ids := make([]engine.ID, len(taken))
	for i, run := range taken {
		place[run.id], ids[i] = i, run.id
	}
	c.out.Tasks = make([]engine.Task, len(taken))
	err := c.query(&listClaimedSQL, func(r *row) error {
		run, err := readWholeRun(r)
		i := place[run.ID]
		c.out.Tasks[i] = engine.Task{
			Run: run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: c.grants[i].Token}, ClaimedAt: now,
		}
		return err
	}, text("run_ids", encodeIDs(ids)))
	for i := range c.out.Tasks {
		task := &c.out.Tasks[i]
		if err != nil || task.Run.Steps == 0 {
			continue
		}
		if err = c.wake(task.Run.ID, task.Run.Steps, now); err == nil {
			task.History, task.NextSequence, err = c.history(task.Run.ID, 0, c.p.HistoryBytes)
		}
	}
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

//go:embed sql/history.sql
var historySQL string

// history is the latest attempts from a sequence on, about so many bytes of them, and where the rest begins.
func (s session) history(run engine.ID, from int64, bytes int) (steps []engine.Step, next int64, err error) {
	last := int64(0)
	err = s.query(&historySQL, func(r *row) error {
		last = r.num()
		step, err := readStep(r)
		steps = append(steps, step)
		return err
	}, idArg("run_id", run), num("sequence", from), num("bytes", bytes))
	if n := len(steps); n > 0 && steps[n-1].Sequence < last {
		next = steps[n-1].Sequence + 1
	}
	return steps, next, err
}

//go:embed sql/get_receipt.sql
var getReceiptSQL string

//go:embed sql/insert_receipt.sql
var insertReceiptSQL string

// The verbs of receipts.
const (
	failRunVerb = "FailRun"
	releaseVerb = "Release"
	sleepVerb   = "Sleep"
)

// receipt is what the token's lease was ended by without ending the run.
type receipt struct {
	verb, content string
	retryAt       time.Time
}

func (t *tx) receipt(l engine.Lease) (rec receipt, err error) {
	_, err = t.found(&getReceiptSQL, func(r *row) error {
		rec = receipt{verb: r.text(), content: r.text(), retryAt: r.time()}
		return nil
	}, tokenArg("token", l.Token), idArg("run_id", l.RunID))
	return rec, err
}

func (t *tx) leaveReceipt(l engine.Lease, rec receipt) error {
	_, err := t.exec(&insertReceiptSQL, tokenArg("token", l.Token), idArg("run_id", l.RunID), text("verb", rec.verb),
		text("content", rec.content), instant("retry_at", rec.retryAt))
	return err
}

// Release hands the run back.
func (s *Store) Release(ctx context.Context, p engine.ReleaseParams) error {
	content := "due"
	if p.Park {
		content = "park"
	}
	_, err := write(ctx, s, "Release", 0, func(t *tx) (none struct{}, err error) {
		run, current, err := t.held(p.Lease)
		if err != nil {
			return none, err
		}
		if !current {
			_, err := t.repeatedReceipt(p.Lease, receipt{verb: releaseVerb, content: content})
			return none, err
		}
		if err := t.leaveReceipt(p.Lease, receipt{verb: releaseVerb, content: content}); err != nil {
			return none, err
		}
		if p.Park {
			return none, t.park(&run, p.Now)
		}
		return none, t.free(&run, due(p.Now), p.Now)
	})
	return err
}

// repeatedReceipt is the receipt of the lease if this very write left it, and otherwise why the write does not count.
func (t *tx) repeatedReceipt(l engine.Lease, want receipt) (receipt, error) {
	run, err := t.runState(l.Namespace, l.RunID)
	if err != nil {
		return receipt{}, err
	}
	rec, err := t.receipt(l)
	if err != nil || rec.verb == want.verb && rec.content == want.content {
		return rec, err
	}
	return receipt{}, t.endedOtherwise(l, &run, rec)
}
