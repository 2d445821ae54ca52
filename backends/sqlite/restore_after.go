package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"

	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

var _ storelogic.Restoring = (*tx)(nil)

// afterRestore makes rows that came out of a backup fit to be served, in one commit.
func (s *Store) afterRestore(ctx context.Context, p engine.AfterRestoreParams) (engine.AfterRestore, error) {
	return write(ctx, s, "AfterRestore", 0, func(t *tx) (engine.AfterRestore, error) { return storelogic.AfterRestore(t, p) })
}

//go:embed sql/restore_leases.sql
var restoreLeasesSQL string

func (t *tx) Leases() (held []engine.ID, err error) {
	err = t.query(&restoreLeasesSQL, func(r *row) error {
		held = append(held, r.id())
		return nil
	})
	return held, err
}

//go:embed sql/restore_workers.sql
var restoreWorkersSQL string

func (t *tx) TakeWorkersOff(now time.Time) (int, error) {
	n, err := t.exec(&restoreWorkersSQL, num("reason", engine.OfflineForced), instant("now", now))
	return int(n), err
}

//go:embed sql/restore_schedules.sql
var restoreSchedulesSQL string

func (t *tx) DueSchedules(now time.Time) (due []engine.Schedule, err error) {
	err = t.query(&restoreSchedulesSQL, func(r *row) error {
		s, err := readSchedule(r)
		due = append(due, s)
		return err
	}, instant("now", now))
	return due, err
}

func (t *tx) Stand(name, value string, at time.Time) error {
	var n int64
	var err error
	if value == "" {
		n, err = dbfile.DeleteState(t.ctx, t.conn, name)
	} else {
		n, err = dbfile.SetState(t.ctx, t.conn, name, value, at)
	}
	t.wrote = t.wrote || n > 0 || err != nil
	return err
}
