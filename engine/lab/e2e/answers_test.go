package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	codeInvalid      = kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT
	codeNotFound     = kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND
	codePrecondition = kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED
	codeLeaseLost    = kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST
	codeConflict     = kagziv1.ErrorCode_ERROR_CODE_CONFLICT
)

func TestHeartbeatsOfMissingWorkers(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		beat := func(id string) error {
			_, err := s.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: id})
			return err
		}
		for _, id := range []string{"", "a b", "a/b", strings.Repeat("w", 65), "w\x00"} {
			wantRefused(t, "heartbeat of "+id, beat(id), codes.InvalidArgument, codeInvalid, "Invalid worker_id")
		}
		wantRefused(t, "heartbeat of an unknown worker", beat("nobody"), codes.NotFound, codeNotFound,
			"Worker not found or offline")
		w := s.register(t)
		if a := w.heartbeat(t); !a.Accepted || a.ShouldDrain {
			t.Errorf("heartbeat = %v, want it accepted", a)
		}
		if _, err := s.admin().DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: w.id}); err != nil {
			t.Fatal(err)
		}
		if a := w.heartbeat(t); !a.Accepted || !a.ShouldDrain {
			t.Errorf("heartbeat while draining = %v, want it told", a)
		}
		if _, err := s.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: w.id}); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "heartbeat of an offline worker", beat(w.id), codes.NotFound, codeNotFound,
			"Worker not found or offline")
		wantRefused(t, "drain of an offline worker", drain(t, s, w.id), codes.NotFound, codeNotFound, "")
		wantRefused(t, "drain of an unknown worker", drain(t, s, "nobody"), codes.NotFound, codeNotFound, "")
	})
}

func drain(t *testing.T, s *Server, id string) error {
	_, err := s.admin().DrainWorker(within(t, 20*time.Second), &kagziv1.DrainWorkerRequest{WorkerId: id})
	return err
}

func TestPollsThatAreRefused(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t, func(r *kagziv1.RegisterRequest) { r.TaskQueues = []string{"second"} })
		poll := func(change ...func(*kagziv1.PollTaskRequest)) error {
			r := &kagziv1.PollTaskRequest{WorkerId: w.id, WorkflowTypes: []string{"t"}, Wait: durationpb.New(0)}
			for _, c := range change {
				c(r)
			}
			_, err := s.workers().PollTask(ctx, r)
			return err
		}
		if err := poll(); err != nil {
			t.Errorf("a good poll is refused: %v", err)
		}
		if err := poll(func(r *kagziv1.PollTaskRequest) { r.TaskQueue = "second" }); err != nil {
			t.Errorf("a poll of the second queue is refused: %v", err)
		}
		wantRefused(t, "another queue", poll(func(r *kagziv1.PollTaskRequest) { r.TaskQueue = "q" }),
			codes.FailedPrecondition, codePrecondition, "queue")
		wantRefused(t, "another namespace", poll(func(r *kagziv1.PollTaskRequest) { r.Namespace = "other" }),
			codes.FailedPrecondition, codePrecondition, "namespace")
		wantRefused(t, "another type", poll(func(r *kagziv1.PollTaskRequest) { r.WorkflowTypes = []string{"t", "u"} }),
			codes.FailedPrecondition, codePrecondition, "workflow types")
		wantRefused(t, "no types", poll(func(r *kagziv1.PollTaskRequest) { r.WorkflowTypes = nil }),
			codes.InvalidArgument, codeInvalid, "workflow_types")
		const unregistered = "Worker not registered or offline. Call RegisterWorker first."
		wantRefused(t, "an unknown worker", poll(func(r *kagziv1.PollTaskRequest) { r.WorkerId = "nobody" }),
			codes.FailedPrecondition, codePrecondition, unregistered)
		wantRefused(t, "a malformed worker", poll(func(r *kagziv1.PollTaskRequest) { r.WorkerId = "a b" }),
			codes.InvalidArgument, codeInvalid, "Invalid worker_id")

		waiting := make(chan error, 1)
		go func() {
			waiting <- poll(func(r *kagziv1.PollTaskRequest) { r.Wait = durationpb.New(20 * time.Second) })
		}()
		s.awaitPoller(t)
		if err := drain(t, s, w.id); err != nil {
			t.Fatal(err)
		}
		const draining = "Worker is draining and not accepting new work"
		wantRefused(t, "a draining worker", poll(), codes.FailedPrecondition, codePrecondition, draining)
		run := s.start(t)
		wantRefused(t, "a poll during which the worker was drained", receive(t, "the poll's answer", waiting),
			codes.FailedPrecondition, codePrecondition, draining)
		if got := s.get(t, run); got.Status != pending {
			t.Errorf("the run that came up for a draining worker is %s", got.Status)
		}

		if _, err := s.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: w.id}); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "an offline worker", poll(), codes.FailedPrecondition, codePrecondition, unregistered)
	})
}

