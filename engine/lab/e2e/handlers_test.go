package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

const timedOut = kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT

// jumpy is a server that deregisters no worker when the clock jumps, and sees at once what becomes
// due.
var jumpy = Options{}

func init() {
	jumpy.Server.HeartbeatInterval = time.Minute
	jumpy.Coordinator.Interval = 30 * time.Millisecond
}

// failFor fails a run for good.
func (w *unaryWorker) failFor(t testing.TB, task *kagziv1.Task, message string) {
	t.Helper()
	answer := fine(w.workers().FailWorkflow(within(t, 20*time.Second), &kagziv1.FailWorkflowRequest{
		RunId: task.RunId, LeaseToken: task.LeaseToken,
		Error: &kagziv1.ErrorDetail{Message: message, Type: "shop_closed", NonRetryable: true}}))(t)
	if answer.Status != failed {
		t.Fatalf("run %s is %s after its failure", task.RunId, answer.Status)
	}
}

// handlersOf returns the runs that handle the failure of a run.
func (s *Server) handlersOf(t testing.TB, run string) (found []*kagziv1.Workflow) {
	t.Helper()
	for _, w := range s.find(t, &kagziv1.ListWorkflowsRequest{}) {
		if w.GetFailedRunId() == run {
			found = append(found, w)
		}
	}
	return found
}

func TestAFailedRunIsHandledByTheWorkflowItNames(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.register(t)
		handler := s.register(t, func(r *kagziv1.RegisterRequest) {
			r.WorkflowTypes, r.TaskQueue = []string{"mourn"}, "graves"
		})
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.ExternalId, r.OnFailureWorkflow, r.OnFailureTaskQueue = "order-1", "mourn", "graves"
			r.Input = &kagziv1.Payload{Data: []byte{0, 1, 0xff},
				Metadata: map[string]string{"content-type": "application/x"}}
		})
		w.failFor(t, w.take(t), "out of stock")

		task := handler.take(t)
		if task.WorkflowType != "mourn" || task.GetFailedRunId() != run ||
			task.Input.Metadata["content-type"] != "application/json" {
			t.Errorf("the handler is handed out as %v", task)
		}
		var event kagziv1.WorkflowFailedEvent
		if err := protojson.Unmarshal(task.Input.Data, &event); err != nil {
			t.Fatalf("the event %s: %v", task.Input.Data, err)
		}
		failedRun := s.get(t, run)
		if event.Event != "kagzi/workflow.failed" || event.FailedRunId != run || event.NamespaceId != "default" ||
			event.WorkflowType != "t" ||
			event.TaskQueue != "default" || event.ExternalId != "order-1" || event.Status != "FAILED" ||
			event.Attempts != 1 ||
			event.Error.GetMessage() != "out of stock" || event.Error.GetType() != "shop_closed" ||
			!slices.Equal(event.OriginalInput, []byte{0, 1, 0xff}) ||
			event.OriginalInputMetadata["content-type"] != "application/x" ||
			!event.StartedAt.AsTime().Equal(failedRun.StartedAt.AsTime()) ||
			!event.FailedAt.AsTime().Equal(failedRun.FinishedAt.AsTime()) {
			t.Errorf("the event is %v of %v", &event, failedRun)
		}
		if handlers := s.handlersOf(t, run); len(handlers) != 1 || handlers[0].ExternalId != "failure-"+run ||
			handlers[0].TaskQueue != "graves" {
			t.Errorf("the handlers of the run are %v, want one", handlers)
		}
		handler.complete(t, task, "mourned")
		wantOutput(t, s.await(t, task.RunId), "mourned")

		// It gets the run's queue if it names none.
		run = s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.OnFailureWorkflow = "mourn" })
		w.failFor(t, w.take(t), "again")
		if handlers := s.handlersOf(t, run); len(handlers) != 1 || handlers[0].TaskQueue != "default" {
			t.Errorf("the handlers of the second run are %v, want one in the queue of the run", handlers)
		}
	})
}

func TestAHandlerThatFailsHasNoHandler(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.register(t, func(r *kagziv1.RegisterRequest) {
			r.WorkflowTypes = []string{"t", "mourn", engine.GlobalHandler}
		})
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.OnFailureWorkflow = "mourn" })
		w.failFor(t, w.take(t), "first")
		for range 2 {
			w.failFor(t, w.take(t), "the handler too")
		}
		w.wantNothing(t, "after both handlers have failed")
		all := s.find(t, &kagziv1.ListWorkflowsRequest{})
		if len(all) != 3 {
			t.Errorf("there are %d runs, want the failed one and its two handlers", len(all))
		}
		for _, h := range s.handlersOf(t, run) {
			if h.Status != failed {
				t.Errorf("the handler %s is %s", h.WorkflowType, h.Status)
			}
		}
		// A run of the global type that a person starts has no handler of that type.
		byHand := s.start(t, ofType(engine.GlobalHandler))
		w.failFor(t, w.take(t), "by hand")
		if handlers := s.handlersOf(t, byHand); len(handlers) != 0 {
			t.Errorf("a failure of the global handler's type is handled by %v", handlers)
		}
		w.wantNothing(t, "after a handler that was started by hand has failed")
	})
}

