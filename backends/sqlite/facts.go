package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// Describe tells the file's name and size, the log beside it left out of that.
func (s *Store) Describe(ctx context.Context) (engine.Description, error) {
	busy := readerCount - len(s.readers)
	type size struct {
		file, free int64
		restored   string
	}
	of, err := read(ctx, s, "Describe", func(r session) (of size, err error) {
		of.file, of.free, err = r.conn.Size(r.ctx)
		if err == nil {
			var from string
			var at time.Time
			if from, at, err = dbfile.State(r.ctx, r.conn, engine.StandingRestored); !at.IsZero() {
				of.restored = at.Format(time.RFC3339) + " from a backup (" + from + ")"
			}
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
		engine.Fact{Name: "database file", Value: dbfile.BytesText(of.file) + ", " + dbfile.BytesText(of.free) + " of it free"},
		engine.Fact{Name: "write-ahead log", Value: s.logText()},
	)
	if !s.looking() {
		d.Facts = append(d.Facts,
			engine.Fact{Name: "durability", Value: s.durability},
			engine.Fact{Name: "page checksums", Value: checkedText(s.checked)},
			engine.Fact{Name: "last checkpoint", Value: sinceStart(s.folded.Load())},
			engine.Fact{Name: "page cache of the writer", Value: dbfile.BytesText(s.cached.Load())},
			engine.Fact{Name: "writes waiting", Value: fmt.Sprint(len(s.writer.calls))},
			engine.Fact{Name: "readers", Value: fmt.Sprintf("%d of %d busy", busy, readerCount)},
		)
	}
	if free, err := dbfile.FreeBytes(filepath.Dir(s.path)); err == nil {
		d.Facts = append(d.Facts, engine.Fact{Name: "free disk space", Value: dbfile.BytesText(int64(free))})
	}
	return d, nil
}

// durabilityOf is what a connection promises about the disk, as it was set: "journal_mode=wal, synchronous=full".
func durabilityOf(ctx context.Context, c *sqlite3.Conn) (text string, err error) {
	journal, level, err := c.Durability(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("journal_mode=%s, synchronous=%s", journal, [...]string{"off", "normal", "full", "extra"}[level&3]), nil
}

func (s *Store) logText() string {
	info, err := dbfile.StatIfExists(s.path + "-wal")
	switch {
	case err != nil:
		return "unknown"
	case info == nil:
		return "none"
	}
	return dbfile.BytesText(info.Size())
}

// sinceStart is a moment in microseconds, 0: none yet.
func sinceStart(micros int64) string {
	if micros == 0 {
		return "none since the start"
	}
	return time.UnixMicro(micros).UTC().Format(time.RFC3339)
}

func checkedText(checked bool) string {
	if checked {
		return "on"
	}
	return "off: `kagzi db migrate` adds them"
}