func TestRegistrations(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		a, b := s.register(t), s.register(t)
		if a.id == "" || a.id == b.id {
			t.Errorf("two workers have the ids %q and %q", a.id, b.id)
		}
		named := func(id, instance string) (*kagziv1.RegisterResponse, error) {
			return s.workers().Register(ctx, &kagziv1.RegisterRequest{
				WorkflowTypes: []string{"t"}, WorkerId: id, InstanceId: instance})
		}
		if r, err := named("w-1", "one"); err != nil || r.WorkerId != "w-1" || r.HeartbeatIntervalMs != 60_000 ||
			r.LeaseMs != 180_000 || r.HeartbeatIntervalSecs != 60 {
			t.Fatalf("registered as %v, %v", r, err)
		}
		if r, err := named("", "one"); err != nil || r.WorkerId != "w-1" {
			t.Errorf("the same instance again: %v, %v, want its id", r, err)
		}
		_, err := named("w-1", "two")
		wantRefused(t, "an id that is taken", err, codes.AlreadyExists, codeConflict, "")
		if _, err := s.admin().ForceOfflineWorker(
			ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: "w-1"}); err != nil {
			t.Fatal(err)
		}
		if r, err := named("w-1", "two"); err != nil || r.WorkerId != "w-1" {
			t.Errorf("an id that is free again: %v, %v", r, err)
		}
		_, err = s.workers().Register(ctx, &kagziv1.RegisterRequest{})
		wantRefused(t, "no types", err, codes.InvalidArgument, codeInvalid, "workflow_types cannot be empty")

		list, err := s.admin().ListWorkers(ctx, &kagziv1.ListWorkersRequest{})
		if err != nil || len(list.Workers) != 3 || list.Workers[0].WorkerId != "w-1" {
			t.Errorf("workers: %v, %v, want three, the newest first", list, err)
		}
	})
}

func TestLeases(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		w := s.register(t)
		task := w.take(t)
		complete := func(token, output string) error {
			_, err := s.workers().CompleteWorkflow(
				ctx, &kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: token, Output: text(output)})
			return err
		}
		wantField := func(what string, err error) {
			t.Helper()
			wantRefused(t, what, err, codes.InvalidArgument, codeInvalid, "lease_token")
			if got := detailOf(err).Metadata["field"]; got != "lease_token" {
				t.Errorf("%s names the field %q", what, got)
			}
		}
		wantField("an empty token", complete("", ""))
		wantField("a malformed token", complete("xyz", ""))
		wantField("a long token", complete(task.LeaseToken+"00", ""))

		stale := strings.Repeat("0", 31) + "1"
		err := complete(stale, "")
		wantRefused(t, "another token", err, codes.FailedPrecondition, codeLeaseLost, "RUNNING")
		if got := detailOf(err).Metadata["status"]; got != "RUNNING" {
			t.Errorf("another token is told the status %q", got)
		}
		if strings.Contains(err.Error(), task.LeaseToken) {
			t.Error("the answer shows the token")
		}

		w.completeStep(t, task, "s", "one")
		w.completeStep(t, task, "s", "one")
		_, err = s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
			RunId: run, StepId: "s", LeaseToken: task.LeaseToken, Output: text("two")})
		wantRefused(t, "another result of a step", err, codes.FailedPrecondition, codeConflict, "already recorded")

		w.complete(t, task, "done")
		w.complete(t, task, "done")
		w.completeStep(t, task, "s", "one") // it counted, and still does
		wantRefused(t, "another result of the run", complete(task.LeaseToken, "other"), codes.FailedPrecondition,
			codeConflict, "")
		err = complete(stale, "done")
		wantRefused(t, "another token after the end", err, codes.FailedPrecondition, codeLeaseLost, "COMPLETED")
		_, err = s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
			RunId: run, StepId: "late", LeaseToken: task.LeaseToken})
		wantRefused(t, "a step after the end", err, codes.FailedPrecondition, codeLeaseLost, "COMPLETED")
		wantOutput(t, s.get(t, run), "done")
	})
}

