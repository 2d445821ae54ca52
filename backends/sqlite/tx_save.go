package sqlite

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// moving is what can change of a run's row. A run that is saved as it was read but for the counts of its lease, as a step that
// begins has it, costs one narrow update.
type moving struct {
	status                                     engine.RunStatus
	attempts, failures, losses                 int
	failure                                    *engine.Failure
	availableAt, startedAt, finishedAt, heldAt time.Time
	cancelRequestedAt, graceUntil, expiresAt   time.Time
	workerID, waitingFor, note, cancelReason   string
	paused, gated, pinned, tied, held          bool
	continuedAs                                engine.ID
	finalToken                                 engine.Token
}

func movingOf(r *storelogic.Run) moving {
	return moving{
		status: r.Status, attempts: r.Attempts, failures: r.Failures, losses: r.LeaseLosses, failure: r.Error,
		availableAt: r.AvailableAt, startedAt: r.StartedAt, finishedAt: r.FinishedAt, heldAt: r.HeldAt,
		cancelRequestedAt: r.CancelRequestedAt, graceUntil: r.GraceUntil, expiresAt: r.ExpiresAt(),
		workerID: r.WorkerID, waitingFor: r.WaitingFor, note: r.Note, cancelReason: r.CancelReason,
		paused: r.Paused, gated: r.Gated, pinned: r.Pinned, tied: r.TiedTo, held: !r.Token.IsZero(),
		continuedAs: r.ContinuedAs, finalToken: r.FinalToken,
	}
}

//go:embed sql/save_run.sql
var saveRunSQL string

//go:embed sql/save_lease.sql
var saveLeaseSQL string

//go:embed sql/delete_lease.sql
var deleteLeaseSQL string

func (t *tx) SaveRun(r *storelogic.Run) error {
	held := !r.Token.IsZero()
	t.forget(r.ID)
	switch {
	case held:
		_, err := t.exec(&saveLeaseSQL, idArg("run_id", r.ID), num("steps", r.Steps), num("bytes", r.Bytes),
			flag("progressed", r.Progressed), flag("tied", r.TiedTo))
		if err != nil {
			return err
		}
	case r.WasHeld:
		ended, err := t.exec(&deleteLeaseSQL, idArg("run_id", r.ID))
		if err != nil {
			return err
		}
		t.known.leased(queueKey{r.Namespace, r.Queue}, r.Type, -int(ended))
	}
	m := movingOf(r)
	if before, ok := t.seen[r.ID]; ok && held && before == m {
		return nil
	}
	t.seen[r.ID] = m
	_, err := t.exec(&saveRunSQL, idArg("run_id", r.ID), flag("held", held), num("steps", r.Steps), num("bytes", r.Bytes),
		num("status", r.Status), num("attempts", r.Attempts), num("failures", r.Failures), num("lease_losses", r.LeaseLosses),
		text("error", encodeFailure(r.Error)), instant("available_at", r.AvailableAt), instant("started_at", r.StartedAt),
		instant("finished_at", r.FinishedAt), text("worker_id", r.WorkerID), text("waiting_for", r.WaitingFor), text("note", r.Note),
		flag("paused", r.Paused), flag("gated", r.Gated), instant("held_at", r.HeldAt), flag("pinned", r.Pinned),
		instant("cancel_requested_at", r.CancelRequestedAt), text("cancel_reason", r.CancelReason), instant("grace_until", r.GraceUntil),
		instant("expires_at", r.ExpiresAt()), idArg("continued_as", r.ContinuedAs), flag("tied", r.TiedTo), tokenArg("final_token", r.FinalToken))
	return err
}

//go:embed sql/set_output.sql
var setOutputSQL string

func (t *tx) SaveOutput(run engine.ID, output engine.Payload) error {
	_, err := t.exec(&setOutputSQL, idArg("run_id", run), blob("output", output.Data), text("output_meta", encodeMap(output.Metadata)))
	return err
}

func (t *tx) InsertRun(start *engine.StartRun) error {
	made, err := t.insertRun(start, start.Steps, max(start.Bytes, int64(start.Input.Size())), nil)
	if err == nil && !made {
		err = fmt.Errorf("run %s stands in the way of another", start.ID)
	}
	return err
}

//go:embed sql/import_run.sql
var importRunSQL string

func (t *tx) ImportRun(r *engine.Run) error {
	if err := t.useNamespace(r.Namespace, r.CreatedAt); err != nil {
		return err
	}
	requirements := encodeMap(r.Requirements)
	lane, err := t.lane(r, requirements)
	if err != nil {
		return err
	}
	_, err = t.exec(&importRunSQL, idArg("run_id", r.ID), text("namespace", r.Namespace), text("external_id", r.ExternalID),
		text("request_id", r.RequestID), num("lane_id", lane), text("task_queue", r.Queue), text("workflow_type", r.Type),
		text("version", r.Version), num("status", r.Status), num("priority", r.Priority), num("attempts", r.Attempts),
		num("failures", r.Failures), num("lease_losses", r.LeaseLosses), num("steps", r.Steps), num("bytes", r.Bytes),
		text("error", encodeFailure(r.Error)), instant("created_at", r.CreatedAt), instant("available_at", r.AvailableAt),
		instant("started_at", r.StartedAt), instant("finished_at", r.FinishedAt), instant("deadline_at", r.DeadlineAt),
		instant("scheduled_at", r.ScheduledAt), text("worker_id", r.WorkerID), text("waiting_for", r.WaitingFor), text("note", r.Note),
		flag("paused", r.Paused), flag("gated", r.Gated), instant("held_at", r.HeldAt), flag("pinned", r.Pinned),
		instant("cancel_requested_at", r.CancelRequestedAt), text("cancel_reason", r.CancelReason), instant("grace_until", r.GraceUntil),
		instant("expires_at", r.ExpiresAt()), text("retry_policy", encodePolicy(r.RetryPolicy)),
		length("start_to_close_us", r.Timeouts.StartToClose), length("heartbeat_us", r.Timeouts.Heartbeat),
		length("execution_us", r.Timeouts.Execution), text("tags", encodeMap(r.Tags)), text("requirements", requirements),
		text("on_failure_workflow", r.OnFailureWorkflow), text("on_failure_queue", r.OnFailureQueue),
		text("concurrency_key", r.ConcurrencyKey), num("concurrency_limit", r.ConcurrencyLimit), idArg("parent_run_id", r.ParentRunID),
		idArg("parent_step_id", r.ParentStepID), num("parent_close", r.ParentClose), text("traceparent", r.Traceparent),
		num("origin", r.Origin), text("schedule_id", r.ScheduleID), idArg("failed_run_id", r.FailedRunID),
		idArg("retried_from", r.RetriedFrom), idArg("continued_from", r.ContinuedFrom), idArg("continued_as", r.ContinuedAs),
		instant("named_deadline_at", r.NamedDeadlineAt), flag("tied", r.Tied()))
	if err == nil {
		err = t.insertInput(r)
	}
	if err == nil && r.Output.Size() > 0 {
		err = t.SaveOutput(r.ID, r.Output)
	}
	return err
}
