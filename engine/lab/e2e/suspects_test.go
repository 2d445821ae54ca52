package e2e

import (
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestACrashingRunFailsWithoutItsNeighbours is one worker under a supervisor: a run kills the
// process soon after it was handed out, six others need longer than that.
func TestACrashingRunFailsWithoutItsNeighbours(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		crashing := s.start(t)
		open := map[string]bool{}
		for range 6 {
			open[s.start(t)] = true
		}
		losses := 0
		for s.get(t, crashing).Status != failed {
			if losses > 20 {
				t.Fatalf("after %d losses the crashing run is %v", losses, s.get(t, crashing))
			}
			w := s.session(t)
			dies := w.lives()
			w.grant(7)
			w.liveUntilCrash(crashing, open)
			dies()
			w.hangUp()
			losses++
			s.until(t, crashing, "freed", func(r *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
				return r.Status != running
			})
			s.Jump(3 * time.Minute) // longer than the delay after any loss
		}
		w := s.session(t)
		leaves := w.lives()
		w.grant(7)
		for len(open) > 0 {
			w.finish(receive(t, "a neighbour", w.tasks), open)
		}
		leaves()
		got := s.get(t, crashing)
		if got.Error.GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED || got.LeaseLosses != 10 {
			t.Errorf("the crashing run is %v", got)
		}
		if losses > 14 {
			t.Errorf("it took %d losses, want three or four to find it and ten more", losses)
		}
	})
}

// liveUntilCrash works until the crashing run has killed the process.
func (w *sessionWorker) liveUntilCrash(crashing string, open map[string]bool) {
	w.t.Helper()
	type neighbour struct {
		task *kagziv1.Task
		over <-chan time.Time
	}
	var held []neighbour
	var crash <-chan time.Time
	patience := time.After(30 * time.Second)
	for {
		var next neighbour
		if len(held) > 0 {
			next = held[0]
		}
		select {
		case task := <-w.tasks:
			if task.RunId == crashing {
				crash = time.After(50 * time.Millisecond)
			} else {
				held = append(held, neighbour{task, time.After(300 * time.Millisecond)})
			}
		case <-crash:
			return
		case <-next.over:
			w.finish(next.task, open)
			held = held[1:]
		case <-patience:
			w.t.Fatal("the crashing run is not handed out")
		}
	}
}

func (w *sessionWorker) finish(task *kagziv1.Task, open map[string]bool) {
	w.t.Helper()
	if a := w.do(w.runDone(task, "done")); a.GetCompletedWorkflow() == nil {
		w.t.Fatalf("the end of a neighbour is answered with %v", a)
	}
	delete(open, task.RunId)
}

func TestHalfOfTheRunsOfALostWorkerAreInHandAtOnce(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		const many = 100
		waiting := map[string]bool{}
		for range many {
			waiting[s.start(t)] = true
		}
		w := s.session(t, func(r *kagziv1.RegisterRequest) { r.MaxConcurrent = many })
		dies := w.lives()
		w.grant(many)
		for range many {
			receive(t, "a run", w.tasks)
		}
		began := dies()
		w.hangUp()

		again := s.session(t, func(r *kagziv1.RegisterRequest) { r.MaxConcurrent = many })
		leaves := again.lives()
		again.grant(many)
		for range many / 2 {
			delete(waiting, receive(t, "a run of the lost worker", again.tasks).RunId)
		}
		// A lease of 600 ms, then a suspect for a heartbeat and a second, and the jitter.
		if took := time.Since(began); took > promptly {
			t.Errorf("half of the runs were in hand after %s", took)
		}
		for run := range waiting {
			var got *kagziv1.ExplainWorkflowResponse
			for got == nil || got.Blocker == blockedByRetry { // it is due within half a second
				got = fine(s.workflows().ExplainWorkflow(within(t, time.Minute),
					&kagziv1.ExplainWorkflowRequest{RunId: run}))(t)
			}
			if got.Blocker != blockedByWorkers || !strings.Contains(got.Summary, "one of 100 suspects") ||
				!strings.Contains(strings.Join(got.Details, "\n"), "at most 50 of them") {
				t.Errorf("a run that waits is explained by %s: %q, %q", got.Blocker, got.Summary, got.Details)
			}
			break
		}
		wantEmpty(t, "more than half in hand", again.tasks)
		leaves()
	})
}
