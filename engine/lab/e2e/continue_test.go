package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestARunContinuesAsNewByTheSDK(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "countdown", func(ctx kagzi.Context, n int) (string, error) {
				if _, err := kagzi.Step(ctx, "tick", func(context.Context) (int, error) { return n, nil }); err != nil {
					return "", err
				}
				if n > 0 {
					return kagzi.ContinueAsNew[string](ctx, n-1)
				}
				return "lift-off", nil
			})
			kagzi.Handle(w, "parent", func(ctx kagzi.Context, n int) (string, error) {
				return kagzi.RunChild[string](ctx, "count", "countdown", n, kagzi.ChildOptions{})
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "countdown", 5,
			kagzi.StartOptions{ExternalID: "launch", Priority: 3, Tags: map[string]string{"k": "v"}}))(t)
		// The first run's handle returns the last run's result.
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "lift-off" {
			t.Errorf("the result is %q", got)
		}
		details := fine(run.Wait(ctx))(t)
		chain := []*kagziv1.Workflow{s.get(t, run.ID())}
		for next := chain[0].GetContinuedAsRunId(); next != ""; next = chain[len(chain)-1].GetContinuedAsRunId() {
			chain = append(chain, s.get(t, next))
		}
		if len(chain) != 6 || chain[5].RunId != details.RunID {
			t.Fatalf("the chain has %d runs, and the result came from %s", len(chain), details.RunID)
		}
		for i, w := range chain {
			if w.Status != completed || w.StepCount != 1 || w.ExternalId != "launch" || w.GetPriority() != 3 ||
				w.Tags["k"] != "v" || string(w.Input.Data) != fmt.Sprint(5-i) ||
				i > 0 && w.GetContinuedFromRunId() != chain[i-1].RunId {
				t.Errorf("link %d of the chain is %v", i, w)
			}
		}
		found := fine(s.workflows().GetWorkflowByExternalId(
			ctx, &kagziv1.GetWorkflowByExternalIdRequest{ExternalId: "launch"}))(t).Workflow
		if found.RunId != chain[5].RunId {
			t.Errorf("by external id there is %s, want the last", found.RunId)
		}
		parent := fine(kagzi.Start(ctx, c, "parent", 3, kagzi.StartOptions{}))(t)
		if got := fine(kagzi.Result[string](ctx, parent))(t); got != "lift-off" {
			t.Errorf("the parent of a child that continues got %q", got)
		}
		if n := len(s.find(t, &kagziv1.ListWorkflowsRequest{ParentRunId: ptr(parent.ID())})); n != 4 {
			t.Errorf("the parent has %d runs below it, want 4", n)
		}
	})
}

func TestSignalsThatARunHasNotTakenGoToTheNext(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "inbox", "", kagzi.StartOptions{}))(t)
		for _, item := range []string{"a", "b", "c"} { // all before the first run takes one
			if err := kagzi.Signal(ctx, run, "item", item, kagzi.SignalOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "inbox", func(ctx kagzi.Context, taken string) (string, error) {
				item, err := kagzi.WaitSignal[string](ctx, "item", 0)
				if err != nil {
					return "", err
				}
				if taken += item; len(taken) < 3 {
					return kagzi.ContinueAsNew[string](ctx, taken)
				}
				return taken, nil
			})
		})
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "abc" {
			t.Errorf("three runs took %q of the signals, want all in their order", got)
		}
	})
}

func TestASignalReachesTheContinuedRun(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		// binds signals to their run
		codec := fine(kagzi.NewAESCodec(kagzi.AESOptions{
			Keys: map[string][]byte{"k1": make([]byte, 32)}, Current: "k1"}))(t)
		c := fine(kagzi.NewClient(kagzi.ClientOptions{Address: s.Address, Logger: quiet, Codec: codec}))(t)
		defer c.Close()
		waits := make(chan string, 1)
		s.work(t, kagzi.WorkerOptions{Codec: codec}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "inbox", func(ctx kagzi.Context, n int) (string, error) {
				if n < 2 {
					return kagzi.ContinueAsNew[string](ctx, n+1)
				}
				select {
				case waits <- kagzi.Info(ctx).RunID:
				default:
				}
				return kagzi.WaitSignal[string](ctx, "item", 0)
			})
		})
		run := fine(kagzi.Start(ctx, c, "inbox", 0, kagzi.StartOptions{}))(t)
		last := receive(t, "the last of three runs", waits)
		for range 2 { // repeated, as by a caller that got no answer
			if err := kagzi.Signal(ctx, run, "item", "hello", kagzi.SignalOptions{ID: "once"}); err != nil {
				t.Fatalf("a signal to the first of three runs: %v", err)
			}
		}
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "hello" {
			t.Errorf("the run that went on came to %q", got)
		}
		signals := fine(s.workflows().ListSignals(ctx, &kagziv1.ListSignalsRequest{RunId: last}))(t).Signals
		if len(signals) != 1 {
			t.Errorf("it has the signals %v, want one", signals)
		}
		var refusal *kagzi.Error
		if err := kagzi.Signal(ctx, run, "item", "late", kagzi.SignalOptions{}); !errors.As(err, &refusal) ||
			refusal.Code != kagzi.CodePreconditionFailed {
			t.Errorf("a signal after the end of the last: %v, want it refused", err)
		}
	})
}

