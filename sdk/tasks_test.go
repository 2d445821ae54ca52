package kagzi

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// idleSession returns a worker with a session that nobody reads; its workflow runs until it is made
// to end. began and ended list the leases of its activations.
func idleSession() (w *Worker, began, ended func() []string) {
	w = NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler)})
	activations := make(chan [2]string, 10)
	Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
		token := ctx.workflow().e.task.GetLeaseToken()
		activations <- [2]string{"began", token}
		<-ctx.Done()
		activations <- [2]string{"ended", token}
		return 0, ctx.Err()
	})
	w.session.Open()
	seen := map[string][]string{}
	look := func(what string) []string {
		synctest.Wait()
		for len(activations) > 0 {
			activation := <-activations
			seen[activation[0]] = append(seen[activation[0]], activation[1])
		}
		slices.Sort(seen[what])
		return seen[what]
	}
	return w, func() []string { return look("began") }, func() []string { return look("ended") }
}

// credit returns how many tasks the worker is about to grant.
func credit(w *Worker) (tasks int32) {
	for _, op := range w.session.Take() {
		tasks += op.Msg.GetCredit().GetTasks()
	}
	return tasks
}

func pushed(token string) *kagziv1.Task {
	return &kagziv1.Task{RunId: "r", WorkflowType: "w", LeaseToken: token}
}

func TestHold(t *testing.T) {
	t.Run("a repeated task runs once and its credit is granted again",
		bubble(func(t *testing.T) {
			w, began, ended := idleSession()
			w.accept(pushed("a"))
			w.accept(pushed("a"))
			equal(t, began(), []string{"a"})
			equal(t, credit(w), 1)
			w.cancelTask(&kagziv1.CancelTask{RunId: "r", LeaseToken: "a"})
			equal(t, ended(), []string{"a"})
		}))

	t.Run("a run claimed again ends only the older activation", bubble(func(t *testing.T) {
		w, began, ended := idleSession()
		w.accept(pushed("a"))
		w.accept(pushed("b"))
		equal(t, began(), []string{"a", "b"})
		equal(t, ended(), []string{"a"})
		equal(t, w.held("r", "b") != nil, true)
		equal(t, credit(w), 1)
		w.cancelTask(&kagziv1.CancelTask{RunId: "r", LeaseToken: "b"})
		equal(t, ended(), []string{"a", "b"})
	}))

	t.Run("messages about an older lease do not affect the new one", bubble(func(t *testing.T) {
		w, _, ended := idleSession()
		w.accept(pushed("b"))
		w.cancelTask(&kagziv1.CancelTask{RunId: "r", LeaseToken: "a"})
		w.beaten(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Heartbeat{
			Heartbeat: &kagziv1.HeartbeatResponse{
				Lost: []*kagziv1.Lease{{RunId: "r", LeaseToken: "a"}},
			}}}, w.lease.LastConfirmed())
		equal(t, len(ended()), 0)
		w.cancelTask(&kagziv1.CancelTask{RunId: "r", LeaseToken: "b"})
		equal(t, ended(), []string{"b"})
	}))

	t.Run("a task that comes to a worker that drains is handed back", bubble(func(t *testing.T) {
		w, began, _ := idleSession()
		w.draining = true
		w.accept(pushed("a"))
		equal(t, len(began()), 0)
		ops := w.session.Take()
		equal(t, len(ops), 1)
		equal(t, ops[0].Msg.GetReleaseTask().GetLeaseToken(), "a")
	}))
}
