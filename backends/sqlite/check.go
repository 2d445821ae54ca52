package sqlite

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/check_integrity.sql
var checkIntegritySQL string

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

// Check looks for what is wrong in the database: damage, references to nothing, and rows that contradict each other. It
// reads everything, on one snapshot. A server may be at work.
func Check(ctx context.Context, path string) ([]engine.Finding, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	c, err := connectReader(path)
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.close()
	number, err := schemaNumber(ctx, c)
	if err != nil {
		return nil, err
	}
	if number == 0 {
		return nil, fmt.Errorf("%s holds no schema: `kagzi db migrate` makes it", path)
	}
	return check(ctx, c)
}

func check(ctx context.Context, c *conn) ([]engine.Finding, error) {
	if _, err := c.exec(ctx, &beginReadSQL); err != nil {
		return nil, err
	}
	defer c.exec(ctx, &rollbackSQL)
	var findings []engine.Finding
	err := c.query(ctx, &checkIntegritySQL, func(r *row) error {
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
	for _, statement := range []*string{&checkRunsSQL, &checkLeasesSQL, &checkOrphansSQL, &checkStepsSQL, &checkCountsSQL} {
		if err != nil {
			return findings, err
		}
		err = c.query(ctx, statement, func(r *row) error {
			findings = append(findings, engine.Finding{Subject: r.text() + " " + r.id().String(), Text: r.text()})
			return nil
		})
	}
	return findings, err
}