func TestARunContinuesAsNewInOneCommit(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		session := s.session(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "stream" })
		unary := s.register(t)
		complete := map[string]func(*kagziv1.Task, *kagziv1.StartWorkflowRequest) (*kagziv1.CompleteWorkflowResponse,
			*kagziv1.ErrorDetail){
			"default": func(task *kagziv1.Task, next *kagziv1.StartWorkflowRequest) (*kagziv1.CompleteWorkflowResponse,
				*kagziv1.ErrorDetail) {
				a, err := s.workers().CompleteWorkflow(
					ctx, &kagziv1.CompleteWorkflowRequest{
						RunId: task.RunId, LeaseToken: task.LeaseToken, ContinueAs: next})
				return a, detailOf(err)
			},
			"stream": func(task *kagziv1.Task, next *kagziv1.StartWorkflowRequest) (*kagziv1.CompleteWorkflowResponse,
				*kagziv1.ErrorDetail) {
				a := session.do(&kagziv1.SessionRequest{
					Operation: &kagziv1.SessionRequest_CompleteWorkflow{
						CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{
							RunId: task.RunId, LeaseToken: task.LeaseToken, ContinueAs: next}}})
				return a.GetCompletedWorkflow(), a.GetError()
			},
		}
		take := map[string]func() *kagziv1.Task{
			"default": func() *kagziv1.Task { return unary.take(t) },
			"stream":  func() *kagziv1.Task { session.grant(1); return receive(t, "the run", session.tasks) },
		}
		for queue := range complete {
			run := s.start(t, ofQueue(queue), func(r *kagziv1.StartWorkflowRequest) {
				r.ExternalId, r.Version = "loop-"+queue, "v7"
				r.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 3_600_000}
			})
			task := take[queue]()
			next := &kagziv1.StartWorkflowRequest{Input: text("again")}
			first, refusal := complete[queue](task, next)
			if first.GetStatus() != completed || first.GetContinuedAsRunId() == "" ||
				first.GetContinuedAsRunId() == run {
				t.Fatalf("%s: the end is answered with %v, %v", queue, first, refusal)
			}
			if again, _ := complete[queue](task, next); again.GetContinuedAsRunId() != first.ContinuedAsRunId {
				t.Errorf("%s: the same end again is answered with %v", queue, again)
			}
			if _, refusal := complete[queue](task, nil); refusal.GetCode() != codeConflict {
				t.Errorf("%s: an end without continuing is answered with %v", queue, refusal)
			}
			got := s.get(t, first.ContinuedAsRunId)
			if got.Status != pending || got.ExternalId != "loop-"+queue || got.Version != "v7" ||
				got.WorkflowType != "t" || got.TaskQueue != queue || string(got.Input.Data) != "again" ||
				!got.WakeUpAt.AsTime().Equal(got.CreatedAt.AsTime()) ||
				got.DeadlineAt.AsTime().Sub(got.CreatedAt.AsTime()) != time.Hour || got.StepCount != 0 {
				t.Errorf("%s: the next run is %v", queue, got)
			}
			if task := take[queue](); task.RunId != got.RunId || len(task.History) != 0 {
				t.Errorf("%s: the next run is handed out as %v", queue, task)
			}
			// Cancelled gracefully it ends, and does not continue.
			run = s.start(t, ofQueue(queue))
			task = take[queue]()
			fine(s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: run, Grace: hour}))(t)
			if end, _ := complete[queue](task, next); end.GetStatus() != cancelled || end.GetContinuedAsRunId() != "" {
				t.Errorf("%s: the end of a cancelled run is answered with %v", queue, end)
			}
		}
		run := s.start(t)
		task := unary.take(t)
		other := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.ExternalId, r.TaskQueue = "taken", "idle" })
		_, err := s.workers().CompleteWorkflow(ctx,
			&kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken,
				ContinueAs: &kagziv1.StartWorkflowRequest{ExternalId: "taken"}})
		wantRefused(t, "continuing under an id that is taken", err, codes.AlreadyExists, codeConflict, "taken")
		if got := s.get(t, run); got.Status != running || s.get(t, other).Status != pending {
			t.Errorf("a refused end left the run %s", got.Status)
		}
	})
}

func TestAHandleOutlivesTheFirstRunOfItsChain(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "relay", func(ctx kagzi.Context, n int) (string, error) {
				if n < 2 {
					return kagzi.ContinueAsNew[string](ctx, n+1)
				}
				return kagzi.WaitSignal[string](ctx, "go", 0)
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "relay", 0, kagzi.StartOptions{}))(t)
		latest := s.get(t, run.ID())
		for latest.Status.Number() < completed.Number() && latest.GetNote() == "" && latest.WaitingFor == "" ||
			latest.GetContinuedAsRunId() != "" {
			if next := latest.GetContinuedAsRunId(); next != "" {
				latest = s.get(t, next)
			} else {
				latest = s.get(t, latest.RunId)
			}
		}
		pruned := fine(s.Store.Prune(ctx, engine.PruneParams{Namespace: "default", Status: engine.RunCompleted,
			Before: s.Store.Now().Add(time.Hour), Limit: 10}))(t)
		if pruned != 1 {
			t.Fatalf("%d runs were pruned, want the first alone: the second is kept for the open one", pruned)
		}
		if got := s.get(t, run.ID()); got.RunId != latest.RunId {
			t.Errorf("Get by the first run's id is %s, want the newest run %s", got.RunId, latest.RunId)
		}
		watched := fine(s.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: run.ID()}))(t)
		event := fine(watched.Recv())(t)
		for event.Workflow == nil {
			event = fine(watched.Recv())(t)
		}
		if event.Workflow.RunId != latest.RunId {
			t.Errorf("Watch by the first run's id shows %s, want the newest run", event.Workflow.RunId)
		}
		if err := kagzi.Signal(ctx, run, "go", "on", kagzi.SignalOptions{}); err != nil {
			t.Errorf("Signal by the first run's id: %v", err)
		}
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "on" {
			t.Errorf("the result by the first run's id is %q", got)
		}
		if got := fine(run.Wait(ctx))(t); got.RunID != latest.RunId {
			t.Errorf("Wait by the first run's id is for %s", got.RunID)
		}
	})
}
