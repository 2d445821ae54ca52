package session

import (
	"context"
	"log/slog"
	"strings"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// This file holds the operations that end a lease, and SetNote.

func (s *Service) completeWorkflow(ctx context.Context, at engine.Sequenced,
	r *kagziv1.CompleteWorkflowRequest) (*kagziv1.CompleteWorkflowResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.CompleteRunParams{Sequenced: at, Lease: lease, Output: wire.PayloadOf(r.Output),
		Unreached: r.Unreached, Unreceived: r.Unreceived, Now: s.store.Now()}
	if err := engine.CheckStepNames("unreceived", p.Unreceived); err != nil {
		return nil, err
	}
	if err := engine.CheckPayload("output", p.Output); err != nil {
		return nil, err
	}
	if err := engine.CheckUnreached(p.Unreached); err != nil {
		return nil, err
	}
	if r.ContinueAs != nil {
		next, err := s.starts.Continuation(ctx, lease.Namespace, r.ContinueAs)
		if err != nil {
			return nil, wire.Within("continue_as", err)
		}
		p.ContinueAs = &next
	}
	began := s.options.Clock()
	completed, err := s.store.CompleteRun(ctx, p)
	if err != nil {
		return nil, err
	}
	s.recorder.Wrote(s.options.Clock().Sub(began))
	s.recorder.Count(metrics.RunEnded(completed.Status))
	if p.ContinueAs != nil && completed.ContinuedAs == p.ContinueAs.ID {
		s.recorder.Count(metrics.RunStarted)
	}
	return &kagziv1.CompleteWorkflowResponse{
		Status: kagziv1.WorkflowStatus(completed.Status), ContinuedAsRunId: completed.ContinuedAs.String(),
	}, nil
}

func (s *Service) failWorkflow(ctx context.Context, at engine.Sequenced,
	r *kagziv1.FailWorkflowRequest) (*kagziv1.FailWorkflowResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	failure, err := wire.FailureOf(r.Error)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckUnreached(r.Unreached); err != nil {
		return nil, err
	}
	if err := engine.CheckStepNames("unreceived", r.Unreceived); err != nil {
		return nil, err
	}
	p := engine.FailRunParams{Sequenced: at, Lease: lease, Failure: failure, Unreached: r.Unreached,
		Unreceived: r.Unreceived, Now: s.store.Now(), Margin: s.store.Uncertainty(),
		Jitter: engine.Jitter()}
	began := s.options.Clock()
	verdict, err := s.store.FailRun(ctx, p)
	if err != nil {
		return nil, err
	}
	s.recorder.Wrote(s.options.Clock().Sub(began))
	if verdict.Retry {
		if verdict.Failures > 0 {
			s.log.Info("run will be retried", "run", lease.RunID, "failures", verdict.Failures, "at", verdict.RetryAt,
				"delay", verdict.RetryAt.Sub(p.Now))
		}
		return &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus(verdict.Status),
			RetryAt: wire.TimeTo(verdict.RetryAt)}, nil
	}
	s.recorder.Count(metrics.RunEnded(verdict.Status))
	if verdict.Status == engine.RunFailed {
		s.noteFailed(ctx, lease, failure)
	}
	if verdict.Handler && verdict.Status == engine.RunFailed {
		s.log.Warn("failure handler failed; no handler is started for it", "run", lease.RunID)
	}
	return &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus(verdict.Status)}, nil
}

func (s *Service) releaseTask(ctx context.Context, at engine.Sequenced,
	r *kagziv1.ReleaseTaskRequest) (*kagziv1.ReleaseTaskResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.ReleaseParams{Sequenced: at, Lease: lease, Park: r.Park, Now: s.store.Now()}
	if p.Divergence, err = wire.DivergenceOf(r.Divergence); err != nil {
		return nil, err
	}
	if p.Park && p.Divergence != nil {
		return nil, engine.Invalid("park", "must not be set with a divergence: the run goes to another build at once")
	}
	if err := s.store.Release(ctx, p); err != nil {
		return nil, err
	}
	if d := p.Divergence; d != nil {
		s.recorder.Events.Note(slog.LevelWarn, "code has diverged from a run's history", slog.Any("run", lease.RunID),
			slog.String("namespace", lease.Namespace), slog.String("made", firstCall(d.Made)),
			slog.String("owed", firstCall(d.Owed)))
	}
	return &kagziv1.ReleaseTaskResponse{}, nil
}

// firstCall names the first of some calls, for an event.
func firstCall(calls []engine.Call) string {
	if len(calls) == 0 {
		return "nothing"
	}
	return calls[0].Name
}

// notesLease is a SetNote with the namespace of its run.
type notesLease struct {
	*kagziv1.SetNote
	namespace string
}

func (n notesLease) GetNamespace() string { return n.namespace }

// setNote sets a run's note. Only a session knows its worker's namespace; otherwise the namespace
// is empty and only the token counts.
func (s *Service) setNote(ctx context.Context, at engine.Sequenced, namespace string,
	r *kagziv1.SetNote) (*kagziv1.Ack, error) {
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
	if err := s.store.SetRunNote(ctx, engine.SetNoteParams{
		Sequenced: at, Lease: lease, Note: r.Note, Now: s.store.Now()}); err != nil {
		return nil, err
	}
	return &kagziv1.Ack{}, nil
}

// noteFailed adds an event that a run failed for good. It reads the run for its type and queue, but
// only if the event is kept.
func (s *Service) noteFailed(ctx context.Context, l engine.Lease, f engine.Failure) {
	s.recorder.Events.NoteOf(slog.LevelWarn, "run failed", func() []slog.Attr {
		attributes := []slog.Attr{slog.Any("run", l.RunID), slog.String("namespace", l.Namespace)}
		if runs, err := s.store.GetRuns(ctx, l.Namespace, []engine.ID{l.RunID}); err == nil && len(runs) == 1 {
			attributes = append(attributes, slog.String("type", runs[0].Type), slog.String("queue", runs[0].Queue))
		}
		line, _, _ := strings.Cut(strings.TrimSpace(f.Message), "\n")
		return append(attributes, slog.String("error", line))
	})
}
