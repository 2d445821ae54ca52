package backends

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/engine"
)

// Copy moves all rows of one database to another (see package move). A target without a schema gets
// one, and a file that does not exist is made. p.Now must be set.
func Copy(ctx context.Context, p engine.CopyParams) (report engine.CopyReport, err error) {
	if err := apart(p.From, p.To); err != nil {
		return report, err
	}
	from, err := openSource(ctx, p)
	if err != nil {
		return report, fmt.Errorf("the source: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openTarget(ctx, p.To)
	if err != nil {
		return report, fmt.Errorf("the target: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return move.Copy(ctx, from, to, p)
}

// Snapshot copies the state of a database at one moment into a new file, while its servers go on.
// After an error the file may be incomplete; no server opens such a file.
func Snapshot(ctx context.Context, from, toFile string, now time.Time,
	progress func(engine.CopyProgress)) (engine.CopyReport, error) {
	return Copy(ctx, engine.CopyParams{From: from, To: "sqlite:" + toFile, Snapshot: true, Now: now,
		Progress: progress})
}

// Release gives up a copy of the database, so that its servers may write again. After a completed
// copy, force must be set.
func Release(ctx context.Context, url string, force bool) (err error) {
	d, err := openEnd(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return move.Release(ctx, d, force)
}

// apart returns an error if both URLs name the same file.
func apart(from, to string) error {
	a, err := parse(from)
	if err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	b, err := parse(to)
	if err != nil {
		return fmt.Errorf("the target: %w", err)
	}
	if !a.file || !b.file {
		return nil
	}
	one, err := os.Stat(a.at)
	if err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	if other, err := os.Stat(b.at); err == nil && os.SameFile(one, other) {
		return errors.New("source and target are the same database")
	}
	return nil
}

func openEnd(ctx context.Context, url string) (move.Database, error) {
	d, err := parse(url)
	if err != nil {
		return nil, err
	}
	return d.end(ctx, d.at)
}

// openSource opens a source database. With a snapshot it is opened read-only.
func openSource(ctx context.Context, p engine.CopyParams) (move.Database, error) {
	d, err := parse(p.From)
	switch {
	case err != nil:
		return nil, err
	case p.Snapshot:
		return d.readEnd(ctx, d.at)
	}
	return d.end(ctx, d.at)
}

// openTarget gives a database without a schema this program's schema. An older schema belongs to
// somebody and stays unchanged.
func openTarget(ctx context.Context, url string) (move.Database, error) {
	status, err := Status(ctx, url)
	if err != nil {
		return nil, err
	}
	if status.Applied == 0 {
		if err := Migrate(ctx, url); err != nil {
			return nil, err
		}
	}
	return openEnd(ctx, url)
}
