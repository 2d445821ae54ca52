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
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// fake is an in-memory server with runs, histories, leases and timers behind the real wire. It is
// not durable and not fair, and leases expire only when a test says so.
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
	pageSize int // page size of histories; 0 puts all into the task
	notify   chan struct{}

	lease, heartbeat time.Duration
	// by run: status in the answer to its end, instead of the real one
	verdicts map[string]kagziv1.WorkflowStatus
	skew     time.Duration // how far the server's clock is ahead of the worker's
	// operations in the order applied
	log   []string
	fault func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail // refuses an operation before it is applied
	// applies an operation and then breaks the stream instead of answering
	mute         func(r *kagziv1.SessionRequest) bool
	onHello      func(r *kagziv1.RegisterRequest) error
	onHistory    func() error      // called before a page of history is returned
	stalled      bool              // heartbeats get no answer
	away         bool              // connections fail
	traceparents map[string]string // by run id
	keepsNoOrder bool              // like servers before the order of results
	resumes      bool              // tasks for runs that the worker parked have only what is new
	spoil        func(*kagziv1.Task)
	parked       func(*fakeRun) // called when a run was parked, before the answer
	whole        int            // histories read from the beginning
	reports      []*kagziv1.Divergence
	sent         time.Time
	unreached    []string // of the last end, like unreceived
	unreceived   []string
	blocked      []*kagziv1.BlockedCode // of the last heartbeat
}

type fakeRun struct {
	kagziv1.Workflow
	token     string
	session   *fakeSession
	steps     []*kagziv1.Step
	available time.Time
	timer     time.Time // time of the timer, if set
	cancelAsk bool
	untold    bool                 // requested since its worker got it
	reason    *kagziv1.ErrorDetail // of the cancellation

	awaited map[string]int // by step: 1 for a single wait, more for one of a group
	groups  int
	settled int64 // results so far
	// the lease under which its code parked it, and the results until then
	base        string
	baseSettled int64
	signals     []*kagziv1.Signal
	parent      *fakeRun
	parentStep  string
	closing     kagziv1.ParentClosePolicy
}

type fakeSession struct {
	stream  grpc.BidiStreamingServer[kagziv1.SessionRequest, kagziv1.SessionResponse]
	hello   *kagziv1.RegisterRequest
	credit  int
	drained bool
	refused map[int64]bool // by seq
	end     context.CancelCauseFunc
	sending sync.Mutex
}

func (s *fakeSession) send(r *kagziv1.SessionResponse) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.Send(r) // a broken stream ends the reader
}

func newFake(t testing.TB) *fake {
	f := &fake{runs: make(map[string]*fakeRun), lease: 30 * time.Second, heartbeat: 10 * time.Second,
		notify: make(chan struct{}), listener: bufconn.Listen(1 << 20)}
	f.serve()
	t.Cleanup(func() { f.server.Stop() })
	return f
}

func (f *fake) serve() {
	f.server = grpc.NewServer(grpc.MaxRecvMsgSize(transport.MaxMessage), grpc.MaxSendMsgSize(transport.MaxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	kagziv1.RegisterWorkerServiceServer(f.server, f)
	kagziv1.RegisterWorkflowServiceServer(f.server, f)
	server, listener := f.server, f.listener
	go func() { _ = server.Serve(listener) }()
}

func (f *fake) dial() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		f.mu.Lock()
		l, away := f.listener, f.away
		f.mu.Unlock()
		if away {
			return nil, errCut
		}
		return l.DialContext(ctx)
	})}
}

func (f *fake) now() time.Time { return time.Now().Add(f.skew) }

// start adds a run directly.
func (f *fake) start(runID, workflowType, input string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(runID, &kagziv1.StartWorkflowRequest{
		WorkflowType: workflowType, Input: &kagziv1.Payload{Data: []byte(input)}})
	f.pump()
}

