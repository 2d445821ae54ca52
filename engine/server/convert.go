package server

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// From the wire.

func payloadOf(p *kagziv1.Payload) engine.Payload {
	if p == nil {
		return engine.Payload{}
	}
	return engine.Payload{Data: p.Data, Metadata: p.Metadata}
}

// failureOf reads a failure, made fit to be stored: text that is too long is cut rather than refused, for the report of a failure
// must not fail.
func failureOf(e *kagziv1.ErrorDetail) (engine.Failure, error) {
	if e == nil {
		return engine.Failure{}, engine.Invalid("error", "must be set")
	}
	if _, known := kagziv1.ErrorCode_name[int32(e.Code)]; !known {
		return engine.Failure{}, engine.Invalid("error.code", "has the unknown value %d", e.Code)
	}
	if e.RetryAfterMs < 0 {
		return engine.Failure{}, engine.Invalid("error.retry_after_ms", "must not be negative, got %d", e.RetryAfterMs)
	}
	return engine.Failure{
		Code: engine.FailureCode(e.Code), Type: e.Type, Message: e.Message, Stack: e.Stack,
		NonRetryable: e.NonRetryable, RetryAfterMS: e.RetryAfterMs, Metadata: e.Metadata,
	}.Clean(), nil
}

func retryPolicyOf(p *kagziv1.RetryPolicy) *engine.RetryPolicy {
	if p == nil {
		return nil
	}
	return &engine.RetryPolicy{
		MaximumAttempts: int(p.MaximumAttempts), InitialIntervalMS: p.InitialIntervalMs, Coefficient: p.BackoffCoefficient,
		MaximumIntervalMS: p.MaximumIntervalMs, Jitter: p.Jitter, NonRetryable: p.NonRetryableErrors,
	}
}

// milliseconds turns a count into a length of time; one that would overflow becomes one that every check refuses.
func milliseconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}

func timeoutsOf(t *kagziv1.TimeoutConfig) engine.Timeouts {
	return engine.Timeouts{
		StartToClose: milliseconds(t.GetStartToCloseTimeoutMs()),
		Heartbeat:    milliseconds(t.GetHeartbeatTimeoutMs()),
		Execution:    milliseconds(t.GetExecutionTimeoutMs()),
	}
}

// timeOf reads a moment; absent is the zero time.
func timeOf(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil || t.Seconds < 0 {
		return time.Time{}, engine.Invalid(field, "is not a valid time after 1970")
	}
	return engine.Micros(t.AsTime()), nil
}

// durationOf reads a length of time; absent is 0.
func durationOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil {
		return 0, engine.Invalid(field, "is not a valid duration")
	}
	return d.AsDuration(), nil
}

func namespaceOf(name string) (string, error) {
	if name == "" {
		return "default", nil
	}
	return name, engine.CheckNamespace("namespace", name)
}

func idOf(field, s string) (engine.ID, error) {
	id, err := engine.ParseID(s)
	if err != nil || id.IsZero() {
		return engine.ID{}, engine.Invalid(field, "must be a UUID, got %q", cut(s))
	}
	return id, nil
}

// optionalIDOf is idOf for a field that may be empty.
func optionalIDOf(field, s string) (engine.ID, error) {
	if s == "" {
		return engine.ID{}, nil
	}
	return idOf(field, s)
}

// cut keeps an echo of what was sent short.
func cut(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}

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
		NonRetryable: f.NonRetryable, RetryAfterMs: f.RetryAfterMS, Metadata: f.Metadata,
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
		DeadlineAt: timeTo(r.DeadlineAt), Tags: r.Tags, WaitingFor: r.WaitingFor,
		RetryPolicy: retryPolicyTo(r.RetryPolicy), Timeouts: timeoutsTo(r.Timeouts),
		OnFailureWorkflow: r.OnFailureWorkflow, OnFailureTaskQueue: r.OnFailureQueue, Requirements: r.Requirements,
		StepCount: r.Steps, ConcurrencyKey: r.ConcurrencyKey, LeaseLosses: int32(r.LeaseLosses),
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
	}
	return task
}

func workerTo(w *engine.Worker) *kagziv1.Worker {
	worker := &kagziv1.Worker{
		WorkerId: w.ID, Namespace: w.Namespace, Status: kagziv1.WorkerStatus(w.Status), Version: w.Version, WorkflowTypes: w.Types,
		Hostname: w.Hostname, Pid: int32(w.PID), ActiveWorkflowCount: int32(w.Active),
		RegisteredAt: timeTo(w.RegisteredAt), LastHeartbeatAt: timeTo(w.LastHeartbeatAt), DeregisteredAt: timeTo(w.DeregisteredAt),
		Labels: w.Labels, Capabilities: w.Capabilities, Platform: w.Platform, MaxConcurrent: int32(w.MaxConcurrent),
		TotalCompleted: w.Completed, TotalFailed: w.Failed, TaskQueues: w.Queues,
		Stats: &kagziv1.WorkerStats{
			CpuPercent: w.Stats.CPUPercent, MemoryBytes: w.Stats.MemoryBytes, DiskAvailableBytes: w.Stats.DiskAvailableBytes,
			UptimeSeconds: w.Stats.UptimeSeconds, AverageRunMs: w.Stats.AverageRunMS,
		},
	}
	if len(w.Queues) > 0 {
		worker.TaskQueue = w.Queues[0]
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
