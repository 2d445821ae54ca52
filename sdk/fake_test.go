package kagzi

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// fake is a server in memory: runs with histories, leases and timers, behind the real wire. What it leaves out is
// durability, several workers' fairness and the expiry of leases, which tests bring about by name.
type fake struct {
	kagziv1.UnimplementedWorkerServiceServer
	kagziv1.UnimplementedWorkflowServiceServer

	listener *bufconn.Listener
	server   *grpc.Server

	mu       sync.Mutex
	runs     map[string]*fakeRun
	order    []*fakeRun
	sessions []*fakeSession
	tokens   int
	pageSize int // of histories; 0 puts all into the task
	notify   chan struct{}

	lease, heartbeat time.Duration
	skew             time.Duration                                        // of the server's clock before the worker's
	log              []string                                             // operations in the order of their application
	fault            func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail // refuses an operation before it is applied
	mute             func(r *kagziv1.SessionRequest) bool                 // applies an operation and breaks the stream instead of answering
	onHello          func(r *kagziv1.RegisterRequest) error
	stalled          bool // heartbeats get no answer
}

type fakeRun struct {
	kagziv1.Workflow
	token     string
	session   *fakeSession
	steps     []*kagziv1.Step
	available time.Time
	cancelAsk bool
	timers    []time.Time // recorded with hold
}

type fakeSession struct {
	stream  grpc.BidiStreamingServer[kagziv1.SessionRequest, kagziv1.SessionResponse]
	hello   *kagziv1.RegisterRequest
	credit  int
	drained bool
	end     context.CancelCauseFunc
	sending sync.Mutex
}

func (s *fakeSession) send(r *kagziv1.SessionResponse) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.Send(r) // a broken stream ends the reader
}

func newFake(t *testing.T) *fake {
	f := &fake{runs: make(map[string]*fakeRun), lease: 30 * time.Second, heartbeat: 10 * time.Second,
		notify: make(chan struct{}), listener: bufconn.Listen(1 << 20)}
	f.serve()
	t.Cleanup(func() { f.server.Stop() })
	return f
}

func (f *fake) serve() {
	f.server = grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	kagziv1.RegisterWorkerServiceServer(f.server, f)
	kagziv1.RegisterWorkflowServiceServer(f.server, f)
	server, listener := f.server, f.listener
	go func() { _ = server.Serve(listener) }()
}

func (f *fake) dial() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		f.mu.Lock()
		l := f.listener
		f.mu.Unlock()
		return l.DialContext(ctx)
	})}
}

func (f *fake) now() time.Time { return time.Now().Add(f.skew) }

// start puts a run there directly.
func (f *fake) start(runID, workflowType, input string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &fakeRun{}
	r.RunId, r.WorkflowType, r.Namespace, r.TaskQueue = runID, workflowType, "default", "default"
	r.Input = &kagziv1.Payload{Data: []byte(input)}
	r.Status, r.Attempts = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, 1
	r.available = f.now()
	f.runs[runID] = r
	f.order = append(f.order, r)
	f.pump()
}

// pump hands due runs to sessions with credit. Needs f.mu.
func (f *fake) pump() {
	close(f.notify)
	f.notify = make(chan struct{})
	for _, r := range f.order {
		waiting := r.Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING || r.Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
		if !waiting {
			continue
		}
		if left := r.available.Sub(f.now()); left > 0 {
			time.AfterFunc(left, func() { f.mu.Lock(); defer f.mu.Unlock(); f.pumpDue() })
			continue
		}
		for _, s := range f.sessions {
			if s.credit > 0 && slices.Contains(s.hello.GetWorkflowTypes(), r.WorkflowType) {
				f.claim(s, r)
				break
			}
		}
	}
}

func (f *fake) pumpDue() {
	for _, r := range f.order {
		if !r.available.After(f.now()) {
			f.pump()
			return
		}
	}
}

