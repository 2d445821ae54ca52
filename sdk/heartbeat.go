package kagzi

import (
	"context"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// heartbeats keeps the worker and its leases alive on one stream. reconnect ends the stream.
func (w *Worker) heartbeats(ctx context.Context, interval time.Duration, reconnect func()) {
	tick := time.NewTimer(untilBeat(time.Now(), interval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.unknown:
			reconnect()
			return
		case <-tick.C:
			tick.Reset(untilBeat(time.Now(), interval))
			w.beat()
		}
	}
}

// untilBeat is how long a worker waits that has spoken just now: up to the last quarter of a second
// of the clock within the interval. Those of thousands of idle workers then come together, as far
// as their clocks agree, and wake the server a few times a second. With a short interval it is the
// last fortieth.
func untilBeat(now time.Time, interval time.Duration) time.Duration {
	return now.Add(interval).Truncate(min(250*time.Millisecond, interval/40)).Sub(now)
}

// beat sends one heartbeat, which names all that is held.
func (w *Worker) beat() {
	answered := make(chan struct{})
	// before it is looked at what is held: what comes meanwhile is named although it is not counted
	received := w.session.TasksReceived()
	w.mu.Lock()
	held := make([]*kagziv1.Lease, 0, len(w.executions))
	for id, e := range w.executions {
		held = append(held, &kagziv1.Lease{RunId: id, LeaseToken: e.task.GetLeaseToken()})
	}
	id := w.id
	w.lastBeat = answered
	w.mu.Unlock()
	completed, failed, stats := w.counters.Report()
	sentAt := time.Now()
	sent := w.session.EnqueueFirst(&session.Operation{
		Msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: &kagziv1.HeartbeatRequest{
			WorkerId: id, ActiveCount: int32(len(held)), CompletedDelta: completed, FailedDelta: failed,
			Stats: stats, Held: held, HeldIsWhole: true, TasksReceived: &received,
		}}},
		Answer: func(r *kagziv1.SessionResponse) {
			if !w.beaten(r, sentAt) {
				w.counters.Unreported(completed, failed)
			}
			close(answered)
		},
	})
	if !sent {
		w.counters.Unreported(completed, failed)
		close(answered)
	}
}

// awaitBeat waits until the last heartbeat is answered, or can no longer be.
func (w *Worker) awaitBeat(ctx context.Context, served <-chan struct{}) {
	w.mu.Lock()
	answered := w.lastBeat
	w.mu.Unlock()
	if answered == nil {
		return
	}
	select {
	case <-answered:
	case <-served:
	case <-ctx.Done():
	}
}

// beaten handles the answer to a heartbeat; true when it was accepted.
func (w *Worker) beaten(r *kagziv1.SessionResponse, sentAt time.Time) bool {
	switch d := r.GetError(); {
	case r == nil:
		return false // the stream broke
	case d != nil && session.Repeatable(d):
		w.log.Warn("heartbeat not taken", "error", d.GetMessage())
		return false
	case d != nil: // as a rule because the server does not know the worker any more
		w.log.Info("heartbeat refused; registering again", "worker", w.ID(), "error", d.GetMessage())
		select {
		case w.unknown <- struct{}{}:
		default:
		}
		return false
	}
	h := r.GetHeartbeat()
	for _, l := range h.GetLost() {
		if e := w.held(l.GetRunId(), l.GetLeaseToken()); e != nil && !e.leaving() {
			e.lose(notRenewed(l))
		}
	}
	for _, c := range h.GetCancelling() {
		w.cancelTask(c)
	}
	// not before: a step that waits for it begins at once, also that of a run which the answer calls lost
	w.lease.Confirm(sentAt)
	if h.GetShouldDrain() {
		w.askDrain()
	}
	return true
}

// notRenewed is the reason for a lease that is over, as a refused write has it. Older servers do
// not say what the run is.
func notRenewed(l *kagziv1.Lease) *kagziv1.ErrorDetail {
	d := &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, Message: "not renewed by the server"}
	if status := l.GetRunStatus(); status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_UNSPECIFIED {
		d.Metadata = map[string]string{"status": string(statusFrom(status))}
	}
	return d
}

func (w *Worker) askDrain() {
	select {
	case w.drainReq <- struct{}{}:
	default:
	}
}

// expired is called after twice the lease without contact, and from then on again: others have the
// runs by now, but for those whose own heartbeat timeout is not over. The server keeps them for so
// long since it heard this worker last, which was after that message was sent. It returns when the
// next of them is to be given up. What is unanswered is still sent when the server is back; it
// counts for the runs that nobody has taken.
func (w *Worker) expired(silent time.Duration) (next time.Duration) {
	for _, e := range w.all() {
		switch {
		case e.dead(): // or given up already
		case silent < e.heartbeatTimeout:
			if next == 0 || e.heartbeatTimeout < next {
				next = e.heartbeatTimeout
			}
		default:
			w.log.Warn("no contact for longer than the lease holds; run given up", "run", e.info.RunID, "type",
				e.info.WorkflowType,
				"silent", silent.Round(time.Millisecond))
			e.giveBack()
		}
	}
	return next
}
