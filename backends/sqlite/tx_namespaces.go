package sqlite

import (
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/namespace_contents.sql
var namespaceContentsSQL string

func (t *tx) Contents(namespace string) (c engine.Contents, err error) {
	if err := t.flushCounts(); err != nil {
		return c, err
	}
	err = t.query(&namespaceContentsSQL, func(r *row) error {
		c = engine.Contents{Runs: r.num(), Schedules: r.num(), Workers: r.num(), Hooks: r.num()}
		return nil
	}, text("namespace", namespace), num("limit", engine.MaxContents+1))
	if err != nil {
		return c, err
	}
	keys, err := t.Keyring()
	c.Keys = engine.KeysOf(keys, namespace)
	return c, err
}

//go:embed sql/delete_lanes.sql
var deleteLanesSQL string

//go:embed sql/delete_namespace.sql
var deleteNamespaceSQL string

func (t *tx) DeleteNamespace(name string) error {
	if _, err := t.DeleteWorkers(name); err != nil {
		return err
	}
	if _, err := t.DeletePastRequests(name, -1); err != nil { // all
		return err
	}
	for _, statement := range []*string{&deleteLanesSQL, &deleteNamespaceSQL} {
		if _, err := t.exec(statement, text("namespace", name)); err != nil {
			return err
		}
	}
	t.queues.drop(name)
	return nil
}

// drop removes a namespace and its lanes from the cache.
func (k *queueCache) drop(namespace string) {
	delete(k.namespaces, namespace)
	for key := range k.lanes {
		if key.namespace == namespace {
			delete(k.lanes, key)
		}
	}
	for key := range k.lanesOf {
		if key.namespace == namespace {
			delete(k.lanesOf, key)
		}
	}
	for key := range k.running {
		if key.namespace == namespace {
			delete(k.running, key)
		}
	}
}

//go:embed sql/schedules_of.sql
var schedulesOfSQL string

func (t *tx) SchedulesOf(namespace string, limit int) ([]engine.ID, error) {
	return t.listIDs(&schedulesOfSQL, text("namespace", namespace), num("limit", limit))
}

//go:embed sql/open_runs_of.sql
var openRunsOfSQL string

func (t *tx) OpenRunsOf(namespace string, limit int) ([]engine.ID, error) {
	return t.listIDs(&openRunsOfSQL, text("namespace", namespace), num("limit", limit))
}

//go:embed sql/ended_runs_of.sql
var endedRunsOfSQL string

func (t *tx) DeleteEndedRuns(namespace string, limit int) (int, error) {
	var old []engine.ID
	rows := int64(0)
	err := t.query(&endedRunsOfSQL, func(r *row) error {
		id := r.id()
		if rows += r.num(); len(old) == 0 || rows <= prunedRows {
			old = append(old, id)
		}
		return nil
	}, text("namespace", namespace), num("limit", limit))
	if err != nil {
		return 0, err
	}
	for _, id := range old {
		if err := t.deleteRun(id); err != nil {
			return 0, err
		}
	}
	return len(old), nil
}

//go:embed sql/delete_past_requests.sql
var deletePastRequestsSQL string

func (t *tx) DeletePastRequests(namespace string, limit int) (int, error) {
	n, err := t.exec(&deletePastRequestsSQL, text("namespace", namespace), num("limit", limit))
	return int(n), err
}

//go:embed sql/delete_workers_of.sql
var deleteWorkersOfSQL string

func (t *tx) DeleteWorkers(namespace string) (live []string, err error) {
	_, err = t.returning(&deleteWorkersOfSQL, func(r *row) error {
		if id := r.text(); engine.WorkerStatus(r.num()) != engine.WorkerOffline {
			live = append(live, id)
		}
		return nil
	}, text("namespace", namespace))
	return live, err
}

// Keyring returns the keys that are not revoked, by id.
func (t *tx) Keyring() (keys []engine.APIKey, err error) {
	err = t.query(&keyringSQL, func(r *row) error {
		k, err := readAPIKey(r)
		keys = append(keys, k)
		return err
	})
	return keys, err
}

//go:embed sql/save_key_namespaces.sql
var saveKeyNamespacesSQL string

func (t *tx) SaveKeyNamespaces(id engine.ID, namespaces []string) error {
	_, err := t.exec(&saveKeyNamespacesSQL, idArg("key_id", id), text("namespaces", encodeList(namespaces)))
	return err
}
