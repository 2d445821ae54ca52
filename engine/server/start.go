package server

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// StartWorkflow makes one run.
func (s *Server) StartWorkflow(ctx context.Context, request *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	start, err := s.startOf(ctx, request)
	if err != nil {
		return nil, err
	}
	started, err := s.startRuns(ctx, []engine.StartRun{start})
	if err != nil {
		return nil, err
	}
	if err := started[0].Err; err != nil {
		return nil, err
	}
	return s.startedTo(started[0]), nil
}

// StartWorkflows makes many, in one commit; what is wrong with one is its own affair.
func (s *Server) StartWorkflows(ctx context.Context, request *kagziv1.StartWorkflowsRequest) (*kagziv1.StartWorkflowsResponse, error) {
	if n := len(request.Requests); n == 0 || n > engine.MaxBatch {
		return nil, engine.Invalid("requests", "must hold 1 to %d starts, got %d", engine.MaxBatch, n)
	}
	if n := proto.Size(request); n > engine.MaxBatchBytes {
		return nil, engine.TooLarge("requests", "has %d bytes, at most %d are allowed in one batch", n, engine.MaxBatchBytes)
	}
	response := &kagziv1.StartWorkflowsResponse{Results: make([]*kagziv1.StartWorkflowsResponse_Result, len(request.Requests))}
	starts := make([]engine.StartRun, 0, len(request.Requests))
	places := make([]int, 0, len(request.Requests))
	for i, r := range request.Requests {
		start, err := s.startOf(ctx, r)
		if err != nil {
			response.Results[i] = s.refusedTo(err)
			continue
		}
		starts, places = append(starts, start), append(places, i)
	}
	if len(starts) == 0 {
		return response, nil
	}
	started, err := s.startRuns(ctx, starts)
	if err != nil {
		return nil, err
	}
	for i, one := range started {
		if one.Err != nil {
			response.Results[places[i]] = s.refusedTo(one.Err)
			continue
		}
		response.Results[places[i]] = &kagziv1.StartWorkflowsResponse_Result{Started: s.startedTo(one)}
	}
	return response, nil
}

// refusedTo is a start of many that fails alone.
func (s *Server) refusedTo(err error) *kagziv1.StartWorkflowsResponse_Result {
	code, detail := s.errorDetail(err)
	return &kagziv1.StartWorkflowsResponse_Result{Error: detail, StatusCode: int32(code)}
}

// startRuns remembers what it starts, for whoever starts a run mostly waits for it; and workers that wait here may have the runs at once.
func (s *Server) startRuns(ctx context.Context, starts []engine.StartRun) ([]engine.Started, error) {
	s.fresh.add(starts)
	started, err := s.store.StartRuns(ctx, engine.StartRunsParams{
		Sequenced: engine.Sequenced{Ticket: s.notifyEarly(starts)}, Runs: starts, Handoff: s.dispatcher,
	})
	for i := range starts {
		if err != nil || started[i].Err != nil || started[i].RunID != starts[i].ID {
			s.fresh.drop(starts[i].ID)
		}
	}
	return started, err
}

func (s *Server) startedTo(started engine.Started) *kagziv1.StartWorkflowResponse {
	if !started.Existed && !started.Repeated {
		s.count(runStarted)
	}
	return &kagziv1.StartWorkflowResponse{RunId: started.RunID.String(), AlreadyExists: started.Existed}
}

// startOf reads and validates one start.
func (s *Server) startOf(ctx context.Context, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	start, err := s.readStart(ctx, r)
	if err != nil {
		return engine.StartRun{}, err
	}
	start.Queue = orDefault(start.Queue)
	if err := start.Validate(); err != nil {
		return engine.StartRun{}, err
	}
	return settled(start), nil
}

// childOf reads and validates the start of a child. A repetition is known by the name of its step, so that a request_id adds nothing.
func (s *Server) childOf(ctx context.Context, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	if err := checkTied(r); err != nil {
		return engine.StartRun{}, err
	}
	start, err := s.startOf(ctx, r)
	start.RequestID = ""
	return start, err
}

// continuationOf reads and validates the start of the run that goes on where another ends. What it leaves empty is that one's.
func (s *Server) continuationOf(ctx context.Context, namespace string, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
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
	next.DeadlineAt, next.NamedDeadlineAt = start.DeadlineAt, time.Time{} // with the limit it is settled at the commit, where the run's own is known
	return next, nil
}

