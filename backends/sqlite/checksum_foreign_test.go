package sqlite

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "modernc.org/sqlite"

	"github.com/kagzi/kagzi/engine"
)

// unchecked turns a database into one of an older version, with another program.
func unchecked(t *testing.T, path string) string {
	t.Helper()
	old := filepath.Join(t.TempDir(), "kagzi.db")
	foreign(t, old, "pragma journal_mode = wal; "+scriptOf(t, path))
	if pagesOf(t, old)[0][20] != 0 {
		t.Fatal("the other program made a file with room for checksums")
	}
	return old
}

// scriptOf writes a script that makes a database with the same rows.
func scriptOf(t *testing.T, path string) string {
	t.Helper()
	script, _ := schemaOf(migrationsOf(t), len(migrationsOf(t)))
	return fmt.Sprintf("begin; %s %s; pragma application_id = %d; pragma user_version = %d; commit", script,
		rowsOf(t, path), dbfile.ApplicationID, len(migrationsOf(t)))
}

func TestAFileWithoutChecksumsGetsThemAtTheStart(t *testing.T) {
	path, rows := closedOne(t)
	old := unchecked(t, path)
	s := openAt(t, old)
	if s.Close(); !s.checked {
		t.Fatal("the file has no checksums")
	}
	for i, page := range pagesOf(t, old) {
		if !sqlite3.PageHolds(page, uint32(i+1)) {
			t.Errorf("page %d does not hold", i+1)
		}
	}
	if got := rowsAt(t, old); got != rows {
		t.Errorf("rows = %s, want %s", got, rows)
	}
	if left := names(t, filepath.Dir(old)); len(left) != 2 {
		t.Errorf("beside the file are %v, want the lock only", left)
	}
}

func TestFileWithoutChecksumsIsRefused(t *testing.T) {
	path, _ := closedOne(t)
	c, err := dbfile.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = backup.SameAs(t.Context(), c.Conn, unchecked(t, path))
	if err == nil || !strings.HasSuffix(err.Error(), "checksums: false") {
		t.Errorf("sameAs = %v, want that it has no checksums", err)
	}
}

