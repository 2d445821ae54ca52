package server

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// StartWorkflow makes one run.
func (s *Server) StartWorkflow(ctx context.Context,
	request *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	start, err := s.starts.Start(ctx, request)
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

// StartWorkflows makes many runs in one commit. A start that is refused does not affect the others.
func (s *Server) StartWorkflows(ctx context.Context,
	request *kagziv1.StartWorkflowsRequest) (*kagziv1.StartWorkflowsResponse, error) {
	if n := len(request.Requests); n == 0 || n > engine.MaxBatch {
		return nil, engine.Invalid("requests", "must hold 1 to %d starts, got %d", engine.MaxBatch, n)
	}
	if n := proto.Size(request); n > engine.MaxBatchBytes {
		return nil, engine.TooLarge("requests", "has %d bytes, at most %d are allowed in one batch", n,
			engine.MaxBatchBytes)
	}
	response := &kagziv1.StartWorkflowsResponse{
		Results: make([]*kagziv1.StartWorkflowsResponse_Result, len(request.Requests))}
	starts := make([]engine.StartRun, 0, len(request.Requests))
	places := make([]int, 0, len(request.Requests))
	for i, r := range request.Requests {
		start, err := s.starts.Start(ctx, r)
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

// refusedTo returns the result of a refused start among many.
func (s *Server) refusedTo(err error) *kagziv1.StartWorkflowsResponse_Result {
	code, detail := s.errors.Detail(err)
	return &kagziv1.StartWorkflowsResponse_Result{Error: detail, StatusCode: int32(code)}
}

// startRuns starts runs. It registers them with watch first, because most callers wait for the runs
// that they start, and it offers them to workers that wait on this server.
func (s *Server) startRuns(ctx context.Context, starts []engine.StartRun) ([]engine.Started, error) {
	s.watch.Starting(starts)
	started, err := s.store.StartRuns(ctx, engine.StartRunsParams{
		Sequenced: engine.Sequenced{Ticket: s.notifyEarly(starts)}, Runs: starts, Handoff: s.matcher,
		NamespaceMustExist: !s.known.auto,
	})
	for i := range starts {
		if err != nil || started[i].Err != nil || started[i].RunID != starts[i].ID {
			s.watch.NotStarted(starts[i].ID)
		}
	}
	return started, err
}

func (s *Server) startedTo(started engine.Started) *kagziv1.StartWorkflowResponse {
	if !started.Existed && !started.Repeated {
		s.recorder.Count(metrics.RunStarted)
	}
	return &kagziv1.StartWorkflowResponse{RunId: started.RunID.String(), AlreadyExists: started.Existed,
		OtherInput: started.OtherInput}
}

// traceOf returns the trace context to store with the run of a start.
func (s *Server) traceOf(ctx context.Context, r *kagziv1.StartWorkflowRequest) string {
	own := wire.FitTrace(r.Traceparent)
	if own == "" || s.options.Tracer == nil {
		return cmp.Or(own, traceparent(ctx))
	}
	// A call may carry starts of several traces: each gets its own span, with a link to the call's
	// span.
	ctx, span := s.beginSpan(ctx, carrier{"traceparent": {own}}, startMethod, r,
		trace.WithLinks(trace.LinkFromContext(ctx)))
	defer span.End()
	if !span.IsRecording() {
		return own
	}
	return traced(ctx)
}

const startMethod = "/kagzi.v1.WorkflowService/StartWorkflow"

// traceparent returns the caller's W3C trace context; empty if there is none or it is invalid.
func traceparent(ctx context.Context) string {
	if trace.SpanFromContext(ctx).IsRecording() {
		return traced(ctx) // the server's own span, which has the caller's as its parent
	}
	if values := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(values) == 1 {
		return wire.FitTrace(values[0])
	}
	return ""
}
