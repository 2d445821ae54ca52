package backup

import (
	"context"
	"crypto/sha256"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// digestPart is the number of bytes read before a pause.
const digestPart = 1 << 20

// partPattern names a backup that is being written, beside its place.
const partPattern = "kagzi-backup-*.part"

// partSuffixes are the suffixes of files beside it while it is written.
var partSuffixes = []string{"", "-journal", "-wal", "-shm", ".lock"}

// Place lets fill write a database to a temporary file beside file, reads it back, and renames it:
// complete, durable and readable by its owner only, or not at all. fill returns the time of the
// copy.
func Place(ctx context.Context, file string, fill func(part string) (time.Time, error)) (b engine.Backup, err error) {
	return PlaceAs(ctx, file, partPattern, fill)
}

// PlaceAs is Place; pattern names the temporary file.
func PlaceAs(ctx context.Context, file, pattern string, fill func(part string) (time.Time, error)) (b engine.Backup,
	err error) {
	return place(file, pattern, func(part string) (engine.Backup, error) {
		at, err := fill(part)
		if err != nil {
			return engine.Backup{}, err
		}
		if err := seal(ctx, part, at); err != nil {
			return engine.Backup{}, err
		}
		return inspect(ctx, part)
	})
}

// Receive is Place for a backup that is received as a stream of bytes.
func Receive(ctx context.Context, file string, fill func(io.Writer) error) (engine.Backup, error) {
	b, err := place(file, partPattern, func(part string) (engine.Backup, error) {
		to, err := os.OpenFile(part, os.O_WRONLY, 0)
		if err != nil {
			return engine.Backup{}, err
		}
		err = fill(to)
		if closing := to.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return engine.Backup{}, err
		}
		return inspect(ctx, part)
	})
	if errors.Is(err, fs.ErrExist) {
		err = TranslateError(err)
	}
	return b, err
}

func place(file, pattern string, fill func(part string) (engine.Backup, error)) (b engine.Backup, err error) {
	if file, err = filepath.Abs(file); err != nil {
		return b, err
	}
	if _, err := os.Lstat(file); err == nil {
		return b, fmt.Errorf("%s: %w; choose another name", file, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(file), pattern)
	if err != nil {
		return b, err
	}
	part := f.Name()
	defer func() {
		for _, suffix := range partSuffixes {
			os.Remove(part + suffix)
		}
	}()
	if err := f.Close(); err != nil {
		return b, err
	}
	if b, err = fill(part); err != nil {
		return engine.Backup{}, err
	}
	b.File = file
	if err := syncPath(part); err != nil {
		return engine.Backup{}, err
	}
	if err := settleAt(part, file); err != nil {
		return engine.Backup{}, err
	}
	return b, nil
}

// settleAt renames part, unless the name is taken.
func settleAt(part, file string) error {
	err := dbfile.RenameNew(part, file)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w; choose another name", file, fs.ErrExist)
	}
	if err != nil {
		return err
	}
	return dbfile.SyncDirectory(filepath.Dir(file))
}

// syncPath syncs a file that nothing in this process has open: closing one would drop SQLite's
// locks on it.
func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// seal marks a copy as a backup of that time and takes it out of WAL mode.
func seal(ctx context.Context, part string, at time.Time) error {
	c, err := sqlite3.Open(sqlite3.DSN(part, "synchronous(off)", "locking_mode(exclusive)", "journal_mode(delete)"))
	if err != nil {
		return err
	}
	number, err := dbfile.SchemaNumber(ctx, c)
	if err == nil && number >= schemaOfStates {
		_, err = dbfile.SetState(ctx, c, engine.StandingBackup, "", at)
	}
	return errors.Join(err, c.Close())
}

// schemaOfStates is the first schema with the table standing.
const schemaOfStates = 3

//go:embed sql/backup_rows.sql
var backupRowsSQL string

//go:embed sql/check_quickly.sql
var checkQuicklySQL string

// inspect reads a backup that nobody changes; damage is an error.
func inspect(ctx context.Context, file string) (b engine.Backup, err error) {
	c, err := dbfile.OpenReadOnly(file, nil)
	if err != nil {
		return b, err
	}
	err = inspectRows(ctx, c.Conn, &b)
	if err = errors.Join(err, c.Close()); err != nil {
		return b, err
	}
	b.File = file
	b.SHA256, b.Bytes, err = digestOf(ctx, file)
	return b, err
}

func inspectRows(ctx context.Context, c *sqlite3.Conn, b *engine.Backup) (err error) {
	if b.Schema, err = dbfile.SchemaNumber(ctx, c); err != nil {
		return err
	}
	if b.Schema == 0 {
		return errors.New("it has no Kagzi schema")
	}
	damage := ""
	err = c.Query(ctx, &checkQuicklySQL, func(r *sqlite3.Row) error {
		if line := r.Text(); line != "ok" && damage == "" {
			damage = line
		}
		return nil
	})
	if err == nil && damage != "" {
		err = dbfile.Damaged(errors.New(damage))
	}
	if err == nil && b.Schema >= schemaOfStates {
		_, b.TakenAt, err = dbfile.State(ctx, c, engine.StandingBackup)
	}
	if err != nil {
		return err
	}
	return c.Query(ctx, &backupRowsSQL, func(r *sqlite3.Row) error {
		b.Rows = engine.BackupRows{Runs: r.Int(), OpenRuns: r.Int(), Steps: r.Int()}
		return nil
	})
}

// digestOf reads a whole file, with pauses for others.
func digestOf(ctx context.Context, file string) (sum [32]byte, size int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return sum, 0, err
	}
	defer f.Close()
	hash := sha256.New()
	for {
		begun := time.Now()
		n, err := io.CopyN(hash, f, digestPart)
		if size += n; errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = breathe(ctx, time.Since(begun))
		}
		if err != nil {
			return sum, 0, err
		}
	}
	return [32]byte(hash.Sum(nil)), size, nil
}

// CheckRows finds contradictions in a database with this program's schema.
type CheckRows func(ctx context.Context, c *sqlite3.Conn) ([]engine.Finding, error)

// Verify reads a whole backup and returns the contradictions that Check would find in it. A damaged
// one is an error.
func Verify(ctx context.Context, file string, check CheckRows) (b engine.Backup, findings []engine.Finding, err error) {
	if file, err = dbfile.Locate(file); err != nil {
		return b, nil, err
	}
	if b, err = inspect(ctx, file); err != nil {
		if failure := dbfile.AsFatal(err, true); failure != nil && failure.Corrupt {
			if d := dbfile.Diagnose(ctx, file, 0); d != nil {
				return b, nil, fmt.Errorf("%s: %s", file, d)
			}
		}
		return b, nil, fmt.Errorf("%s is not a valid backup: %w", file, err)
	}
	c, err := dbfile.OpenReadOnly(file, nil)
	if err != nil {
		return b, nil, err
	}
	defer c.Close()
	if newest, err := dbfile.NewestSchema(); err != nil || b.Schema != newest {
		return b, nil, err // this program cannot check the rows of another schema
	}
	findings, err = check(ctx, c.Conn)
	return b, findings, err
}
