package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/kagzi/kagzi/engine/lab/long"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestManyChildrenOfOneParentWithOneWorkerOfTenSlots(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		children := long.Count(200, 1000) / slowness // the race detector takes that much longer
		var most, now atomic.Int64
		s.work(t, kagzi.WorkerOptions{MaxConcurrent: 10}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "parent", func(ctx kagzi.Context, n int) (int, error) {
				numbers := make([]int, n)
				for i := range numbers {
					numbers[i] = i
				}
				all, err := kagzi.Map(ctx, numbers, func(ctx kagzi.Context, i int) (*kagzi.Child[int], error) {
					return kagzi.StartChild[int](ctx, fmt.Sprintf("kid-%d", i), "kid", i, kagzi.ChildOptions{})
				})
				if err != nil {
					return 0, err
				}
				squares, err := kagzi.WaitAll(ctx, all...)
				sum := 0
				for _, sq := range squares {
					sum += sq
				}
				return sum, err
			})
			kagzi.Handle(w, "kid", func(ctx kagzi.Context, n int) (int, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				return n * n, nil
			})
		})
		ctx := within(t, 2*time.Minute)
		run := fine(kagzi.Start(ctx, s.client(t), "parent", children, kagzi.StartOptions{Priority: 1}))(t)
		if got, want := fine(kagzi.Result[int](ctx, run))(t), (children-1)*children*(2*children-1)/6; got != want {
			t.Errorf("the parent returned %d, want %d", got, want)
		}
		if most.Load() > 10 {
			t.Errorf("%d children ran at a time, want 10 at most", most.Load())
		}
		w := s.get(t, run.ID())
		if w.StepCount != int64(children) || w.Attempts != 1 || w.LeaseLosses != 0 {
			t.Errorf("the parent is %v", w)
		}
		if kids := s.find(t, &kagziv1.ListWorkflowsRequest{
			ParentRunId: ptr(run.ID()), StatusFilter: completed.Enum()}); len(kids) != children {
			t.Errorf("%d children have completed", len(kids))
		}
	})
}

func TestAChildThatFailsIsAnErrorOfItsParent(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "parent", func(ctx kagzi.Context, kind string) (string, error) {
				var options kagzi.ChildOptions
				if kind == "hangs" {
					options.ExecutionTimeout = 400 * time.Millisecond * slowness
				}
				child, err := kagzi.StartChild[int](ctx, "kid", kind, 0, options)
				if err != nil {
					return "", err
				}
				_, err = child.Wait(ctx)
				var end *kagzi.RunError
				if !errors.As(err, &end) || end.RunID != child.RunID() {
					return "", fmt.Errorf("no RunError: %w", err)
				}
				return fmt.Sprintf("%s/%s/%s", end.Status, end.Type, end.Message), nil
			})
			kagzi.Handle(w, "fails", func(ctx kagzi.Context, _ int) (int, error) {
				return 0, kagzi.WithType(errors.New("no stock"), "stock")
			})
			kagzi.Handle(w, "panics", func(ctx kagzi.Context, _ int) (int, error) { panic("oh dear") })
			kagzi.Handle(w, "hangs", func(ctx kagzi.Context, _ int) (int, error) {
				kagzi.Sleep(ctx, "nap", time.Hour)
				return 0, nil
			})
			kagzi.Handle(w, "propagates", func(ctx kagzi.Context, _ int) (int, error) {
				return kagzi.RunChild[int](ctx, "kid", "fails", 0, kagzi.ChildOptions{})
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		for kind, want := range map[string]string{
			"fails": "FAILED/stock/no stock", "panics": "FAILED/panic/", "hangs": "TIMED_OUT/deadline/",
			"propagates": "FAILED/stock/"} {
			run := fine(kagzi.Start(ctx, c, "parent", kind, kagzi.StartOptions{}))(t)
			if got := fine(kagzi.Result[string](ctx, run))(t); !strings.HasPrefix(got, want) {
				t.Errorf("a child that %s is told as %q, want %q", kind, got, want)
			}
		}
		for how, end := range map[string]func(run string) error{
			"CANCELLED":  func(run string) error { return c.Run(run).Cancel(ctx, "by hand") },
			"TERMINATED": func(run string) error { return c.Run(run).Terminate(ctx, "by hand") },
		} {
			run := fine(kagzi.Start(ctx, c, "parent", "nobody-serves-this", kagzi.StartOptions{}))(t)
			s.parked(t, run.ID())
			if err := end(strings.TrimPrefix(s.get(t, run.ID()).WaitingFor, "child:")); err != nil {
				t.Fatal(err)
			}
			if got := fine(kagzi.Result[string](ctx, run))(t); got != how+"/"+strings.ToLower(how)+"/by hand" {
				t.Errorf("a child that a person ends is told as %q", got)
			}
		}
	})
}

