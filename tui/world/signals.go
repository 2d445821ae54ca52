package world

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// awaitSignal has a step consume a signal that has come, or wait for the next.
func (w *World) awaitSignal(r *run, s *step, a *act) {
	s.Kind, s.SignalName = signalStep, a.signal
	for _, signal := range r.signals {
		if signal.Name == a.signal && signal.StepName == nil {
			signal.StepName = proto.String(s.Name)
			w.closeStep(r, s, stepCompleted, proto.CloneOf(signal.Payload), nil)
			return
		}
	}
	if a.limit > 0 {
		s.WakeUpAt = stamp(w.now.Add(a.limit))
	}
	if r.plan.answer != nil {
		d, o := r.plan.answer(w.luck)
		w.after(d, func() {
			if !ended(r.Status) {
				w.deliver(r, &kagziv1.Signal{Name: o.name, Payload: jsonPayload(o.payload)})
			}
		})
	}
}

// deliver hands a signal to the step that waits for it, or keeps it.
func (w *World) deliver(r *run, signal *kagziv1.Signal) {
	signal.Sequence, signal.ReceivedAt = int64(len(r.signals)+1), stamp(w.now)
	r.signals = append(r.signals, signal)
	w.changed(r)
	for _, s := range r.openSteps() {
		if s.Kind != signalStep || s.SignalName != signal.Name || s.WakeUpAt != nil && !moment(s.WakeUpAt).After(w.now) {
			continue
		}
		signal.StepName = proto.String(s.Name)
		w.closeStep(r, s, stepCompleted, proto.CloneOf(signal.Payload), nil)
		w.happened(r)
		return
	}
}

// SignalWorkflow delivers a signal.
func (w *World) SignalWorkflow(ctx context.Context, request *kagziv1.SignalWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.SignalWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/SignalWorkflow", func() (*kagziv1.SignalWorkflowResponse, error) {
		r, err := w.runOf(request)
		if err := first(err, checkName("name", request.Name), checkOptionalName("signal_id", request.SignalId),
			checkPayload("payload", request.Payload)); err != nil {
			return nil, err
		}
		for _, had := range r.signals {
			if request.SignalId != "" && had.SignalId == request.SignalId {
				return &kagziv1.SignalWorkflowResponse{AlreadyDelivered: true}, nil
			}
		}
		if ended(r.Status) {
			return nil, runEnded(r)
		}
		w.deliver(r, &kagziv1.Signal{Name: request.Name, SignalId: request.SignalId, Payload: proto.CloneOf(request.Payload)})
		return &kagziv1.SignalWorkflowResponse{}, nil
	})
}

// ListSignals is the signals of a run, in the order in which they came.
func (w *World) ListSignals(ctx context.Context, request *kagziv1.ListSignalsRequest, _ ...grpc.CallOption) (*kagziv1.ListSignalsResponse, error) {
	return call(w, ctx, "WorkflowService/ListSignals", func() (*kagziv1.ListSignalsResponse, error) {
		r, err := w.runOf(request)
		if err != nil {
			return nil, err
		}
		signals, page, err := pageOf(request, request.Page, listing[*kagziv1.Signal]{
			n: len(r.signals), key: func(i int) string { return fmt.Sprintf("%010d", i) },
			show: func(i int) *kagziv1.Signal { return proto.CloneOf(r.signals[i]) },
		})
		return &kagziv1.ListSignalsResponse{Signals: signals, Page: page}, err
	})
}
