package kagzi

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

func TestAWorkerCountsRunsByTheirStatusFromTheServer(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		f.verdicts = map[string]kagziv1.WorkflowStatus{
			"again":     kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
			"cancelled": kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED,
			"stopped":   kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED,
		}
		var completed, failed int32
		f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
			completed, failed = completed+r.GetHeartbeat().GetCompletedDelta(), failed+r.GetHeartbeat().GetFailedDelta()
			return nil
		}
		w := testWorker(f)
		Handle(w, "well", func(Context, struct{}) (int, error) { return 1, nil })
		Handle(w, "ill", func(Context, struct{}) (int, error) { return 0, io.EOF })
		running(t, w)
		for id, name := range map[string]string{
			"done": "well", "stopped": "well", "failed": "ill", "again": "ill", "cancelled": "ill"} {
			f.start(id, name, "")
			f.await(t, id)
		}
		time.Sleep(time.Minute) // virtual time for a few heartbeats
		f.mu.Lock()
		defer f.mu.Unlock()
		if completed != 1 || failed != 1 {
			t.Errorf("heartbeats counted %d completed and %d failed, want one each", completed, failed)
		}
	})
}

func TestHeartbeatsOfWorkersCoincide(t *testing.T) {
	base := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		now      time.Time
		interval time.Duration
		next     time.Time
	}{
		{at(0), 10 * time.Second, at(10_000)},
		{at(1), 10 * time.Second, at(10_000)},
		{at(249), 10 * time.Second, at(10_000)},
		{at(250), 10 * time.Second, at(10_250)},
		{at(999), 10 * time.Second, at(10_750)},
		{at(7), 4 * time.Second, at(4_000)},
		{at(107), 4 * time.Second, at(4_100)},
		{at(7), 200 * time.Millisecond, at(205)},
		{at(0), 30 * time.Second, at(30_000)},
	} {
		got := untilBeat(c.now, c.interval)
		if next := c.now.Add(got); !next.Equal(c.next) {
			t.Errorf("at %s, each %s: the next is at %s, want %s", c.now, c.interval, next, c.next)
		}
		if got > c.interval || got <= c.interval-c.interval/40 {
			t.Errorf("at %s, each %s: the next comes after %s", c.now, c.interval, got)
		}
	}
}

func TestAHeartbeatRenewsLeasesFromWhenItWasMade(t *testing.T) {
	w, sent := NewWorker(WorkerOptions{}), time.Now().Add(-10*time.Second)
	w.beaten(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Heartbeat{
		Heartbeat: &kagziv1.HeartbeatResponse{ShouldDrain: true}}}, sent)
	equal(t, w.lease.LastConfirmed().Equal(sent), true)
	equal(t, len(w.drainReq), 1)
}

// taskStream is a stream with one task.
type taskStream struct {
	session.Stream
	task *kagziv1.Task
}

func (s *taskStream) Recv() (*kagziv1.SessionResponse, error) {
	task := s.task
	if task == nil {
		return nil, io.EOF
	}
	s.task = nil
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Task{Task: task}}, nil
}

// A heartbeat in between would count a task without naming it, and the server would free its run.
func TestATaskIsHeldBeforeItCountsAsReceived(t *testing.T) {
	w := NewWorker(WorkerOptions{})
	looked := false
	// a run of an unknown type is logged as soon as it is held
	w.log = slog.New(slog.NewTextHandler(writerFunc(func() {
		looked = true
		equal(t, fmt.Sprintln(len(w.all()), w.session.TasksReceived()), fmt.Sprintln(1, 0))
	}), nil))
	_ = w.read(&taskStream{task: &kagziv1.Task{RunId: "r", WorkflowType: "unknown"}})
	equal(t, looked, true)
	equal(t, w.session.TasksReceived(), int64(1))
}

// writerFunc is called with what is written.
type writerFunc func()

func (f writerFunc) Write(data []byte) (int, error) {
	f()
	return len(data), nil
}
