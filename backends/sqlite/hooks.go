package sqlite

import (
	"context"
	_ "embed"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_hook_by_id.sql
var getHookByIDSQL string

//go:embed sql/get_hook.sql
var getHookSQL string

// hook returns the hook of a statement; nil if there is none.
func (r session) hook(statement *string, args ...arg) (*engine.Hook, error) {
	var hook engine.Hook
	found, err := r.found(statement, func(r *row) (err error) {
		hook, err = readHook(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &hook, nil
}

// readHook reads the columns of statements that select hooks.
func readHook(r *row) (engine.Hook, error) {
	return engine.Hook{ID: r.id(), Namespace: r.text(), Name: r.text(), Queue: r.text(), Type: r.text(),
		Scheme: engine.HookScheme(r.num()), Secret: r.text(), OldSecret: r.text(), OldUntil: r.time(),
		CreatedAt: r.time(), RotatedAt: r.time()}, nil
}

// GetHookByID finds a hook by id.
func (s *Store) GetHookByID(ctx context.Context, id engine.ID) (engine.Hook, error) {
	return s.oneHook(ctx, "GetHookByID", id.String(), &getHookByIDSQL, idArg("hook_id", id))
}

// GetHook finds a hook of a namespace.
func (s *Store) GetHook(ctx context.Context, namespace, name string) (engine.Hook, error) {
	return s.oneHook(ctx, "GetHook", name, &getHookSQL, text("namespace", namespace), text("name", name))
}

func (s *Store) oneHook(ctx context.Context, verb, ref string, statement *string, args ...arg) (engine.Hook, error) {
	return read(ctx, s, verb, func(r session) (engine.Hook, error) {
		hook, err := r.hook(statement, args...)
		if err == nil && hook == nil {
			err = engine.HookNotFound(ref)
		}
		if err != nil {
			return engine.Hook{}, err
		}
		return *hook, nil
	})
}

//go:embed sql/list_hooks.sql
var listHooksSQL string

var listHooksBackSQL = strings.Replace(listHooksSQL, "order by hook_id desc", "order by hook_id asc", 1)

//go:embed sql/count_hooks.sql
var countHooksSQL string

// ListHooks returns hooks, newest first.
func (s *Store) ListHooks(ctx context.Context, namespace string, p engine.Page) ([]engine.Hook, engine.PageInfo,
	error) {
	return list(ctx, s, "ListHooks", p, listing[engine.Hook]{
		forth: &listHooksSQL, back: &listHooksBackSQL, count: &countHooksSQL, read: readHook,
		filter: []arg{text("namespace", namespace)}, place: spanArgs(p.Span()),
	})
}

func (t *tx) Hook(id engine.ID) (*engine.Hook, error) {
	return t.hook(&getHookByIDSQL, idArg("hook_id", id))
}

func (t *tx) HookNamed(namespace, name string) (*engine.Hook, error) {
	return t.hook(&getHookSQL, text("namespace", namespace), text("name", name))
}

func (t *tx) CountHooks(namespace string) (n int, err error) {
	err = t.query(&countHooksSQL, func(r *row) error {
		n = int(r.num())
		return nil
	}, text("namespace", namespace))
	return n, err
}

//go:embed sql/insert_hook.sql
var insertHookSQL string

func (t *tx) InsertHook(h *engine.Hook) error {
	_, err := t.exec(&insertHookSQL, idArg("hook_id", h.ID), text("namespace", h.Namespace), text("name", h.Name),
		text("task_queue", h.Queue), text("workflow_type", h.Type), num("scheme", h.Scheme), text("secret", h.Secret),
		instant("created_at", h.CreatedAt))
	return err
}

//go:embed sql/rotate_hook.sql
var rotateHookSQL string

func (t *tx) SaveHookSecrets(h *engine.Hook) error {
	_, err := t.exec(&rotateHookSQL, idArg("hook_id", h.ID), text("secret", h.Secret),
		text("old_secret", h.OldSecret), instant("old_until", h.OldUntil), instant("rotated_at", h.RotatedAt))
	return err
}

//go:embed sql/delete_hook.sql
var deleteHookSQL string

func (t *tx) DeleteHook(id engine.ID) error {
	_, err := t.exec(&deleteHookSQL, idArg("hook_id", id))
	return err
}

//go:embed sql/delete_hooks_of.sql
var deleteHooksOfSQL string

func (t *tx) DeleteHooks(namespace string) (int, error) {
	n, err := t.exec(&deleteHooksOfSQL, text("namespace", namespace))
	return int(n), err
}
