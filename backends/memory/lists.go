package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// page returns one page of a whole list, in the list's order; place compares an item with a cursor.
func page[V any](items []V, p engine.Page, place func(V, *engine.Cursor) int) ([]V, engine.PageInfo) {
	info := engine.PageInfo{}
	if p.Count {
		info.Total = int64(len(items))
	}
	switch {
	case p.Before != nil:
		items = slices.DeleteFunc(items, func(v V) bool { return place(v, p.Before) >= 0 })
		info.HasNext, info.HasPrev = true, len(items) > p.Limit
		return items[max(0, len(items)-p.Limit):], info
	case p.After != nil:
		items = slices.DeleteFunc(items, func(v V) bool { return place(v, p.After) <= 0 })
		info.HasPrev = true
	}
	info.HasNext = len(items) > p.Limit
	return items[:min(p.Limit, len(items))], info
}

// paged is one page of a list, with its page information.
type paged[V any] struct {
	items []V
	info  engine.PageInfo
}

// list returns one page of what all returns.
func list[V any](ctx context.Context, s *Store, verb string, p engine.Page, place func(V, *engine.Cursor) int,
	all func(*tx) ([]V, error)) ([]V, engine.PageInfo, error) {
	out, err := read(ctx, s, verb, func(t *tx) (out paged[V], err error) {
		items, err := all(t)
		out.items, out.info = page(items, p, place)
		return out, err
	})
	return out.items, out.info, err
}

// newestFirst compares items in lists that are ordered by descending ids.
func newestFirst[V any](id func(V) engine.ID) func(V, *engine.Cursor) int {
	return func(v V, c *engine.Cursor) int { return compareIDs(c.ID, id(v)) }
}

func byName[V any](name func(V) string) func(V, *engine.Cursor) int {
	return func(v V, c *engine.Cursor) int { return strings.Compare(name(v), c.Name) }
}
