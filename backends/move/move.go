// Package move copies a whole database into another of either kind. A copy that is killed continues
// where it stopped. It ends only when both databases were read back and found equal. The package
// has no SQL; the interface Database is all that it needs.
//
// The source is fenced first, so the rows do not change. From then on the order of writes makes a
// kill harmless: each batch of rows is one transaction together with the progress, and the source
// is marked as moved before the target may be served.
package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

// Limits of one batch: rows, and approximate bytes. Tests lower them.
var (
	batchRows  = 2000
	batchBytes = 4 << 20
)

// Database is one end of a copy. Each method is one transaction. Read may run concurrently with the
// other methods; the others run one at a time.
type Database interface {
	// Place describes the database for people, without a password. The same database has the same
	// place.
	Place() string
	// Tables returns the tables to copy, by name: all except those about the database itself.
	Tables(ctx context.Context) ([]engine.CopyTable, error)
	// Count returns how many rows a table has.
	Count(ctx context.Context, table string) (int64, error)
	// Standing returns a state of the database; empty if the name is not set.
	Standing(ctx context.Context, name string) (value string, err error)
	// Read returns the next rows of a table. All reads see the moment of the first.
	Read(ctx context.Context, r engine.CopyRange) ([][]any, error)
	// Fence keeps all writers except this copy out. Filling a database that holds rows is
	// ErrCopyNotEmpty.
	Fence(ctx context.Context, f engine.CopyFence) error
	// Unfence undoes a Fence, unless the state has changed since: ErrCopyRival. It sets
	// StandingCopied to copied if that is not empty.
	Unfence(ctx context.Context, standing, old, copied string) error
	// Amend changes a state; ErrCopyRival if it is not old any more.
	Amend(ctx context.Context, standing, old, new string) error
	// Write adds rows and the progress in one transaction. If the progress is not the old value any
	// more, it does nothing: ErrCopyRival.
	Write(ctx context.Context, b engine.CopyBatch) error
	// Settle is called once when all rows are written, before they are read back.
	Settle(ctx context.Context, tables []engine.CopyTable) error
	Close() error
}

// mover is one copy in progress.
type mover struct {
	from, to Database
	params   engine.CopyParams
	tables   []engine.CopyTable // the target's; parents first
	sources  []engine.CopyTable // the source's, in the same order
	moved    engine.Moved
	movedAs  string // value of the source's StandingMoved; empty: not set
	filling  engine.Filling
	filledAs string // value of the target's StandingFilling; empty: not set
	progress engine.CopyProgress
	report   engine.CopyReport
}

// Copy moves all rows from one database to another and leaves the source fenced. With p.Snapshot
// the source stays unchanged.
func Copy(ctx context.Context, from, to Database, p engine.CopyParams) (engine.CopyReport, error) {
	c := &mover{from: from, to: to, params: p, report: engine.CopyReport{From: from.Place(), To: to.Place()}}
	if c.report.From == c.report.To {
		return c.report, errors.New("source and target are the same database")
	}
	if err := c.compare(ctx); err != nil {
		return c.report, err
	}
	whole, err := c.begin(ctx)
	if err != nil || whole {
		return c.report, err
	}
	if err := c.carry(ctx); err != nil {
		return c.report, c.hint(err)
	}
	return c.report, nil
}

// hint says how to continue after an error that left the source fenced.
func (c *mover) hint(err error) error {
	if c.params.Snapshot || c.movedAs == "" {
		return err
	}
	return fmt.Errorf(
		"%w; the source stays fenced: run the same command again to continue, or give the copy up with `kagzi db copy --release URL`", err)
}

