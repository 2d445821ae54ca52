package kagzi

import (
	"context"
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// SignalOptions say how a signal is delivered. Every zero field means the default in brackets.
type SignalOptions struct {
	// ID names this one delivery: a run takes each id once (a fresh UUIDv7, which makes the SDK's own repetitions safe).
	ID string
}

// Signal delivers v to a run, for WaitSignal under the same name. When it returns, the signal is on the server's disk,
// and is kept until the run takes it: signals of one name are taken in the order in which they came. A run that
// has ended takes none: PRECONDITION_FAILED. If it continued as new, "continued_as_run_id" in the Metadata of the *Error is the run that goes
// on, and Client.GetByExternalID finds the last one, so give an external id to a run that continues and takes signals.
func Signal[T any](ctx context.Context, run *Run, name string, v T, opts SignalOptions) error {
	c := run.c
	info, err := run.payloadInfo(ctx, PayloadSignal, name)
	if err != nil {
		return err
	}
	payload, err := encode(c.options.Codec, v, info)
	if err != nil {
		return fmt.Errorf("kagzi: value of signal %q: %w", name, err)
	}
	warnLarge(c.options.Logger, "signal", payload, "signal", name)
	id, err := requestID(opts.ID)
	if err != nil {
		return err
	}
	_, err = c.workflows.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
		Namespace: c.options.Namespace, RunId: run.id, Name: name, Payload: payload, SignalId: id,
	})
	return callError(ctx, err)
}
