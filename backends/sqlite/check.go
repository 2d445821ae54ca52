package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"encoding/json"
	"fmt"
	"os"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/check_integrity.sql
var checkIntegritySQL string

//go:embed sql/check_page.sql
var checkPageSQL string

//go:embed sql/check_references.sql
var checkReferencesSQL string

//go:embed sql/check_runs.sql
var checkRunsSQL string

//go:embed sql/check_leases.sql
var checkLeasesSQL string

//go:embed sql/check_orphans.sql
var checkOrphansSQL string

//go:embed sql/check_steps.sql
var checkStepsSQL string

//go:embed sql/check_counts.sql
var checkCountsSQL string

//go:embed sql/check_schedules.sql
var checkSchedulesSQL string

//go:embed sql/check_keys.sql
var checkKeysSQL string

//go:embed sql/check_texts.sql
var checkTextsSQL string

// Check looks for what is wrong in the database: damage, references to nothing, and rows that contradict each other. It
// reads everything, on one snapshot; of an older schema what is damaged alone, and without damage that is an error. A server may be at work.
func Check(ctx context.Context, path string) ([]engine.Finding, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	path, err := dbfile.Resolve(path)
	if err != nil {
		return nil, err
	}
	c, number, err := openToCheck(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.Close()
	if number == 0 {
		return nil, fmt.Errorf("%s holds no schema: `kagzi db migrate` makes it", path)
	}
	return check(ctx, c.Conn)
}

// openToCheck connects to the file as a server's readers do, or on a disk that takes no writes as who only looks.
func openToCheck(ctx context.Context, path string) (c *dbfile.Reader, number int, err error) {
	for _, open := range []func() (*dbfile.Reader, error){
		func() (*dbfile.Reader, error) { return dbfile.OpenReader(path) },
		func() (*dbfile.Reader, error) { return dbfile.OpenReadOnly(path, nil) },
	} {
		if c, err = open(); err == nil {
			if number, err = dbfile.SchemaNumber(ctx, c.Conn); err == nil {
				return c, number, nil
			}
			c.Close()
		}
		if kind := sqlite3.Code(err); kind != sqlite3.CodeCantOpen && kind != sqlite3.CodeReadOnly {
			break
		}
	}
	return nil, 0, err
}

func check(ctx context.Context, c *sqlite3.Conn) ([]engine.Finding, error) {
	if err := c.BeginRead(ctx); err != nil {
		return nil, err
	}
	defer c.Rollback(ctx)
	rows := session{conn: c, ctx: ctx}
	findings, err := brokenPages(rows)
	if err != nil || len(findings) > 0 { // what else there is to find stands on those pages
		return findings, err
	}
	err = rows.query(&checkIntegritySQL, func(r *row) error {
		if line := r.text(); line != "ok" {
			findings = append(findings, engine.Finding{Subject: "file", Text: line})
		}
		return nil
	})
	if err == nil {
		err = rows.query(&checkReferencesSQL, func(r *row) error {
			findings = append(findings, engine.Finding{Subject: "table " + r.text(), Text: "a row refers to a " + r.text() + " row that is not there"})
			return nil
		})
	}
	if old := refuseOldRows(ctx, c); err == nil && old != nil {
		if len(findings) > 0 {
			return findings, nil
		}
		return nil, old
	}
	for _, statement := range []*string{&checkRunsSQL, &checkLeasesSQL, &checkOrphansSQL, &checkStepsSQL, &checkCountsSQL, &checkSchedulesSQL, &checkKeysSQL} {
		if err != nil {
			return findings, err
		}
		err = rows.query(statement, func(r *row) error {
			findings = append(findings, engine.Finding{Subject: r.text() + " " + r.id().String(), Text: r.text()})
			return nil
		})
	}
	if err != nil {
		return findings, err
	}
	err = rows.query(&checkTextsSQL, func(r *row) error {
		kind, id, name, what, value := r.text(), r.id(), r.text(), r.text(), r.text()
		if id != (engine.ID{}) {
			name = id.String()
		}
		if !json.Valid([]byte(value)) {
			findings = append(findings, engine.Finding{Subject: kind + " " + name, Text: "its " + what + " cannot be read: that is no JSON"})
		}
		return nil
	})
	return findings, err
}

// refuseOldRows is an error about rows of an older schema, whose contradictions this program does not know.
func refuseOldRows(ctx context.Context, c *sqlite3.Conn) error {
	number, err := dbfile.SchemaNumber(ctx, c)
	if err != nil {
		return err
	}
	newest, err := dbfile.NewestSchema()
	if err == nil && number < newest {
		err = fmt.Errorf("the file is whole; what is in it has schema %d, and this program checks schema %d: run `kagzi db migrate`, and check it then", number, newest)
	}
	return err
}

// maxBrokenPages is how many of them are named.
const maxBrokenPages = 100

// brokenPages reads every page, those that nothing is on included.
func brokenPages(rows session) (findings []engine.Finding, err error) {
	var pages int64
	counting := "pragma page_count"
	err = rows.query(&counting, func(r *row) error {
		pages = r.num()
		return nil
	})
	for number := int64(1); err == nil && number <= pages && len(findings) < maxBrokenPages; number++ {
		err = rows.query(&checkPageSQL, func(*row) error { return nil }, num("page", number))
		if sqlite3.Code(err) == sqlite3.CodeCorrupt {
			findings = append(findings, engine.Finding{Subject: fmt.Sprintf("page %d", number),
				Text: "it is not what was written there: it was damaged, or another program has written to the file"})
			err = nil
		}
	}
	return findings, err
}
