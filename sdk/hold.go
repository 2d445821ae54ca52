package kagzi

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
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
		w.session.grant(1)
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
		w.session.grant(1)
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
			w.log.Info("cancellation asked for", "run", c.GetRunId(), "reason", c.GetReason().GetMessage(), "grace", until.Sub(e.now()).Round(time.Millisecond))
		}
	case !e.leaving():
		e.lose(c.GetReason())
	}
}
