package sqlite

import (
	_ "embed"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/diverged_kinds.sql
var divergedKindsSQL string

func (t *tx) DivergedKinds() (kinds []storelogic.DivergedKind, err error) {
	err = t.query(&divergedKindsSQL, func(r *row) (err error) {
		k := storelogic.DivergedKind{LaneID: r.num()}
		k.Lane.Namespace, k.Lane.Queue, k.Lane.Type = r.text(), r.text(), r.text()
		decode(r.text(), &k.Lane.Requirements, &err)
		k.Builds = r.text()
		kinds = append(kinds, k)
		return err
	})
	return kinds, err
}

//go:embed sql/diverged_runs.sql
var divergedRunsSQL string

func (t *tx) DivergedRuns(kind storelogic.DivergedKind, limit int) ([]engine.ID, error) {
	return t.listIDs(&divergedRunsSQL, num("lane_id", kind.LaneID), text("diverged", kind.Builds), num("limit", limit))
}

//go:embed sql/list_in_service.sql
var listInServiceSQL string

func (t *tx) InService(namespace string) (workers []engine.Worker, err error) {
	err = t.query(&listInServiceSQL, func(r *row) (err error) {
		w := engine.Worker{ID: r.text(), Namespace: namespace, Status: engine.WorkerOnline}
		decode(r.text(), &w.Queues, &err)
		decode(r.text(), &w.Types, &err)
		decode(r.text(), &w.Labels, &err)
		decode(r.text(), &w.Capabilities, &err)
		w.BuildID = r.text()
		workers = append(workers, w)
		return err
	}, text("namespace", namespace))
	return workers, err
}

//go:embed sql/get_build.sql
var getBuildSQL string

func (t *tx) BuildOf(worker string) (build string, err error) {
	_, err = t.found(&getBuildSQL, func(r *row) error {
		build = r.text()
		return nil
	}, text("worker_id", worker))
	return build, err
}
