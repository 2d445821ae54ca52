package postgres

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

func TestANewerSchemaIsRefusedNamingBothNumbers(t *testing.T) {
	url := pgtest.URL(t)
	s := openAt(t, url)
	if _, err := s.pool.Exec(t.Context(),
		`insert into schema_migrations (number, name, checksum, applied_at) values (99, '0099_future', '', now())`); err != nil {
		t.Fatal(err)
	}
	newest, err := newestMigration()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []engine.OpenOptions{{}, {KeepSchema: true}} {
		_, err := Open(t.Context(), url, o)
		if err == nil || !strings.Contains(err.Error(), "99") ||
			!strings.Contains(err.Error(), fmt.Sprintf("up to %d", newest)) {
			t.Fatalf("Open: %v, want a refusal that names both numbers", err)
		}
	}
	status, err := Status(t.Context(), url)
	if err != nil || status.Applied != 99 || len(status.Pending) != 0 {
		t.Fatalf("Status = %+v, %v", status, err)
	}
}

func TestAnOldSchemaIsRefusedWhenItIsToBeKept(t *testing.T) {
	url := pgtest.URL(t)
	if _, err := Open(t.Context(), url, engine.OpenOptions{KeepSchema: true}); err == nil ||
		!strings.Contains(err.Error(), "kagzi db migrate") {
		t.Fatalf("Open: %v, want a refusal that says what to do", err)
	}
	status, err := Status(t.Context(), url)
	if err != nil || status.Applied != 0 || len(status.Pending) != status.Newest {
		t.Fatalf("Status = %+v, %v", status, err)
	}
}

func TestManyServersMigrateOneDatabaseOnce(t *testing.T) {
	url := pgtest.URL(t)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if err := Migrate(context.Background(), url); err != nil {
				t.Errorf("Migrate: %v", err)
			}
		})
	}
	group.Wait()
	openAt(t, url)
	expectSound(t, url)
}

func TestTablesOfAnotherProgramAreLeftAlone(t *testing.T) {
	url := pgtest.URL(t)
	admin := adminConnection(t, url)
	if _, err := admin.Exec(t.Context(), "create table runs (a int)"); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Fatalf("Migrate: %v, want a refusal", err)
	}
}

func TestASchemaThatIsNotThereIsSaidSo(t *testing.T) {
	url := pgtest.URL(t) + "_not"
	if err := Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "search_path") {
		t.Fatalf("Migrate: %v, want a refusal that names search_path", err)
	}
}

func TestASchemaMayHaveAnyName(t *testing.T) {
	base := pgtest.URL(t)
	admin, name := adminConnection(t, base), `Kagzi "1", `+engine.NewID(time.Now()).String()
	quoted := pgx.Identifier{name}.Sanitize()
	if _, err := admin.Exec(t.Context(), "create schema "+quoted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "drop schema "+quoted+" cascade"); err != nil {
			t.Error(err)
		}
	})
	url := withParameter(t, base, "search_path", quoted)
	start(t, openAt(t, url), 1)
	expectSound(t, url)
}

func TestADatabaseThatMayLoseWritesIsRefused(t *testing.T) {
	url := pgtest.URL(t) + "&synchronous_commit=off" // KAGZI_TEST_POSTGRES may have it on
	t.Setenv("KAGZI_ALLOW_UNSAFE_DB", "")
	if _, err := Open(t.Context(), url, engine.OpenOptions{}); err == nil ||
		!strings.Contains(err.Error(), "synchronous_commit=off") {
		t.Fatalf("Open: %v, want a refusal that names the setting", err)
	}
	durable := openAt(t, pgtest.DurableURL(t))
	var setting string
	if err := durable.pool.QueryRow(t.Context(), "show synchronous_commit").Scan(&setting); err != nil ||
		setting != "on" {
		t.Fatalf("synchronous_commit = %q (%v), want on", setting, err)
	}
}

// TestMigrateWithARolesTimeouts makes the first tables take longer than the role's statement
// timeout.
func TestMigrateWithARolesTimeouts(t *testing.T) {
	url, admin := pgtest.OwnDatabase(t, "")
	role := roleOf(t, url)
	execute(t, admin, "grant create on schema public to "+role,
		"alter role "+role+" set statement_timeout = '200ms'",
		"alter role "+role+" set lock_timeout = '100ms'",
		"alter role "+role+" set idle_in_transaction_session_timeout = '200ms'",
		`create function slow() returns event_trigger language plpgsql as
			$$ begin if to_regclass('public.namespaces') is null then perform pg_sleep(0.3); end if; end $$`,
		`create event trigger slow on ddl_command_start when tag in ('CREATE TABLE') execute function slow()`)
	s := openAt(t, url)
	start(t, s, 1)
	findings, err := Check(t.Context(), url)
	expectNoFindings(t, findings, err)
}

// beforeRunsChange is a schema whose next migrations alter runs.
const beforeRunsChange = 8

func TestAMigrationThatWaitsForALockLetsCallsGoOn(t *testing.T) {
	url := databaseOf(t, beforeRunsChange)
	reader := adminConnection(t, url)
	if _, err := reader.Exec(t.Context(), "begin; select count(*) from runs"); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	var log bytes.Buffer
	waits := make(chan struct{}, 100)
	handler := slog.NewTextHandler(writing(func(line []byte) { log.Write(line); waits <- struct{}{} }), nil)
	config, err := parseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := config.dial(context.Background())
		if err == nil {
			defer conn.Close(context.Background())
			if err = config.pin(context.Background(), conn); err == nil {
				err = config.migrate(context.Background(), conn, slog.New(handler))
			}
		}
		migrated <- err
	}()
	select {
	case <-waits:
	case err := <-migrated:
		t.Fatalf("migrate = %v while a reader uses the table, want it to wait", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the migration does not say that it waits")
	}
	rival := adminConnection(t, url) // represents a call of the running server
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := rival.Exec(ctx, "set lock_timeout = '2s'; update runs set priority = priority")
		cancel()
		if err != nil {
			t.Fatalf("a call while the migration waits: %v", err)
		}
	}
	if _, err := reader.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatalf("migrate = %v once the reader is gone", err)
	}
	if got := log.String(); !strings.Contains(got, "used_by=\"pid ") {
		t.Errorf("log %q, want it to name who uses the table", got)
	}
	expectSound(t, url)
}

func TestAMigrationThatGetsNoLockSaysWhoHasIt(t *testing.T) {
	old := migrateTimeout
	migrateTimeout = 0
	defer func() { migrateTimeout = old }()
	url := databaseOf(t, beforeRunsChange)
	reader := adminConnection(t, url)
	if _, err := reader.Exec(t.Context(),
		"set application_name = 'a long report'; begin; select count(*) from runs"); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), `application "a long report"`) {
		t.Errorf("Migrate: %v, want it to name who uses the tables", err)
	}
}
