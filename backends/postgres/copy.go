package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// End is a database as one end of a copy (package move). Its statements are built from the catalog.
type End struct {
	place    string
	config   *address
	control  *pgx.Conn
	reader   *pgx.Conn         // in a transaction; nil: not begun yet
	identity map[string]string // table to its identity column
}

// copySettings apply to a session whose statements may take long.
var copySettings = []setting{
	{"synchronous_commit", "on"},
	{"statement_timeout", "0"},
	{"idle_in_transaction_session_timeout", "0"},
	{"jit", "off"},
}

// OpenEnd opens the database of a postgres:// URL, which must have this program's schema. Servers
// may be running on it.
func OpenEnd(ctx context.Context, address string) (*End, error) {
	config, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	e := &End{config: config, place: "postgres://" + describeDatabase(config), identity: map[string]string{}}
	if e.control, err = e.connect(ctx); err != nil {
		return nil, err
	}
	err = checkServer(ctx, e.control, engine.OpenOptions{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = config.pin(ctx, e.control)
	}
	if err == nil {
		err = config.requireSchema(ctx, e.control)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.place += "?" + url.Values{schemaName: {config.schema}}.Encode()
	return e, nil
}

func (e *End) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := e.config.dial(ctx)
	if err != nil {
		return nil, e.config.unreached(err)
	}
	if e.config.pooled() {
		conn.Close(context.WithoutCancel(ctx))
		return nil,
			errors.New(
				"the database is behind a pooler, and copies and backups need their own sessions: give the address of the database itself, or pool_mode=session if the pooler leaves sessions whole")
	}
	if err := applySettings(ctx, conn, copySettings); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, translate("prepare a session", err)
	}
	return conn, nil
}

// Place returns host, database and schema.
func (e *End) Place() string { return e.place }

// Close closes the sessions.
func (e *End) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range []*pgx.Conn{e.reader, e.control} {
		if c != nil {
			c.Close(ctx) // an error does not matter: commits stay
		}
	}
	return nil
}

//go:embed sql/copy_columns.sql
var copyColumnsSQL string

//go:embed sql/copy_references.sql
var copyReferencesSQL string

// Tables returns the tables of the catalog.
func (e *End) Tables(ctx context.Context) (tables []engine.CopyTable, err error) {
	type column struct {
		table, name, kind string
		place             int
		identity          bool
	}
	rows, err := e.control.Query(ctx, copyColumnsSQL)
	if err != nil {
		return nil, translate("read the catalog", err)
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.table, &c.name, &c.kind, &c.place, &c.identity)
		return c, err
	})
	if err != nil {
		return nil, translate("read the catalog", err)
	}
	at := map[string]int{}
	for _, c := range columns {
		if _, known := at[c.table]; !known {
			at[c.table] = len(tables)
			tables = append(tables, engine.CopyTable{Name: c.table})
		}
		t := &tables[at[c.table]]
		described, err := describeColumn(c.name, c.kind)
		if err != nil {
			return nil, err
		}
		t.Columns = append(t.Columns, described)
		if c.identity {
			e.identity[c.table] = c.name
		}
		if c.place > 0 {
			for len(t.Key) < c.place {
				t.Key = append(t.Key, "")
			}
			t.Key[c.place-1] = c.name
		}
	}
	rows, err = e.control.Query(ctx, copyReferencesSQL)
	if err != nil {
		return nil, translate("read the catalog", err)
	}
	var from, to string
	_, err = pgx.ForEachRow(rows, []any{&from, &to}, func() error {
		t := &tables[at[from]]
		t.Refers = append(t.Refers, to)
		return nil
	})
	return tables, translate("read the catalog", err)
}

// describeColumn accepts the types that our tables use.
func describeColumn(name, kind string) (engine.CopyColumn, error) {
	number := func(least, most int64) (engine.CopyColumn, error) {
		return engine.CopyColumn{Name: name, Kind: engine.CopyNumber, Least: least, Most: most}, nil
	}
	switch kind {
	case "boolean":
		return number(0, 1)
	case "smallint":
		return number(math.MinInt16, math.MaxInt16)
	case "integer":
		return number(math.MinInt32, math.MaxInt32)
	case "bigint":
		return number(math.MinInt64, math.MaxInt64)
	case "text":
		return engine.CopyColumn{Name: name, Kind: engine.CopyText, Strict: true}, nil
	case "bytea":
		return engine.CopyColumn{Name: name, Kind: engine.CopyBytes}, nil
	case "uuid":
		return engine.CopyColumn{Name: name, Kind: engine.CopyBytes, Length: len(engine.ID{})}, nil
	}
	return engine.CopyColumn{}, fmt.Errorf("column %s has a type that cannot be copied: %s", name, kind)
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// quotedText quotes a text for a statement without arguments.
func quotedText(text string) string {
	return " E'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// Count returns how many rows a table has.
func (e *End) Count(ctx context.Context, table string) (n int64, err error) {
	err = e.control.QueryRow(ctx, "select count(*) from "+quoted(table)).Scan(&n)
	return n, translate("count the rows of "+table, err)
}

// begin opens the session that reads, on a snapshot of this moment.
func (e *End) begin(ctx context.Context) error {
	if e.reader != nil {
		return nil
	}
	conn, err := e.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "begin isolation level repeatable read read only"); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return err
	}
	e.reader = conn
	return nil
}

