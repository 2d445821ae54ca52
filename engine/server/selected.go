package server

import (
	"bytes"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

const (
	readAtOnce = 500    // items of a list that are read for a query at a time
	readInAll  = 10_000 // items that one call reads for a query; then it answers with what it has found
)

// listing is a list of the store, and its items on the wire.
type listing[V any, M proto.Message] struct {
	read    func(context.Context, engine.Page) ([]V, engine.PageInfo, error)
	message func(*V) M
	place   func(*V) engine.Cursor
	within  idSpan // of the items that the query can select, if the list is newest first, by ID
}

// idSpan holds exclusive bounds of ids. The zero value is no bound.
type idSpan struct{ above, below engine.ID }

// queryOf parses the query of a request.
func queryOf[M proto.Message](l *query.List[M], text string, now time.Time) (*query.Query[M], error) {
	q, err := l.Parse(text, now)
	if err != nil {
		return nil, engine.Invalid("query", "%s", err)
	}
	return q, nil
}

// idLag limits how much an item's id may differ from its time: clocks differ.
const idLag = time.Hour

// spanOf returns bounds of the ids of items made between two times; a zero time is no bound.
func spanOf(from, to time.Time) (s idSpan) {
	const years = 200 * 365 * 24 * time.Hour // of times that an id can hold
	usable := func(t time.Time) bool { return t.Unix() > 0 && t.Sub(time.Unix(0, 0)) < years }
	if usable(from.Add(-idLag)) {
		s.above = engine.FirstID(from.Add(-idLag))
	}
	if usable(to) {
		s.below = engine.FirstID(to.Add(idLag))
	}
	return s
}

// page returns a page of the list; with a query, of the items that it selects. It then may have
// fewer items than asked for although there are more; the token leads on.
func (l *listing[V, M]) page(ctx context.Context, request proto.Message, asked engine.Page,
	q *query.Query[M]) ([]M, *kagziv1.PageInfo, error) {
	if q == nil {
		items, info, err := l.read(ctx, asked)
		if err != nil {
			return nil, nil, err
		}
		list, around := wire.PageOfItems(request, asked, info, items, l.message, l.place)
		return list, around, nil
	}
	s := scan[V, M]{listing: l, asked: asked, q: q, back: asked.Before != nil}
	if err := s.run(ctx); err != nil {
		return nil, nil, err
	}
	info := engine.PageInfo{HasNext: s.more, HasPrev: asked.After != nil}
	if s.back {
		slices.Reverse(s.found)
		slices.Reverse(s.places)
		s.first, s.last = s.last, s.first
		info = engine.PageInfo{HasNext: true, HasPrev: s.more}
	}
	if asked.Count {
		var err error
		if info.Total, err = l.count(ctx, q); err != nil {
			return nil, nil, err
		}
	}
	from, to := wire.Fit(s.found, asked, &info, func(m M) int { return proto.Size(m) })
	if from > 0 {
		s.first = s.places[from]
	}
	if to < len(s.found) {
		s.last = s.places[to-1]
	}
	return s.found[from:to], wire.PageTo(request, asked, info, s.first, s.last), nil
}

// scan looks for the items of one page, in one direction.
type scan[V any, M proto.Message] struct {
	*listing[V, M]
	asked engine.Page
	q     *query.Query[M]
	back  bool

	found       []M
	places      []engine.Cursor // of found
	first, last engine.Cursor   // of the items that it read
	scanned     int
	more        bool // there may be more
}

func (s *scan[V, M]) run(ctx context.Context) error {
	for at := s.begin(); ; at = &s.last {
		inner := engine.Page{Limit: readAtOnce, After: at}
		if s.back {
			inner = engine.Page{Limit: readAtOnce, Before: at}
		}
		items, info, err := s.read(ctx, inner)
		if err != nil {
			return err
		}
		rest := info.HasNext
		if s.back {
			slices.Reverse(items)
			rest = info.HasPrev
		}
		for i := range items {
			if end := s.take(&items[i]); end {
				return nil
			}
		}
		if !rest || len(items) == 0 {
			return nil
		}
		if s.scanned >= readInAll {
			s.more = true
			return nil
		}
	}
}

// begin returns where to start reading: at the page's position, or where the query's bounds begin.
func (s *scan[V, M]) begin() *engine.Cursor {
	at, bound := s.asked.After, s.within.below
	if s.back {
		at, bound = s.asked.Before, s.within.above
	}
	if bound.IsZero() {
		return at
	}
	later := at == nil || bytes.Compare(at.ID[:], bound[:]) > 0
	if s.back {
		later = bytes.Compare(at.ID[:], bound[:]) < 0
	}
	if later {
		return &engine.Cursor{ID: bound}
	}
	return at
}

// take looks at the next item. It returns true if the page is complete.
func (s *scan[V, M]) take(item *V) (end bool) {
	place := s.place(item)
	switch {
	case !s.back && !s.within.above.IsZero() && bytes.Compare(place.ID[:], s.within.above[:]) < 0,
		s.back && !s.within.below.IsZero() && bytes.Compare(place.ID[:], s.within.below[:]) >= 0:
		return true // neither this one nor any after it
	}
	m := s.message(item)
	matches := s.q.Matches(m)
	if matches && len(s.found) == s.asked.Limit {
		s.more = true
		return true
	}
	if s.scanned == 0 {
		s.first = place
	}
	s.last = place
	s.scanned++
	if matches {
		s.found, s.places = append(s.found, m), append(s.places, place)
	}
	return false
}

// count counts the items that a query selects. It reads the whole list within the query's bounds.
func (l *listing[V, M]) count(ctx context.Context, q *query.Query[M]) (n int64, err error) {
	for at := (*engine.Cursor)(nil); ; {
		s := scan[V, M]{listing: l, asked: engine.Page{Limit: readInAll + readAtOnce, After: at}, q: q}
		if err := s.run(ctx); err != nil {
			return 0, err
		}
		n += int64(len(s.found))
		if !s.more {
			return n, nil
		}
		at = &s.last
	}
}
