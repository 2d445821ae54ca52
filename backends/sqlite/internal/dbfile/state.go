package dbfile

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/has_standing.sql
var hasStandingSQL string

//go:embed sql/refusing_standing.sql
var refusingStandingSQL string

// RefuseMoved refuses a file whose rows were moved to another database, or are still being copied
// into it.
func RefuseMoved(ctx context.Context, c *sqlite3.Conn) error {
	var refusal error
	err := Refusing(ctx, c, func(name, value string) { refusal = engine.ServingRefused(name, value) })
	return errors.Join(err, refusal)
}

// Refusing calls tell with the reason why the file must not be served, if there is one.
func Refusing(ctx context.Context, c *sqlite3.Conn, tell func(name, value string)) error {
	old := true
	err := c.Query(ctx, &hasStandingSQL, func(*sqlite3.Row) error {
		old = false
		return nil
	})
	if err != nil || old {
		return err
	}
	return c.Query(ctx, &refusingStandingSQL, func(r *sqlite3.Row) error {
		tell(r.Text(), r.Text())
		return nil
	})
}

//go:embed sql/get_standing.sql
var getStandingSQL string

// State returns a state of the database (engine.StandingMoved and others), and since when; the
// value is empty if the state is not set.
func State(ctx context.Context, c *sqlite3.Conn, name string) (value string, at time.Time, err error) {
	err = c.Query(ctx, &getStandingSQL, func(r *sqlite3.Row) error {
		value, at = r.Text(), r.Time()
		return nil
	}, sqlite3.Text("name", name))
	return value, at, err
}

//go:embed sql/set_standing.sql
var setStandingSQL string

//go:embed sql/delete_standing.sql
var deleteStandingSQL string

// SetState sets a state of the database, and returns how many rows that changed.
func SetState(ctx context.Context, c *sqlite3.Conn, name, value string, at time.Time) (int64, error) {
	return c.Exec(ctx, &setStandingSQL, sqlite3.Text("name", name), sqlite3.Text("value", value),
		sqlite3.Time("at", at))
}

// DeleteState deletes a state of the database, and returns how many rows that changed.
func DeleteState(ctx context.Context, c *sqlite3.Conn, name string) (int64, error) {
	return c.Exec(ctx, &deleteStandingSQL, sqlite3.Text("name", name))
}
