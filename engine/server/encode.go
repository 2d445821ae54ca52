package server

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// To the wire.

func payloadTo(p engine.Payload) *kagziv1.Payload {
	if p.Data == nil && len(p.Metadata) == 0 {
		return nil
	}
	return &kagziv1.Payload{Data: p.Data, Metadata: p.Metadata}
}

func failureTo(f *engine.Failure) *kagziv1.ErrorDetail {
	if f == nil {
		return nil
	}
	return &kagziv1.ErrorDetail{
		Code: kagziv1.ErrorCode(f.Code), Type: f.Type, Message: f.Message, Stack: f.Stack,
		NonRetryable: f.NonRetryable, RetryAfterMs: f.RetryAfterMS, Subject: f.Subject, SubjectId: f.SubjectID, Metadata: f.Metadata,
	}
}

func retryPolicyTo(p *engine.RetryPolicy) *kagziv1.RetryPolicy {
	if p == nil {
		return nil
	}
	return &kagziv1.RetryPolicy{
		MaximumAttempts: int32(p.MaximumAttempts), InitialIntervalMs: p.InitialIntervalMS, BackoffCoefficient: p.Coefficient,
		MaximumIntervalMs: p.MaximumIntervalMS, Jitter: p.Jitter, NonRetryableErrors: p.NonRetryable,
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

func timeTo(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// optional is a pointer to a string that is there.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func runTo(r *engine.Run) *kagziv1.Workflow {
	w := &kagziv1.Workflow{
		Namespace: r.Namespace, RunId: r.ID.String(), ExternalId: r.ExternalID, TaskQueue: r.Queue, WorkflowType: r.Type,
		Status: kagziv1.WorkflowStatus(r.Status), Version: r.Version,
		Input: payloadTo(r.Input), Output: payloadTo(r.Output), Error: failureTo(r.Error),
		Attempts: int32(r.Attempts), Priority: proto.Int32(int32(r.Priority)),
		CreatedAt: timeTo(r.CreatedAt), StartedAt: timeTo(r.StartedAt), FinishedAt: timeTo(r.FinishedAt), WakeUpAt: timeTo(r.AvailableAt),
		WorkerId: optional(r.WorkerID), ParentRunId: optional(r.ParentRunID.String()), ParentStepId: optional(r.ParentStepID.String()),
		DeadlineAt: timeTo(r.DeadlineAt), NamedDeadlineAt: timeTo(r.NamedDeadlineAt), Tags: r.Tags, WaitingFor: r.WaitingFor,
		RetryPolicy: retryPolicyTo(r.RetryPolicy), Timeouts: timeoutsTo(r.Timeouts),
		OnFailureWorkflow: r.OnFailureWorkflow, OnFailureTaskQueue: r.OnFailureQueue, Requirements: r.Requirements,
		StepCount: r.Steps, Note: r.Note, Paused: r.Paused, Pinned: r.Pinned, LeaseLosses: int32(r.LeaseLosses),
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: int32(r.ConcurrencyLimit),
		ScheduleId: optional(r.ScheduleID), ScheduledAt: timeTo(r.ScheduledAt),
		CancelRequestedAt: timeTo(r.CancelRequestedAt), CancelGraceUntil: timeTo(r.GraceUntil),
		FailedRunId: optional(r.FailedRunID.String()), RetriedFromRunId: optional(r.RetriedFrom.String()),
		ContinuedFromRunId: optional(r.ContinuedFrom.String()), ContinuedAsRunId: optional(r.ContinuedAs.String()),
		ParentClosePolicy: kagziv1.ParentClosePolicy(r.ParentClose),
	}
	if r.Timeouts.Execution > 0 {
		w.TimeoutMs = proto.Int64(r.Timeouts.Execution.Milliseconds())
	}
	return w
}

func stepTo(namespace string, s *engine.Step) *kagziv1.Step {
	step := &kagziv1.Step{
		Namespace: namespace, StepId: s.ID.String(), RunId: s.RunID.String(), Name: s.Name,
		Kind: kagziv1.StepKind(s.Kind), Status: kagziv1.StepStatus(s.Status), AttemptNumber: int32(s.Attempt),
		Input: payloadTo(s.Input), Output: payloadTo(s.Output), Error: failureTo(s.Error),
		CreatedAt: timeTo(s.CreatedAt), StartedAt: timeTo(s.StartedAt), FinishedAt: timeTo(s.FinishedAt),
		TimeoutAt: timeTo(s.TimeoutAt), RetryAt: timeTo(s.RetryAt), WakeUpAt: timeTo(s.WakeAt),
		WorkerId: s.WorkerID, IsLatest: s.Latest, Sequence: s.Sequence,
		ChildRunId: optional(s.ChildRunID.String()), SignalName: s.SignalName, SignalTimedOut: s.TimedOut,
		OverriddenBy: s.OverriddenBy, OverrideReason: s.OverrideReason,
	}
	if s.Status == engine.StepCompleted && step.Output == nil {
		step.Output = &kagziv1.Payload{} // completed with nothing, which is a result too
	}
	return step
}

func stepsTo(namespace string, steps []engine.Step) []*kagziv1.Step {
	list := make([]*kagziv1.Step, len(steps))
	for i := range steps {
		list[i] = stepTo(namespace, &steps[i])
	}
	return list
}

func (s *Server) taskTo(t *engine.Task) *kagziv1.Task {
	r := &t.Run
	task := &kagziv1.Task{
		Namespace: r.Namespace, RunId: r.ID.String(), WorkflowType: r.Type, TaskQueue: r.Queue, Version: r.Version,
		Input: payloadTo(r.Input), LeaseToken: t.Lease.Token.Wire(), Attempt: int32(r.Attempts),
		LeaseExpiresAt: timeTo(t.ClaimedAt.Add(max(s.options.WorkerLease, r.Timeouts.Heartbeat))), DeadlineAt: timeTo(r.DeadlineAt),
		RetryPolicy: retryPolicyTo(r.RetryPolicy), Timeouts: timeoutsTo(r.Timeouts),
		History: stepsTo(r.Namespace, t.History), NextHistoryToken: historyToken(t.NextSequence),
		ExternalId: r.ExternalID, ParentRunId: optional(r.ParentRunID.String()), Tags: r.Tags, Traceparent: r.Traceparent,
		ScheduleId: optional(r.ScheduleID), ScheduledAt: timeTo(r.ScheduledAt), FailedRunId: optional(r.FailedRunID.String()),
	}
	if !r.CancelRequestedAt.IsZero() {
		task.CancelRequested, task.CancelGraceUntil, task.CancelReason = true, timeTo(r.GraceUntil), cancelReasonTo(r.CancelReason)
	}
	return task
}

// cancelReasonTo is why a run's code is to stop, as the run's error will say.
func cancelReasonTo(reason string) *kagziv1.ErrorDetail {
	failure := engine.EndedByFailure(engine.RunCancelled, reason)
	return failureTo(&failure)
}

// cancellingTo is the word to a worker that the code of a run that it holds is to stop.
func cancellingTo(h engine.Held) *kagziv1.CancelTask {
	return &kagziv1.CancelTask{
		RunId: h.Lease.RunID.String(), LeaseToken: h.Lease.Token.Wire(), Reason: cancelReasonTo(h.CancelReason), GraceUntil: timeTo(h.GraceUntil),
	}
}

func workerTo(w *engine.Worker) *kagziv1.Worker {
	worker := &kagziv1.Worker{
		WorkerId: w.ID, Namespace: w.Namespace, Status: kagziv1.WorkerStatus(w.Status), Version: w.Version, WorkflowTypes: w.Types,
		Hostname: w.Hostname, Pid: int32(w.PID),
		RegisteredAt: timeTo(w.RegisteredAt), LastHeartbeatAt: timeTo(w.LastHeartbeatAt), DeregisteredAt: timeTo(w.DeregisteredAt),
		Labels: w.Labels, Capabilities: w.Capabilities, Platform: w.Platform, MaxConcurrent: int32(w.MaxConcurrent),
		TotalCompleted: w.Completed, TotalFailed: w.Failed, TaskQueues: w.Queues,
	}
	if w.Stats != (engine.WorkerStats{}) {
		worker.Stats = &kagziv1.WorkerStats{
			CpuPercent: w.Stats.CPUPercent, MemoryBytes: w.Stats.MemoryBytes, DiskAvailableBytes: w.Stats.DiskAvailableBytes,
			UptimeSeconds: w.Stats.UptimeSeconds, AverageRunMs: w.Stats.AverageRunMS,
		}
	}
	if w.Status != engine.WorkerOffline { // then what it last reported is no longer so: it holds nothing
		worker.ActiveWorkflowCount = int32(w.Active)
	}
	if len(w.Queues) > 0 {
		worker.TaskQueue = w.Queues[0]
	}
	if w.Reason != 0 {
		worker.OfflineReason = kagziv1.WorkerOfflineReason(w.Reason).Enum()
	}
	if w.QueueLimit > 0 {
		worker.QueueConcurrencyLimit = proto.Int32(int32(w.QueueLimit))
	}
	for _, name := range sortedNames(w.TypeLimits) {
		worker.WorkflowTypeConcurrency = append(worker.WorkflowTypeConcurrency,
			&kagziv1.WorkflowTypeConcurrency{WorkflowType: name, MaxConcurrent: int32(w.TypeLimits[name])})
	}
	return worker
}
