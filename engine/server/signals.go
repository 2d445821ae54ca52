package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// SignalWorkflow delivers a signal.
func (s *Server) SignalWorkflow(ctx context.Context, request *kagziv1.SignalWorkflowRequest) (*kagziv1.SignalWorkflowResponse, error) {
	namespace, id, err := runOf(request)
	if err != nil {
		return nil, err
	}
	p := engine.SignalRunParams{
		Namespace: namespace, RunID: id, Name: request.Name, SignalID: request.SignalId, Payload: payloadOf(request.Payload), Now: s.now(),
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	signalled, err := s.store.SignalRun(ctx, p)
	if err != nil {
		return nil, err
	}
	return &kagziv1.SignalWorkflowResponse{AlreadyDelivered: signalled.Repeated}, nil
}

// ListSignals is the signals of a run, in the order in which they came.
func (s *Server) ListSignals(ctx context.Context, request *kagziv1.ListSignalsRequest) (*kagziv1.ListSignalsResponse, error) {
	namespace, id, err := runOf(request)
	if err != nil {
		return nil, err
	}
	page, err := pageOf(request, request.Page, behindSeries)
	if err != nil {
		return nil, err
	}
	signals, info, err := s.store.ListSignals(ctx, namespace, id, page)
	if err != nil {
		return nil, err
	}
	list, around := pageOfItems(request, page, info, signals, signalTo, func(s *engine.Signal) engine.Cursor {
		return engine.Cursor{Number: s.Sequence}
	})
	return &kagziv1.ListSignalsResponse{Signals: list, Page: around}, nil
}

func signalTo(s *engine.Signal) *kagziv1.Signal {
	return &kagziv1.Signal{
		Sequence: s.Sequence, Name: s.Name, SignalId: s.SignalID, Payload: payloadTo(s.Payload),
		ReceivedAt: timeTo(s.ReceivedAt), StepName: optional(s.StepName),
	}
}
