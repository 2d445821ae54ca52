package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// load is a batch of rows that was read.
type load struct {
	rows [][]any
	sum  sum
	size int64
	err  error
}

// carryTable copies the rest of a table. It reads the next rows while it writes the last ones.
func (c *mover) carryTable(ctx context.Context, from, to *engine.CopyTable) error {
	recorded := c.filling.Tables[to.Name]
	so, err := sumOf(recorded)
	if err != nil {
		return err
	}
	after, err := decodeKey(recorded.Last)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	loads := make(chan load, 1)
	var reading sync.WaitGroup
	reading.Go(func() { c.readTable(ctx, c.from, from, after, loads) })
	defer reading.Wait()
	defer cancel()

	order := arrangement(from, to)
	for l := range loads {
		if l.err != nil {
			return l.err
		}
		so.add(l.sum)
		next := engine.FillingTable{Rows: so.rows, Sum: so.String(), Last: encodeKey(from.KeyOf(l.rows[len(l.rows)-1]))}
		if err := c.write(ctx, to, arrange(l.rows, order), next); err != nil {
			return err
		}
		c.tell(to.Name, l.sum.rows, l.size)
	}
	return ctx.Err()
}

// write writes the rows and the progress in one transaction of the target.
func (c *mover) write(ctx context.Context, t *engine.CopyTable, rows [][]any, so engine.FillingTable) error {
	next := engine.Filling{Copy: c.filling.Copy, From: c.filling.From, Tables: maps.Clone(c.filling.Tables)}
	if next.Tables == nil {
		next.Tables = map[string]engine.FillingTable{}
	}
	next.Tables[t.Name] = so
	value := text(next)
	err := c.to.Write(ctx, engine.CopyBatch{Table: t, Rows: rows, Copy: c.filling.Copy, Old: c.filledAs, New: value})
	if err != nil {
		return err
	}
	c.filling, c.filledAs = next, value
	return nil
}

// readTable sends the rows after a key, batch by batch, or an error, and closes loads.
func (c *mover) readTable(ctx context.Context, d Database, t *engine.CopyTable, after []any, loads chan<- load) {
	defer close(loads)
	adding := newSummer(t)
	for r := (engine.CopyRange{Table: t, After: after, Rows: batchRows, Bytes: batchBytes}); ; {
		rows, err := d.Read(ctx, r)
		if err == nil && len(rows) == 0 {
			return
		}
		l := load{rows: rows, err: err}
		l.sum, l.size = adding.sum(rows)
		select {
		case loads <- l:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		r.After = t.KeyOf(rows[len(rows)-1])
	}
}

// arrangement returns the position in from of each column of to.
func arrangement(from, to *engine.CopyTable) []int {
	order := make([]int, len(to.Columns))
	for i, column := range to.Columns {
		order[i] = from.At(column.Name)
	}
	return order
}

func arrange(rows [][]any, order []int) [][]any {
	out := make([][]any, len(rows))
	for n, row := range rows {
		out[n] = make([]any, len(order))
		for i, at := range order {
			out[n][i] = row[at]
		}
	}
	return out
}

// verify reads both ends again, at the same time, and compares rows and counts of each table.
func (c *mover) verify(ctx context.Context) error {
	c.progress = engine.CopyProgress{Verifying: true, Total: c.progress.Total}
	c.report.Tables = nil
	c.tell("", 0, 0)
	for i := range c.tables {
		name := c.tables[i].Name
		var source, target sum
		var unread error
		var reading sync.WaitGroup
		reading.Go(func() { source, unread = c.addUp(ctx, c.from, &c.sources[i], func(int64) {}) })
		target, err := c.addUp(ctx, c.to, &c.tables[i], func(rows int64) { c.tell(name, rows, 0) })
		reading.Wait()
		if err := errors.Join(unread, err); err != nil {
			return fmt.Errorf("read table %s back: %w", name, err)
		}
		recorded, err := sumOf(c.filling.Tables[name])
		if err != nil {
			return err
		}
		if source != target || source != recorded {
			return fmt.Errorf(
				"table %s differs: the source has %d rows (sum %s), the target %d (sum %s), and %d were copied (sum %s); "+
					"do not use the target: run `kagzi db copy --release` on the source and copy to another target",
				name, source.rows, source, target.rows, target, recorded.rows, recorded)
		}
		c.report.Tables = append(c.report.Tables, engine.CopyCount{Table: name, Rows: target.rows})
	}
	return nil
}

// addUp returns the sum of a table; it calls read for each batch.
func (c *mover) addUp(ctx context.Context, d Database, t *engine.CopyTable, read func(rows int64)) (total sum,
	err error) {
	ctx, cancel := context.WithCancel(ctx)
	loads := make(chan load, 1)
	var reading sync.WaitGroup
	reading.Go(func() { c.readTable(ctx, d, t, nil, loads) })
	defer reading.Wait()
	defer cancel()
	for l := range loads {
		if l.err != nil {
			return total, l.err
		}
		total.add(l.sum)
		read(l.sum.rows)
	}
	return total, ctx.Err()
}
