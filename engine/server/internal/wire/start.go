package wire

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// StartReader reads the starts of runs.
type StartReader struct {
	Now func() time.Time
	// Uncertainty returns the store's; nil is none.
	Uncertainty func() time.Duration
	// Trace returns the trace context to store with the run of a start.
	Trace func(context.Context, *kagziv1.StartWorkflowRequest) string
}

// Start reads and validates one start.
func (s *StartReader) Start(ctx context.Context, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	start, err := s.readStart(ctx, r)
	if err != nil {
		return engine.StartRun{}, err
	}
	start.Queue = OrDefault(start.Queue)
	if err := start.Validate(); err != nil {
		return engine.StartRun{}, err
	}
	return settled(start), nil
}

// Child reads and validates the start of a child. It ignores request_id, because the name of the
// step identifies a repetition.
func (s *StartReader) Child(ctx context.Context, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	if err := checkTied(r); err != nil {
		return engine.StartRun{}, err
	}
	start, err := s.Start(ctx, r)
	start.RequestID = ""
	return start, err
}

// Continuation reads and validates the start of the run that another continues as. Empty fields are
// taken from that one.
func (s *StartReader) Continuation(ctx context.Context, namespace string,
	r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	if err := checkTied(r); err != nil {
		return engine.StartRun{}, err
	}
	if r.Namespace != "" && r.Namespace != namespace {
		return engine.StartRun{}, engine.Invalid("namespace", "must be that of the run")
	}
	if r.ParentRunId != "" {
		return engine.StartRun{}, engine.Invalid("parent_run_id", "cannot be given: the parent is that of the run")
	}
	start, err := s.readStart(ctx, r)
	if err != nil {
		return engine.StartRun{}, err
	}
	start.Namespace = namespace
	if err := start.ValidateContinuation(); err != nil {
		return engine.StartRun{}, err
	}
	start.RequestID = ""
	next := settled(start)
	// the store settles it with the limit, which may be that of the run
	next.DeadlineAt, next.NamedDeadlineAt = start.DeadlineAt, time.Time{}
	return next, nil
}

// checkTied returns an error for fields that the start of a child or a continuation must not set.
func checkTied(r *kagziv1.StartWorkflowRequest) error {
	if r.ParentStepId != "" {
		return engine.Invalid("parent_step_id", "cannot be given: the step is known")
	}
	if r.ExternalIdReuse == kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER {
		return engine.Invalid("external_id_reuse", "cannot be NEVER: an earlier run cannot replace this one")
	}
	return nil
}

// readStart reads one start without validating it.
func (s *StartReader) readStart(ctx context.Context, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	now := s.Now()
	namespace, err := NamespaceOf(r.Namespace)
	if err != nil {
		return engine.StartRun{}, err
	}
	var margin time.Duration
	if s.Uncertainty != nil {
		margin = s.Uncertainty()
	}
	startAt, err := startAtOf(r, now, margin)
	if err != nil {
		return engine.StartRun{}, err
	}
	deadline, err := TimeOf("deadline_at", r.DeadlineAt)
	if err != nil {
		return engine.StartRun{}, err
	}
	parent, err := OptionalIDOf("parent_run_id", r.ParentRunId)
	if err != nil {
		return engine.StartRun{}, err
	}
	parentStep, err := OptionalIDOf("parent_step_id", r.ParentStepId)
	if err != nil {
		return engine.StartRun{}, err
	}
	if _, known := kagziv1.ExternalIdReuse_name[int32(r.ExternalIdReuse)]; !known {
		return engine.StartRun{}, engine.Invalid("external_id_reuse", "has the unknown value %d", r.ExternalIdReuse)
	}
	scope, err := ScopeOf(r.ConcurrencyScope)
	if err != nil {
		return engine.StartRun{}, err
	}
	start := engine.StartRun{Reuse: engine.ExternalIDReuse(r.ExternalIdReuse), Run: engine.Run{
		ID: engine.NewID(now), Namespace: namespace, ExternalID: r.ExternalId, RequestID: r.RequestId,
		Queue: r.TaskQueue, Type: r.WorkflowType, Version: r.Version, Status: engine.RunPending, Attempts: 1,
		Input: PayloadOf(r.Input), CreatedAt: now, AvailableAt: now, DeadlineAt: deadline,
		RetryPolicy: RetryPolicyOf(r.RetryPolicy), RunRetryPolicy: RetryPolicyOf(r.RunRetryPolicy),
		Timeouts: TimeoutsOf(r.Timeouts), Tags: r.Tags, Requirements: r.Requirements,
		OnFailureWorkflow: r.OnFailureWorkflow, OnFailureQueue: r.OnFailureTaskQueue, Priority: int(r.GetPriority()),
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: int(r.ConcurrencyLimit),
		ConcurrencyScope: scope,
		ParentRunID:      parent, ParentStepID: parentStep, Traceparent: s.Trace(ctx, r),
	}}
	if startAt.After(now) {
		start.AvailableAt = startAt
	}
	return start, nil
}

// startAtOf returns when the run may start; zero: at once.
func startAtOf(r *kagziv1.StartWorkflowRequest, now time.Time, margin time.Duration) (time.Time, error) {
	if r.StartIn == nil {
		return TimeOf("start_at", r.StartAt)
	}
	in, err := DurationOf("start_in", r.StartIn)
	if err == nil && (in < 0 || in > engine.MaxDelay) {
		err = engine.Invalid("start_in", "must be between 0 and 10 years, got %s", in)
	}
	if err != nil || in == 0 {
		return now, err
	}
	return engine.Micros(now.Add(min(in+margin, engine.MaxDelay))), nil
}

// ScopeOf reads the scope of a concurrency key.
func ScopeOf(s kagziv1.ConcurrencyScope) (engine.ConcurrencyScope, error) {
	switch s {
	case kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_UNSPECIFIED, kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_SLOT:
		return engine.ScopeSlot, nil
	case kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN:
		return engine.ScopeOpen, nil
	}
	return 0, engine.Invalid("concurrency_scope", "has the unknown value %d", s)
}

// scopeTo returns the scope of a concurrency key; unspecified without a key.
func scopeTo(key string, s engine.ConcurrencyScope) kagziv1.ConcurrencyScope {
	switch {
	case key == "":
		return kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_UNSPECIFIED
	case s == engine.ScopeOpen:
		return kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN
	}
	return kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_SLOT
}

// settled returns a valid start with the fields that follow from others.
func settled(start engine.StartRun) engine.StartRun {
	start.SettleDeadline()
	if start.ConcurrencyKey != "" && start.ConcurrencyLimit == 0 {
		start.ConcurrencyLimit = 1
	}
	start.Bytes = int64(start.Input.Size())
	return start
}
