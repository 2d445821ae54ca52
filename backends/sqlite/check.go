package sqlite

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"

	sqlite3 "modernc.org/sqlite/lib"

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
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	c, number, err := openToCheck(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.close()
	if number == 0 {
		return nil, fmt.Errorf("%s holds no schema: `kagzi db migrate` makes it", path)
	}
	return check(ctx, c)
}

// openToCheck connects to the file as a server's readers do, or on a disk that takes no writes as who only looks.
func openToCheck(ctx context.Context, path string) (c *conn, number int, err error) {
	for _, open := range []func() (*conn, error){
		func() (*conn, error) { return connectReader(path) },
		func() (*conn, error) { return look(path, nil) },
	} {
		if c, err = open(); err == nil {
			if number, err = schemaNumber(ctx, c); err == nil {
				return c, number, nil
			}
			c.close()
		}
		if kind := code(err); kind != sqlite3.SQLITE_CANTOPEN && kind != sqlite3.SQLITE_READONLY {
			break
		}
	}
	return nil, 0, err
}

func check(ctx context.Context, c *conn) ([]engine.Finding, error) {
	if _, err := c.exec(ctx, &beginReadSQL); err != nil {
		return nil, err
	}
	defer c.exec(ctx, &rollbackSQL)
	findings, err := c.brokenPages(ctx)
	if err != nil || len(findings) > 0 { // what else there is to find stands on those pages
		return findings, err
	}
	err = c.query(ctx, &checkIntegritySQL, func(r *row) error {
		if line := r.text(); line != "ok" {
			findings = append(findings, engine.Finding{Subject: "file", Text: line})
		}
		return nil
	})
	if err == nil {
		err = c.query(ctx, &checkReferencesSQL, func(r *row) error {
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
		err = c.query(ctx, statement, func(r *row) error {
			findings = append(findings, engine.Finding{Subject: r.text() + " " + r.id().String(), Text: r.text()})
			return nil
		})
	}
	if err != nil {
		return findings, err
	}
	err = c.query(ctx, &checkTextsSQL, func(r *row) error {
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
func refuseOldRows(ctx context.Context, c *conn) error {
	number, err := schemaNumber(ctx, c)
	if err != nil {
		return err
	}
	newest, err := newestSchema()
	if err == nil && number < newest {
		err = fmt.Errorf("the file is whole; what is in it has schema %d, and this program checks schema %d: run `kagzi db migrate`, and check it then", number, newest)
	}
	return err
}

// maxBrokenPages is how many of them are named.
const maxBrokenPages = 100

// brokenPages reads every page, those that nothing is on included.
func (c *conn) brokenPages(ctx context.Context) (findings []engine.Finding, err error) {
	var pages int64
	counting := "pragma page_count"
	err = c.query(ctx, &counting, func(r *row) error {
		pages = r.num()
		return nil
	})
	for number := int64(1); err == nil && number <= pages && len(findings) < maxBrokenPages; number++ {
		err = c.query(ctx, &checkPageSQL, func(*row) error { return nil }, num("page", number))
		if code(err) == sqlite3.SQLITE_CORRUPT {
			findings = append(findings, engine.Finding{Subject: fmt.Sprintf("page %d", number),
				Text: "it is not what was written there: it was damaged, or another program has written to the file"})
			err = nil
		}
	}
	return findings, err
}
