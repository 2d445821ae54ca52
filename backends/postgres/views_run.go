package postgres

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// maxLoads limits how many runs are read at once, because runs may have payloads of megabytes.
const maxLoads = 64

// loads groups concurrent calls of GetRun. When many runs end in one commit, all callers that wait
// for them ask at once, and one statement for all costs little more than one for a single run. No
// caller waits for company: if nobody is reading, it reads at once.
type loads struct {
	mu      sync.Mutex
	waiting []*load
	reading bool
}

// load is one call of GetRun.
type load struct {
	namespace string
	id        engine.ID
	run       engine.Run
	err       error
	done      chan struct{} // closed when it was read
}

// take returns the next calls to read for. If there are none, the reading ends.
func (w *loads) take() []*load {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.waiting), maxLoads)
	group := w.waiting[:n:n]
	if w.waiting = w.waiting[n:]; len(w.waiting) == 0 {
		w.waiting = nil
	}
	w.reading = n > 0
	return group
}

// GetRun returns the run with its payloads.
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	l := &load{namespace: namespace, id: id, done: make(chan struct{})}
	err := s.view(ctx, "read a run", func(ctx context.Context) error {
		s.load(l)
		select {
		case <-l.done:
			return l.err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return engine.Run{}, err
	}
	return l.run, nil
}

// load reads the run: by the goroutine that is reading already, or by a new one, which goes on
// while calls wait.
func (s *Store) load(l *load) {
	s.loads.mu.Lock()
	defer s.loads.mu.Unlock()
	s.loads.waiting = append(s.loads.waiting, l)
	if s.loads.reading {
		return
	}
	s.loads.reading = true
	s.background.Go(func() {
		for group := s.loads.take(); len(group) > 0; group = s.loads.take() {
			s.loadGroup(group)
		}
	})
}

//go:embed sql/get_whole_runs.sql
var getWholeRunsText string

var getWholeRunsSQL = hot(runColumns.Expand(getWholeRunsText))

// loadGroup reads a group in one round trip, with a fixed plan.
func (s *Store) loadGroup(group []*load) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	wanted := make(map[engine.ID][]*load, len(group))
	ids := make([][16]byte, 0, len(group))
	for _, l := range group {
		if wanted[l.id] == nil {
			ids = append(ids, l.id)
		}
		wanted[l.id] = append(wanted[l.id], l)
		l.err = engine.RunNotFound(l.id)
	}
	rows, err := s.pool.Query(ctx, getWholeRunsSQL.text, getWholeRunsSQL.bind(args{"run_ids": ids})...)
	if err == nil {
		_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
			var id engine.ID
			if err := row.Scan(append([]any{idOf(&id)},
				make([]any, len(row.FieldDescriptions())-1)...)...); err != nil {
				return none, err
			}
			for _, l := range wanted[id] { // each caller owns what it gets, so each gets its own copy
				places := slices.Concat(runPlaces(&l.run), payloadPlaces(&l.run.Input), payloadPlaces(&l.run.Output))
				if err := row.Scan(places...); err != nil {
					return none, err
				}
				if l.run.Namespace == l.namespace {
					l.err = nil
				}
			}
			return none, nil
		})
	}
	for _, l := range group {
		if err != nil {
			l.err = err
		}
		close(l.done)
	}
}

//go:embed sql/get_run.sql
var getRunText string

var getRunSQL = runColumns.Expand(getRunText)

//go:embed sql/explain_inputs.sql
var getCircumstancesSQL string

//go:embed sql/list_holders.sql
var listHoldersSQL string

