package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
)

var update = flag.Bool("update", false, "write what the tests see into testdata")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }

// fake is a server in memory: it answers from its fields and keeps the requests. An unexpected call
// panics.
type fake struct {
	tui.API
	runs     []*kagziv1.Workflow
	stepList []*kagziv1.Step
	workers  []*kagziv1.Worker
	queues   []*kagziv1.QueueDepth
	info     *kagziv1.GetServerInfoResponse
	fail     map[string]error // by method
	mu       sync.Mutex       // guards requests: a wait also asks what the run waits for
	requests []any
	waits    []func() (*kagziv1.WaitWorkflowResponse, error)
	streams  []*stream
	dialled  tui.DialOptions

	signals    []*kagziv1.Signal
	audit      []*kagziv1.AuditEvent
	progress   []*kagziv1.BulkWorkflowsProgress
	explained  *kagziv1.ExplainWorkflowResponse
	capsule    [][]byte
	imported   []byte
	schedules  []*kagziv1.WorkflowSchedule
	resumed    time.Duration // from now to the next tick of a resumed schedule
	namespaces []*kagziv1.Namespace
	keys       []*kagziv1.Key
	me         *kagziv1.WhoAmIResponse
	health     *kagziv1.HealthCheckResponse
	tls        *tls.ConnectionState // of the connection, as seen by a health check

	finds         []error // results of calls that look up an external id, in order
	retriedBefore bool    // every retry was requested before, and the run it started has ended
}

func (f *fake) note(method string, request any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
	return f.fail[method]
}

func (f *fake) StartWorkflow(_ context.Context, r *kagziv1.StartWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.StartWorkflowResponse, error) {
	return &kagziv1.StartWorkflowResponse{RunId: "run-1", AlreadyExists: r.ExternalId == "taken"},
		f.note("StartWorkflow", r)
}

func (f *fake) StartWorkflows(_ context.Context, r *kagziv1.StartWorkflowsRequest,
	_ ...grpc.CallOption) (*kagziv1.StartWorkflowsResponse, error) {
	answer := &kagziv1.StartWorkflowsResponse{}
	for i, one := range r.Requests {
		result := &kagziv1.StartWorkflowsResponse_Result{
			Started: &kagziv1.StartWorkflowResponse{
				RunId: fmt.Sprintf("run-%d", i+1), AlreadyExists: one.ExternalId == "taken"}}
		if one.WorkflowType == "bad" {
			result = &kagziv1.StartWorkflowsResponse_Result{Error: &kagziv1.ErrorDetail{Message: "bad type"}}
		}
		answer.Results = append(answer.Results, result)
	}
	return answer, f.note("StartWorkflows", r)
}

func (f *fake) find(id string) (*kagziv1.Workflow, error) {
	for _, r := range f.runs {
		if r.RunId == id || r.ExternalId == id {
			return r, nil
		}
	}
	return nil, notFound(id)
}

func notFound(id string) error {
	s, _ := status.New(codes.NotFound, "not found").WithDetails(
		&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, Subject: "run",
			SubjectId: strings.ToValidUTF8(id, "?")})
	return s.Err()
}

func (f *fake) GetWorkflow(_ context.Context, r *kagziv1.GetWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.GetWorkflowResponse, error) {
	if err := f.note("GetWorkflow", r); err != nil {
		return nil, err
	}
	run, err := f.find(r.RunId)
	return &kagziv1.GetWorkflowResponse{Workflow: run}, err
}

func (f *fake) GetWorkflowByExternalId(_ context.Context, r *kagziv1.GetWorkflowByExternalIdRequest,
	_ ...grpc.CallOption) (*kagziv1.GetWorkflowByExternalIdResponse, error) {
	if len(f.finds) > 0 {
		err := f.finds[0]
		if f.finds = f.finds[1:]; err != nil {
			return nil, err
		}
	}
	run, err := f.find(r.ExternalId)
	return &kagziv1.GetWorkflowByExternalIdResponse{Workflow: run}, err
}

