package backends

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestAnSQLiteURLOpensThatFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "kagzi.db")
	url := "sqlite:" + path
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	status, err := Status(t.Context(), url)
	if err != nil || status.Applied != status.Newest {
		t.Fatalf("status = %+v (%v), want a migrated database", status, err)
	}
	s, err := Open(t.Context(), url, engine.OpenOptions{KeepSchema: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if d, err := s.Describe(t.Context()); err != nil || d.Backend != "sqlite" || d.Database != path {
		t.Fatalf("description = %+v (%v), want %s", d, err, path)
	}
	if findings, err := Check(t.Context(), url); err != nil || len(findings) != 0 {
		t.Fatalf("findings = %v (%v), want none beside a server at work", findings, err)
	}
}

func TestOnlyAnSQLiteDatabaseIsOpenedReadOnly(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "kagzi.db")
	if s, err := Open(t.Context(), url, engine.OpenOptions{ReadOnly: true}); err == nil || s != nil {
		t.Fatalf("a file that is not there: %v (%v), want an error", s, err)
	}
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), url, engine.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.DrainWorker(t.Context(), engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now()}); !errors.Is(
		err, engine.ErrReadOnly) {
		t.Errorf("DrainWorker: %v, want ErrReadOnly", err)
	}
	_, err = Open(t.Context(), "postgres://me:secret@localhost:1/kagzi", engine.OpenOptions{ReadOnly: true})
	if err == nil || !strings.Contains(err.Error(), "kagzi tui --address") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want what to do instead", err)
	}
}

func TestSettingsBehindAnSQLiteFileAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db?synchronous=off")
	err := Migrate(t.Context(), "sqlite:"+path)
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 64 || !strings.Contains(err.Error(), "synchronous=off") {
		t.Errorf("error = %v, want a usage error that names them", err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("a file of that name was made")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), "sqlite:"+path); err != nil {
		t.Errorf("a file that is called so: %v", err)
	}
}

func TestARelativePathMeansTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	const url = "sqlite:data/kagzi.db"
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if status, err := Status(t.Context(), url); err != nil || status.Applied == 0 || status.Applied != status.Newest {
		t.Errorf("status = %+v (%v), want that of the migrated database", status, err)
	}
	if findings, err := Check(t.Context(), url); err != nil || len(findings) != 0 {
		t.Errorf("findings = %v (%v), want none", findings, err)
	}
	if s, err := Open(t.Context(), url, engine.OpenOptions{KeepSchema: true}); err != nil {
		t.Errorf("open: %v", err)
	} else {
		s.Close()
	}
}

func TestUnknownURLIsRefusedWithoutItsText(t *testing.T) {
	for _, url := range []string{"", "kagzi.db", "/var/lib/kagzi.db", "mysql://me:secret@host/db", "postgres:host",
		"sqlite"} {
		s, err := Open(t.Context(), url, engine.OpenOptions{})
		if err == nil || s != nil {
			t.Fatalf("Open(%q) = %v (%v), want an error", url, s, err)
		}
		if !strings.Contains(err.Error(), "sqlite:PATH") || !strings.Contains(err.Error(), "postgres://") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("error = %q, want both forms and no password", err)
		}
		if err := Migrate(t.Context(), url); err == nil {
			t.Errorf("Migrate(%q) works", url)
		}
		if _, err := Status(t.Context(), url); err == nil {
			t.Errorf("Status(%q) works", url)
		}
		if _, err := Check(t.Context(), url); err == nil {
			t.Errorf("Check(%q) works", url)
		}
	}
	_, err := Open(t.Context(), "sqlite:", engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "sqlite:PATH") {
		t.Errorf("error = %v, want it to say what is missing", err)
	}
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); !ok || coded.ExitCode() != 64 {
		t.Errorf("error = %v, want one with the exit code of a wrong setting", err)
	}
}

func TestThePathOfAnSQLiteURL(t *testing.T) {
	for url, want := range map[string]string{
		"sqlite:kagzi.db": "kagzi.db", "sqlite:/var/lib/kagzi.db": "/var/lib/kagzi.db",
		"sqlite:///var/lib/kagzi.db": "/var/lib/kagzi.db",
		"sqlite:C:\\kagzi.db":        "C:\\kagzi.db",
	} {
		if got, err := parse(url); err != nil || got.at != want || !got.file {
			t.Errorf("path of %s = %q (%v), want %q", url, got.at, err, want)
		}
	}
}

func TestMemoryIsOpenedOnlyWhereNothingNeedSurvive(t *testing.T) {
	s, err := Open(t.Context(), "memory:", engine.OpenOptions{Serving: true})
	coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err)
	if s != nil || !ok || coded.ExitCode() != 64 || !strings.Contains(err.Error(), "sqlite:PATH") {
		t.Fatalf("Open = %v (%v), want a usage error that says what to use", s, err)
	}
	for what, err := range map[string]error{
		"migrate": Migrate(t.Context(), "memory:"),
		"copy": func() error {
			_, err := Copy(t.Context(), engine.CopyParams{From: "memory:", To: "sqlite:x"})
			return err
		}(),
		"backup": func() error { _, err := Backup(t.Context(), "memory:", "x"); return err }(),
	} {
		if !errors.Is(err, errVolatile) {
			t.Errorf("%s: %v, want %v", what, err, errVolatile)
		}
	}
	if s, err = Open(t.Context(), "memory:", engine.OpenOptions{Volatile: true}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if d, err := s.Describe(t.Context()); err != nil || d.Backend != "memory" {
		t.Errorf("description = %+v (%v), want that of the store in memory", d, err)
	}
}
