package e2e

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// parked waits until a run sleeps.
func (s *Server) parked(t testing.TB, run string) {
	t.Helper()
	s.until(t, run, "parked", func(w *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
		return w.Status == sleeping
	})
}

func TestSignalsAreTakenInOrderOverARestartOfTheServer(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		s := New(t, openStore(t, url), patient)
		handle := func(w *kagzi.Worker) {
			kagzi.Handle(w, "collect", func(ctx kagzi.Context, n int) (string, error) {
				var got []string
				for range n {
					v, err := kagzi.WaitSignal[string](ctx, "item", 0)
					if err != nil {
						return "", err
					}
					got = append(got, v)
				}
				last, err := kagzi.WaitSignal[string](ctx, "item", -1) // only what is there already
				return fmt.Sprintf("%v%s %t", got, last, errors.Is(err, kagzi.ErrTimeout)), nil
			})
		}
		s.work(t, kagzi.WorkerOptions{}, handle)
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "collect", 5, kagzi.StartOptions{}))(t)
		s.parked(t, run.ID())
		send := func(v, id string) {
			t.Helper()
			if err := kagzi.Signal(ctx, c.Run(run.ID()), "item", v, kagzi.SignalOptions{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		send("a", "1")
		send("a", "1") // counts once
		send("b", "2")
		s.until(t, run.ID(), "waiting for its third", func(w *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
			return w.Status == sleeping && steps["item:3"] != nil &&
				steps["item:2"].GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED
		})
		s.Stop()
		s = New(t, openStore(t, url), Options{Address: s.Address})
		if w := s.get(t, run.ID()); w.Status != sleeping || w.WaitingFor != "signal:item" || w.WakeUpAt != nil {
			t.Errorf("after the restart the run is %v, want it to wait for its signal without limit", w)
		}
		for i, v := range []string{"c", "d", "e"} {
			send(v, fmt.Sprint(3+i))
		}
		send("b", "2") // known from before the restart
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "[a b c d e] true" {
			t.Errorf("collected %q", got)
		}
		var consumed []string
		list := fine(s.workflows().ListSignals(ctx, &kagziv1.ListSignalsRequest{RunId: run.ID()}))(t).Signals
		for i, signal := range list {
			if signal.Sequence != int64(i+1) || signal.Name != "item" || signal.ReceivedAt == nil {
				t.Errorf("signal %d is %v", i, signal)
			}
			consumed = append(consumed, signal.SignalId+signal.GetStepName())
		}
		if want := []string{"1item", "2item:2", "3item:3", "4item:4", "5item:5"}; !slices.Equal(consumed, want) {
			t.Errorf("consumed %q, want %q", consumed, want)
		}
	})
}

func TestAWaitForASignalHasALimitThatARestartKeeps(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		s := New(t, openStore(t, url), patient)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "patience", func(ctx kagzi.Context, limit time.Duration) (string, error) {
				v, err := kagzi.WaitSignal[string](ctx, "go", limit)
				if errors.Is(err, kagzi.ErrTimeout) {
					return "gave up", nil
				}
				return v, err
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "patience", time.Hour, kagzi.StartOptions{}))(t)
		s.parked(t, run.ID())
		due := s.get(t, run.ID()).WakeUpAt.AsTime()
		s.Stop()
		again := jumpy
		again.Address = s.Address
		s = New(t, openStore(t, url), again)
		s.Jump(time.Hour)
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "gave up" {
			t.Errorf("without a signal it returns %q", got)
		}
		steps := s.steps(t, run.ID())
		if len(steps) != 1 || !steps[0].SignalTimedOut || steps[0].SignalName != "go" ||
			!steps[0].FinishedAt.AsTime().Equal(due) {
			t.Errorf("the wait is recorded as %v, want it over at %s", steps, due)
		}
		err := kagzi.Signal(ctx, run, "go", "late", kagzi.SignalOptions{})
		wantRefused(t, "a signal after the end", err, codes.FailedPrecondition, codePrecondition, "COMPLETED")
		run = fine(kagzi.Start(ctx, c, "patience", time.Hour, kagzi.StartOptions{}))(t)
		if err := kagzi.Signal(ctx, run, "go", "in time", kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "in time" {
			t.Errorf("with a signal it returns %q", got)
		}
	})
}

