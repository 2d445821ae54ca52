package backup

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// End is a database file as one end of a copy (package move). Its statements are built from the
// catalog.
type End struct {
	path    string
	lock    *dbfile.Lock   // nil: read-only
	control *sqlite3.Conn  // nil: read-only
	reader  *dbfile.Reader // in a transaction; nil: not begun yet
	texts   map[string]*string
}

// OpenEnd opens the file at path, which must have this program's schema. It stays locked against
// servers until Close.
func OpenEnd(ctx context.Context, path string) (*End, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	path, err := dbfile.Prepare(path)
	if err != nil {
		return nil, err
	}
	e := &End{path: path, texts: map[string]*string{}}
	if e.lock, err = dbfile.Acquire(path); err != nil {
		return nil, fmt.Errorf("%w: stop it first", err)
	}
	if err := e.lock.Describe("copying the database"); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.control, err = sqlite3.Open(sqlite3.DSN(
		path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)", "synchronous(full)", "journal_mode(wal)",
		fmt.Sprintf("journal_size_limit(%d)", dbfile.MaxLogBytes), "wal_autocheckpoint(8000)", "cache_size(-65536)"))
	if err == nil {
		err = dbfile.RequireNewestSchema(ctx, e.control)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", path, err), e.Close())
	}
	return e, nil
}

// OpenSource opens the file at path read-only. It takes no lock and leaves no files: the file may
// be a backup on a read-only disk. If somebody changes the file meanwhile, reading fails.
func OpenSource(ctx context.Context, path string) (*End, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = dbfile.Resolve(path)
	}
	if err != nil {
		return nil, err
	}
	e := &End{path: path, texts: map[string]*string{}}
	if err = e.begin(ctx); err == nil {
		err = dbfile.RequireNewestSchema(ctx, e.reader.Conn)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", path, err), e.Close())
	}
	return e, nil
}

// Place returns the name of the file, for messages.
func (e *End) Place() string { return "sqlite:" + e.path }

// Close closes the connections and releases the lock.
func (e *End) Close() (err error) {
	if e.reader != nil {
		err = e.reader.Close()
	}
	if e.control != nil {
		err = errors.Join(err, e.control.Close())
	}
	if e.lock != nil {
		e.lock.Release()
	}
	return err
}

// begin opens the connection that reads, on a snapshot of this moment.
func (e *End) begin(ctx context.Context) (err error) {
	if e.reader != nil {
		return nil
	}
	var c *dbfile.Reader
	if e.lock == nil {
		c, err = dbfile.OpenReadOnly(e.path, nil)
	} else {
		c, err = dbfile.OpenReader(e.path)
	}
	if err != nil {
		return err
	}
	if err := c.BeginRead(ctx); err != nil {
		return errors.Join(err, c.Close())
	}
	e.reader = c
	return nil
}

// session returns the connection that reads the states of the file.
func (e *End) session() *sqlite3.Conn {
	if e.control != nil {
		return e.control
	}
	return e.reader.Conn
}

//go:embed sql/copy_columns.sql
var copyColumnsSQL string

//go:embed sql/copy_references.sql
var copyReferencesSQL string

// Tables returns the tables of the catalog.
func (e *End) Tables(ctx context.Context) (tables []engine.CopyTable, err error) {
	keys := map[string]map[int64]string{}
	err = e.session().Query(ctx, &copyColumnsSQL, func(r *sqlite3.Row) error {
		table, column, kind, place := r.Text(), r.Text(), r.Text(), r.Int()
		if len(tables) == 0 || tables[len(tables)-1].Name != table {
			tables, keys[table] = append(tables, engine.CopyTable{Name: table}), map[int64]string{}
		}
		if place > 0 {
			keys[table][place] = column
		}
		described, err := describeColumn(column, kind)
		t := &tables[len(tables)-1]
		t.Columns = append(t.Columns, described)
		return err
	})
	if err != nil {
		return nil, dbfile.Translate("read the catalog", err)
	}
	for i := range tables {
		t := &tables[i]
		for place := range len(keys[t.Name]) {
			t.Key = append(t.Key, keys[t.Name][int64(place+1)])
		}
	}
	err = e.session().Query(ctx, &copyReferencesSQL, func(r *sqlite3.Row) error {
		from, to := r.Text(), r.Text()
		for i := range tables {
			if tables[i].Name == from {
				tables[i].Refers = append(tables[i].Refers, to)
			}
		}
		return nil
	})
	return tables, dbfile.Translate("read the catalog", err)
}

// describeColumn accepts the types of strict tables.
func describeColumn(name, kind string) (engine.CopyColumn, error) {
	switch strings.ToLower(kind) {
	case "integer":
		return engine.CopyColumn{Name: name, Kind: engine.CopyNumber, Least: math.MinInt64, Most: math.MaxInt64}, nil
	case "text":
		return engine.CopyColumn{Name: name, Kind: engine.CopyText}, nil
	case "blob":
		return engine.CopyColumn{Name: name, Kind: engine.CopyBytes}, nil
	}
	return engine.CopyColumn{}, fmt.Errorf("column %s has a type that cannot be copied: %s", name, kind)
}

