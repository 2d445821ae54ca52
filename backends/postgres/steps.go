package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/ledger"
)

// stepCall is one call of CompleteStep about a step that nobody has begun, as far as is known, and its answer.
type stepCall struct {
	p    *engine.CompleteStepParams
	step engine.Step
}

// CompleteStep is one insert and one narrow update when the step is new, as nearly every step is: its code ran, and now it is
// reported. Only when that did not apply does the ledger look at what there is.
func (s *Store) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	if err := s.enter(); err != nil {
		return engine.Step{}, err
	}
	defer s.leave()
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	c := &call{run: p.Lease.RunID, turn: engine.TurnOf(ctx), step: &stepCall{p: &p}, size: p.Output.Size(), alone: !p.Step.ID.IsZero()}
	return together(s, c, "complete a step", func() engine.Step { return c.step.step },
		func(t *tx) (engine.Step, error) { return ledger.CompleteStep(t, p) })
}

//go:embed sql/complete_new_step.sql
var completeNewStepText string

var completeNewStepSQL = hot(completeNewStepText)

// queueSteps adds the group's results to the batch.
func queueSteps(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens, ids [][16]byte
	var namespaces, names, metas []string
	var outputs [][]byte
	var sizes, started, nows []int64
	byStep := map[engine.ID]*call{}
	for _, c := range group {
		if c.step == nil {
			continue
		}
		p := c.step.p
		byStep[p.ID] = c
		c.step.step = newResult(p)
		runs, tokens, ids = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token), append(ids, p.ID)
		namespaces, names = append(namespaces, p.Lease.Namespace), append(names, p.Step.Name)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		sizes, started, nows = append(sizes, int64(p.Output.Size())), append(started, micros(c.step.step.StartedAt)), append(nows, micros(p.Now))
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeNewStepSQL.text, completeNewStepSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "step_ids": ids, "names": names, "outputs": outputs,
		"output_metas": metas, "sizes": sizes, "started_at": started, "now": nows,
		"max_steps": int64(engine.MaxSteps), "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var sequence int64
		var worker string
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &sequence, &worker}, func() error {
			c := byStep[id]
			c.step.step.Sequence, c.step.step.WorkerID = sequence, worker
			answers.settle(c)
			answers.rings = append(answers.rings, engine.Ring{Kind: engine.RingRun, ID: c.step.step.RunID})
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
