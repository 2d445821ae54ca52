package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

// roleOf returns the role of an address of pgtest.OwnDatabase.
func roleOf(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.User
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func countRuns(t *testing.T, url, schema string) (n int) {
	t.Helper()
	conn := adminConnection(t, url)
	if err := conn.QueryRow(t.Context(), "select count(*) from "+quoted(schema)+".runs").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func schemaOf(t *testing.T, s *Store) string {
	t.Helper()
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range d.Facts {
		if fact.Name == "schema" {
			return fact.Value
		}
	}
	t.Fatal("the description names no schema")
	return ""
}

func TestSchema(t *testing.T) {
	t.Run("stays when one with the role's name is made", func(t *testing.T) {
		url, admin := pgtest.OwnDatabase(t, "")
		role := roleOf(t, url)
		execute(t, admin, "grant create on schema public to "+role)
		first := openAt(t, url)
		start(t, first, 1)
		execute(t, admin, "create schema authorization "+role)
		first.pool.Reset()
		first.views.Reset() // so that the sessions are new
		second := openAt(t, url)
		for _, s := range []*Store{first, second} {
			start(t, s, 1)
			if got := schemaOf(t, s); got != "public" {
				t.Errorf("the store uses the schema %q, want public", got)
			}
			runs, _, err := s.ListRuns(t.Context(), engine.RunFilter{Namespace: "default"}, engine.Page{Limit: 10})
			if err != nil || len(runs) == 0 {
				t.Errorf("%d runs are listed (%v), want those of the schema public", len(runs), err)
			}
		}
		if n := countRuns(t, admin, "public"); n != 3 {
			t.Errorf("%d runs in the schema public, want 3", n)
		}
	})
	t.Run("is not made a second time unless it is named", func(t *testing.T) {
		url, admin := pgtest.OwnDatabase(t, "")
		role := roleOf(t, url)
		execute(t, admin, "create schema old authorization "+role, "create schema authorization "+role)
		start(t, openAt(t, url+"&schema=old"), 1)
		for _, o := range []engine.OpenOptions{{}, {KeepSchema: true}} {
			_, err := Open(t.Context(), url, o)
			if err == nil || !strings.Contains(err.Error(), `"old" holds kagzi's tables`) ||
				!strings.Contains(err.Error(), "?schema=old") || !strings.Contains(err.Error(), "?schema="+role) {
				t.Fatalf("Open: %v, want a refusal that names both schemas", err)
			}
		}
		if err := Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), `"old"`) {
			t.Errorf("Migrate: %v, want a refusal", err)
		}
		status, err := Status(t.Context(), url)
		if err != nil || !strings.Contains(status.Refusal, "?schema=old") {
			t.Errorf("Status = %+v (%v), want the refusal", status, err)
		}
		if got := schemaOf(t, openAt(t, url+"&schema="+role)); got != role {
			t.Errorf("the named schema is %q, want %q", got, role)
		}
	})
	t.Run("of the URL wins over search_path", func(t *testing.T) {
		url, admin := pgtest.OwnDatabase(t, "")
		role := roleOf(t, url)
		execute(t, admin, `create schema "My ""shop""" authorization `+role, "create schema other authorization "+role)
		s := openAt(t, withParameter(t, url+"&search_path=other", schemaName, `My "shop"`))
		start(t, s, 1)
		if n := countRuns(t, admin, `My "shop"`); n != 1 {
			t.Errorf("%d runs in the named schema, want 1", n)
		}
		status, err := Status(t.Context(), withParameter(t, url, schemaName, `My "shop"`))
		if err != nil || status.Place != `My "shop"` || status.Applied != status.Newest {
			t.Errorf("Status = %+v (%v), want that of the named schema", status, err)
		}
		findings, err := Check(t.Context(), withParameter(t, url, schemaName, `My "shop"`))
		expectNoFindings(t, findings, err)
	})
	t.Run("that is not there is made by a migration only", func(t *testing.T) {
		url, _ := pgtest.OwnDatabase(t, "")
		url += "&schema=fresh"
		if _, err := Open(t.Context(), url, engine.OpenOptions{}); err == nil ||
			!strings.Contains(err.Error(), `create schema "fresh"`) {
			t.Fatalf("Open: %v, want a refusal that says how to make the schema", err)
		}
		if err := Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if got := schemaOf(t, openAt(t, url)); got != "fresh" {
			t.Errorf("the schema is %q, want fresh", got)
		}
	})
	t.Run("warns of a second copy on the same search_path", func(t *testing.T) {
		url, admin := pgtest.OwnDatabase(t, "")
		role := roleOf(t, url)
		execute(t, admin, "grant create on schema public to "+role, "create schema authorization "+role)
		openAt(t, url+"&schema=public")
		openAt(t, url+"&schema="+role)
		var log bytes.Buffer
		s, err := Open(t.Context(), url, engine.OpenOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !strings.Contains(log.String(), "holds kagzi's tables, too") || schemaOf(t, s) != role {
			t.Errorf("log %q and schema %q, want a warning and the first", log.String(), schemaOf(t, s))
		}
		if status, err := Status(t.Context(), url); err != nil || len(status.Warnings) != 1 {
			t.Errorf("Status = %+v (%v), want the warning", status, err)
		}
	})
	t.Run("of a transaction pooler's sessions does not matter", func(t *testing.T) {
		pooled, direct := pgtest.PooledURL(t)
		execute(t, direct, "create schema shop", "create schema trap")
		first := openAt(t, pooled+"&schema=shop")
		start(t, first, 1)
		execute(t, direct, "create table trap.runs (a int)", "create table trap.schema_migrations (a int)",
			"do $$ begin execute 'alter database ' || current_database() || ' set search_path = trap'; end $$")
		// the pooler makes new sessions, whose search_path names another schema
		execute(t, direct, "select count(pg_terminate_backend(pid)) from pg_stat_activity "+
			"where datname = current_database() and pid <> pg_backend_pid()")
		for i, s := range []*Store{first, openAt(t, pooled+"&schema=shop")} {
			var err error
			for range 20 { // the sessions that were ended
				if _, err = s.StartRuns(t.Context(), engine.StartRunsParams{
					Runs: []engine.StartRun{newStart(s)}}); err == nil {
					break
				}
			}
			if err != nil {
				t.Fatalf("store %d: %v", i, err)
			}
			register(t, s, "w"+string(rune('0'+i)))
			if claimed, err := s.Claim(t.Context(), claimParams(s, "w"+string(rune('0'+i)), 1)); err != nil ||
				len(claimed.Tasks) != 1 {
				t.Errorf("store %d: %d tasks, %v; want 1", i, len(claimed.Tasks), err)
			}
			runs, _, err := s.ListRuns(t.Context(), engine.RunFilter{Namespace: "default"}, engine.Page{Limit: 10})
			if err != nil || len(runs) != 2+i {
				t.Errorf("store %d lists %d runs, %v; want %d", i, len(runs), err, 2+i)
			}
			if _, err := s.ExplainInputs(t.Context(), "default", runs[0].ID); err != nil {
				t.Errorf("store %d: Circumstances: %v", i, err)
			}
		}
		if n := countRuns(t, direct, "shop"); n != 3 {
			t.Errorf("%d runs in the schema, want 3", n)
		}
	})
}

func TestATableOfMigrationsOfAnotherProgramIsNamed(t *testing.T) {
	for name, table := range map[string]string{
		"golang-migrate": "create table schema_migrations (version bigint primary key, dirty boolean not null)",
		"Rails":          "create table schema_migrations (version varchar primary key)",
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.URL(t)
			execute(t, url, table)
			const want = "has a table schema_migrations of another program"
			if err := Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "?schema=kagzi") {
				t.Errorf("Migrate: %v, want it to say %q and what to do", err, want)
			}
			for _, o := range []engine.OpenOptions{{}, {KeepSchema: true}} {
				if _, err := Open(t.Context(), url, o); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Open: %v, want it to say %q", err, want)
				}
			}
			if status, err := Status(t.Context(), url); err != nil || !strings.Contains(status.Refusal, want) {
				t.Errorf("Status = %+v (%v), want it to say %q", status, err, want)
			}
			if _, err := Check(context.Background(), url); err == nil ||
				!strings.Contains(err.Error(), "belongs to another program") {
				t.Errorf("Check: %v, want it to name the table", err)
			}
		})
	}
}
