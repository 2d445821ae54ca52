package sqlite

import (
	"context"
	_ "embed"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// CompleteStep is one insert if the step is new, which is the common case: its code has run and is
// now reported. The run's counts are written before the commit (leaseCache). Otherwise it reads
// first.
func (s *Store) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	size := p.Output.Size()
	return writeAs(ctx, s, &call{verb: "CompleteStep", size: size, ticket: p.Ticket}, func(t *tx) (engine.Step, error) {
		if p.Step.ID.IsZero() && p.Step.Name != engine.CancelledStep {
			step, made, err := t.completeNewStep(&p, size)
			if err != nil || made {
				return step, err
			}
		}
		return storelogic.CompleteStep(t, p)
	})
}

//go:embed sql/complete_new_step.sql
var completeNewStepSQL string

//go:embed sql/has_begun.sql
var hasBegunSQL string

// completeNewStep is the fast path. If it does not apply, nothing is written. The insert only
// notices a first attempt, which a step copied from another run may not have; so without a plain
// lease the steps are read first.
func (t *tx) completeNewStep(p *engine.CompleteStepParams, size int) (engine.Step, bool, error) {
	step := engine.Step{
		ID: p.ID, RunID: p.Lease.RunID, Name: p.Step.Name, Kind: engine.StepFunction, Status: engine.StepCompleted,
		Attempt: 1, Latest: true,
		Output: p.Output, Token: p.Lease.Token, CreatedAt: p.Now, StartedAt: p.StartedAt, FinishedAt: p.Now,
	}
	if step.StartedAt.IsZero() {
		step.StartedAt = p.Now
	}
	lease, err := t.lease(p.Lease)
	if err != nil || lease == nil || lease.apart || lease.pausing || lease.steps >= engine.MaxSteps ||
		lease.bytes+int64(size) > engine.MaxRunBytes {
		return engine.Step{}, false, err
	}
	if lease.steps > 0 && !lease.plain {
		begun, err := t.session.found(&hasBegunSQL, func(*row) error {
			return nil
		}, idArg("run_id", p.Lease.RunID), text("name", p.Step.Name))
		if err != nil || begun {
			return engine.Step{}, false, err
		}
	}
	step.Sequence, step.WorkerID = lease.steps+1, lease.worker
	step.Settled, step.Branch, step.BegunIn = lease.settled+1, p.Branch, lease.owedFrom
	made, err := t.direct(&completeNewStepSQL, idArg("step_id", p.ID), idArg("run_id", p.Lease.RunID),
		text("name", p.Step.Name),
		num("sequence", step.Sequence), blob("output", p.Output.Data),
		text("output_meta", encodeMap(p.Output.Metadata)),
		tokenArg("token", p.Lease.Token), text("worker_id", step.WorkerID), instant("started_at", step.StartedAt),
		instant("now", p.Now), num("settled", step.Settled), text("branch", step.Branch), num("begun_in", step.BegunIn))
	if err != nil || made == 0 {
		return engine.Step{}, false, err
	}
	t.leases.countStep(lease, size)
	t.notifyRun(p.Lease.RunID)
	return step, true, nil
}

// CompleteRun takes a few narrow statements if the run's end affects no other row, which is the
// common case. Otherwise it reads first.
func (s *Store) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	size := p.Output.Size()
	whole := size
	if p.ContinueAs != nil {
		whole += p.ContinueAs.Input.Size()
	}
	return writeAs(ctx, s, &call{verb: "CompleteRun", size: whole, ticket: p.Ticket},
		func(t *tx) (engine.Completed, error) {
			if p.ContinueAs == nil && len(p.Unreceived)+len(p.Unreached) == 0 {
				done, err := t.completeUntied(&p, size)
				if err != nil || done {
					return engine.Completed{Status: engine.RunCompleted}, err
				}
			}
			return storelogic.CompleteRun(t, p)
		})
}

//go:embed sql/complete_run.sql
var completeRunSQL string

// completeUntied is the fast path. If it does not apply, nothing is written.
func (t *tx) completeUntied(p *engine.CompleteRunParams, size int) (done bool, err error) {
	lease, err := t.lease(p.Lease)
	if err != nil || lease == nil || lease.tied || lease.apart || lease.bytes+int64(size) > engine.MaxRunBytes {
		return false, err
	}
	id, now := p.Lease.RunID, engine.Micros(p.Now)
	lease.dirty = false // the run takes over its counts
	t.forget(id)
	if _, err := t.direct(&deleteLeaseSQL, idArg("run_id", id)); err != nil {
		return false, err
	}
	t.queues.leased(queueKey{lease.namespace, lease.queue}, lease.kind, -1)
	t.notifySlot(lease.namespace, lease.queue)
	t.notifyEnd(id, &engine.Ending{Namespace: lease.namespace, Status: engine.RunCompleted, Output: p.Output,
		FinishedAt: now})
	if lease.steps > 0 && !lease.plain {
		if err := t.WakeSteps(id, now); err != nil {
			return false, err
		}
		if err := t.EndSteps(id, engine.RunEndedFailure(), now); err != nil {
			return false, err
		}
	}
	if size > 0 {
		if err := t.SaveOutput(id, p.Output); err != nil {
			return false, err
		}
	}
	_, err = t.direct(&completeRunSQL, idArg("run_id", id), num("steps", lease.steps),
		num("bytes", lease.bytes+int64(size)), num("settled", lease.settled),
		flag("progressed", lease.progressed), tokenArg("final_token", p.Lease.Token), instant("now", now))
	return true, err
}
