package wire

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// PayloadTo returns the message of a payload; nil for the empty one.
func PayloadTo(p engine.Payload) *kagziv1.Payload {
	if p.Data == nil && len(p.Metadata) == 0 {
		return nil
	}
	return &kagziv1.Payload{Data: p.Data, Metadata: p.Metadata}
}

// FailureTo returns the message of a failure; nil for nil.
func FailureTo(f *engine.Failure) *kagziv1.ErrorDetail {
	if f == nil {
		return nil
	}
	return &kagziv1.ErrorDetail{
		Code: kagziv1.ErrorCode(f.Code), Type: f.Type, Message: f.Message, Stack: f.Stack,
		NonRetryable: f.NonRetryable, RetryAfterMs: f.RetryAfterMS, Subject: f.Subject, SubjectId: f.SubjectID,
		Metadata: f.Metadata,
	}
}

func retryPolicyTo(p *engine.RetryPolicy) *kagziv1.RetryPolicy {
	if p == nil {
		return nil
	}
	return &kagziv1.RetryPolicy{
		MaximumAttempts: int32(p.MaximumAttempts), InitialIntervalMs: p.InitialIntervalMS,
		BackoffCoefficient: p.Coefficient,
		MaximumIntervalMs:  p.MaximumIntervalMS, Jitter: p.Jitter, NonRetryableErrors: p.NonRetryable,
	}
}

func timeoutsTo(t engine.Timeouts) *kagziv1.TimeoutConfig {
	if t == (engine.Timeouts{}) {
		return nil
	}
	return &kagziv1.TimeoutConfig{
		StartToCloseTimeoutMs: t.StartToClose.Milliseconds(),
		HeartbeatTimeoutMs:    t.Heartbeat.Milliseconds(),
		ExecutionTimeoutMs:    t.Execution.Milliseconds(),
	}
}

