package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/migrations"
)

// testdata/NNNN_name.sql holds the rows that the code of that schema left (storetest.LeaveWork);
// the schema itself comes from the migrations. A landed file is never written again. A new
// migration's file is written by
//
// UPDATE=1 go test ./backends/sqlite -run TestUpgrade

func fixtureFile(m migrations.Migration) string { return filepath.Join("testdata", m.Name+".sql") }

// schemaOf returns the text of the migrations up to number n, and the line about it in a fixture.
func schemaOf(list []migrations.Migration, n int) (script, line string) {
	for _, m := range list[:n] {
		script += m.SQL + ";\n"
	}
	return script, fmt.Sprintf("-- The rows of a database of schema %d, whose migrations have the SHA-256 %x.", n,
		sha256.Sum256([]byte(script)))
}

// databaseOf returns a database as the code of schema n left it.
func databaseOf(t *testing.T, n int) string {
	t.Helper()
	list := migrationsOf(t)
	rows, err := os.ReadFile(fixtureFile(list[n-1]))
	if err != nil {
		t.Fatalf("%v: schema %d has no fixture; write it with UPDATE=1 go test ./backends/sqlite -run TestUpgrade", err,
			n)
	}
	script, line := schemaOf(list, n)
	if !bytes.HasPrefix(rows, []byte(line+"\n")) {
		t.Fatalf("%s does not begin with %q: a migration that has landed was edited", fixtureFile(list[n-1]), line)
	}
	path := filepath.Join(t.TempDir(), "kagzi.db")
	behindItsBack(t, path,
		fmt.Sprintf(
			"pragma journal_mode = wal; begin; %s %s; pragma application_id = %d; pragma user_version = %d; commit",
			script, rows, dbfile.ApplicationID, n))
	return path
}

