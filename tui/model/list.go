package model

import (
	"context"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// collectionMost limits how many items a Collection holds.
const collectionMost = 1000

// Collection is a list that is loaded whole, up to 1,000 items, and kept up to date while shown.
// Create it, then call Show.
type Collection[T any] struct {
	base
	source source[T]
	reader *reader[batch[T]]

	items  []T // all loaded items, sorted
	kept   []T // items that match the filter
	index  map[string]int
	order  func(a, b T) int
	filter string
	only   func(T) bool // nil keeps all
	more   bool
	loaded bool
	stale  bool // changed since the items were loaded
	asOf   time.Time
}

// source says where the items of a collection come from.
type source[T any] struct {
	// read returns a call that loads one page; its size is at most limit.
	read     func(namespace string) func(ctx context.Context, page *kagziv1.PageRequest) ([]T, *kagziv1.PageInfo, error)
	key      func(T) string
	text     func(T) []string // texts that the filter searches
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

// Show starts to keep the items up to date.
func (c *Collection[T]) Show() {
	c.shown = true
	if c.stale && c.link.Ready() {
		c.want()
	}
}

// Hide stops updates until the next Show.
func (c *Collection[T]) Hide() {
	c.shown = false
	c.stale = c.reader.stop() || c.stale
}

// Refresh reloads everything now.
func (c *Collection[T]) Refresh() {
	c.stale = false
	c.reader.now()
}

// Len returns how many items match the filter.
func (c *Collection[T]) Len() int { return len(c.kept) }

// Row returns the i-th of them; ok is false if there is none.
func (c *Collection[T]) Row(i int) (item T, ok bool) {
	if i < 0 || i >= len(c.kept) {
		return item, false
	}
	return c.kept[i], true
}

// ID returns the key of an item.
func (c *Collection[T]) ID(item T) string { return c.source.key(item) }

// Find returns the position of an item among those that match the filter.
func (c *Collection[T]) Find(id string) (i int, ok bool) {
	i, ok = c.index[id]
	return i, ok
}

// Get returns an item by its id, whether it matches the filter or not.
func (c *Collection[T]) Get(id string) (item T, ok bool) {
	i := slices.IndexFunc(c.items, func(item T) bool { return c.source.key(item) == id })
	if i < 0 {
		return item, false
	}
	return c.items[i], true
}

// All returns the loaded items, in order, ignoring the filter. Do not change them.
func (c *Collection[T]) All() []T { return c.items }

// More reports whether there are more items than loaded.
func (c *Collection[T]) More() bool { return c.more }

// Loaded reports whether the items were loaded at least once.
func (c *Collection[T]) Loaded() bool { return c.loaded }

// AsOf returns when the items were loaded, by the server's clock; zero if never.
func (c *Collection[T]) AsOf() time.Time { return c.asOf }

// Err returns why nothing was loaded yet; nil if something was.
func (c *Collection[T]) Err() error { return c.failure(c.loaded) }

// Stale returns the error of the latest load; nil if it worked.
func (c *Collection[T]) Stale() error { return c.err }

// SortBy sorts the items; nil restores the server's order. The sort is stable.
func (c *Collection[T]) SortBy(order func(a, b T) int) {
	if order == nil && c.order != nil {
		c.stale = true // the server's order was lost
		if c.shown && c.link.Ready() {
			c.want()
		}
	}
	c.order = order
	c.arrange()
}

// SetFilter keeps the items with a text that contains this one, ignoring case; a leading "!"
// negates it. An empty filter keeps all.
func (c *Collection[T]) SetFilter(text string) {
	c.filter = text
	c.arrange()
}

// Only keeps the items for which keep is true, in addition to the filter; nil keeps all.
func (c *Collection[T]) Only(keep func(T) bool) {
	c.only = keep
	c.arrange()
}

// Filter returns the filter's text.
func (c *Collection[T]) Filter() string { return c.filter }

func (c *Collection[T]) heard(change Change) {
	if change.Moved {
		c.reader.stop()
		c.items, c.more, c.loaded, c.err, c.stale = nil, false, false, nil, true
		c.arrange()
		c.change()
		return
	}
	again := c.err != nil && change.Beat // the error may be over
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

// holds reports whether a text contains the part, which is lower case.
func holds(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), part) })
}
