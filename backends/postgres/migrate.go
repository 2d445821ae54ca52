package postgres

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"

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

// querier is a connection or a transaction of its own.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// applied is one migration that a database has had.
type applied struct {
	number         int
	name, checksum string
}

// appliedTo is the migrations that the database has had, in order.
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

// schemaNumber is the newest migration that was applied.
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
func requireSchema(ctx context.Context, conn *pgx.Conn) error {
	newest, err := newestMigration()
	if err != nil {
		return err
	}
	number, err := schemaNumber(ctx, conn)
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

// migrate applies what is missing, each migration in a transaction of its own, and a whole schema
// in one: who is killed while making it leaves none, rather than one that looks like an older
// program's.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	list, err := migrations.List("postgres")
	if err != nil {
		return err
	}
	for done := false; !done; {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			done, err = migrateOnce(ctx, tx, list)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrateOnce applies the next migration, or all where there is no schema, and says when there is none left.
func migrateOnce(ctx context.Context, tx pgx.Tx, list []migrations.Migration) (done bool, err error) {
	if _, err := tx.Exec(ctx, lockMigrationsSQL, args{"key": int64(migrationKey)}); err != nil {
		return false, translate("lock the schema", err)
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
	if err := requireEmpty(ctx, tx); err != nil {
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

// apply carries out a migration and notes that.
func apply(ctx context.Context, tx pgx.Tx, m migrations.Migration) error {
	if _, err := tx.Exec(ctx, m.SQL); err != nil {
		return fmt.Errorf("migration %s: %w", m.Name, translate("apply", err))
	}
	_, err := tx.Exec(ctx, insertMigrationSQL, args{"number": m.Number, "name": m.Name, "checksum": checksum(m)})
	return translate("note the migration", err)
}

// schemaState is what the schema holds that the URL leads to.
type schemaState struct {
	there  bool
	ours   bool // it has our table of migrations
	tables int
}

func stateOf(ctx context.Context, q querier) (state schemaState, err error) {
	err = q.QueryRow(ctx, schemaStateSQL).Scan(&state.there, &state.ours, &state.tables)
	return state, translate("read the state of the schema", err)
}

// requireEmpty refuses a schema that is not there, or that holds somebody else's tables.
func requireEmpty(ctx context.Context, q querier) error {
	state, err := stateOf(ctx, q)
	switch {
	case err != nil:
		return err
	case !state.there:
		return errors.New("the schema that search_path names is not there: create it first")
	case !state.ours && state.tables > 0:
		return errors.New(
			"this database holds tables of another program; give kagzi a database or a schema (search_path) of its own")
	}
	return nil
}

func checksum(m migrations.Migration) string {
	sum := sha256.Sum256([]byte(m.SQL))
	return hex.EncodeToString(sum[:])
}

// Migrate brings the database of a postgres:// URL up to date.
func Migrate(ctx context.Context, url string) error {
	return withConnection(ctx, url, func(conn *pgx.Conn) error {
		if err := refuseMoved(ctx, conn); err != nil {
			return err
		}
		return migrate(ctx, conn)
	})
}

// Status compares the database with the migrations that this program has.
func Status(ctx context.Context, url string) (status engine.SchemaStatus, err error) {
	list, err := migrations.List("postgres")
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	status.Newest = len(list)
	err = withConnection(ctx, url, func(conn *pgx.Conn) (err error) {
		if status.Applied, err = schemaNumber(ctx, conn); err != nil {
			return err
		}
		return refusing(ctx, conn, status.Refuse)
	})
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	for _, m := range list[min(status.Applied, len(list)):] {
		status.Pending = append(status.Pending, m.Name)
	}
	return status, nil
}

// withConnection runs do on a connection of its own.
func withConnection(ctx context.Context, url string, do func(conn *pgx.Conn) error) error {
	config, err := parseURL(url)
	if err != nil {
		return err
	}
	conn, err := config.dial(ctx)
	if err != nil {
		return config.unreached(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}
