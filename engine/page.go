package engine

import "time"

// Page asks for part of a list. Lists have one fixed order each; a page is what follows After, or what precedes
// Before, always returned in the list's own order. At most one of the two is set.
type Page struct {
	Limit  int // at least 1
	After  *Cursor
	Before *Cursor
	Count  bool // also count the whole list, which costs a scan
}

// Cursor is a place in a list: the sort key of one item. Each list says which fields it uses.
type Cursor struct {
	ID     ID        // runs, schedules, audit events, keys
	At     time.Time // workers: their registration
	Name   string    // workers: their id; workflow types and namespaces: their name
	Number int64     // steps and signals: their sequence
	Minor  int       // steps: their attempt
}

// PageInfo tells what lies around a page.
type PageInfo struct {
	HasNext bool
	HasPrev bool
	Total   int64 // with Page.Count
}

// RunFilter selects runs; every field that is set must hold, and within a list any.
type RunFilter struct {
	Namespace     string
	Statuses      []RunStatus
	Types         []string
	Queues        []string
	CreatedAfter  time.Time // exclusive
	CreatedBefore time.Time // exclusive
	Tags          map[string]string
	ParentRunID   ID
	ScheduleID    string
	WorkerID      string
	Search        string // prefix of the run id or of the external id
}

// WorkerFilter selects workers, likewise.
type WorkerFilter struct {
	Namespace string // empty: all
	Queue     string
	Status    WorkerStatus
}
