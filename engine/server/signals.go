package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// SignalWorkflow delivers a signal.
func (s *Server) SignalWorkflow(ctx context.Context,
	request *kagziv1.SignalWorkflowRequest) (*kagziv1.SignalWorkflowResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	p := engine.SignalRunParams{
		Namespace: namespace, RunID: id, Name: request.Name, SignalID: request.SignalId,
		Payload: wire.PayloadOf(request.Payload), Now: s.now(),
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

// ListSignals returns a page of the signals of a run, in order of arrival.
func (s *Server) ListSignals(ctx context.Context,
	request *kagziv1.ListSignalsRequest) (*kagziv1.ListSignalsResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BehindSeries)
	if err != nil {
		return nil, err
	}
	signals, info, err := s.store.ListSignals(ctx, namespace, id, page)
	if err != nil {
		return nil, err
	}
	list, around := wire.PageOfItems(request, page, info, signals, wire.SignalTo, func(s *engine.Signal) engine.Cursor {
		return engine.Cursor{Number: s.Sequence}
	})
	return &kagziv1.ListSignalsResponse{Signals: list, Page: around}, nil
}
