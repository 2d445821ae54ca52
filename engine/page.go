package engine

import (
	"slices"
	"time"
)

// Page asks for part of a list. Lists have one fixed order each; a page is what follows After, or what precedes
// Before, always returned in the list's own order. At most one of the two is set.
type Page struct {
	Limit  int // at least 1
	After  *Cursor
	Before *Cursor
	Count  bool // also count the whole list, which costs a scan
}

// Span is the ids between which all items of a page have theirs, both left out, in a list that is newest first, by ID. However far from the newest a
// page is, a store begins there.
func (p *Page) Span() (above, below ID) {
	if p.After != nil {
		below = p.After.ID
	} else {
		for i := range below {
			below[i] = 0xff
		}
	}
	return p.Before.OrZero().ID, below
}

// Cursor is a place in a list: the sort key of one item. Each list says which fields it uses.
type Cursor struct {
	ID     ID        // runs, schedules, audit events, keys
	At     time.Time // workers: their registration
	Name   string    // workers: their id; workflow types and namespaces: their name
	Number int64     // steps and signals: their sequence
	Minor  int       // steps: their attempt
}

// OrZero is the place, or the zero one when there is none.
func (c *Cursor) OrZero() Cursor {
	if c == nil {
		return Cursor{}
	}
	return *c
}

// PageInfo tells what lies around a page.
type PageInfo struct {
	HasNext bool
	HasPrev bool
	Total   int64 // with Page.Count
}

// Cut makes the page out of what was read for it: items from its place on, one more than its Limit if there are as many, and for a page backwards
// in the reverse of the list's order. It notes in info what lies around the page, and may change items.
func Cut[V any](items []V, p *Page, info *PageInfo) []V {
	more := len(items) > p.Limit
	if more {
		items = items[:p.Limit]
	}
	if p.Before != nil {
		slices.Reverse(items)
		info.HasPrev, info.HasNext = more, true
	} else {
		info.HasNext, info.HasPrev = more, p.After != nil
	}
	return items
}
