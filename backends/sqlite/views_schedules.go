package sqlite

import (
	"context"
	_ "embed"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// GetSchedule goes by id or name.
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

// ListSchedules is newest first.
func (s *Store) ListSchedules(ctx context.Context, f engine.ScheduleFilter, p engine.Page) ([]engine.Schedule, engine.PageInfo, error) {
	return list(ctx, s, "ListSchedules", p, listing[engine.Schedule]{
		forth: &listSchedulesSQL, back: &listSchedulesBackSQL, count: &countSchedulesSQL, read: readSchedule,
		filter: []arg{text("namespace", f.Namespace), text("task_queue", f.Queue)},
		place:  spanArgs(p.Span()),
	})
}

// GetNamespace also knows those that are disabled.
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

// ListNamespaces is by name.
func (s *Store) ListNamespaces(ctx context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	return list(ctx, s, "ListNamespaces", p, listing[engine.Namespace]{
		forth: &listNamespacesSQL, back: &listNamespacesBackSQL, count: &countNamespacesSQL, read: readNamespace,
		place: []arg{text("after", p.After.OrZero().Name), text("before", p.Before.OrZero().Name)},
	})
}

//go:embed sql/list_audit.sql
var listAuditSQL string

//go:embed sql/count_audit.sql
var countAuditSQL string

// auditFrom is the list of events from a table, or by an index of it, under a condition that holds for all that the filter lets through.
func auditFrom(from, condition string) ways {
	forth := strings.Replace(listAuditSQL, "\norder by", condition+"\norder by", 1)
	forth = strings.Replace(forth, "from audit\n", "from "+from+"\n", 1)
	return ways{forth: forth, back: strings.Replace(forth, "order by event_id desc", "order by event_id asc", 1), count: countAuditSQL}
}

var (
	listAudit          = auditFrom("audit", "")
	listAuditOfSubject = auditFrom("audit indexed by audit_subject", "\n  and subject_id = @subject_id")
)

// ListAudit is newest first.
func (s *Store) ListAuditEvents(ctx context.Context, f engine.AuditFilter, p engine.Page) ([]engine.AuditEvent, engine.PageInfo, error) {
	w := &listAudit
	if f.SubjectID != "" {
		w = &listAuditOfSubject
	}
	return list(ctx, s, "ListAuditEvents", p, listing[engine.AuditEvent]{
		forth: &w.forth, back: &w.back, count: &w.count, read: readAudit,
		filter: []arg{text("namespace", f.Namespace), text("subject_id", f.SubjectID)}, place: spanArgs(p.Span()),
	})
}
