package session

import (
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Operation is one message to the server that gets an answer.
type Operation struct {
	Msg   *kagziv1.SessionRequest
	Owner Owner // the run; nil for operations of the worker itself
	// Prev is the run's operation before this one, if it was unanswered when this one was issued.
	Prev *Operation
	// Answer is called with the answer; nil when nobody waits. Operations of the worker itself get
	// refusals too, and nil when the stream broke.
	Answer func(r *kagziv1.SessionResponse)
	// Refused is called when the server will never accept the operation; nil when the run cannot continue without it.
	Refused func(d *kagziv1.ErrorDetail)

	Index  int64 // position among the run's operations. Guarded by the run, like the next two.
	Later  bool  // it is to be repeated after a delay
	Ending bool  // its refusal is ending the run's code

	epoch int64 // of the stream that it was queued on last; 0 for none
	// unknown is the epoch of the stream on which it was last refused. Operations after it on that
	// stream must not take effect before it. 0 means none, or that they need not wait. Guarded by
	// Session.mu.
	unknown int64
}

// Owner is the run that an operation belongs to.
type Owner interface {
	// Answered is called with the server's answer to op.
	Answered(op *Operation, r *kagziv1.SessionResponse)
}

// Repeat lets the operation be queued again on the stream that has carried it already.
func (op *Operation) Repeat() { op.epoch = 0 }

// Deliver passes an answer on to the run, or to the function that waits for it.
func (op *Operation) Deliver(r *kagziv1.SessionResponse) {
	switch {
	case op.Owner != nil:
		op.Owner.Answered(op, r)
	case op.Answer != nil:
		op.Answer(r)
	}
}

// Ends reports whether the run cannot continue here when the operation is refused with d.
func (op *Operation) Ends(d *kagziv1.ErrorDetail) bool {
	return LeaseGone(d) || op.Refused == nil && op.Msg.GetBeginStep() == nil
}

// Subject names what the operation records, for messages.
func (op *Operation) Subject() string {
	switch m := op.Msg.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		return "the beginning of step " + m.BeginStep.GetStepName()
	case *kagziv1.SessionRequest_CompleteStep:
		return "the result of step " + m.CompleteStep.GetStepName()
	case *kagziv1.SessionRequest_FailStep:
		return "the failure of step " + m.FailStep.GetStepName()
	case *kagziv1.SessionRequest_Sleep:
		return "sleep " + m.Sleep.GetStepName()
	case *kagziv1.SessionRequest_AwaitSignal:
		return "the wait for signal " + m.AwaitSignal.GetSignalName()
	case *kagziv1.SessionRequest_StartChild:
		return "the start of child " + m.StartChild.GetStepName()
	case *kagziv1.SessionRequest_AwaitChildren:
		return "the wait for child runs"
	}
	return "the run's end"
}

// MayEndLease reports whether the operation may end the lease, so that nothing after it counts.
func MayEndLease(msg *kagziv1.SessionRequest) bool {
	switch m := msg.Operation.(type) {
	case *kagziv1.SessionRequest_CompleteWorkflow, *kagziv1.SessionRequest_FailWorkflow,
		*kagziv1.SessionRequest_ReleaseTask:
		return true
	case *kagziv1.SessionRequest_FailStep:
		return !m.FailStep.GetHold()
	case *kagziv1.SessionRequest_Sleep:
		return !m.Sleep.GetHold()
	case *kagziv1.SessionRequest_AwaitSignal:
		return !m.AwaitSignal.GetHold()
	case *kagziv1.SessionRequest_AwaitChildren:
		return !m.AwaitChildren.GetHold()
	}
	return false
}

// Repeatable reports whether a refusal leaves open if the operation counted.
func Repeatable(d *kagziv1.ErrorDetail) bool {
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, kagziv1.ErrorCode_ERROR_CODE_INTERNAL,
		kagziv1.ErrorCode_ERROR_CODE_TIMEOUT:
		return true
	case kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED:
		return !d.GetNonRetryable() // a full disk passes, a limit does not
	}
	return false
}

// LeaseGone reports whether a refusal means that the worker no longer holds the run.
func LeaseGone(d *kagziv1.ErrorDetail) bool {
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND,
		kagziv1.ErrorCode_ERROR_CODE_CANCELLED,
		kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED:
		return true
	}
	return false
}
