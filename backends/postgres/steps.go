package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// stepCall is one call of CompleteStep about a step that nobody has begun, as far as is known, and its answer.
type stepCall struct {
	p    *engine.CompleteStepParams
	step engine.Step
}

// CompleteStep is one insert and one narrow update when the step is new, as nearly every step is: its code ran, and now it is
// reported. Only when that did not apply does the store logic look at what there is.
func (s *Store) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	if err := s.enter(); err != nil {
		return engine.Step{}, err
	}
	defer s.leave()
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	c := &call{run: p.Lease.RunID, turn: p.Ticket, step: &stepCall{p: &p}, size: p.Output.Size(), alone: !p.Step.ID.IsZero()}
	return together(s, c, "complete a step", func() engine.Step { return c.step.step },
		func(t *tx) (engine.Step, error) { return storelogic.CompleteStep(t, p) })
}

//go:embed sql/complete_new_step.sql
var completeNewStepText string

var completeNewStepSQL = hot(completeNewStepText)

// queueSteps adds the group's results to the batch, those of the newest runs first: in this order everybody changes leases.
func queueSteps(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens, ids [][16]byte
	var namespaces, names, metas []string
	var outputs [][]byte
	var places, sizes, started, nows []int64
	var lasts []bool
	byStep := map[engine.ID]*call{}
	before := map[engine.ID]int{} // where the results are of each run's last so far
	steps := slices.DeleteFunc(slices.Clone(group), func(c *call) bool { return c.step == nil })
	slices.SortStableFunc(steps, func(a, b *call) int { return bytes.Compare(b.run[:], a.run[:]) })
	for _, c := range steps {
		p := c.step.p
		byStep[p.ID] = c
		c.step.step = newResult(p)
		place, size := int64(1), int64(p.Output.Size())
		if i, several := before[c.run]; several {
			place, size, lasts[i] = places[i]+1, sizes[i]+size, false
		}
		before[c.run] = len(runs)
		runs, tokens, ids = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token), append(ids, p.ID)
		namespaces, names = append(namespaces, p.Lease.Namespace), append(names, p.Step.Name)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		places, sizes, lasts = append(places, place), append(sizes, size), append(lasts, true)
		started, nows = append(started, micros(c.step.step.StartedAt)), append(nows, micros(p.Now))
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeNewStepSQL.text, completeNewStepSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "step_ids": ids, "names": names, "outputs": outputs,
		"output_metas": metas, "places": places, "sizes": sizes, "lasts": lasts, "started_at": started, "now": nows,
		"max_steps": int64(engine.MaxSteps), "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var sequence int64
		var worker string
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &sequence, &worker}, func() error {
			c := byStep[id]
			c.step.step.Sequence, c.step.step.WorkerID = sequence, worker
			answers.settle(c)
			answers.rings = append(answers.rings, engine.Notification{Kind: engine.NotifyRun, ID: c.step.step.RunID})
			return nil
		})
		return err
	})
}

// stepKey is a step of a run.
type stepKey struct {
	run  engine.ID
	name string
}

func (c *stepCall) key() stepKey { return stepKey{c.p.Lease.RunID, c.p.Step.Name} }

// newResult is a step that was never announced, as its result makes it, but for its place and its worker.
func newResult(p *engine.CompleteStepParams) engine.Step {
	step := engine.Step{
		ID: p.ID, RunID: p.Lease.RunID, Name: p.Step.Name, Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
		Output: p.Output, Token: p.Lease.Token, CreatedAt: p.Now, StartedAt: p.StartedAt, FinishedAt: p.Now,
	}
	if step.StartedAt.IsZero() {
		step.StartedAt = p.Now
	}
	return step
}