func (f *fake) claim(s *fakeSession, r *fakeRun) {
	s.credit--
	f.tokens++
	r.token, r.session, r.Status = fmt.Sprintf("lease-%d", f.tokens), s, kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	for _, st := range r.steps {
		if st.Kind == kagziv1.StepKind_STEP_KIND_SLEEP && st.WakeUpAt != nil && !st.WakeUpAt.AsTime().After(f.now()) {
			st.Status = kagziv1.StepStatus_STEP_STATUS_COMPLETED
		}
	}
	r.timers = nil
	for _, st := range r.steps {
		if st.Status == kagziv1.StepStatus_STEP_STATUS_RUNNING && st.WakeUpAt != nil {
			r.timers = append(r.timers, st.WakeUpAt.AsTime())
		}
		if st.Status == kagziv1.StepStatus_STEP_STATUS_PENDING && st.RetryAt != nil {
			r.timers = append(r.timers, st.RetryAt.AsTime())
		}
	}
	t := &kagziv1.Task{Namespace: r.Namespace, RunId: r.RunId, WorkflowType: r.WorkflowType, TaskQueue: r.TaskQueue, Input: r.Input,
		LeaseToken: r.token, Attempt: r.Attempts, Timeouts: r.Timeouts, CancelRequested: r.cancelAsk, LeaseExpiresAt: timestamppb.New(f.now().Add(f.lease))}
	t.History, t.NextHistoryToken = f.page(r, 0)
	f.log = append(f.log, "claim "+r.RunId)
	s.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Task{Task: proto.Clone(t).(*kagziv1.Task)}})
}

func (f *fake) page(r *fakeRun, from int) ([]*kagziv1.Step, string) {
	if f.pageSize == 0 || from+f.pageSize >= len(r.steps) {
		return r.steps[from:], ""
	}
	return r.steps[from : from+f.pageSize], fmt.Sprint(from + f.pageSize)
}

func (f *fake) GetHistory(_ context.Context, req *kagziv1.GetHistoryRequest) (*kagziv1.GetHistoryResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := 0
	if _, err := fmt.Sscan(req.GetToken(), &from); err != nil {
		return nil, status.Error(codes.InvalidArgument, "token")
	}
	resp := &kagziv1.GetHistoryResponse{}
	resp.History, resp.NextHistoryToken = f.page(f.runs[req.GetRunId()], from)
	return proto.Clone(resp).(*kagziv1.GetHistoryResponse), nil
}

func (f *fake) Session(stream grpc.BidiStreamingServer[kagziv1.SessionRequest, kagziv1.SessionResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if f.onHello != nil {
		if err := f.onHello(hello); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancelCause(stream.Context())
	s := &fakeSession{stream: stream, hello: hello, end: end}
	id := hello.GetWorkerId()
	if id == "" {
		id = "worker-1"
	}
	s.send(&kagziv1.SessionResponse{Seq: first.GetSeq(), Event: &kagziv1.SessionResponse_Welcome{Welcome: &kagziv1.RegisterResponse{
		WorkerId: id, HeartbeatIntervalMs: f.heartbeat.Milliseconds(), LeaseMs: f.lease.Milliseconds()}}})
	f.mu.Lock()
	f.sessions = append(f.sessions, s)
	f.log = append(f.log, "hello "+hello.GetWorkerId())
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions = slices.DeleteFunc(f.sessions, func(o *fakeSession) bool { return o == s })
	}()
	requests := make(chan *kagziv1.SessionRequest)
	go func() {
		defer close(requests)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r, ok := <-requests:
			if !ok {
				return io.EOF
			}
			f.handle(s, r)
		}
	}
}

var errCut = status.Error(codes.Unavailable, "cut")

// cut breaks all sessions.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		s.end(errCut)
	}
	f.sessions = nil
}

// handle applies one operation and answers it.
func (f *fake) handle(s *fakeSession, r *kagziv1.SessionRequest) {
	f.mu.Lock()
	if f.fault != nil {
		if d := f.fault(r); d != nil {
			f.mu.Unlock()
			s.send(&kagziv1.SessionResponse{Seq: r.GetSeq(), Event: &kagziv1.SessionResponse_Error{Error: d}})
			return
		}
	}
	resp := f.apply(s, r)
	mute := f.mute != nil && f.mute(r)
	f.mu.Unlock()
	if mute {
		f.cut()
		return
	}
	if resp != nil {
		resp.Seq = r.GetSeq()
		s.send(resp)
	}
	f.mu.Lock()
	f.pump()
	f.mu.Unlock()
}

func (f *fake) lookup(runID, token string) (*fakeRun, *kagziv1.SessionResponse) {
	r := f.runs[runID]
	if r == nil || r.token != token || token == "" {
		f.log = append(f.log, "stale write for "+runID)
		return nil, &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, Message: "the lease is another's"}}}
	}
	return r, nil
}

func (f *fake) step(r *fakeRun, name string, kind kagziv1.StepKind) *kagziv1.Step {
	for _, st := range r.steps {
		if st.Name == name {
			return st
		}
	}
	st := &kagziv1.Step{RunId: r.RunId, Name: name, StepId: name, Kind: kind, Sequence: int64(len(r.steps) + 1), IsLatest: true}
	r.steps = append(r.steps, st)
	return st
}