func TestManySignalsFromManySendersAreAllTakenOnce(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		const senders, each = 6, 6
		one.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "collect", func(ctx kagzi.Context, n int) ([]int, error) {
				var got []int
				for range n {
					v, err := kagzi.WaitSignal[int](ctx, "n", 0)
					if err != nil {
						return nil, err
					}
					got = append(got, v)
				}
				return got, nil
			})
		})
		ctx := within(t, time.Minute)
		run := fine(kagzi.Start(ctx, one.client(t), "collect", senders*each, kagzi.StartOptions{}))(t)
		var group sync.WaitGroup
		for i := range senders {
			c := []*Server{one, other}[i%2].client(t)
			group.Go(func() {
				for j := range each {
					for range 2 { // repeated blindly
						if err := kagzi.Signal(ctx, c.Run(run.ID()), "n", i*each+j,
							kagzi.SignalOptions{ID: fmt.Sprintf("%d-%d", i, j)}); err != nil && j < each-1 {
							t.Errorf("signal %d of sender %d: %v", j, i, err)
						}
					}
				}
			})
		}
		got := fine(kagzi.Result[[]int](ctx, run))(t)
		group.Wait()
		order := map[int]int{}
		for _, v := range got {
			if v%each != order[v/each] {
				t.Errorf("sender %d's signal %d came when %d was due", v/each, v%each, order[v/each])
			}
			order[v/each]++
		}
		if len(got) != senders*each || len(order) != senders {
			t.Errorf("%d signals of %d senders were taken: %v", len(got), len(order), got)
		}
	})
}

func TestSignalsByUnaryCalls(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run := s.start(t)
		w := s.register(t)
		task := w.take(t)
		wait := func(step string, limit time.Duration) *kagziv1.AwaitSignalResponse {
			t.Helper()
			r := &kagziv1.AwaitSignalRequest{RunId: run, StepName: step, SignalName: "s", LeaseToken: task.LeaseToken}
			if limit > 0 {
				r.Timeout = durationpb.New(limit)
			}
			return fine(s.workers().AwaitSignal(ctx, r))(t)
		}
		send := func(id, v string) bool {
			t.Helper()
			return fine(s.workflows().SignalWorkflow(
				ctx, &kagziv1.SignalWorkflowRequest{RunId: run, Name: "s", SignalId: id, Payload: text(v)}))(
				t).AlreadyDelivered
		}
		if send("1", "first") || !send("1", "first") || send("", "second") || send("", "second") {
			t.Error("a signal counts once with an id, and as often as it is sent without")
		}
		for i, want := range []string{"first", "second", "second"} {
			step := fmt.Sprintf("w%d", i)
			for range 2 { // the same wait again gets the same answer
				if a := wait(step, 0); string(a.Payload.GetData()) != want || a.TimedOut {
					t.Errorf("wait %d got %v, want %q", i, a, want)
				}
			}
		}
		if a := wait("w3", 50*time.Millisecond); a.Payload != nil || a.TimedOut {
			t.Errorf("a wait for a signal that is not there is answered with %v", a)
		}
		_, err := s.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{
			RunId: run, StepName: "late", LeaseToken: task.LeaseToken})
		wantRefused(t, "work of a run that waits", err, codes.FailedPrecondition, codeLeaseLost, "SLEEPING")
		task = w.take(t)
		if a := wait("w3", 50*time.Millisecond); !a.TimedOut {
			t.Errorf("after its limit the wait is answered with %v", a)
		}
		if a := wait("w4", 0); a.Payload != nil {
			t.Errorf("another wait is answered with %v", a)
		}
		send("2", "wakes")
		task = w.take(t)
		if step := task.History[len(task.History)-1]; step.Name != "w4" || string(step.Output.GetData()) != "wakes" ||
			step.SignalName != "s" {
			t.Errorf("the run comes with %v", step)
		}
		w.complete(t, task, "")
		if !send("2", "wakes") {
			t.Error("a signal that was delivered is not known any more after the end")
		}
		_, err = s.workflows().SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{RunId: run, Name: "s", SignalId: "3"})
		wantRefused(t, "a signal after the end", err, codes.FailedPrecondition, codePrecondition, "COMPLETED")
		_, err = s.workflows().SignalWorkflow(ctx,
			&kagziv1.SignalWorkflowRequest{RunId: "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b", Name: "s"})
		wantRefused(t, "a signal to no run", err, codes.NotFound, codeNotFound, "no run")
	})
}