func TestLargeFileWithoutChecksumsIsServed(t *testing.T) {
	path, rows := closedOne(t)
	old := unchecked(t, path)
	var log bytes.Buffer
	s, err := openUpTo(t.Context(), old, engine.OpenOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Describe(t.Context())
	if err != nil || !strings.Contains(fmt.Sprint(d.Facts), "off: `kagzi db migrate` adds them") {
		t.Errorf("facts = %v (%v), want that checksums are off", d.Facts, err)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Error(err)
	}
	backup := backupOfStore(t, s)
	s.Close()
	if !strings.Contains(log.String(), "kagzi db migrate") {
		t.Errorf("log = %s, want what to do", log.String())
	}
	if findings, err := Check(t.Context(), backup.File); err != nil || len(findings) > 0 {
		t.Errorf("the backup of a file without checksums: %v (%v)", findings, err)
	}
	if err := Migrate(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if pagesOf(t, old)[0][20] != 16 || len(rowsAt(t, old)) <= len(rows) {
		t.Error("the file has no checksums after `kagzi db migrate`")
	}
}

func TestAFileWithoutChecksumsIsLookedAtAsItIs(t *testing.T) {
	path, _ := closedOne(t)
	old := unchecked(t, path)
	before := contents(t, filepath.Dir(old))
	expectRuns(t, readOnlyAt(t, old), 6)
	if after := contents(t, filepath.Dir(old)); after != before {
		t.Errorf("it was\n%swhich is now\n%s", before, after)
	}
}

func TestAReaderGoesOnWhileAFileGetsItsChecksums(t *testing.T) {
	path, _ := closedOne(t)
	old := unchecked(t, path)
	reader := readOnlyAt(t, old)
	expectRuns(t, reader, 6)
	s := openAt(t, old)
	expectRuns(t, reader, 6)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	expectRuns(t, reader, 7)
	s.Close()
	expectRuns(t, reader, 7)
}

func TestBackupsCarryTheChecksums(t *testing.T) {
	s := busy(t)
	for i, page := range pagesOf(t, backupOfStore(t, s).File) {
		if !sqlite3.PageHolds(page, uint32(i+1)) {
			t.Errorf("page %d does not hold", i+1)
		}
	}
}

func TestAnotherProgramMayReadAndCheckpointTheLog(t *testing.T) {
	path, rows := crashed(t)
	foreign(t, path, "select count(*) from runs") // it recovers the log, and checkpoints it when it ends
	if log, err := dbfile.StatIfExists(path + "-wal"); err != nil || log != nil {
		t.Fatalf("the log is %v (%v), want it checkpointed", log, err)
	}
	if got, err := answer(t, path); err != nil || got != rows {
		t.Errorf("after another program has checkpointed the log: %v", err)
	}
}

func TestForeignWritesAreAccepted(t *testing.T) {
	s := busy(t)
	foreign(t, s.path, "insert into namespaces (namespace, id, created_at, updated_at) values ('hand', x'00', 1, 1)")
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	rows := rowsAt(t, s.path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := answer(t, s.path); err != nil || got != rows || !strings.Contains(got, "hand") {
		t.Errorf("after another program wrote: %v", err)
	}
	for i, page := range pagesOf(t, s.path) {
		if !sqlite3.PageHolds(page, uint32(i+1)) {
			t.Errorf("page %d does not hold", i+1)
		}
	}
}

func TestWhatAnotherProgramWroteIsAcceptedWhenAsked(t *testing.T) {
	path, _ := closedOne(t)
	foreign(t, path, "update namespaces set display_name = 'fixed'")
	findings, err := Check(t.Context(), path)
	if err != nil || len(findings) == 0 || !strings.Contains(findings[len(findings)-1].Text, "another program") {
		t.Fatalf("findings = %v (%v), want the pages that the other program wrote", findings, err)
	}
	if _, err := Open(t.Context(), path, engine.OpenOptions{}); !isDamage(err) {
		t.Errorf("a server starts on it: %v", err)
	}
	kept, findings, err := Accept(t.Context(), path)
	if err != nil || len(findings) > 0 {
		t.Fatalf("accepted: %v (%v)", findings, err)
	}
	if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
		t.Errorf("findings after it was accepted = %v (%v)", findings, err)
	}
	if got, err := answer(t, path); err != nil || !strings.Contains(got, "fixed") {
		t.Errorf("rows after it was accepted: %v", err)
	}
	if findings, err := Check(t.Context(), kept); err != nil || len(findings) == 0 {
		t.Errorf("the file that was kept has findings %v (%v), want them as before", findings, err)
	}
}

func TestNothingIsAcceptedWhileAnotherProgramReads(t *testing.T) {
	path, _ := closedOne(t)
	foreign(t, path, "update namespaces set display_name = 'fixed'")
	reader, err := sqlite3.Open(sqlite3.DSN(path) + "&" + sqlite3.UncheckedParam + "=1")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, statement := range []string{"begin", "select count(*) from namespaces"} {
		if err := reader.Query(t.Context(), &statement, func(*sqlite3.Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	// it stays in the log as long as the reader has its snapshot
	foreign(t, path, "update namespaces set display_name = 'fixed again'")
	if _, _, err := Accept(t.Context(), path); engine.KindOf(err) != engine.KindPrecondition ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("error = %v, want a refusal that says who is in the way", err)
	}
}

func TestWhatContradictsItselfIsNotAccepted(t *testing.T) {
	path, _ := closedOne(t)
	foreign(t, path, "delete from payloads")
	before := pagesOf(t, path)
	if _, findings, err := Accept(t.Context(), path); err != nil || len(findings) == 0 {
		t.Errorf("findings = %v (%v), want runs without payloads", findings, err)
	}
	if !bytes.Equal(bytes.Join(before, nil), bytes.Join(pagesOf(t, path), nil)) ||
		len(names(t, filepath.Dir(path))) != 2 {
		t.Error("the file has changed, or something was left beside it")
	}
}
