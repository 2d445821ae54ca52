package dbfile

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"fmt"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// ApplicationID marks a file as ours: "Kagz".
const ApplicationID = 0x4b61677a

//go:embed sql/schema_state.sql
var schemaStateSQL string

// SchemaNumber returns the number of the newest migration that was applied; SQLite keeps it as
// user_version.
func SchemaNumber(ctx context.Context, c *sqlite3.Conn) (int, error) {
	var application, number, tables int64
	err := c.Query(ctx, &schemaStateSQL, func(r *sqlite3.Row) error {
		application, number, tables = r.Int(), r.Int(), r.Int()
		return nil
	})
	if err != nil {
		return 0, err
	}
	if application != ApplicationID && tables > 0 {
		return 0, errors.New("this SQLite database belongs to another program")
	}
	return int(number), nil
}

// NewestSchema returns the number of this program's newest migration.
func NewestSchema() (int, error) {
	list, err := migrations.List("sqlite")
	return len(list), err
}

// NewerSchemaError is the error for a database that a newer program has migrated.
func NewerSchemaError(number, newest int) error {
	return &engine.Error{Kind: engine.KindPrecondition,
		Message: fmt.Sprintf(
			"the database has schema %d and this program knows schemas up to %d: a newer kagzi has used it; run that one", number, newest)}
}

// RequireNewestSchema refuses a schema that is not this program's.
func RequireNewestSchema(ctx context.Context, c *sqlite3.Conn) error {
	newest, err := NewestSchema()
	if err != nil {
		return err
	}
	number, err := SchemaNumber(ctx, c)
	switch {
	case err != nil:
		return err
	case number > newest:
		return NewerSchemaError(number, newest)
	case number < newest:
		return fmt.Errorf("the database has schema %d and this program needs schema %d: run `kagzi db migrate`",
			number, newest)
	}
	return nil
}