// ExplainInputs reads everything on one snapshot.
func (s *Store) ExplainInputs(ctx context.Context, namespace string, run engine.ID) (c engine.Circumstances,
	err error) {
	one := args{"run_id": [16]byte(run)}
	missing := true
	batch := &pgx.Batch{}
	batch.Queue(getRunSQL, merge(one, args{"namespace": namespace})).Query(func(rows pgx.Rows) error {
		var input, output engine.Payload
		places := slices.Concat(runPlaces(&c.Run), payloadPlaces(&input), payloadPlaces(&output))
		_, err := pgx.ForEachRow(rows, places, func() error {
			missing = false
			return nil
		})
		return err
	})
	batch.Queue(listWaitingSQL, one).Query(func(rows pgx.Rows) (err error) {
		c.Steps, err = pgx.CollectRows(rows, scanStep)
		return err
	})
	batch.Queue(listWorkingSQL, args{"namespace": namespace}).Query(func(rows pgx.Rows) (err error) {
		c.Workers, err = pgx.CollectRows(rows, scanWorker)
		return err
	})
	batch.Queue(getCircumstancesSQL, one).Query(func(rows pgx.Rows) error {
		places := []any{&c.NamespaceEnabled, &c.RunningInQueue, &c.RunningOfType, &c.PlacesOfKey, &c.AheadInLine}
		_, err := pgx.ForEachRow(rows, places, func() error { return nil })
		return err
	})
	batch.Queue(listHoldersSQL, merge(one, args{"limit": engine.NamedHolders})).Query(func(rows pgx.Rows) error {
		var holder engine.ID
		_, err := pgx.ForEachRow(rows, []any{idOf(&holder)}, func() error {
			c.HoldersOfKey = append(c.HoldersOfKey, holder)
			return nil
		})
		return err
	})
	err = s.view(ctx, "explain a run", func(ctx context.Context) error {
		return s.views.within(ctx, snapshot, func(t pgx.Tx) error { return t.SendBatch(ctx, batch).Close() })
	})
	if err == nil && missing {
		err = engine.RunNotFound(run)
	}
	if err != nil {
		return engine.Circumstances{}, err
	}
	c.Workers = slices.DeleteFunc(c.Workers, func(w engine.Worker) bool {
		return !slices.Contains(w.Queues, c.Run.Queue)
	})
	return c, nil
}

func scanStep(row pgx.CollectableRow) (step engine.Step, err error) {
	err = row.Scan(stepPlaces(&step)...)
	return step, err
}

//go:embed sql/list_steps.sql
var listStepsSQL string

var listStepsBackSQL = strings.ReplaceAll(
	listStepsSQL, "order by sequence asc, attempt asc", "order by sequence desc, attempt desc")

//go:embed sql/count_steps.sql
var countStepsSQL string

//go:embed sql/run_exists.sql
var runExistsSQL string

// ListSteps returns attempts with their payloads.
func (s *Store) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter, p engine.Page) (
	steps []engine.Step, info engine.PageInfo, err error,
) {
	after, before, statement := p.After.OrZero(), p.Before.OrZero(), listStepsSQL
	if p.Before != nil {
		statement = listStepsBackSQL
	}
	filter := args{"run_id": [16]byte(run), "name": f.Name, "statuses": statusArray(f.Statuses), "latest": f.Latest}
	a := merge(filter, args{"after": p.After != nil, "after_sequence": after.Number, "after_attempt": after.Minor,
		"before": p.Before != nil, "before_sequence": before.Number, "before_attempt": before.Minor,
		"limit": p.Limit + 1})
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

// GetStep returns one attempt.
func (s *Store) GetStep(ctx context.Context, namespace string, id engine.ID) (step engine.Step, err error) {
	err = s.view(ctx, "read a step", func(ctx context.Context) error {
		err := s.views.QueryRow(ctx, getStepSQL, args{"namespace": namespace, "step_id": [16]byte(id)}).Scan(
			stepPlaces(&step)...)
		return notFound(err, engine.StepNotFound(engine.StepRef{ID: id}))
	})
	if err != nil {
		return engine.Step{}, err
	}
	return step, nil
}

// GetHistory continues a task's history where it ended.
func (s *Store) GetHistory(ctx context.Context, p engine.HistoryParams) (steps []engine.Step, next int64, err error) {
	err = s.view(ctx, "read a history", func(ctx context.Context) error {
		if err := s.exists(ctx, p.Namespace, p.RunID); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		queueHistory(batch, p.RunID, p.From, p.Bytes, &steps, &next)
		return s.pool.send(ctx, batch)
	})
	if err != nil {
		return nil, 0, err
	}
	return steps, next, nil
}

//go:embed sql/current_lease.sql
var currentLeaseSQL string

// CurrentLease returns a run's lease for clients that have no token.
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

// HeldBy returns the leases of a worker.
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

// ListSignals returns signals by sequence.
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