// attempt begins the next attempt of a step, unless one is running.
func attempt(st *kagziv1.Step) {
	if st.Status != kagziv1.StepStatus_STEP_STATUS_RUNNING {
		st.AttemptNumber++
		st.Status = kagziv1.StepStatus_STEP_STATUS_RUNNING
	}
}

func (f *fake) apply(s *fakeSession, req *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	resp := &kagziv1.SessionResponse{}
	switch op := req.Operation.(type) {
	case *kagziv1.SessionRequest_Credit:
		s.credit += int(op.Credit.GetTasks())
		resp.Event = &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}
	case *kagziv1.SessionRequest_SetNote:
		resp.Event = &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{Message: "not kept"}}
		f.log = append(f.log, "note "+op.SetNote.GetNote())
	case *kagziv1.SessionRequest_Goodbye:
		f.log = append(f.log, fmt.Sprintf("goodbye drain=%v", op.Goodbye.GetDrain()))
		s.credit, s.drained = 0, true
		resp.Event = &kagziv1.SessionResponse_Goodbye{Goodbye: &kagziv1.DeregisterResponse{}}
	case *kagziv1.SessionRequest_Heartbeat:
		if f.stalled {
			return nil
		}
		f.log = append(f.log, fmt.Sprintf("heartbeat held=%d", len(op.Heartbeat.GetHeld())))
		h := &kagziv1.HeartbeatResponse{Accepted: true}
		for _, l := range op.Heartbeat.GetHeld() {
			if r := f.runs[l.GetRunId()]; r == nil || r.token != l.GetLeaseToken() {
				h.Lost = append(h.Lost, l)
			}
		}
		resp.Event = &kagziv1.SessionResponse_Heartbeat{Heartbeat: h}
	default:
		return f.applyRun(req)
	}
	return resp
}

func (f *fake) applyRun(req *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	resp := &kagziv1.SessionResponse{}
	switch op := req.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		r, lost := f.lookup(op.BeginStep.GetRunId(), op.BeginStep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.BeginStep.GetStepName(), op.BeginStep.GetKind())
		attempt(st)
		f.log = append(f.log, "begin "+st.Name)
		resp.Event = &kagziv1.SessionResponse_BegunStep{BegunStep: &kagziv1.BeginStepResponse{StepId: st.Name, ShouldExecute: true, AttemptNumber: st.AttemptNumber}}
	case *kagziv1.SessionRequest_CompleteStep:
		r, lost := f.lookup(op.CompleteStep.GetRunId(), op.CompleteStep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.CompleteStep.GetStepId(), kagziv1.StepKind_STEP_KIND_FUNCTION)
		if st.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
			attempt(st)
			st.Status, st.Output = kagziv1.StepStatus_STEP_STATUS_COMPLETED, op.CompleteStep.GetOutput()
			f.log = append(f.log, "complete "+st.Name)
		}
		resp.Event = &kagziv1.SessionResponse_CompletedStep{CompletedStep: &kagziv1.CompleteStepResponse{}}
	case *kagziv1.SessionRequest_FailStep:
		r, lost := f.lookup(op.FailStep.GetRunId(), op.FailStep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.FailStep.GetStepId(), kagziv1.StepKind_STEP_KIND_FUNCTION)
		if st.Status == kagziv1.StepStatus_STEP_STATUS_PENDING && st.RetryAt.AsTime().After(f.now()) {
			resp.Event = &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CONFLICT, Message: "not due"}}
			return resp
		}
		resp.Event = &kagziv1.SessionResponse_FailedStep{FailedStep: f.failStep(r, op.FailStep)}
	case *kagziv1.SessionRequest_Sleep:
		r, lost := f.lookup(op.Sleep.GetRunId(), op.Sleep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.Sleep.GetStepId(), kagziv1.StepKind_STEP_KIND_SLEEP)
		attempt(st)
		due := f.now().Add(op.Sleep.GetDuration().AsDuration())
		if op.Sleep.GetUntil() != nil {
			due = op.Sleep.GetUntil().AsTime()
		}
		st.WakeUpAt = timestamppb.New(due)
		f.log = append(f.log, fmt.Sprintf("sleep %s hold=%v", st.Name, op.Sleep.GetHold()))
		f.freeUntil(r, due, op.Sleep.GetHold())
		resp.Event = &kagziv1.SessionResponse_Sleeping{Sleeping: &kagziv1.SleepResponse{}}
	case *kagziv1.SessionRequest_CompleteWorkflow:
		r, lost := f.lookup(op.CompleteWorkflow.GetRunId(), op.CompleteWorkflow.GetLeaseToken())
		if lost != nil {
			return lost
		}
		r.Status, r.Output, r.token = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, op.CompleteWorkflow.GetOutput(), ""
		f.log = append(f.log, "end "+r.RunId)
		resp.Event = &kagziv1.SessionResponse_CompletedWorkflow{CompletedWorkflow: &kagziv1.CompleteWorkflowResponse{Status: r.Status}}
	case *kagziv1.SessionRequest_FailWorkflow:
		r, lost := f.lookup(op.FailWorkflow.GetRunId(), op.FailWorkflow.GetLeaseToken())
		if lost != nil {
			return lost
		}
		r.Status, r.Error, r.token = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, op.FailWorkflow.GetError(), ""
		f.log = append(f.log, "fail "+r.RunId)
		resp.Event = &kagziv1.SessionResponse_FailedWorkflow{FailedWorkflow: &kagziv1.FailWorkflowResponse{Status: r.Status}}
	case *kagziv1.SessionRequest_ReleaseTask:
		r, lost := f.lookup(op.ReleaseTask.GetRunId(), op.ReleaseTask.GetLeaseToken())
		if lost != nil {
			return lost
		}
		f.log = append(f.log, fmt.Sprintf("release park=%v", op.ReleaseTask.GetPark()))
		f.release(r, op.ReleaseTask.GetPark())
		resp.Event = &kagziv1.SessionResponse_ReleasedTask{ReleasedTask: &kagziv1.ReleaseTaskResponse{}}
	default:
		resp.Event = &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT}}
	}
	return resp
}

