package sqlite

import (
	"context"
	_ "embed"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_steps.sql
var listStepsSQL string

var listStepsBackSQL = strings.ReplaceAll(
	listStepsSQL, "order by sequence asc, attempt asc", "order by sequence desc, attempt desc")

//go:embed sql/count_steps.sql
var countStepsSQL string

//go:embed sql/run_exists.sql
var runExistsSQL string

// ListSteps returns attempts with their payloads.
func (s *Store) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter,
	p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	after, before := p.After.OrZero(), p.Before.OrZero()
	return list(ctx, s, "ListSteps", p, listing[engine.Step]{
		forth: &listStepsSQL, back: &listStepsBackSQL, count: &countStepsSQL, read: readStep,
		check: func(r session) error { return r.exists(namespace, run) },
		filter: []arg{
			idArg("run_id", run), text("name", f.Name), text("statuses", encodeStatuses(f.Statuses)),
			flag("latest", f.Latest),
		},
		place: []arg{
			flag("after", p.After != nil), num("after_sequence", after.Number), num("after_attempt", after.Minor),
			flag("before", p.Before != nil), num("before_sequence", before.Number), num("before_attempt", before.Minor),
		},
	})
}

func (s session) exists(namespace string, run engine.ID) error {
	found, err := s.found(&runExistsSQL, func(*row) error {
		return nil
	}, text("namespace", namespace), idArg("run_id", run))
	if err == nil && !found {
		err = engine.RunNotFound(run)
	}
	return err
}

//go:embed sql/get_step.sql
var getStepSQL string

// GetStep returns one attempt.
func (s *Store) GetStep(ctx context.Context, namespace string, id engine.ID) (engine.Step, error) {
	return read(ctx, s, "GetStep", func(r session) (step engine.Step, err error) {
		found, err := r.found(&getStepSQL, func(r *row) (err error) {
			step, err = readStep(r)
			return err
		}, text("namespace", namespace), idArg("step_id", id))
		if err == nil && !found {
			err = engine.StepNotFound(engine.StepRef{ID: id})
		}
		return step, err
	})
}

// GetHistory continues a task's history where it ended.
func (s *Store) GetHistory(ctx context.Context, p engine.HistoryParams) ([]engine.Step, int64, error) {
	type page struct {
		steps []engine.Step
		next  int64
	}
	out, err := read(ctx, s, "GetHistory", func(r session) (out page, err error) {
		if err := r.exists(p.Namespace, p.RunID); err != nil {
			return out, err
		}
		out.steps, out.next, err = r.history(p.RunID, p.From, p.Bytes)
		return out, err
	})
	return out.steps, out.next, err
}

//go:embed sql/current_lease.sql
var currentLeaseSQL string

// CurrentLease returns a run's lease for clients that have no token.
func (s *Store) CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error) {
	return read(ctx, s, "CurrentLease", func(r session) (engine.Lease, error) {
		l := engine.Lease{Namespace: namespace, RunID: run}
		var status engine.RunStatus
		found, err := r.found(&currentLeaseSQL, func(r *row) error {
			status, l.Token = engine.RunStatus(r.num()), r.token()
			return nil
		}, text("namespace", namespace), idArg("run_id", run))
		switch {
		case err != nil:
			return engine.Lease{}, err
		case !found:
			return engine.Lease{}, engine.RunNotFound(run)
		case l.Token.IsZero():
			return engine.Lease{}, engine.LeaseLost(run, status)
		}
		return l, nil
	})
}

// HeldBy returns the leases of a worker.
func (s *Store) HeldBy(ctx context.Context, workerID string) ([]engine.Held, error) {
	return read(ctx, s, "HeldBy", func(r session) (held []engine.Held, err error) {
		err = r.query(&heldBySQL, func(r *row) error {
			h, _ := readHeld(r)
			held = append(held, h)
			return nil
		}, text("worker_id", workerID))
		return held, err
	})
}

//go:embed sql/list_signals.sql
var listSignalsSQL string

var listSignalsBackSQL = strings.Replace(listSignalsSQL, "order by sequence asc", "order by sequence desc", 1)

//go:embed sql/count_run_signals.sql
var countRunSignalsSQL string

