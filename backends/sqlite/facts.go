package sqlite

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/database_size.sql
var databaseSizeSQL string

// Describe tells the file's name and size, the log beside it left out of that.
func (s *Store) Describe(ctx context.Context) (engine.Description, error) {
	busy := readerCount - len(s.readers)
	type size struct {
		file, free int64
		restored   string
	}
	of, err := read(ctx, s, "Describe", func(r session) (of size, err error) {
		err = r.query(&databaseSizeSQL, func(row *row) error {
			of.file, of.free = row.num(), row.num()
			return nil
		})
		if err == nil {
			err = r.query(&getStandingSQL, func(row *row) error {
				from, at := row.text(), row.time()
				of.restored = at.Format(time.RFC3339) + " from a backup (" + from + ")"
				return nil
			}, text("name", engine.StandingRestored))
		}
		return of, err
	})
	if err != nil {
		return engine.Description{}, err
	}
	d := engine.Description{
		Backend: "sqlite", Version: s.version, Database: s.path, Bytes: of.file, Schema: s.schema, Notifications: "in-process",
	}
	if s.looking() {
		d.Notifications = "polling"
		d.Facts = append(d.Facts, engine.Fact{Name: "access", Value: "read-only"})
	}
	if of.restored != "" {
		d.Facts = append(d.Facts, engine.Fact{Name: "restored", Value: of.restored})
	}
	d.Facts = append(d.Facts,
		engine.Fact{Name: "database file", Value: bytesText(of.file) + ", " + bytesText(of.free) + " of it free"},
		engine.Fact{Name: "write-ahead log", Value: s.logText()},
	)
	if !s.looking() {
		d.Facts = append(d.Facts,
			engine.Fact{Name: "durability", Value: s.durability},
			engine.Fact{Name: "page checksums", Value: checkedText(s.checked)},
			engine.Fact{Name: "last checkpoint", Value: sinceStart(s.folded.Load())},
			engine.Fact{Name: "page cache of the writer", Value: bytesText(s.cached.Load())},
			engine.Fact{Name: "writes waiting", Value: fmt.Sprint(len(s.writer.calls))},
			engine.Fact{Name: "readers", Value: fmt.Sprintf("%d of %d busy", busy, readerCount)},
		)
	}
	if free, err := freeBytes(filepath.Dir(s.path)); err == nil {
		d.Facts = append(d.Facts, engine.Fact{Name: "free disk space", Value: bytesText(int64(free))})
	}
	return d, nil
}

//go:embed sql/durability.sql
var durabilitySQL string

// durabilityOf is what a connection promises about the disk, as it was set: "journal_mode=wal, synchronous=full".
func durabilityOf(ctx context.Context, c *conn) (text string, err error) {
	err = c.query(ctx, &durabilitySQL, func(r *row) error {
		journal, level := r.text(), r.num()
		text = fmt.Sprintf("journal_mode=%s, synchronous=%s", journal, [...]string{"off", "normal", "full", "extra"}[level&3])
		return nil
	})
	return text, err
}

func (s *Store) logText() string {
	info, err := beside(s.path + "-wal")
	switch {
	case err != nil:
		return "unknown"
	case info == nil:
		return "none"
	}
	return bytesText(info.Size())
}

// sinceStart is a moment in microseconds, 0: none yet.
func sinceStart(micros int64) string {
	if micros == 0 {
		return "none since the start"
	}
	return time.UnixMicro(micros).UTC().Format(time.RFC3339)
}

// bytesText is a size as people read it.
func bytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if size /= 1 << 10; size < 1000 {
			return fmt.Sprintf("%.1f %s", size, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", size/(1<<10))
}

func checkedText(checked bool) string {
	if checked {
		return "on"
	}
	return "off: `kagzi db migrate` adds them"
}
