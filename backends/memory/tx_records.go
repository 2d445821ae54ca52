package memory

import (
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// schedule returns the schedule with the smallest id that the filter accepts, for a change; nil if
// there is none.
func (t *tx) schedule(take func(*engine.Schedule) bool) *engine.Schedule {
	var found *engine.Schedule
	for _, s := range t.db.schedules {
		if take(s) && (found == nil || compareIDs(s.ID, found.ID) < 0) {
			found = s
		}
	}
	if found == nil {
		return nil
	}
	schedule := *found
	return &schedule
}

func (t *tx) Schedule(namespace, ref string) (*engine.Schedule, error) {
	if id, err := engine.ParseID(ref); err == nil {
		found := t.schedule(func(s *engine.Schedule) bool {
			return s.ID == id && (namespace == "" || s.Namespace == namespace)
		})
		if found != nil {
			return found, nil
		}
	}
	return t.schedule(func(s *engine.Schedule) bool {
		return s.Name == ref && ref != "" && (namespace == "" || s.Namespace == namespace)
	}), nil
}

func (t *tx) ScheduleByRequest(namespace, requestID string) (*engine.Schedule, error) {
	return t.schedule(func(s *engine.Schedule) bool {
		return s.Namespace == namespace && s.RequestID == requestID && requestID != ""
	}), nil
}

func (t *tx) InsertSchedule(s *engine.Schedule) error {
	t.useNamespace(s.Namespace, s.CreatedAt)
	row := *s
	put(t, t.db.schedules, s.ID, &row)
	return nil
}

func (t *tx) SaveSchedule(s *engine.Schedule) error {
	row, old := *s, t.db.schedules[s.ID]
	row.Namespace, row.RequestID, row.CreatedAt = old.Namespace, old.RequestID, old.CreatedAt
	put(t, t.db.schedules, s.ID, &row)
	return nil
}

func (t *tx) DeleteSchedule(id engine.ID) error {
	for f := range t.db.fires {
		if f.Schedule == id {
			remove(t, t.db.fires, f)
		}
	}
	remove(t, t.db.schedules, id)
	return nil
}

func (t *tx) WaitingSchedules(namespace string) (ids []engine.ID, err error) {
	for id, s := range t.db.schedules {
		if s.Namespace == namespace && !s.Buffered.IsZero() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}

func (t *tx) OpenOf(schedule, but engine.ID) (int, error) {
	return len(t.ids(func(r *Run) bool {
		return r.ScheduleID == schedule.String() && !r.Status.Ended() && r.ID != but
	})), nil
}

func (t *tx) InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error) {
	f := Fire{schedule, tick}
	if _, known := t.db.fires[f]; known {
		return false, nil
	}
	put(t, t.db.fires, f, fired{run, now})
	return true, nil
}

func (t *tx) FiredRun(schedule engine.ID, tick time.Time) (engine.ID, error) {
	return t.db.fires[Fire{schedule, tick}].run, nil
}

func (t *tx) Namespace(name string) (*engine.Namespace, error) {
	n := t.db.namespaces[name]
	if n == nil {
		return nil, nil
	}
	row := *n
	return &row, nil
}

func (t *tx) InsertNamespace(n *engine.Namespace) error {
	row := *n
	put(t, t.db.namespaces, n.Name, &row)
	return nil
}

func (t *tx) SaveNamespace(n *engine.Namespace) error { return t.InsertNamespace(n) }

// useNamespace makes the namespace on its first use.
func (t *tx) useNamespace(name string, now time.Time) {
	if t.db.namespaces[name] == nil {
		now = engine.Micros(now)
		row := &engine.Namespace{Name: name, ID: storelogic.NamespaceID(name), Enabled: true, CreatedAt: now,
			UpdatedAt: now}
		put(t, t.db.namespaces, name, row)
	}
}

// disabled says whether the namespace exists and is disabled.
func (t *tx) disabled(name string) bool {
	n := t.db.namespaces[name]
	return n != nil && !n.Enabled
}

func (t *tx) HandlerQueue(namespace, workflowType string) (string, error) {
	serving := t.workersBy(func(w *engine.Worker) bool {
		return w.Namespace == namespace && w.Status == engine.WorkerOnline && slices.Contains(w.Types, workflowType)
	})
	if len(serving) == 0 {
		return "", nil
	}
	return serving[0].Queues[0], nil
}

func (t *tx) apiKey(take func(*engine.APIKey) bool) *engine.APIKey {
	for _, k := range t.db.keys {
		if take(k) {
			row := *k
			return &row
		}
	}
	return nil
}

func (t *tx) APIKey(id engine.ID) (*engine.APIKey, error) {
	return t.apiKey(func(k *engine.APIKey) bool { return k.ID == id }), nil
}

func (t *tx) APIKeyNamed(name string) (*engine.APIKey, error) {
	return t.apiKey(func(k *engine.APIKey) bool { return k.Name == name && k.RevokedAt.IsZero() }), nil
}

func (t *tx) CountAPIKeys() (all, lasting int, err error) {
	for _, k := range t.db.keys {
		if !k.RevokedAt.IsZero() {
			continue
		}
		all++
		if k.Role == engine.RoleAdmin && len(k.Namespaces) == 0 && k.ExpiresAt.IsZero() {
			lasting++
		}
	}
	return all, lasting, nil
}

func (t *tx) InsertAPIKey(k *engine.APIKey) error {
	row := *k
	put(t, t.db.keys, k.ID, &row)
	return nil
}

func (t *tx) RevokeAPIKey(id engine.ID, at time.Time) error {
	row := *t.db.keys[id]
	row.RevokedAt = at
	put(t, t.db.keys, id, &row)
	return nil
}

func (t *tx) InsertAudit(e engine.AuditEvent) error {
	put(t, t.db.audit, e.ID, e)
	return nil
}
