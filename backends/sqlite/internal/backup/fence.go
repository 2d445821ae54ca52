package backup

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// A copy sets states in the table standing of this database (engine.StandingMoved and others).
// While rows are copied out of it, and afterwards, triggers refuse every write to the copied
// tables: the fence.

// Standing returns a state of the database.
func (e *End) Standing(ctx context.Context, name string) (value string, err error) {
	value, _, err = dbfile.State(ctx, e.session(), name)
	return value, dbfile.Translate("read the state of the database", err)
}

// fencedVerbs are the writes that the fence refuses.
var fencedVerbs = []string{"insert", "update", "delete"}

// Fence refuses every write to a copied table, by any program. Filling a file that only this
// process has open needs no triggers.
func (e *End) Fence(ctx context.Context, f engine.CopyFence) error {
	tables, err := e.Tables(ctx)
	if err != nil {
		return err
	}
	return e.transact(ctx, "fence the database", func(c *sqlite3.Conn) error {
		if f.Standing == engine.StandingFilling {
			for _, t := range tables {
				if n, err := e.Count(ctx, t.Name); err != nil || n > 0 {
					return errors.Join(err, engine.ErrCopyNotEmpty)
				}
			}
		}
		if _, err := dbfile.SetState(ctx, c, f.Standing, f.Value, f.At); err != nil {
			return err
		}
		if f.Standing == engine.StandingFilling {
			return nil
		}
		return c.Script(ctx, composeFence(tables, f.Why))
	})
}

func composeFence(tables []engine.CopyTable, why string) string {
	var script strings.Builder
	for _, t := range tables {
		for _, verb := range fencedVerbs {
			fmt.Fprintf(&script, "create trigger %s before %s on %s begin select raise(abort, '%s'); end;\n",
				quoted(fenceName(t.Name, verb)), verb, quoted(t.Name), strings.ReplaceAll(why, "'", "''"))
		}
	}
	return script.String()
}

func fenceName(table, verb string) string { return "fence_" + table + "_" + verb }

//go:embed sql/amend_standing.sql
var amendStandingSQL string

//go:embed sql/end_standing.sql
var endStandingSQL string

//go:embed sql/turn_standing.sql
var turnStandingSQL string

// once requires that a statement has found the state as it was.
func once(n int64, err error) error {
	if err == nil && n != 1 {
		return engine.ErrCopyRival
	}
	return err
}

// Unfence removes the fence, so that others can write again.
func (e *End) Unfence(ctx context.Context, standing, old, copied string) error {
	tables, err := e.Tables(ctx)
	if err != nil {
		return err
	}
	if e.reader != nil { // a reader would keep the checkpoint from completing
		err, e.reader = e.reader.Close(), nil
		if err != nil {
			return dbfile.Translate("remove the fence", err)
		}
	}
	err = e.transact(ctx, "remove the fence", func(c *sqlite3.Conn) error {
		if err := endStanding(ctx, c, standing, old, copied); err != nil {
			return err
		}
		var script strings.Builder
		for _, t := range tables {
			for _, verb := range fencedVerbs {
				fmt.Fprintf(&script, "drop trigger if exists %s;\n", quoted(fenceName(t.Name, verb)))
			}
		}
		return c.Script(ctx, script.String())
	})
	if err != nil {
		return err
	}
	_, err = e.control.CheckpointAll(ctx)
	return dbfile.Translate("checkpoint the log", err)
}

// endStanding deletes a state, or replaces it by the state of a complete copy.
func endStanding(ctx context.Context, c *sqlite3.Conn, standing, old, copied string) error {
	if copied == "" {
		return once(c.Exec(ctx, &endStandingSQL, sqlite3.Text("name", standing), sqlite3.Text("old", old)))
	}
	if _, err := dbfile.DeleteState(ctx, c, engine.StandingCopied); err != nil {
		return err
	}
	return once(c.Exec(ctx, &turnStandingSQL, sqlite3.Text("name", standing), sqlite3.Text("old", old),
		sqlite3.Text("new_name", engine.StandingCopied), sqlite3.Text("new", copied)))
}

// Amend changes a state of the file.
func (e *End) Amend(ctx context.Context, standing, old, new string) error {
	return e.transact(ctx, "set the state of the database", func(c *sqlite3.Conn) error {
		return once(c.Exec(ctx, &amendStandingSQL, sqlite3.Text("name", standing), sqlite3.Text("old", old),
			sqlite3.Text("new", new)))
	})
}