// compare reads the tables, which must be the same at both ends.
func (c *mover) compare(ctx context.Context) (err error) {
	if c.sources, err = c.from.Tables(ctx); err != nil {
		return err
	}
	if c.tables, err = c.to.Tables(ctx); err != nil {
		return err
	}
	if err := Compare(c.sources, c.tables); err != nil {
		return err
	}
	if c.tables, err = parentsFirst(c.tables); err != nil {
		return err
	}
	arranged := make([]engine.CopyTable, len(c.tables))
	for i := range c.tables {
		arranged[i] = *find(c.sources, c.tables[i].Name)
	}
	c.sources = arranged
	return nil
}

// begin prepares both ends, or finds that the copy has ended before.
func (c *mover) begin(ctx context.Context) (whole bool, err error) {
	if err := c.readStandings(ctx); err != nil {
		return false, err
	}
	if !c.params.Snapshot && c.movedAs != "" {
		copied, err := c.to.Standing(ctx, engine.StandingCopied)
		if err != nil {
			return false, err
		}
		var m engine.Moved
		if copied != "" && json.Unmarshal([]byte(copied), &m) == nil && m.Copy == c.moved.Copy && c.filledAs == "" {
			c.report.Before = true
			return true, nil
		}
	}
	if err := c.judge(ctx); err != nil {
		return false, err
	}
	if err := c.count(ctx); err != nil {
		return false, err
	}
	if c.filledAs != "" {
		c.report.Resumed = true
		return false, nil
	}
	if err := c.survey(ctx); err != nil {
		return false, err
	}
	return false, c.fence(ctx)
}

// readStandings reads the states of both ends.
func (c *mover) readStandings(ctx context.Context) (err error) {
	if c.movedAs, err = c.from.Standing(ctx, engine.StandingMoved); err != nil {
		return err
	}
	if c.filledAs, err = c.to.Standing(ctx, engine.StandingFilling); err != nil {
		return err
	}
	for _, end := range []struct {
		standing string
		value    any
	}{{c.movedAs, &c.moved}, {c.filledAs, &c.filling}} {
		if end.standing == "" {
			continue
		}
		if err := json.Unmarshal([]byte(end.standing), end.value); err != nil {
			return fmt.Errorf("read the progress of an earlier copy: %w", err)
		}
	}
	return nil
}

// judge refuses a copy that is neither new nor can be continued.
func (c *mover) judge(ctx context.Context) error {
	for _, end := range []struct {
		database Database
		standing string
	}{{c.from, engine.StandingFilling}, {c.to, engine.StandingMoved}} {
		value, err := end.database.Standing(ctx, end.standing)
		if err != nil {
			return err
		}
		if value != "" {
			return fmt.Errorf("%s: %w", end.database.Place(), engine.ServingRefused(end.standing, value))
		}
	}
	switch {
	case c.filledAs != "" && c.params.Snapshot:
		return refuse("another copy, of %s, has begun to fill the target; choose another target",
			c.filling.From)
	case c.filledAs != "":
		if c.movedAs == "" || c.filling.Copy != c.moved.Copy {
			return refuse(
				"another copy, of %s, has begun to fill the target; choose another target",
				c.filling.From)
		}
		return nil
	case c.movedAs != "" && !c.params.Snapshot && (c.moved.Done || c.moved.To != c.to.Place()):
		return refuse(
			"the source is fenced for a copy to %s; continue that one, or give it up with `kagzi db copy --release URL`", c.moved.To)
	}
	for _, t := range c.tables {
		n, err := c.to.Count(ctx, t.Name)
		if err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%w (table %s has %d)", engine.ErrCopyNotEmpty, t.Name, n)
		}
	}
	return nil
}

func (c *mover) count(ctx context.Context) error {
	for _, t := range c.sources {
		n, err := c.from.Count(ctx, t.Name)
		if err != nil {
			return err
		}
		c.progress.Total += n
	}
	for _, t := range c.filling.Tables {
		c.progress.Rows += t.Rows
	}
	return nil
}

