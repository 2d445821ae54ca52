package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestADeadlineEndsARunInEveryState(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w, session := s.register(t), s.session(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "stream" })
		session.grant(1)
		deadline := engine.Micros(s.Store.Now().Add(time.Hour))
		limited := func(r *kagziv1.StartWorkflowRequest) { r.DeadlineAt = timestamppb.New(deadline) }
		runs := map[string]string{}

		runs["pushed"] = s.start(t, limited, ofQueue("stream"))
		pushed := receive(t, "the pushed run", session.tasks)
		runs["sleeping"] = s.start(t, limited)
		task := w.take(t)
		fine(s.workers().Sleep(ctx, &kagziv1.SleepRequest{
			RunId: task.RunId, StepId: "nap", Duration: durationpb.New(2 * time.Hour), LeaseToken: task.LeaseToken}))(t)
		runs["waiting for a signal"] = s.start(t, limited)
		task = w.take(t)
		fine(s.workers().AwaitSignal(ctx, &kagziv1.AwaitSignalRequest{
			RunId: task.RunId, StepName: "s", SignalName: "s", LeaseToken: task.LeaseToken}))(t)
		runs["waiting for a retry"] = s.start(t, limited, func(r *kagziv1.StartWorkflowRequest) {
			r.RetryPolicy = &kagziv1.RetryPolicy{InitialIntervalMs: 7_200_000, MaximumIntervalMs: 7_200_000}
		})
		task = w.take(t)
		fine(s.workers().FailStep(ctx, &kagziv1.FailStepRequest{
			RunId: task.RunId, StepId: "s", Error: &kagziv1.ErrorDetail{Message: "x"}, LeaseToken: task.LeaseToken}))(t)
		runs["running"] = s.start(t, limited)
		held := w.take(t)
		w.completeStep(t, held, "done", "kept")
		fine(s.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{
			RunId: held.RunId, StepName: "open", LeaseToken: held.LeaseToken}))(t)
		runs["pending"] = s.start(t, limited)
		paused := s.start(t, limited)
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: paused}))(t)
		runs["to start later"] = s.start(t, limited, func(r *kagziv1.StartWorkflowRequest) {
			r.StartAt = timestamppb.New(deadline.Add(-time.Millisecond))
		})
		s.Jump(deadline.Sub(s.Store.Now()) - 100*time.Millisecond)

		for name, run := range runs {
			got := s.await(t, run)
			if got.Status != timedOut || got.Error.GetCode() != kagziv1.ErrorCode_ERROR_CODE_TIMEOUT ||
				got.WakeUpAt != nil || got.Paused {
				t.Errorf("the %s run is %v, want TIMED_OUT", name, got)
			}
			if late := got.FinishedAt.AsTime().Sub(deadline); late < 0 || late > promptly {
				t.Errorf("the %s run ended %s after its deadline, want at once", name, late)
			}
		}
		if got := s.get(t, paused); got.Status != pending || !got.Paused {
			t.Errorf("the paused run is %v, want it open after its deadline", got)
		}
		if told := receive(t, "word of the end", session.cancels); told.RunId != runs["pushed"] ||
			told.Reason.GetMetadata()["status"] != "TIMED_OUT" || told.GraceUntil != nil {
			t.Errorf("the session is told %v", told)
		}
		if a := session.do(session.runDone(pushed, "late")); a.GetError().GetCode() != codeLeaseLost ||
			a.GetError().GetMetadata()["status"] != "TIMED_OUT" {
			t.Errorf("the late end is answered with %v", a)
		}
		if lost := w.heartbeat(t, held).Lost; len(lost) != 1 || lost[0].RunId != runs["running"] {
			t.Errorf("the heartbeat is told that %v are lost, want the run", lost)
		}
		_, err := s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
			RunId: held.RunId, StepId: "open", LeaseToken: held.LeaseToken})
		wantRefused(t, "a late step", err, codes.FailedPrecondition, codeLeaseLost, "TIMED_OUT")
		for _, step := range s.steps(t, runs["running"]) {
			if want := map[string]kagziv1.StepStatus{
				"done": kagziv1.StepStatus_STEP_STATUS_COMPLETED,
				"open": kagziv1.StepStatus_STEP_STATUS_FAILED}[step.Name]; step.Status != want {
				t.Errorf("step %s is %s, want %s", step.Name, step.Status, want)
			}
		}
	})
}

