package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func (s *Server) workflows() kagziv1.WorkflowServiceClient {
	return kagziv1.NewWorkflowServiceClient(s.Conn)
}
func (s *Server) workers() kagziv1.WorkerServiceClient { return kagziv1.NewWorkerServiceClient(s.Conn) }
func (s *Server) admin() kagziv1.AdminServiceClient    { return kagziv1.NewAdminServiceClient(s.Conn) }
func (s *Server) schedules() kagziv1.WorkflowScheduleServiceClient {
	return kagziv1.NewWorkflowScheduleServiceClient(s.Conn)
}
func (s *Server) namespaces() kagziv1.NamespaceServiceClient {
	return kagziv1.NewNamespaceServiceClient(s.Conn)
}

// fine returns the answer of a call that must succeed: fine(s.admin().GetWorker(ctx, request))(t).
func fine[T any](answer T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// start starts a run of type "t", after the given changes.
func (s *Server) start(t testing.TB, change ...func(*kagziv1.StartWorkflowRequest)) string {
	t.Helper()
	r := &kagziv1.StartWorkflowRequest{WorkflowType: "t", Input: text("input")}
	for _, c := range change {
		c(r)
	}
	answer, err := s.workflows().StartWorkflow(within(t, 20*time.Second), r)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return answer.RunId
}

func (s *Server) get(t testing.TB, run string) *kagziv1.Workflow {
	t.Helper()
	answer, err := s.workflows().GetWorkflow(within(t, 20*time.Second), &kagziv1.GetWorkflowRequest{RunId: run})
	if err != nil {
		t.Fatalf("get %s: %v", run, err)
	}
	return answer.Workflow
}

// await waits until the run has ended.
func (s *Server) await(t testing.TB, run string) *kagziv1.Workflow {
	t.Helper()
	answer, err := s.workflows().WaitWorkflow(
		within(t, 30*time.Second), &kagziv1.WaitWorkflowRequest{RunId: run, Wait: durationpb.New(25 * time.Second)})
	if err != nil {
		t.Fatalf("wait for %s: %v", run, err)
	}
	if !answer.Finished {
		t.Fatalf("run %s has not ended: %v", run, answer.Workflow)
	}
	return answer.Workflow
}

// until waits until the run is as wanted; it checks at each change of the run.
func (s *Server) until(t testing.TB, run string, what string,
	want func(w *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool) {
	t.Helper()
	stream, err := s.workflows().WatchWorkflow(within(t, 30*time.Second), &kagziv1.WatchWorkflowRequest{RunId: run})
	if err != nil {
		t.Fatal(err)
	}
	var w *kagziv1.Workflow
	steps := map[string]*kagziv1.Step{}
	for {
		event, err := stream.Recv()
		if err != nil {
			t.Fatalf("run %s never was %s: %v; the last was %v", run, what, err, w)
		}
		if event.Workflow != nil {
			w = event.Workflow
		}
		for _, step := range event.Steps {
			steps[step.Name] = step
		}
		if w != nil && want(w, steps) {
			return
		}
	}
}

// find returns the runs that a filter selects, at most one page, newest first.
func (s *Server) find(t testing.TB, filter *kagziv1.ListWorkflowsRequest) []*kagziv1.Workflow {
	t.Helper()
	filter.Page = &kagziv1.PageRequest{PageSize: 1000}
	return fine(s.workflows().ListWorkflows(within(t, 20*time.Second), filter))(t).Workflows
}

// steps returns all attempts of a run's steps, in the order in which they began.
func (s *Server) steps(t testing.TB, run string) []*kagziv1.Step {
	t.Helper()
	return fine(s.admin().ListSteps(within(t, 20*time.Second),
		&kagziv1.ListStepsRequest{RunId: run, Page: &kagziv1.PageRequest{PageSize: 1000}}))(t).Steps
}

// eventually polls until ok, for state without notifications.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

func text(s string) *kagziv1.Payload { return &kagziv1.Payload{Data: []byte(s)} }

func wantOutput(t testing.TB, w *kagziv1.Workflow, want string) {
	t.Helper()
	if w.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED || string(w.Output.GetData()) != want {
		t.Errorf("run %s is %s with %q, %v, want COMPLETED with %q", w.RunId, w.Status, w.Output.GetData(),
			w.Error, want)
	}
}

// detailOf returns the ErrorDetail of an error; empty if there is none.
func detailOf(err error) *kagziv1.ErrorDetail {
	for _, d := range status.Convert(err).Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			return detail
		}
	}
	return &kagziv1.ErrorDetail{}
}

