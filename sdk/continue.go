package kagzi

import (
	"errors"
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ContinueAsNew ends the run and starts the next one, of the same type and with in as its input, in one commit: a loop without end whose
// history does not grow without end. Its error is to be returned by the workflow function; that is what makes it count:
//
//	return kagzi.ContinueAsNew[Out](ctx, next)
//
// The next run begins with an empty history. It takes over the external id, the queue, the policies, the tags, the parent, which gets the
// last run's result, the children that are to end with it, and the signals that this run has not taken, in their order. This run ends
// COMPLETED, with no output.
//
// The error counts also when it is wrapped, or comes out of a branch. In a step it fails the step for good, as a step cannot end
// its run. Of a function that returns something else although it called ContinueAsNew, that counts, with a warning in the log. When the run is
// being cancelled the error is ErrCancelled.
func ContinueAsNew[Out, In any](ctx Context, in In) (Out, error) {
	var none Out
	b, scope := ctx.workflow(), ctx.scope()
	e := b.e
	b.arrive()
	if b.cancelled(scope) {
		return none, ErrCancelled
	}
	info := inputInfo(e.info.WorkflowType, e.info.ExternalID)
	if e.w.options.Codec != nil {
		info.signals = startOfSignals(e.start(), e.task.GetInput())
	}
	input, err := encode(e.w.options.Codec, in, info)
	if err != nil {
		return none, fmt.Errorf("input of the next run: %w", err)
	}
	warnLarge(e.w.log, "input", input, "type", e.info.WorkflowType)
	e.lock()
	e.continued = true
	e.mu.Unlock()
	return none, &continuation{e: e, input: input}
}

// continuation is the error by which a workflow function continues as new.
type continuation struct {
	e     *execution
	input *kagziv1.Payload
}

func (*continuation) Error() string {
	return "kagzi: ContinueAsNew: its error has to be returned by the workflow function"
}

func (*continuation) ErrorType() string { return "continue_as_new" }

// continuation is the run that is to go on for this one, if that is what the code's error says.
func (e *execution) continuation(err error) *kagziv1.StartWorkflowRequest {
	var c *continuation
	if !errors.As(err, &c) || c.e != e {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.continued && !e.quitted {
			e.w.log.Warn("ContinueAsNew was called, but its error not returned: the run just ends", "run", e.info.RunID, "type", e.info.WorkflowType)
		}
		return nil
	}
	return &kagziv1.StartWorkflowRequest{
		Namespace: e.task.GetNamespace(), TaskQueue: e.info.Queue, WorkflowType: e.info.WorkflowType, Version: e.info.Version, Input: c.input,
	}
}