// rowsOf returns the inserts that make the rows of a database, without columns that have their
// default.
func rowsOf(t *testing.T, path string) string {
	t.Helper()
	c, err := dbfile.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list := func(query string, each func(*row)) {
		if err := c.Query(t.Context(), &query, func(r *sqlite3.Row) error { each((*row)(r)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	list("select name from sqlite_schema where type = 'table' order by rowid", func(r *row) {
		table := r.text()
		var names, values []string
		list(fmt.Sprintf("select name, dflt_value from pragma_table_info('%s') order by cid", table), func(r *row) {
			name, standard := r.text(), r.text()
			names = append(names, name)
			values = append(values, fmt.Sprintf("case when %s is %s then '' else quote(%[1]s) end", name,
				cmp.Or(standard, "null")))
		})
		list(fmt.Sprintf("select %s from %s", strings.Join(values, ", "), table), func(r *row) {
			var given, held []string
			for _, name := range names {
				if value := r.text(); value != "" {
					given, held = append(given, name), append(held, value)
				}
			}
			fmt.Fprintf(&b, "insert into %s (%s) values (%s);\n", table, strings.Join(given, ", "),
				strings.Join(held, ", "))
		})
	})
	return b.String()
}

// writeFixture writes what today's code leaves as the fixture of the newest schema.
func writeFixture(t *testing.T) {
	t.Helper()
	list := migrationsOf(t)
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	storetest.LeaveWork(t, s)
	s.Close()
	_, line := schemaOf(list, len(list))
	if err := os.WriteFile(fixtureFile(list[len(list)-1]), []byte(line+"\n"+rowsOf(t, path)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func expectSound(t *testing.T, path string) {
	t.Helper()
	findings, err := Check(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Errorf("%s %s", f.Subject, f.Text)
	}
}

func TestUpgrade(t *testing.T) {
	if os.Getenv("UPDATE") != "" {
		writeFixture(t)
	}
	for _, m := range migrationsOf(t) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			path := databaseOf(t, m.Number)
			s := openAt(t, path)
			expectSound(t, path)
			storetest.TakeUpWork(t, s, m.Number)
			expectSound(t, path)
		})
	}
}

func TestUpgradeBackupCanBeRestored(t *testing.T) {
	path := databaseOf(t, 1)
	var said bytes.Buffer
	upgraded, err := Open(t.Context(), path, engine.OpenOptions{Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	upgraded.Close()
	if !strings.Contains(said.String(), "then migrating its schema") ||
		!strings.Contains(said.String(), "schema=1") {
		t.Errorf("the log says %q, want that the schema is brought up to date", said.String())
	}
	made, err := filepath.Glob(path + ".before-0002-*.db")
	if err != nil || len(made) != 1 {
		t.Fatalf("backups = %v (%v), want one", made, err)
	}
	target := filepath.Join(t.TempDir(), "kagzi.db")
	restoreInto(t, target, engine.RestoreParams{File: made[0]})
	before, after := countRuns(t, databaseOf(t, 1)), countRuns(t, target)
	if before == 0 || after != before {
		t.Fatalf("runs restored = %d, want %d", after, before)
	}
	s := openAt(t, target)
	if run, err := s.GetRunByExternalID(t.Context(), "default", "at work"); err != nil ||
		run.Status != engine.RunPending {
		t.Fatalf("the run that was at work is %s (%v), want it due again", run.Status, err)
	}
	expectSound(t, target)
}

func TestKilledUpgradeRestartsInSameSecond(t *testing.T) {
	path := databaseOf(t, 1)
	c, err := dbfile.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if err := backup.BeforeMigration(t.Context(), c.Conn, path, migrationsOf(t)[1:]); err != nil {
			t.Fatal(err)
		}
	}
}

// countRuns counts without a store, which would migrate.
func countRuns(t *testing.T, path string) (n int64) {
	t.Helper()
	c, err := dbfile.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	query := "select count(*) from runs"
	if err := c.Query(t.Context(), &query, func(r *sqlite3.Row) error { n = r.Int(); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// A kill leaves the file and the log as they are at that moment, so the next server finds a copy of
// the two.
func TestKilledMigrationRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("opens half a hundred databases, one after the other")
	}
	t.Parallel()
	list := migrationsOf(t)
	path := databaseOf(t, 1)
	runs := countRuns(t, path)
	// so that pages go to the log before the commit
	c, err := sqlite3.Open(sqlite3.DSN(path, "foreign_keys(1)", "cache_size(1)"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var images []string
	ctx := hooked{t.Context(), func() { images = append(images, imageOf(t, path)) }}
	if err := apply(ctx, c, statementsOf(list[1:])); err != nil {
		t.Fatal(err)
	}
	written := int64(0)
	for _, image := range images {
		if info, err := os.Stat(image + "-wal"); err == nil {
			written = max(written, info.Size())
		}
	}
	for _, image := range long.Share(t, images, 5) {
		i := slices.Index(images, image)
		openAt(t, image).Close()
		if status, err := Status(t.Context(), image); err != nil || status.Applied != len(list) {
			t.Fatalf("killed before text %d: schema %d (%v), want %d", i, status.Applied, err, len(list))
		}
		if n := countRuns(t, image); n != runs {
			t.Fatalf("killed before text %d: %d runs, want %d", i, n, runs)
		}
		expectSound(t, image)
	}
	if written == 0 {
		t.Fatal("nothing was in the log before the commit, so nothing was tried")
	}
}

// hooked is a context that calls do whenever it is asked whether it has ended, as script does
// before each text.
type hooked struct {
	context.Context
	do func()
}

func (h hooked) Err() error {
	h.do()
	return h.Context.Err()
}

// statementsOf makes a migration of each statement, so that something can be done between them. The
// last statement of a migration gets its number, the others that of the migration before.
func statementsOf(list []migrations.Migration) (all []migrations.Migration) {
	for _, m := range list {
		for statement := range strings.SplitSeq(m.SQL, ";\n") {
			all = append(all, migrations.Migration{Number: m.Number - 1, Name: m.Name, SQL: statement})
		}
		all[len(all)-1].Number = m.Number
	}
	return all
}

// imageOf copies a database and its log as they are now.
func imageOf(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "kagzi.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestANewerSchemaIsLeftAsItIs(t *testing.T) {
	path := databaseOf(t, len(migrationsOf(t)))
	behindItsBack(t, path, "pragma user_version = 4711; pragma wal_checkpoint(truncate)")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"Open":    func() error { _, err := Open(t.Context(), path, engine.OpenOptions{}); return err },
		"Migrate": func() error { return Migrate(t.Context(), path) },
		"Restore": func() error {
			_, err := Restore(t.Context(), path, engine.RestoreParams{File: path, Now: time.Now()})
			return err
		},
	} {
		if err := do(); err == nil {
			t.Errorf("%s went well", what)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Fatalf("the file was changed (%v)", err)
	}
	if copies, err := filepath.Glob(path + ".before-*"); err != nil || len(copies) != 0 {
		t.Fatalf("copies = %v (%v), want none", copies, err)
	}
}
