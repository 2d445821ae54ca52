package memory

import (
	"context"

	"github.com/kagzi/kagzi/engine"
)

// StartRuns makes runs; each may be refused alone.
func (s *Store) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	h, starts := handoffs{handoff: p.Handoff}, p.Runs
	answers, err := write(ctx, s, "StartRuns", p, func(t *tx) ([]engine.Started, error) {
		h.ask(t, starts)
		answers := make([]engine.Started, len(starts))
		for i := range starts {
			answers[i] = t.start(&starts[i], p.NamespaceMustExist, &h)
		}
		return answers, nil
	})
	h.settle(err)
	return answers, err
}

// start makes the run unless a rule of StartRuns prevents it.
func (t *tx) start(p *engine.StartRun, must bool, h *handoffs) engine.Started {
	if err := engine.MustExist(p.Namespace, t.db.namespaces[p.Namespace] != nil, must); err != nil {
		return engine.Started{Err: err}
	}
	answer, repeated := t.requestedBefore(p)
	switch {
	case repeated:
		return answer
	case t.disabled(p.Namespace):
		return engine.Started{Err: engine.NamespaceDisabled(p.Namespace)}
	case t.insertRun(p):
		t.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: p.Namespace, Name: p.Queue,
			Claimed: h.claimFor(t, p.ID)})
		if !p.DeadlineAt.IsZero() {
			t.Notify(engine.Notification{Kind: engine.NotifyTimer})
		}
		return engine.Started{RunID: p.ID}
	}
	old := t.external(p.Namespace, p.ExternalID, p.Reuse == engine.ReuseNever)
	if p.Reuse == engine.ReuseReject {
		return engine.Started{RunID: old.ID, Existed: true,
			Err: engine.ExternalIDTaken(p.ExternalID, old.ID, old.Status)}
	}
	if !old.Status.Ended() && old.Type != p.Type {
		return engine.Started{Err: engine.ExternalIDOfOtherType(p.ExternalID, old.ID, old.Type)}
	}
	if p.RequestID != "" {
		kept := *p
		put(t, t.db.requests, name{p.Namespace, p.RequestID}, request{old.ID, &kept, engine.Micros(p.CreatedAt)})
	}
	return engine.Started{RunID: old.ID, Existed: true, OtherInput: !old.Input.Equal(p.Input)}
}

// requestedBefore returns the earlier answer to the request, or to a start with this run id. A
// request for something else is refused.
func (t *tx) requestedBefore(p *engine.StartRun) (answer engine.Started, repeated bool) {
	answer.Repeated = true
	var first *engine.Run
	q, known := t.db.requests[name{p.Namespace, p.RequestID}]
	past, gone := t.db.past[name{p.Namespace, p.RequestID}]
	id := t.first(func(r *Run) bool {
		return r.Namespace == p.Namespace && r.RequestID == p.RequestID && p.RequestID != ""
	})
	switch {
	case !id.IsZero():
		answer.RunID, first = id, &t.db.runs[id].Run
	case gone && p.RequestID != "":
		answer.RunID, answer.Existed = past.run, true
		asked := past.start.Run
		asked.Input, first = p.Input, &asked // the input is not kept
	case known && p.RequestID != "":
		answer.RunID, answer.Existed, first = q.run, true, &q.start.Run
	case t.db.runs[p.ID] != nil && t.db.runs[p.ID].Namespace == p.Namespace:
		answer.RunID, first = p.ID, &t.db.runs[p.ID].Run
	default:
		return engine.Started{}, false
	}
	if first.Queue != p.Queue || first.Type != p.Type || first.ExternalID != p.ExternalID ||
		!first.Input.Equal(p.Input) {
		return engine.Started{Err: engine.StartConflict(answer.RunID)}, true
	}
	if r := t.db.runs[answer.RunID]; answer.Existed && r != nil {
		answer.OtherInput = !r.Input.Equal(p.Input)
	}
	return answer, true
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

// NoteRefusal keeps the first event of an id.
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
