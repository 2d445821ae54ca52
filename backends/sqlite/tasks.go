package sqlite

import (
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_claimed.sql
var listClaimedText string

var listClaimedSQL = runColumns.Expand(listClaimedText)

//go:embed sql/await_no_step.sql
var awaitNoStepSQL string

// tasks puts together what the workers get.
func (c *claim) tasks() error {
	if len(c.taken) == 0 {
		return nil
	}
	now := engine.Micros(c.p.Now)
	c.out.Tasks = make([]engine.Task, len(c.taken))
	put := func(i int, run engine.Run) {
		c.out.Tasks[i] = engine.Task{
			Run: run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: c.grants[i].Token}, ClaimedAt: now,
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
		if err = c.WakeSteps(task.Run.ID, now); err != nil {
			continue
		}
		if _, err = c.exec(&awaitNoStepSQL, idArg("run_id", task.Run.ID)); err == nil {
			task.History, task.NextSequence, err = c.history(task.Run.ID, 0, c.p.HistoryBytes)
		}
	}
	return err
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
