package postgres

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// migrationKey is the advisory lock under which migrations are applied.
const migrationKey = 0x6b61677a6d696772

//go:embed sql/schema_state.sql
var schemaStateSQL string

//go:embed sql/list_migrations.sql
var listMigrationsSQL string

//go:embed sql/insert_migration.sql
var insertMigrationSQL string

//go:embed sql/create_migrations.sql
var createMigrationsSQL string

//go:embed sql/lock_migrations.sql
var lockMigrationsSQL string

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// applied is one migration that was applied to a database.
type applied struct {
	number         int
	name, checksum string
}

// appliedTo returns the applied migrations, in order.
func appliedTo(ctx context.Context, q querier) ([]applied, error) {
	state, err := stateOf(ctx, q)
	if err != nil {
		return nil, err
	}
	if !state.ours {
		return nil, nil
	}
	rows, err := q.Query(ctx, listMigrationsSQL)
	if err != nil {
		return nil, translate("read the state of the schema", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a applied, err error) {
		err = row.Scan(&a.number, &a.name, &a.checksum)
		return a, err
	})
	return list, translate("read the state of the schema", err)
}

// schemaNumber returns the number of the newest applied migration.
func schemaNumber(ctx context.Context, q querier) (int, error) {
	list, err := appliedTo(ctx, q)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[len(list)-1].number, nil
}

func newestMigration() (int, error) {
	list, err := migrations.List("postgres")
	return len(list), err
}

func newerSchema(number, newest int) error {
	return &engine.Error{Kind: engine.KindPrecondition,
		Message: fmt.Sprintf(
			"the database has schema %d and this program knows schemas up to %d: a newer kagzi has used it; run that one", number, newest)}
}

// requireSchema refuses a schema that is not this program's.
func (a *address) requireSchema(ctx context.Context, q querier) error {
	newest, err := newestMigration()
	if err != nil {
		return err
	}
	number, err := schemaNumber(ctx, q)
	if err == nil && number == 0 {
		err = a.requireEmpty(ctx, q)
	}
	switch {
	case err != nil:
		return err
	case number > newest:
		return newerSchema(number, newest)
	case number < newest:
		return fmt.Errorf("the database has schema %d and this program needs schema %d: run `kagzi db migrate`",
			number, newest)
	}
	return nil
}

const (
	// migrateLock is how long a migration waits for a table's lock per attempt, because calls of
	// running servers wait behind it.
	migrateLock     = "300ms"
	migratePause    = time.Second // between attempts, so that those calls continue
	migrateMaxPause = 5 * time.Second
)

// migrateTimeout is how long a migration tries to lock its tables.
var migrateTimeout = 5 * time.Minute

// migrate applies the missing migrations, each in its own transaction, but a whole new schema in
// one: if it is killed while making a schema, none is left, rather than one that looks like an
// older program's. While others use a table that must change, it retries.
func (a *address) migrate(ctx context.Context, conn *pgx.Conn, log *slog.Logger) error {
	list, err := migrations.List("postgres")
	if err != nil {
		return err
	}
	deadline, wait := time.Now().Add(migrateTimeout), migratePause
	for done := false; !done; {
		err := a.within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
			done, err = a.migrateOnce(ctx, tx, list)
			return err
		})
		if err == nil {
			continue
		}
		done = false
		if state := sqlState(err); state != codeLockTimeout && state != codeDeadlock {
			return translate("migrate the database", err)
		}
		users := a.tableUsers(ctx, conn)
		if time.Now().Add(wait).After(deadline) {
			return unavailable(
				"the tables could not be locked for the migration within %s, because transactions of others use them (%s): end those, or start again later",
				migrateTimeout, users)
		}
		log.Warn("the migration waits for a table that others use; retrying", "database", describeDatabase(a),
			"schema", a.schema, "used_by", users, "in", wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		wait = min(2*wait, migrateMaxPause)
	}
	return nil
}

//go:embed sql/table_users.sql
var tableUsersSQL string

// tableUsers describes the transactions that use the tables.
func (a *address) tableUsers(ctx context.Context, conn *pgx.Conn) string {
	var users []string
	var pid, seconds int64
	var name string
	// Errors are ignored, because this only adds to the text of another message.
	_ = a.within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, tableUsersSQL)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&pid, &name, &seconds}, func() error {
			users = append(users, fmt.Sprintf("pid %d, application %q, for %d s", pid, name, seconds))
			return nil
		})
		return err
	})
	if len(users) == 0 {
		return "not known whose"
	}
	return strings.Join(users, "; ")
}

//go:embed sql/migration_limits.sql
var migrationLimitsSQL string

// migrateOnce applies the next migration, or all if there is no schema, and says when none is left.
// It waits for another server that migrates before it locks any table.
func (a *address) migrateOnce(ctx context.Context, tx pgx.Tx, list []migrations.Migration) (done bool, err error) {
	if _, err := tx.Exec(ctx, lockMigrationsSQL, args{"key": int64(migrationKey)}); err != nil {
		return false, translate("lock the schema", err)
	}
	if _, err := tx.Exec(ctx, migrationLimitsSQL, args{"lock_timeout": migrateLock}); err != nil {
		return false, translate("set the limits of the migration", err)
	}
	number, err := schemaNumber(ctx, tx)
	switch {
	case err != nil:
		return false, err
	case number > len(list):
		return false, newerSchema(number, len(list))
	case number == len(list):
		return true, nil
	case number > 0:
		return false, apply(ctx, tx, list[number])
	}
	// Another server may have made its tables in another schema since the schema was found.
	now := a.place
	now.schema = a.schema
	if err := now.findOthers(ctx, tx); err != nil {
		return false, err
	}
	if err := now.requireEmpty(ctx, tx); err != nil {
		return false, err
	}
	if err := requireEncoding(ctx, tx); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, createMigrationsSQL); err != nil {
		return false, translate("make the table of migrations", err)
	}
	for _, m := range list {
		if err := apply(ctx, tx, m); err != nil {
			return false, err
		}
	}
	return true, nil
}

