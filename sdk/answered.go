package kagzi

import (
	"fmt"
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// Answered takes the server's answer to one of the run's operations. The session calls it.
func (e *execution) Answered(op *session.Operation, r *kagziv1.SessionResponse) {
	detail := r.GetError()
	e.mu.Lock()
	if detail != nil && session.Repeatable(detail) {
		e.repeatLater(op)
		e.mu.Unlock()
		return
	}
	if detail != nil && op.Ends(detail) {
		// The operation stays among those that are not durable until the code is made to end, so
		// that no step starts after it.
		known := !op.Ending && slices.Contains(e.ops, op)
		op.Ending = true
		e.mu.Unlock()
		switch {
		case !known:
		case session.LeaseGone(detail):
			e.lose(detail)
		default:
			e.refused(op, detail)
		}
		return
	}
	if !e.outbox.remove(op) {
		e.mu.Unlock()
		return
	}
	if asks(op.Msg) {
		e.asking--
		e.answered, e.answerPlace = op.Index, placeOf(r)
	} else {
		e.settledBy(op, placeOf(r))
	}
	e.mu.Unlock()
	switch {
	case detail == nil:
		if op.Answer != nil {
			op.Answer(r)
		}
		e.mu.Lock()
		e.answered = 0
		if len(e.results) > 0 || e.busy == 0 {
			e.moved() // it may have waited for this answer
		}
		e.mu.Unlock()
	case op.Refused != nil:
		e.refuses()
		e.w.session.Settle(op)
		op.Refused(detail)
	default: // only the announcement: the step's result is recorded or refused on its own
		e.refuses()
		e.w.session.Settle(op)
		e.w.log.Debug("start of a step not recorded", "run", e.info.RunID, "step",
			op.Msg.GetBeginStep().GetStepName(), "error",
			detail.GetMessage())
	}
}

// leaving reports whether the operation that ends the lease is sent. Its answer tells how the lease
// ended; a heartbeat may report the end of the lease earlier.
func (e *execution) leaving() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing
}

// lose drops a run that another worker has or that has ended. Whatever its code does no longer
// counts.
func (e *execution) lose(d *kagziv1.ErrorDetail) {
	status := d.GetMetadata()["status"]
	e.w.log.Info("lease lost; stopping the code of the run", "run", e.info.RunID, "type", e.info.WorkflowType, "reason",
		d.GetMessage(),
		"status", status)
	cause := errLeaseLost
	if Status(status) == StatusCancelled || e.graceIsOver() {
		cause = ErrCancelled
	}
	e.over(cause)
}

// refailed sends the run's failure once more, with the server's reason instead of an error that it
// refused for its content. Otherwise the run would be claimed again and fail in the same way forever.
func (e *execution) refailed(op *session.Operation, d *kagziv1.ErrorDetail) bool {
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED:
	default:
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.endRefused {
		return e.ended
	}
	e.endRefused = true
	failure := errorDetail(&coded{code: d.GetCode(), kind: "refused",
		text: "the run failed, and the server refused to record its error: " + d.GetMessage()})
	failure.NonRetryable = true
	e.remove(op)
	e.dropAfter(op)
	e.sendFailure(failure)
	return true
}

// refused handles an operation that the server rejected for good. If the run cannot continue
// without it, the run fails: that is visible to people, and another worker would get the same
// refusal.
func (e *execution) refused(op *session.Operation, d *kagziv1.ErrorDetail) {
	if d.GetSubject() == "divergence" && e.leaveEnd(op) {
		return
	}
	_, fail := op.Msg.Operation.(*kagziv1.SessionRequest_FailWorkflow)
	_, release := op.Msg.Operation.(*kagziv1.SessionRequest_ReleaseTask)
	if fail && e.refailed(op, d) {
		return
	}
	if fail || release {
		e.w.log.Warn("the server refused the end of a run; dropping it", "run", e.info.RunID, "error", d.GetMessage())
		e.over(errLeaseLost)
		return
	}
	failure := errorDetail(&coded{code: d.GetCode(), kind: "refused",
		text: fmt.Sprintf("the server refused to record %s: %s", op.Subject(), d.GetMessage())})
	failure.NonRetryable = true
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.remove(op)
	e.dropAfter(op) // the server refuses them too, as they depend on this one
	e.closing = true
	e.sendFailure(failure)
	e.quit(errFinished)
}
