package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// diary records what workflow code did, over all workers.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// booking is a workflow that books, waits in a step for a signal of the test, and undoes its
// booking when it is cancelled.
func booking(d *diary, began chan<- struct{}, stay func(step context.Context) error) func(ctx kagzi.Context,
	name string) (string, error) {
	return func(ctx kagzi.Context, name string) (string, error) {
		if _, err := kagzi.Step(ctx, "book", func(context.Context) (int, error) {
			d.note("book")
			return 1, nil
		}); err != nil {
			return "", err
		}
		_, err := kagzi.Step(ctx, "stay", func(step context.Context) (int, error) {
			began <- struct{}{}
			return 0, stay(step)
		}, kagzi.Retry{Attempts: 5, Initial: 10 * time.Millisecond})
		if !errors.Is(err, kagzi.ErrCancelled) {
			return name, err
		}
		d.note("told")
		if _, err := kagzi.Step(ctx, "more", func(context.Context) (int, error) {
			d.note("more")
			return 0, nil
		}); !errors.Is(err, kagzi.ErrCancelled) {
			d.note("a step after the cancellation returned " + err.Error())
		}
		_, undo := kagzi.Step(kagzi.Cleanup(ctx), "undo", func(step context.Context) (int, error) {
			if kagzi.Attempt(step) < 2 {
				return 0, errors.New("not yet")
			}
			d.note("undo")
			return 2, nil
		}, kagzi.Retry{Initial: time.Millisecond})
		return "undone", errors.Join(err, undo)
	}
}

func TestAGracefulCancelEndsTheRunningStepAndLetsTheCodeCleanUp(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		d, began, causes := &diary{}, make(chan struct{}, 10), make(chan error, 10)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "booking", booking(d, began, func(step context.Context) error {
				<-step.Done()
				causes <- context.Cause(step)
				return step.Err()
			}))
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "booking", "b", kagzi.StartOptions{}))(t)
		receive(t, "the step", began)
		asked := time.Now()
		if err := run.CancelGracefully(ctx, time.Minute, "changed my mind"); err != nil {
			t.Fatal(err)
		}
		if cause := receive(t, "the end of the step's context", causes); !errors.Is(cause, kagzi.ErrCancelled) {
			t.Errorf("the step's context ends by %v", cause)
		}
		if took := time.Since(asked); took > promptly {
			t.Errorf("the step was told after %s", took)
		}
		_, err := kagzi.Result[string](ctx, run)
		var end *kagzi.RunError
		if !errors.As(err, &end) || end.Status != kagzi.StatusCancelled || end.Message != "changed my mind" {
			t.Errorf("the result is %v, want CANCELLED", err)
		}
		if got, want := d.read(), []string{"book", "told", "told", "undo"}; !slices.Equal(
			slices.Compact(got), slices.Compact(want)) {
			t.Errorf("the code did %q, want %q", got, want)
		}
		w := s.get(t, run.ID())
		if w.CancelRequestedAt == nil || w.CancelGraceUntil == nil || w.Status != cancelled || w.WakeUpAt != nil ||
			w.FinishedAt.AsTime().After(w.CancelGraceUntil.AsTime()) {
			t.Errorf("the run is %v", w)
		}
		status := map[string]kagziv1.StepStatus{}
		for _, step := range s.steps(t, run.ID()) {
			if step.IsLatest {
				status[step.Name] = step.Status
			}
		}
		if status["book"] != kagziv1.StepStatus_STEP_STATUS_COMPLETED ||
			status["undo"] != kagziv1.StepStatus_STEP_STATUS_COMPLETED ||
			status["stay"] != kagziv1.StepStatus_STEP_STATUS_FAILED || status["more"] != 0 {
			t.Errorf("the steps are %v", status)
		}
	})
}

