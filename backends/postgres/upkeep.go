package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_live_workers.sql
var listLiveWorkersSQL string

// LiveWorkers is the workers that are not OFFLINE, by id.
func (s *Store) LiveWorkers(ctx context.Context) (live []engine.LiveWorker, err error) {
	err = s.view(ctx, "list the live workers", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, listLiveWorkersSQL)
		if err != nil {
			return err
		}
		live, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w engine.LiveWorker, err error) {
			err = row.Scan(&w.ID, timeOf(&w.HeardAt))
			return w, err
		})
		return err
	})
	return live, err
}

//go:embed sql/due_schedules.sql
var dueSchedulesSQL string

// DueSchedules is planned as writes are, so that it goes by the index whatever the table holds.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) (due []engine.Schedule, next time.Time, err error) {
	err = s.view(ctx, "list the due schedules", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, dueSchedulesSQL, args{"limit": limit + 1})
		if err != nil {
			return err
		}
		due, err = pgx.CollectRows(rows, scanSchedule)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	for i := range due {
		if i == limit || due[i].NextFireAt.After(now) {
			return due[:i], due[i].NextFireAt, nil
		}
	}
	return due, time.Time{}, nil
}
