package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_schedule.sql
var getScheduleSQL string

//go:embed sql/get_schedule_by_name.sql
var getScheduleByNameSQL string

// GetSchedule finds a schedule by id or name.
func (s *Store) GetSchedule(ctx context.Context, namespace, ref string) (schedule engine.Schedule, err error) {
	err = s.view(ctx, "read a schedule", func(ctx context.Context) error {
		err := pgx.ErrNoRows
		if id, bad := engine.ParseID(ref); bad == nil {
			err = s.views.QueryRow(ctx, getScheduleSQL, args{"namespace": namespace, "schedule_id": [16]byte(id)}).Scan(
				wholeSchedule(&schedule)...)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			err = s.views.QueryRow(ctx, getScheduleByNameSQL, args{"namespace": namespace, "name": ref}).Scan(
				wholeSchedule(&schedule)...)
		}
		return notFound(err, engine.ScheduleNotFound(ref))
	})
	if err != nil {
		return engine.Schedule{}, err
	}
	return schedule, nil
}

func scanSchedule(row pgx.CollectableRow) (s engine.Schedule, err error) {
	err = row.Scan(schedulePlaces(&s)...)
	return s, err
}

//go:embed sql/list_schedules.sql
var listSchedulesSQL string

var listSchedulesBackSQL = strings.Replace(listSchedulesSQL, "order by schedule_id desc", "order by schedule_id asc", 1)

//go:embed sql/count_schedules.sql
var countSchedulesSQL string

// ListSchedules returns schedules, newest first.
func (s *Store) ListSchedules(ctx context.Context, f engine.ScheduleFilter, p engine.Page) (
	schedules []engine.Schedule, info engine.PageInfo, err error,
) {
	statement := listSchedulesSQL
	if p.Before != nil {
		statement = listSchedulesBackSQL
	}
	filter := args{"namespace": f.Namespace, "task_queue": f.Queue}
	a := merge(filter, idPlace(&p))
	err = s.view(ctx, "list schedules", func(ctx context.Context) (err error) {
		schedules, info, err = list(ctx, s, &p, statement, a, scanSchedule, countSchedulesSQL, filter)
		return err
	})
	return schedules, info, err
}

// idPlace returns the arguments of a page of a list that is ordered by id.
func idPlace(p *engine.Page) args {
	above, below := p.Span()
	return args{"above": [16]byte(above), "below": [16]byte(below), "limit": p.Limit + 1}
}

// GetNamespace returns disabled namespaces too.
func (s *Store) GetNamespace(ctx context.Context, name string) (n engine.Namespace, err error) {
	err = s.view(ctx, "read a namespace", func(ctx context.Context) error {
		err := s.views.QueryRow(ctx, getNamespaceSQL, args{"namespace": name}).Scan(namespacePlaces(&n)...)
		return notFound(err, engine.NamespaceNotFound(name))
	})
	if err != nil {
		return engine.Namespace{}, err
	}
	return n, nil
}

//go:embed sql/list_namespaces.sql
var listNamespacesSQL string

var listNamespacesBackSQL = strings.Replace(listNamespacesSQL, "order by namespace asc", "order by namespace desc", 1)

//go:embed sql/count_namespaces.sql
var countNamespacesSQL string

// ListNamespaces returns namespaces by name.
func (s *Store) ListNamespaces(ctx context.Context, p engine.Page) (namespaces []engine.Namespace, info engine.PageInfo,
	err error) {
	statement := listNamespacesSQL
	if p.Before != nil {
		statement = listNamespacesBackSQL
	}
	a := args{"after": p.After.OrZero().Name, "before": p.Before.OrZero().Name, "limit": p.Limit + 1}
	err = s.view(ctx, "list namespaces", func(ctx context.Context) (err error) {
		namespaces, info, err = list(ctx, s, &p, statement, a,
			func(row pgx.CollectableRow) (n engine.Namespace, err error) {
				err = row.Scan(namespacePlaces(&n)...)
				return n, err
			}, countNamespacesSQL, args{})
		return err
	})
	return namespaces, info, err
}

//go:embed sql/list_audit_events.sql
var listAuditSQL string

var listAuditBackSQL = strings.Replace(listAuditSQL, "order by event_id desc", "order by event_id asc", 1)

//go:embed sql/count_audit.sql
var countAuditSQL string