func TestChildrenWhenTheirParentEnds(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		session := s.session(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "kids" })
		session.grant(20)
		for how, end := range map[string]func(task *kagziv1.Task){
			"completed": func(task *kagziv1.Task) { w.complete(t, task, "") },
			"failed":    func(task *kagziv1.Task) { w.failFor(t, task, "x") },
			"terminated": func(task *kagziv1.Task) {
				fine(s.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: task.RunId}))(t)
			},
		} {
			s.start(t)
			parent := w.take(t)
			kids := map[kagziv1.ParentClosePolicy]string{}
			for policy := range kagziv1.ParentClosePolicy_name {
				p := kagziv1.ParentClosePolicy(policy)
				r := &kagziv1.StartChildRequest{StepName: p.String(), LeaseToken: parent.LeaseToken,
					ParentClosePolicy: p,
					Child: &kagziv1.StartWorkflowRequest{
						WorkflowType: "t", TaskQueue: "kids", ParentRunId: parent.RunId}}
				kids[p] = fine(s.workers().StartChild(ctx, r))(t).ChildRunId
				if again := fine(s.workers().StartChild(ctx, r))(t); again.ChildRunId != kids[p] {
					t.Errorf("the same child again is %s", again.ChildRunId)
				}
			}
			held := map[string]*kagziv1.Task{}
			for range kids {
				task := receive(t, "a child", session.tasks)
				held[task.RunId] = task
			}
			// A grandchild is cancelled with its parent.
			cancelled1 := held[kids[kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_CANCEL]]
			a := session.do(&kagziv1.SessionRequest{
				Operation: &kagziv1.SessionRequest_StartChild{StartChild: &kagziv1.StartChildRequest{
					StepName: "grandchild", LeaseToken: cancelled1.LeaseToken,
					ParentClosePolicy: kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_TERMINATE,
					Child: &kagziv1.StartWorkflowRequest{
						WorkflowType: "t", TaskQueue: "idle", ParentRunId: cancelled1.RunId}}}})
			grandchild := a.GetStartedChild().GetChildRunId()
			end(parent)
			for p, want := range map[kagziv1.ParentClosePolicy]kagziv1.WorkflowStatus{
				0: running, 1: running, 2: cancelled, 3: terminated} {
				got := s.get(t, kids[p])
				if got.Status != want || got.GetParentRunId() != parent.RunId || got.GetParentStepId() == "" ||
					want != running && !strings.Contains(got.Error.GetMessage(), parent.RunId) {
					t.Errorf("after its parent has %s a child with %s is %v", how, p, got)
				}
			}
			if got := s.get(t, grandchild); got.Status != terminated {
				t.Errorf("after its grandparent has %s the grandchild is %v", how, got)
			}
			told := []string{receive(t, "word of an end", session.cancels).RunId,
				receive(t, "word of an end", session.cancels).RunId}
			if strings.Join(told, " ") != kids[2]+" "+kids[3] && strings.Join(told, " ") != kids[3]+" "+kids[2] {
				t.Errorf("their worker is told of %v", told)
			}
			for _, p := range []kagziv1.ParentClosePolicy{0, 1} {
				if a := session.do(session.runDone(held[kids[p]], "")); a.GetCompletedWorkflow() == nil {
					t.Errorf("the end of an abandoned child is answered with %v", a)
				}
			}
		}
	})
}

