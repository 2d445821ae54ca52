package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// The schema of a store is found once, when the store is opened, and set for every connection from
// then on. Later changes of search_path, for the role or the database, do not move the store to
// other tables.

// schemaName is the parameter of the address that names the schema.
const schemaName = "schema"

// place says where in a database the tables are or will be.
type place struct {
	named  string   // schema= in the address
	byPath bool     // search_path in the address names a schema
	schema string   // the schema that was found; empty before, and if search_path names none that exists
	rest   []string // the following schemas, if the address sets search_path
	others []string // other schemas with Kagzi's tables that the role can see
	behind []string // those of them that are on the search_path
}

//go:embed sql/find_schemas.sql
var findSchemasSQL string

//go:embed sql/read_path.sql
var readPathSQL string

// find finds the schema: the one that the address names, or the first on the search_path that holds
// Kagzi's tables, or the one where new tables would go.
func (p *place) find(ctx context.Context, q querier) error {
	current, onPath, elsewhere, err := holders(ctx, q)
	if err != nil {
		return err
	}
	p.schema, p.rest = p.named, nil
	if p.schema == "" {
		p.schema = append(onPath, current)[0]
	}
	is := func(name string) bool { return name == p.schema }
	p.others = slices.DeleteFunc(slices.Concat(onPath, elsewhere), is)
	p.behind = slices.DeleteFunc(onPath, is)
	if p.named != "" || !p.byPath {
		return nil
	}
	var path []string
	if err := q.QueryRow(ctx, readPathSQL).Scan(&path); err != nil {
		return translate("look for the schema", err)
	}
	p.rest = slices.DeleteFunc(path, is)
	return nil
}

// findOthers looks again for other schemas with Kagzi's tables.
func (p *place) findOthers(ctx context.Context, q querier) error {
	_, onPath, elsewhere, err := holders(ctx, q)
	p.others = slices.DeleteFunc(append(onPath, elsewhere...), func(name string) bool { return name == p.schema })
	return err
}

// holders returns the schema where new tables would go, and the schemas that hold Kagzi's tables,
// on the search_path and elsewhere.
func holders(ctx context.Context, q querier) (current string, onPath, elsewhere []string, err error) {
	rows, err := q.Query(ctx, findSchemasSQL)
	if err != nil {
		return "", nil, nil, translate("look for the schema", err)
	}
	var name string
	var at int
	_, err = pgx.ForEachRow(rows, []any{&name, &at}, func() error {
		switch {
		case at < 0:
			current = name
		case at > 0:
			onPath = append(onPath, name)
		default:
			elsewhere = append(elsewhere, name)
		}
		return nil
	})
	return current, onPath, elsewhere, translate("look for the schema", err)
}

// settings returns the parameters that set the schema for a session or a transaction.
func (p *place) settings() []setting {
	if p.schema == "" {
		return nil
	}
	path := []string{quoted(p.schema)}
	for _, name := range p.rest {
		path = append(path, quoted(name))
	}
	return []setting{{"search_path", strings.Join(path, ", ")}}
}

// refuseSecond refuses to make tables in a schema that nobody named while another schema has them,
// because the server would start empty instead of with its data.
func (p *place) refuseSecond() error {
	if p.named != "" || p.byPath || len(p.others) == 0 {
		return nil
	}
	return &engine.Error{Kind: engine.KindPrecondition, Message: fmt.Sprintf(
		"the schema %s holds kagzi's tables, and search_path leads to the schema %s, which has none: "+
			"name the one to use in the database URL: ?schema=%s to go on with what is there, or ?schema=%s to start empty",
		strings.Join(quotedNames(p.others), ", "), quoted(p.schema), url.QueryEscape(p.others[0]),
		url.QueryEscape(p.schema))}
}

// ambiguity warns the operator of other tables on the same path; empty: none.
func (p *place) ambiguity() string {
	if p.named != "" || len(p.behind) == 0 {
		return ""
	}
	return fmt.Sprintf("the schema %s is used, and %s on the same search_path holds kagzi's tables, too: "+
		"name the one to use in the database URL, with ?schema=%s",
		quoted(p.schema), strings.Join(quotedNames(p.behind), ", "), url.QueryEscape(p.schema))
}

func quotedNames(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = quoted(name)
	}
	return list
}