func TestAnOldLeaseCannotWriteAfterTheNextClaim(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		first, second := s.register(t), s.register(t)
		old := first.take(t)
		first.completeStep(t, old, "kept", "by the first")
		if _, err := s.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{
			RunId: run, StepName: "open", LeaseToken: old.LeaseToken}); err != nil {
			t.Fatal(err)
		}
		if a, err := s.admin().ForceOfflineWorker(
			ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: first.id}); err != nil || a.ReleasedRuns != 1 {
			t.Fatalf("force offline: %v, %v, want one run freed", a, err)
		}
		task := second.take(t)
		if len(task.History) != 2 || string(task.History[0].Output.GetData()) != "by the first" ||
			task.History[1].Error.GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED {
			t.Errorf("the second worker's history is %v", task.History)
		}
		for name, write := range map[string]func() error{
			"a step": func() error {
				_, err := s.workers().CompleteStep(ctx,
					&kagziv1.CompleteStepRequest{RunId: run, StepId: "late", LeaseToken: old.LeaseToken})
				return err
			},
			"the open step": func() error {
				_, err := s.workers().CompleteStep(ctx,
					&kagziv1.CompleteStepRequest{RunId: run, StepId: "open", LeaseToken: old.LeaseToken})
				return err
			},
			"a failure": func() error {
				_, err := s.workers().FailStep(ctx, &kagziv1.FailStepRequest{
					RunId: run, StepId: "late", Error: &kagziv1.ErrorDetail{Message: "late"},
					LeaseToken: old.LeaseToken})
				return err
			},
			"a sleep": func() error {
				_, err := s.workers().Sleep(ctx, &kagziv1.SleepRequest{
					RunId: run, StepId: "nap", Duration: durationpb.New(time.Hour), LeaseToken: old.LeaseToken})
				return err
			},
			"the end": func() error {
				_, err := s.workers().CompleteWorkflow(
					ctx, &kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: old.LeaseToken})
				return err
			},
			"a release": func() error {
				_, err := s.workers().ReleaseTask(ctx,
					&kagziv1.ReleaseTaskRequest{RunId: run, LeaseToken: old.LeaseToken})
				return err
			},
			"a failed end": func() error {
				_, err := s.workers().FailWorkflow(ctx,
					&kagziv1.FailWorkflowRequest{RunId: run, Error: &kagziv1.ErrorDetail{Message: "late"},
						LeaseToken: old.LeaseToken})
				return err
			},
		} {
			wantRefused(t, name+" of the old lease", write(), codes.FailedPrecondition, codeLeaseLost, "RUNNING")
		}
		second.complete(t, task, "by the second")
		wantOutput(t, s.get(t, run), "by the second")
		if got := s.get(t, run); got.StepCount != 2 || got.Attempts != 1 || got.LeaseLosses != 0 {
			t.Errorf("ended as %v, want two steps, one attempt and no loss", got)
		}
	})
}

