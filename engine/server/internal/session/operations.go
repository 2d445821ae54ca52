package session

import (
	"context"
	"reflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// operation describes one kind of request of a session.
type operation struct {
	run   func(*kagziv1.SessionRequest) string // the id of the run that it is about; nil: none
	bytes func(*kagziv1.SessionRequest) int    // size of its payload; nil: it has none
	do    func(context.Context, *session, engine.Sequenced, *kagziv1.SessionRequest) (*kagziv1.SessionResponse, error)
}

// operations lists the operations of a session by the type of their field in SessionRequest. A new
// operation needs an entry here. The unary calls of WorkerService use the same functions.
var operations = map[reflect.Type]operation{
	reflect.TypeFor[*kagziv1.SessionRequest_Hello](): {
		do: func(context.Context, *session, engine.Sequenced,
			*kagziv1.SessionRequest) (*kagziv1.SessionResponse, error) {
			return nil, engine.Invalid("hello", "can only be the first operation of a session")
		}},
	reflect.TypeFor[*kagziv1.SessionRequest_Credit](): ofSession(
		(*kagziv1.SessionRequest).GetCredit, (*session).credit),
	reflect.TypeFor[*kagziv1.SessionRequest_Heartbeat](): ofSession(
		(*kagziv1.SessionRequest).GetHeartbeat, (*session).heartbeat),
	reflect.TypeFor[*kagziv1.SessionRequest_Goodbye](): ofSession(
		(*kagziv1.SessionRequest).GetGoodbye, (*session).goodbye),
	reflect.TypeFor[*kagziv1.SessionRequest_BeginStep](): ofRun(
		(*kagziv1.SessionRequest).GetBeginStep, (*session).beginStep),
	reflect.TypeFor[*kagziv1.SessionRequest_CompleteStep](): ofRun(
		(*kagziv1.SessionRequest).GetCompleteStep, (*session).completeStep),
	reflect.TypeFor[*kagziv1.SessionRequest_FailStep](): ofRun(
		(*kagziv1.SessionRequest).GetFailStep, (*session).failStep),
	reflect.TypeFor[*kagziv1.SessionRequest_Sleep](): ofRun(
		(*kagziv1.SessionRequest).GetSleep, (*session).sleep),
	reflect.TypeFor[*kagziv1.SessionRequest_AwaitSignal](): ofRun(
		(*kagziv1.SessionRequest).GetAwaitSignal, (*session).awaitSignal),
	reflect.TypeFor[*kagziv1.SessionRequest_StartChild](): ofParent(),
	reflect.TypeFor[*kagziv1.SessionRequest_AwaitChildren](): ofRun(
		(*kagziv1.SessionRequest).GetAwaitChildren, (*session).awaitChildren),
	reflect.TypeFor[*kagziv1.SessionRequest_SetNote](): ofRun(
		(*kagziv1.SessionRequest).GetSetNote, (*session).setNote),
	reflect.TypeFor[*kagziv1.SessionRequest_CompleteWorkflow](): ofRun(
		(*kagziv1.SessionRequest).GetCompleteWorkflow, (*session).completeWorkflow),
	reflect.TypeFor[*kagziv1.SessionRequest_FailWorkflow](): ofRun(
		(*kagziv1.SessionRequest).GetFailWorkflow, (*session).failWorkflow),
	reflect.TypeFor[*kagziv1.SessionRequest_ReleaseTask](): ofRun(
		(*kagziv1.SessionRequest).GetReleaseTask, (*session).releaseTask),
}

// ofSession returns an operation about the session itself.
func ofSession[R any](
	get func(*kagziv1.SessionRequest) R, do func(*session, context.Context, R) (*kagziv1.SessionResponse, error),
) operation {
	return operation{do: func(ctx context.Context, w *session, _ engine.Sequenced,
		r *kagziv1.SessionRequest) (*kagziv1.SessionResponse, error) {
		return do(w, ctx, get(r))
	}}
}

// ofRun returns an operation about a run that the session's worker holds.
func ofRun[R interface{ GetRunId() string }](
	get func(*kagziv1.SessionRequest) R, do func(*session, context.Context, engine.Sequenced,
		R) (*kagziv1.SessionResponse, error),
) operation {
	return leasedOperation(get, R.GetRunId, do)
}

// ofParent returns the operation that starts a child. Its run is the child's parent.
func ofParent() operation {
	parent := func(r *kagziv1.StartChildRequest) string { return r.GetChild().GetParentRunId() }
	return leasedOperation((*kagziv1.SessionRequest).GetStartChild, parent, (*session).startChild)
}

// leasedOperation returns an operation under the lease of a run, in the order of the run's
// operations.
func leasedOperation[R any](
	get func(*kagziv1.SessionRequest) R, run func(R) string,
	do func(*session, context.Context, engine.Sequenced, R) (*kagziv1.SessionResponse, error),
) operation {
	return operation{
		run:   func(r *kagziv1.SessionRequest) string { return run(get(r)) },
		bytes: func(r *kagziv1.SessionRequest) int { return limit.PayloadBytes(get(r)) },
		do: func(ctx context.Context, w *session, at engine.Sequenced,
			r *kagziv1.SessionRequest) (*kagziv1.SessionResponse, error) {
			return do(w, ctx, at, get(r))
		},
	}
}

// operationOf returns the operation of a request; false if it is unknown, as of a newer API.
func operationOf(r *kagziv1.SessionRequest) (operation, bool) {
	o, known := operations[reflect.TypeOf(r.Operation)]
	return o, known
}

// runOf returns the id of the run that an operation is about; empty if there is none.
func runOf(r *kagziv1.SessionRequest) string {
	if o, _ := operationOf(r); o.run != nil {
		return o.run(r)
	}
	return ""
}

// bytesOf returns the size of an operation's payload.
func bytesOf(r *kagziv1.SessionRequest) int {
	if o, _ := operationOf(r); o.bytes != nil {
		return o.bytes(r)
	}
	return 0
}

func (w *session) beginStep(ctx context.Context, at engine.Sequenced,
	r *kagziv1.BeginStepRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	begun, err := w.service.beginStep(ctx, at, r)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_BegunStep{BegunStep: begun}}, err
}

