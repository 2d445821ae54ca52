package postgres

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// finishCall is one call of CompleteRun.
type finishCall struct{ p *engine.CompleteRunParams }

// CompleteRun ends the run as COMPLETED.
func (s *Store) CompleteRun(ctx context.Context, p engine.CompleteRunParams) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	c := &call{finish: &finishCall{&p}, size: p.Output.Size()}
	if err := s.laneOf(p.Lease.RunID).gather(c); err != nil || c.settled {
		return err
	}
	return s.writeEntered("complete a run", func(ctx context.Context, t *tx) error { return t.completeRun(ctx, &p) })
}

//go:embed sql/complete_run.sql
var completeRunText string

var completeRunSQL = hot(completeRunText)

// queueFinishes adds the group's ends to the batch. Of two for one run the second goes alone.
func queueFinishes(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens [][16]byte
	var namespaces, metas []string
	var outputs [][]byte
	var sizes, nows []int64
	byRun := map[engine.ID]*call{}
	for _, c := range group {
		if c.finish == nil || byRun[c.finish.p.Lease.RunID] != nil {
			continue
		}
		p := c.finish.p
		byRun[p.Lease.RunID] = c
		runs, tokens, namespaces = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token), append(namespaces, p.Lease.Namespace)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		sizes, nows = append(sizes, int64(p.Output.Size())), append(nows, micros(p.Now))
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeRunSQL.text, completeRunSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "outputs": outputs, "output_metas": metas,
		"sizes": sizes, "now": nows, "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var namespace, queue string
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &namespace, &queue}, func() error {
			answers.settle(byRun[id])
			answers.rings = append(answers.rings, engine.Ring{Kind: engine.RingSlot, Namespace: namespace, Name: queue},
				engine.Ring{Kind: engine.RingRun, ID: id}, engine.Ring{Kind: engine.RingEnd, ID: id})
			return nil
		})
		return err
	})
}

//go:embed sql/set_output.sql
var setOutputSQL string

//go:embed sql/get_output.sql
var getOutputSQL string

// completeRun looks closer at an end to which the common case did not apply.
func (t *tx) completeRun(ctx context.Context, p *engine.CompleteRunParams) error {
	run, err := t.runState(ctx, p.Lease.Namespace, p.Lease.RunID)
	switch {
	case err != nil:
		return err
	case run.current(p.Lease):
		return t.completeHeldRun(ctx, run, p)
	case run.status != engine.RunCompleted || run.finalToken != p.Lease.Token:
		rec, err := t.receipt(ctx, p.Lease)
		if err != nil {
			return err
		}
		return endedOtherwise(p.Lease, run, rec)
	}
	var output engine.Payload
	if err := t.QueryRow(ctx, getOutputSQL, args{"run_id": [16]byte(run.id)}).Scan(payloadPlaces(&output)...); err != nil {
		return err
	}
	if !output.Equal(p.Output) {
		return runConflict(run.id, run.status)
	}
	return nil
}

func (t *tx) completeHeldRun(ctx context.Context, run *runState, p *engine.CompleteRunParams) error {
	size := p.Output.Size()
	if run.bytes+int64(size) > engine.MaxRunBytes {
		return tooManyBytes("output", run.bytes, size)
	}
	run.bytes += int64(size)
	if size > 0 {
		_, err := t.exec(ctx, setOutputSQL, args{"run_id": [16]byte(run.id), "output": dataOrNull(p.Output.Data),
			"output_meta": mapText(p.Output.Metadata)})
		if err != nil {
			return err
		}
	}
	return t.end(ctx, run, engine.RunCompleted, nil, p.Lease.Token, p.Now)
}

// tooManyBytes refuses what would take a run past its limit.
func tooManyBytes(field string, bytes int64, size int) error {
	return engine.TooLarge(field, "would take the run to %d bytes, at most %d are allowed", bytes+int64(size), engine.MaxRunBytes)
}

// runConflict is the answer to a second, different end of a lease.
func runConflict(run engine.ID, status engine.RunStatus) error {
	return &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: run.String(), Status: status,
		Message: "run " + run.String() + " was already reported otherwise under this lease: it is " + status.String()}
}

//go:embed sql/retry_steps.sql
var retryStepsSQL string

//go:embed sql/get_error.sql
var getErrorSQL string

