package postgres

import (
	"context"
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var allStatements embed.FS

func TestEveryStatementIsPreparedAgainstTheMigratedSchema(t *testing.T) {
	ctx := context.Background()
	url := lentURL(t)
	openAt(t, url)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	files, err := fs.Glob(allStatements, "sql/*.sql")
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d statements: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".sql")
		text, err := fs.ReadFile(allStatements, file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not begin with a comment that says why", name)
		}
		if name == "create_migrations" { // a definition, which cannot be prepared
			continue
		}
		if _, err := conn.Prepare(ctx, name, hot(runColumns.Expand(string(text))).text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A column that no statement about whole runs reads would be lost on the next export, and nothing
// else would notice.
func TestTheRunColumnsAreThoseOfTheTable(t *testing.T) {
	s := openAt(t, lentURL(t))
	rows, err := s.pool.Query(t.Context(),
		"select attname::text from pg_attribute where attrelid = 'runs'::regclass and attnum > 0 and not attisdropped")
	if err != nil {
		t.Fatal(err)
	}
	table, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	known := append([]string{
		"lease_losses", "steps", "bytes", "settled", // in the lease while there is one
		"lane_id", "expires_at", "final_token", "tied", // only for the store
	}, runColumns.Names()...)
	slices.Sort(known)
	slices.Sort(table)
	if !slices.Equal(table, known) {
		t.Errorf("runs has %q, the statements know %q", table, known)
	}
}

func TestEveryStatementIsUsed(t *testing.T) {
	files, err := fs.Glob(allStatements, "sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	sources := goSources(t)
	for _, file := range files {
		if !strings.Contains(sources, "//go:embed "+file+"\n") {
			t.Errorf("%s is embedded nowhere", file)
		}
	}
}

// Statistics of a column of runs that no statement filters by are a waste: a third of the cost of
// analyzing runs, in the busiest hours.
func TestOnlyColumnsThatAreFilteredByHaveStatistics(t *testing.T) {
	s := openAt(t, lentURL(t))
	rows, err := s.pool.Query(t.Context(), `select a.attname::text from pg_attribute a
		where a.attrelid = 'runs'::regclass and a.attnum > 0 and not a.attisdropped and coalesce(a.attstattarget, -1) <> 0
		  and not exists (select from pg_index i where i.indrelid = a.attrelid and a.attnum = any(i.indkey))
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	analyzed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"continued_as", "continued_from", "created_at", "gated", "grace_until", "has_place", "origin", "paused",
		"pinned", "priority", "tied", "worker_id",
	}
	if !slices.Equal(analyzed, want) {
		t.Errorf("%q have statistics and no index, want %q: set statistics 0 in the migration, or add the column here",
			analyzed, want)
	}
}
