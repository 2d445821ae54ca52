package backup

import (
	"bytes"
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/restore_runs.sql
var restoreRunsSQL string

//go:embed sql/restore_run.sql
var restoreRunSQL string

//go:embed sql/restore_keys.sql
var restoreKeysSQL string

// compare reports what the replaced database knows and the backup does not, and refuses to replace
// a database with rows unless forced. A database that cannot be read does not prevent the restore,
// because it is often the reason for it.
func (r *restoring) compare(ctx context.Context) error {
	if !r.before {
		return nil
	}
	if err := r.refuseMoved(ctx); err != nil {
		return err
	}
	used, err := r.compareRows(ctx)
	if err != nil {
		r.out.Progress = engine.Progress{Unknown: err.Error()}
		used = true
	}
	if used && !r.p.Force && !r.p.DryRun {
		return errHoldsRows
	}
	return nil
}

// refuseMoved refuses to replace a file whose rows were moved to another database, because the runs
// of the backup would then run in both. --force does not override this: people use it whenever
// there are rows. A file that cannot be read is not refused.
func (r *restoring) refuseMoved(ctx context.Context) (refusal error) {
	old, err := dbfile.OpenReadOnly(r.target, nil)
	if err != nil {
		return nil
	}
	defer old.Close()
	if schema, err := dbfile.SchemaNumber(ctx, old.Conn); err != nil || schema < schemaOfStates {
		return nil
	}
	_ = dbfile.Refusing(ctx, old.Conn, func(name, value string) {
		if name == engine.StandingMoved {
			refusal = &engine.Error{Kind: engine.KindPrecondition,
				Message: "restore: " + engine.ServingRefused(name, value).Error()}
		}
	})
	return refusal
}

func (r *restoring) compareRows(ctx context.Context) (used bool, err error) {
	old, err := dbfile.OpenReadOnly(r.target, nil)
	if err != nil {
		return false, err
	}
	defer old.Close()
	schema, err := dbfile.SchemaNumber(ctx, old.Conn)
	if err != nil || schema == 0 {
		return false, err
	}
	backup, err := dbfile.OpenReadOnly(r.p.File, nil)
	if err != nil {
		return false, err
	}
	defer backup.Close()
	used, err = holdsRows(ctx, old.Conn, schema)
	if err == nil {
		err = r.runsBeyond(ctx, backup.Conn, old.Conn)
	}
	if err == nil {
		err = r.runsOnly(ctx, backup.Conn, old.Conn)
	}
	if err == nil && schema >= schemaOfStates && r.out.Backup.Schema >= schemaOfStates {
		err = r.keysBack(ctx, backup.Conn, old.Conn)
	}
	return used, err
}

// holdsRows reports whether the database, which has that schema, was used: for runs, workers,
// schedules or keys.
func holdsRows(ctx context.Context, c *sqlite3.Conn, schema int) (used bool, err error) {
	tables := []string{"runs", "workers"}
	if schema >= 2 {
		tables = append(tables, "schedules")
	}
	if schema >= schemaOfStates {
		tables = append(tables, "api_keys")
	}
	for _, table := range tables {
		statement := "select exists (select 1 from " + table + ")"
		err := c.Query(ctx, &statement, func(r *sqlite3.Row) error {
			used = used || r.Bool()
			return nil
		})
		if err != nil {
			return used, err
		}
	}
	return used, nil
}

// runsBeyond compares the runs that are open in the backup.
func (r *restoring) runsBeyond(ctx context.Context, backup, old *sqlite3.Conn) error {
	err := backup.Query(ctx, &restoreRunsSQL, func(line *sqlite3.Row) error {
		had := readBeyond(line)
		now := had
		now.Gone = true
		err := old.Query(ctx, &restoreRunSQL, func(line *sqlite3.Row) error {
			now = readBeyond(line)
			return nil
		}, sqlite3.Blob("run_id", had.ID[:]))
		if now.Had = had.Steps; now.Gone || now.Steps > had.Steps || now.Status.Ended() {
			r.out.Progress.Beyond = append(r.out.Progress.Beyond, now)
		}
		return err
	}, sqlite3.Bool("every", false))
	slices.Reverse(r.out.Progress.Beyond) // by id
	return err
}

// runsOnly finds the runs that only the replaced database has.
func (r *restoring) runsOnly(ctx context.Context, backup, old *sqlite3.Conn) error {
	return old.Query(ctx, &restoreRunsSQL, func(line *sqlite3.Row) error {
		run, known := readBeyond(line), false
		err := backup.Query(ctx, &restoreRunSQL, func(*sqlite3.Row) error {
			known = true
			return nil
		}, sqlite3.Blob("run_id", run.ID[:]))
		if !known {
			r.out.Progress.Only = append(r.out.Progress.Only, run)
		}
		return err
	}, sqlite3.Bool("every", true))
}

func readBeyond(r *sqlite3.Row) (run engine.RunBeyond) {
	copy(run.ID[:], r.View())
	run.Namespace, run.Type, run.Status, run.Steps = r.Text(), r.Text(), engine.RunStatus(r.Int()), r.Int()
	return run
}

// keysBack finds the keys that the backup makes valid again.
func (r *restoring) keysBack(ctx context.Context, backup, old *sqlite3.Conn) error {
	var revoked [][]byte
	err := old.Query(ctx, &restoreKeysSQL, func(line *sqlite3.Row) error {
		revoked = append(revoked, line.Bytes())
		return nil
	}, sqlite3.Bool("valid", false))
	if err != nil {
		return err
	}
	return backup.Query(ctx, &restoreKeysSQL, func(line *sqlite3.Row) error {
		id, name := line.Bytes(), line.Text()
		if slices.ContainsFunc(revoked, func(key []byte) bool { return bytes.Equal(key, id) }) {
			r.out.Progress.KeysBack = append(r.out.Progress.KeysBack, name)
		}
		return nil
	}, sqlite3.Bool("valid", true))
}