func TestTheEarlierOfTwoDeadlinesHolds(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		later := s.Store.Now().Add(2 * time.Hour)
		byTimeout := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.DeadlineAt, r.Timeouts = timestamppb.New(later), &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 3_600_000}
		})
		byDeadline := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.DeadlineAt, r.Timeouts = timestamppb.New(later), &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 4 * 3_600_000}
		})
		none := s.start(t)
		delayed := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.StartAt, r.Timeouts = timestamppb.New(later), &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 3_600_000}
		})
		if w := s.get(t, delayed); w.DeadlineAt.AsTime().Sub(later.UTC()) != time.Hour {
			t.Errorf("the deadline of %v is not an hour from when it may start", w)
		}
		if w := s.get(t, byTimeout); w.DeadlineAt.AsTime().Sub(w.CreatedAt.AsTime()) != time.Hour {
			t.Errorf("the deadline of %v is not an hour from its start", w)
		}
		s.Jump(time.Hour)
		if w := s.await(t, byTimeout); w.Status != timedOut {
			t.Errorf("after an hour the first run is %s", w.Status)
		}
		if w := s.get(t, byDeadline); w.Status != pending {
			t.Errorf("after an hour the second run is %s", w.Status)
		}
		s.Jump(time.Hour)
		if w := s.await(t, byDeadline); w.Status != timedOut {
			t.Errorf("after two hours the second run is %s", w.Status)
		}
		if w := s.get(t, none); w.Status != pending || w.DeadlineAt != nil {
			t.Errorf("the run without a deadline is %v", w)
		}
	})
}

func TestADeadlineBesideAShorterLimitEndsAllSuccessors(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		w, named := s.register(t), s.Store.Now().Add(2*time.Hour)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.DeadlineAt, r.Timeouts = timestamppb.New(named), &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 90 * 60_000}
		})
		task := w.take(t)
		if at := s.get(t, run); at.DeadlineAt.AsTime().Sub(at.CreatedAt.AsTime()) != 90*time.Minute {
			t.Errorf("the deadline of %v is not 90 minutes from its start", at)
		}
		s.Jump(time.Hour)
		answer, err := s.workers().CompleteWorkflow(
			t.Context(), &kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken,
				ContinueAs: &kagziv1.StartWorkflowRequest{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.get(t, answer.ContinuedAsRunId).DeadlineAt.AsTime(); !got.Equal(
			named.UTC().Truncate(time.Microsecond)) {
			t.Errorf("the deadline of the continued run is %s, want the named %s", got, named)
		}
	})
}

func TestARetryCannotOutliveTheDeadline(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		w := s.register(t)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 60_000}
			r.RetryPolicy = &kagziv1.RetryPolicy{InitialIntervalMs: 45_000, Jitter: -1, MaximumAttempts: -1}
		})
		fail := func() {
			task := w.take(t)
			fine(s.workers().FailWorkflow(within(t, 20*time.Second), &kagziv1.FailWorkflowRequest{
				RunId: run, LeaseToken: task.LeaseToken, Error: &kagziv1.ErrorDetail{Message: "x"}}))(t)
		}
		fail() // again in 45 s, which is in time
		s.Jump(46 * time.Second)
		fail() // again in 60 s, which is not
		if got := s.get(t, run); got.Status != pending {
			t.Errorf("before its deadline the run is %s", got.Status)
		}
		s.Jump(15 * time.Second)
		if got := s.await(t, run); got.Status != timedOut || got.Attempts != 3 {
			t.Errorf("after its deadline the run is %v, want TIMED_OUT in its third attempt", got)
		}
	})
}

func TestADeadlineEndsTheContextOfTheRunningStep(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, ended := make(chan struct{}), make(chan error, 1)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "long", func(ctx kagzi.Context, _ int) (int, error) {
				return kagzi.Step(ctx, "wait", func(ctx context.Context) (int, error) {
					close(began)
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return 0, ctx.Err()
				})
			})
		})
		ctx := within(t, time.Minute)
		run := fine(kagzi.Start(ctx, s.client(t), "long", 0, kagzi.StartOptions{ExecutionTimeout: time.Hour}))(t)
		receiveClosed(t, "the step", began)
		s.Jump(time.Hour)
		if cause := receive(t, "the end of the step", ended); errors.Is(cause, kagzi.ErrCancelled) {
			t.Errorf("the step ends by %v, although nobody cancelled it", cause)
		}
		_, err := kagzi.Result[int](ctx, run)
		var end *kagzi.RunError
		if !errors.As(err, &end) || end.Status != kagzi.StatusTimedOut || end.Code != kagzi.CodeTimeout {
			t.Errorf("the result is %v, want TIMED_OUT", err)
		}
	})
}
