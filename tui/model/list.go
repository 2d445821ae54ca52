package model

import (
	"context"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// collectionMost is how many items a Collection holds.
const collectionMost = 1000

// Collection is a list that is loaded whole, up to 1,000 items, and kept up to date while it is
// shown. Make it, then Show it.
type Collection[T any] struct {
	base
	source source[T]
	reader *reader[batch[T]]

	items  []T // all that are loaded, sorted
	kept   []T // those that the filter keeps
	index  map[string]int
	order  func(a, b T) int
	filter string
	only   func(T) bool // nil keeps all
	more   bool
	loaded bool
	stale  bool // something changed since the items were read
	asOf   time.Time
}

// source is where a collection comes from.
type source[T any] struct {
	// read makes a call that brings one page; limit is how many items at most.
	read     func(namespace string) func(ctx context.Context, page *kagziv1.PageRequest) ([]T, *kagziv1.PageInfo, error)
	key      func(T) string
	text     func(T) []string // what the filter looks into
	concerns func(Change) bool
	every    time.Duration
	most     int
}

type batch[T any] struct {
	items []T
	more  bool
}

func newCollection[T any](l *Link, s source[T]) *Collection[T] {
	c := &Collection[T]{source: s, stale: true}
	c.base = join(l, c.heard)
	c.reader = &reader[batch[T]]{tasks: c.tasks, every: s.every, prepare: c.prepare, done: c.read}
	return c
}

// Show keeps the items up to date from now on.
func (c *Collection[T]) Show() {
	c.shown = true
	if c.stale && c.link.Ready() {
		c.want()
	}
}

// Hide keeps the items as they are until the next Show.
func (c *Collection[T]) Hide() {
	c.shown = false
	c.stale = c.reader.stop() || c.stale
}

// Refresh reads everything again now.
func (c *Collection[T]) Refresh() {
	c.stale = false
	c.reader.now()
}

// Len is how many items the filter keeps.
func (c *Collection[T]) Len() int { return len(c.kept) }

// Row is the i-th of them; ok is false when there is none.
func (c *Collection[T]) Row(i int) (item T, ok bool) {
	if i < 0 || i >= len(c.kept) {
		return item, false
	}
	return c.kept[i], true
}

// ID is what an item is found by.
func (c *Collection[T]) ID(item T) string { return c.source.key(item) }

// Find is where an item stands among those that the filter keeps.
func (c *Collection[T]) Find(id string) (i int, ok bool) {
	i, ok = c.index[id]
	return i, ok
}

// Get is an item by its id, kept by the filter or not.
func (c *Collection[T]) Get(id string) (item T, ok bool) {
	i := slices.IndexFunc(c.items, func(item T) bool { return c.source.key(item) == id })
	if i < 0 {
		return item, false
	}
	return c.items[i], true
}

// All are the loaded items, in order, whatever the filter. Do not change them.
func (c *Collection[T]) All() []T { return c.items }

// More says that there are more items than are loaded.
func (c *Collection[T]) More() bool { return c.more }

// Loaded says that the items have been read at least once.
func (c *Collection[T]) Loaded() bool { return c.loaded }

// AsOf is when the items were read, by the server's clock; zero when they never were.
func (c *Collection[T]) AsOf() time.Time { return c.asOf }

// Err is why nothing could be read yet; nil when something could.
func (c *Collection[T]) Err() error { return c.failure(c.loaded) }

// Stale is why the items are not as new as they should be: what the latest reading failed with. nil when they are.
func (c *Collection[T]) Stale() error { return c.err }

// SortBy orders the items; nil is the order of the server. Equal ones stay in that order.
func (c *Collection[T]) SortBy(order func(a, b T) int) {
	if order == nil && c.order != nil {
		c.stale = true // the order of the server has been lost
		if c.shown && c.link.Ready() {
			c.want()
		}
	}
	c.order = order
	c.arrange()
}

// SetFilter keeps the items of which a text holds this one, whatever its case; with "!" in front
// those that do not. Empty keeps all.
func (c *Collection[T]) SetFilter(text string) {
	c.filter = text
	c.arrange()
}

// Only keeps the items of which this is true, beside the filter; nil keeps all.
func (c *Collection[T]) Only(keep func(T) bool) {
	c.only = keep
	c.arrange()
}

// Filter is what is kept.
func (c *Collection[T]) Filter() string { return c.filter }

func (c *Collection[T]) heard(change Change) {
	if change.Moved {
		c.reader.stop()
		c.items, c.more, c.loaded, c.err, c.stale = nil, false, false, nil, true
		c.arrange()
		c.change()
		return
	}
	again := c.err != nil && change.Beat // what went wrong may be over
	if !change.Back && !again && !c.source.concerns(change) {
		return
	}
	c.stale = true
	if c.shown {
		c.want()
	}
}

func (c *Collection[T]) want() {
	c.stale = false
	c.reader.want()
}

func (c *Collection[T]) prepare() func(context.Context) (batch[T], error) {
	read, most := c.source.read(c.link.Namespace()), c.source.most
	return func(ctx context.Context) (batch[T], error) {
		var b batch[T]
		page := &kagziv1.PageRequest{PageSize: int32(most)}
		for {
			items, info, err := read(ctx, page)
			if err != nil {
				return b, err
			}
			b.items = append(b.items, items...)
			b.more = info.GetNextPageToken() != ""
			if !b.more || len(b.items) >= most || len(items) == 0 {
				return b, nil
			}
			page = &kagziv1.PageRequest{PageSize: int32(most - len(b.items)), PageToken: info.GetNextPageToken()}
		}
	}
}

func (c *Collection[T]) read(b batch[T], err error) {
	c.err = err
	if err != nil {
		c.stale = true
		c.change()
		return
	}
	c.items, c.more, c.loaded, c.asOf = b.items, b.more, true, c.link.Now()
	c.arrange()
	c.change()
}

// arrange sorts and filters the items.
func (c *Collection[T]) arrange() {
	if c.order != nil {
		slices.SortStableFunc(c.items, c.order)
	}
	c.kept = c.items
	text, not := strings.CutPrefix(strings.ToLower(c.filter), "!")
	if text != "" || c.only != nil {
		c.kept = nil
		for _, item := range c.items {
			if (text == "" || holds(c.source.text(item), text) != not) && (c.only == nil || c.only(item)) {
				c.kept = append(c.kept, item)
			}
		}
	}
	c.index = make(map[string]int, len(c.kept))
	for i, item := range c.kept {
		c.index[c.source.key(item)] = i
	}
}

// holds says whether one of the texts has the part, which is in lower case.
func holds(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), part) })
}
