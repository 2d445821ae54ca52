package sqlite

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/check_integrity.sql
var checkIntegritySQL string

//go:embed sql/check_page.sql
var checkPageSQL string

//go:embed sql/check_references.sql
var checkReferencesSQL string

//go:embed sql/check_runs.sql
var checkRunsSQL string

//go:embed sql/check_leases.sql
var checkLeasesSQL string

//go:embed sql/check_orphans.sql
var checkOrphansSQL string

//go:embed sql/check_steps.sql
var checkStepsSQL string

//go:embed sql/check_counts.sql
var checkCountsSQL string

//go:embed sql/check_schedules.sql
var checkSchedulesSQL string

//go:embed sql/check_keys.sql
var checkKeysSQL string

//go:embed sql/check_hooks.sql
var checkHooksSQL string

//go:embed sql/check_texts.sql
var checkTextsSQL string

// Check reports damage, references to missing rows, and rows that contradict each other. It reads
// everything, on one snapshot; a server may be running. With an older schema it reports damage
// only; if there is none, it returns an error.
func Check(ctx context.Context, path string) ([]engine.Finding, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	path, err := dbfile.Resolve(path)
	if err != nil {
		return nil, err
	}
	c, number, err := openToCheck(ctx, path)
	if sqlite3.Code(err) == sqlite3.CodeCorrupt {
		if d := dbfile.Diagnose(ctx, path, 0); d != nil {
			return diagnosed(d), nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.Close()
	if number == 0 {
		return nil, fmt.Errorf("%s has no schema: `kagzi db migrate` makes it", path)
	}
	findings, err := check(ctx, c.Conn)
	if err == nil && len(findings) > 0 && findings[0].Text == brokenPage {
		if d := dbfile.Diagnose(ctx, path, 0); d != nil {
			return diagnosed(d), nil
		}
	}
	return findings, err
}

// diagnosed returns the pages that are not as they were written, and what that means.
func diagnosed(d *dbfile.Diagnosis) (findings []engine.Finding) {
	for _, pages := range []struct {
		numbers []int64
		text    string
	}{
		{d.Wrong, "it does not match its checksum"},
		{d.Bare, "it has no checksum: another program wrote it"},
	} {
		for _, number := range pages.numbers[:min(len(pages.numbers), maxBrokenPages)] {
			findings = append(findings, engine.Finding{Subject: fmt.Sprintf("page %d", number), Text: pages.text})
		}
	}
	return append(findings, engine.Finding{Subject: "file", Text: d.String()})
}

// openToCheck connects to the file as a server's readers do, or read-only if the disk takes no
// writes.
func openToCheck(ctx context.Context, path string) (c *dbfile.Reader, number int, err error) {
	for _, open := range []func() (*dbfile.Reader, error){
		func() (*dbfile.Reader, error) { return dbfile.OpenReader(path) },
		func() (*dbfile.Reader, error) { return dbfile.OpenReadOnly(path, nil) },
	} {
		if c, err = open(); err == nil {
			if number, err = dbfile.SchemaNumber(ctx, c.Conn); err == nil {
				return c, number, nil
			}
			c.Close()
		}
		if kind := sqlite3.Code(err); kind != sqlite3.CodeCantOpen && kind != sqlite3.CodeReadOnly {
			break
		}
	}
	return nil, 0, err
}

func check(ctx context.Context, c *sqlite3.Conn) ([]engine.Finding, error) {
	if err := c.BeginRead(ctx); err != nil {
		return nil, err
	}
	defer c.Rollback(ctx)
	rows := session{conn: c, ctx: ctx}
	findings, err := brokenPages(rows)
	if err != nil || len(findings) > 0 { // other findings would come from damaged pages
		return findings, err
	}
	err = rows.query(&checkIntegritySQL, func(r *row) error {
		if line := r.text(); line != "ok" {
			findings = append(findings, engine.Finding{Subject: "file", Text: line})
		}
		return nil
	})
	if err == nil {
		err = rows.query(&checkReferencesSQL, func(r *row) error {
			findings = append(findings, engine.Finding{
				Subject: "table " + r.text(), Text: "a row refers to a " + r.text() + " row that does not exist"})
			return nil
		})
	}
	if old := refuseOldRows(ctx, c); err == nil && old != nil {
		if len(findings) > 0 {
			return findings, nil
		}
		return nil, old
	}
	for _, statement := range []*string{&checkRunsSQL, &checkLeasesSQL, &checkOrphansSQL, &checkStepsSQL,
		&checkCountsSQL, &checkSchedulesSQL, &checkKeysSQL, &checkHooksSQL} {
		if err != nil {
			return findings, err
		}
		err = rows.query(statement, func(r *row) error {
			findings = append(findings, engine.Finding{Subject: r.text() + " " + r.id().String(), Text: r.text()})
			return nil
		})
	}
	if err != nil {
		return findings, err
	}
	err = rows.query(&checkTextsSQL, func(r *row) error {
		kind, id, name, what, value := r.text(), r.id(), r.text(), r.text(), r.text()
		if id != (engine.ID{}) {
			name = id.String()
		}
		if !json.Valid([]byte(value)) {
			findings = append(findings, engine.Finding{
				Subject: kind + " " + name, Text: "its " + what + " cannot be read: it is not JSON"})
		}
		return nil
	})
	return findings, err
}

// refuseOldRows returns an error for rows of an older schema, which this program cannot check.
func refuseOldRows(ctx context.Context, c *sqlite3.Conn) error {
	number, err := dbfile.SchemaNumber(ctx, c)
	if err != nil {
		return err
	}
	newest, err := dbfile.NewestSchema()
	if err == nil && number < newest {
		err = fmt.Errorf(
			"the file is not damaged; its rows have schema %d and this program checks schema %d: run `kagzi db migrate`, then check again", number, newest)
	}
	return err
}

// maxBrokenPages limits how many damaged pages are reported.
const maxBrokenPages = 100

const brokenPage = "it does not match its checksum: it was damaged, or another program has written to the file"

// brokenPages reads every page, unused ones included.
func brokenPages(rows session) (findings []engine.Finding, err error) {
	var pages int64
	counting := "pragma page_count"
	err = rows.query(&counting, func(r *row) error {
		pages = r.num()
		return nil
	})
	for number := int64(1); err == nil && number <= pages && len(findings) < maxBrokenPages; number++ {
		err = rows.query(&checkPageSQL, func(*row) error { return nil }, num("page", number))
		if sqlite3.Code(err) == sqlite3.CodeCorrupt {
			findings = append(findings, engine.Finding{Subject: fmt.Sprintf("page %d", number),
				Text: brokenPage})
			err = nil
		}
	}
	return findings, err
}

var _ engine.Backups = (*Store)(nil)

// Backup copies the present content of the database, over its own connection.
func (s *Store) Backup(ctx context.Context, file string) (engine.Backup, error) {
	select {
	case <-s.closed:
		return engine.Backup{}, dbfile.ErrClosed
	default:
	}
	if s.readOnly() {
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

// Backup copies the database at path, which a server may be using, into a new file. It leaves
// nothing beside the database.
func Backup(ctx context.Context, path, file string) (engine.Backup, error) {
	return backup.Database(ctx, path, file)
}

// PlaceBackup lets fill write a database to a temporary file beside file, reads it back, and
// renames it: complete, durable and readable by its owner only, or not at all. fill returns the
// time of the copy.
func PlaceBackup(ctx context.Context, file string, fill func(part string) (time.Time, error)) (engine.Backup, error) {
	return backup.Place(ctx, file, fill)
}

// ReceiveBackup is PlaceBackup for a backup that is received as a stream of bytes.
func ReceiveBackup(ctx context.Context, file string, fill func(io.Writer) error) (engine.Backup, error) {
	return backup.Receive(ctx, file, fill)
}

// VerifyBackup reads a whole backup and returns the contradictions that Check would find in it. A
// damaged one is an error.
func VerifyBackup(ctx context.Context, file string) (engine.Backup, []engine.Finding, error) {
	return backup.Verify(ctx, file, check)
}

// Restore replaces the database at path by the backup p.File. No server may be using the database.
func Restore(ctx context.Context, path string, p engine.RestoreParams) (engine.Restoration, error) {
	return backup.Restore(ctx, path, p, restoredRows)
}

// RestoreElsewhere makes a file from the backup p.File that can be served. carry copies it
// elsewhere; afterwards the file is deleted. from describes the backup.
func RestoreElsewhere(ctx context.Context, p engine.RestoreParams,
	carry func(file, from string) error) (engine.Restoration, error) {
	return backup.RestoreElsewhere(ctx, p, restoredRows, carry)
}

// restoredRows is what a restore needs to know of the rows.
var restoredRows = backup.Rows{Check: check, Adopt: adopt}

// adopt migrates a restored file and prepares its rows for a server.
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

// Accept accepts the database at path as it is, for example after a repair with another program,
// which leaves pages without checksums. It rewrites the database and keeps the old file under the
// name that it returns. No server may be using it. It refuses a database that SQLite finds damaged,
// or whose rows contradict each other; then it returns the contradictions.
func Accept(ctx context.Context, path string) (kept string, findings []engine.Finding, err error) {
	return backup.Accept(ctx, path, check)
}

// Holder returns the description of the process that has locked the database; empty if none has.
func Holder(path string) (string, error) { return dbfile.Holder(path) }

// OpenEnd opens the file at path as one end of a copy (package move). The file must have this
// program's schema. It stays locked against servers until it is closed.
func OpenEnd(ctx context.Context, path string) (*backup.End, error) { return backup.OpenEnd(ctx, path) }

// OpenReadEnd opens the file at path to copy from it. It takes no lock and leaves no files: the
// file may be a backup on a read-only disk. If somebody changes the file meanwhile, reading fails.
func OpenReadEnd(ctx context.Context, path string) (*backup.End, error) {
	return backup.OpenSource(ctx, path)
}
