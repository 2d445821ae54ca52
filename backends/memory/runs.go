package memory

import (
	"context"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// StartRuns makes runs, each of which may be refused alone.
func (s *Store) StartRuns(ctx context.Context, starts []engine.StartRun) ([]engine.Started, error) {
	h := hands{takers: engine.HandoffOf(ctx)}
	answers, err := write(ctx, s, "StartRuns", starts, func(t *tx) ([]engine.Started, error) {
		h.ask(t, starts)
		answers := make([]engine.Started, len(starts))
		for i := range starts {
			answers[i] = t.start(&starts[i], &h)
		}
		return answers, nil
	})
	h.settle(err)
	return answers, err
}

// start makes the run if nothing stands against it.
func (t *tx) start(p *engine.StartRun, h *hands) engine.Started {
	answer, repeated := t.requestedBefore(p)
	switch {
	case repeated:
		return answer
	case t.disabled(p.Namespace):
		return engine.Started{Err: engine.NamespaceDisabled(p.Namespace)}
	case t.insertRun(p):
		t.Ring(engine.Notification{Kind: engine.NotifyQueue, Namespace: p.Namespace, Name: p.Queue, Claimed: h.give(t, p.ID)})
		if !p.DeadlineAt.IsZero() {
			t.Ring(engine.Notification{Kind: engine.NotifyTimer})
		}
		return engine.Started{RunID: p.ID}
	}
	old := t.external(p.Namespace, p.ExternalID, p.Reuse == engine.ReuseNever)
	if p.Reuse == engine.ReuseReject {
		return engine.Started{RunID: old.ID, Existed: true, Err: engine.ExternalIDTaken(p.ExternalID, old.ID, old.Status)}
	}
	if p.RequestID != "" {
		kept := *p
		put(t, t.db.requests, name{p.Namespace, p.RequestID}, request{old.ID, &kept})
	}
	return engine.Started{RunID: old.ID, Existed: true}
}

// requestedBefore is what the request, or the start of this very id, was answered before; it is refused if it asked for something else.
func (t *tx) requestedBefore(p *engine.StartRun) (answer engine.Started, repeated bool) {
	answer.Repeated = true
	var first *engine.Run
	q, known := t.db.requests[name{p.Namespace, p.RequestID}]
	id := t.first(func(r *Run) bool {
		return r.Namespace == p.Namespace && r.RequestID == p.RequestID && p.RequestID != ""
	})
	switch {
	case !id.IsZero():
		answer.RunID, first = id, &t.db.runs[id].Run
	case known && p.RequestID != "":
		answer.RunID, answer.Existed, first = q.run, true, &q.start.Run
	case t.db.runs[p.ID] != nil && t.db.runs[p.ID].Namespace == p.Namespace:
		answer.RunID, first = p.ID, &t.db.runs[p.ID].Run
	default:
		return engine.Started{}, false
	}
	if first.Queue != p.Queue || first.Type != p.Type || first.ExternalID != p.ExternalID || !first.Input.Equal(p.Input) {
		return engine.Started{Err: engine.StartConflict(answer.RunID)}, true
	}
	return answer, true
}

// CancelRun ends the run, or tells its code.
func (s *Store) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(ctx, s, "CancelRun", storelogic.CancelRun, p)
}

// TerminateRun ends the run.
func (s *Store) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(ctx, s, "TerminateRun", storelogic.TerminateRun, p)
}

// PauseRun keeps the run from the workers.
func (s *Store) PauseRun(ctx context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(ctx, s, "PauseRun", storelogic.PauseRun, p)
}

// ResumeRun gives a paused run back.
func (s *Store) ResumeRun(ctx context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(ctx, s, "ResumeRun", storelogic.ResumeRun, p)
}

// PinRun keeps a run from Prune.
func (s *Store) PinRun(ctx context.Context, p engine.PinRunParams) (engine.Run, error) {
	return verb(ctx, s, "PinRun", storelogic.PinRun, p)
}

// SignalRun keeps a signal for the run.
func (s *Store) SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	return verb(ctx, s, "SignalRun", storelogic.SignalRun, p)
}

// RetryRun makes a new run out of one that has ended.
func (s *Store) RetryRun(ctx context.Context, p engine.RetryRunParams) (engine.Started, error) {
	return verb(ctx, s, "RetryRun", storelogic.RetryRun, p)
}

// OverrideStep records a result for a step.
func (s *Store) OverrideStep(ctx context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	return verb(ctx, s, "OverrideStep", storelogic.OverrideStep, p)
}

// ImportRuns makes runs as they are given.
func (s *Store) ImportRuns(ctx context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	return verb(ctx, s, "ImportRuns", storelogic.ImportRuns, p)
}

// CreateSchedule makes a schedule.
func (s *Store) CreateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(ctx, s, "CreateSchedule", storelogic.CreateSchedule, p)
}

// UpdateSchedule replaces what a person decides about a schedule.
func (s *Store) UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(ctx, s, "UpdateSchedule", storelogic.UpdateSchedule, p)
}

// DeleteSchedule deletes a schedule; its runs stay.
func (s *Store) DeleteSchedule(ctx context.Context, p engine.DeleteScheduleParams) error {
	_, err := verb(ctx, s, "DeleteSchedule", silent(storelogic.DeleteSchedule), p)
	return err
}

// FireSchedule starts the runs of ticks.
func (s *Store) FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	return verb(ctx, s, "FireSchedule", storelogic.FireSchedule, p)
}

// TriggerSchedule starts one run beside the ticks.
func (s *Store) TriggerSchedule(ctx context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	return verb(ctx, s, "TriggerSchedule", storelogic.TriggerSchedule, p)
}

// CreateNamespace makes a namespace.
func (s *Store) CreateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return verb(ctx, s, "CreateNamespace", storelogic.CreateNamespace, p)
}

// UpdateNamespace replaces what a person decides about a namespace.
func (s *Store) UpdateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return verb(ctx, s, "UpdateNamespace", storelogic.UpdateNamespace, p)
}

// CreateKey makes a key.
func (s *Store) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	return verb(ctx, s, "CreateKey", storelogic.CreateKey, p)
}

// RevokeKey makes a key worthless.
func (s *Store) RevokeKey(ctx context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	return verb(ctx, s, "RevokeKey", storelogic.RevokeKey, p)
}

// NoteKeyUse moves LastUsedAt forward.
func (s *Store) NoteKeyUse(ctx context.Context, uses []engine.KeyUse) error {
	_, err := write(ctx, s, "NoteKeyUse", uses, func(t *tx) (none struct{}, err error) {
		for _, use := range uses {
			at := engine.Micros(use.At)
			if k := t.db.keys[use.ID]; k != nil && at.After(k.LastUsedAt) {
				row := *k
				row.LastUsedAt = at
				put(t, t.db.keys, use.ID, &row)
			}
		}
		return none, nil
	})
	return err
}

// NoteRefusal leaves the first event of an id as it is.
func (s *Store) NoteRefusal(ctx context.Context, e engine.AuditEvent) error {
	_, err := write(ctx, s, "NoteRefusal", e, func(t *tx) (none struct{}, err error) {
		if _, known := t.db.audit[e.ID]; !known {
			e.At = engine.Micros(e.At)
			put(t, t.db.audit, e.ID, e)
		}
		return none, nil
	})
	return err
}
