package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

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

//go:embed sql/check_schedules.sql
var checkSchedulesSQL string

//go:embed sql/check_keys.sql
var checkKeysSQL string

//go:embed sql/check_hooks.sql
var checkHooksSQL string

//go:embed sql/check_texts.sql
var checkTextsSQL string

// Check reports broken indexes, references to missing rows, and rows that contradict each other. It
// reads everything, on one snapshot. Servers may be running.
func Check(ctx context.Context, url string) (findings []engine.Finding, err error) {
	err = withConnection(ctx, url, snapshot, func(_ *address, tx pgx.Tx) (err error) {
		findings, err = check(ctx, tx)
		return err
	})
	return findings, err
}

// snapshot is a transaction that reads everything as of one moment.
var snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// checkOn is Check on a session that uses the schema.
func checkOn(ctx context.Context, conn *pgx.Conn) (findings []engine.Finding, err error) {
	err = pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) (err error) {
		findings, err = check(ctx, tx)
		return err
	})
	return findings, err
}

func check(ctx context.Context, tx pgx.Tx) ([]engine.Finding, error) {
	findings, err := checkSchema(ctx, tx)
	if err != nil {
		return nil, err
	}
	if old := refuseOldRows(ctx, tx); old != nil {
		if len(findings) > 0 {
			return findings, nil
		}
		return nil, old
	}
	for _, statement := range []string{
		checkReferencesSQL, checkRunsSQL, checkLeasesSQL, checkOrphansSQL, checkStepsSQL, checkCountsSQL,
		checkSchedulesSQL, checkKeysSQL, checkHooksSQL,
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
	return checkTexts(ctx, tx, findings)
}

// refuseOldRows returns an error for rows of an older schema, which this program cannot check.
func refuseOldRows(ctx context.Context, tx pgx.Tx) error {
	number, err := schemaNumber(ctx, tx)
	if err != nil {
		return err
	}
	newest, err := newestMigration()
	if err == nil && number < newest {
		err = fmt.Errorf(
			"the database has schema %d and this program checks schema %d: run `kagzi db migrate`, then check again",
			number, newest)
	}
	return err
}

// checkTexts reports texts that are not JSON.
func checkTexts(ctx context.Context, tx pgx.Tx, findings []engine.Finding) ([]engine.Finding, error) {
	rows, err := tx.Query(ctx, checkTextsSQL)
	if err != nil {
		return findings, translate("check the database", err)
	}
	var kind, name, what, value string
	var id engine.ID
	_, err = pgx.ForEachRow(rows, []any{&kind, idOf(&id), &name, &what, &value}, func() error {
		if id != (engine.ID{}) {
			name = id.String()
		}
		if !json.Valid([]byte(value)) {
			findings = append(findings, engine.Finding{
				Subject: kind + " " + name, Text: "its " + what + " cannot be read: it is not JSON"})
		}
		return nil
	})
	return findings, translate("check the database", err)
}

// checkSchema checks the applied migrations and the indexes.
func checkSchema(ctx context.Context, tx pgx.Tx) (findings []engine.Finding, err error) {
	done, err := appliedTo(ctx, tx)
	if err != nil {
		return nil, err
	}
	if state, err := stateOf(ctx, tx); err != nil {
		return nil, err
	} else if state.foreign {
		return nil,
			errors.New("the table schema_migrations belongs to another program, and the schema has no Kagzi tables: " +
				"name the schema of kagzi with ?schema= in the database URL")
	}
	if len(done) == 0 {
		return nil, errors.New("the database has no schema: `kagzi db migrate` makes it")
	}
	list, err := migrations.List("postgres")
	if err != nil {
		return nil, err
	}
	for _, a := range done {
		if a.number <= len(list) && a.checksum != checksum(list[a.number-1]) {
			findings = append(findings, engine.Finding{
				Subject: "migration " + a.name, Text: "was applied with another text than this program has"})
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
