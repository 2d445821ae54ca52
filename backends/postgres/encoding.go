package postgres

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed sql/read_encoding.sql
var readEncodingSQL string

// encoding returns the database's name and encoding.
func encoding(ctx context.Context, q querier) (database, name string, err error) {
	err = q.QueryRow(ctx, readEncodingSQL).Scan(&database, &name)
	return database, name, translate("read the database's encoding", err)
}

const encodingUTF8 = "UTF8"

// requireEncoding refuses to make tables in a database that cannot store every text.
func requireEncoding(ctx context.Context, q querier) error {
	database, name, err := encoding(ctx, q)
	if err != nil || name == encodingUTF8 {
		return err
	}
	return fmt.Errorf(
		"the database %s has the encoding %s, which cannot store every text; create one with UTF8, for example with: "+
			"createdb --encoding UTF8 --template template0 %s_utf8", database, name, database)
}

// encodingWarning warns the operator of a database that cannot store every text; empty if it can.
func encodingWarning(ctx context.Context, q querier) (string, error) {
	database, name, err := encoding(ctx, q)
	if err != nil || name == encodingUTF8 {
		return "", err
	}
	return fmt.Sprintf("the database %s has the encoding %s: a text with a character that it cannot hold is refused; "+
		"move to a database with UTF8: createdb --encoding UTF8 --template template0 %s_utf8, and kagzi db copy",
		database, name, database), nil
}
