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

// What a copy has made of this database is its state in the table standing, under the names of
// engine.StandingMoved and its neighbours. While rows are on their way out, and after they have
// gone, a fence of triggers refuses every write to what was copied.

// Standing returns a state of the database.
func (e *End) Standing(ctx context.Context, name string) (value string, err error) {
	value, _, err = dbfile.State(ctx, e.session(), name)
	return value, dbfile.Translate("read how the database stands", err)
}

// fencedVerbs are the writes that the fence refuses.
var fencedVerbs = []string{"insert", "update", "delete"}

// Fence refuses every write to a table that is copied, whatever program asks. To fill a file that
// only this process has open takes no triggers.
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
	if e.reader != nil { // or it would keep the checkpoint from completing
		err, e.reader = e.reader.Close(), nil
		if err != nil {
			return dbfile.Translate("take the fence off", err)
		}
	}
	err = e.transact(ctx, "take the fence off", func(c *sqlite3.Conn) error {
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
	return dbfile.Translate("fold the log", err)
}

// endStanding deletes a state, or turns it into that of a complete copy.
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
	return e.transact(ctx, "note how the database stands", func(c *sqlite3.Conn) error {
		return once(c.Exec(ctx, &amendStandingSQL, sqlite3.Text("name", standing), sqlite3.Text("old", old),
			sqlite3.Text("new", new)))
	})
}