func TestAParkedRunIsWokenToBeCancelled(t *testing.T) {
	ways := map[string]func(ctx kagzi.Context) error{
		"sleep":  func(ctx kagzi.Context) error { kagzi.Sleep(ctx, "nap", 24*time.Hour); return nil },
		"signal": func(ctx kagzi.Context) error { _, err := kagzi.WaitSignal[int](ctx, "go", 0); return err },
		"child": func(ctx kagzi.Context) error {
			_, err := kagzi.RunChild[int](ctx, "kid", "nobody-serves-this", 0, kagzi.ChildOptions{})
			return err
		},
		"retry": func(ctx kagzi.Context) error {
			_, err := kagzi.Step(ctx, "fail", func(context.Context) (int, error) {
				return 0, errors.New("x")
			}, kagzi.Retry{Initial: 24 * time.Hour, Max: 24 * time.Hour})
			return err
		},
	}
	eachServer(t, patient, func(t *testing.T, s *Server) {
		cleaned := make(chan string, 10)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "parks", func(ctx kagzi.Context, how string) (int, error) {
				err := ways[how](ctx)
				if err == nil { // a sleep reports it at the next step
					_, err = kagzi.Step(ctx, "next", func(context.Context) (int, error) { return 0, nil })
				}
				if errors.Is(err, kagzi.ErrCancelled) {
					_, undo := kagzi.Step(kagzi.Cleanup(ctx), "undo", func(context.Context) (int, error) {
						cleaned <- how
						return 0, nil
					})
					return 0, errors.Join(err, undo)
				}
				return 1, err
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		for how := range ways {
			run := fine(kagzi.Start(ctx, c, "parks", how, kagzi.StartOptions{}))(t)
			s.until(t, run.ID(), "parked", func(w *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
				return w.Status == sleeping || w.Status == pending &&
					steps["fail"].GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING
			})
			if err := run.CancelGracefully(ctx, time.Minute, "enough"); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, "the clean-up", cleaned); got != how {
				t.Errorf("%s was cleaned up, want %s", got, how)
			}
			if w := s.await(t, run.ID()); w.Status != cancelled || w.Error.GetMessage() != "enough" {
				t.Errorf("parked by %s and cancelled it is %v", how, w)
			}
		}
	})
}

func TestWhenTheGraceIsOverTheRunIsCancelledWhateverItsCodeDoes(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		d, began, left := &diary{}, make(chan struct{}, 10), make(chan struct{}, 10)
		release := make(chan struct{})
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "booking", booking(d, began, func(context.Context) error { // ignores its context
				<-release
				left <- struct{}{}
				return nil
			}))
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "booking", "b", kagzi.StartOptions{}))(t)
		receive(t, "the step", began)
		const grace = 300 * time.Millisecond * slowness
		if err := run.CancelGracefully(ctx, time.Hour, "slowly"); err != nil {
			t.Fatal(err)
		}
		if err := run.CancelGracefully(ctx, grace, "at last"); err != nil { // the shorter one counts
			t.Fatal(err)
		}
		w := s.await(t, run.ID())
		if late := w.FinishedAt.AsTime().Sub(w.CancelGraceUntil.AsTime()); w.Status != cancelled || late < 0 ||
			late > promptly {
			t.Errorf("%s after its grace the run is %v, want it CANCELLED within a second", late, w)
		}
		close(release)
		receive(t, "the end of the stubborn step", left)
		if got := d.read(); slices.Contains(got, "undo") {
			t.Errorf("after the grace the code did %q", got)
		}
		if n := s.get(t, run.ID()).StepCount; n > 3 { // two steps and the cancellation
			t.Errorf("%d steps are recorded, want nothing after the grace", n)
		}
	})
}

