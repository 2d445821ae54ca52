package e2e

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	pending    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
	running    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	sleeping   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
	completed  = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	failed     = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	cancelled  = kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED
	terminated = kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED
)

// patient is a server that deregisters no worker during a test.
var patient = Options{}

func init() { patient.Server.HeartbeatInterval = time.Minute }

func TestARunLivesByUnaryCalls(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.Version = "2.0"
			r.Tags = map[string]string{"a": "b"}
		})
		if w := s.get(t, run); w.Status != pending || w.Namespace != "default" || w.TaskQueue != "default" ||
			w.Attempts != 1 ||
			w.Version != "2.0" || string(w.Input.Data) != "input" || w.Tags["a"] != "b" || w.StartedAt != nil ||
			w.WakeUpAt == nil {
			t.Fatalf("started as %v", w)
		}
		w := s.register(t)
		task := w.take(t)
		if task.RunId != run || string(task.Input.Data) != "input" || task.Attempt != 1 || len(task.History) != 0 ||
			len(task.LeaseToken) != 32 {
			t.Fatalf("taken as %v", task)
		}
		if got := s.get(t, run); got.Status != running || got.GetWorkerId() != w.id || got.StartedAt == nil ||
			got.WakeUpAt != nil {
			t.Fatalf("running as %v", got)
		}

		begun, err := s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: run, StepName: "charge", LeaseToken: task.LeaseToken, Input: text("in")})
		if err != nil || !begun.ShouldExecute || begun.AttemptNumber != 1 {
			t.Fatalf("begin: %v, %v", begun, err)
		}
		if again, err := s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: run, StepName: "charge", LeaseToken: task.LeaseToken}); err != nil ||
			again.StepId != begun.StepId || !again.ShouldExecute {
			t.Errorf("begun twice: %v, %v, want the same attempt", again, err)
		}
		step := w.completeStep(t, task, begun.StepId, "charged")
		if step.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED || step.Sequence != 1 || !step.IsLatest {
			t.Errorf("completed as %v", step)
		}
		cached, err := s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: run, StepName: "charge", LeaseToken: task.LeaseToken})
		if err != nil || cached.ShouldExecute || string(cached.CachedOutput.GetData()) != "charged" {
			t.Errorf("begun when completed: %v, %v, want the recorded output", cached, err)
		}
		w.completeStep(t, task, "mail", "mailed") // without BeginStep
		w.complete(t, task, "done")

		end := s.await(t, run)
		wantOutput(t, end, "done")
		if end.StepCount != 2 || end.FinishedAt == nil || end.Attempts != 1 || end.GetWorkerId() != w.id {
			t.Errorf("ended as %v", end)
		}
		steps, err := s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: run})
		if err != nil || len(steps.Steps) != 2 || steps.Steps[0].Name != "charge" ||
			string(steps.Steps[0].Input.GetData()) != "in" || string(steps.Steps[1].Output.GetData()) != "mailed" {
			t.Errorf("steps: %v, %v", steps, err)
		}
		one, err := s.admin().GetStep(ctx, &kagziv1.GetStepRequest{StepId: begun.StepId})
		if err != nil || one.Step.Name != "charge" {
			t.Errorf("get step: %v, %v", one, err)
		}
		_, err = s.admin().GetStep(ctx, &kagziv1.GetStepRequest{StepId: begun.StepId, Namespace: "other"})
		wantRefused(t, "a step of another namespace", err, codes.NotFound,
			kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, "no step")
	})
}

