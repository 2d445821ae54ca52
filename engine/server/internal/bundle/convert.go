package bundle

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// This file reads the messages of a capsule. They are untrusted: every name and limit is checked as
// for a start. Leases, places in lines and everything else that belongs to the exporting server is
// dropped.

// fields reads fields and keeps the first error.
type fields struct{ err error }

func (f *fields) keep(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) time(field string, t *timestamppb.Timestamp) time.Time {
	at, err := wire.TimeOf(field, t)
	f.keep(err)
	return at
}

func (f *fields) id(field, s string) engine.ID {
	id, err := wire.OptionalIDOf(field, s)
	f.keep(err)
	return id
}

func (f *fields) enum(field string, value int32, names map[int32]string) uint8 {
	if _, known := names[value]; !known || value == 0 {
		f.keep(engine.Invalid(field, "has the unknown value %d", value))
		return 0
	}
	return uint8(value)
}

// failure reads a failure. It accepts FailureCrashed, which only Kagzi itself records.
func (f *fields) failure(e *kagziv1.ErrorDetail) *engine.Failure {
	if e == nil {
		return nil
	}
	failure, err := wire.FailureOf(e)
	f.keep(err)
	if engine.FailureCode(e.Code) == engine.FailureCrashed {
		failure.Code = engine.FailureCrashed
	}
	return &failure
}

func importedRunOf(w *kagziv1.Workflow) (engine.Run, error) {
	var f fields
	scope, err := wire.ScopeOf(w.ConcurrencyScope)
	f.keep(err)
	run := engine.Run{
		ID: f.id("run_id", w.RunId), Namespace: "default", // the importer replaces it
		ExternalID: w.ExternalId, Queue: w.TaskQueue, Type: w.WorkflowType, Version: w.Version,
		Priority: int(w.GetPriority()),
		Status:   engine.RunStatus(f.enum("status", int32(w.Status), kagziv1.WorkflowStatus_name)),
		Attempts: int(w.Attempts) + int(w.GetStepRetries()), LeaseLosses: int(w.LeaseLosses),
		Input: wire.PayloadOf(w.Input), Output: wire.PayloadOf(w.Output), Error: f.failure(w.Error), Note: w.Note,
		Pinned:    w.Pinned,
		CreatedAt: f.time("created_at", w.CreatedAt), StartedAt: f.time("started_at", w.StartedAt),
		FinishedAt:        f.time("finished_at", w.FinishedAt),
		DeadlineAt:        f.time("deadline_at", w.DeadlineAt),
		NamedDeadlineAt:   f.time("named_deadline_at", w.NamedDeadlineAt),
		ScheduledAt:       f.time("scheduled_at", w.ScheduledAt),
		CancelRequestedAt: f.time("cancel_requested_at", w.CancelRequestedAt),
		GraceUntil:        f.time("cancel_grace_until", w.CancelGraceUntil),
		WorkerID:          w.GetWorkerId(), RetryPolicy: wire.RetryPolicyOf(w.RetryPolicy),
		RunRetryPolicy: wire.RetryPolicyOf(w.RunRetryPolicy),
		Timeouts:       wire.TimeoutsOf(w.Timeouts),
		Tags:           w.Tags, Requirements: w.Requirements, OnFailureWorkflow: w.OnFailureWorkflow,
		OnFailureQueue: w.OnFailureTaskQueue,
		ConcurrencyKey: w.ConcurrencyKey, ConcurrencyLimit: int(w.ConcurrencyLimit),
		ConcurrencyScope: scope, Origin: engine.OriginImport,
		ParentRunID:   f.id("parent_run_id", w.GetParentRunId()),
		ParentStepID:  f.id("parent_step_id", w.GetParentStepId()),
		FailedRunID:   f.id("failed_run_id", w.GetFailedRunId()),
		RetriedFrom:   f.id("retried_from_run_id", w.GetRetriedFromRunId()),
		ContinuedFrom: f.id("continued_from_run_id", w.GetContinuedFromRunId()),
		ContinuedAs:   f.id("continued_as_run_id", w.GetContinuedAsRunId()),
		BelowHandler:  w.BelowHandler,
		FirstRunID:    f.id("first_run_id", w.GetFirstRunId()),
		UnreadSignals: int(w.UnreadSignals), Unreached: w.Unreached,
	}
	if n := w.StepRetries; n != nil { // in older capsules attempts counts both, and its budget begins again
		f.keep(engine.CheckCount("attempts", int(w.Attempts), 1))
		f.keep(engine.CheckCount("step_retries", int(*n), 0))
		run.Failures = int(w.Attempts) - 1
	}
	if run.ConcurrencyKey != "" && run.ConcurrencyLimit == 0 {
		run.ConcurrencyLimit = 1
	}
	if w.ParentClosePolicy != kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_UNSPECIFIED {
		// set as for a run without a parent
		run.ParentClose = engine.ParentClose(f.enum(
			"parent_close_policy", int32(w.ParentClosePolicy), kagziv1.ParentClosePolicy_name))
	}
	f.keep(run.ValidateImport())
	if run.Status.Ended() && run.FinishedAt.IsZero() {
		f.keep(engine.Invalid("finished_at", "must be set, because the run has ended"))
	}
	return run, f.err
}

func importedStepOf(m *kagziv1.Step) (engine.Step, error) {
	var f fields
	step := engine.Step{
		ID: f.id("step_id", m.StepId), Name: m.Name,
		Kind:    engine.StepKind(f.enum("kind", int32(m.Kind), kagziv1.StepKind_name)),
		Status:  engine.StepStatus(f.enum("status", int32(m.Status), kagziv1.StepStatus_name)),
		Attempt: int(m.AttemptNumber), Sequence: m.Sequence,
		Input: wire.PayloadOf(m.Input), Output: wire.PayloadOf(m.Output), Error: f.failure(m.Error),
		WorkerID:  m.WorkerId,
		CreatedAt: f.time("created_at", m.CreatedAt), StartedAt: f.time("started_at", m.StartedAt),
		FinishedAt: f.time("finished_at", m.FinishedAt),
		RetryAt:    f.time("retry_at", m.RetryAt), WakeAt: f.time("wake_up_at", m.WakeUpAt),
		SignalName: m.SignalName, TimedOut: m.SignalTimedOut, ChildType: m.ChildType, ChildRunID: f.id("child_run_id", m.GetChildRunId()),
		OverriddenBy: m.OverriddenBy, OverrideReason: m.OverrideReason,
		Settled: m.Settled, Branch: m.Branch, BegunIn: m.BegunIn,
	}
	f.keep(step.ValidateImport())
	return step, f.err
}

func importedSignalOf(m *kagziv1.Signal) (engine.Signal, error) {
	var f fields
	signal := engine.Signal{
		Sequence: m.Sequence, Name: m.Name, SignalID: m.SignalId, Payload: wire.PayloadOf(m.Payload),
		ReceivedAt: f.time("received_at", m.ReceivedAt), StepName: m.GetStepName(),
	}
	f.keep(signal.ValidateImport())
	return signal, f.err
}
