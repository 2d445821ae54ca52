package postgres

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

//go:embed sql/check_indexes.sql
var checkIndexesSQL string

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

// Check looks for what is wrong in the database: broken indexes, references to nothing, and rows that contradict each other.
// It reads everything, on one snapshot. Servers may be at work.
func Check(ctx context.Context, url string) (findings []engine.Finding, err error) {
	err = withConnection(ctx, url, func(conn *pgx.Conn) error {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) (err error) {
			findings, err = check(ctx, tx)
			return err
		})
	})
	return findings, err
}

func check(ctx context.Context, tx pgx.Tx) ([]engine.Finding, error) {
	findings, err := checkSchema(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		checkReferencesSQL, checkRunsSQL, checkLeasesSQL, checkOrphansSQL, checkStepsSQL, checkCountsSQL,
	} {
		rows, err := tx.Query(ctx, statement)
		if err != nil {
			return findings, translate("check the database", err)
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f engine.Finding, err error) {
			var id engine.ID
			err = row.Scan(&f.Subject, idOf(&id), &f.Text)
			f.Subject += " " + id.String()
			return f, err
		})
		if err != nil {
			return findings, translate("check the database", err)
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// checkSchema looks at what was applied, and at the indexes.
func checkSchema(ctx context.Context, tx pgx.Tx) (findings []engine.Finding, err error) {
	done, err := appliedTo(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(done) == 0 {
		return nil, errors.New("the database holds no schema: `kagzi db migrate` makes it")
	}
	list, err := migrations.List("postgres")
	if err != nil {
		return nil, err
	}
	for _, a := range done {
		if a.number <= len(list) && a.checksum != checksum(list[a.number-1]) {
			findings = append(findings, engine.Finding{Subject: "migration " + a.name, Text: "was applied with another text than this program has"})
		}
	}
	rows, err := tx.Query(ctx, checkIndexesSQL)
	if err != nil {
		return nil, translate("check the indexes", err)
	}
	broken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range broken {
		findings = append(findings, engine.Finding{Subject: "index " + name, Text: "is not valid: reindex it"})
	}
	return findings, translate("check the indexes", err)
}
