package memory

import (
	"context"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

func (t *tx) hook(take func(*engine.Hook) bool) *engine.Hook {
	for _, h := range t.db.hooks {
		if take(h) {
			row := *h
			return &row
		}
	}
	return nil
}

func (t *tx) Hook(id engine.ID) (*engine.Hook, error) {
	return t.hook(func(h *engine.Hook) bool { return h.ID == id }), nil
}

func (t *tx) HookNamed(namespace, name string) (*engine.Hook, error) {
	return t.hook(func(h *engine.Hook) bool { return h.Namespace == namespace && h.Name == name }), nil
}

func (t *tx) CountHooks(namespace string) (n int, err error) {
	for _, h := range t.db.hooks {
		n += count(h.Namespace == namespace)
	}
	return n, nil
}

func (t *tx) InsertHook(h *engine.Hook) error {
	row := *h
	put(t, t.db.hooks, h.ID, &row)
	return nil
}

func (t *tx) SaveHookSecrets(h *engine.Hook) error { return t.InsertHook(h) }

func (t *tx) DeleteHook(id engine.ID) error {
	remove(t, t.db.hooks, id)
	return nil
}

func (t *tx) DeleteHooks(namespace string) (n int, err error) {
	for id, h := range t.db.hooks {
		if h.Namespace == namespace {
			remove(t, t.db.hooks, id)
			n++
		}
	}
	return n, nil
}

// GetHookByID finds a hook by id.
func (s *Store) GetHookByID(ctx context.Context, id engine.ID) (engine.Hook, error) {
	return s.oneHook(ctx, "GetHookByID", id.String(), func(h *engine.Hook) bool { return h.ID == id })
}

// GetHook finds a hook of a namespace.
func (s *Store) GetHook(ctx context.Context, namespace, name string) (engine.Hook, error) {
	return s.oneHook(ctx, "GetHook", name,
		func(h *engine.Hook) bool { return h.Namespace == namespace && h.Name == name })
}

func (s *Store) oneHook(ctx context.Context, verb, ref string, take func(*engine.Hook) bool) (engine.Hook, error) {
	return read(ctx, s, verb, func(t *tx) (engine.Hook, error) {
		found := t.hook(take)
		if found == nil {
			return engine.Hook{}, engine.HookNotFound(ref)
		}
		return *found, nil
	})
}

// ListHooks returns hooks, newest first.
func (s *Store) ListHooks(ctx context.Context, namespace string, p engine.Page) ([]engine.Hook, engine.PageInfo,
	error) {
	place := newestFirst(func(h engine.Hook) engine.ID { return h.ID })
	return list(ctx, s, "ListHooks", p, place, func(t *tx) (all []engine.Hook, err error) {
		for _, h := range t.db.hooks {
			if h.Namespace == namespace {
				all = append(all, *h)
			}
		}
		slices.SortFunc(all, func(a, b engine.Hook) int { return compareIDs(b.ID, a.ID) })
		return all, nil
	})
}
