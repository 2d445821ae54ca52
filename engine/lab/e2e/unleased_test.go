package e2e

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Clients of the first Kagzi server know neither lease tokens nor sessions.
func TestAClientThatKnowsNoTokenWorksWhereItIsAllowed(t *testing.T) {
	o := patient
	o.Server.AllowUnleased = true
	eachServer(t, o, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		worker, err := s.workers().Register(ctx,
			&kagziv1.RegisterRequest{Namespace: "default", TaskQueue: "default", WorkflowTypes: []string{"t"}})
		if err != nil {
			t.Fatal(err)
		}
		poll := func() {
			t.Helper()
			task, err := s.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
				Namespace: "default", WorkerId: worker.WorkerId, TaskQueue: "default", WorkflowTypes: []string{"t"}})
			if err != nil || task.RunId != run || task.WorkflowType != "t" || string(task.Input.GetData()) != "input" {
				t.Fatalf("polled %v, %v, want the run", task, err)
			}
		}
		poll()
		begun, err := s.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{RunId: run, StepName: "charge"})
		if err != nil || !begun.ShouldExecute {
			t.Fatalf("begin: %v, %v", begun, err)
		}
		if _, err := s.workers().CompleteStep(ctx,
			&kagziv1.CompleteStepRequest{RunId: run, StepId: begun.StepId, Output: text("paid")}); err != nil {
			t.Fatal(err)
		}
		nap := &kagziv1.BeginStepRequest{RunId: run, StepName: "nap", Kind: kagziv1.StepKind_STEP_KIND_SLEEP}
		if begun, err = s.workers().BeginStep(ctx, nap); err != nil || !begun.ShouldExecute {
			t.Fatalf("begin a sleep: %v, %v", begun, err)
		}
		if _, err := s.workers().Sleep(ctx, &kagziv1.SleepRequest{
			RunId: run, StepId: begun.StepId, Duration: durationpb.New(50 * time.Millisecond)}); err != nil {
			t.Fatal(err)
		}
		// No worker holds the run now, so no worker may write to it.
		if _, err := s.workers().CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{RunId: run}); status.Code(
			err) != codes.FailedPrecondition {
			t.Errorf("the end of a sleeping run: %v, want FAILED_PRECONDITION", err)
		}
		poll()
		for _, step := range []*kagziv1.BeginStepRequest{{RunId: run, StepName: "charge"}, nap} {
			if begun, err := s.workers().BeginStep(ctx, step); err != nil || begun.ShouldExecute {
				t.Errorf("%s begins as %v, %v, want it done", step.StepName, begun, err)
			}
		}
		if beat, err := s.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: worker.WorkerId}); err != nil ||
			!beat.Accepted {
			t.Errorf("heartbeat: %v, %v", beat, err)
		}
		if _, err := s.workers().CompleteWorkflow(
			ctx, &kagziv1.CompleteWorkflowRequest{RunId: run, Output: text("done")}); err != nil {
			t.Fatal(err)
		}
		wantOutput(t, s.get(t, run), "done")
	})
}
