package sqlite

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/end_lease.sql
var endLeaseSQL string

//go:embed sql/complete_run.sql
var completeRunSQL string

//go:embed sql/set_output.sql
var setOutputSQL string

// CompleteRun ends the lease first: where there was none, nothing has been written yet.
func (s *Store) CompleteRun(ctx context.Context, p engine.CompleteRunParams) error {
	size := p.Output.Size()
	_, err := write(ctx, s, "CompleteRun", size, func(t *tx) (none struct{}, err error) {
		var namespace, queue string
		var steps, bytes int64
		var progressed bool
		current, err := t.returning(&endLeaseSQL, func(r *row) error {
			namespace, queue, steps, bytes, progressed = r.text(), r.text(), r.num(), r.num(), r.flag()
			return nil
		}, text("namespace", p.Lease.Namespace), idArg("run_id", p.Lease.RunID), tokenArg("token", p.Lease.Token),
			num("size", size), num("max_bytes", engine.MaxRunBytes))
		if err != nil {
			return none, err
		}
		if !current {
			return none, t.completeRunAgain(&p)
		}
		t.forget(p.Lease.RunID)
		t.ringSlot(namespace, queue)
		t.ringEnd(p.Lease.RunID)
		now := engine.Micros(p.Now)
		if err := t.wake(p.Lease.RunID, steps, now); err != nil {
			return none, err
		}
		if err := t.endSteps(p.Lease.RunID, steps, now); err != nil {
			return none, err
		}
		if size > 0 {
			_, err := t.exec(&setOutputSQL, idArg("run_id", p.Lease.RunID), blob("output", p.Output.Data),
				text("output_meta", encodeMap(p.Output.Metadata)))
			if err != nil {
				return none, err
			}
		}
		_, err = t.exec(&completeRunSQL, idArg("run_id", p.Lease.RunID), num("steps", steps), num("bytes", bytes+int64(size)),
			flag("progressed", progressed), tokenArg("final_token", p.Lease.Token), instant("now", now))
		return none, err
	})
	return err
}

//go:embed sql/get_output.sql
var getOutputSQL string

// completeRunAgain answers a CompleteRun that took no effect: a repetition, an output that is too large, or a lost lease.
func (t *tx) completeRunAgain(p *engine.CompleteRunParams) error {
	run, current, err := t.held(p.Lease)
	if err != nil {
		return err
	}
	if current {
		return tooManyBytes("output", run.bytes, p.Output.Size())
	}
	if run, err = t.runState(p.Lease.Namespace, p.Lease.RunID); err != nil {
		return err
	}
	if run.status != engine.RunCompleted || run.finalToken != p.Lease.Token {
		rec, err := t.receipt(p.Lease)
		if err != nil {
			return err
		}
		return t.endedOtherwise(p.Lease, &run, rec)
	}
	var output engine.Payload
	err = t.query(&getOutputSQL, func(r *row) (err error) {
		output, err = readPayload(r)
		return err
	}, idArg("run_id", run.id))
	if err == nil && !output.Equal(p.Output) {
		err = runConflict(run.id, run.status)
	}
	return err
}

// tooManyBytes refuses what would take a run past its limit.
func tooManyBytes(field string, bytes int64, size int) error {
	return engine.TooLarge(field, "would take the run to %d bytes, at most %d are allowed", bytes+int64(size), engine.MaxRunBytes)
}

//go:embed sql/retry_steps.sql
var retryStepsSQL string

//go:embed sql/get_error.sql
var getErrorSQL string

// FailRun ends the run or has it tried again.
func (s *Store) FailRun(ctx context.Context, p engine.FailRunParams) (engine.Verdict, error) {
	p.Now = engine.Micros(p.Now)
	return write(ctx, s, "FailRun", p.Failure.Size(), func(t *tx) (v engine.Verdict, err error) {
		run, current, err := t.held(p.Lease)
		if err != nil {
			return v, err
		}
		if !current {
			return t.failRunAgain(&p)
		}
		v = engine.AfterRunFailed(run.policy, run.failures+1, p.Failure, p.Now, p.Roll)
		if !v.Retry {
			run.bytes += int64(p.Failure.Size())
			return v, t.end(&run, engine.RunFailed, &p.Failure, p.Lease.Token, p.Now)
		}
		run.attempts++
		run.failures++
		if err := t.leaveReceipt(p.Lease, receipt{verb: failRunVerb, content: digest(&p.Failure), retryAt: v.RetryAt}); err != nil {
			return v, err
		}
		if err := t.free(&run, engine.Parked{Status: engine.RunPending, AvailableAt: v.RetryAt}, p.Now); err != nil {
			return v, err
		}
		_, err = t.exec(&retryStepsSQL, idArg("run_id", run.id), instant("retry_at", v.RetryAt))
		return v, err
	})
}

// digest stands for a failure in a receipt.
func digest(f *engine.Failure) string {
	sum := sha256.Sum256([]byte(encode(f)))
	return hex.EncodeToString(sum[:])
}

// failRunAgain answers a FailRun under a lease that is over.
func (t *tx) failRunAgain(p *engine.FailRunParams) (engine.Verdict, error) {
	rec, err := t.repeatedReceipt(p.Lease, receipt{verb: failRunVerb, content: digest(&p.Failure)})
	if err == nil {
		return engine.Verdict{Retry: true, RetryAt: rec.retryAt}, nil
	}
	if engine.KindOf(err) != engine.KindConflict {
		return engine.Verdict{}, err
	}
	// The lease ended the run: with this failure?
	var failure *engine.Failure
	_, reading := t.found(&getErrorSQL, func(r *row) (err error) {
		decode(r.text(), &failure, &err)
		return err
	}, idArg("run_id", p.Lease.RunID), tokenArg("token", p.Lease.Token))
	if reading != nil {
		return engine.Verdict{}, reading
	}
	if failure != nil && failure.Equal(p.Failure) {
		return engine.Verdict{}, nil
	}
	return engine.Verdict{}, err
}
