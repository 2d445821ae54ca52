package e2e

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// explained returns what explain says about a run.
func (s *Server) explained(t testing.TB, run string) *kagziv1.ExplainWorkflowResponse {
	t.Helper()
	return fine(s.workflows().ExplainWorkflow(within(t, 20*time.Second),
		&kagziv1.ExplainWorkflowRequest{RunId: run}))(t)
}

func TestAPauseLetsTheRunningStepsFinish(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, finish := make(chan struct{}, 10), make(chan struct{})
		var shorts, nexts atomic.Int32
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "order", func(ctx kagzi.Context, _ int) (int, error) {
				long := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					return kagzi.Step(ctx, "long", func(step context.Context) (int, error) {
						began <- struct{}{}
						<-finish
						return 1, step.Err()
					})
				})
				// only its worker knows of it: it is not recorded as RUNNING yet
				short, err := kagzi.Step(ctx, "short", func(step context.Context) (int, error) {
					shorts.Add(1)
					began <- struct{}{}
					<-finish
					return 1, step.Err()
				})
				if err != nil {
					return 0, err
				}
				next, err := kagzi.Step(ctx, "next", func(context.Context) (int, error) {
					nexts.Add(1)
					return 1, nil
				})
				if err != nil {
					return 0, err
				}
				n, err := long.Wait(ctx)
				return short + next + n, err
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "order", 0, kagzi.StartOptions{}))(t)
		receive(t, "a step", began)
		receive(t, "the other step", began)
		for range 2 { // again is fine
			if err := run.Pause(ctx, "look into it"); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.get(t, run.ID()); !got.Pausing || got.Paused || got.Status != running {
			t.Fatalf("asked to pause it is %v, want it RUNNING and pausing", got)
		}
		if e := s.explained(t, run.ID()); e.Summary[:len("pausing")] != "pausing" {
			t.Errorf("explain says %q", e.Summary)
		}
		close(finish)
		s.until(t, run.ID(), "paused", func(w *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool { return w.Paused })
		for _, step := range s.steps(t, run.ID()) {
			if step.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
				t.Errorf("step %s of the paused run is %s, want COMPLETED", step.Name, step.Status)
			}
		}
		if n := nexts.Load(); n != 0 {
			t.Errorf("the next step began %d times before the pause was over", n)
		}
		if err := run.Resume(ctx, "found it"); err != nil {
			t.Fatal(err)
		}
		if got := fine(kagzi.Result[int](ctx, run))(t); got != 3 || shorts.Load() != 1 || nexts.Load() != 1 {
			t.Errorf("resumed it returns %d; short ran %d times, next %d times", got, shorts.Load(), nexts.Load())
		}
		if got, want := s.audit(t, run.ID()), []string{"PauseWorkflow(look into it)",
			"ResumeWorkflow(found it)"}; !slices.Equal(got, want) {
			t.Errorf("the audit says %q, want %q", got, want)
		}
	})
}

func TestAPauseThatIsTakenBackLetsTheRunGoOn(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, next, finish := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "order", func(ctx kagzi.Context, _ int) (int, error) {
				long := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					return kagzi.Step(ctx, "long", func(step context.Context) (int, error) {
						began <- struct{}{}
						<-finish
						return 1, step.Err()
					})
				})
				if _, err := kagzi.WaitSignal[int](ctx, "go", 0); err != nil {
					return 0, err
				}
				_, err := kagzi.Step(ctx, "next", func(context.Context) (int, error) {
					next <- struct{}{}
					return 1, nil
				})
				if err != nil {
					return 0, err
				}
				return long.Wait(ctx)
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "order", 0, kagzi.StartOptions{}))(t)
		receive(t, "the step", began)
		if err := run.Pause(ctx, ""); err != nil {
			t.Fatal(err)
		}
		if err := kagzi.Signal(ctx, run, "go", 1, kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := run.Resume(ctx, ""); err != nil {
			t.Fatal(err)
		}
		receive(t, "the next step, while the first still runs", next)
		if got := s.get(t, run.ID()); got.Pausing || got.Paused {
			t.Errorf("resumed it is %v", got)
		}
		close(finish)
		if got := fine(kagzi.Result[int](ctx, run))(t); got != 1 {
			t.Errorf("it returns %d", got)
		}
	})
}

func TestAPausePassesToTheRunThatItContinuesAs(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: run}))(t)
		answer := fine(s.workers().CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{RunId: run,
			LeaseToken: task.LeaseToken, ContinueAs: &kagziv1.StartWorkflowRequest{WorkflowType: "t"}}))(t)
		next := answer.ContinuedAsRunId
		if got := s.get(t, next); !got.Paused || got.PausedAt == nil || got.Status != pending {
			t.Errorf("it continued as %v, want that run paused", got)
		}
		w.wantNothing(t, "the run that it continued as")
		if err := s.client(t).Run(run).Resume(ctx, "by its first handle"); err != nil {
			t.Fatal(err)
		}
		if got := w.take(t); got.RunId != next {
			t.Errorf("resumed, %v is handed out", got)
		}
	})
}

func TestAWorkerThatCannotPauseLosesTheRunWhenItRecords(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		old := s.session(t)
		old.grant(1)
		run := s.start(t)
		task := receive(t, "the task", old.tasks)
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: run}))(t)
		wantEmpty(t, "a word to the worker that cannot pause", old.cancels)
		if a := old.do(old.stepDone(task, "pay", "x")); a.GetCompletedStep() == nil {
			t.Fatalf("the step's result is answered with %v", a)
		}
		if got := s.get(t, run); !got.Paused {
			t.Errorf("after the result it is %v, want it paused", got)
		}
		if told := receive(t, "that the lease is over", old.cancels); told.RunId != run || told.GraceUntil != nil {
			t.Errorf("the session is told %v", told)
		}

		knows := s.register(t, func(r *kagziv1.RegisterRequest) { r.PausesRuns = true })
		fine(s.workflows().ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: run}))(t)
		task = knows.take(t)
		if beat := knows.heartbeat(t, task); len(beat.Pausing) != 0 {
			t.Errorf("the heartbeat is told to pause %v", beat.Pausing)
		}
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: run}))(t)
		if beat := knows.heartbeat(t, task); len(beat.Pausing) != 1 || beat.Pausing[0].RunId != run ||
			beat.Pausing[0].LeaseToken != task.LeaseToken {
			t.Errorf("the heartbeat is told to pause %v, want the run", beat.Pausing)
		}
		knows.completeStep(t, task, "ship", "x")
		if got := s.get(t, run); got.Paused {
			t.Errorf("the worker that knows how to pause has lost %v", got)
		}
		fine(s.workers().ReleaseTask(ctx, &kagziv1.ReleaseTaskRequest{RunId: run, LeaseToken: task.LeaseToken}))(t)
		if got := s.get(t, run); !got.Paused || got.Pausing {
			t.Errorf("released it is %v, want it paused", got)
		}
	})
}
