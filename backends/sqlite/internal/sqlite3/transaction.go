package sqlite3

import (
	"context"
	_ "embed"
)

//go:embed sql/begin.sql
var beginSQL string

// Begin begins a write transaction and takes the lock at once.
func (c *Conn) Begin(ctx context.Context) error {
	_, err := c.Exec(ctx, &beginSQL)
	return err
}

//go:embed sql/begin_read.sql
var beginReadSQL string

// BeginRead begins a read transaction: one snapshot, as of its first statement.
func (c *Conn) BeginRead(ctx context.Context) error {
	_, err := c.Exec(ctx, &beginReadSQL)
	return err
}

//go:embed sql/commit.sql
var commitSQL string

// Commit ends a transaction.
func (c *Conn) Commit(ctx context.Context) error {
	_, err := c.Exec(ctx, &commitSQL)
	return err
}

//go:embed sql/rollback.sql
var rollbackSQL string

// Rollback undoes a transaction. An error means that SQLite rolled back by itself.
func (c *Conn) Rollback(ctx context.Context) error {
	_, err := c.Exec(ctx, &rollbackSQL)
	return err
}

//go:embed sql/checkpoint.sql
var checkpointSQL string

// Checkpoint copies as much of the log into the file as readers allow. It returns how many frames
// the log has and how many of them are in the file.
func (c *Conn) Checkpoint(ctx context.Context) (frames, copied int64, err error) {
	err = c.Query(ctx, &checkpointSQL, func(r *Row) error {
		r.Int() // whether another connection blocked it
		frames, copied = r.Int(), r.Int()
		return nil
	})
	return frames, copied, err
}

//go:embed sql/checkpoint_truncate.sql
var checkpointTruncateSQL string

// CheckpointAll copies the whole log into the file and empties it. busy reports whether another
// connection kept it from doing so.
func (c *Conn) CheckpointAll(ctx context.Context) (busy bool, err error) {
	err = c.Query(ctx, &checkpointTruncateSQL, func(r *Row) error {
		busy = r.Int() != 0
		return nil
	})
	return busy, err
}

//go:embed sql/database_size.sql
var databaseSizeSQL string

// Size returns the bytes of the file, and how many of them are free pages.
func (c *Conn) Size(ctx context.Context) (bytes, free int64, err error) {
	err = c.Query(ctx, &databaseSizeSQL, func(r *Row) error {
		bytes, free = r.Int(), r.Int()
		return nil
	})
	return bytes, free, err
}

//go:embed sql/durability.sql
var durabilitySQL string

// Durability returns the journal mode and the level of synchronous of the connection.
func (c *Conn) Durability(ctx context.Context) (journal string, synchronous int64, err error) {
	err = c.Query(ctx, &durabilitySQL, func(r *Row) error {
		journal, synchronous = r.Text(), r.Int()
		return nil
	})
	return journal, synchronous, err
}

//go:embed sql/version.sql
var versionSQL string

// Version returns SQLite's version.
func (c *Conn) Version(ctx context.Context) (version string, err error) {
	err = c.Query(ctx, &versionSQL, func(r *Row) error {
		version = r.Text()
		return nil
	})
	return version, err
}

//go:embed sql/data_version.sql
var dataVersionSQL string

// DataVersion returns a number that changes whenever another connection has changed the database.
func (c *Conn) DataVersion(ctx context.Context) (version int64, err error) {
	err = c.Query(ctx, &dataVersionSQL, func(r *Row) error {
		version = r.Int()
		return nil
	})
	return version, err
}
