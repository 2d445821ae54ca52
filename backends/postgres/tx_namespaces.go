package postgres

import (
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/namespace_contents.sql
var namespaceContentsSQL string

// Contents is exact under the lock of Store.DeleteNamespace.
func (t *tx) Contents(namespace string) (c engine.Contents, err error) {
	_, err = t.found(namespaceContentsSQL, args{"namespace": namespace, "limit": engine.MaxContents + 1},
		&c.Runs, &c.Schedules, &c.Workers, &c.Hooks)
	if err != nil {
		return c, err
	}
	keys, err := t.Keyring()
	c.Keys = engine.KeysOf(keys, namespace)
	return c, err
}

//go:embed sql/delete_lanes.sql
var deleteLanesSQL string

//go:embed sql/delete_all_past_requests.sql
var deleteAllPastRequestsSQL string

//go:embed sql/delete_namespace.sql
var deleteNamespaceSQL string

// DeleteNamespace leaves the caches to Store.DeleteNamespace.
func (t *tx) DeleteNamespace(name string) error {
	if _, err := t.DeleteWorkers(name); err != nil {
		return err
	}
	for _, statement := range []string{deleteAllPastRequestsSQL, deleteLanesSQL, deleteNamespaceSQL} {
		if err := t.queue(statement, args{"namespace": name}); err != nil {
			return err
		}
	}
	return nil
}

//go:embed sql/schedules_of.sql
var schedulesOfSQL string

// SchedulesOf locks them.
func (t *tx) SchedulesOf(namespace string, limit int) ([]engine.ID, error) {
	return t.ids(schedulesOfSQL, args{"namespace": namespace, "limit": limit})
}

//go:embed sql/open_runs_of.sql
var openRunsOfSQL string

// OpenRunsOf locks none: ending a run locks it.
func (t *tx) OpenRunsOf(namespace string, limit int) ([]engine.ID, error) {
	return t.ids(openRunsOfSQL, args{"namespace": namespace, "limit": limit})
}

//go:embed sql/ended_runs_of.sql
var endedRunsOfSQL string

// DeleteEndedRuns locks the runs, so that nothing new refers to them.
func (t *tx) DeleteEndedRuns(namespace string, limit int) (int, error) {
	var old []engine.ID
	var id engine.ID
	var rows int64
	rowsOf := map[engine.ID]int64{}
	err := t.read(endedRunsOfSQL, args{"namespace": namespace, "limit": limit}, []any{idOf(&id), &rows}, func() {
		old, rowsOf[id] = append(old, id), rows
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	old = firstRows(old, rowsOf)
	return len(old), t.deleteRuns(old)
}

//go:embed sql/delete_past_requests.sql
var deletePastRequestsSQL string

func (t *tx) DeletePastRequests(namespace string, limit int) (int, error) {
	n, err := t.exec(deletePastRequestsSQL, args{"namespace": namespace, "limit": limit})
	return int(n), err
}

//go:embed sql/delete_workers_of.sql
var deleteWorkersOfSQL string

func (t *tx) DeleteWorkers(namespace string) (live []string, err error) {
	var id string
	var status engine.WorkerStatus
	err = t.read(deleteWorkersOfSQL, args{"namespace": namespace}, []any{&id, numberOf(&status)}, func() {
		if status != engine.WorkerOffline {
			live = append(live, id)
		}
	})
	return live, err
}

// Keyring returns the keys that are not revoked, by id.
func (t *tx) Keyring() (keys []engine.APIKey, err error) {
	var k engine.APIKey
	err = t.read(keyringSQL, args{}, apiKeyPlaces(&k), func() {
		keys = append(keys, k)
		k = engine.APIKey{}
	})
	return keys, err
}

//go:embed sql/save_key_namespaces.sql
var saveKeyNamespacesSQL string

func (t *tx) SaveKeyNamespaces(id engine.ID, namespaces []string) error {
	return t.queue(saveKeyNamespacesSQL, args{"key_id": [16]byte(id), "namespaces": listText(namespaces)})
}
