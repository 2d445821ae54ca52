package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// What a copy has made of this database stands in the table standing, under the names of engine.StandingMoved and its neighbours. While rows are
// on their way out, and after they have gone, a fence of triggers refuses every write to what was copied.

// Standing is what the file says of itself.
func (e *End) Standing(ctx context.Context, name string) (value string, err error) {
	err = e.session().query(ctx, &getStandingSQL, func(r *row) error {
		value = r.text()
		return nil
	}, text("name", name))
	return value, translate("read how the database stands", err)
}

// fencedVerbs are the writes that the fence refuses.
var fencedVerbs = []string{"insert", "update", "delete"}

// Fence refuses every write to a table that is copied, whatever program asks. To fill a file that only this process has open takes no triggers.
func (e *End) Fence(ctx context.Context, f engine.CopyFence) error {
	tables, err := e.Tables(ctx)
	if err != nil {
		return err
	}
	return e.transact(ctx, "fence the database", func(c *conn) error {
		if f.Standing == engine.StandingFilling {
			for _, t := range tables {
				if n, err := e.Count(ctx, t.Name); err != nil || n > 0 {
					return errors.Join(err, engine.ErrCopyNotEmpty)
				}
			}
		}
		if _, err := c.exec(ctx, &setStandingSQL, text("name", f.Standing), text("value", f.Value), instant("at", f.At)); err != nil {
			return err
		}
		if f.Standing == engine.StandingFilling {
			return nil
		}
		return c.script(ctx, composeFence(tables, f.Why))
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

// once wants a statement about the standing to have found it as it was.
func once(n int64, err error) error {
	if err == nil && n != 1 {
		return engine.ErrCopyRival
	}
	return err
}

// Unfence lets others write again.
func (e *End) Unfence(ctx context.Context, standing, old, copied string) error {
	tables, err := e.Tables(ctx)
	if err != nil {
		return err
	}
	if e.reader != nil { // or it would keep the log from being folded
		err, e.reader = e.reader.close(), nil
		if err != nil {
			return translate("take the fence off", err)
		}
	}
	err = e.transact(ctx, "take the fence off", func(c *conn) error {
		if err := endStanding(ctx, c, standing, old, copied); err != nil {
			return err
		}
		var script strings.Builder
		for _, t := range tables {
			for _, verb := range fencedVerbs {
				fmt.Fprintf(&script, "drop trigger if exists %s;\n", quoted(fenceName(t.Name, verb)))
			}
		}
		return c.script(ctx, script.String())
	})
	if err != nil {
		return err
	}
	return translate("fold the log", e.control.query(ctx, &checkpointTruncateSQL, func(*row) error { return nil }))
}

// endStanding takes a standing away, or turns it into that of a whole copy.
func endStanding(ctx context.Context, c *conn, standing, old, copied string) error {
	if copied == "" {
		return once(c.exec(ctx, &endStandingSQL, text("name", standing), text("old", old)))
	}
	if _, err := c.exec(ctx, &deleteStandingSQL, text("name", engine.StandingCopied)); err != nil {
		return err
	}
	return once(c.exec(ctx, &turnStandingSQL, text("name", standing), text("old", old),
		text("new_name", engine.StandingCopied), text("new", copied)))
}

// Amend changes how the file stands.
func (e *End) Amend(ctx context.Context, standing, old, new string) error {
	return e.transact(ctx, "note how the database stands", func(c *conn) error {
		return once(c.exec(ctx, &amendStandingSQL, text("name", standing), text("old", old), text("new", new)))
	})
}

//go:embed sql/has_standing.sql
var hasStandingSQL string

//go:embed sql/refusing_standing.sql
var refusingStandingSQL string

// refuseMoved refuses a file whose rows have gone to another database, or are still on their way into it.
func refuseMoved(ctx context.Context, c *conn) error {
	var refusal error
	err := refusing(ctx, c, func(name, value string) { refusal = engine.ServingRefused(name, value) })
	return errors.Join(err, refusal)
}

// refusing tells why the file is not to be served, if it is not.
func refusing(ctx context.Context, c *conn, tell func(name, value string)) error {
	old := true
	err := c.query(ctx, &hasStandingSQL, func(*row) error {
		old = false
		return nil
	})
	if err != nil || old {
		return err
	}
	return c.query(ctx, &refusingStandingSQL, func(r *row) error {
		tell(r.text(), r.text())
		return nil
	})
}