// pump pushes due runs to sessions with credit. Needs f.mu.
func (f *fake) pump() {
	close(f.notify)
	f.notify = make(chan struct{})
	for _, r := range f.order {
		waiting := r.Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING ||
			r.Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
		if !waiting || r.available.IsZero() {
			continue
		}
		if left := r.available.Sub(f.now()); left > 0 {
			if r.timer.Equal(r.available) {
				continue
			}
			r.timer = r.available
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
		if !r.available.IsZero() && !r.available.After(f.now()) {
			f.pump()
			return
		}
	}
}

func (f *fake) claim(s *fakeSession, r *fakeRun) {
	s.credit--
	f.tokens++
	r.token, r.session, r.Status = fmt.Sprintf("lease-%d", f.tokens), s, kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	r.untold = false
	f.settleAll(r)
	clear(r.awaited)
	lease := max(f.lease, time.Duration(r.Timeouts.GetHeartbeatTimeoutMs())*time.Millisecond)
	t := &kagziv1.Task{Namespace: r.Namespace, RunId: r.RunId, ExternalId: r.ExternalId, WorkflowType: r.WorkflowType,
		TaskQueue: r.TaskQueue, Input: r.Input,
		LeaseToken: r.token, Attempt: r.Attempts, Timeouts: r.Timeouts,
		LeaseExpiresAt:  timestamppb.New(f.now().Add(lease)),
		CancelRequested: r.cancelAsk, CancelGraceUntil: r.CancelGraceUntil, CancelReason: r.reason,
		ParentRunId: r.ParentRunId,
		FailedRunId: r.FailedRunId, ScheduledAt: r.ScheduledAt, Traceparent: f.traceparents[r.RunId]}
	t.History, t.NextHistoryToken = f.page(r, 0)
	if f.resumes && r.base != "" {
		t.Base, t.NextHistoryToken = r.base, ""
		t.History = slices.DeleteFunc(slices.Clone(r.steps), func(st *kagziv1.Step) bool {
			return st.Settled <= r.baseSettled
		})
	}
	if f.spoil != nil {
		t = proto.Clone(t).(*kagziv1.Task)
		f.spoil(t)
	}
	f.log = append(f.log, "claim "+r.RunId)
	s.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Task{Task: proto.Clone(t).(*kagziv1.Task)}})
}

func (f *fake) page(r *fakeRun, from int) ([]*kagziv1.Step, string) {
	if f.pageSize == 0 || from+f.pageSize >= len(r.steps) {
		return r.steps[from:], ""
	}
	return r.steps[from : from+f.pageSize], fmt.Sprint(from + f.pageSize)
}

// stall stops or resumes the answers to heartbeats.
func (f *fake) stall(stalled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalled = stalled
}

func (f *fake) GetHistory(_ context.Context, req *kagziv1.GetHistoryRequest) (*kagziv1.GetHistoryResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onHistory != nil {
		if err := f.onHistory(); err != nil {
			return nil, err
		}
	}
	from := 0
	if req.GetToken() == "" {
		f.whole++
	} else if _, err := fmt.Sscan(req.GetToken(), &from); err != nil {
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
	s := &fakeSession{refused: map[int64]bool{}, stream: stream, hello: hello, end: end}
	id := hello.GetWorkerId()
	if id == "" {
		id = "worker-1"
	}
	f.mu.Lock() // before the welcome: tests look at the session of a ready worker
	f.sessions = append(f.sessions, s)
	f.log = append(f.log, "hello "+hello.GetWorkerId())
	f.mu.Unlock()
	s.send(&kagziv1.SessionResponse{Seq: first.GetSeq(),
		Event: &kagziv1.SessionResponse_Welcome{Welcome: &kagziv1.RegisterResponse{
			WorkerId: id, HeartbeatIntervalMs: f.heartbeat.Milliseconds(), LeaseMs: f.lease.Milliseconds(),
			KeepsOrder: !f.keepsNoOrder, ResumesRuns: f.resumes}}})
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
	var d *kagziv1.ErrorDetail
	if f.fault != nil {
		d = f.fault(r)
	}
	if s.refused[r.GetAfter()] {
		d = &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE,
			Message: "builds on a refused operation"}
	}
	if d != nil {
		s.refused[r.GetSeq()] = true
		f.mu.Unlock()
		s.send(&kagziv1.SessionResponse{Seq: r.GetSeq(), Event: &kagziv1.SessionResponse_Error{Error: d}})
		return
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

// take frees a run as if its worker were lost, and lets another worker claim it at once. tell
// reports that to the old one.
func (f *fake) take(runID string, tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	token, s := r.token, r.session
	f.release(r, false)
	r.available = f.now().Add(time.Hour)
	if tell {
		s.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{CancelTask: &kagziv1.CancelTask{
			RunId: runID, LeaseToken: token, Reason: &kagziv1.ErrorDetail{
				Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST}}}})
	}
}

// await blocks until a run has ended, and returns it.
func (f *fake) await(t testing.TB, runID string) *fakeRun {
	t.Helper()
	f.until(t, func() bool { return Status(strings.TrimPrefix(f.runs[runID].Status.String(), statusPrefix)).Ended() })
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[runID]
}

// until blocks until a condition on the fake's state holds, for up to two days of bubble time.
func (f *fake) until(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.After(48 * time.Hour)
	look := func() (bool, <-chan struct{}) {
		f.mu.Lock()
		defer f.mu.Unlock() // even if the condition panics: the worker must end before the test can report it
		return holds(), f.notify
	}
	for {
		ok, changed := look()
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

// operations returns the log without entries that time alone causes.
func (f *fake) operations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.log), func(s string) bool { return strings.HasPrefix(s, "heartbeat") })
}