func TestAGracefulCancelByUnaryCallsAndInASession(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		cancel := func(run string, grace time.Duration) *kagziv1.CancelWorkflowResponse {
			t.Helper()
			r := &kagziv1.CancelWorkflowRequest{RunId: run, Reason: "why"}
			if grace > 0 {
				r.Grace = durationpb.New(grace)
			}
			return fine(s.workflows().CancelWorkflow(ctx, r))(t)
		}
		// A worker with unary calls learns it from its heartbeat.
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		if a := cancel(run, time.Hour); a.Cancelled || !a.Requested || a.Status != running || a.GraceUntil == nil {
			t.Errorf("the cancel is answered with %v", a)
		}
		if again := cancel(run, 2*time.Hour); !again.Requested ||
			again.GraceUntil.AsTime().Sub(s.Store.Now()) > time.Hour {
			t.Errorf("a longer grace is answered with %v, want the shorter one", again)
		}
		beat := w.heartbeat(t, task)
		if len(beat.Lost) != 0 || len(beat.Cancelling) != 1 || beat.Cancelling[0].RunId != run ||
			beat.Cancelling[0].GraceUntil == nil || beat.Cancelling[0].Reason.GetMessage() != "why" {
			t.Errorf("the heartbeat is told %v", beat)
		}
		w.completeStep(t, task, "clean", "up")
		if a := fine(s.workers().CompleteWorkflow(
			ctx, &kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken, Output: text("partial")}))(
			t); a.Status != cancelled {
			t.Errorf("the end is answered with %v", a)
		}
		if got := s.get(t, run); got.Status != cancelled || string(got.Output.GetData()) != "partial" ||
			got.Error.GetMessage() != "why" {
			t.Errorf("ended it is %v, want CANCELLED with what its code returned", got)
		}

		// A session is told at once, and a run without a worker is handed out for it.
		session := s.session(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = "stream" })
		session.grant(1)
		held := s.start(t, ofQueue("stream"))
		task = receive(t, "the run", session.tasks)
		cancel(held, time.Hour)
		if told := receive(t, "word of the cancel", session.cancels); told.RunId != held || told.GraceUntil == nil ||
			told.Reason.GetCode() != kagziv1.ErrorCode_ERROR_CODE_CANCELLED {
			t.Errorf("the session is told %v", told)
		}
		if a := session.do(&kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_FailWorkflow{FailWorkflow: &kagziv1.FailWorkflowRequest{
				RunId: held, LeaseToken: task.LeaseToken,
				Error: &kagziv1.ErrorDetail{Message: "cleaned up"}}}}); a.GetFailedWorkflow().GetStatus() != cancelled {
			t.Errorf("the end is answered with %v", a)
		}
		idle := s.start(t, ofQueue("stream"), func(r *kagziv1.StartWorkflowRequest) {
			r.StartAt = s.ahead(time.Hour)
		})
		if a := cancel(idle, time.Minute); !a.Cancelled || a.Requested {
			t.Errorf("the cancel of a run whose code has never run is answered with %v", a)
		}
		session.grant(1)
		waiting := s.start(t, ofQueue("stream"))
		task = receive(t, "the run that is to wait", session.tasks)
		session.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: &kagziv1.SleepRequest{
			RunId: waiting, LeaseToken: task.LeaseToken, StepId: "nap", Duration: durationpb.New(time.Hour)}}})
		if a := cancel(waiting, time.Minute); a.Cancelled || a.Status != pending {
			t.Errorf("the cancel of a run that sleeps is answered with %v", a)
		}
		session.grant(1)
		if task = receive(t, "the run that is to clean up", session.tasks); task.RunId != waiting ||
			!task.CancelRequested || task.CancelGraceUntil == nil || task.CancelReason.GetMessage() != "why" {
			t.Errorf("it is handed out as %v", task)
		}
		if a := cancel(waiting, 0); !a.Cancelled {
			t.Errorf("a cancel without grace is answered with %v", a)
		}
		if told := receive(t, "word of the end", session.cancels); told.RunId != waiting || told.GraceUntil != nil {
			t.Errorf("the session is told %v", told)
		}
		_, err := s.workflows().CancelWorkflow(ctx,
			&kagziv1.CancelWorkflowRequest{RunId: s.finished(t), Grace: durationpb.New(time.Minute)})
		wantRefused(t, "a graceful cancel of a completed run", err, codes.FailedPrecondition, codePrecondition,
			"COMPLETED")
	})
}

func TestChildrenCleanUpWithinTheGraceOfTheirParent(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		d, began := &diary{}, make(chan struct{}, 10)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "booking", booking(d, began, func(step context.Context) error {
				<-step.Done()
				return step.Err()
			}))
			kagzi.Handle(w, "trip", func(ctx kagzi.Context, _ int) (int, error) {
				_, err := kagzi.RunChild[string](ctx, "flight", "booking", "b",
					kagzi.ChildOptions{ParentClose: kagzi.ParentCloseCancel})
				if errors.Is(err, kagzi.ErrCancelled) {
					d.note("the trip is cancelled")
				}
				return 0, err
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "trip", 0, kagzi.StartOptions{}))(t)
		receive(t, "the child's step", began)
		s.parked(t, run.ID())
		child := strings.TrimPrefix(s.get(t, run.ID()).WaitingFor, "child:")
		if err := run.Cancel(ctx, "changed my mind"); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{run.ID(), child} {
			if w := s.await(t, id); w.Status != cancelled || w.CancelGraceUntil == nil {
				t.Errorf("the run is %v, want it CANCELLED by its code", w)
			}
		}
		if got := d.read(); !slices.Contains(got, "undo") || !slices.Contains(got, "the trip is cancelled") {
			t.Errorf("the code did %q", got)
		}
	})
}
