package memory

import (
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// most returns the first of some items, in an order.
func most[V any](items []V, limit int, compare func(a, b V) int) []V {
	slices.SortFunc(items, compare)
	return items[:min(limit, len(items))]
}

func (t *tx) Contents(namespace string) (c engine.Contents, err error) {
	const limit = engine.MaxContents + 1
	in := func(r *Run) bool { return r.Namespace == namespace }
	schedules, _ := t.SchedulesOf(namespace, limit)
	live := t.workersBy(func(w *engine.Worker) bool {
		return w.Namespace == namespace && w.Status != engine.WorkerOffline
	})
	keys, _ := t.Keyring()
	hooks, _ := t.CountHooks(namespace)
	return engine.Contents{Runs: int64(min(limit, len(t.ids(in)))), Schedules: int64(len(schedules)),
		Hooks: int64(hooks), Workers: int64(min(limit, len(live))), Keys: engine.KeysOf(keys, namespace)}, nil
}

func (t *tx) DeleteNamespace(name string) error {
	_, _ = t.DeleteWorkers(name)
	_, _ = t.DeletePastRequests(name, len(t.db.past))
	remove(t, t.db.namespaces, name)
	return nil
}

func (t *tx) SchedulesOf(namespace string, limit int) (ids []engine.ID, err error) {
	for id, s := range t.db.schedules {
		if s.Namespace == namespace {
			ids = append(ids, id)
		}
	}
	return most(ids, limit, compareIDs), nil
}

func (t *tx) OpenRunsOf(namespace string, limit int) ([]engine.ID, error) {
	return most(t.ids(func(r *Run) bool { return r.Namespace == namespace && !r.Status.Ended() }), limit,
		compareIDs), nil
}

func (t *tx) DeleteEndedRuns(namespace string, limit int) (int, error) {
	ended := most(t.ids(func(r *Run) bool { return r.Namespace == namespace && r.Status.Ended() }), limit, compareIDs)
	for _, id := range ended {
		for n, q := range t.db.requests {
			if q.run == id {
				remove(t, t.db.requests, n)
			}
		}
		t.putRun(id, nil)
	}
	return len(ended), nil
}

func (t *tx) DeletePastRequests(namespace string, limit int) (int, error) {
	var past []name
	for n := range t.db.past {
		if n.namespace == namespace {
			past = append(past, n)
		}
	}
	past = most(past, limit, func(a, b name) int { return strings.Compare(a.name, b.name) })
	for _, n := range past {
		remove(t, t.db.past, n)
	}
	return len(past), nil
}

func (t *tx) DeleteWorkers(namespace string) (live []string, err error) {
	for _, w := range t.workersBy(func(w *engine.Worker) bool { return w.Namespace == namespace }) {
		if w.Status != engine.WorkerOffline {
			live = append(live, w.ID)
		}
		remove(t, t.db.workers, w.ID)
		remove(t, t.db.losses, w.ID)
	}
	return live, nil
}

// Keyring returns the keys that are not revoked, by id.
func (t *tx) Keyring() (keys []engine.APIKey, err error) {
	for _, k := range t.db.keys {
		if k.RevokedAt.IsZero() {
			keys = append(keys, *k)
		}
	}
	slices.SortFunc(keys, func(a, b engine.APIKey) int { return compareIDs(a.ID, b.ID) })
	return keys, nil
}

func (t *tx) SaveKeyNamespaces(id engine.ID, namespaces []string) error {
	row := *t.db.keys[id]
	row.Namespaces = namespaces
	put(t, t.db.keys, id, &row)
	return nil
}
