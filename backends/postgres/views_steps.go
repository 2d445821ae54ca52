package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

func scanStep(row pgx.CollectableRow) (step engine.Step, err error) {
	err = row.Scan(stepPlaces(&step)...)
	return step, err
}

//go:embed sql/list_steps.sql
var listStepsSQL string

var listStepsBackSQL = strings.ReplaceAll(listStepsSQL, "order by sequence asc, attempt asc", "order by sequence desc, attempt desc")

//go:embed sql/count_steps.sql
var countStepsSQL string

//go:embed sql/run_exists.sql
var runExistsSQL string

// ListSteps is every attempt with its payloads.
func (s *Store) ListSteps(ctx context.Context, namespace string, run engine.ID, name string, p engine.Page) (
	steps []engine.Step, info engine.PageInfo, err error,
) {
	after, before, statement := p.After.OrZero(), p.Before.OrZero(), listStepsSQL
	if p.Before != nil {
		statement = listStepsBackSQL
	}
	filter := args{"run_id": [16]byte(run), "name": name}
	a := merge(filter, args{"after": p.After != nil, "after_sequence": after.Number, "after_attempt": after.Minor,
		"before": p.Before != nil, "before_sequence": before.Number, "before_attempt": before.Minor, "limit": p.Limit + 1})
	err = s.view(ctx, "list steps", func(ctx context.Context) (err error) {
		if err := s.exists(ctx, namespace, run); err != nil {
			return err
		}
		steps, info, err = list(ctx, s, &p, statement, a, scanStep, countStepsSQL, filter)
		return err
	})
	return steps, info, err
}

func (s *Store) exists(ctx context.Context, namespace string, run engine.ID) error {
	var one int
	err := s.views.QueryRow(ctx, runExistsSQL, args{"namespace": namespace, "run_id": [16]byte(run)}).Scan(&one)
	return notFound(err, engine.RunNotFound(run))
}

//go:embed sql/get_step.sql
var getStepSQL string

// GetStep is one attempt.
func (s *Store) GetStep(ctx context.Context, namespace string, id engine.ID) (step engine.Step, err error) {
	err = s.view(ctx, "read a step", func(ctx context.Context) error {
		err := s.views.QueryRow(ctx, getStepSQL, args{"namespace": namespace, "step_id": [16]byte(id)}).Scan(stepPlaces(&step)...)
		return notFound(err, engine.StepNotFound(engine.StepRef{ID: id}))
	})
	if err != nil {
		return engine.Step{}, err
	}
	return step, nil
}

// History reads on where a task's history ended.
func (s *Store) GetHistory(ctx context.Context, p engine.HistoryParams) (steps []engine.Step, next int64, err error) {
	err = s.view(ctx, "read a history", func(ctx context.Context) error {
		if err := s.exists(ctx, p.Namespace, p.RunID); err != nil {
			return err
		}
		batch := s.newBatch()
		queueHistory(batch, p.RunID, p.From, p.Bytes, &steps, &next)
		return s.pool.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return nil, 0, err
	}
	return steps, next, nil
}

//go:embed sql/current_lease.sql
var currentLeaseSQL string

// CurrentLease is for clients that know no token.
func (s *Store) CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error) {
	l := engine.Lease{Namespace: namespace, RunID: run}
	err := s.view(ctx, "read a lease", func(ctx context.Context) error {
		var status engine.RunStatus
		err := s.views.QueryRow(ctx, currentLeaseSQL, args{"namespace": namespace, "run_id": [16]byte(run)}).
			Scan(numberOf(&status), tokenOf(&l.Token))
		if err == nil && l.Token.IsZero() {
			return engine.LeaseLost(run, status)
		}
		return notFound(err, engine.RunNotFound(run))
	})
	if err != nil {
		return engine.Lease{}, err
	}
	return l, nil
}

// HeldBy is what a worker holds.
func (s *Store) HeldBy(ctx context.Context, workerID string) (held []engine.Held, err error) {
	err = s.view(ctx, "list a worker's leases", func(ctx context.Context) error {
		rows, err := s.views.Query(ctx, heldBySQL, args{"worker_ids": []string{workerID}})
		if err != nil {
			return err
		}
		held, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (engine.Held, error) {
			l, err := scanHeld(row)
			return l.Held, err
		})
		return err
	})
	return held, err
}

//go:embed sql/list_signals.sql
var listSignalsSQL string

var listSignalsBackSQL = strings.Replace(listSignalsSQL, "order by sequence asc", "order by sequence desc", 1)

//go:embed sql/count_run_signals.sql
var countRunSignalsSQL string

// ListSignals is by sequence.
func (s *Store) ListSignals(ctx context.Context, namespace string, run engine.ID, p engine.Page) (
	signals []engine.Signal, info engine.PageInfo, err error,
) {
	statement := listSignalsSQL
	if p.Before != nil {
		statement = listSignalsBackSQL
	}
	filter := args{"run_id": [16]byte(run)}
	a := merge(filter, args{"after": p.After.OrZero().Number, "before": p.Before.OrZero().Number, "limit": p.Limit + 1})
	err = s.view(ctx, "list signals", func(ctx context.Context) (err error) {
		if err := s.exists(ctx, namespace, run); err != nil {
			return err
		}
		signals, info, err = list(ctx, s, &p, statement, a, scanSignal, countRunSignalsSQL, filter)
		return err
	})
	return signals, info, err
}
