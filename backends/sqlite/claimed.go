package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_claimed.sql
var listClaimedText string

var listClaimedSQL = runColumns.Expand(listClaimedText)

//go:embed sql/any_waiting.sql
var anyWaitingSQL string

// tasks assembles the claimed tasks.
func (c *claim) tasks() error {
	if len(c.taken) == 0 {
		return nil
	}
	now := engine.Micros(c.p.Now)
	c.out.Tasks = make([]engine.Task, len(c.taken))
	put := func(i int, run engine.Run) {
		c.out.Tasks[i] = engine.Task{
			Run: run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: c.slots[i].Token},
			ClaimedAt: now,
		}
	}
	var unread []engine.ID
	place := map[engine.ID]int{}
	for i, run := range c.taken {
		if run.fresh != nil {
			put(i, *run.fresh)
		} else {
			unread, place[run.id] = append(unread, run.id), i
		}
	}
	if len(unread) == 0 {
		return nil
	}
	err := c.query(&listClaimedSQL, func(r *row) error {
		run, err := readWholeRun(r)
		put(place[run.ID], run)
		return err
	}, text("run_ids", encodeIDs(unread)))
	for i := range c.out.Tasks {
		task := &c.out.Tasks[i]
		if err != nil || task.Run.Steps == 0 {
			continue
		}
		kept := c.p.KeptBy(c.slots[i].WorkerID, task.Run.ID)
		var since storelogic.Since
		since, err = c.settle(task.Run.ID, kept, now)
		if err == nil && (!since.Knows(kept) || !task.SetSince(kept, since.Steps, c.p.HistoryBytes)) {
			task.History, task.NextSequence, err = c.history(task.Run.ID, 0, c.p.HistoryBytes)
		}
	}
	return err
}

// settle settles what happened to the run's steps while nobody held it.
func (c *claim) settle(run engine.ID, kept engine.Token, now time.Time) (storelogic.Since, error) {
	if kept.IsZero() {
		waiting, err := c.found(&anyWaitingSQL, func(*row) error { return nil }, idArg("run_id", run),
			instant("now", now))
		if err != nil || !waiting {
			return storelogic.Since{}, err
		}
	}
	return storelogic.SettleClaimed(c.tx, run, kept, now)
}

//go:embed sql/get_history.sql
var historySQL string

// history returns the latest attempts from a sequence on, about so many bytes of them, and the
// sequence of the rest.
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

// maxGated limits about how many runs without a free place of their concurrency key one transaction
// handles.
const maxGated = 1000

// concurrencyKey is a concurrency key of a workflow type.
type concurrencyKey struct{ kind, name string }

//go:embed sql/get_key.sql
var getKeySQL string

//go:embed sql/count_key.sql
var countKeySQL string

//go:embed sql/take_place.sql
var takePlaceSQL string

//go:embed sql/gate_run.sql
var gateRunSQL string

// takePlace takes a place of the run's concurrency key. If none is free, the run leaves its lane
// until one is. Only the writer takes and frees places, so its counts stay right until the end of
// the claim.
func (c *claim) takePlace(run *candidate) (bool, error) {
	k := concurrencyKey{kind: run.lane.kind}
	limit, scope := 0, engine.ScopeSlot
	err := c.query(&getKeySQL, func(r *row) error {
		k.name, limit, scope = r.text(), int(r.num()), engine.ConcurrencyScope(r.num())
		return nil
	}, idArg("run_id", run.id))
	if err != nil {
		return false, err
	}
	used, counted := c.keys[k]
	if !counted {
		if used, err = c.placesTaken(k); err != nil {
			return false, err
		}
	}
	free := used < max(limit, 1)
	if free {
		used++
	}
	if c.keys == nil {
		c.keys = map[concurrencyKey]int{}
	}
	c.keys[k] = used
	if free {
		if scope == engine.ScopeOpen {
			_, err = c.exec(&takePlaceSQL, idArg("run_id", run.id))
		}
		return true, err
	}
	c.gated++
	c.notifyRun(run.id)
	c.forget(run.id)
	_, err = c.exec(&gateRunSQL, idArg("run_id", run.id))
	return false, err
}

// placesTaken counts the places of a key that are taken.
func (c *claim) placesTaken(k concurrencyKey) (n int, err error) {
	err = c.query(&countKeySQL, func(r *row) error {
		n = int(r.num())
		return nil
	}, text("namespace", c.p.Namespace), text("workflow_type", k.kind), text("concurrency_key", k.name))
	return n, err
}
