package postgres

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// Caches of rows that nearly every start needs and that rarely change: namespaces and lanes. Other
// servers make them too. A deleted namespace loses its rows, and a failover to a standby that lags
// behind the newest; a server that does not find a cached row empties its caches.

// remember adds what a committed transaction has made or found to the caches.
func (s *Store) remember(t *tx) {
	for key, id := range t.lanes {
		s.laneIDs.Store(key, id)
	}
	for name := range t.spaces {
		s.namespaces.Store(name, struct{}{})
	}
}

// forget empties the caches, after a cached row turned out to be missing.
func (s *Store) forget() {
	s.laneIDs.Clear()
	s.namespaces.Clear()
}

// ensureNamespace makes a namespace on its first use, in its own transaction.
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

// namespaceForUse returns a namespace in which the transaction makes something; nil if there is none.
// Store.DeleteNamespace waits for a transaction that has read the namespace, and later ones read
// again.
func (t *tx) namespaceForUse(name string) (*engine.Namespace, error) {
	n, err := t.Namespace(name)
	if err == nil && n == nil {
		t.store.forget()
	}
	return n, err
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

// ensureLane returns the id of a lane, which is made on its first use, in its own transaction.
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

// ensureLane returns the id of a lane, which is made on its first use.
func (t *tx) ensureLane(key laneKey) (id int64, err error) {
	if id, known := t.store.laneIDs.Load(key); known {
		return id.(int64), nil
	}
	if id, made := t.lanes[key]; made {
		return id, nil
	}
	a := args{"namespace": key.namespace, "task_queue": key.queue, "workflow_type": key.kind,
		"requirements": key.requirements, "priority": key.priority}
	// Another server may make it between the first read and the insert; then the second read finds
	// it.
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