// FailRun ends the run or has it tried again.
func (s *Store) FailRun(ctx context.Context, p engine.FailRunParams) (v engine.Verdict, err error) {
	p.Now = engine.Micros(p.Now)
	err = s.write("fail a run", func(ctx context.Context, t *tx) (err error) {
		v, err = t.failRun(ctx, &p)
		return err
	})
	if err != nil {
		return engine.Verdict{}, err
	}
	return v, nil
}

func (t *tx) failRun(ctx context.Context, p *engine.FailRunParams) (engine.Verdict, error) {
	run, err := t.runState(ctx, p.Lease.Namespace, p.Lease.RunID)
	if err != nil {
		return engine.Verdict{}, err
	}
	if !run.current(p.Lease) {
		return t.failRunAgain(ctx, run, p)
	}
	v := engine.AfterRunFailed(run.policy, run.failures+1, p.Failure, p.Now, p.Roll)
	if !v.Retry {
		run.bytes += int64(p.Failure.Size())
		return v, t.end(ctx, run, engine.RunFailed, &p.Failure, p.Lease.Token, p.Now)
	}
	run.attempts++
	run.failures++
	if err := t.leaveReceipt(ctx, p.Lease, receipt{verb: failRunVerb, content: digest(&p.Failure), retryAt: v.RetryAt}); err != nil {
		return v, err
	}
	if err := t.free(ctx, run, engine.Parked{Status: engine.RunPending, AvailableAt: v.RetryAt}, p.Now); err != nil {
		return v, err
	}
	_, err = t.exec(ctx, retryStepsSQL, args{"run_id": [16]byte(run.id), "retry_at": micros(v.RetryAt)})
	return v, err
}

// digest stands for a failure in a receipt.
func digest(f *engine.Failure) string {
	sum := sha256.Sum256([]byte(jsonText(f)))
	return hex.EncodeToString(sum[:])
}

// failRunAgain answers a FailRun under a lease that is over.
func (t *tx) failRunAgain(ctx context.Context, run *runState, p *engine.FailRunParams) (engine.Verdict, error) {
	rec, err := t.repeatedReceipt(ctx, run, p.Lease, receipt{verb: failRunVerb, content: digest(&p.Failure)})
	if err == nil {
		return engine.Verdict{Retry: true, RetryAt: rec.retryAt}, nil
	}
	if engine.KindOf(err) != engine.KindConflict {
		return engine.Verdict{}, err
	}
	// The lease ended the run: with this failure?
	var failure *engine.Failure
	reading := t.QueryRow(ctx, getErrorSQL, args{"run_id": [16]byte(run.id), "token": [16]byte(p.Lease.Token)}).Scan(jsonOf(&failure))
	if missing(reading) != nil {
		return engine.Verdict{}, reading
	}
	if failure != nil && failure.Equal(p.Failure) {
		return engine.Verdict{}, nil
	}
	return engine.Verdict{}, err
}

//go:embed sql/get_receipt.sql
var getReceiptSQL string

//go:embed sql/insert_receipt.sql
var insertReceiptSQL string

// The verbs that end a lease without ending the run, as receipts name them.
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

func (t *tx) leaveReceipt(ctx context.Context, l engine.Lease, rec receipt) error {
	_, err := t.exec(ctx, insertReceiptSQL, args{"token": [16]byte(l.Token), "run_id": [16]byte(l.RunID), "verb": rec.verb,
		"content": rec.content, "retry_at": microsOrNull(rec.retryAt)})
	return err
}

func (t *tx) receipt(ctx context.Context, l engine.Lease) (rec receipt, err error) {
	err = t.QueryRow(ctx, getReceiptSQL, args{"token": [16]byte(l.Token), "run_id": [16]byte(l.RunID)}).
		Scan(&rec.verb, &rec.content, timeOf(&rec.retryAt))
	return rec, missing(err)
}

// repeatedReceipt is the receipt of the lease if this very write left it, and otherwise why the write does not count.
func (t *tx) repeatedReceipt(ctx context.Context, run *runState, l engine.Lease, want receipt) (receipt, error) {
	rec, err := t.receipt(ctx, l)
	if err != nil || rec.verb == want.verb && rec.content == want.content {
		return rec, err
	}
	return receipt{}, endedOtherwise(l, run, rec)
}
