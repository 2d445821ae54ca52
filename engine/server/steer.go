package server

import (
	"context"
	"log/slog"
	"strings"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// This file holds the changes of open runs.

// CancelWorkflow ends a run at once or, with a grace, asks its code to stop.
func (s *Server) CancelWorkflow(ctx context.Context,
	request *kagziv1.CancelWorkflowRequest) (*kagziv1.CancelWorkflowResponse, error) {
	p, err := s.endOf(ctx, request)
	if err != nil {
		return nil, err
	}
	if p.Grace, err = wire.DelayOf("grace", request.Grace); err != nil {
		return nil, err
	}
	p.Margin = s.store.Uncertainty()
	end, err := s.store.CancelRun(ctx, p)
	if err != nil {
		return nil, err
	}
	s.ended(p, end)
	return &kagziv1.CancelWorkflowResponse{
		Cancelled: end.Status == engine.RunCancelled, Status: kagziv1.WorkflowStatus(end.Status),
		Requested: !end.GraceUntil.IsZero() && !end.Status.Ended(), GraceUntil: wire.TimeTo(end.GraceUntil),
	}, nil
}

// TerminateWorkflow ends a run at once.
func (s *Server) TerminateWorkflow(ctx context.Context,
	request *kagziv1.TerminateWorkflowRequest) (*kagziv1.TerminateWorkflowResponse, error) {
	p, err := s.endOf(ctx, request)
	if err != nil {
		return nil, err
	}
	end, err := s.store.TerminateRun(ctx, p)
	if err != nil {
		return nil, err
	}
	s.ended(p, end)
	return &kagziv1.TerminateWorkflowResponse{Terminated: true, Status: kagziv1.WorkflowStatus(end.Status)}, nil
}

// ended counts and records as an event that a call ended a run or asked its code to stop.
func (s *Server) ended(p engine.EndRunParams, end engine.RunEnd) {
	if !end.Changed {
		return
	}
	message := "run to be cancelled"
	if end.Status.Ended() {
		s.recorder.Count(metrics.RunEnded(end.Status))
		message = "run " + strings.ToLower(end.Status.String())
	}
	s.recorder.Events.Note(slog.LevelInfo, message, slog.Any("run", p.RunID), slog.String("namespace", p.Namespace),
		slog.String("by", p.By.Name), slog.String("peer", p.By.Peer), slog.String("reason", p.Reason))
}

// PauseWorkflow keeps a run from workers.
func (s *Server) PauseWorkflow(ctx context.Context,
	request *kagziv1.PauseWorkflowRequest) (*kagziv1.PauseWorkflowResponse, error) {
	p, err := s.steerOf(ctx, request)
	if err != nil {
		return nil, err
	}
	run, err := s.store.PauseRun(ctx, engine.PauseRunParams{SteerParams: p, AtOnce: request.Now})
	if err != nil {
		return nil, err
	}
	return &kagziv1.PauseWorkflowResponse{Workflow: wire.RunTo(&run)}, nil
}

// ResumeWorkflow lets workers take a paused run again.
func (s *Server) ResumeWorkflow(ctx context.Context,
	request *kagziv1.ResumeWorkflowRequest) (*kagziv1.ResumeWorkflowResponse, error) {
	p, err := s.steerOf(ctx, request)
	if err != nil {
		return nil, err
	}
	run, err := s.store.ResumeRun(ctx, engine.ResumeRunParams{SteerParams: p,
		AcceptDivergence: request.GetAcceptDivergence()})
	if err != nil {
		return nil, err
	}
	return &kagziv1.ResumeWorkflowResponse{Workflow: wire.RunTo(&run)}, nil
}

// PinWorkflow exempts a run from retention, or ends that.
func (s *Server) PinWorkflow(ctx context.Context,
	request *kagziv1.PinWorkflowRequest) (*kagziv1.PinWorkflowResponse, error) {
	p, err := s.steerOf(ctx, request)
	if err != nil {
		return nil, err
	}
	run, err := s.store.PinRun(ctx, engine.PinRunParams{SteerParams: p, Pinned: request.Pinned})
	if err != nil {
		return nil, err
	}
	return &kagziv1.PinWorkflowResponse{Workflow: wire.RunTo(&run)}, nil
}

// steered is a request to change a run.
type steered interface {
	GetNamespace() string
	GetRunId() string
	GetReason() string
}

// steerOf reads the fields that every request to change a run has.
func (s *Server) steerOf(ctx context.Context, r steered) (engine.SteerParams, error) {
	namespace, id, err := wire.RunOf(r)
	if err != nil {
		return engine.SteerParams{}, err
	}
	now := s.now()
	return engine.SteerParams{
		Namespace: namespace, RunID: id, Reason: r.GetReason(), By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now,
	}, engine.CheckReason(r.GetReason())
}

func (s *Server) endOf(ctx context.Context, r steered) (engine.EndRunParams, error) {
	p, err := s.steerOf(ctx, r)
	return engine.EndRunParams{Namespace: p.Namespace, RunID: p.RunID, Reason: p.Reason, By: p.By, AuditID: p.AuditID,
		Now: p.Now}, err
}
