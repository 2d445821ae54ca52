package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// Rows holds what a restore needs from the store, which knows the rows.
type Rows struct {
	// Check finds contradictions in a database.
	Check CheckRows
	// Adopt migrates a restored file and prepares its rows for a server.
	Adopt func(ctx context.Context, file string, p engine.AfterRestoreParams) (engine.AfterRestore, error)
}

// errHoldsRows refuses to replace a database that was used.
var errHoldsRows = &engine.Error{Kind: engine.KindPrecondition,
	Message: "the database to restore into already holds rows; --force replaces it and keeps the old file, --dry-run shows what would be lost"}

// Restore replaces the database at path by the backup p.File. No server may be using the database.
// The new file is made beside it, prepared (storelogic.AfterRestore), checked, and put in place in
// one step; the old file is kept under another name.
func Restore(ctx context.Context, path string, p engine.RestoreParams, rows Rows) (out engine.Restoration, err error) {
	r := &restoring{p: p, rows: rows, out: &out}
	if err := r.verify(ctx); err != nil {
		return out, err
	}
	if err := r.lockTarget(path); err != nil {
		return out, err
	}
	defer r.release()
	if err := r.compare(ctx); err != nil {
		return out, err
	}
	out.Empty = !r.before
	beside := filepath.Dir(r.target)
	if p.DryRun {
		beside = ""
	}
	if err := r.prepare(ctx, beside); err != nil {
		return out, fmt.Errorf("restore %s: %w", p.File, err)
	}
	if p.DryRun {
		return out, nil
	}
	if err := r.swap(ctx); err != nil {
		return out, fmt.Errorf("restore %s: %w", p.File, err)
	}
	return out, nil
}

// RestoreElsewhere makes a file from the backup p.File that can be served. carry copies it
// elsewhere; afterwards the file is deleted. from describes the backup, with its time.
func RestoreElsewhere(ctx context.Context, p engine.RestoreParams, rows Rows,
	carry func(file, from string) error) (out engine.Restoration, err error) {
	r := &restoring{p: p, rows: rows, out: &out}
	if err := r.verify(ctx); err != nil {
		return out, err
	}
	defer r.release()
	if err := r.prepare(ctx, ""); err != nil {
		return out, fmt.Errorf("restore %s: %w", p.File, err)
	}
	if p.DryRun {
		return out, nil
	}
	return out, carry(r.next, describeBackup(&out.Backup))
}

// verify reads the backup. It refuses a damaged one and, unless forced, one with contradictions.
func (r *restoring) verify(ctx context.Context) (err error) {
	r.out.Backup, r.out.Findings, err = Verify(ctx, r.p.File, r.rows.Check)
	if err != nil {
		return err
	}
	r.p.File = r.out.Backup.File // symbolic links resolved
	if n := len(r.out.Findings); n > 0 && !r.p.Force {
		return fmt.Errorf("the backup contradicts itself (findings: %d); --force restores it nevertheless", n)
	}
	newest, err := dbfile.NewestSchema()
	if err == nil && r.out.Backup.Schema > newest {
		err = dbfile.NewerSchemaError(r.out.Backup.Schema, newest)
	}
	return err
}

// restoring is a restore in progress.
type restoring struct {
	p      engine.RestoreParams
	rows   Rows
	out    *engine.Restoration
	target string
	before bool // there is a database at the path
	lock   *dbfile.Lock
	dir    string // temporary, beside the target; holds the new file
	next   string // the new file
}

// lockTarget locks the path, except for a dry run, and refuses a database with rows.
func (r *restoring) lockTarget(path string) (err error) {
	if r.p.DryRun {
		r.target, err = filepath.Abs(path)
	} else {
		r.target, err = dbfile.Prepare(path)
	}
	if err != nil {
		return err
	}
	r.out.Database = r.target
	if target, err := dbfile.Locate(r.target); err == nil {
		r.target = target
	}
	there, err := dbfile.StatIfExists(r.target)
	if err != nil {
		return err
	}
	if r.before = there != nil && there.Size() > 0; r.before {
		if file, err := os.Stat(r.p.File); err == nil && os.SameFile(file, there) {
			return errors.New("the backup is the database itself")
		}
	}
	if r.p.DryRun {
		return nil
	}
	if r.lock, err = dbfile.Acquire(r.target); err != nil {
		return err
	}
	_ = dbfile.RemoveLeftovers(r.target) // a leftover that cannot be deleted does no harm
	return nil
}

// release leaves nothing beside the database except its lock.
func (r *restoring) release() {
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
	if r.lock != nil {
		r.lock.Release()
	}
}

