package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// Describe returns the file's name and size, without the log, and facts about the store.
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
		Backend: "sqlite", Version: s.version, Database: s.path, Bytes: of.file, Schema: s.schema,
		Notifications: "in-process",
	}
	if s.readOnly() {
		d.Notifications = "polling"
		d.Facts = append(d.Facts, engine.Fact{Name: "access", Value: "read-only"})
	}
	if of.restored != "" {
		d.Facts = append(d.Facts, engine.Fact{Name: "restored", Value: of.restored})
	}
	d.Facts = append(d.Facts,
		engine.Fact{Name: "database file", Value: dbfile.BytesText(of.file) + ", " + dbfile.BytesText(of.free) +
			" of it free"},
		engine.Fact{Name: "write-ahead log", Value: s.logText()},
	)
	if !s.readOnly() {
		d.Facts = append(d.Facts,
			engine.Fact{Name: "durability", Value: s.durability},
			engine.Fact{Name: "page checksums", Value: checkedText(s.checked)},
			engine.Fact{Name: "last checkpoint", Value: sinceStart(s.checkpointed.Load())},
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

// durabilityOf returns the journal mode and synchronous level of a connection: "journal_mode=wal,
// synchronous=full".
func durabilityOf(ctx context.Context, c *sqlite3.Conn) (text string, err error) {
	journal, level, err := c.Durability(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("journal_mode=%s, synchronous=%s", journal,
		[...]string{"off", "normal", "full", "extra"}[level&3]), nil
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

// sinceStart formats a time in microseconds; 0: none yet.
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

const (
	// proofPause is the time between a failed write or proof and the next proof.
	proofPause = time.Second
	// proofBytes is the free space that a disk must have to accept writes again.
	proofBytes = 1 << 20
)

// proof checks whether a disk that failed a write accepts writes again. Clients stop sending writes
// to a store that is not healthy, so no write would show that it has recovered. A proof begins when
// Health is called, and Health does not wait for it.
type proof struct {
	pause time.Duration

	mu   sync.Mutex
	last time.Time     // when a write failed, or a proof ended
	over chan struct{} // closed when the running proof ends; nil: none is running
}

// failed records that a write has failed.
func (p *proof) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// begin begins a proof if none is running and it is time for one.
func (p *proof) begin(prove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil || time.Since(p.last) < p.pause {
		return
	}
	over := make(chan struct{})
	p.over = over
	go func() {
		prove()
		p.mu.Lock()
		p.last, p.over = time.Now(), nil
		p.mu.Unlock()
		close(over)
	}()
}

// wait waits for a running proof. No other may begin meanwhile.
func (p *proof) wait() {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over != nil {
		<-over
	}
}

// prove writes to the database's disk: first a file, to check for free space, and then to the
// database. If that succeeds, the store is healthy again.
func (s *Store) prove() {
	if err := takesRoom(s.path + "-proof"); err != nil {
		return
	}
	// the writer records the outcome
	_, _ = write(context.Background(), s, "prove", 0, func(t *tx) (none struct{}, err error) {
		if err := t.Stand("proof", "made", s.Now()); err != nil {
			return none, err
		}
		return none, t.Stand("proof", "", time.Time{})
	})
}

// takesRoom checks that the disk accepts a file of proofBytes, and deletes the file.
func takesRoom(path string) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, proofBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}
