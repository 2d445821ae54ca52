package postgres

import (
	_ "embed"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/diverged_kinds.sql
var divergedKindsSQL string

func (t *tx) DivergedKinds() (kinds []storelogic.DivergedKind, err error) {
	var k storelogic.DivergedKind
	err = t.read(divergedKindsSQL, args{}, []any{&k.LaneID, &k.Lane.Namespace, &k.Lane.Queue, &k.Lane.Type,
		jsonOf(&k.Lane.Requirements), &k.Builds}, func() { kinds = append(kinds, k) })
	return kinds, err
}

//go:embed sql/diverged_runs.sql
var divergedRunsSQL string

func (t *tx) DivergedRuns(kind storelogic.DivergedKind, limit int) ([]engine.ID, error) {
	return t.ids(divergedRunsSQL, args{"lane_id": kind.LaneID, "diverged": kind.Builds, "limit": limit})
}

//go:embed sql/list_in_service.sql
var listInServiceSQL string

func (t *tx) InService(namespace string) (workers []engine.Worker, err error) {
	var w engine.Worker
	err = t.read(listInServiceSQL, args{"namespace": namespace}, []any{&w.ID, jsonOf(&w.Queues), jsonOf(&w.Types),
		jsonOf(&w.Labels), jsonOf(&w.Capabilities), &w.BuildID}, func() {
		w.Namespace, w.Status = namespace, engine.WorkerOnline
		workers = append(workers, w)
	})
	return workers, err
}

//go:embed sql/get_build.sql
var getBuildSQL string

func (t *tx) BuildOf(worker string) (build string, err error) {
	_, err = t.found(getBuildSQL, args{"worker_id": worker}, &build)
	return build, err
}
