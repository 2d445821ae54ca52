package kagzi

import (
	"context"
	"errors"
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// WaitSignal returns the next signal of a name, waiting for it for up to limit; 0 is no limit, and less than 0 takes only what is there already.
// Signals are kept from the start of the run on, and each is taken once, in the order in which they came. While it waits the run is
// parked: no worker is held, and restarts do not matter.
//
// The wait is a step with the signal's name, under the same rules: the second wait for "approval" is the step approval:2, and two branches
// cannot wait for one name at once. When the limit has passed, the error is a *StepError with TIMEOUT as its code, for which
// errors.Is(err, ErrTimeout) holds. When the run is being cancelled errors.Is(err, ErrCancelled) does; a wait that has ended so still takes the
// next signal of its name, so that code which cleans up has to wait for another name. A signal that cannot be read as a T is taken, and is a
// *StepError with INVALID_ARGUMENT.
//
// Beside a sibling that is at work, a signal that was not there at first is noticed within 10 s.
func WaitSignal[T any](ctx Context, name string, limit time.Duration) (T, error) {
	b := ctx.workflow()
	p, step, err := b.awaitSignal(ctx.scope(), name, limit)
	if err != nil {
		var none T
		return none, err
	}
	info := b.e.payloadInfo(PayloadSignal, name)
	if b.e.history[step].GetOverriddenBy() != "" {
		info = b.e.payloadInfo(PayloadStep, step)
	}
	own := info
	if info.Kind == PayloadSignal && info.Start != "" {
		info.Start = startOfSignals(own.Start, b.e.task.GetInput())
	}
	v, err := decode[T](b.e.w.options.Codec, p, info)
	var misfit nonRetryable
	if info != own && errors.As(err, &misfit) {
		if ours, mistake := decode[T](b.e.w.options.Codec, p, own); mistake == nil {
			v, err = ours, nil
		}
	}
	switch {
	case errors.As(err, &misfit): // whoever sent it is to blame, and not the code
		var none T
		return none, &StepError{Step: step, Code: CodeInvalidArgument, Message: fmt.Sprintf("signal %s: %v", name, err), NonRetryable: true}
	case err != nil:
		b.e.failAndExit(unreadableResult(step, err))
	}
	return *v, nil
}

func (b *branch) awaitSignal(scope context.Context, signal string, limit time.Duration) (*kagziv1.Payload, string, error) {
	e := b.e
	name, recorded := b.claim(scope, signal, kagziv1.StepKind_STEP_KIND_SIGNAL)
	defer b.release(name)
	switch {
	case b.endedByCancellation(name), recorded == nil && b.cancelled(scope):
		return nil, name, cancelledError(name, nil, 0)
	case recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED:
		return nil, name, newStepError(name, recorded.GetError(), int(recorded.GetAttemptNumber()))
	case recorded.GetSignalTimedOut():
		return nil, name, signalTimeout(name, signal, limit)
	case recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		return recorded.GetOutput(), name, nil
	}
	b.begin()
	defer b.end()
	var got *kagziv1.AwaitSignalResponse
	w := &serverWait{
		question: func(hold bool) *kagziv1.SessionRequest { return awaitSignal(e, name, signal, limit, hold) },
		answered: func(r *kagziv1.SessionResponse) bool {
			got = r.GetAwaitedSignal()
			return got.GetPayload() != nil || got.GetTimedOut()
		},
		due: when(recorded.GetWakeUpAt()),
	}
	switch {
	case recorded != nil:
		w.known = e.since
	case limit != 0:
		w.due = e.now().Add(max(limit, 0))
	}
	switch {
	case !b.await(scope, w):
		e.endByCancellation(name)
		return nil, name, cancelledError(name, nil, 0)
	case got.GetTimedOut():
		return nil, name, signalTimeout(name, signal, limit)
	}
	return got.GetPayload(), name, nil
}

func signalTimeout(step, signal string, limit time.Duration) *StepError {
	return &StepError{Step: step, Code: CodeTimeout, Message: fmt.Sprintf("no signal %s within %v", signal, max(limit, 0)), NonRetryable: true}
}

func awaitSignal(e *execution, step, signal string, limit time.Duration, hold bool) *kagziv1.SessionRequest {
	r := &kagziv1.AwaitSignalRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), StepName: step, SignalName: signal, Hold: hold,
	}
	if limit != 0 {
		r.Timeout = durationpb.New(max(limit, time.Millisecond))
	}
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitSignal{AwaitSignal: r}}
}