// ListAuditEvents returns events, newest first; it is planned for the filter's values.
func (s *Store) ListAuditEvents(ctx context.Context, f engine.AuditFilter, p engine.Page) (events []engine.AuditEvent,
	info engine.PageInfo, err error) {
	statement := listAuditSQL
	if p.Before != nil {
		statement = listAuditBackSQL
	}
	filter := args{"namespace": f.Namespace, "subject_id": f.SubjectID}
	a := merge(filter, idPlace(&p))
	err = s.view(ctx, "list the audit", func(ctx context.Context) (err error) {
		events, info, err = list(ctx, s, &p, statement, a,
			func(row pgx.CollectableRow) (e engine.AuditEvent, err error) {
				err = row.Scan(auditPlaces(&e)...)
				return e, err
			}, countAuditSQL, filter)
		return err
	})
	return events, info, err
}

//go:embed sql/keyring.sql
var keyringSQL string

// Keyring returns the keys that are not revoked, by id.
func (s *Store) Keyring(ctx context.Context) (keys []engine.APIKey, err error) {
	err = s.view(ctx, "read the keys", func(ctx context.Context) error {
		rows, err := s.views.Query(ctx, keyringSQL)
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, scanAPIKey)
		return err
	})
	return keys, err
}

//go:embed sql/list_api_keys.sql
var listAPIKeysSQL string

var listAPIKeysBackSQL = strings.Replace(listAPIKeysSQL, "order by key_id desc", "order by key_id asc", 1)

//go:embed sql/count_api_keys.sql
var countAPIKeysSQL string

// ListKeys returns keys, newest first.
func (s *Store) ListKeys(ctx context.Context, p engine.Page) (keys []engine.APIKey, info engine.PageInfo, err error) {
	statement := listAPIKeysSQL
	if p.Before != nil {
		statement = listAPIKeysBackSQL
	}
	err = s.view(ctx, "list keys", func(ctx context.Context) (err error) {
		keys, info, err = list(ctx, s, &p, statement, idPlace(&p), scanAPIKey, countAPIKeysSQL, args{})
		return err
	})
	return keys, info, err
}

//go:embed sql/note_key_use.sql
var noteKeyUseSQL string

// NoteKeyUse takes one statement for all keys.
func (s *Store) NoteKeyUse(_ context.Context, uses []engine.KeyUse) error {
	if len(uses) == 0 {
		return nil
	}
	ids, at := make([]engine.ID, len(uses)), make([]int64, len(uses))
	for i, use := range uses {
		ids[i], at[i] = use.ID, micros(use.At)
	}
	_, err := write(s, "record the use of keys", func(t *tx) (none struct{}, err error) {
		return none, t.queue(noteKeyUseSQL, args{"key_ids": idArray(ids), "at": at})
	})
	return err
}

//go:embed sql/note_refusal.sql
var noteRefusalSQL string

// NoteRefusal keeps the first event of an id.
func (s *Store) NoteRefusal(_ context.Context, e engine.AuditEvent) error {
	_, err := write(s, "record a refusal", func(t *tx) (none struct{}, err error) {
		return none, t.queue(noteRefusalSQL, auditArgs(&e))
	})
	return err
}

func scanAPIKey(row pgx.CollectableRow) (k engine.APIKey, err error) {
	err = row.Scan(apiKeyPlaces(&k)...)
	return k, err
}

// apiKeyPlaces returns the scan targets of statements that read keys.
func apiKeyPlaces(k *engine.APIKey) []any {
	return []any{
		idOf(&k.ID), &k.Name, numberOf(&k.Role), jsonOf(&k.Namespaces), jsonOf(&k.Queues), jsonOf(&k.Types),
		jsonOf(&k.WorkerIDs), hashColumn{&k.Hash},
		timeOf(&k.CreatedAt), timeOf(&k.ExpiresAt), timeOf(&k.LastUsedAt), timeOf(&k.RevokedAt),
	}
}

// hashColumn scans a SHA-256.
type hashColumn struct{ to *[32]byte }

func (c hashColumn) ScanBytes(hash []byte) error {
	if len(hash) != len(c.to) {
		return fmt.Errorf("a hash has %d bytes, want %d", len(hash), len(c.to))
	}
	copy(c.to[:], hash)
	return nil
}

// listText encodes a list as compact JSON, an empty one as "".
func listText[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return jsonText(list)
}
