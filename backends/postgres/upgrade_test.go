package postgres

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/migrations"
)

// testdata/NNNN_name.sql holds the rows that the code of that schema left (storetest.LeaveWork);
// the schema itself comes from the migrations. A landed file is never written again. A new
// migration's file is written by
//
// UPDATE=1 go test ./backends/postgres -run TestUpgrade

func fixtureFile(m migrations.Migration) string { return filepath.Join("testdata", m.Name+".sql") }

func migrationsOf(t *testing.T) []migrations.Migration {
	t.Helper()
	list, err := migrations.List("postgres")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// fixtureOf returns the rows that the code of schema n left.
func fixtureOf(t *testing.T, n int) string {
	t.Helper()
	rows, err := os.ReadFile(fixtureFile(migrationsOf(t)[n-1]))
	if err != nil {
		t.Fatalf("%v: schema %d has no fixture; write it with UPDATE=1 go test ./backends/postgres -run TestUpgrade",
			err, n)
	}
	return string(rows)
}

// script runs a text of several statements over its own connection.
func script(t *testing.T, url, text string) {
	t.Helper()
	if _, err := adminConnection(t, url).PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// databaseOf returns a database as the code of schema n left it.
func databaseOf(t *testing.T, n int) string {
	t.Helper()
	list, url := migrationsOf(t), pgtest.URL(t)
	var text strings.Builder
	text.WriteString(createMigrationsSQL + ";\n")
	for _, m := range list[:n] {
		text.WriteString(m.SQL + ";\n")
	}
	script(t, url, text.String()+fixtureOf(t, n))
	had, err := appliedTo(t.Context(), adminConnection(t, url))
	if err != nil || len(had) != n {
		t.Fatalf("the fixture has had %d migrations (%v), want %d", len(had), err, n)
	}
	for i, m := range list[:n] {
		if had[i].name != m.Name || had[i].checksum != checksum(m) {
			t.Fatalf("migration %s is not the one that this database has had: a migration that has landed was edited",
				m.Name)
		}
	}
	return url
}

// rowsOf returns the inserts that make the rows of a database, without columns that have their
// default.
func rowsOf(t *testing.T, url string) string {
	t.Helper()
	conn := adminConnection(t, url)
	texts := func(query string, args ...any) [][]string {
		rows, err := conn.Query(t.Context(), query, args...)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
			var texts []string
			for _, v := range row.RawValues() {
				texts = append(texts, string(v))
			}
			return texts, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var b strings.Builder
	for _, table := range texts(
		"select relname::text from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace order by oid") {
		var names, values []string
		for _, column := range texts(
			"select column_name::text, coalesce(column_default, '')::text from information_schema.columns "+
				"where table_schema = current_schema() and table_name = $1 order by ordinal_position", table[0]) {
			names = append(names, column[0])
			values = append(values,
				fmt.Sprintf("case when %s is not distinct from %s then '' else quote_literal(%[1]s::text) end",
					column[0], cmp.Or(column[1], "null")))
		}
		for _, row := range texts(fmt.Sprintf("select %s from %s order by 1", strings.Join(values, ", "), table[0])) {
			var given, held []string
			for i, value := range row {
				if value != "" {
					given, held = append(given, names[i]), append(held, value)
				}
			}
			fmt.Fprintf(&b, "insert into %s (%s) overriding system value values (%s);\n", table[0],
				strings.Join(given, ", "), strings.Join(held, ", "))
		}
	}
	b.WriteString("select setval(pg_get_serial_sequence('lanes', 'lane_id'), (select max(lane_id) from lanes));\n")
	return b.String()
}

// writeFixture writes what today's code leaves as the fixture of the newest schema.
func writeFixture(t *testing.T) {
	t.Helper()
	list, url := migrationsOf(t), pgtest.URL(t)
	s := openAt(t, url)
	storetest.LeaveWork(t, s)
	s.Close()
	if err := os.WriteFile(fixtureFile(list[len(list)-1]), []byte(rowsOf(t, url)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUpgrade(t *testing.T) {
	if os.Getenv("UPDATE") != "" {
		writeFixture(t)
	}
	for _, m := range migrationsOf(t) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			url := databaseOf(t, m.Number)
			s := openAt(t, url)
			expectSound(t, url)
			storetest.TakeUpWork(t, s, m.Number)
			expectSound(t, url)
		})
	}
}

// A server of the previous version keeps running while the schema is already the next one: what its
// statements name must exist, and its rows, which leave out new columns, must be accepted.
func TestPreviousVersionOnNewestSchema(t *testing.T) {
	list, url := migrationsOf(t), pgtest.URL(t)
	s := openAt(t, url)
	newest := columnsOf(t, url)
	for _, column := range columnsOf(t, databaseOf(t, len(list)-1)) {
		if !slices.Contains(newest, column) {
			t.Errorf("column %s is gone or of another type", column)
		}
	}
	script(t, url, "truncate schema_migrations, namespaces; "+fixtureOf(t, len(list)-1))
	m := list[len(list)-1]
	script(t, url, fmt.Sprintf("insert into schema_migrations values (%d, '%s', '%s', now())", m.Number, m.Name,
		checksum(m)))
	expectSound(t, url)
	storetest.TakeUpWork(t, s, len(list)-1)
	expectSound(t, url)
}

// columnsOf returns all columns of a database, as "table.column type".
func columnsOf(t *testing.T, url string) []string {
	t.Helper()
	rows, err := adminConnection(t, url).Query(t.Context(),
		"select table_name || '.' || column_name || ' ' || data_type from information_schema.columns where table_schema = current_schema()")
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(columns) == 0 {
		t.Fatalf("columns = %v (%v), want some", columns, err)
	}
	return columns
}

func TestAMigrationThatIsKilledHalfwayComesAgain(t *testing.T) {
	for _, table := range []string{"namespaces", "runs", "leases", "steps"} {
		// migration 0002 changes them in this order
		t.Run("at "+table, func(t *testing.T) {
			t.Parallel()
			url := databaseOf(t, 1)
			admin := adminConnection(t, url)
			reader, err := admin.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reader.Exec(t.Context(), "lock table "+table+" in access share mode"); err != nil {
				t.Fatal(err)
			}
			migrated := make(chan error, 1)
			go func() { migrated <- Migrate(context.Background(), url) }()
			killWhoWaitsFor(t, adminConnection(t, url), admin.PgConn().PID())
			if err := <-migrated; err == nil {
				t.Fatal("a migration whose connection was killed went well")
			}
			if err := reader.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if status, err := Status(t.Context(), url); err != nil || status.Applied != 1 {
				t.Fatalf("schema after the kill = %d (%v), want 1", status.Applied, err)
			}
			s := openAt(t, url)
			storetest.TakeUpWork(t, s, 1)
			expectSound(t, url)
		})
	}
}

// killWhoWaitsFor ends the connection that waits for a lock of this one, once there is one.
func killWhoWaitsFor(t *testing.T, admin *pgx.Conn, pid uint32) {
	t.Helper()
	for killed := 0; killed == 0; {
		err := admin.QueryRow(t.Context(),
			"select count(pg_terminate_backend(pid)) from pg_locks where not granted and $1 = any(pg_blocking_pids(pid))", int32(pid)).Scan(&killed)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestANewerSchemaIsLeftAsItIs(t *testing.T) {
	list := migrationsOf(t)
	url := databaseOf(t, len(list))
	script(t, url,
		"insert into schema_migrations (number, name, checksum, applied_at) values (99, '0099_future', '', '2030-01-01')")
	before := rowsOf(t, url)
	if err := Migrate(t.Context(), url); err == nil {
		t.Error("Migrate went well")
	}
	if after := rowsOf(t, url); after != before {
		t.Fatal("rows were changed")
	}
}