// fence fences the source, unless it is fenced already, and then the target.
func (c *mover) fence(ctx context.Context) error {
	switch {
	case c.params.Snapshot:
		c.moved.Copy = engine.NewID(c.params.Now).String()
	case c.movedAs == "":
		c.moved = engine.Moved{Copy: engine.NewID(c.params.Now).String(), To: c.to.Place()}
		value := text(c.moved)
		err := c.from.Fence(ctx, engine.CopyFence{
			Standing: engine.StandingMoved, Value: value, Copy: c.moved.Copy, At: c.params.Now,
			Why: "this database was moved to another one; start the server on that one",
		})
		if err != nil {
			return fmt.Errorf("fence the source: %w", err)
		}
		c.movedAs = value
	}
	c.filling = engine.Filling{Copy: c.moved.Copy, From: c.from.Place(), Tables: map[string]engine.FillingTable{}}
	value := text(c.filling)
	err := c.to.Fence(ctx, engine.CopyFence{
		Standing: engine.StandingFilling, Value: value, Copy: c.filling.Copy, At: c.params.Now,
		Why: "a copy into this database has not ended",
	})
	if err != nil {
		return c.hint(fmt.Errorf("prepare the target: %w", err))
	}
	c.filledAs = value
	return nil
}

// carry copies the rows, and ends the copy once both ends were found equal.
func (c *mover) carry(ctx context.Context) error {
	for i := range c.tables {
		if err := c.carryTable(ctx, &c.sources[i], &c.tables[i]); err != nil {
			return fmt.Errorf("copy table %s: %w", c.tables[i].Name, err)
		}
	}
	if err := c.to.Settle(ctx, c.tables); err != nil {
		return err
	}
	if err := c.verify(ctx); err != nil {
		return err
	}
	return c.end(ctx)
}

// end marks the source as moved before the target may be served, so that releasing the source
// warns.
func (c *mover) end(ctx context.Context) error {
	copied := ""
	if !c.params.Snapshot {
		done := c.moved
		done.Done = true
		if err := c.from.Amend(ctx, engine.StandingMoved, c.movedAs, text(done)); err != nil {
			return fmt.Errorf("mark the source as moved: %w", err)
		}
		c.moved, c.movedAs = done, text(done)
		copied = text(engine.Moved{Copy: c.moved.Copy, To: c.to.Place(), Done: true})
	}
	if err := c.to.Unfence(ctx, engine.StandingFilling, c.filledAs, copied); err != nil {
		return fmt.Errorf("open the target: %w", err)
	}
	return nil
}

// Release removes the fence from a source. After a completed copy, force must be set.
func Release(ctx context.Context, d Database, force bool) error {
	value, err := d.Standing(ctx, engine.StandingMoved)
	if err != nil {
		return err
	}
	if value == "" {
		return refuse("%s is not fenced; nothing to release", d.Place())
	}
	var m engine.Moved
	if err := json.Unmarshal([]byte(value), &m); err != nil && !force {
		return fmt.Errorf("read where the database was moved to: %w; --force releases it anyway", err)
	}
	if m.Done && !force {
		return refuse(
			"the copy to %s is complete and may be in use: with both databases in use, every run and tick would happen twice; "+
				"if no server has opened the copy and you delete it, release this database with --force", m.To)
	}
	return d.Unfence(ctx, engine.StandingMoved, value, "")
}

func (c *mover) tell(table string, rows, bytes int64) {
	c.progress.Table = table
	c.progress.Rows += rows
	c.progress.Bytes += bytes
	if c.params.Progress != nil {
		c.params.Progress(c.progress)
	}
}

func find(tables []engine.CopyTable, name string) *engine.CopyTable {
	if i := slices.IndexFunc(tables, func(t engine.CopyTable) bool { return t.Name == name }); i >= 0 {
		return &tables[i]
	}
	return nil
}

// text encodes a state's value. Our types always encode.
func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// refuse returns an error for what the state of a database does not allow.
func refuse(format string, args ...any) error {
	return &engine.Error{Kind: engine.KindPrecondition, Message: fmt.Sprintf(format, args...)}
}