func (f *fake) release(r *fakeRun, park bool) {
	r.token, r.Status, r.available = "", kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, f.now()
	if park && len(r.timers) > 0 {
		r.Status, r.available = kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING, slices.MinFunc(r.timers, time.Time.Compare)
	}
	f.interrupt(r)
}

// interrupt marks the steps that were running as cut short.
func (f *fake) interrupt(r *fakeRun) {
	for _, st := range r.steps {
		if st.Status == kagziv1.StepStatus_STEP_STATUS_RUNNING && st.Kind == kagziv1.StepKind_STEP_KIND_FUNCTION {
			st.Status, st.Error = kagziv1.StepStatus_STEP_STATUS_FAILED, &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CRASHED}
		}
	}
}

func (f *fake) freeUntil(r *fakeRun, due time.Time, hold bool) {
	if hold {
		r.timers = append(r.timers, due)
		return
	}
	r.token, r.Status, r.available = "", kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING, due
}

func (f *fake) failStep(r *fakeRun, req *kagziv1.FailStepRequest) *kagziv1.FailStepResponse {
	st := f.step(r, req.GetStepId(), kagziv1.StepKind_STEP_KIND_FUNCTION)
	attempt(st)
	st.Error = req.GetError()
	most, delay := int32(3), time.Second
	if p := req.GetRetryPolicy(); p != nil {
		if p.MaximumAttempts != 0 {
			most = p.MaximumAttempts
		}
		if p.InitialIntervalMs != 0 {
			delay = time.Duration(p.InitialIntervalMs) * time.Millisecond
		}
	}
	delay <<= min(st.AttemptNumber-1, 20)
	if ms := req.GetError().GetRetryAfterMs(); ms > 0 {
		delay = time.Duration(ms) * time.Millisecond
	}
	f.log = append(f.log, fmt.Sprintf("failed %s hold=%v", st.Name, req.GetHold()))
	named := slices.Contains(req.GetRetryPolicy().GetNonRetryableErrors(), req.GetError().GetType()) && req.GetError().GetType() != ""
	if req.GetError().GetNonRetryable() || named || most > 0 && st.AttemptNumber >= most {
		st.Status = kagziv1.StepStatus_STEP_STATUS_FAILED
		return &kagziv1.FailStepResponse{}
	}
	due := f.now().Add(delay)
	st.Status, st.RetryAt = kagziv1.StepStatus_STEP_STATUS_PENDING, timestamppb.New(due)
	f.freeUntil(r, due, req.GetHold())
	return &kagziv1.FailStepResponse{ScheduledRetry: true, RetryAt: st.RetryAt}
}

// take frees a run as if its worker had been lost, and lets another have it at once. tell pushes the news.
func (f *fake) take(runID string, tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	token, s := r.token, r.session
	f.release(r, false)
	r.available = f.now().Add(time.Hour)
	if tell {
		s.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{CancelTask: &kagziv1.CancelTask{
			RunId: runID, LeaseToken: token, Reason: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST}}}})
	}
}

