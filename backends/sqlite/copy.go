package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// End is a database file as one end of a copy (package move). Statements about its rows are made of what the catalog says.
type End struct {
	path    string
	lock    *lock // nil: for reading only
	control *conn // nil: likewise
	reader  *conn // in a transaction, or nil: yet to begin one
	texts   map[string]*string
}

// OpenEnd opens the file at path, which must have this program's schema. It stays locked against servers until Close.
func OpenEnd(ctx context.Context, path string) (*End, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	path, err := prepareFile(path)
	if err != nil {
		return nil, err
	}
	e := &End{path: path, texts: map[string]*string{}}
	if e.lock, err = acquire(path); err != nil {
		return nil, fmt.Errorf("%w: stop it first", err)
	}
	if err := e.lock.describe("copying the database"); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.control, err = connect(dsn(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)", "synchronous(full)", "journal_mode(wal)",
		fmt.Sprintf("journal_size_limit(%d)", maxWAL), "wal_autocheckpoint(8000)", "cache_size(-65536)"))
	if err == nil {
		err = requireNewest(ctx, e.control)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", path, err), e.Close())
	}
	return e, nil
}

// OpenReadEnd opens the file at path to be read only. It takes no lock and leaves no trace: the file may be a backup on a disk that takes no
// writes. A file that somebody changes meanwhile fails the reading.
func OpenReadEnd(ctx context.Context, path string) (*End, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = resolve(path)
	}
	if err != nil {
		return nil, err
	}
	e := &End{path: path, texts: map[string]*string{}}
	if err = e.begin(ctx); err == nil {
		err = requireNewest(ctx, e.reader)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", path, err), e.Close())
	}
	return e, nil
}

// requireNewest refuses a schema that is not this program's.
func requireNewest(ctx context.Context, c *conn) error {
	newest, err := newestSchema()
	if err != nil {
		return err
	}
	number, err := schemaNumber(ctx, c)
	switch {
	case err != nil:
		return err
	case number > newest:
		return newerSchema(number, newest)
	case number < newest:
		return fmt.Errorf("the database has schema %d and this program needs schema %d: run `kagzi db migrate`", number, newest)
	}
	return nil
}

// Place is the file.
func (e *End) Place() string { return "sqlite:" + e.path }

// Close lets go of the file.
func (e *End) Close() (err error) {
	for _, c := range []*conn{e.reader, e.control} {
		if c != nil {
			err = errors.Join(err, c.close())
		}
	}
	if e.lock != nil {
		e.lock.release()
	}
	return err
}

// begin opens the connection that reads, at the moment now.
func (e *End) begin(ctx context.Context) (err error) {
	if e.reader != nil {
		return nil
	}
	var c *conn
	if e.lock == nil {
		c, err = look(e.path, nil)
	} else {
		c, err = connectReader(e.path)
	}
	if err != nil {
		return err
	}
	if _, err := c.exec(ctx, &beginReadSQL); err != nil {
		return errors.Join(err, c.close())
	}
	e.reader = c
	return nil
}

// session is the connection that knows how the file stands.
func (e *End) session() *conn {
	if e.control != nil {
		return e.control
	}
	return e.reader
}

//go:embed sql/copy_columns.sql
var copyColumnsSQL string

//go:embed sql/copy_references.sql
var copyReferencesSQL string

// Tables is what the catalog holds.
func (e *End) Tables(ctx context.Context) (tables []engine.CopyTable, err error) {
	keys := map[string]map[int64]string{}
	err = e.session().query(ctx, &copyColumnsSQL, func(r *row) error {
		table, column, kind, place := r.text(), r.text(), r.text(), r.num()
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
		return nil, translate("read the catalog", err)
	}
	for i := range tables {
		t := &tables[i]
		for place := range len(keys[t.Name]) {
			t.Key = append(t.Key, keys[t.Name][int64(place+1)])
		}
	}
	err = e.session().query(ctx, &copyReferencesSQL, func(r *row) error {
		from, to := r.text(), r.text()
		for i := range tables {
			if tables[i].Name == from {
				tables[i].Refers = append(tables[i].Refers, to)
			}
		}
		return nil
	})
	return tables, translate("read the catalog", err)
}

// describeColumn takes the types that strict tables of ours have.
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

// text is a statement by what it is called, made once.
func (e *End) text(name string, compose func() string) *string {
	if e.texts[name] == nil {
		made := compose()
		e.texts[name] = &made
	}
	return e.texts[name]
}

// Count is how many rows a table has.
func (e *End) Count(ctx context.Context, table string) (n int64, err error) {
	statement := e.text("count "+table, func() string { return "select count(*) from " + quoted(table) })
	err = e.session().query(ctx, statement, func(r *row) error {
		n = r.num()
		return nil
	})
	return n, translate("count the rows of "+table, err)
}

// errEnough ends a reading that has all it can hold.
var errEnough = errors.New("enough")

// Read is the next rows.
func (e *End) Read(ctx context.Context, p engine.CopyRange) (rows [][]any, err error) {
	if err := e.begin(ctx); err != nil {
		return nil, translate("read", err)
	}
	statement := e.text(fmt.Sprint("read ", p.Table.Name, len(p.Table.Columns), p.After == nil), func() string { return composeRead(p) })
	arguments := []arg{num("limit", p.Rows)}
	for i, value := range p.After {
		arguments = append(arguments, anyArg(fmt.Sprint("key", i), value))
	}
	size := 0
	err = e.reader.query(ctx, statement, func(r *row) error {
		values := make([]any, r.columns)
		for i := range values {
			values[i] = r.take()
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
		return nil, translate("read", err)
	}
	if e.lock == nil && !e.reader.sight.still(e.path) {
		return nil, fmt.Errorf("somebody changes the database %s while it is read", e.path)
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
	return "select " + strings.Join(columns, ", ") + " from " + quoted(p.Table.Name) + where + " order by " + key + " limit @limit"
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// transact calls do in a transaction of the connection that writes.
func (e *End) transact(ctx context.Context, verb string, do func(c *conn) error) error {
	c := e.control
	if _, err := c.exec(ctx, &beginSQL); err != nil {
		return translate(verb, err)
	}
	err := do(c)
	if err == nil {
		_, err = c.exec(ctx, &commitSQL)
	}
	if err != nil {
		c.exec(context.WithoutCancel(ctx), &rollbackSQL) // fails when SQLite did it by itself
		return translate(verb, err)
	}
	return nil
}

// Write adds rows.
func (e *End) Write(ctx context.Context, b engine.CopyBatch) error {
	statement := e.text("insert "+b.Table.Name, func() string { return composeInsert(b.Table) })
	return e.transact(ctx, "write", func(c *conn) error {
		err := once(c.exec(ctx, &amendStandingSQL, text("name", engine.StandingFilling), text("old", b.Old), text("new", b.New)))
		if err != nil {
			return err
		}
		arguments, names := make([]arg, len(b.Table.Columns)), make([]string, len(b.Table.Columns))
		for i := range names {
			names[i] = fmt.Sprint("c", i)
		}
		for _, values := range b.Rows {
			for i, v := range values {
				arguments[i] = anyArg(names[i], v)
			}
			if _, err := c.exec(ctx, statement, arguments...); err != nil {
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
	return "insert into " + quoted(t.Name) + " (" + strings.Join(columns, ", ") + ") values (" + strings.Join(places, ", ") + ")"
}

// Settle has nothing to do: the next lane gets the number after the highest.
func (e *End) Settle(context.Context, []engine.CopyTable) error { return nil }