// wantRefused wants an error of this code whose message contains the words.
func wantRefused(t testing.TB, what string, err error, code codes.Code, kagzi kagziv1.ErrorCode, words string) {
	t.Helper()
	detail := detailOf(err)
	if status.Code(err) != code || detail.Code != kagzi || !strings.Contains(detail.Message, words) {
		t.Errorf("%s: %v (%v), want %s, %s with %q", what, err, detail, code, kagzi, words)
	}
}

// unaryWorker works with unary calls.
type unaryWorker struct {
	*Server
	id   string
	spec *kagziv1.RegisterRequest
}

// register registers a worker of type "t", after the given changes. It sends no heartbeats by
// itself.
func (s *Server) register(t testing.TB, change ...func(*kagziv1.RegisterRequest)) *unaryWorker {
	t.Helper()
	r := &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}}
	for _, c := range change {
		c(r)
	}
	answer, err := s.workers().Register(within(t, 20*time.Second), r)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	return &unaryWorker{s, answer.WorkerId, r}
}

// poll waits at most this long for a run.
func (w *unaryWorker) poll(ctx context.Context, wait time.Duration) (*kagziv1.Task, error) {
	answer, err := w.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
		Namespace: w.spec.Namespace, WorkerId: w.id, TaskQueue: w.spec.TaskQueue, WorkflowTypes: w.spec.WorkflowTypes,
		Wait: durationpb.New(wait),
	})
	return answer.GetTask(), err
}

// take wants to be given a run.
func (w *unaryWorker) take(t testing.TB) *kagziv1.Task {
	t.Helper()
	task, err := w.poll(within(t, 30*time.Second), 20*time.Second)
	if err != nil || task == nil {
		t.Fatalf("poll: %v, %v, want a run", task, err)
	}
	return task
}

// wantNothing wants no run for the worker now.
func (w *unaryWorker) wantNothing(t testing.TB, why string) {
	t.Helper()
	if task, err := w.poll(within(t, 20*time.Second), 20*time.Millisecond); err != nil || task != nil {
		t.Errorf("%s: poll = %v, %v, want nothing", why, task, err)
	}
}

func (w *unaryWorker) completeStep(t testing.TB, task *kagziv1.Task, step, output string) *kagziv1.Step {
	t.Helper()
	answer, err := w.workers().CompleteStep(within(t, 20*time.Second), &kagziv1.CompleteStepRequest{
		RunId: task.RunId, StepId: step, Output: text(output), LeaseToken: task.LeaseToken,
	})
	if err != nil {
		t.Fatalf("complete step %s: %v", step, err)
	}
	return answer.Step
}

func (w *unaryWorker) complete(t testing.TB, task *kagziv1.Task, output string) {
	t.Helper()
	_, err := w.workers().CompleteWorkflow(within(t, 20*time.Second), &kagziv1.CompleteWorkflowRequest{
		RunId: task.RunId, Output: text(output), LeaseToken: task.LeaseToken,
	})
	if err != nil {
		t.Fatalf("complete %s: %v", task.RunId, err)
	}
}

// awaitPoller lets a poll in another goroutine settle, so that the next call finds it waiting. A
// later poll still finds its run, so only measurements depend on it.
func (s *Server) awaitPoller(t testing.TB) {
	t.Helper()
	for range 3 {
		if _, err := s.admin().HealthCheck(within(t, 20*time.Second), &kagziv1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *unaryWorker) heartbeat(t testing.TB, held ...*kagziv1.Task) *kagziv1.HeartbeatResponse {
	t.Helper()
	r := &kagziv1.HeartbeatRequest{WorkerId: w.id, HeldIsWhole: true}
	for _, task := range held {
		r.Held = append(r.Held, &kagziv1.Lease{RunId: task.RunId, LeaseToken: task.LeaseToken})
	}
	answer, err := w.workers().Heartbeat(within(t, 20*time.Second), r)
	if err != nil {
		t.Fatalf("heartbeat: %v", err)
	}
	return answer
}

// sessionWorker works over one stream.
type sessionWorker struct {
	t       testing.TB
	stream  kagziv1.WorkerService_SessionClient
	hangUp  context.CancelFunc
	id      string
	tasks   chan *kagziv1.Task
	cancels chan *kagziv1.CancelTask
	waits   chan *kagziv1.WaitOver
	drains  chan struct{}
	ended   chan error

	sending sync.Mutex
	seq     int64
	mu      sync.Mutex
	waiting map[int64]chan *kagziv1.SessionResponse
}

// session opens a session of a worker of type "t", after the given changes.
func (s *Server) session(t testing.TB, change ...func(*kagziv1.RegisterRequest)) *sessionWorker {
	t.Helper()
	r := &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}}
	for _, c := range change {
		c(r)
	}
	ctx, hangUp := context.WithCancel(context.Background())
	t.Cleanup(hangUp)
	stream, err := s.workers().Session(ctx)
	if err != nil {
		t.Fatalf("session: %v", err)
	}
	w := &sessionWorker{
		t: t, stream: stream, hangUp: hangUp, waiting: map[int64]chan *kagziv1.SessionResponse{},
		tasks: make(chan *kagziv1.Task, 10_000), cancels: make(chan *kagziv1.CancelTask, 100),
		waits:  make(chan *kagziv1.WaitOver, 100),
		drains: make(chan struct{}, 100), ended: make(chan error, 1),
	}
	go w.listen()
	welcome := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Hello{Hello: r}}).GetWelcome()
	if welcome == nil {
		t.Fatal("hello got no welcome")
	}
	w.id = welcome.WorkerId
	return w
}

