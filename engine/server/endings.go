package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The operations by which a worker's hold of a run ends, and the note that it leaves meanwhile.

func (s *Server) completeWorkflow(ctx context.Context, r *kagziv1.CompleteWorkflowRequest) (*kagziv1.CompleteWorkflowResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.CompleteRunParams{Lease: lease, Output: payloadOf(r.Output), Now: s.now()}
	if err := engine.CheckPayload("output", p.Output); err != nil {
		return nil, err
	}
	if r.ContinueAs != nil {
		next, err := s.continuationOf(ctx, lease.Namespace, r.ContinueAs)
		if err != nil {
			return nil, within("continue_as", err)
		}
		p.ContinueAs = &next
	}
	began := s.options.Clock()
	completed, err := s.store.CompleteRun(ctx, p)
	if err != nil {
		return nil, err
	}
	s.wrote(s.options.Clock().Sub(began))
	s.count(deedOf(completed.Status))
	if p.ContinueAs != nil && completed.ContinuedAs == p.ContinueAs.ID {
		s.count(runStarted)
	}
	return &kagziv1.CompleteWorkflowResponse{
		Status: kagziv1.WorkflowStatus(completed.Status), ContinuedAsRunId: completed.ContinuedAs.String(),
	}, nil
}

func (s *Server) failWorkflow(ctx context.Context, r *kagziv1.FailWorkflowRequest) (*kagziv1.FailWorkflowResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	failure, err := failureOf(r.Error)
	if err != nil {
		return nil, err
	}
	p := engine.FailRunParams{Lease: lease, Failure: failure, Now: s.now(), Roll: engine.Jitter()}
	began := s.options.Clock()
	verdict, err := s.store.FailRun(ctx, p)
	if err != nil {
		return nil, err
	}
	s.wrote(s.options.Clock().Sub(began))
	if verdict.Retry {
		if verdict.Failures > 0 {
			s.log.Info("run will be retried", "run", lease.RunID, "failures", verdict.Failures, "at", verdict.RetryAt, "delay", verdict.RetryAt.Sub(p.Now))
		}
		return &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus(verdict.Status), RetryAt: timeTo(verdict.RetryAt)}, nil
	}
	s.count(deedOf(verdict.Status))
	if verdict.Status == engine.RunFailed {
		s.noteFailed(ctx, lease, failure)
	}
	if verdict.Handler && verdict.Status == engine.RunFailed {
		s.log.Warn("failure handler failed; no handler is started for it", "run", lease.RunID)
	}
	return &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus(verdict.Status)}, nil
}

func (s *Server) releaseTask(ctx context.Context, r *kagziv1.ReleaseTaskRequest) (*kagziv1.ReleaseTaskResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := s.store.Release(ctx, engine.ReleaseParams{Lease: lease, Park: r.Park, Now: s.now()}); err != nil {
		return nil, err
	}
	return &kagziv1.ReleaseTaskResponse{}, nil
}

// notesLease is a SetNote as one about a run of a namespace.
type notesLease struct {
	*kagziv1.SetNote
	namespace string
}

func (n notesLease) GetNamespace() string { return n.namespace }

// setNote records the run's own line. Only a session knows its worker's namespace; otherwise that is empty, and the token alone decides.
func (s *Server) setNote(ctx context.Context, namespace string, r *kagziv1.SetNote) (*kagziv1.Ack, error) {
	lease, err := s.leaseOf(ctx, notesLease{r, namespace})
	if err != nil {
		return nil, err
	}
	if r.LeaseToken != "" {
		lease.Namespace = namespace
	}
	if err := engine.CheckText("note", r.Note, engine.MaxNote); err != nil {
		return nil, err
	}
	if err := s.store.SetNote(ctx, engine.SetNoteParams{Lease: lease, Note: r.Note, Now: s.now()}); err != nil {
		return nil, err
	}
	return &kagziv1.Ack{}, nil
}
