package sqlite

import (
	"context"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

// listing is how one list is read, page by page.
type listing[V any] struct {
	forth, back, count *string // the page onwards, the page backwards, and the length of the whole list
	read               func(*row) (V, error)
	check              func(session) error // nil: nothing to check first
	filter             []arg               // of all three statements
	place              []arg               // of the pages
}

// spanArgs is what bounds a page of a list that goes by id.
func spanArgs(above, below engine.ID) []arg {
	return []arg{blob("above", above[:]), blob("below", below[:])}
}

// list reads a page.
func list[V any](ctx context.Context, s *Store, verb string, p engine.Page, l listing[V]) ([]V, engine.PageInfo, error) {
	type page struct {
		items []V
		info  engine.PageInfo
	}
	out, err := read(ctx, s, verb, func(r session) (out page, err error) {
		if l.check != nil {
			if err := l.check(r); err != nil {
				return out, err
			}
		}
		statement := l.forth
		if p.Before != nil {
			statement = l.back
		}
		err = r.query(statement, func(r *row) error {
			item, err := l.read(r)
			out.items = append(out.items, item)
			return err
		}, slices.Concat(l.filter, l.place, []arg{num("limit", p.Limit+1)})...)
		if err == nil && p.Count {
			err = r.query(l.count, func(r *row) error {
				out.info.Total = r.num()
				return nil
			}, l.filter...)
		}
		out.items = engine.Cut(out.items, &p, &out.info)
		return out, err
	})
	return out.items, out.info, err
}