// apply carries out a migration and records it.
func apply(ctx context.Context, tx pgx.Tx, m migrations.Migration) error {
	if _, err := tx.Exec(ctx, m.SQL); err != nil {
		if retryable(err) {
			return err // unchanged, so that migrate retries
		}
		return fmt.Errorf("migration %s: %w", m.Name, translate("apply", err))
	}
	_, err := tx.Exec(ctx, insertMigrationSQL, args{"number": m.Number, "name": m.Name, "checksum": checksum(m)})
	return translate("note the migration", err)
}

// schemaState describes the content of the schema.
type schemaState struct {
	there   bool
	ours    bool // it has Kagzi's table of migrations
	foreign bool // it has another program's table of that name
	tables  int
}

func stateOf(ctx context.Context, q querier) (state schemaState, err error) {
	err = q.QueryRow(ctx, schemaStateSQL).Scan(&state.there, &state.ours, &state.foreign, &state.tables)
	return state, translate("read the state of the schema", err)
}

// requireEmpty refuses a schema without Kagzi's tables that does not exist, holds other tables, or
// is not the only one with Kagzi's tables.
func (p *place) requireEmpty(ctx context.Context, q querier) error {
	state, err := stateOf(ctx, q)
	switch {
	case err != nil:
		return err
	case !state.there && p.named != "":
		return fmt.Errorf(
			"the schema %s is not there, or the database's user may not use it: `kagzi db migrate` makes it, and so does: create schema %s",
			quoted(p.named), quoted(p.named))
	case !state.there:
		return errors.New(
			"the schema that search_path names is not there: create it first, or name one with ?schema= in the database URL")
	case state.ours:
		return nil
	}
	if err := p.refuseSecond(); err != nil {
		return err
	}
	const advice = "give Kagzi its own database or schema, for example with: create schema kagzi; and ?schema=kagzi in the database URL"
	switch {
	case state.foreign:
		return fmt.Errorf(
			"the schema %s has a table schema_migrations of another program, which records its migrations there; %s",
			quoted(p.schema), advice)
	case state.tables > 0:
		return fmt.Errorf("the schema %s holds tables of another program; %s", quoted(p.schema), advice)
	}
	return nil
}

func checksum(m migrations.Migration) string {
	sum := sha256.Sum256([]byte(m.SQL))
	return hex.EncodeToString(sum[:])
}

// Migrate migrates the database of a postgres:// URL. It makes the schema that the URL names with
// schema=.
func Migrate(ctx context.Context, url string) error {
	config, conn, err := openPlain(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = config.within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error { return config.makeSchema(ctx, tx) })
	if err == nil {
		err = config.pin(ctx, conn)
	}
	if err == nil {
		err = config.within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error { return refuseMoved(ctx, tx) })
	}
	if err != nil {
		return err
	}
	return config.migrate(ctx, conn, slog.Default())
}

//go:embed sql/has_schema.sql
var hasSchemaSQL string

// makeSchema makes the schema that the address names, if it does not exist.
func (p *place) makeSchema(ctx context.Context, tx pgx.Tx) error {
	if p.named == "" {
		return nil
	}
	var there bool
	err := tx.QueryRow(ctx, hasSchemaSQL, args{"schema": p.named}).Scan(&there)
	if err == nil && !there {
		_, err = tx.Exec(ctx, "create schema if not exists "+quoted(p.named))
	}
	return translate("make the schema "+quoted(p.named), err)
}

// Status compares the database with this program's migrations.
func Status(ctx context.Context, url string) (status engine.SchemaStatus, err error) {
	list, err := migrations.List("postgres")
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	status.Newest = len(list)
	err = withConnection(ctx, url, pgx.TxOptions{}, func(a *address, tx pgx.Tx) (err error) {
		status.Place = a.schema
		if status.Applied, err = schemaNumber(ctx, tx); err != nil {
			return err
		}
		if status.Applied == 0 {
			if err := a.requireEmpty(ctx, tx); err != nil {
				status.Refusal = err.Error()
			}
			state, err := stateOf(ctx, tx)
			status.Absent = !state.there && a.named != ""
			return err
		}
		if status.Warnings, err = a.warnings(ctx, tx); err != nil {
			return err
		}
		return refusing(ctx, tx, status.Refuse)
	})
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	for _, m := range list[min(status.Applied, len(list)):] {
		status.Pending = append(status.Pending, m.Name)
	}
	return status, nil
}

// openPlain opens a separate connection to the database of an address, and finds the schema.
func openPlain(ctx context.Context, url string) (*address, *pgx.Conn, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, nil, err
	}
	conn, err := config.dial(ctx)
	if err != nil {
		return nil, nil, config.unreached(err)
	}
	if err := config.pin(ctx, conn); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, nil, err
	}
	return config, conn, nil
}

// withConnection runs do in a transaction on a separate connection.
func withConnection(ctx context.Context, url string, options pgx.TxOptions,
	do func(a *address, tx pgx.Tx) error) error {
	config, conn, err := openPlain(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return config.within(ctx, conn, options, func(tx pgx.Tx) error { return do(config, tx) })
}
