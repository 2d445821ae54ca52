package cli

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// steer returns the run of a request, or the error for the method, or for method and run.
func (f *fake) steer(method, runID string, request any) (*kagziv1.Workflow, error) {
	if err := f.note(method, request); err != nil {
		return nil, err
	}
	if err := f.fail[method+" "+runID]; err != nil {
		return nil, err
	}
	return f.find(runID)
}

func (f *fake) PauseWorkflow(_ context.Context, r *kagziv1.PauseWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.PauseWorkflowResponse, error) {
	run, err := f.steer("PauseWorkflow", r.RunId, r)
	if err == nil {
		run.Pausing = run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING && !r.Now
		run.Paused = !run.Pausing
	}
	return &kagziv1.PauseWorkflowResponse{Workflow: run}, err
}

func (f *fake) ResumeWorkflow(_ context.Context, r *kagziv1.ResumeWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.ResumeWorkflowResponse, error) {
	run, err := f.steer("ResumeWorkflow", r.RunId, r)
	if err == nil {
		run.Paused, run.Pausing = false, false
	}
	return &kagziv1.ResumeWorkflowResponse{Workflow: run}, err
}

func (f *fake) PinWorkflow(_ context.Context, r *kagziv1.PinWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.PinWorkflowResponse, error) {
	run, err := f.steer("PinWorkflow", r.RunId, r)
	if err == nil {
		run.Pinned = r.Pinned
	}
	return &kagziv1.PinWorkflowResponse{Workflow: run}, err
}

// RetryWorkflow starts one run per retried run; a second retry returns the first.
func (f *fake) RetryWorkflow(_ context.Context, r *kagziv1.RetryWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.RetryWorkflowResponse, error) {
	run, err := f.steer("RetryWorkflow", r.RunId, r)
	if err != nil {
		return nil, err
	}
	answer := &kagziv1.RetryWorkflowResponse{NewRunId: r.RunId + "-again", AlreadyRetried: f.retriedBefore}
	if _, err := f.find(answer.NewRunId); err == nil {
		answer.AlreadyRunning = true
		return answer, nil
	}
	f.runs = append(f.runs, &kagziv1.Workflow{
		RunId: answer.NewRunId, WorkflowType: run.WorkflowType, Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
		RetriedFromRunId: &r.RunId})
	return answer, nil
}

func (f *fake) OverrideStep(_ context.Context, r *kagziv1.OverrideStepRequest,
	_ ...grpc.CallOption) (*kagziv1.OverrideStepResponse, error) {
	if _, err := f.steer("OverrideStep", r.RunId, r); err != nil {
		return nil, err
	}
	s := &kagziv1.Step{
		RunId: r.RunId, Name: r.StepName, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, AttemptNumber: 3, Sequence: 2,
		IsLatest: true, FinishedAt: at(0), Output: r.GetOutput(), Error: r.GetError(),
		Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, OverriddenBy: "local", OverrideReason: r.Reason,
	}
	if r.GetError() != nil {
		s.Status = kagziv1.StepStatus_STEP_STATUS_FAILED
	}
	f.stepList = append(f.stepList, s)
	return &kagziv1.OverrideStepResponse{Step: s}, nil
}

func (f *fake) ExplainWorkflow(_ context.Context, r *kagziv1.ExplainWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.ExplainWorkflowResponse, error) {
	_, err := f.steer("ExplainWorkflow", r.RunId, r)
	return f.explained, err
}

// SignalWorkflow delivers a signal id once.
func (f *fake) SignalWorkflow(_ context.Context, r *kagziv1.SignalWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.SignalWorkflowResponse, error) {
	if _, err := f.steer("SignalWorkflow", r.RunId, r); err != nil {
		return nil, err
	}
	for _, s := range f.signals {
		if s.SignalId == r.SignalId {
			return &kagziv1.SignalWorkflowResponse{AlreadyDelivered: true}, nil
		}
	}
	f.signals = append(f.signals, &kagziv1.Signal{
		Sequence: int64(len(f.signals) + 1), Name: r.Name, SignalId: r.SignalId, Payload: r.Payload, ReceivedAt: at(0)})
	return &kagziv1.SignalWorkflowResponse{}, nil
}

