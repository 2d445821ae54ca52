package kagzi

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// accept takes a task that the server has pushed.
func (w *Worker) accept(t *kagziv1.Task) {
	e := newExecution(w, t)
	h := w.handlers[t.GetWorkflowType()]
	w.mu.Lock()
	old := w.executions[t.GetRunId()]
	if old != nil && old.task.GetLeaseToken() == t.GetLeaseToken() {
		w.mu.Unlock()
		e.span.End()
		w.session.AddCredit(1)
		return
	}
	w.executions[t.GetRunId()] = e
	draining := w.draining
	w.mu.Unlock()
	if old != nil {
		old.lose(&kagziv1.ErrorDetail{Message: "claimed again by this worker"})
	}
	switch {
	case draining:
		e.giveBack()
	case h == nil:
		w.log.Error("run released: no function for its type", "run", t.GetRunId(), "type", t.GetWorkflowType())
		e.giveBack()
	default:
		w.code.Add(1)
		go branchGoroutine(func() {
			defer w.code.Done()
			e.run(h)
		})
	}
}

// forget takes a run out of the worker's hands, which frees its slot.
func (w *Worker) forget(e *execution) {
	w.mu.Lock()
	if w.executions[e.info.RunID] == e {
		delete(w.executions, e.info.RunID)
	}
	draining := w.draining
	w.noteEmpty()
	w.mu.Unlock()
	if !draining {
		w.session.AddCredit(1)
	}
}

// noteEmpty needs w.mu.
func (w *Worker) noteEmpty() {
	if w.draining && len(w.executions) == 0 {
		select {
		case <-w.emptied:
		default:
			close(w.emptied)
		}
	}
}

func (w *Worker) all() []*execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*execution, 0, len(w.executions))
	for _, e := range w.executions {
		all = append(all, e)
	}
	return all
}

// held returns the execution that has this lease, nil when there is none.
func (w *Worker) held(runID, token string) *execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.executions[runID]
	if e == nil || e.task.GetLeaseToken() != token {
		return nil
	}
	return e
}

// cancelTask stops a run: at once, or by telling its code.
func (w *Worker) cancelTask(c *kagziv1.CancelTask) {
	e := w.held(c.GetRunId(), c.GetLeaseToken())
	switch {
	case e == nil:
	case c.GetGraceUntil() != nil:
		if until := c.GetGraceUntil().AsTime(); e.askCancel(until) {
			w.log.Info("cancellation asked for", "run", c.GetRunId(), "reason", c.GetReason().GetMessage(), "grace",
				until.Sub(e.now()).Round(time.Millisecond))
		}
	case !e.leaving():
		e.lose(c.GetReason())
	}
}

// partingTimeout bounds each of the last exchanges with the server: handing runs back, the last report, and goodbye.
const partingTimeout = 5 * time.Second

// drain takes nothing new, lets what is held go on for DrainTimeout, hands the rest back and deregisters. Heartbeats
// go on all the while. A signal cuts it short.
func (w *Worker) drain(reason string, signals <-chan os.Signal, served <-chan struct{}) error {
	w.mu.Lock()
	w.draining = true
	close(w.leaving)
	active := len(w.executions)
	w.noteEmpty()
	w.mu.Unlock()
	w.log.Info("draining", "worker", w.ID(), "reason", reason, "active", active, "timeout", w.options.DrainTimeout)
	w.goodbye(true, nil)

	timeout := time.NewTimer(w.options.DrainTimeout)
	defer timeout.Stop()
	var err error
	select {
	case <-w.emptied:
	case <-served:
	case <-signals:
		err = w.handBack("second signal", served)
	case <-timeout.C:
		err = w.handBack("drain timeout", served)
	}
	w.part(served)
	return err
}

// handBack releases the runs that are still active. Others take them from the last recorded step on.
func (w *Worker) handBack(reason string, served <-chan struct{}) error {
	active := w.all()
	if len(active) == 0 {
		return nil
	}
	ids := make([]string, 0, len(active))
	for _, e := range active {
		ids = append(ids, e.info.RunID)
	}
	slices.Sort(ids)
	w.log.Warn("runs handed back unfinished", "worker", w.ID(), "reason", reason, "runs", ids)
	for _, e := range active {
		e.giveBack()
	}
	limit := time.NewTimer(partingTimeout)
	defer limit.Stop()
	select {
	case <-w.emptied:
	case <-served:
	case <-limit.C:
		w.log.Warn("the server did not confirm; it frees the runs when their leases end", "runs", len(w.all()))
	}
	return fmt.Errorf("kagzi: %s: %d runs handed back unfinished", reason, len(ids))
}

// part reports what has ended since the last heartbeat, and deregisters, if the server can be told.
func (w *Worker) part(served <-chan struct{}) {
	w.mu.Lock()
	w.parting = true
	w.mu.Unlock()
	w.reportRest(served)
	answers := make(chan *kagziv1.SessionResponse, 1)
	if !w.goodbye(false, func(r *kagziv1.SessionResponse) { answers <- r }) {
		if w.ID() != "" {
			w.log.Warn("no session to say goodbye on; the server takes the worker off when its lease ends",
				"worker", w.ID())
		}
		return
	}
	limit := time.NewTimer(partingTimeout)
	defer limit.Stop()
	var answer *kagziv1.SessionResponse
	select {
	case answer = <-answers:
	case <-served:
	case <-limit.C:
	}
	if answer.GetGoodbye() == nil {
		w.log.Warn("the server did not confirm the goodbye; it takes the worker off when its lease ends",
			"worker", w.ID(),
			"reason", answer.GetError().GetMessage())
		return
	}
	w.log.Info("worker deregistered", "worker", w.ID())
}

// reportRest has the server count what the worker has done since the last heartbeat that counted,
// before a goodbye that may overtake one.
func (w *Worker) reportRest(served <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTimeout)
	defer cancel()
	w.awaitBeat(ctx, served)
	if w.counters.Pending() {
		w.beat()
		w.awaitBeat(ctx, served)
	}
}

// goodbye tells the server that the worker drains, or that it is gone; false without a session.
func (w *Worker) goodbye(drain bool, answer func(*kagziv1.SessionResponse)) bool {
	return w.session.Enqueue(&session.Operation{
		Msg: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Goodbye{
			Goodbye: &kagziv1.DeregisterRequest{WorkerId: w.ID(), Drain: drain},
		}},
		Answer: answer,
	})
}

// awaitCode waits for the author's code to end, so that none of it outlives Run; code that does not heed its
// context is given up after a while, since a goroutine cannot be ended from outside.
func (w *Worker) awaitCode() {
	if !w.codeEnds(partingTimeout) {
		w.log.Warn("code of steps or workflows goes on in spite of its ended context", "worker", w.ID())
	}
}

// codeEnds waits for the author's code for up to limit, and reports whether it has ended.
func (w *Worker) codeEnds(limit time.Duration) bool {
	ended := make(chan struct{})
	go func() { w.code.Wait(); close(ended) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
