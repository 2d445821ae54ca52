package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/lock_hooks.sql
var lockHooksSQL string

// CreateHook creates a hook.
func (s *Store) CreateHook(_ context.Context, p engine.CreateHookParams) (engine.Hook, error) {
	return locked(s, "create a hook", lockHooksSQL, args{}, storelogic.CreateHook, p)
}

// RotateHook gives a hook a new secret.
func (s *Store) RotateHook(_ context.Context, p engine.RotateHookParams) (engine.Hook, error) {
	return locked(s, "rotate the secret of a hook", lockHooksSQL, args{}, storelogic.RotateHook, p)
}

// DeleteHook deletes a hook; its runs stay.
func (s *Store) DeleteHook(_ context.Context, p engine.DeleteHookParams) error {
	_, err := locked(s, "delete a hook", lockHooksSQL, args{},
		func(t storelogic.Tx, p engine.DeleteHookParams) (struct{}, error) {
			return struct{}{}, storelogic.DeleteHook(t, p)
		}, p)
	return err
}

//go:embed sql/get_hook_by_id.sql
var getHookByIDSQL string

//go:embed sql/get_hook.sql
var getHookSQL string

// hookPlaces returns the scan targets of statements that read hooks.
func hookPlaces(h *engine.Hook) []any {
	return []any{idOf(&h.ID), &h.Namespace, &h.Name, &h.Queue, &h.Type, numberOf(&h.Scheme), &h.Secret, &h.OldSecret,
		timeOf(&h.OldUntil), timeOf(&h.CreatedAt), timeOf(&h.RotatedAt)}
}

// GetHookByID finds a hook by id.
func (s *Store) GetHookByID(ctx context.Context, id engine.ID) (engine.Hook, error) {
	return s.oneHook(ctx, id.String(), getHookByIDSQL, args{"hook_id": [16]byte(id)})
}

// GetHook finds a hook of a namespace.
func (s *Store) GetHook(ctx context.Context, namespace, name string) (engine.Hook, error) {
	return s.oneHook(ctx, name, getHookSQL, args{"namespace": namespace, "name": name})
}

func (s *Store) oneHook(ctx context.Context, ref, statement string, a args) (hook engine.Hook, err error) {
	err = s.view(ctx, "read a hook", func(ctx context.Context) error {
		err := s.views.QueryRow(ctx, statement, a).Scan(hookPlaces(&hook)...)
		return notFound(err, engine.HookNotFound(ref))
	})
	if err != nil {
		return engine.Hook{}, err
	}
	return hook, nil
}

//go:embed sql/list_hooks.sql
var listHooksSQL string

var listHooksBackSQL = strings.Replace(listHooksSQL, "order by hook_id desc", "order by hook_id asc", 1)

//go:embed sql/count_hooks.sql
var countHooksSQL string

// ListHooks returns hooks, newest first.
func (s *Store) ListHooks(ctx context.Context, namespace string, p engine.Page) (hooks []engine.Hook,
	info engine.PageInfo, err error) {
	statement := listHooksSQL
	if p.Before != nil {
		statement = listHooksBackSQL
	}
	filter := args{"namespace": namespace}
	a := merge(filter, idPlace(&p))
	err = s.view(ctx, "list hooks", func(ctx context.Context) (err error) {
		hooks, info, err = list(ctx, s, &p, statement, a, func(row pgx.CollectableRow) (h engine.Hook, err error) {
			err = row.Scan(hookPlaces(&h)...)
			return h, err
		}, countHooksSQL, filter)
		return err
	})
	return hooks, info, err
}

// Hook is exact in a transaction that has locked the hooks.
func (t *tx) Hook(id engine.ID) (*engine.Hook, error) {
	return t.oneHook(getHookByIDSQL, args{"hook_id": [16]byte(id)})
}

// HookNamed is exact under the same lock.
func (t *tx) HookNamed(namespace, name string) (*engine.Hook, error) {
	return t.oneHook(getHookSQL, args{"namespace": namespace, "name": name})
}

func (t *tx) oneHook(statement string, a args) (*engine.Hook, error) {
	var h engine.Hook
	found, err := t.found(statement, a, hookPlaces(&h)...)
	if err != nil || !found {
		return nil, err
	}
	return &h, nil
}

// CountHooks is exact under the same lock.
func (t *tx) CountHooks(namespace string) (n int, err error) {
	_, err = t.found(countHooksSQL, args{"namespace": namespace}, &n)
	return n, err
}

//go:embed sql/insert_hook.sql
var insertHookSQL string

// InsertHook inserts the hook with the given fields.
func (t *tx) InsertHook(h *engine.Hook) error {
	return t.queue(insertHookSQL, args{"hook_id": [16]byte(h.ID), "namespace": h.Namespace, "name": h.Name,
		"task_queue": h.Queue, "workflow_type": h.Type, "scheme": int16(h.Scheme), "secret": h.Secret,
		"created_at": micros(h.CreatedAt)})
}

//go:embed sql/rotate_hook.sql
var rotateHookSQL string

// SaveHookSecrets writes a hook under the same lock.
func (t *tx) SaveHookSecrets(h *engine.Hook) error {
	return t.queue(rotateHookSQL, args{"hook_id": [16]byte(h.ID), "secret": h.Secret, "old_secret": h.OldSecret,
		"old_until": microsOrNull(h.OldUntil), "rotated_at": microsOrNull(h.RotatedAt)})
}

//go:embed sql/delete_hook.sql
var deleteHookSQL string

// DeleteHook keeps its runs.
func (t *tx) DeleteHook(id engine.ID) error {
	return t.queue(deleteHookSQL, args{"hook_id": [16]byte(id)})
}

//go:embed sql/delete_hooks_of.sql
var deleteHooksOfSQL string

// DeleteHooks deletes what is committed.
func (t *tx) DeleteHooks(namespace string) (int, error) {
	n, err := t.exec(deleteHooksOfSQL, args{"namespace": namespace})
	return int(n), err
}
