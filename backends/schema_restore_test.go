package backends

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

func TestRestoreOntoPostgresFillsAnAbsentSchema(t *testing.T) {
	url := pgtest.URL(t)
	heldRun(t, url)
	file := filepath.Join(t.TempDir(), "copy.db")
	if _, err := Backup(t.Context(), url, file); err != nil {
		t.Fatal(err)
	}
	mark := "?"
	if strings.Contains(url, "?") {
		mark = "&"
	}
	target := url + mark + "schema=restored"
	for _, dry := range []bool{true, false} {
		done, err := Restore(t.Context(), engine.RestoreParams{File: file, URL: target, DryRun: dry, Now: time.Now()})
		if err != nil || !done.Empty {
			t.Errorf("dry run %t: %+v, %v", dry, done, err)
		}
	}
	if err := postgresExec(t, url, `create schema taken; create table taken.things (id int)`); err != nil {
		t.Fatal(err)
	}
	taken := engine.RestoreParams{File: file, URL: url + mark + "schema=taken", DryRun: true, Now: time.Now()}
	if _, err := Restore(t.Context(), taken); engine.KindOf(err) != engine.KindPrecondition ||
		!strings.Contains(err.Error(), "another program") {
		t.Errorf("dry run onto a schema of another program: %v, want it refused", err)
	}
	findings, err := Check(t.Context(), target)
	if err != nil || len(findings) > 0 {
		t.Errorf("findings = %v (%v), want none", findings, err)
	}
}

func postgresExec(t *testing.T, url, sql string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql)
	return err
}
