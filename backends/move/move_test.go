package move_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

func TestACopyHoldsTheSameRowsOfEveryTable(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		t.Run(d[0]+" to "+d[1], func(t *testing.T) {
			t.Parallel()
			n := long.Seed(t)
			from, to := freshURL(t, d[0]), freshURL(t, d[1])
			populate(t, from, rand.New(rand.NewPCG(n, 1)), 40)
			want := dump(t, from)
			report := copied(t, from, to)
			sameRows(t, dump(t, to), want)
			for _, table := range report.Tables {
				if rows := int64(strings.Count(want[table.Table], "\n")); table.Rows != rows || rows == 0 {
					t.Errorf("the report says %d rows of %s, want %d", table.Rows, table.Table, rows)
				}
			}
			if again, err := backends.Copy(t.Context(),
				engine.CopyParams{From: from, To: to, Now: someDay}); err != nil || !again.Before {
				t.Errorf("the same copy again: %+v (%v), want that it has ended before", again, err)
			}
		})
	}
}

// The rows are random values in each column of the schema, so a new column is in this test by itself.
// What a restore changes is the business of AfterRestore: it ends leases and deregisters workers.
func TestABackupAndItsRestoreHoldTheSameRows(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		t.Run(d[0]+" to "+d[1], func(t *testing.T) {
			t.Parallel()
			from, to := freshURL(t, d[0]), freshURL(t, d[1])
			populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 1)), 20)
			execute(t, from, "delete from leases", "delete from workers")
			want := dump(t, from)
			file := filepath.Join(long.ScratchDir(t), "backup.db")
			if _, err := backends.Backup(t.Context(), from, file); err != nil {
				t.Fatal(err)
			}
			// random rows contradict each other
			p := engine.RestoreParams{File: file, URL: to, Force: true, Now: someDay}
			if _, err := backends.Restore(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			sameRows(t, dump(t, to), want)
		})
	}
}

// execute changes a database behind the back of its store.
func execute(t testing.TB, url string, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		var err error
		if strings.HasPrefix(url, "sqlite:") {
			_, err = openSQL(t, url).ExecContext(t.Context(), statement)
		} else {
			_, err = openPostgres(t, url).Exec(t.Context(), statement)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestACopyThatEndsWhileItMakesTheSchemaGoesOn(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "sqlite"), freshURL(t, "postgres")
	populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 1)), 3)
	target := openPostgres(t, to)
	obstacle := func(statement string) {
		t.Helper()
		if _, err := target.Exec(t.Context(), statement+" sequence api_keys"); err != nil {
			// a later migration would make a column of the same name
			t.Fatal(err)
		}
	}
	obstacle("create")
	if _, err := backends.Copy(t.Context(), engine.CopyParams{From: from, To: to, Now: someDay}); err == nil ||
		!strings.Contains(err.Error(), "0003") {
		t.Fatalf("copy = %v, want it to fail at what is in the way", err)
	}
	if status, err := backends.Status(t.Context(), to); err != nil || status.Applied != 0 {
		t.Errorf("status = %+v (%v), want no part of a schema", status, err)
	}
	obstacle("drop")
	copied(t, from, to)
	sameRows(t, dump(t, to), dump(t, from))
}

func TestACopyTellsThatItReadsBackBeforeItDoes(t *testing.T) {
	t.Parallel()
	from, to := freshURL(t, "sqlite"), freshURL(t, "sqlite")
	populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 1)), 40)
	var told []engine.CopyProgress
	report, err := backends.Copy(t.Context(),
		engine.CopyParams{From: from, To: to, Now: someDay, Progress: func(p engine.CopyProgress) {
			if p.Verifying {
				told = append(told, p)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	first, last := told[0], told[len(told)-1]
	if first.Table != "" || first.Rows != 0 || first.Total != report.Rows() || last.Rows != report.Rows() {
		t.Errorf("told first %+v and last %+v, want nothing compared and then all %d rows", first, last, report.Rows())
	}
}

// copied makes a copy that must succeed.
func copied(t testing.TB, from, to string) engine.CopyReport {
	t.Helper()
	report, err := backends.Copy(t.Context(), engine.CopyParams{From: from, To: to, Now: someDay})
	if err != nil {
		t.Fatalf("copy: %v", err)
	}
	return report
}

func openStore(t testing.TB, url string) engine.Store {
	t.Helper()
	store, err := backends.Open(t.Context(), url, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func TestALifeGoesOnInTheCopy(t *testing.T) {
	t.Parallel()
	n := long.Seed(t)
	url, other := freshURL(t, "sqlite"), "postgres"
	storetest.MovedAlong(t, n, openStore(t, url), func(store engine.Store) engine.Store {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		next := freshURL(t, other)
		copied(t, url, next)
		if findings, err := backends.Check(t.Context(), next); err != nil || len(findings) > 0 {
			t.Fatalf("findings in the copy = %v (%v), want none", findings, err)
		}
		url = next
		if other = "postgres"; strings.HasPrefix(url, "postgres") {
			other = "sqlite"
		}
		return openStore(t, url)
	})
}

func TestACopyKeepsThePlacesOfKeys(t *testing.T) {
	t.Parallel()
	url, other := freshURL(t, "sqlite"), "postgres"
	storetest.PlacesMoved(t, openStore(t, url), func(store engine.Store, _ time.Time) engine.Store {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		next := freshURL(t, other)
		copied(t, url, next)
		if url, other = next, "postgres"; strings.HasPrefix(url, "postgres") {
			other = "sqlite"
		}
		return openStore(t, url)
	}, func() {
		t.Helper()
		if findings, err := backends.Check(t.Context(), url); err != nil || len(findings) > 0 {
			t.Fatalf("findings = %v (%v), want none", findings, err)
		}
	})
}

func TestBothSchemasHaveTheSameTablesAndColumns(t *testing.T) {
	t.Parallel()
	var schemas [][]engine.CopyTable
	for _, kind := range []string{"sqlite", "postgres"} {
		url := freshURL(t, kind)
		if err := backends.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		d := openEnd(t, url)
		defer d.Close()
		tables, err := d.Tables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		schemas = append(schemas, tables)
	}
	if len(schemas[0]) < 14 {
		t.Errorf("tables = %d, want all of them", len(schemas[0]))
	}
	if err := move.Compare(schemas[0], schemas[1]); err != nil {
		t.Error(err)
	}
	if err := move.Compare(schemas[1], schemas[0]); err != nil {
		t.Error(err)
	}
}
