package sqlite

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/engine"
)

var _ engine.Backups = (*Store)(nil)

// Backup copies the database as it is now, over a connection of its own.
func (s *Store) Backup(ctx context.Context, file string) (engine.Backup, error) {
	select {
	case <-s.closed:
		return engine.Backup{}, dbfile.ErrClosed
	default:
	}
	if s.looking() {
		return backup.DatabaseAt(ctx, s.path, file)
	}
	c, err := dbfile.OpenReader(s.path)
	if err != nil {
		return engine.Backup{}, s.failedRead("Backup", err)
	}
	defer c.Close()
	b, err := backup.Place(ctx, file, func(part string) (time.Time, error) {
		at := s.Now()
		err := backup.CopyTo(ctx, c.Conn, part)
		if failure := dbfile.AsFatal(err, true); failure != nil && failure.Corrupt {
			s.die(failure)
		}
		return at, err
	})
	return b, backup.TranslateError(err)
}

// Backup copies the database at path, which a server may have, into a file that does not exist yet. It leaves nothing beside the database.
func Backup(ctx context.Context, path, file string) (engine.Backup, error) {
	return backup.Database(ctx, path, file)
}

// PlaceBackup has fill write a database beside the file's place, reads it back, and moves it there: complete, durable and for its owner alone, or not
// at all. fill returns the time of the copy.
func PlaceBackup(ctx context.Context, file string, fill func(part string) (time.Time, error)) (engine.Backup, error) {
	return backup.Place(ctx, file, fill)
}

// ReceiveBackup is PlaceBackup for a backup that comes from elsewhere, byte by byte.
func ReceiveBackup(ctx context.Context, file string, fill func(io.Writer) error) (engine.Backup, error) {
	return backup.Receive(ctx, file, fill)
}

// VerifyBackup reads all of a backup, with the contradictions that Check would find in it. A damaged one is an error.
func VerifyBackup(ctx context.Context, file string) (engine.Backup, []engine.Finding, error) {
	return backup.Verify(ctx, file, check)
}

// Restore puts the backup p.File in the place of the database at path, which no server may have.
func Restore(ctx context.Context, path string, p engine.RestoreParams) (engine.Restoration, error) {
	return backup.Restore(ctx, path, p, restoredRows)
}

// RestoreElsewhere makes of the backup p.File a file that can be served, which carry copies elsewhere and which is deleted afterwards. from
// describes the backup.
func RestoreElsewhere(ctx context.Context, p engine.RestoreParams, carry func(file, from string) error) (engine.Restoration, error) {
	return backup.RestoreElsewhere(ctx, p, restoredRows, carry)
}

// restoredRows is what a restore needs to know of the rows.
var restoredRows = backup.Rows{Check: check, Adopt: adopt}

// adopt migrates a restored file and makes its rows fit to be served.
func adopt(ctx context.Context, file string, p engine.AfterRestoreParams) (changed engine.AfterRestore, err error) {
	s, err := openUpTo(ctx, file, engine.OpenOptions{Log: slog.New(slog.DiscardHandler)}, anySize)
	if err != nil {
		return changed, err
	}
	changed, err = s.afterRestore(ctx, p)
	if closing := s.Close(); err == nil {
		err = closing
	}
	return changed, err
}

// Accept accepts the database at path as it is, as after a repair with another program, which leaves pages without a checksum: it writes the database
// again and keeps the old file under the name that it returns. No server may have the database. What SQLite finds damaged is refused, and so are
// rows that contradict each other, with the contradictions.
func Accept(ctx context.Context, path string) (kept string, findings []engine.Finding, err error) {
	return backup.Accept(ctx, path, check)
}

// Holder returns what the process that has the database to itself says of itself; empty: none has.
func Holder(path string) (string, error) { return dbfile.Holder(path) }

// OpenEnd opens the file at path as one end of a copy (package move). The file must have this program's schema. It stays locked against servers
// until it is closed.
func OpenEnd(ctx context.Context, path string) (*backup.End, error) { return backup.OpenEnd(ctx, path) }

// OpenReadEnd opens the file at path to copy from it. It takes no lock and leaves no trace: the file may be a backup on a read-only disk. If somebody
// changes the file meanwhile, reading fails.
func OpenReadEnd(ctx context.Context, path string) (*backup.End, error) {
	return backup.OpenSource(ctx, path)
}