func TestCancelAndTerminate(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		cancel := func(run string) (*kagziv1.CancelWorkflowResponse, error) {
			return s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: run, Reason: "enough"})
		}
		terminate := func(run string) (*kagziv1.TerminateWorkflowResponse, error) {
			return s.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: run})
		}
		ways := map[string]func() string{
			"pending": func() string {
				return s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.TaskQueue = "idle" })
			},
			"running": func() string { run := s.start(t); w.take(t); return run },
			"sleeping": func() string {
				run := s.start(t)
				task := w.take(t)
				if _, err := s.workers().Sleep(ctx, &kagziv1.SleepRequest{
					RunId: run, StepId: "nap", Duration: durationpb.New(time.Hour),
					LeaseToken: task.LeaseToken}); err != nil {
					t.Fatal(err)
				}
				return run
			},
		}
		for name, make := range ways {
			run := make()
			for range 2 { // again is fine
				if a, err := cancel(run); err != nil || !a.Cancelled || a.Status != cancelled {
					t.Errorf("cancel of a %s run: %v, %v", name, a, err)
				}
			}
			if got := s.get(t, run); got.Status != cancelled || got.Error.GetMessage() != "enough" ||
				got.FinishedAt == nil || got.WakeUpAt != nil {
				t.Errorf("a cancelled %s run is %v", name, got)
			}
			_, err := terminate(run)
			wantRefused(t, "terminate of a cancelled run", err, codes.FailedPrecondition, codePrecondition, "CANCELLED")
			if got := detailOf(err).Metadata["status"]; got != "CANCELLED" {
				t.Errorf("status in the answer: %q", got)
			}

			run = make()
			for range 2 {
				if a, err := terminate(run); err != nil || !a.Terminated || a.Status != terminated {
					t.Errorf("terminate of a %s run: %v, %v", name, a, err)
				}
			}
			_, err = cancel(run)
			wantRefused(t, "cancel of a terminated run", err, codes.FailedPrecondition, codePrecondition, "TERMINATED")
		}
		run := s.start(t)
		task := w.take(t)
		if _, err := cancel(run); err != nil {
			t.Fatal(err)
		}
		_, err := s.workers().CompleteWorkflow(ctx,
			&kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken})
		wantRefused(t, "the end after the cancel", err, codes.FailedPrecondition, codeLeaseLost, "CANCELLED")
		if got := detailOf(err).Metadata["status"]; got != "CANCELLED" {
			t.Errorf("the caller that lost to the cancel learns the status %q", got)
		}
		run = s.start(t)
		w.complete(t, w.take(t), "")
		_, err = cancel(run)
		wantRefused(t, "cancel of a completed run", err, codes.FailedPrecondition, codePrecondition, "COMPLETED")
		_, err = cancel("0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b")
		wantRefused(t, "cancel of no run", err, codes.NotFound, codeNotFound, "no run")
		_, err = s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: run, Namespace: "other"})
		wantRefused(t, "cancel of another namespace's run", err, codes.NotFound, codeNotFound, "no run")
	})
}

func TestTheAnswerToAResultIsTheStepAsItIsListed(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		s.start(t)
		task := w.take(t)
		begun := fine(s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: task.RunId, LeaseToken: task.LeaseToken, StepName: "begun",
				Input: text("in")}))(t)
		for place, ref := range []string{begun.StepId, "at-once"} {
			for range 2 { // again it is the same
				answer := w.completeStep(t, task, ref, "out")
				if listed := s.steps(t, task.RunId)[place]; !proto.Equal(answer, listed) {
					t.Errorf("answered with\n%v, listed as\n%v", answer, listed)
				}
			}
		}
	})
}

func TestStepNameAndStepID(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		const idLike = "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		complete := func(id string, name *string) (*kagziv1.CompleteStepResponse, error) {
			return s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
				RunId: run, LeaseToken: task.LeaseToken, StepId: id, StepName: name, Output: text("x")})
		}
		begun := fine(s.workers().BeginStep(ctx,
			&kagziv1.BeginStepRequest{RunId: run, LeaseToken: task.LeaseToken, StepName: "begun"}))(t)
		if step := fine(complete(begun.StepId, proto.String("")))(t).Step; step.Name != "begun" {
			t.Errorf("the attempt's id names step %s", step.Name)
		}
		for _, name := range []string{"", "other"} {
			_, err := complete(idLike, &name)
			wantRefused(t, "CompleteStep of no attempt", err, codes.NotFound, codeNotFound, "no step")
			_, err = s.workers().FailStep(ctx, &kagziv1.FailStepRequest{RunId: run, LeaseToken: task.LeaseToken,
				StepId: idLike, StepName: &name, Error: &kagziv1.ErrorDetail{Message: "no"}, Hold: true})
			wantRefused(t, "FailStep of no attempt", err, codes.NotFound, codeNotFound, "no step")
			_, err = s.workers().Sleep(ctx, &kagziv1.SleepRequest{RunId: run, LeaseToken: task.LeaseToken,
				StepId: idLike, StepName: &name, Duration: durationpb.New(time.Second), Hold: true})
			wantRefused(t, "Sleep of no attempt", err, codes.NotFound, codeNotFound, "no step")
		}
		_, err := complete("begun", proto.String("begun"))
		wantRefused(t, "a name for an id", err, codes.InvalidArgument, codeInvalid, "step_id")
		if n := len(s.steps(t, run)); n != 1 {
			t.Errorf("refused reports left %d steps, want the one that was begun", n)
		}
		if step := fine(complete("", proto.String(idLike)))(t).Step; step.Name != idLike {
			t.Errorf("a step named like an id is %s", step.Name)
		}
		const older = "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5c"
		if step := fine(complete(older, nil))(t).Step; step.Name != older {
			t.Errorf("a step named like an id by an older client is %s", step.Name)
		}
	})
}