// Read returns the next rows. It first asks for their sizes, because a result that the database has
// begun to send cannot be stopped.
func (e *End) Read(ctx context.Context, r engine.CopyRange) (values [][]any, err error) {
	if err := e.begin(ctx); err != nil {
		return nil, translate("read", err)
	}
	where, order, arguments := composePlace(r)
	from := " from " + quoted(r.Table.Name) + where + order
	n, err := e.fitting(ctx, r, from, arguments)
	if err != nil || n == 0 {
		return nil, translate("read", err)
	}
	columns := make([]string, len(r.Table.Columns))
	for i, c := range r.Table.Columns {
		columns[i] = quoted(c.Name)
	}
	rows, err := e.reader.Query(ctx, "select "+strings.Join(columns, ", ")+from+
		fmt.Sprintf(" limit $%d", len(arguments)+1), append(arguments, n)...)
	if err != nil {
		return nil, translate("read", err)
	}
	values, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) {
		values, err := row.Values()
		for i, v := range values {
			values[i] = canonical(v)
		}
		return values, err
	})
	return values, translate("read", err)
}

// composePlace returns the condition, order and arguments of a range.
func composePlace(r engine.CopyRange) (where, order string, arguments []any) {
	keys, places := make([]string, len(r.Table.Key)), make([]string, len(r.Table.Key))
	for i, name := range r.Table.Key {
		keys[i], places[i] = quoted(name), fmt.Sprintf("$%d", i+1)
	}
	key := strings.Join(keys, ", ")
	order = " order by " + key
	if r.After == nil {
		return "", order, nil
	}
	for i, name := range r.Table.Key {
		arguments = append(arguments, native(r.Table.Columns[r.Table.At(name)], r.After[i]))
	}
	return " where (" + key + ") > (" + strings.Join(places, ", ") + ")", order, arguments
}

// fitting returns how many of the next rows fit the limits.
func (e *End) fitting(ctx context.Context, r engine.CopyRange, from string, arguments []any) (n int, err error) {
	sizes := []string{"0"}
	for _, c := range r.Table.Columns {
		if c.Kind != engine.CopyNumber && c.Length == 0 {
			sizes = append(sizes, "coalesce(octet_length("+quoted(c.Name)+"), 0)")
		}
	}
	rows, err := e.reader.Query(ctx, "select "+strings.Join(sizes, " + ")+from+
		fmt.Sprintf(" limit $%d", len(arguments)+1), append(arguments, r.Rows)...)
	if err != nil {
		return 0, err
	}
	var size, total int64
	full := false
	_, err = pgx.ForEachRow(rows, []any{&size}, func() error {
		if full {
			return nil
		}
		n++
		total += size
		full = total >= int64(r.Bytes)
		return nil
	})
	return n, err
}

// canonical returns a value in the form that all databases use.
func canonical(value any) any {
	switch v := value.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case [16]byte:
		return v[:]
	}
	return value
}

// native returns a value in the form that one of our columns takes.
func native(c engine.CopyColumn, value any) any {
	switch v := value.(type) {
	case int64:
		if c.Least == 0 && c.Most == 1 {
			return v != 0
		}
	case []byte:
		if c.Length == len(engine.ID{}) && len(v) == c.Length {
			return [16]byte(v)
		}
	}
	return value
}

// transact calls do in a transaction. It returns errors of the engine unchanged.
func (e *End) transact(ctx context.Context, doing string, do func(tx pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, e.control, do)
	if errors.Is(err, engine.ErrCopyRival) || errors.Is(err, engine.ErrCopyNotEmpty) {
		return err
	}
	return translate(doing, err)
}

//go:embed sql/let_copy.sql
var letCopySQL string

// Write adds rows.
func (e *End) Write(ctx context.Context, b engine.CopyBatch) error {
	names := make([]string, len(b.Table.Columns))
	for i, c := range b.Table.Columns {
		names[i] = c.Name
	}
	return e.transact(ctx, "write", func(tx pgx.Tx) error {
		err := changeStanding(ctx, tx, amendStandingSQL,
			args{"name": engine.StandingFilling, "old": b.Old, "new": b.New})
		if err != nil || len(b.Rows) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, letCopySQL, args{"copy": b.Copy}); err != nil {
			return err
		}
		source := pgx.CopyFromSlice(len(b.Rows), func(n int) ([]any, error) {
			row := make([]any, len(b.Table.Columns))
			for i, c := range b.Table.Columns {
				row[i] = native(c, b.Rows[n][i])
			}
			return row, nil
		})
		_, err = tx.CopyFrom(ctx, pgx.Identifier{b.Table.Name}, names, source)
		return err
	})
}

// Settle sets the identity sequences after the highest copied number, and updates the statistics,
// on which plans depend.
func (e *End) Settle(ctx context.Context, tables []engine.CopyTable) error {
	for table, column := range e.identity {
		statement := fmt.Sprintf("select setval(pg_get_serial_sequence($1, $2), max(%s)) from %s", quoted(column),
			quoted(table))
		if _, err := e.control.Exec(ctx, statement, quoted(table), column); err != nil {
			return translate("set the numbers of "+table, err)
		}
	}
	for _, t := range tables {
		if _, err := e.control.Exec(ctx, "analyze "+quoted(t.Name)); err != nil {
			return translate("analyze "+t.Name, err)
		}
	}
	return nil
}
