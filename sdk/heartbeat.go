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

// untilBeat returns the time to the next heartbeat: the last quarter of a second of the clock
// within the interval. Heartbeats of thousands of idle workers then coincide, if their clocks
// agree, and wake the server only a few times a second. With short intervals it is the last
// fortieth.
func untilBeat(now time.Time, interval time.Duration) time.Duration {
	return now.Add(interval).Truncate(min(250*time.Millisecond, interval/40)).Sub(now)
}

// beat sends a heartbeat that names all held runs.
func (w *Worker) beat() {
	answered := make(chan struct{})
	// counted before the runs are listed: a task that arrives in between is named but not counted
	received := w.session.TasksReceived()
	w.mu.Lock()
	held := w.leases()
	id := w.id
	w.lastBeat = answered
	w.mu.Unlock()
	completed, failed, stats := w.counters.Report()
	sentAt := time.Now()
	sent := w.session.EnqueueFirst(&session.Operation{
		Msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: &kagziv1.HeartbeatRequest{
			WorkerId: id, ActiveCount: int32(len(held)), CompletedDelta: completed, FailedDelta: failed,
			Stats: stats, Held: held, HeldIsWhole: true, TasksReceived: &received, Blocked: w.blockedCode(),
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

// leases returns the leases that the worker has. Needs w.mu.
func (w *Worker) leases() []*kagziv1.Lease {
	held := make([]*kagziv1.Lease, 0, len(w.executions))
	for id, e := range w.executions {
		token := e.token()
		if e.next.task != nil {
			token = e.next.task.GetLeaseToken()
		}
		held = append(held, &kagziv1.Lease{RunId: id, LeaseToken: token})
	}
	return held
}

// awaitBeat waits until the last heartbeat is answered or its stream is gone.
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

// beaten handles the answer to a heartbeat and reports whether it was accepted.
func (w *Worker) beaten(r *kagziv1.SessionResponse, sentAt time.Time) bool {
	switch d := r.GetError(); {
	case r == nil:
		return false // the stream broke
	case d != nil && session.Repeatable(d):
		w.log.Warn("heartbeat failed; trying again at the next interval", "error", d.GetMessage())
		return false
	case d != nil: // usually because the server no longer knows the worker
		w.log.Info("heartbeat refused; registering again", "worker", w.ID(), "error", d.GetMessage())
		select {
		case w.unknown <- struct{}{}:
		default:
		}
		return false
	}
	h := r.GetHeartbeat()
	for _, l := range h.GetLost() {
		e := w.held(l.GetRunId(), l.GetLeaseToken())
		switch {
		case e == nil:
			w.expect(l.GetRunId(), l.GetLeaseToken(), loseNext)
		case !e.leaving():
			e.lose(notRenewed(l))
		}
	}
	for _, c := range h.GetCancelling() {
		w.cancelTask(c)
	}
	// last: a step that waits for this starts at once, even of a run that the answer reports as
	// lost
	w.lease.Confirm(sentAt)
	if h.GetShouldDrain() {
		w.askDrain()
	}
	return true
}

// notRenewed returns why a lease was not renewed. Older servers do not send the run's status.
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

// expired is called after twice the lease without contact, and again later. It gives up the runs
// that others have claimed by now. A run with a longer heartbeat timeout is kept until that has
// passed; the server counts from when it received the last message, so this worker gives up first.
// It returns when the next run is due. Unanswered operations are still sent when the server is
// back; they count for runs that nobody has claimed.
func (w *Worker) expired(silent time.Duration) (next time.Duration) {
	for _, e := range w.all() {
		switch {
		case e.dead(): // given up already
		case silent < e.heartbeatTimeout:
			if next == 0 || e.heartbeatTimeout < next {
				next = e.heartbeatTimeout
			}
		default:
			w.log.Warn("no contact with the server for longer than the lease; giving up a run", "run",
				e.info.RunID, "type",
				e.info.WorkflowType,
				"silent", silent.Round(time.Millisecond))
			e.giveBack()
		}
	}
	return next
}
