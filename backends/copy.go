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

// Copy moves all rows of one database to another, as package move says. The target is given a
// schema if it has none, and is made if it is a file that is not there. p.Now must be set.
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

// Snapshot copies what a database holds at one moment into a file that is not there yet, while its
// servers go on. A file that is left after an error is not whole, and no server takes it.
func Snapshot(ctx context.Context, from, toFile string, now time.Time,
	progress func(engine.CopyProgress)) (engine.CopyReport, error) {
	return Copy(ctx, engine.CopyParams{From: from, To: "sqlite:" + toFile, Snapshot: true, Now: now,
		Progress: progress})
}

// Release gives up a copy of the database: its servers may write again. After a copy that ended it must be forced.
func Release(ctx context.Context, url string, force bool) (err error) {
	d, err := openEnd(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return move.Release(ctx, d, force)
}

// apart refuses one file under two names.
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

// openSource opens a file that is only looked at so that nothing of it changes.
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

// openTarget gives a database without a schema the one of this program. An old one is somebody's, and stays as it is.
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