func TestChildrenThatAreRefused(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		taken := s.start(t, ofQueue("idle"), func(r *kagziv1.StartWorkflowRequest) { r.ExternalId = "taken" })
		child := func(change func(*kagziv1.StartChildRequest)) error {
			r := &kagziv1.StartChildRequest{StepName: "kid", LeaseToken: task.LeaseToken,
				Child: &kagziv1.StartWorkflowRequest{WorkflowType: "t", TaskQueue: "idle", ParentRunId: run}}
			change(r)
			_, err := s.workers().StartChild(ctx, r)
			return err
		}
		wantRefused(t, "an id that an open run holds",
			child(func(r *kagziv1.StartChildRequest) { r.Child.ExternalId = "taken" }), codes.AlreadyExists,
			codeConflict, taken)
		wantRefused(t, "no child", child(func(r *kagziv1.StartChildRequest) { r.Child = nil }), codes.InvalidArgument,
			codeInvalid, "child")
		wantRefused(t, "no parent", child(func(r *kagziv1.StartChildRequest) { r.Child.ParentRunId = "" }),
			codes.InvalidArgument, codeInvalid, "parent_run_id")
		wantRefused(t, "another parent", child(func(r *kagziv1.StartChildRequest) { r.Child.ParentRunId = taken }),
			codes.FailedPrecondition, codeLeaseLost, "")
		wantRefused(t, "no type", child(func(r *kagziv1.StartChildRequest) { r.Child.WorkflowType = "" }),
			codes.InvalidArgument, codeInvalid, "workflow_type")
		w.completeStep(t, task, "other", "x")
		wantRefused(t, "the name of a step", child(func(r *kagziv1.StartChildRequest) { r.StepName = "other" }),
			codes.FailedPrecondition, codeConflict, "other")
		_, err := s.workers().AwaitChildren(ctx,
			&kagziv1.AwaitChildrenRequest{RunId: run, LeaseToken: task.LeaseToken, ChildRunIds: []string{taken}})
		wantRefused(t, "waiting for a run that is no child", err, codes.NotFound, codeNotFound, taken)
		_, err = s.workers().AwaitChildren(ctx, &kagziv1.AwaitChildrenRequest{RunId: run, LeaseToken: task.LeaseToken})
		wantRefused(t, "waiting for nobody", err, codes.InvalidArgument, codeInvalid, "child_run_ids")
		if n := s.get(t, run).StepCount; n != 1 {
			t.Errorf("refused children left %d steps", n)
		}
		if n := len(s.find(t, &kagziv1.ListWorkflowsRequest{ParentRunId: ptr(run)})); n != 0 {
			t.Errorf("refused children left %d runs", n)
		}
	})
}

func TestChildrenByUnaryCalls(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		kids := s.register(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "kids" })
		run := s.start(t)
		task := w.take(t)
		var ids []string
		for i := range 3 {
			a := fine(s.workers().StartChild(ctx, &kagziv1.StartChildRequest{
				StepName: fmt.Sprintf("k%d", i), LeaseToken: task.LeaseToken,
				Child: &kagziv1.StartWorkflowRequest{WorkflowType: "t", TaskQueue: "kids", ParentRunId: run}}))(t)
			ids = append(ids, a.ChildRunId)
			if a.StepId == "" || a.Step.GetStatus() != kagziv1.StepStatus_STEP_STATUS_RUNNING ||
				a.Step.GetChildRunId() != a.ChildRunId {
				t.Errorf("child %d is started as %v", i, a)
			}
		}
		await := func(any bool, ids ...string) *kagziv1.AwaitChildrenResponse {
			t.Helper()
			return fine(s.workers().AwaitChildren(
				ctx, &kagziv1.AwaitChildrenRequest{RunId: run, LeaseToken: task.LeaseToken, ChildRunIds: ids,
					Any: any}))(t)
		}
		if a := await(true, ids...); len(a.Finished) != 0 || len(a.Steps) != 0 {
			t.Errorf("a wait for any is answered with %v", a)
		}
		if got := s.get(t, run); got.Status != sleeping || !strings.HasPrefix(got.WaitingFor, "child:") ||
			got.WorkerId != nil {
			t.Errorf("the parent waits as %v", got)
		}
		first := kids.take(t)
		kids.complete(t, first, "one")
		task = w.take(t)
		a := await(true, ids...)
		if len(a.Finished) != 1 || a.Finished[0].RunId != first.RunId ||
			string(a.Finished[0].Output.GetData()) != "one" || len(a.Steps) != 1 {
			t.Errorf("after the first has ended a wait for any is answered with %v", a)
		}
		if a := await(false, ids...); len(a.Steps) != 0 {
			t.Errorf("a wait for all is answered with %v", a)
		}
		kids.complete(t, kids.take(t), "two")
		w.wantNothing(t, "while the third child runs")
		kids.failFor(t, kids.take(t), "three")
		task = w.take(t)
		a = await(false, ids[2], ids[0], ids[1])
		if len(a.Finished) != 3 || a.Finished[0].RunId != ids[2] || a.Finished[1].RunId != ids[0] ||
			a.Steps[0].Name != "k2" {
			t.Errorf("a wait for all is answered with %v, want the order asked for", a)
		}
		w.complete(t, task, "")
	})
}