// checkTied refuses what a start on behalf of another run has no use for.
func checkTied(r *kagziv1.StartWorkflowRequest) error {
	if r.ParentStepId != "" {
		return engine.Invalid("parent_step_id", "cannot be given: the step is known")
	}
	if r.ExternalIdReuse == kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER {
		return engine.Invalid("external_id_reuse", "cannot be NEVER: no earlier run can take the place of this one")
	}
	return nil
}

// readStart reads one start as it was sent.
func (s *Server) readStart(ctx context.Context, r *kagziv1.StartWorkflowRequest) (engine.StartRun, error) {
	now := s.now()
	namespace, err := namespaceOf(r.Namespace)
	if err != nil {
		return engine.StartRun{}, err
	}
	startAt, err := startAtOf(r, now)
	if err != nil {
		return engine.StartRun{}, err
	}
	deadline, err := timeOf("deadline_at", r.DeadlineAt)
	if err != nil {
		return engine.StartRun{}, err
	}
	parent, err := optionalIDOf("parent_run_id", r.ParentRunId)
	if err != nil {
		return engine.StartRun{}, err
	}
	parentStep, err := optionalIDOf("parent_step_id", r.ParentStepId)
	if err != nil {
		return engine.StartRun{}, err
	}
	if _, known := kagziv1.ExternalIdReuse_name[int32(r.ExternalIdReuse)]; !known {
		return engine.StartRun{}, engine.Invalid("external_id_reuse", "has the unknown value %d", r.ExternalIdReuse)
	}
	start := engine.StartRun{Reuse: engine.ExternalIDReuse(r.ExternalIdReuse), Run: engine.Run{
		ID: engine.NewID(now), Namespace: namespace, ExternalID: r.ExternalId, RequestID: r.RequestId,
		Queue: r.TaskQueue, Type: r.WorkflowType, Version: r.Version, Status: engine.RunPending, Attempts: 1,
		Input: payloadOf(r.Input), CreatedAt: now, AvailableAt: now, DeadlineAt: deadline,
		RetryPolicy: retryPolicyOf(r.RetryPolicy), Timeouts: timeoutsOf(r.Timeouts), Tags: r.Tags, Requirements: r.Requirements,
		OnFailureWorkflow: r.OnFailureWorkflow, OnFailureQueue: r.OnFailureTaskQueue, Priority: int(r.GetPriority()),
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: int(r.ConcurrencyLimit),
		ParentRunID: parent, ParentStepID: parentStep, Traceparent: s.traceOf(ctx, r),
	}}
	if startAt.After(now) {
		start.AvailableAt = startAt
	}
	return start, nil
}

// startAtOf is when the run is to start at the earliest; zero: at once.
func startAtOf(r *kagziv1.StartWorkflowRequest, now time.Time) (time.Time, error) {
	if r.StartIn == nil {
		return timeOf("start_at", r.StartAt)
	}
	in, err := durationOf("start_in", r.StartIn)
	if err == nil && (in < 0 || in > engine.MaxDelay) {
		err = engine.Invalid("start_in", "must be between 0 and 10 years, got %s", in)
	}
	return now.Add(in), err
}

// settled is a valid start with what follows from it.
func settled(start engine.StartRun) engine.StartRun {
	start.SettleDeadline()
	if start.ConcurrencyKey != "" && start.ConcurrencyLimit == 0 {
		start.ConcurrencyLimit = 1
	}
	start.Bytes = int64(start.Input.Size())
	return start
}

func orDefault(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

// traceOf is the trace context that a start belongs to, as it is kept with the run.
func (s *Server) traceOf(ctx context.Context, r *kagziv1.StartWorkflowRequest) string {
	own := fitTrace(r.Traceparent)
	if own == "" || s.options.Tracer == nil {
		return cmp.Or(own, traceparent(ctx))
	}
	// The call carries starts of several traces: each has a span of its own, which points at the call's.
	ctx, span := s.beginSpan(ctx, carrier{"traceparent": {own}}, startMethod, r, trace.WithLinks(trace.LinkFromContext(ctx)))
	defer span.End()
	if !span.IsRecording() {
		return own
	}
	return traced(ctx)
}

const startMethod = "/kagzi.v1.WorkflowService/StartWorkflow"

// traceparent is the caller's W3C trace context, if it is one.
func traceparent(ctx context.Context) string {
	if trace.SpanFromContext(ctx).IsRecording() {
		return traced(ctx) // the server's own span, which has the caller's as its parent
	}
	if values := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(values) == 1 {
		return fitTrace(values[0])
	}
	return ""
}

// fitTrace is a trace context that is fit to be kept; anything else is dropped, for it is only a hint.
func fitTrace(text string) string {
	if len(text) > 64 || engine.CheckOptionalName("traceparent", text) != nil {
		return ""
	}
	return text
}