func (w *session) completeStep(ctx context.Context, at engine.Sequenced,
	r *kagziv1.CompleteStepRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	_, step, err := w.service.completeStep(ctx, at, r)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CompletedStep{CompletedStep: addedTo(&step)}}, err
}

func (w *session) failStep(ctx context.Context, at engine.Sequenced,
	r *kagziv1.FailStepRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	w.keep(r, !r.Hold)
	failed, err := w.service.failStep(ctx, at, r)
	w.over(r, err, failed.GetScheduledRetry() && !r.Hold)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_FailedStep{FailedStep: failed}}, err
}

func (w *session) sleep(ctx context.Context, at engine.Sequenced,
	r *kagziv1.SleepRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	w.keep(r, !r.Hold && !r.Over)
	sleeping, err := w.service.sleep(ctx, at, r, w.ordered)
	w.over(r, err, !r.Hold && !r.Over && (!w.ordered || sleeping.GetSettled() == 0))
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Sleeping{Sleeping: sleeping}}, err
}

func (w *session) awaitSignal(ctx context.Context, at engine.Sequenced,
	r *kagziv1.AwaitSignalRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	w.keep(r, !r.Hold)
	awaited, err := w.service.awaitSignal(ctx, at, r)
	w.over(r, err, awaited.GetPayload() == nil && !awaited.GetTimedOut() && !r.Hold)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_AwaitedSignal{AwaitedSignal: awaited}}, err
}

func (w *session) startChild(ctx context.Context, at engine.Sequenced,
	r *kagziv1.StartChildRequest) (*kagziv1.SessionResponse, error) {
	if r.Child != nil {
		r.Child.Namespace = w.worker.Namespace
	}
	started, err := w.service.startChild(ctx, at, r)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_StartedChild{StartedChild: started}}, err
}

func (w *session) awaitChildren(ctx context.Context, at engine.Sequenced,
	r *kagziv1.AwaitChildrenRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	w.keep(r, !r.Hold)
	awaited, err := w.service.awaitChildren(ctx, at, r)
	w.over(r, err, len(awaited.GetSteps()) == 0 && !r.Hold)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_AwaitedChildren{AwaitedChildren: awaited}}, err
}

func (w *session) setNote(ctx context.Context, at engine.Sequenced,
	r *kagziv1.SetNote) (*kagziv1.SessionResponse, error) {
	ack, err := w.service.setNote(ctx, at, w.worker.Namespace, r)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Ack{Ack: ack}}, err
}

func (w *session) completeWorkflow(ctx context.Context, at engine.Sequenced,
	r *kagziv1.CompleteWorkflowRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	completed, err := w.service.completeWorkflow(ctx, at, r)
	w.over(r, err, true)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CompletedWorkflow{CompletedWorkflow: completed}},
		err
}

func (w *session) failWorkflow(ctx context.Context, at engine.Sequenced,
	r *kagziv1.FailWorkflowRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	failed, err := w.service.failWorkflow(ctx, at, r)
	w.over(r, err, true)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_FailedWorkflow{FailedWorkflow: failed}}, err
}

func (w *session) releaseTask(ctx context.Context, at engine.Sequenced,
	r *kagziv1.ReleaseTaskRequest) (*kagziv1.SessionResponse, error) {
	r.Namespace = w.worker.Namespace
	w.keep(r, r.Park)
	released, err := w.service.releaseTask(ctx, at, r)
	w.over(r, err, true)
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_ReleasedTask{ReleasedTask: released}}, err
}