func TestTheGlobalHandlerRunsWhereItIsServedElseWhereTheNamespaceSays(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		fail := func() string {
			run := s.start(t)
			w.failFor(t, w.take(t), "boom")
			return run
		}
		if handlers := s.handlersOf(t, fail()); len(handlers) != 0 {
			t.Errorf("without a worker and a queue for it there are the handlers %v", handlers)
		}
		fine(s.namespaces().UpdateNamespace(ctx,
			&kagziv1.UpdateNamespaceRequest{Namespace: "default", FailureTaskQueue: ptr("later")}))(t)
		if handlers := s.handlersOf(t, fail()); len(handlers) != 1 || handlers[0].TaskQueue != "later" ||
			handlers[0].WorkflowType != engine.GlobalHandler {
			t.Errorf("with a queue for it the handlers are %v, want one in that queue", handlers)
		}
		global := s.register(t, func(r *kagziv1.RegisterRequest) {
			r.WorkflowTypes, r.TaskQueue = []string{engine.GlobalHandler}, "desk"
		})
		run := fail()
		if task := global.take(t); task.GetFailedRunId() != run || task.TaskQueue != "desk" {
			t.Errorf("the worker that serves it is handed %v", task)
		}
		if _, err := s.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: global.id}); err != nil {
			t.Fatal(err)
		}
		if handlers := s.handlersOf(t, fail()); len(handlers) != 1 || handlers[0].TaskQueue != "later" {
			t.Errorf("with its worker gone the handlers are %v, want one in the namespace's queue", handlers)
		}
	})
}

func TestNoIDThatAUserChoosesKeepsAHandlerAway(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.register(t)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.OnFailureWorkflow = "mourn" })
		task := w.take(t)
		taken := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.ExternalId = "failure-" + run })
		w.failFor(t, task, "boom")
		handlers := s.handlersOf(t, run)
		if len(handlers) != 1 || handlers[0].RunId == taken || handlers[0].WorkflowType != "mourn" {
			t.Errorf("the handlers are %v, want one although %s has the id that it would have", handlers, taken)
		}
		// And the handler takes no id from users.
		next := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.ExternalId = "failure-" + run })
		if next != taken {
			t.Errorf("the id names run %s, want the user's own %s", next, taken)
		}
	})
}

func TestRunsThatAPersonEndsAreNotHandled(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		named := func(r *kagziv1.StartWorkflowRequest) { r.OnFailureWorkflow = "mourn" }
		cancel, kill := s.start(t, named), s.start(t, named)
		fine(s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: cancel}))(t)
		fine(s.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: kill}))(t)
		for _, run := range []string{cancel, kill} {
			if handlers := s.handlersOf(t, run); len(handlers) != 0 {
				t.Errorf("a run that a person ended is handled by %v", handlers)
			}
		}
		// A run that the server fails for lost workers is handled too.
		w := s.register(t)
		late := s.start(t, named, func(r *kagziv1.StartWorkflowRequest) {
			r.DeadlineAt = timestamppb.New(s.Store.Now().Add(time.Second))
		})
		if got := s.await(t, late); got.Status != timedOut {
			t.Errorf("the late run is %s", got.Status)
		}
		handlers := s.handlersOf(t, late)
		if len(handlers) != 1 {
			t.Fatalf("the handlers of a run that timed out are %v, want one", handlers)
		}
		var event map[string]any
		if err := json.Unmarshal(s.get(t, handlers[0].RunId).Input.Data, &event); err != nil ||
			event["status"] != "TIMED_OUT" || event["started_at"] != nil {
			t.Errorf("the event is %v, %v, want TIMED_OUT and no start", event, err)
		}
		w.wantNothing(t, "the handler is of another type")
	})
}

func TestTheSDKHandlesFailures(t *testing.T) {
	type order struct{ ID, Card string }
	eachServer(t, patient, func(t *testing.T, s *Server) {
		handled := make(chan string, 10)
		handle := func(name string) func(kagzi.Context, kagzi.WorkflowFailedEvent) (int, error) {
			return func(ctx kagzi.Context, event kagzi.WorkflowFailedEvent) (int, error) {
				in, err := kagzi.OriginalInput[order](ctx, event)
				if err != nil {
					return 0, err
				}
				info := kagzi.Info(ctx)
				handled <- strings.Join([]string{name, in.ID, event.Error.Message, event.Error.Type,
					string(event.Status), event.WorkflowType, info.FailedRunID}, "|")
				return 0, errors.New("and the handler fails")
			}
		}
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "order", func(ctx kagzi.Context, in order) (int, error) {
				return kagzi.Step(ctx, "charge", func(context.Context) (int, error) {
					return 0, kagzi.NonRetryable(kagzi.WithType(errors.New("card declined"), "declined"))
				})
			})
			kagzi.Handle(w, "own", handle("own"))
			kagzi.Handle(w, kagzi.GlobalFailureHandler, handle("global"))
		})
		ctx := within(t, time.Minute)
		run := fine(kagzi.Start(ctx, s.client(t), "order", order{"o-1", "4711"}, kagzi.StartOptions{OnFailure: "own"}))(
			t)
		got := []string{receive(t, "a handler", handled), receive(t, "the other handler", handled)}
		slices.Sort(got)
		for i, name := range []string{"global", "own"} {
			want := name + "|o-1|card declined|declined|FAILED|order|" + run.ID()
			if !strings.Contains(got[i], "card declined") || !strings.HasPrefix(got[i], name+"|o-1|") ||
				!strings.HasSuffix(got[i], "|declined|FAILED|order|"+run.ID()) {
				t.Errorf("handled %q, want %q", got[i], want)
			}
		}
		for _, h := range s.handlersOf(t, run.ID()) {
			if got := s.await(t, h.RunId); got.Status != failed {
				t.Errorf("the handler %s is %s", h.WorkflowType, got.Status)
			}
		}
		wantEmpty(t, "a handler of a handler", handled)
		if n := len(s.find(t, &kagziv1.ListWorkflowsRequest{})); n != 3 {
			t.Errorf("there are %d runs, want three", n)
		}
	})
}