// TimeTo returns the message of a time; nil for the zero time.
func TimeTo(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// optional returns a pointer to a string; nil for the empty one.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// RunTo returns the message of a run.
func RunTo(r *engine.Run) *kagziv1.Workflow {
	w := &kagziv1.Workflow{
		Namespace: r.Namespace, RunId: r.ID.String(), ExternalId: r.ExternalID, TaskQueue: r.Queue,
		WorkflowType: r.Type,
		Status:       kagziv1.WorkflowStatus(r.Status), Version: r.Version,
		Input: PayloadTo(r.Input), Output: PayloadTo(r.Output), Error: FailureTo(r.Error),
		Attempts: int32(r.Attempt()), StepRetries: proto.Int32(int32(r.StepRetries())),
		Priority:  proto.Int32(int32(r.Priority)),
		CreatedAt: TimeTo(r.CreatedAt), StartedAt: TimeTo(r.StartedAt), FinishedAt: TimeTo(r.FinishedAt),
		WakeUpAt: TimeTo(r.AvailableAt),
		WorkerId: optional(r.WorkerID), ParentRunId: optional(r.ParentRunID.String()),
		ParentStepId: optional(r.ParentStepID.String()),
		DeadlineAt:   TimeTo(r.DeadlineAt), NamedDeadlineAt: TimeTo(r.NamedDeadlineAt), Tags: r.Tags,
		WaitingFor:  r.WaitingFor,
		RetryPolicy: retryPolicyTo(r.RetryPolicy), RunRetryPolicy: retryPolicyTo(r.RunRetryPolicy),
		Timeouts:          timeoutsTo(r.Timeouts),
		OnFailureWorkflow: r.OnFailureWorkflow, OnFailureTaskQueue: r.OnFailureQueue, Requirements: r.Requirements,
		StepCount: r.Steps, Note: r.Note, Paused: r.Paused, Pausing: r.Pausing,
		PausedAt: TimeTo(r.PausedAt), Pinned: r.Pinned, LeaseLosses: int32(r.LeaseLosses),
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: int32(r.ConcurrencyLimit),
		ConcurrencyScope: scopeTo(r.ConcurrencyKey, r.ConcurrencyScope), HasPlace: r.HasPlace,
		ScheduleId: optional(r.ScheduleID), ScheduledAt: TimeTo(r.ScheduledAt),
		CancelRequestedAt: TimeTo(r.CancelRequestedAt), CancelGraceUntil: TimeTo(r.GraceUntil),
		FailedRunId: optional(r.FailedRunID.String()), RetriedFromRunId: optional(r.RetriedFrom.String()),
		ContinuedFromRunId: optional(r.ContinuedFrom.String()), ContinuedAsRunId: optional(r.ContinuedAs.String()),
		BelowHandler: r.BelowHandler, FirstRunId: optional(r.FirstRunID.String()),
		ParentClosePolicy: kagziv1.ParentClosePolicy(r.ParentClose),
		Divergences:       divergencesTo(r.Divergences), Unreached: r.Unreached,
		OwedFrom: r.OwedFrom, UnreadSignals: int32(r.UnreadSignals),
	}
	if r.Diverged() {
		w.PauseReason = "diverged"
	}
	if r.Timeouts.Execution > 0 {
		w.TimeoutMs = proto.Int64(r.Timeouts.Execution.Milliseconds())
	}
	return w
}

// ListedRunTo returns the message of a run in a list, without what only one run by itself shows.
func ListedRunTo(r *engine.Run) *kagziv1.Workflow {
	w := RunTo(r)
	w.Divergences, w.Unreached = nil, nil
	return w
}

// StepTo returns the message of a step's attempt.
func StepTo(namespace string, s *engine.Step) *kagziv1.Step {
	step := &kagziv1.Step{
		Namespace: namespace, StepId: s.ID.String(), RunId: s.RunID.String(), Name: s.Name,
		Kind: kagziv1.StepKind(s.Kind), Status: kagziv1.StepStatus(s.Status), AttemptNumber: int32(s.Attempt),
		Input: PayloadTo(s.Input), Output: PayloadTo(s.Output), Error: FailureTo(s.Error),
		CreatedAt: TimeTo(s.CreatedAt), StartedAt: TimeTo(s.StartedAt), FinishedAt: TimeTo(s.FinishedAt),
		TimeoutAt: TimeTo(s.TimeoutAt), RetryAt: TimeTo(s.RetryAt), WakeUpAt: TimeTo(s.WakeAt),
		WorkerId: s.WorkerID, IsLatest: s.Latest, Sequence: s.Sequence,
		ChildRunId: optional(s.ChildRunID.String()), SignalName: s.SignalName, SignalTimedOut: s.TimedOut,
		ChildType:    s.ChildType,
		OverriddenBy: s.OverriddenBy, OverrideReason: s.OverrideReason,
		Settled: SettledTo(s), Branch: s.Branch, BegunIn: s.BegunIn,
	}
	if s.Status == engine.StepCompleted && step.Output == nil {
		step.Output = &kagziv1.Payload{} // an empty result is a result too
	}
	return step
}

// StepWithPlaceTo is StepTo for those who import or replay the run: they have to know which results no
// worker was told yet.
func StepWithPlaceTo(namespace string, s *engine.Step) *kagziv1.Step {
	step := StepTo(namespace, s)
	step.Settled = s.Settled
	return step
}

// SettledTo returns the place of a step's result in the order of results; 0 if it has none yet.
func SettledTo(s *engine.Step) int64 { return max(s.Settled, 0) }

// StepsTo returns the messages of attempts.
func StepsTo(namespace string, steps []engine.Step) []*kagziv1.Step {
	list := make([]*kagziv1.Step, len(steps))
	for i := range steps {
		list[i] = StepTo(namespace, &steps[i])
	}
	return list
}

// SignalTo returns the message of a signal.
func SignalTo(s *engine.Signal) *kagziv1.Signal {
	return &kagziv1.Signal{
		Sequence: s.Sequence, Name: s.Name, SignalId: s.SignalID, Payload: PayloadTo(s.Payload),
		ReceivedAt: TimeTo(s.ReceivedAt), StepName: optional(s.StepName),
	}
}

// StepCursor returns the cursor of an attempt in a list of steps.
func StepCursor(s *engine.Step) engine.Cursor {
	return engine.Cursor{Number: s.Sequence, Minor: s.Attempt}
}
