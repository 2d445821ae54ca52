package sqlite

import (
	"context"
	_ "embed"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/ledger"
)

// CompleteRun is a few narrow statements when the run's end concerns nobody else, as most runs' does. Only when that did not apply
// does it look at what there is.
func (s *Store) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	size := p.Output.Size()
	return write(ctx, s, "CompleteRun", size, func(t *tx) (engine.Completed, error) {
		if p.ContinueAs == nil {
			done, err := t.completeUntied(&p, size)
			if err != nil || done {
				return engine.Completed{Status: engine.RunCompleted}, err
			}
		}
		return ledger.CompleteRun(t, p)
	})
}

//go:embed sql/end_lease.sql
var endLeaseSQL string

//go:embed sql/complete_run.sql
var completeRunSQL string

// completeUntied is the fast path. It ends the lease first: where it does not apply, nothing is written.
func (t *tx) completeUntied(p *engine.CompleteRunParams, size int) (done bool, err error) {
	var namespace, queue string
	var steps, bytes int64
	var progressed bool
	id, now := p.Lease.RunID, engine.Micros(p.Now)
	done, err = t.returning(&endLeaseSQL, func(r *row) error {
		namespace, queue, steps, bytes, progressed = r.text(), r.text(), r.num(), r.num(), r.flag()
		return nil
	}, text("namespace", p.Lease.Namespace), idArg("run_id", id), tokenArg("token", p.Lease.Token),
		num("size", size), num("max_bytes", engine.MaxRunBytes))
	if err != nil || !done {
		return false, err
	}
	t.forget(id)
	t.ringSlot(namespace, queue)
	t.ringEnd(id)
	if steps > 0 {
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
	_, err = t.exec(&completeRunSQL, idArg("run_id", id), num("steps", steps), num("bytes", bytes+int64(size)),
		flag("progressed", progressed), tokenArg("final_token", p.Lease.Token), instant("now", now))
	return true, err
}