// ListWorkflows pages through the runs that match the request's filters.
func (f *fake) ListWorkflows(_ context.Context, r *kagziv1.ListWorkflowsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error) {
	if err := f.note("ListWorkflows", proto.CloneOf(r)); err != nil {
		return nil, err
	}
	if r.ScheduleId != nil {
		if _, err := f.scheduleOf(*r.ScheduleId, true); err != nil {
			return nil, err
		}
	}
	var chosen []*kagziv1.Workflow
	for _, run := range f.runs {
		if chooses(r, run) {
			chosen = append(chosen, run)
		}
	}
	runs, page, err := pageOf(chosen, r.GetPage())
	return &kagziv1.ListWorkflowsResponse{Workflows: runs, Page: page}, err
}

// chooses reports whether a run matches every filter of a request.
func chooses(r *kagziv1.ListWorkflowsRequest, run *kagziv1.Workflow) bool {
	created := run.GetCreatedAt().AsTime()
	switch {
	case len(r.Statuses) > 0 && !slices.Contains(r.Statuses, run.Status),
		len(r.WorkflowTypes) > 0 && !slices.Contains(r.WorkflowTypes, run.WorkflowType),
		len(r.TaskQueues) > 0 && !slices.Contains(r.TaskQueues, run.TaskQueue),
		r.ParentRunId != nil && run.GetParentRunId() != r.GetParentRunId(),
		r.Search != nil && !strings.HasPrefix(run.RunId, r.GetSearch()) &&
			!strings.HasPrefix(run.ExternalId, r.GetSearch()),
		r.CreatedAfter != nil && !created.After(r.CreatedAfter.AsTime()),
		r.CreatedBefore != nil && !created.Before(r.CreatedBefore.AsTime()):
		return false
	}
	for k, v := range r.Tags {
		if has, ok := run.Tags[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// pageOf returns a page of a list. Tokens are positions: "2" starts there, "<2" ends there.
func pageOf[T any](list []T, r *kagziv1.PageRequest) ([]T, *kagziv1.PageInfo, error) {
	size, begin := int(r.GetPageSize()), 0
	if size == 0 {
		size = 50
	}
	token, back := strings.CutPrefix(r.GetPageToken(), "<")
	if token != "" {
		if _, err := fmt.Sscan(token, &begin); err != nil {
			return nil, nil, status.Error(codes.InvalidArgument, "page_token: malformed")
		}
	}
	end := min(begin+size, len(list))
	if back {
		begin, end = max(begin-size, 0), begin
	}
	page := &kagziv1.PageInfo{}
	if r.GetIncludeTotalCount() {
		page.TotalCount = int64(len(list))
	}
	if end < len(list) {
		page.NextPageToken, page.HasMore = fmt.Sprint(end), true
	}
	if begin > 0 {
		page.PrevPageToken = fmt.Sprintf("<%d", begin)
	}
	return list[begin:end], page, nil
}

func (f *fake) WaitWorkflow(_ context.Context, r *kagziv1.WaitWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.WaitWorkflowResponse, error) {
	if err := f.note("WaitWorkflow", r); err != nil {
		return nil, err
	}
	if len(f.waits) > 0 {
		next := f.waits[0]
		f.waits = f.waits[1:]
		return next()
	}
	run, err := f.find(r.RunId)
	return &kagziv1.WaitWorkflowResponse{Workflow: run, Finished: true}, err
}

func (f *fake) WatchWorkflow(ctx context.Context, r *kagziv1.WatchWorkflowRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
	if r.RunOnly { // what the run waits for is explained once
		return &unchanging{ctx: ctx}, nil
	}
	if err := f.note("WatchWorkflow", r); err != nil {
		return nil, err
	}
	next := f.streams[0]
	f.streams = f.streams[1:]
	return next, nil
}

// unchanging is the stream of a run that does not change.
type unchanging struct {
	grpc.ClientStream
	ctx context.Context
}

func (s *unchanging) Recv() (*kagziv1.WatchWorkflowEvent, error) {
	<-s.ctx.Done()
	return nil, s.ctx.Err()
}

// stream returns events and then an error.
type stream struct {
	grpc.ClientStream
	events []*kagziv1.WatchWorkflowEvent
	pause  time.Duration // before each event but the first
	end    error
	begun  bool
}

func (s *stream) Recv() (*kagziv1.WatchWorkflowEvent, error) {
	if len(s.events) == 0 {
		return nil, s.end
	}
	if s.begun {
		time.Sleep(s.pause)
	}
	event := s.events[0]
	s.events, s.begun = s.events[1:], true
	return event, nil
}

func (f *fake) CancelWorkflow(_ context.Context, r *kagziv1.CancelWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.CancelWorkflowResponse, error) {
	if err := cmp.Or(f.note("CancelWorkflow", r), f.fail["CancelWorkflow "+r.RunId]); err != nil {
		return nil, err
	}
	if r.Grace != nil {
		return &kagziv1.CancelWorkflowResponse{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, Requested: true,
			GraceUntil: at(r.Grace.AsDuration())}, nil
	}
	return &kagziv1.CancelWorkflowResponse{Cancelled: true, Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED},
		nil
}

func (f *fake) TerminateWorkflow(_ context.Context, r *kagziv1.TerminateWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.TerminateWorkflowResponse, error) {
	return &kagziv1.TerminateWorkflowResponse{
		Terminated: true, Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED}, f.note("TerminateWorkflow", r)
}

func (f *fake) ListSteps(_ context.Context, r *kagziv1.ListStepsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListStepsResponse, error) {
	var steps []*kagziv1.Step
	for _, s := range f.stepList {
		if s.RunId == r.RunId {
			steps = append(steps, s)
		}
	}
	return &kagziv1.ListStepsResponse{Steps: steps}, f.note("ListSteps", r)
}

func (f *fake) ListWorkers(_ context.Context, r *kagziv1.ListWorkersRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkersResponse, error) {
	return &kagziv1.ListWorkersResponse{Workers: f.workers}, f.note("ListWorkers", r)
}

func (f *fake) MatchWorkers(_ context.Context, r *kagziv1.MatchWorkersRequest,
	_ ...grpc.CallOption) (*kagziv1.MatchWorkersResponse, error) {
	busy, other := proto.CloneOf(f.workers[0]), proto.CloneOf(f.workers[0])
	busy.WorkerId, other.WorkerId = "w2", "w3"
	answer := &kagziv1.MatchWorkersResponse{Matches: []*kagziv1.MatchWorkersResponse_Match{
		{Worker: f.workers[0], CanRun: true}, {Worker: busy, CanRun: true, Busy: true, Reason: "runs 100 of 100"},
		{Worker: other, Reason: "does not offer " + r.GetWorkflowType()}}}
	return answer, f.note("MatchWorkers", r)
}

func (f *fake) GetWorker(_ context.Context, r *kagziv1.GetWorkerRequest,
	_ ...grpc.CallOption) (*kagziv1.GetWorkerResponse, error) {
	return &kagziv1.GetWorkerResponse{Worker: f.workers[0]}, f.note("GetWorker", r)
}

func (f *fake) DrainWorker(_ context.Context, r *kagziv1.DrainWorkerRequest,
	_ ...grpc.CallOption) (*kagziv1.DrainWorkerResponse, error) {
	return &kagziv1.DrainWorkerResponse{Success: true}, f.note("DrainWorker", r)
}

func (f *fake) ForceOfflineWorker(_ context.Context, r *kagziv1.ForceOfflineWorkerRequest,
	_ ...grpc.CallOption) (*kagziv1.ForceOfflineWorkerResponse, error) {
	return &kagziv1.ForceOfflineWorkerResponse{ReleasedRuns: 3}, f.note("ForceOfflineWorker", r)
}

func (f *fake) GetQueueDepth(_ context.Context, r *kagziv1.GetQueueDepthRequest,
	_ ...grpc.CallOption) (*kagziv1.GetQueueDepthResponse, error) {
	return &kagziv1.GetQueueDepthResponse{Queues: f.queues}, f.note("GetQueueDepth", r)
}

func (f *fake) ListWorkflowTypes(_ context.Context, r *kagziv1.ListWorkflowTypesRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkflowTypesResponse, error) {
	return &kagziv1.ListWorkflowTypesResponse{
		WorkflowTypes: []*kagziv1.WorkflowTypeInfo{
			{WorkflowType: "order"}, {WorkflowType: "other"}, {WorkflowType: "o\x1bc"}}}, f.note("ListWorkflowTypes", r)
}

func (f *fake) GetServerInfo(_ context.Context, r *kagziv1.GetServerInfoRequest,
	_ ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	return f.info, f.note("GetServerInfo", r)
}

// session is a terminal in a test.
type session struct {
	server  *fake
	environ map[string]string // KAGZI_ variables, also of the process while a command runs
	local   Local
	stdin   string
	tty     bool
	width   int
	since   time.Duration // time since noon
}

func (s *session) env() *env {
	return &env{
		flags:   &ClientFlags{},
		version: "1.2.3",
		dial: func(o tui.DialOptions) (tui.API, func() error, error) {
			s.server.dialled = o
			conn, err := tui.Dial(o) // it connects with the first call, but checks the options now
			if err != nil {
				return nil, nil, err
			}
			return s.server, conn.Close, nil
		},
		find:   profile.Resolve,
		local:  s.local,
		lookup: func(name string) (string, bool) { v, ok := s.environ[name]; return v, ok },
		now:    func() time.Time { return noon.Add(s.since) },
		newID:  func() string { return "new-id" },
		streams: func(cmd *cobra.Command) streams {
			return streams{in: strings.NewReader(s.stdin), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), inTTY: s.tty,
				outTTY: s.tty, errTTY: s.tty, width: s.width}
		},
	}
}

// run runs a command and returns its output and exit code.
func (s *session) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if s.server == nil {
		s.server = &fake{}
	}
	for name, value := range s.environ {
		old, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if !was {
				_ = os.Unsetenv(name)
				return
			}
			_ = os.Setenv(name, old)
		}()
	}
	var out, err bytes.Buffer
	code = Execute(t.Context(), root(s.env()), args, strings.NewReader(s.stdin), &out, &err)
	return out.String(), err.String(), code
}

