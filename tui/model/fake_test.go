package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/filter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ui is the UI goroutine of a test, which is the test's own. It lives in a synctest bubble, which
// also finds leaked goroutines.
type ui struct {
	mu   sync.Mutex
	list []func()
	kick chan struct{}
	// updates counts UI updates: each is a frame.
	updates int
}

func newUI() *ui { return &ui{kick: make(chan struct{}, 1)} }

func (u *ui) post(f func()) {
	u.mu.Lock()
	u.list = append(u.list, f)
	u.mu.Unlock()
	select {
	case u.kick <- struct{}{}:
	default:
	}
}

// settle runs posted functions until everything waits.
func (u *ui) settle() {
	for {
		synctest.Wait()
		u.mu.Lock()
		list := u.list
		u.list = nil
		u.mu.Unlock()
		if len(list) == 0 {
			return
		}
		u.updates++
		for _, f := range list {
			f()
		}
	}
}

// advance advances the time.
func (u *ui) advance(d time.Duration) {
	over := time.After(d)
	for {
		u.settle()
		select {
		case <-u.kick:
		case <-over:
			u.settle()
			return
		}
	}
}

// stream is a stream that the fake server holds open.
type stream[T any] struct {
	grpc.ClientStream
	ctx      context.Context
	messages chan *T
	end      chan error   // io.EOF is the stream's own end
	read     atomic.Int32 // messages that were taken
}

func newStream[T any](ctx context.Context) *stream[T] {
	return &stream[T]{ctx: ctx, messages: make(chan *T, 10_000), end: make(chan error, 1)}
}