// ListSignals returns signals by sequence.
func (s *Store) ListSignals(ctx context.Context, namespace string, run engine.ID, p engine.Page) ([]engine.Signal,
	engine.PageInfo, error) {
	return list(ctx, s, "ListSignals", p, listing[engine.Signal]{
		forth: &listSignalsSQL, back: &listSignalsBackSQL, count: &countRunSignalsSQL, read: readSignal,
		check:  func(r session) error { return r.exists(namespace, run) },
		filter: []arg{idArg("run_id", run)},
		place:  []arg{num("after", p.After.OrZero().Number), num("before", p.Before.OrZero().Number)},
	})
}

// GetSchedule finds a schedule by id or name.
func (s *Store) GetSchedule(ctx context.Context, namespace, ref string) (engine.Schedule, error) {
	return read(ctx, s, "GetSchedule", func(r session) (engine.Schedule, error) {
		schedule, err := r.schedule(namespace, ref)
		if err == nil && schedule == nil {
			err = engine.ScheduleNotFound(ref)
		}
		if err != nil {
			return engine.Schedule{}, err
		}
		return *schedule, nil
	})
}

//go:embed sql/list_schedules.sql
var listSchedulesSQL string

var listSchedulesBackSQL = strings.Replace(listSchedulesSQL, "order by schedule_id desc", "order by schedule_id asc", 1)

//go:embed sql/count_schedules.sql
var countSchedulesSQL string

// ListSchedules returns schedules, newest first.
func (s *Store) ListSchedules(ctx context.Context, f engine.ScheduleFilter, p engine.Page) ([]engine.Schedule,
	engine.PageInfo, error) {
	return list(ctx, s, "ListSchedules", p, listing[engine.Schedule]{
		forth: &listSchedulesSQL, back: &listSchedulesBackSQL, count: &countSchedulesSQL, read: readSchedule,
		filter: []arg{text("namespace", f.Namespace), text("task_queue", f.Queue)},
		place:  spanArgs(p.Span()),
	})
}

// GetNamespace returns disabled namespaces too.
func (s *Store) GetNamespace(ctx context.Context, name string) (engine.Namespace, error) {
	return read(ctx, s, "GetNamespace", func(r session) (engine.Namespace, error) {
		n, err := r.namespace(name)
		if err == nil && n == nil {
			err = engine.NamespaceNotFound(name)
		}
		if err != nil {
			return engine.Namespace{}, err
		}
		return *n, nil
	})
}

//go:embed sql/list_namespaces.sql
var listNamespacesSQL string

var listNamespacesBackSQL = strings.Replace(listNamespacesSQL, "order by namespace asc", "order by namespace desc", 1)

//go:embed sql/count_namespaces.sql
var countNamespacesSQL string

// ListNamespaces returns namespaces by name.
func (s *Store) ListNamespaces(ctx context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	return list(ctx, s, "ListNamespaces", p, listing[engine.Namespace]{
		forth: &listNamespacesSQL, back: &listNamespacesBackSQL, count: &countNamespacesSQL, read: readNamespace,
		place: []arg{text("after", p.After.OrZero().Name), text("before", p.Before.OrZero().Name)},
	})
}

//go:embed sql/list_audit_events.sql
var listAuditSQL string

//go:embed sql/count_audit.sql
var countAuditSQL string

// auditFrom returns the statements for events from a table or an index of it, under a condition
// that the filter implies.
func auditFrom(from, condition string) ways {
	forth := strings.Replace(listAuditSQL, "\norder by", condition+"\norder by", 1)
	forth = strings.Replace(forth, "from audit\n", "from "+from+"\n", 1)
	return ways{forth: forth, back: strings.Replace(forth, "order by event_id desc", "order by event_id asc", 1),
		count: countAuditSQL}
}

var (
	listAudit          = auditFrom("audit", "")
	listAuditOfSubject = auditFrom("audit indexed by audit_subject", "\n  and subject_id = @subject_id")
)

// ListAuditEvents returns events, newest first.
func (s *Store) ListAuditEvents(ctx context.Context, f engine.AuditFilter, p engine.Page) ([]engine.AuditEvent,
	engine.PageInfo, error) {
	w := &listAudit
	if f.SubjectID != "" {
		w = &listAuditOfSubject
	}
	return list(ctx, s, "ListAuditEvents", p, listing[engine.AuditEvent]{
		forth: &w.forth, back: &w.back, count: &w.count, read: readAudit,
		filter: []arg{text("namespace", f.Namespace), text("subject_id", f.SubjectID)}, place: spanArgs(p.Span()),
	})
}
