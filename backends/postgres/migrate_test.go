package postgres

import (
	"context"
	"fmt"
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
	url := pgtest.URL(t) + "&synchronous_commit=off" // a given server may have it on
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