func (s *stream[T]) Recv() (*T, error) {
	select { // what was sent before the end comes before it
	case m := <-s.messages:
		s.read.Add(1)
		return m, nil
	default:
	}
	select {
	case m := <-s.messages:
		s.read.Add(1)
		return m, nil
	case err := <-s.end:
		return nil, err
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

// server is a fake of the calls that models make. Methods that a test does not set up return
// nothing.
type server struct {
	tui.API
	mu       sync.Mutex
	runs     []*kagziv1.Workflow // by id, newest first
	lists    []*kagziv1.ListWorkflowsRequest
	calls    map[string]int
	oldest   float64       // seconds that the oldest run has been waiting
	listGate chan struct{} // while set, lists wait for it after they were read
	refuse   error         // of unary calls

	watchErr   error // of opening
	watches    []*stream[kagziv1.WatchEvent]
	runStreams []*stream[kagziv1.WatchWorkflowEvent]
	eventLogs  []*stream[kagziv1.ServerEvent]
	logAsked   []*kagziv1.WatchEventsRequest
	ahead      time.Duration // of the server's clock
	health     *kagziv1.HealthCheckResponse

	workers   []*kagziv1.Worker
	queues    []*kagziv1.QueueDepth
	schedules []*kagziv1.WorkflowSchedule
	explain   *kagziv1.ExplainWorkflowResponse
	why       chan struct{} // while set, explanations wait for it
	signals   []*kagziv1.Signal
	told      func(step time.Duration) *kagziv1.GetActivityResponse // the activity as it is then
	activity  *kagziv1.GetActivityResponse
	act       func(run string) error // of CancelWorkflow
	requests  []string               // ids of retries
	sealed    bool                   // the activity may not be seen
}

func (s *server) call(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[name]++
	return s.refuse
}

func (s *server) called(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

func (s *server) Watch(ctx context.Context, _ *kagziv1.WatchRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
	_ = s.call("Watch")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchErr != nil {
		return nil, s.watchErr
	}
	st := newStream[kagziv1.WatchEvent](ctx)
	st.messages <- &kagziv1.WatchEvent{At: timestamppb.New(time.Now().Add(s.ahead))}
	s.watches = append(s.watches, st)
	return st, nil
}

// tell sends an event on the newest stream.
func (s *server) tell(e *kagziv1.WatchEvent) {
	e.At = timestamppb.New(time.Now().Add(s.ahead))
	s.watches[len(s.watches)-1].messages <- e
}

// live advances the time while the server sends a message every 5 s.
func (s *server) live(u *ui, d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		u.advance(min(d, 5*time.Second))
		s.tell(&kagziv1.WatchEvent{})
	}
	u.settle()
}

func (s *server) HealthCheck(context.Context, *kagziv1.HealthCheckRequest,
	...grpc.CallOption) (*kagziv1.HealthCheckResponse, error) {
	if err := s.call("HealthCheck"); err != nil {
		return nil, err
	}
	if s.health != nil {
		return s.health, nil
	}
	return &kagziv1.HealthCheckResponse{Status: kagziv1.ServingStatus_SERVING_STATUS_SERVING,
		Timestamp: timestamppb.New(time.Now().Add(s.ahead))}, nil
}

func (s *server) WatchWorkflow(ctx context.Context, _ *kagziv1.WatchWorkflowRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
	_ = s.call("WatchWorkflow")
	st := newStream[kagziv1.WatchWorkflowEvent](ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runStreams = append(s.runStreams, st)
	return st, nil
}

func (s *server) WatchEvents(ctx context.Context, r *kagziv1.WatchEventsRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
	_ = s.call("WatchEvents")
	st := newStream[kagziv1.ServerEvent](ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventLogs, s.logAsked = append(s.eventLogs, st), append(s.logAsked, r)
	return st, nil
}

// ListWorkflows pages as the server does: a token is a position between two runs.
func (s *server) ListWorkflows(_ context.Context, r *kagziv1.ListWorkflowsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error) {
	if err := s.call("ListWorkflows"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lists = append(s.lists, proto.CloneOf(r))
	answer, err := s.list(r)
	gate := s.listGate
	s.mu.Unlock()
	if gate != nil {
		<-gate // also when the caller has given up: the answer may be on its way by then
	}
	return answer, err
}

func (s *server) list(r *kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse, error) {
	var all []*kagziv1.Workflow
	if proto.Equal(&kagziv1.ListWorkflowsRequest{Namespace: r.Namespace, Page: r.Page}, r) {
		all = s.runs
	} else {
		for _, run := range s.runs {
			if filter.Matches(r, run) {
				all = append(all, run)
			}
		}
	}
	size := int(r.GetPage().GetPageSize())
	from, to := 0, min(size, len(all))
	direction, place, _ := strings.Cut(r.GetPage().GetPageToken(), ":")
	switch {
	case r.GetPage().GetLast():
		from, to = max(len(all)-size, 0), len(all)
	case direction == "n":
		from = below(all, place)
		to = min(from+size, len(all))
	case direction == "p":
		to = below(all, place)
		if to > 0 && all[to-1].GetRunId() == place {
			to--
		}
		from = max(to-size, 0)
	case direction != "":
		return nil, status.Error(codes.InvalidArgument, "page_token: is not a token that this list gave")
	}
	page := &kagziv1.PageInfo{}
	answer := &kagziv1.ListWorkflowsResponse{Page: page}
	for _, run := range all[from:to] {
		answer.Workflows = append(answer.Workflows, proto.CloneOf(run))
	}
	if to < len(all) && to > from {
		page.NextPageToken, page.HasMore = "n:"+all[to-1].GetRunId(), true
	}
	if from > 0 && to > from {
		page.PrevPageToken = "p:" + all[from].GetRunId()
	}
	if r.GetPage().GetIncludeTotalCount() {
		page.TotalCount = int64(len(all))
	}
	return answer, nil
}

// below returns the index of the first run that is older than an id.
func below(all []*kagziv1.Workflow, id string) int {
	i, found := slices.BinarySearchFunc(all, id, func(r *kagziv1.Workflow, id string) int {
		return strings.Compare(id, r.GetRunId())
	})
	if found {
		i++
	}
	return i
}

// runID returns the id of the n-th started run.
func runID(n int) string { return fmt.Sprintf("%08d", n) }

func aRun(n int, s kagziv1.WorkflowStatus) *kagziv1.Workflow {
	return &kagziv1.Workflow{Namespace: "default", RunId: runID(n), WorkflowType: "order", TaskQueue: "q", Status: s,
		CreatedAt: timestamppb.New(time.Unix(int64(n), 0))}
}

const (
	pending   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
	running   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	completed = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	failed    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
)

// fill starts n runs with the numbers from 1.
func (s *server) fill(n int, status kagziv1.WorkflowStatus) {
	for i := n; i >= 1; i-- {
		s.runs = append(s.runs, aRun(i, status))
	}
}

// put changes a run or starts it, and returns it.
func (s *server) put(r *kagziv1.Workflow) *kagziv1.Workflow {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := slices.BinarySearchFunc(s.runs, r.GetRunId(), func(r *kagziv1.Workflow, id string) int {
		return strings.Compare(id, r.GetRunId())
	})
	if found {
		s.runs[i] = r
	} else {
		s.runs = slices.Insert(s.runs, i, r)
	}
	return r
}

func (s *server) ListWorkers(context.Context, *kagziv1.ListWorkersRequest,
	...grpc.CallOption) (*kagziv1.ListWorkersResponse, error) {
	return &kagziv1.ListWorkersResponse{Workers: slices.Clone(s.workers)}, s.call("ListWorkers")
}

func (s *server) GetQueueDepth(context.Context, *kagziv1.GetQueueDepthRequest,
	...grpc.CallOption) (*kagziv1.GetQueueDepthResponse, error) {
	return &kagziv1.GetQueueDepthResponse{Queues: slices.Clone(s.queues)}, s.call("GetQueueDepth")
}

// ListWorkflowSchedules answers in pages of at most 2, to see them joined.
func (s *server) ListWorkflowSchedules(_ context.Context, r *kagziv1.ListWorkflowSchedulesRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkflowSchedulesResponse, error) {
	from := 0
	_, _ = fmt.Sscan(r.GetPage().GetPageToken(), &from)
	to := min(from+2, len(s.schedules))
	page := &kagziv1.PageInfo{}
	if to < len(s.schedules) {
		page.NextPageToken = fmt.Sprint(to)
	}
	return &kagziv1.ListWorkflowSchedulesResponse{Schedules: slices.Clone(s.schedules[from:to]), Page: page},
		s.call("ListWorkflowSchedules")
}

func (s *server) GetStats(context.Context, *kagziv1.GetStatsRequest,
	...grpc.CallOption) (*kagziv1.GetStatsResponse, error) {
	return &kagziv1.GetStatsResponse{RunningWorkflows: 3, OldestPendingSeconds: s.oldest}, s.call("GetStats")
}

func (s *server) GetActivity(_ context.Context, r *kagziv1.GetActivityRequest,
	_ ...grpc.CallOption) (*kagziv1.GetActivityResponse, error) {
	if s.sealed {
		return nil, cmp.Or(s.call("GetActivity "+r.GetStep().AsDuration().String()),
			status.Error(codes.PermissionDenied, "an admin's"))
	}
	if s.told != nil {
		return s.told(r.GetStep().AsDuration()), s.call("GetActivity " + r.GetStep().AsDuration().String())
	}
	if s.activity != nil {
		return s.activity, s.call("GetActivity " + r.GetStep().AsDuration().String())
	}
	return &kagziv1.GetActivityResponse{At: timestamppb.Now()},
		s.call("GetActivity " + r.GetStep().AsDuration().String())
}

func (s *server) GetServerInfo(context.Context, *kagziv1.GetServerInfoRequest,
	...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	err := s.call("GetServerInfo")
	n := int64(s.called("GetServerInfo"))
	return &kagziv1.GetServerInfoResponse{Version: "v1.0.0",
		Methods: []*kagziv1.MethodStats{{Method: "m", Calls: 50 * n}}}, err
}

func (s *server) WhoAmI(context.Context, *kagziv1.WhoAmIRequest, ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error) {
	return &kagziv1.WhoAmIResponse{}, s.call("WhoAmI")
}

func (s *server) ExplainWorkflow(context.Context, *kagziv1.ExplainWorkflowRequest,
	...grpc.CallOption) (*kagziv1.ExplainWorkflowResponse, error) {
	err := s.call("ExplainWorkflow")
	if s.why != nil {
		<-s.why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.explain != nil {
		return proto.CloneOf(s.explain), err
	}
	return &kagziv1.ExplainWorkflowResponse{Summary: "because"}, err
}

func (s *server) ListSignals(context.Context, *kagziv1.ListSignalsRequest,
	...grpc.CallOption) (*kagziv1.ListSignalsResponse, error) {
	return &kagziv1.ListSignalsResponse{Signals: s.signals}, s.call("ListSignals")
}

func (s *server) ListAuditEvents(context.Context, *kagziv1.ListAuditEventsRequest,
	...grpc.CallOption) (*kagziv1.ListAuditEventsResponse, error) {
	return &kagziv1.ListAuditEventsResponse{}, s.call("ListAuditEvents")
}

func (s *server) CancelWorkflow(_ context.Context, r *kagziv1.CancelWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.CancelWorkflowResponse, error) {
	if err := s.act(r.GetRunId()); err != nil {
		return nil, err
	}
	return &kagziv1.CancelWorkflowResponse{Cancelled: true, Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED},
		nil
}

func (s *server) RetryWorkflow(_ context.Context, r *kagziv1.RetryWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.RetryWorkflowResponse, error) {
	err := s.call("RetryWorkflow")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.GetRequestId())
	return &kagziv1.RetryWorkflowResponse{NewRunId: "new"}, err
}

var errDown = status.Error(codes.Unavailable, "connection refused")

// withLink runs a test with a link on a fake server, in a bubble with its own time.
func withLink(t *testing.T, prepare func(*server), tell func(t *testing.T, s *server, u *ui, l *Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, u := &server{}, newUI()
		prepare(s)
		l := NewLink(t.Context(), s, "", u.post, time.Now)
		defer l.Close()
		tell(t, s, u, l)
	})
}