func TestAFailedStepIsRetriedAndARunFails(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: 2, InitialIntervalMs: 150, Jitter: -1}
		})
		w := s.register(t)
		task := w.take(t)
		before := time.Now()
		failure := &kagziv1.ErrorDetail{Type: "flaky", Message: "not now", Stack: "trace",
			Metadata: map[string]string{"k": "v"}}
		verdict, err := s.workers().FailStep(ctx,
			&kagziv1.FailStepRequest{RunId: run, StepId: "s", LeaseToken: task.LeaseToken, Error: failure})
		if err != nil || !verdict.ScheduledRetry || verdict.RetryAt == nil {
			t.Fatalf("first failure: %v, %v, want another attempt", verdict, err)
		}
		if got := s.get(t, run); got.Status != pending || got.Attempts != 1 || got.GetStepRetries() != 1 ||
			!got.WakeUpAt.AsTime().Equal(verdict.RetryAt.AsTime()) {
			t.Errorf("a run that waits for its retry is %v", got)
		}
		_, err = s.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{
			RunId: run, StepName: "s", LeaseToken: task.LeaseToken})
		wantRefused(t, "work after the lease was over", err, codes.FailedPrecondition,
			kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, "PENDING")

		task = w.take(t)
		if waited := time.Since(before); waited < 150*time.Millisecond {
			t.Errorf("the retry came after %s, want 150 ms at least", waited)
		}
		if len(task.History) != 1 || task.History[0].GetError().GetType() != "flaky" || task.Attempt != 1 {
			t.Errorf("the retry's task is %v", task)
		}
		begun, err := s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: run, StepName: "s", LeaseToken: task.LeaseToken})
		if err != nil || !begun.ShouldExecute || begun.AttemptNumber != 2 {
			t.Fatalf("second attempt: %v, %v", begun, err)
		}
		verdict, err = s.workers().FailStep(ctx,
			&kagziv1.FailStepRequest{RunId: run, StepId: begun.StepId, LeaseToken: task.LeaseToken, Error: failure})
		if err != nil || verdict.ScheduledRetry {
			t.Fatalf("second failure: %v, %v, want the end", verdict, err)
		}
		again, err := s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: run, StepName: "s", LeaseToken: task.LeaseToken})
		if err != nil || again.ShouldExecute || again.Error.GetMessage() != "not now" ||
			again.Error.GetMetadata()["k"] != "v" {
			t.Errorf("begun after it failed for good: %v, %v, want its error", again, err)
		}
		fail := &kagziv1.FailWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken,
			Error: &kagziv1.ErrorDetail{Message: "boom", NonRetryable: true}}
		ended, err := s.workers().FailWorkflow(ctx, fail)
		if err != nil || ended.Status != failed {
			t.Fatalf("fail: %v, %v", ended, err)
		}
		if got := s.await(t, run); got.Status != failed || got.Error.GetMessage() != "boom" || got.FinishedAt == nil {
			t.Errorf("ended as %v", got)
		}
		if again, err := s.workers().FailWorkflow(ctx, fail); err != nil || again.Status != failed {
			t.Errorf("the same failure again: %v, %v, want the same answer", again, err)
		}
	})
}

func TestEachStepHasItsOwnRetryBudget(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: 3, InitialIntervalMs: 1, Jitter: -1}
		})
		w := s.register(t)
		task := w.take(t)
		for _, step := range []string{"a", "b"} {
			for failure := 1; failure <= 2; failure++ {
				verdict := fine(s.workers().FailStep(
					ctx, &kagziv1.FailStepRequest{RunId: run, StepId: step, LeaseToken: task.LeaseToken,
						Error: &kagziv1.ErrorDetail{Message: "x"}}))(t)
				if !verdict.ScheduledRetry {
					t.Fatalf("failure %d of step %s is the last", failure, step)
				}
				task = w.take(t)
				fine(s.workers().ReleaseTask(ctx, &kagziv1.ReleaseTaskRequest{
					RunId: run, LeaseToken: task.LeaseToken}))(t)
				task = w.take(t)
				nap := fmt.Sprintf("nap-%s-%d", step, failure)
				fine(s.workers().Sleep(ctx, &kagziv1.SleepRequest{
					RunId: run, StepId: nap, Duration: durationpb.New(time.Millisecond), LeaseToken: task.LeaseToken}))(
					t)
				task = w.take(t)
			}
			if got := w.completeStep(t, task, step, "at last"); got.AttemptNumber != 3 {
				t.Errorf("step %s completes in attempt %d, want its third", step, got.AttemptNumber)
			}
		}
		w.complete(t, task, "done")
		if got := s.get(t, run); got.Status != completed || got.Attempts != 1 || got.GetStepRetries() != 4 {
			t.Errorf("the run is %v, want COMPLETED at its first attempt with four retries of steps", got)
		}
	})
}

