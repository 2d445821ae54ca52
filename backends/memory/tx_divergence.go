package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// diverged returns the runs that wait and from which builds have diverged, but for those that were
// asked to stop, by the time at which they are due.
func (t *tx) diverged() []*Run {
	runs := t.find(func(r *Run) bool {
		return len(r.Divergences) > 0 && !r.AvailableAt.IsZero() && r.CancelRequestedAt.IsZero()
	})
	slices.SortFunc(runs, byAge)
	return runs
}

func kindOf(r *Run) storelogic.DivergedKind {
	return storelogic.DivergedKind{Builds: r.Builds(), Lane: engine.Run{
		Namespace: r.Namespace, Queue: r.Queue, Type: r.Type, Requirements: r.Requirements}}
}

func sameKind(a, b storelogic.DivergedKind) bool {
	return a.Builds == b.Builds && a.Lane.Namespace == b.Lane.Namespace && a.Lane.Queue == b.Lane.Queue &&
		a.Lane.Type == b.Lane.Type && maps.Equal(a.Lane.Requirements, b.Lane.Requirements)
}

func (t *tx) DivergedKinds() (kinds []storelogic.DivergedKind, err error) {
	for _, r := range t.diverged() {
		kind := kindOf(r)
		if !slices.ContainsFunc(kinds, func(k storelogic.DivergedKind) bool { return sameKind(k, kind) }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

func (t *tx) DivergedRuns(kind storelogic.DivergedKind, limit int) (ids []engine.ID, err error) {
	for _, r := range t.diverged() {
		if len(ids) < limit && sameKind(kindOf(r), kind) {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

func (t *tx) InService(namespace string) ([]engine.Worker, error) {
	return t.workersBy(func(w *engine.Worker) bool {
		return w.Namespace == namespace && w.Status == engine.WorkerOnline
	}), nil
}

func (t *tx) BuildOf(worker string) (string, error) {
	if w := t.db.workers[worker]; w != nil {
		return w.BuildID, nil
	}
	return "", nil
}

// PauseDiverged reads first, because most of the time no run has diverged.
func (s *Store) PauseDiverged(ctx context.Context, p engine.PauseDivergedParams) ([]engine.ID, error) {
	kinds, err := read(ctx, s, "DivergedKinds", (*tx).DivergedKinds)
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	return s.Operations.PauseDiverged(ctx, p)
}
