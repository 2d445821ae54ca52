package sqlite

import (
	"context"
	_ "embed"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// CompleteRun is a few narrow statements when the run's end concerns nobody else, as most runs' does. Only when that did not apply
// does it look at what there is.
func (s *Store) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	size := p.Output.Size()
	whole := size
	if p.ContinueAs != nil {
		whole += p.ContinueAs.Input.Size()
	}
	return writeAs(ctx, s, &call{verb: "CompleteRun", size: whole, turn: p.Ticket}, func(t *tx) (engine.Completed, error) {
		if p.ContinueAs == nil {
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

// completeUntied is the fast path. Where it does not apply, nothing is written.
func (t *tx) completeUntied(p *engine.CompleteRunParams, size int) (done bool, err error) {
	lease, err := t.lease(p.Lease)
	if err != nil || lease == nil || lease.tied || lease.bytes+int64(size) > engine.MaxRunBytes {
		return false, err
	}
	id, now := p.Lease.RunID, engine.Micros(p.Now)
	lease.dirty = false // its counts go to the run
	t.forget(id)
	if _, err := t.direct(&deleteLeaseSQL, idArg("run_id", id)); err != nil {
		return false, err
	}
	t.known.leased(queueKey{lease.namespace, lease.queue}, lease.kind, -1)
	t.ringSlot(lease.namespace, lease.queue)
	t.ringEnd(id, &engine.Ending{Namespace: lease.namespace, Status: engine.RunCompleted, Output: p.Output, FinishedAt: now})
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
	_, err = t.direct(&completeRunSQL, idArg("run_id", id), num("steps", lease.steps), num("bytes", lease.bytes+int64(size)),
		flag("progressed", lease.progressed), tokenArg("final_token", p.Lease.Token), instant("now", now))
	return true, err
}