// want runs a command that must exit with code, and returns its output.
func (s *session) want(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, got := s.run(t, args...)
	if got != code {
		t.Fatalf("kagzi %s: exit code %d, want %d; stderr:\n%s", strings.Join(args, " "), got, code, stderr)
	}
	return stdout, stderr
}

// golden compares with a file in testdata; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}

// sampleRuns returns a run of each interesting kind.
func sampleRuns() []*kagziv1.Workflow {
	return []*kagziv1.Workflow{
		{
			Namespace: "default", RunId: "01936b2e-0000-7000-8000-000000000003", ExternalId: "order-17",
			TaskQueue: "orders", WorkflowType: "order",
			Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, Attempts: 3, CreatedAt: at(-5 * time.Minute),
			StartedAt: at(-5*time.Minute + time.Second), FinishedAt: at(-3 * time.Minute),
			Input: &kagziv1.Payload{Data: []byte(`{"total":12,"card":"x"}`)},
			Tags:  map[string]string{"customer": "x", "vip": ""},
			Error: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INTERNAL, Type: "CardDeclined",
				Message: "card declined\nby the bank", NonRetryable: true,
				Stack: "main.charge()\n\tcharge.go:12\nmain.order()\n\torder.go:7\n"},
		},
		{
			Namespace: "default", RunId: "01936b2e-0000-7000-8000-000000000002", TaskQueue: "default",
			WorkflowType: "report", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING,
			Attempts: 1, CreatedAt: at(-2 * time.Hour), StartedAt: at(-2 * time.Hour), WakeUpAt: at(22 * time.Hour),
			WaitingFor: "timer:cool-off",
		},
		{
			Namespace: "default", RunId: "01936b2e-0000-7000-8000-000000000001", TaskQueue: "default",
			WorkflowType: "注文", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED,
			Attempts: 1, CreatedAt: at(-72 * time.Hour), StartedAt: at(-72 * time.Hour),
			FinishedAt: at(-72*time.Hour + 1234*time.Millisecond),
			Output:     &kagziv1.Payload{Data: []byte(`{"ok":true,"html":"<&>"}`)},
		},
	}
}

var unavailable = status.Error(codes.Unavailable,
	"connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:50051: connect: connection refused\"")
