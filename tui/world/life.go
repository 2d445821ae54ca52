package world

import (
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// begins makes a run out of a message that holds what its starter chose. at is when it may start.
func (w *World) begins(m *kagziv1.Workflow, p *plan, at time.Time) *run {
	r := &run{Workflow: m, plan: p, latest: map[string]*step{}}
	if r.RunId == "" {
		r.RunId = w.ids.id(w.now)
	}
	r.Status, r.Attempts, r.CreatedAt = pending, 1, stamp(w.now)
	if r.Priority == nil {
		r.Priority = proto.Int32(0)
	}
	if t := r.GetTimeouts().GetExecutionTimeoutMs(); t > 0 {
		r.TimeoutMs = proto.Int64(t)
		if by := w.now.Add(time.Duration(t) * time.Millisecond); r.DeadlineAt == nil || by.Before(moment(r.DeadlineAt)) {
			r.DeadlineAt = stamp(by)
		}
	}
	w.useNamespace(r.Namespace)
	w.add(r)
	r.setAvailable(later(at, w.now))
	w.at(r.available, w.lookForWork)
	if r.DeadlineAt != nil {
		w.at(moment(r.DeadlineAt), func() { w.expire(r) })
	}
	return r
}

// expire ends a run at its deadline.
func (w *World) expire(r *run) {
	if ended(r.Status) {
		return
	}
	w.end(r, timedOut, &kagziv1.ErrorDetail{
		Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, Type: "deadline", NonRetryable: true,
		Message: "Workflow execution timeout exceeded (the run's deadline passed at " + moment(r.DeadlineAt).Format(time.RFC3339Nano) + ")",
	})
}

// proceed is the run's code: it goes through its acts, takes the results that are there, begins what comes next, and stops where it
// has to wait. It is called when a worker has got the run, and when something has come to its end meanwhile.
func (w *World) proceed(r *run) {
	acts := r.acts()
	for i := range acts {
		a := &acts[i]
		open := false
		for n, name := range a.names() {
			s := r.latest[name]
			switch {
			case s == nil || s.interrupted() || s.Status == stepPending && !moment(s.RetryAt).After(w.now):
				s = w.beginStep(r, a, n, name, s)
			case s.Status == stepFailed && !a.tolerates:
				w.fails(r, s.Error)
				return
			}
			open = open || s.open()
		}
		if open {
			w.waits(r)
			return
		}
	}
	if r.unwinding != nil {
		w.unwound(r)
		return
	}
	if r.plan.output != nil {
		r.Output = jsonPayload(r.plan.output(w.luck))
	}
	w.end(r, completed, nil)
}

// fails is the end of a run whose code lets an error out, after it has undone what it can.
func (w *World) fails(r *run, why *kagziv1.ErrorDetail) {
	if r.unwinding != nil {
		w.unwound(r)
		return
	}
	if r.plan.undo == nil {
		w.end(r, failed, why)
		return
	}
	r.unwinding = why
	w.proceed(r)
}

// unwound ends a run whose code has cleaned up.
func (w *World) unwound(r *run) {
	if r.CancelRequestedAt != nil {
		w.end(r, cancelled, endedBy("cancelled", r.reason))
		return
	}
	w.end(r, failed, r.unwinding)
}

func endedBy(kind, reason string) *kagziv1.ErrorDetail {
	if reason == "" {
		reason = "the run was " + kind
	}
	return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Type: kind, Message: reason, NonRetryable: true}
}

// waits has a run whose code waits give its worker back, unless code of one of its steps runs.
func (w *World) waits(r *run) {
	status, at, waiting := kagziv1.WorkflowStatus(0), time.Time{}, ""
	for _, s := range r.openSteps() {
		var due time.Time
		next, what := sleeping, ""
		switch {
		case s.Status == stepPending:
			due, next = moment(s.RetryAt), pending
		case s.Kind == functionStep:
			w.changed(r)
			return
		case s.Kind == sleepStep:
			due, what = moment(s.WakeUpAt), "timer:"+s.Name
		case s.Kind == signalStep:
			due, what = moment(s.WakeUpAt), "signal:"+s.SignalName
		default:
			what = "child:" + s.GetChildRunId()
		}
		if status == 0 || !due.IsZero() && (at.IsZero() || due.Before(at)) {
			status, at, waiting = next, due, what
		}
	}
	w.free(r)
	r.Status, r.WaitingFor = status, waiting
	r.setAvailable(at)
	if !at.IsZero() {
		w.at(at, w.lookForWork)
	}
	w.changed(r)
}