func (f *fake) ListSignals(_ context.Context, r *kagziv1.ListSignalsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListSignalsResponse, error) {
	signals, page, err := pageOf(f.signals, r.Page)
	if failure := f.note("ListSignals", r); failure != nil {
		return nil, failure
	}
	return &kagziv1.ListSignalsResponse{Signals: signals, Page: page}, err
}

func (f *fake) ListAuditEvents(_ context.Context, r *kagziv1.ListAuditEventsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListAuditEventsResponse, error) {
	var events []*kagziv1.AuditEvent
	for _, e := range f.audit {
		if r.SubjectId == nil || e.SubjectId == r.GetSubjectId() {
			events = append(events, e)
		}
	}
	if failure := f.note("ListAuditEvents", r); failure != nil {
		return nil, failure
	}
	events, page, err := pageOf(events, r.Page)
	return &kagziv1.ListAuditEventsResponse{Events: events, Page: page}, err
}

// events returns its elements and then an end.
type events[T any] struct {
	grpc.ClientStream
	list []T
	end  error
}

func (s *events[T]) Recv() (T, error) {
	if len(s.list) == 0 {
		var none T
		return none, s.end
	}
	event := s.list[0]
	s.list = s.list[1:]
	return event, nil
}

// endOf returns how a stream of a method ends.
func (f *fake) endOf(method string) error {
	if err := f.fail[method+" end"]; err != nil {
		return err
	}
	return io.EOF
}

func (f *fake) BulkWorkflows(_ context.Context, r *kagziv1.BulkWorkflowsRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.BulkWorkflowsProgress], error) {
	if err := f.note("BulkWorkflows", proto.CloneOf(r)); err != nil {
		return nil, err
	}
	return &events[*kagziv1.BulkWorkflowsProgress]{list: f.progress, end: f.endOf("BulkWorkflows")}, nil
}

// ExportWorkflow streams the capsule. Like gRPC it reports a missing run with the first answer.
func (f *fake) ExportWorkflow(_ context.Context, r *kagziv1.ExportWorkflowRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.Capsule], error) {
	if _, err := f.steer("ExportWorkflow", r.RunId, r); err != nil {
		return &events[*kagziv1.Capsule]{end: err}, nil
	}
	stream := &events[*kagziv1.Capsule]{end: f.endOf("ExportWorkflow")}
	for _, part := range f.capsule {
		stream.list = append(stream.list, &kagziv1.Capsule{Data: part})
	}
	return stream, nil
}

func (f *fake) ImportWorkflow(context.Context,
	...grpc.CallOption) (grpc.ClientStreamingClient[kagziv1.Capsule, kagziv1.ImportWorkflowResponse], error) {
	return &upload{server: f}, nil
}

// upload receives a capsule. A server that refuses ends the stream and explains only in its answer.
type upload struct {
	grpc.ClientStream
	server *fake
	parts  int
}

func (u *upload) Send(part *kagziv1.Capsule) error {
	u.parts++
	part = proto.CloneOf(part)
	if u.server.note("ImportWorkflow", part) != nil {
		return io.EOF
	}
	if u.parts > 1 && (part.Namespace != "" || part.RequestId != "") {
		return status.Error(codes.InvalidArgument, "namespace and request_id stand in the first message")
	}
	u.server.imported = append(u.server.imported, part.Data...)
	return nil
}

func (u *upload) CloseAndRecv() (*kagziv1.ImportWorkflowResponse, error) {
	if err := u.server.fail["ImportWorkflow"]; err != nil {
		return nil, err
	}
	first := u.server.requests[len(u.server.requests)-u.parts].(*kagziv1.Capsule)
	return &kagziv1.ImportWorkflowResponse{RunId: "run-9", Runs: 3, AlreadyImported: first.RequestId == "taken"}, nil
}