// askCancel begins a graceful cancellation.
func (f *fake) askCancel(runID string, grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	r.cancelAsk = true
	if r.token != "" {
		r.session.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{CancelTask: &kagziv1.CancelTask{
			RunId: runID, LeaseToken: r.token, GraceUntil: timestamppb.New(f.now().Add(grace))}}})
		return
	}
	r.available = f.now()
	f.pump()
}

// await blocks until a run has ended, and returns it.
func (f *fake) await(t *testing.T, runID string) *fakeRun {
	t.Helper()
	f.until(t, func() bool { return Status(strings.TrimPrefix(f.runs[runID].Status.String(), statusPrefix)).Ended() })
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[runID]
}

// until blocks until a condition on the fake's state holds.
func (f *fake) until(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(48 * time.Hour)
	if _, bubble := t.Context().Value(realTime{}).(bool); bubble {
		deadline = time.After(20 * time.Second)
	}
	for {
		f.mu.Lock()
		ok, changed := holds(), f.notify
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain; operations so far: %q", f.operations())
		}
	}
}

type realTime struct{}

// operations is the log without what time alone brings about.
func (f *fake) operations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.log), func(s string) bool { return strings.HasPrefix(s, "heartbeat") })
}

func (f *fake) StartWorkflow(_ context.Context, req *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	f.mu.Lock()
	for _, r := range f.order {
		if req.GetExternalId() != "" && r.ExternalId == req.GetExternalId() {
			f.mu.Unlock()
			return &kagziv1.StartWorkflowResponse{RunId: r.RunId, AlreadyExists: true}, nil
		}
	}
	id := fmt.Sprintf("run-%d", len(f.order)+1)
	f.mu.Unlock()
	f.start(id, req.GetWorkflowType(), string(req.GetInput().GetData()))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[id].ExternalId, f.runs[id].Tags, f.runs[id].Input = req.GetExternalId(), req.GetTags(), req.GetInput()
	return &kagziv1.StartWorkflowResponse{RunId: id}, nil
}

func (f *fake) StartWorkflows(ctx context.Context, req *kagziv1.StartWorkflowsRequest) (*kagziv1.StartWorkflowsResponse, error) {
	resp := &kagziv1.StartWorkflowsResponse{}
	for _, r := range req.GetRequests() {
		one := &kagziv1.StartWorkflowsResponse_Result{}
		if r.GetExternalId() == "bad id" {
			one.Error = &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, Message: "external_id"}
		} else {
			one.Started, _ = f.StartWorkflow(ctx, r)
		}
		resp.Results = append(resp.Results, one)
	}
	return resp, nil
}

func (f *fake) GetWorkflow(_ context.Context, req *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[req.GetRunId()]
	if r == nil {
		st, _ := status.New(codes.NotFound, "no such run").WithDetails(&kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, Message: "no such run", Subject: "run", SubjectId: req.GetRunId()})
		return nil, st.Err()
	}
	return &kagziv1.GetWorkflowResponse{Workflow: proto.Clone(&r.Workflow).(*kagziv1.Workflow)}, nil
}

func (f *fake) WaitWorkflow(ctx context.Context, req *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	limit := time.After(req.GetWait().AsDuration())
	for {
		f.mu.Lock()
		changed := f.notify
		f.mu.Unlock()
		got, err := f.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: req.GetRunId()})
		if err != nil {
			return nil, err
		}
		ended := Status(strings.TrimPrefix(got.Workflow.Status.String(), statusPrefix)).Ended()
		if ended {
			return &kagziv1.WaitWorkflowResponse{Workflow: got.Workflow, Finished: true}, nil
		}
		select {
		case <-changed:
		case <-limit:
			return &kagziv1.WaitWorkflowResponse{Workflow: got.Workflow}, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (f *fake) CancelWorkflow(_ context.Context, req *kagziv1.CancelWorkflowRequest) (*kagziv1.CancelWorkflowResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[req.GetRunId()]
	token := r.token
	r.Status, r.token = kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, ""
	r.Error = &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Message: req.GetReason()}
	if token != "" {
		r.session.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{CancelTask: &kagziv1.CancelTask{
			RunId: r.RunId, LeaseToken: token, Reason: r.Error}}})
	}
	f.pump()
	return &kagziv1.CancelWorkflowResponse{Cancelled: true, Status: r.Status}, nil
}
