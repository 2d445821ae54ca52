package move_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// childVariable makes this program a copy that may be killed. Its lines are the two URLs and the
// time.
const childVariable = "KAGZI_TEST_COPY"

func TestMain(m *testing.M) {
	move.SetBatch(12, 8000)
	if spec := os.Getenv(childVariable); spec != "" {
		os.Exit(beCopy(strings.Split(spec, "\n")))
	}
	os.Exit(m.Run())
}

// beCopy prints a line for each batch and reads one before it continues, so that the parent knows
// when to kill it.
func beCopy(spec []string) int {
	answer := make([]byte, 1)
	_, err := backends.Copy(context.Background(),
		engine.CopyParams{From: spec[0], To: spec[1], Now: someDay, Progress: func(p engine.CopyProgress) {
			fmt.Println(p.Table, p.Rows)
			os.Stdin.Read(answer)
		}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var someDay = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// directions holds the kinds of database of each direction.
var directions = [][2]string{{"sqlite", "postgres"}, {"postgres", "sqlite"}, {"sqlite", "sqlite"},
	{"postgres", "postgres"}}

// eachWay runs a test for both directions between the kinds of database.
func eachWay(t *testing.T, test func(t *testing.T, from, to string)) {
	t.Parallel()
	for _, d := range directions[:2] {
		t.Run(d[0]+" to "+d[1], func(t *testing.T) {
			t.Parallel()
			test(t, freshURL(t, d[0]), freshURL(t, d[1]))
		})
	}
}

// freshURL returns the URL of a new, empty database.
func freshURL(t testing.TB, kind string) string {
	t.Helper()
	if kind == "postgres" {
		return pgtest.URL(t)
	}
	return "sqlite:" + filepath.Join(long.ScratchDir(t), "kagzi.db")
}

// openEnd opens a database as the commands do.
func openEnd(t testing.TB, url string) move.Database {
	t.Helper()
	var d move.Database
	var err error
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		d, err = sqlite.OpenEnd(t.Context(), path)
	} else {
		d, err = postgres.OpenEnd(t.Context(), url)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// populate makes a database and fills each table with rows of all values that its columns can hold
// on either kind of database.
func populate(t testing.TB, url string, rnd *rand.Rand, most int) {
	t.Helper()
	if err := backends.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	d := openEnd(t, url)
	defer d.Close()
	tables, err := d.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fence := engine.CopyFence{Standing: engine.StandingFilling, Value: "0", Copy: "test", Why: "a test", At: someDay}
	if err := d.Fence(t.Context(), fence); err != nil {
		t.Fatal(err)
	}
	narrow := narrowest(t)
	batches := 0
	var runs [][]byte
	for _, name := range []string{"runs", ""} { // other tables refer to these
		for i := range tables {
			table := &tables[i]
			if (table.Name == "runs") != (name == "runs") {
				continue
			}
			rows := make([][]any, 1+rnd.IntN(most))
			if name == "runs" {
				rows = make([][]any, most) // enough for the tables that refer to them
			}
			for n := range rows {
				rows[n] = randomRow(rnd, table, narrow, runs, n)
				if table.Name == "runs" {
					runs = append(runs, rows[n][table.At("run_id")].([]byte))
				}
			}
			err := d.Write(t.Context(), engine.CopyBatch{
				Table: table, Rows: rows, Copy: "test", Old: strconv.Itoa(batches), New: strconv.Itoa(batches + 1)})
			if err != nil {
				t.Fatalf("fill %s: %v", table.Name, err)
			}
			batches++
		}
	}
	if err := d.Settle(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	if err := d.Unfence(t.Context(), engine.StandingFilling, strconv.Itoa(batches), ""); err != nil {
		t.Fatal(err)
	}
}

// read caches the result of narrowest, because opening a Postgres database for it is slow.
var read struct {
	sync.Mutex
	columns map[string]engine.CopyColumn
}

// narrowest returns the columns of the Postgres schema, by table and name.
func narrowest(t testing.TB) map[string]engine.CopyColumn {
	t.Helper()
	read.Lock()
	defer read.Unlock()
	if read.columns != nil {
		return read.columns
	}
	d := openEnd(t, pgtest.Lend(t, backends.Migrate).URL)
	defer d.Close()
	tables, err := d.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]engine.CopyColumn{}
	for _, table := range tables {
		for _, c := range table.Columns {
			columns[table.Name+"."+c.Name] = c
		}
	}
	read.columns = columns
	return columns
}

// randomRow makes the n-th row of a table; texts and ids differ from row to row, as unique columns
// require.
func randomRow(rnd *rand.Rand, table *engine.CopyTable, narrow map[string]engine.CopyColumn, runs [][]byte,
	n int) []any {
	row := make([]any, len(table.Columns))
	for i, c := range table.Columns {
		c = narrow[table.Name+"."+c.Name]
		nullable := strings.HasSuffix(c.Name, "put") || c.Name == "payload" || c.Name == "expires_at" && table.Name != "sessions" ||
			c.Name == "retry_at" || c.Name == "final_token"
		switch {
		case nullable && rnd.IntN(3) == 0:
		case c.Name == "run_id" && table.Name != "runs":
			row[i] = runs[n]
		case c.Kind == engine.CopyNumber && c.Least == 0 && c.Most == 1:
			row[i] = int64(rnd.IntN(2))
		case c.Name == "lane_id":
			row[i] = int64(3*n + 1)
		case c.Kind == engine.CopyNumber:
			row[i] = []int64{c.Least, c.Most, 0, 1, int64(rnd.IntN(1000))}[rnd.IntN(5)]
			if c.Name == "sequence" || c.Name == "tick" || c.Name == "attempt" {
				row[i] = int64(n)
			}
		case c.Name == "requirements":
			row[i] = "" // a server reads it when it starts
		case c.Kind == engine.CopyText:
			row[i] = []string{"", "a'b\\\"", "é\U0001F600\u202e", "\t\n", strings.Repeat("long ", 300)}[rnd.IntN(5)] +
				strconv.Itoa(n)
		case c.Length > 0:
			row[i] = randomBytes(rnd, c.Length)
		default:
			row[i] = randomBytes(rnd, []int{0, 1, 300, 5000}[rnd.IntN(4)])
		}
	}
	return row
}

func randomBytes(rnd *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(rnd.Uint32())
	}
	return out
}

// dump returns all rows of a database as text, read without the code of a copy.
func dump(t testing.TB, url string) map[string]string {
	t.Helper()
	read := dumpPostgres
	if strings.HasPrefix(url, "sqlite:") {
		read = dumpSQLite
	}
	tables := map[string]string{}
	for _, table := range tablesOf(t) {
		names := make([]string, len(table.Columns))
		for i, c := range table.Columns {
			names[i] = c.Name
		}
		tables[table.Name] = read(t, url, "select "+strings.Join(names, ", ")+" from "+table.Name+" order by "+
			strings.Join(table.Key, ", "))
	}
	return tables
}

// tablesOf returns the tables to copy, from the catalog of a new file.
func tablesOf(t testing.TB) []engine.CopyTable {
	t.Helper()
	url := freshURL(t, "sqlite")
	if err := backends.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	d := openEnd(t, url)
	defer d.Close()
	tables, err := d.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func dumpSQLite(t testing.TB, url, query string) string {
	t.Helper()
	db := openSQL(t, url)
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		writeRow(&out, values)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func openSQL(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func dumpPostgres(t testing.TB, url, query string) string {
	t.Helper()
	conn := openPostgres(t, url)
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		writeRow(&out, values)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func openPostgres(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func writeRow(out *strings.Builder, values []any) {
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			out.WriteString("null ")
		case bool:
			n := 0
			if v {
				n = 1
			}
			fmt.Fprintf(out, "%d ", n)
		case [16]byte:
			out.WriteString("x" + hex.EncodeToString(v[:]) + " ")
		case []byte:
			out.WriteString("x" + hex.EncodeToString(v) + " ")
		case string:
			fmt.Fprintf(out, "%q ", v)
		default:
			fmt.Fprintf(out, "%v ", v)
		}
	}
	out.WriteByte('\n')
}

// sameRows fails unless both databases hold the same rows.
func sameRows(t testing.TB, got, want map[string]string) {
	t.Helper()
	rows := 0
	for name := range want {
		g, w := strings.Split(got[name], "\n"), strings.Split(want[name], "\n")
		rows += len(w) - 1
		if len(g) != len(w) {
			t.Errorf("rows of %s = %d, want %d", name, len(g)-1, len(w)-1)
			continue
		}
		for i := range w {
			if g[i] != w[i] {
				t.Errorf("%s, row %d:\n got %s\nwant %s", name, i, g[i], w[i])
				break
			}
		}
	}
	if rows == 0 {
		t.Error("there was nothing to compare")
	}
}
