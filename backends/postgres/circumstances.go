package postgres

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_run.sql
var getRunText string

var getRunSQL = runColumns.Expand(getRunText)

//go:embed sql/get_circumstances.sql
var getCircumstancesSQL string

// Circumstances is one snapshot.
func (s *Store) ExplainInputs(ctx context.Context, namespace string, run engine.ID, now time.Time) (c engine.Circumstances, err error) {
	one := args{"run_id": [16]byte(run)}
	missing := true
	batch := &pgx.Batch{}
	batch.Queue(getRunSQL, merge(one, args{"namespace": namespace})).Query(func(rows pgx.Rows) error {
		var input, output engine.Payload
		places := slices.Concat(runPlaces(&c.Run), payloadPlaces(&input), payloadPlaces(&output))
		_, err := pgx.ForEachRow(rows, places, func() error {
			missing = false
			return nil
		})
		return err
	})
	batch.Queue(listWaitingSQL, one).Query(func(rows pgx.Rows) (err error) {
		c.Steps, err = pgx.CollectRows(rows, scanStep)
		return err
	})
	batch.Queue(listWorkingSQL, args{"namespace": namespace}).Query(func(rows pgx.Rows) (err error) {
		c.Workers, err = pgx.CollectRows(rows, scanWorker)
		return err
	})
	batch.Queue(getCircumstancesSQL, merge(one, args{"starved_since": micros(now.Add(-engine.StarvationAfter))})).Query(func(rows pgx.Rows) error {
		places := []any{&c.NamespaceEnabled, &c.RunningInQueue, &c.RunningOfType, &c.RunningOfKey, &c.AheadInLine}
		_, err := pgx.ForEachRow(rows, places, func() error { return nil })
		return err
	})
	err = s.view(ctx, "look at a run's circumstances", func(ctx context.Context) error {
		snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, s.views, snapshot, func(t pgx.Tx) error { return t.SendBatch(ctx, batch).Close() })
	})
	if err == nil && missing {
		err = engine.RunNotFound(run)
	}
	if err != nil {
		return engine.Circumstances{}, err
	}
	c.Workers = slices.DeleteFunc(c.Workers, func(w engine.Worker) bool { return !slices.Contains(w.Queues, c.Run.Queue) })
	return c, nil
}
