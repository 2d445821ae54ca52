package sqlite

import (
	"bytes"
	"context"
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

// compare tells what the database that is replaced knows and the backup does not, and refuses to replace one with rows unless told to. One
// that cannot be read is no reason not to: it is often why there is a restore.
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

// refuseMoved refuses to replace a file whose rows have gone to another database: the runs of the backup would go on here as well. --force does not
// mean that, for it is asked for wherever there are rows. A file that cannot be read says nothing of it.
func (r *restoring) refuseMoved(ctx context.Context) (refusal error) {
	old, err := look(r.target, nil)
	if err != nil {
		return nil
	}
	defer old.close()
	if schema, err := schemaNumber(ctx, old); err != nil || schema < schemaOfStandings {
		return nil
	}
	_ = old.query(ctx, &refusingStandingSQL, func(row *row) error {
		if name, value := row.text(), row.text(); name == engine.StandingMoved {
			refusal = &engine.Error{Kind: engine.KindPrecondition, Message: "restore: " + engine.ServingRefused(name, value).Error()}
		}
		return nil
	})
	return refusal
}

func (r *restoring) compareRows(ctx context.Context) (used bool, err error) {
	old, err := look(r.target, nil)
	if err != nil {
		return false, err
	}
	defer old.close()
	schema, err := schemaNumber(ctx, old)
	if err != nil || schema == 0 {
		return false, err
	}
	backup, err := look(r.p.File, nil)
	if err != nil {
		return false, err
	}
	defer backup.close()
	used, err = old.holdsRows(ctx, schema)
	if err == nil {
		err = r.runsBeyond(ctx, backup, old)
	}
	if err == nil {
		err = r.runsOnly(ctx, backup, old)
	}
	if err == nil && schema >= schemaOfStandings && r.out.Backup.Schema >= schemaOfStandings {
		err = r.keysBack(ctx, backup, old)
	}
	return used, err
}

// holdsRows says whether somebody has used the database, which has that schema: for runs, workers, schedules or keys.
func (c *conn) holdsRows(ctx context.Context, schema int) (used bool, err error) {
	tables := []string{"runs", "workers"}
	if schema >= 2 {
		tables = append(tables, "schedules")
	}
	if schema >= schemaOfStandings {
		tables = append(tables, "api_keys")
	}
	for _, table := range tables {
		statement := "select exists (select 1 from " + table + ")"
		err := c.query(ctx, &statement, func(r *row) error {
			used = used || r.flag()
			return nil
		})
		if err != nil {
			return used, err
		}
	}
	return used, nil
}

// runsBeyond goes through what is open in the backup.
func (r *restoring) runsBeyond(ctx context.Context, backup, old *conn) error {
	err := backup.query(ctx, &restoreRunsSQL, func(line *row) error {
		had := readBeyond(line)
		now := had
		now.Gone = true
		err := old.query(ctx, &restoreRunSQL, func(line *row) error {
			now = readBeyond(line)
			return nil
		}, idArg("run_id", had.ID))
		if now.Had = had.Steps; now.Gone || now.Steps > had.Steps || now.Status.Ended() {
			r.out.Progress.Beyond = append(r.out.Progress.Beyond, now)
		}
		return err
	}, flag("every", false))
	slices.Reverse(r.out.Progress.Beyond) // by id
	return err
}

// runsOnly goes through all runs of the database that is replaced.
func (r *restoring) runsOnly(ctx context.Context, backup, old *conn) error {
	return old.query(ctx, &restoreRunsSQL, func(line *row) error {
		run, known := readBeyond(line), false
		err := backup.query(ctx, &restoreRunSQL, func(*row) error {
			known = true
			return nil
		}, idArg("run_id", run.ID))
		if !known {
			r.out.Progress.Only = append(r.out.Progress.Only, run)
		}
		return err
	}, flag("every", true))
}

func readBeyond(r *row) engine.RunBeyond {
	return engine.RunBeyond{ID: r.id(), Namespace: r.text(), Type: r.text(), Status: engine.RunStatus(r.num()), Steps: r.num()}
}

// keysBack finds the keys that the backup makes valid again.
func (r *restoring) keysBack(ctx context.Context, backup, old *conn) error {
	var revoked [][]byte
	err := old.query(ctx, &restoreKeysSQL, func(line *row) error {
		revoked = append(revoked, line.bytes())
		return nil
	}, flag("valid", false))
	if err != nil {
		return err
	}
	return backup.query(ctx, &restoreKeysSQL, func(line *row) error {
		id, name := line.bytes(), line.text()
		if slices.ContainsFunc(revoked, func(key []byte) bool { return bytes.Equal(key, id) }) {
			r.out.Progress.KeysBack = append(r.out.Progress.KeysBack, name)
		}
		return nil
	}, flag("valid", true))
}