// text returns the statement of that name, and builds it on first use.
func (e *End) text(name string, compose func() string) *string {
	if e.texts[name] == nil {
		made := compose()
		e.texts[name] = &made
	}
	return e.texts[name]
}

// Count returns how many rows a table has.
func (e *End) Count(ctx context.Context, table string) (n int64, err error) {
	statement := e.text("count "+table, func() string { return "select count(*) from " + quoted(table) })
	err = e.session().Query(ctx, statement, func(r *sqlite3.Row) error {
		n = r.Int()
		return nil
	})
	return n, dbfile.Translate("count the rows of "+table, err)
}

// errEnough ends a read that has reached its limit.
var errEnough = errors.New("enough")

// Read returns the next rows of a table.
func (e *End) Read(ctx context.Context, p engine.CopyRange) (rows [][]any, err error) {
	if err := e.begin(ctx); err != nil {
		return nil, dbfile.Translate("read", err)
	}
	statement := e.text(fmt.Sprint("read ", p.Table.Name, len(p.Table.Columns), p.After == nil), func() string {
		return composeRead(p)
	})
	arguments := []sqlite3.Arg{sqlite3.Int("limit", int64(p.Rows))}
	for i, value := range p.After {
		arguments = append(arguments, sqlite3.Value(fmt.Sprint("key", i), value))
	}
	size := 0
	err = e.reader.Query(ctx, statement, func(r *sqlite3.Row) error {
		values := make([]any, r.Columns())
		for i := range values {
			values[i] = r.Value()
			switch v := values[i].(type) {
			case []byte:
				size += len(v)
			case string:
				size += len(v)
			}
		}
		rows = append(rows, values)
		if size >= p.Bytes {
			return errEnough
		}
		return nil
	}, arguments...)
	if err != nil && !errors.Is(err, errEnough) {
		return nil, dbfile.Translate("read", err)
	}
	if e.lock == nil && !e.reader.Current(e.path) {
		return nil, fmt.Errorf("somebody changed the database %s while it was read", e.path)
	}
	return rows, nil
}

func composeRead(p engine.CopyRange) string {
	columns := make([]string, len(p.Table.Columns))
	for i, c := range p.Table.Columns {
		columns[i] = quoted(c.Name)
	}
	keys, places := make([]string, len(p.Table.Key)), make([]string, len(p.Table.Key))
	for i, name := range p.Table.Key {
		keys[i], places[i] = quoted(name), fmt.Sprint("@key", i)
	}
	key := strings.Join(keys, ", ")
	where := ""
	if p.After != nil {
		where = " where (" + key + ") > (" + strings.Join(places, ", ") + ")"
	}
	return "select " + strings.Join(columns, ", ") + " from " + quoted(p.Table.Name) + where + " order by " + key +
		" limit @limit"
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// transact calls do in a transaction of the writing connection.
func (e *End) transact(ctx context.Context, verb string, do func(c *sqlite3.Conn) error) error {
	c := e.control
	if err := c.Begin(ctx); err != nil {
		return dbfile.Translate(verb, err)
	}
	err := do(c)
	if err == nil {
		err = c.Commit(ctx)
	}
	if err != nil {
		c.Rollback(context.WithoutCancel(ctx)) // fails if SQLite rolled back by itself
		return dbfile.Translate(verb, err)
	}
	return nil
}

// Write adds rows.
func (e *End) Write(ctx context.Context, b engine.CopyBatch) error {
	statement := e.text("insert "+b.Table.Name, func() string { return composeInsert(b.Table) })
	return e.transact(ctx, "write", func(c *sqlite3.Conn) error {
		err := once(c.Exec(ctx, &amendStandingSQL, sqlite3.Text("name", engine.StandingFilling),
			sqlite3.Text("old", b.Old), sqlite3.Text("new", b.New)))
		if err != nil {
			return err
		}
		arguments, names := make([]sqlite3.Arg, len(b.Table.Columns)), make([]string, len(b.Table.Columns))
		for i := range names {
			names[i] = fmt.Sprint("c", i)
		}
		for _, values := range b.Rows {
			for i, v := range values {
				arguments[i] = sqlite3.Value(names[i], v)
			}
			if _, err := c.Exec(ctx, statement, arguments...); err != nil {
				return err
			}
		}
		return nil
	})
}

func composeInsert(t *engine.CopyTable) string {
	columns, places := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i], places[i] = quoted(c.Name), fmt.Sprint("@c", i)
	}
	return "insert into " + quoted(t.Name) + " (" + strings.Join(columns, ", ") + ") values (" +
		strings.Join(places, ", ") + ")"
}

// Settle does nothing: the next lane gets the number after the highest.
func (e *End) Settle(context.Context, []engine.CopyTable) error { return nil }