func TestSleepsLastToTheMillisecond(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		for _, nap := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 1100 * time.Millisecond} {
			run := s.start(t)
			task := w.take(t)
			if _, err := s.workers().Sleep(ctx, &kagziv1.SleepRequest{
				RunId: run, StepId: "nap", Duration: durationpb.New(nap), LeaseToken: task.LeaseToken}); err != nil {
				t.Fatalf("sleep: %v", err)
			}
			task = w.take(t)
			step := task.History[0]
			if step.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED ||
				step.Kind != kagziv1.StepKind_STEP_KIND_SLEEP {
				t.Errorf("slept as %v", step)
			}
			// On Postgres it lasts longer by the uncertainty of the clock.
			if lasted := step.WakeUpAt.AsTime().Sub(step.StartedAt.AsTime()); lasted < nap || lasted > nap+time.Second {
				t.Errorf("a sleep of %s lasted %s", nap, lasted)
			}
			late := s.get(t, run)
			claimed := s.Store.Now().Sub(step.WakeUpAt.AsTime())
			if claimed < 0 || claimed > promptly {
				t.Errorf("a sleep of %s was over %s ago when its worker had it: %v", nap, claimed, late.Status)
			}
			w.complete(t, task, "")
		}

		run := s.start(t)
		task := w.take(t)
		wake := time.Now().Add(time.Hour)
		if _, err := s.workers().Sleep(ctx, &kagziv1.SleepRequest{
			RunId: run, StepId: "long", Until: timestamppb.New(wake), LeaseToken: task.LeaseToken}); err != nil {
			t.Fatalf("sleep until: %v", err)
		}
		if got := s.get(t, run); got.Status != sleeping || got.WaitingFor != "timer:long" ||
			got.WakeUpAt.AsTime().Sub(wake).Abs() > time.Microsecond || got.WorkerId != nil {
			t.Errorf("sleeping as %v, want a timer until %s and no worker", got, wake)
		}
		w.wantNothing(t, "while the only run sleeps")
		s.Jump(time.Hour)
		if task := w.take(t); task.RunId != run {
			t.Errorf("the run does not wake up")
		}
	})
}

func TestAStartReachesAWaitingWorkerAtOnce(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		unary, session := s.register(t), s.session(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "stream" })
		session.grant(100)
		worst := time.Duration(0)
		for range 10 {
			polled := make(chan time.Time, 1)
			go func() {
				if task, err := unary.poll(within(t, 30*time.Second), 20*time.Second); err == nil && task != nil {
					polled <- time.Now()
				}
			}()
			s.awaitPoller(t)
			began := time.Now()
			s.start(t)
			worst = max(worst, receive(t, "a polled run", polled).Sub(began))
			began = time.Now()
			s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.TaskQueue = "stream" })
			receive(t, "a pushed run", session.tasks)
			worst = max(worst, time.Since(began))
		}
		if worst > promptly {
			t.Errorf("the slowest of 20 starts reached its worker after %s", worst)
		}
	})
}

func TestADelayedStartIsExact(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		// what counts is the store's clock, which on Postgres is the database's, as far as it can
		// be measured from here
		s.Jump(time.Minute)
		w := s.session(t)
		w.grant(5)
		const delay = 700 * time.Millisecond
		for name, how := range map[string]func(*kagziv1.StartWorkflowRequest){
			"at a moment": func(r *kagziv1.StartWorkflowRequest) {
				r.StartAt = timestamppb.New(s.Store.Now().Add(delay))
			},
			"after a time, by a caller whose clock is behind": func(r *kagziv1.StartWorkflowRequest) {
				r.StartIn, r.StartAt = durationpb.New(delay), timestamppb.New(time.Now().Add(delay-time.Hour))
			},
			"after a time, by a caller whose clock is ahead by more than any delay": func(r *kagziv1.StartWorkflowRequest) {
				r.StartIn, r.StartAt = durationpb.New(delay), timestamppb.New(time.Now().Add(2*engine.MaxDelay))
			},
		} {
			at := engine.Micros(s.Store.Now().Add(delay))
			run := s.start(t, how)
			task := receive(t, "the run", w.tasks)
			if late := s.Store.Now().Sub(at); task.RunId != run || late < 0 || late > promptly {
				t.Errorf("%s: the run came %s after its moment", name, late)
			}
		}
	})
}

