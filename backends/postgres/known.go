package postgres

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// What the store remembers of the rows that nearly every start needs and that hardly ever change:
// the namespaces and the lanes. Other servers make them too, but nobody deletes any. Only a
// failover to a database that lags behind loses those that were made last.

// remember keeps what a transaction has made or found of them, now that it is committed.
func (s *Store) remember(t *tx) {
	for key, id := range t.lanes {
		s.laneIDs.Store(key, id)
	}
	for name := range t.spaces {
		s.namespaces.Store(name, struct{}{})
	}
}

// forget is for when some of it turns out to be gone.
func (s *Store) forget() {
	s.laneIDs.Clear()
	s.namespaces.Clear()
}

// ensureNamespace makes a namespace on its first use, in a transaction of its own.
func (s *Store) ensureNamespace(name string, now time.Time) error {
	if _, known := s.namespaces.Load(name); known {
		return nil
	}
	_, err := writeEntered(s, "make a namespace", func(t *tx) (none struct{}, err error) {
		return none, t.ensureNamespace(name, now)
	})
	return err
}

//go:embed sql/ensure_namespace.sql
var ensureNamespaceSQL string

// ensureNamespace makes a namespace on its first use.
func (t *tx) ensureNamespace(name string, now time.Time) error {
	_, known := t.store.namespaces.Load(name)
	_, made := t.spaces[name]
	if known || made {
		return nil
	}
	t.makes(name)
	return t.queue(ensureNamespaceSQL, args{"namespace": name, "id": [16]byte(storelogic.NamespaceID(name)),
		"now": micros(now)})
}

func (t *tx) makes(namespace string) {
	if t.spaces == nil {
		t.spaces = map[string]struct{}{}
	}
	t.spaces[namespace] = struct{}{}
}

type laneKey struct {
	namespace, queue, kind, requirements string
	priority                             int
}

func laneKeyOf(r *engine.StartRun) laneKey {
	return laneKey{r.Namespace, r.Queue, r.Type, mapText(r.Requirements), r.Priority}
}

// ensureLane is the id of a lane, which is made on its first use, in a transaction of its own.
func (s *Store) ensureLane(key laneKey) (int64, error) {
	if id, known := s.laneIDs.Load(key); known {
		return id.(int64), nil
	}
	return writeEntered(s, "make a lane", func(t *tx) (int64, error) { return t.ensureLane(key) })
}

//go:embed sql/get_lane.sql
var getLaneSQL string

//go:embed sql/insert_lane.sql
var insertLaneSQL string

// ensureLane is the id of a lane, which is made on its first use.
func (t *tx) ensureLane(key laneKey) (id int64, err error) {
	if id, known := t.store.laneIDs.Load(key); known {
		return id.(int64), nil
	}
	if id, made := t.lanes[key]; made {
		return id, nil
	}
	a := args{"namespace": key.namespace, "task_queue": key.queue, "workflow_type": key.kind,
		"requirements": key.requirements, "priority": key.priority}
	// Between the first look and the insert a rival may make it; then it is there for the second look.
	for _, statement := range []string{getLaneSQL, insertLaneSQL, getLaneSQL} {
		there, err := t.found(statement, a, &id)
		if err != nil {
			return 0, err
		}
		if there {
			break
		}
	}
	if t.lanes == nil {
		t.lanes = map[laneKey]int64{}
	}
	t.lanes[key] = id
	return id, nil
}
