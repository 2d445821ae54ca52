package kagzi

import (
	"context"
	"errors"
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// SignalOptions say how a signal is delivered. Every zero field means the default in brackets.
type SignalOptions struct {
	// ID names this one delivery: a run takes each id once (a fresh UUIDv7, which makes the SDK's own repetitions safe).
	ID string
}

// Signal delivers v to a run, for WaitSignal under the same name. When it returns, the signal is on the server's disk,
// and is kept until the run takes it: signals of one name are taken in the order in which they came. Where the run continued as new, the
// signal goes to the run that goes on for it, like those that it had not taken. A run that has ended otherwise takes none: PRECONDITION_FAILED.
func Signal[T any](ctx context.Context, run *Run, name string, v T, opts SignalOptions) error {
	id, err := requestID(opts.ID)
	if err != nil {
		return err
	}
	for followed := map[string]bool{run.id: true}; ; followed[run.id] = true {
		var ended *Error
		err := signalRun(ctx, run, name, v, id)
		if !errors.As(err, &ended) || ended.Code != CodePreconditionFailed {
			return err
		}
		next := ended.Metadata["continued_as_run_id"]
		if next == "" || followed[next] { // a server that answers in circles is not followed
			return err
		}
		run = run.c.Run(next)
	}
}

// signalRun delivers v to this run and no other. Each run has payloads of its own, which a codec may bind to it.
func signalRun(ctx context.Context, run *Run, name string, v any, id string) error {
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
	_, err = c.workflows.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
		Namespace: c.options.Namespace, RunId: run.id, Name: name, Payload: payload, SignalId: id,
	})
	return callError(ctx, err)
}