func TestAHistoryOfTenThousandStepsComesInPages(t *testing.T) {
	if slowness > 1 {
		t.Skip("ten thousand steps take too long under the race detector")
	}
	eachServer(t, patient, func(t *testing.T, s *Server) {
		const steps = 10_000
		run := s.start(t)
		w := s.session(t)
		w.grant(1)
		task := receive(t, "the run", w.tasks)
		answers := make(chan (<-chan *kagziv1.SessionResponse), 1000)
		go func() {
			defer close(answers)
			for i := range steps {
				answers <- w.send(w.stepDone(task, fmt.Sprintf("step-%d", i),
					fmt.Sprintf("result of step %d, and something to make it longer", i)))
			}
		}()
		for answer := range answers {
			if a := receive(t, "an answer", answer); a.GetCompletedStep() == nil {
				t.Fatalf("a step is answered with %v", a)
			}
		}
		if a := w.do(w.stepDone(task, "one-more", "")); a.GetError().GetCode() !=
			kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED {
			t.Errorf("step 10,001 is answered with %v, want RESOURCE_EXHAUSTED", a)
		}
		w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_ReleaseTask{
			ReleaseTask: &kagziv1.ReleaseTaskRequest{RunId: run, LeaseToken: task.LeaseToken}}})

		w.grant(1)
		task = receive(t, "the run again", w.tasks)
		history, pages := task.History, 1
		for token := task.NextHistoryToken; token != ""; pages++ {
			more, err := s.workers().GetHistory(within(t, 20*time.Second),
				&kagziv1.GetHistoryRequest{RunId: run, Token: token})
			if err != nil {
				t.Fatalf("history: %v", err)
			}
			history, token = append(history, more.History...), more.NextHistoryToken
		}
		if len(history) != steps || pages < 2 {
			t.Fatalf("the history has %d steps in %d pages, want %d in several", len(history), pages, steps)
		}
		for i, step := range history {
			if step.Sequence != int64(i+1) || step.Name != fmt.Sprintf("step-%d", i) {
				t.Fatalf("step %d of the history is %s, number %d", i, step.Name, step.Sequence)
			}
		}
	})
}

func TestStepsTimeOutByTheServer(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: 2, InitialIntervalMs: 10, Jitter: -1}
		})
		w := s.session(t)
		w.grant(5)
		task := receive(t, "the run", w.tasks)
		begin := func() *kagziv1.BeginStepResponse {
			a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{
				BeginStep: &kagziv1.BeginStepRequest{
					RunId: run, LeaseToken: task.LeaseToken, StepName: "slow", StartToCloseTimeoutMs: 100}}})
			if a.GetBegunStep() == nil {
				t.Fatalf("begin is answered with %v", a)
			}
			return a.GetBegunStep()
		}
		for attempt := 1; attempt <= 2; attempt++ {
			if begun := begin(); begun.AttemptNumber != int32(attempt) || !begun.ShouldExecute {
				t.Fatalf("attempt %d began as %v", attempt, begun)
			}
			told := receive(t, "word that the lease is over", w.cancels)
			if told.RunId != run || told.LeaseToken != task.LeaseToken ||
				told.Reason.GetCode() != kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST {
				t.Errorf("the worker is told %v", told)
			}
			task = receive(t, "the run again", w.tasks)
		}
		begun := begin()
		if begun.ShouldExecute || begun.Error.GetCode() != kagziv1.ErrorCode_ERROR_CODE_TIMEOUT ||
			begun.Error.GetMessage() != "Step execution timed out (start_to_close_timeout exceeded)" {
			t.Errorf("after two timeouts the step begins as %v, want its error", begun)
		}
		steps, err := s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: run})
		if err != nil || len(steps.Steps) != 2 {
			t.Errorf("steps: %v, %v, want two attempts", steps, err)
		}
		steps, err = s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: run, LatestOnly: true,
			Statuses: []kagziv1.StepStatus{kagziv1.StepStatus_STEP_STATUS_FAILED}})
		if err != nil || len(steps.Steps) != 1 || steps.Steps[0].AttemptNumber != 2 {
			t.Errorf("failed steps: %v, %v, want the second attempt", steps, err)
		}
	})
}

func TestAStepOfAWorkerWhoseClockIsSlowHasAllOfItsTime(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		w := s.session(t)
		w.grant(1)
		task := receive(t, "the run", w.tasks)
		const slow, limit = 15 * time.Minute, 10 * time.Minute
		before := s.Store.Now().Add(-time.Second) // a database's clock is not known to the microsecond
		if a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{
			BeginStep: &kagziv1.BeginStepRequest{
				RunId: run, LeaseToken: task.LeaseToken, StepName: "slow", StartToCloseTimeoutMs: limit.Milliseconds(),
				StartedAt: timestamppb.New(before.Add(-slow)),
			}}}); a.GetBegunStep() == nil {
			t.Fatalf("begin is answered with %v", a)
		}
		steps := fine(s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: run}))(t).Steps
		if len(steps) != 1 || steps[0].Status != kagziv1.StepStatus_STEP_STATUS_RUNNING ||
			steps[0].TimeoutAt.AsTime().Before(before.Add(limit)) {
			t.Errorf("steps: %v, want one, RUNNING, that times out %v after %v or later", steps, limit, before)
		}
	})
}