func (w *sessionWorker) listen() {
	for {
		m, err := w.stream.Recv()
		if err != nil {
			w.ended <- err
			w.mu.Lock()
			for _, answer := range w.waiting {
				close(answer)
			}
			w.waiting = nil
			w.mu.Unlock()
			return
		}
		switch event := m.Event.(type) {
		case *kagziv1.SessionResponse_Task:
			w.tasks <- event.Task
		case *kagziv1.SessionResponse_CancelTask:
			w.cancels <- event.CancelTask
		case *kagziv1.SessionResponse_WaitOver:
			w.waits <- event.WaitOver
		case *kagziv1.SessionResponse_Drain:
			w.drains <- struct{}{}
		default:
			w.mu.Lock()
			answer := w.waiting[m.Seq]
			delete(w.waiting, m.Seq)
			w.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		}
	}
}

// send sends an operation and returns the channel of its answer.
func (w *sessionWorker) send(r *kagziv1.SessionRequest) <-chan *kagziv1.SessionResponse {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.seq++
	r.Seq = w.seq
	answer := make(chan *kagziv1.SessionResponse, 1)
	w.mu.Lock()
	if w.waiting == nil {
		close(answer)
		w.mu.Unlock()
		return answer
	}
	w.waiting[r.Seq] = answer
	w.mu.Unlock()
	_ = w.stream.Send(r) // if it breaks, Recv reports it
	return answer
}

// do sends an operation and waits for its answer.
func (w *sessionWorker) do(r *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	w.t.Helper()
	return receive(w.t, fmt.Sprintf("an answer to %T", r.Operation), w.send(r))
}

func (w *sessionWorker) grant(n int32) {
	w.t.Helper()
	if a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Credit{
		Credit: &kagziv1.Credit{Tasks: n}}}); a.GetAck() == nil {
		w.t.Fatalf("credit is answered with %v", a)
	}
}

func (w *sessionWorker) beat(held ...*kagziv1.Task) *kagziv1.SessionResponse {
	w.t.Helper()
	r := &kagziv1.HeartbeatRequest{HeldIsWhole: true}
	for _, task := range held {
		r.Held = append(r.Held, &kagziv1.Lease{RunId: task.RunId, LeaseToken: task.LeaseToken})
	}
	return w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: r}})
}

func (w *sessionWorker) stepDone(task *kagziv1.Task, name, output string) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteStep{
		CompleteStep: &kagziv1.CompleteStepRequest{
			RunId: task.RunId, LeaseToken: task.LeaseToken, StepId: name, Output: text(output)}}}
}

func (w *sessionWorker) runDone(task *kagziv1.Task, output string) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteWorkflow{
		CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{
			RunId: task.RunId, LeaseToken: task.LeaseToken, Output: text(output)}}}
}

// receive waits for a value from a channel.
func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-c:
		if !ok {
			t.Fatalf("%s does not come: the stream has ended", what)
		}
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not come", what)
	}
	panic("unreachable")
}

// wantEmpty wants no value in a channel.
func wantEmpty[T any](t testing.TB, what string, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Errorf("%s: %v, want none", what, v)
	default:
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// finished returns a completed run.
func (s *Server) finished(t testing.TB) string {
	t.Helper()
	run := s.start(t, ofQueue("finished"))
	w := s.register(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "finished" })
	w.complete(t, w.take(t), "")
	return run
}

// ahead returns a future time by the server's clock.
func (s *Server) ahead(d time.Duration) *timestamppb.Timestamp {
	return timestamppb.New(s.Store.Now().Add(d))
}