// free takes the run from its worker.
func (w *World) free(r *run) {
	r.lease++
	if r.holder == nil {
		return
	}
	r.holder.lets(r)
	r.holder, r.WorkerId = nil, nil
	w.openGate(r)
	w.lookForWork()
}

// due has a run that no worker holds go on as soon as one has room.
func (w *World) due(r *run) {
	if r.Status == sleeping {
		r.Status, r.WaitingFor = pending, ""
	}
	r.setAvailable(w.now)
	w.changed(r)
	w.lookForWork()
}

// interrupt takes a run from its worker in the middle of what it does: the attempts that run are run again.
func (w *World) interrupt(r *run, at time.Time) {
	w.free(r)
	for _, s := range r.openSteps() {
		if s.Kind != functionStep || s.Status != stepRunning {
			continue
		}
		w.closeStep(r, s, stepFailed, nil, &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_CRASHED, Type: "interrupted", Message: "the worker lost the run before the step had a result",
		})
	}
	r.Status, r.WaitingFor = pending, ""
	r.setAvailable(at)
	w.changed(r)
	w.at(at, w.lookForWork)
}

// end is the end of a run, whoever wanted it.
func (w *World) end(r *run, status kagziv1.WorkflowStatus, why *kagziv1.ErrorDetail) {
	holder := r.holder
	w.free(r)
	for _, s := range r.openSteps() {
		if s.Status == stepPending { // why and when it failed stays
			s.Status = stepFailed
			w.stepChanged(r, s)
			continue
		}
		w.closeStep(r, s, stepFailed, nil, &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Type: "run_ended", Message: "the run ended before the step had a result", NonRetryable: true,
		})
	}
	r.Paused, r.gated, r.heldAt, r.Note = false, false, time.Time{}, ""
	r.Status, r.Error, r.FinishedAt, r.WaitingFor = status, proto.CloneOf(why), stamp(w.now), ""
	r.setAvailable(time.Time{})
	if holder != nil {
		r.WorkerId = &holder.WorkerId
		holder.ended(status)
	}
	w.open = without(w.open, r)
	w.activity.ended(w.now, status)
	w.changed(r)
	w.noteEnd(r)
	w.tellParent(r)
	w.closeChildren(r)
	w.settleSchedule(r)
}

// tellParent gives the run's result to the step that started it.
func (w *World) tellParent(c *run) {
	parent := w.byID[c.GetParentRunId()]
	if parent == nil || ended(parent.Status) {
		return
	}
	for _, s := range parent.openSteps() {
		if s.GetChildRunId() != c.RunId {
			continue
		}
		if c.Status == completed {
			w.closeStep(parent, s, stepCompleted, proto.CloneOf(c.Output), nil)
		} else {
			w.closeStep(parent, s, stepFailed, nil, childFailure(c))
		}
		w.happened(parent)
	}
}

func childFailure(c *run) *kagziv1.ErrorDetail {
	e := &kagziv1.ErrorDetail{Type: "child", Message: "the child run ended as " + word(c.Status)}
	if c.Error != nil {
		e = proto.CloneOf(c.Error)
	}
	e.NonRetryable, e.RetryAfterMs = true, 0
	if e.Metadata == nil {
		e.Metadata = map[string]string{}
	}
	e.Metadata["child_run_id"], e.Metadata["child_status"] = c.RunId, word(c.Status)
	return e
}

// happened has a run go on for which a step has come to its end.
func (w *World) happened(r *run) {
	switch {
	case ended(r.Status), r.holder != nil && r.holder.silent:
	case r.holder != nil:
		w.proceed(r)
	case !w.stillWaits(r):
		w.due(r)
	default:
		w.waits(r)
	}
}

// stillWaits says that code which started several children waits for more of them.
func (w *World) stillWaits(r *run) bool {
	for _, s := range r.openSteps() {
		if s.Kind == childStep {
			return true
		}
	}
	return false
}

// closeChildren ends the open children that do not outlive the run.
func (w *World) closeChildren(parent *run) {
	if !parent.closes {
		return
	}
	reason := "the parent run " + parent.RunId + " has ended: it is " + word(parent.Status)
	for _, s := range parent.steps {
		if c := w.byID[s.GetChildRunId()]; c != nil && !ended(c.Status) {
			w.end(c, cancelled, endedBy("cancelled", reason))
		}
	}
}