// prepare makes the new file in a temporary directory: a copy of the backup, migrated, prepared for
// a server and checked.
func (r *restoring) prepare(ctx context.Context, beside string) (err error) {
	pattern := "kagzi-restore-*"
	if beside != "" {
		pattern = filepath.Base(r.target) + dbfile.HalfRestore
	}
	if r.dir, err = os.MkdirTemp(beside, pattern); err != nil {
		return err
	}
	r.next = filepath.Join(r.dir, "kagzi.db")
	if err := r.copyBackup(ctx); err != nil {
		return err
	}
	params := engine.AfterRestoreParams{From: describeBackup(&r.out.Backup), Next: r.p.Next, Now: r.p.Now}
	if r.p.Refire {
		params.Next = nil
	}
	if r.out.Changed, err = r.rows.Adopt(ctx, r.next, params); err != nil {
		return err
	}
	findings, err := r.check(ctx)
	if err == nil && len(findings) > 0 && len(r.out.Findings) == 0 {
		err = fmt.Errorf("the restored database has errors: %s: %s", findings[0].Subject, findings[0].Text)
	}
	return err
}

// check finds contradictions in the new file.
func (r *restoring) check(ctx context.Context) ([]engine.Finding, error) {
	c, err := dbfile.OpenReader(r.next)
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", r.next, err)
	}
	defer c.Close()
	return r.rows.Check(ctx, c.Conn)
}

// describeBackup names the backup and its time.
func describeBackup(b *engine.Backup) string {
	text := "SHA-256 " + fmt.Sprintf("%x", b.SHA256[:8])
	if !b.TakenAt.IsZero() {
		text = b.TakenAt.Format(time.RFC3339) + ", " + text
	}
	return text
}

func (r *restoring) copyBackup(ctx context.Context) error {
	c, err := dbfile.OpenReadOnly(r.p.File, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := dbfile.CreatePrivately(r.next); err != nil {
		return err
	}
	return CopyTo(ctx, c.Conn, r.next)
}

// swap replaces the old file by the new one and keeps the old file under another name. At every
// moment the path holds a complete database, or one that servers refuse. It must never hold a
// database without its log, which would be served without its last commits, or with another one's
// log.
func (r *restoring) swap(ctx context.Context) error {
	dbfile.GiveToOwnerOf(r.next, r.target)
	if err := syncPath(r.next); err != nil {
		return err
	}
	kept := r.target + ".before-restore-" + Stamp(r.p.Now)
	if !r.before {
		// SQLite would take the log of the old database for the new file's, and its pages for newer
		// ones.
		if err := moveLog(r.target, kept); err != nil {
			return err
		}
		return moveInto(r.next, r.target)
	}
	if err := checkpointAway(ctx, r.target); err != nil {
		return err
	}
	if err := refuseOthers(r.target); err != nil {
		return err
	}
	if err := keepAs(r.target, kept); err != nil {
		return err
	}
	if err := Replace(r.next, r.target, kept); err != nil {
		return err
	}
	r.out.Kept = kept
	return nil
}

// Replace puts the new file in the place of one that has a second name. A log that could not be
// checkpointed is renamed too. If the log is damaged, it goes last, because no server opens a file
// beside it. Otherwise the database is damaged, and no server opens that without its log either.
func Replace(next, target, kept string) error {
	damaged, err := hasDamagedLog(target)
	if err != nil {
		return err
	}
	if damaged {
		if err := moveInto(next, target); err != nil {
			return err
		}
		return moveLog(target, kept)
	}
	if err := moveLog(target, kept); err != nil {
		return err
	}
	return moveInto(next, target)
}

func moveInto(next, target string) error {
	if err := dbfile.Rename(next, target); err != nil {
		return err
	}
	return dbfile.SyncDirectory(filepath.Dir(target))
}

// moveLog renames a log, if there is one, together with its database.
func moveLog(from, to string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := dbfile.Rename(from+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return dbfile.SyncDirectory(filepath.Dir(from))
}

// hasDamagedLog reports whether the log beside a database is damaged, so that SQLite does not
// recover it.
func hasDamagedLog(path string) (bool, error) {
	log, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return false, err
	}
	return sqlite3.DamagedLog(log, info.Size())
}

// checkpointAway checkpoints and removes the log beside a database. It fails if the log is damaged.
func checkpointAway(ctx context.Context, path string) error {
	c, err := sqlite3.Open(sqlite3.DSN(path, "busy_timeout(1000)", "synchronous(full)"))
	if err == nil {
		err = checkpointAll(ctx, c)
		if closing := c.Close(); err == nil {
			err = closing
		}
	}
	if failure := dbfile.AsFatal(err, false); failure != nil && failure.Corrupt {
		return nil
	}
	return err
}

// keepAs gives a file a second, unused name. On a file system without links it is the only name.
func keepAs(path, kept string) error {
	if _, err := os.Lstat(kept); err == nil {
		return fmt.Errorf("%s already exists", kept)
	}
	if err := os.Link(path, kept); err != nil {
		return dbfile.Rename(path, kept)
	}
	return nil
}

// Stamp formats a time for a file name, precisely enough that a restart after a kill uses another
// name.
func Stamp(t time.Time) string { return t.UTC().Format("20060102T150405.000000Z") }
