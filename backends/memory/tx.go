package memory

import (
	"bytes"
	"maps"
	"slices"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// tx is one transaction, the only one on its database at that time. Its changes can be undone in
// reverse order.
type tx struct {
	db      *Database
	call    *Call
	undo    []func()
	fresh   map[engine.ID]bool // rows of runs that the call made and that nobody else has seen
	old     map[engine.ID]*Run // the rows before the call
	events  []storekit.Event
	effects map[*engine.SideEffects]*Store // the store whose call caused them
}

func (t *tx) rollback(to int) {
	for len(t.undo) > to {
		last := len(t.undo) - 1
		t.undo[last]()
		t.undo = t.undo[:last]
	}
	clear(t.fresh)
	clear(t.old)
}

// changes returns what the call changed of runs, by id.
func (t *tx) changes() (changes []Change) {
	for _, id := range slices.SortedFunc(maps.Keys(t.old), compareIDs) {
		changes = append(changes, Change{t.old[id], t.db.runs[id]})
	}
	return changes
}

// tellDue reports the runs that the call left without a worker.
func (t *tx) tellDue() {
	for id := range t.old {
		if r := t.db.runs[id]; r != nil && r.Lease == nil && !r.Status.Ended() && !r.AvailableAt.IsZero() {
			t.db.options.Due(r.Namespace, r.Queue, r.AvailableAt)
		}
	}
}

// putRun sets a run's row, which may be changed until the call is over; nil deletes it.
func (t *tx) putRun(id engine.ID, row *Run) {
	if _, known := t.old[id]; !known {
		t.old[id] = t.db.runs[id]
	}
	if row == nil {
		remove(t, t.db.runs, id)
		return
	}
	put(t, t.db.runs, id, row)
	t.fresh[id] = true
}

// put sets a row, and remove deletes it.
func put[K comparable, V any](t *tx, rows map[K]V, key K, row V) {
	t.remember(restorer(rows, key))
	rows[key] = row
}

func remove[K comparable, V any](t *tx, rows map[K]V, key K) {
	t.remember(restorer(rows, key))
	delete(rows, key)
}

func (t *tx) remember(undo func()) { t.undo = append(t.undo, undo) }

func restorer[K comparable, V any](rows map[K]V, key K) func() {
	old, had := rows[key]
	return func() {
		if had {
			rows[key] = old
		} else {
			delete(rows, key)
		}
	}
}

// change returns the run's row for a change; nil if there is none. Its steps are separate rows
// (changeStep).
func (t *tx) change(id engine.ID) *Run {
	r := t.db.runs[id]
	if r == nil || t.fresh[id] {
		return r
	}
	row := *r
	row.Steps, row.Signals, row.Receipts = slices.Clone(r.Steps), slices.Clone(r.Signals), maps.Clone(r.Receipts)
	if r.Lease != nil {
		lease := *r.Lease
		row.Lease = &lease
	}
	t.putRun(id, &row)
	return &row
}

// changeSteps calls edit for each step of the run; edit says whether it changed the step.
func (t *tx) changeSteps(run engine.ID, edit func(*engine.Step) bool) {
	for i, s := range t.db.runs[run].Steps {
		step := *s
		if edit(&step) {
			t.change(run).Steps[i] = &step
		}
	}
}

// changeStep is changeSteps for the attempt with that id, in any run.
func (t *tx) changeStep(id engine.ID, edit func(*engine.Step)) {
	for run, r := range t.db.runs {
		if slices.ContainsFunc(r.Steps, func(s *engine.Step) bool { return s.ID == id }) {
			t.changeSteps(run, func(s *engine.Step) bool {
				if s.ID == id {
					edit(s)
				}
				return s.ID == id
			})
			return
		}
	}
}

// find returns the runs that the filter accepts, by id.
func (t *tx) find(take func(*Run) bool) (runs []*Run) {
	for _, r := range t.db.runs {
		if take(r) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *Run) int { return compareIDs(a.ID, b.ID) })
	return runs
}

func (t *tx) ids(take func(*Run) bool) (ids []engine.ID) {
	for _, r := range t.find(take) {
		ids = append(ids, r.ID)
	}
	return ids
}

// first returns the smallest id that the filter accepts; zero if there is none.
func (t *tx) first(take func(*Run) bool) engine.ID {
	if ids := t.ids(take); len(ids) > 0 {
		return ids[0]
	}
	return engine.ID{}
}

func compareIDs(a, b engine.ID) int { return bytes.Compare(a[:], b[:]) }

// Notify merges consecutive equal notifications.
func (t *tx) Notify(n engine.Notification) {
	e := storekit.Event{Notification: n}
	if last := len(t.events); last == 0 || t.events[last-1] != e {
		t.events = append(t.events, e)
	}
}

func (t *tx) ReportSideEffects(e *engine.SideEffects) {
	t.effects[e] = t.call.from
	t.events = append(t.events, storekit.Event{SideEffects: e})
}

// eventsFor returns the events without the side effects of other stores' calls.
func (t *tx) eventsFor(s *Store) []storekit.Event {
	others := func(e storekit.Event) bool { return e.SideEffects != nil && t.effects[e.SideEffects] != s }
	if !slices.ContainsFunc(t.events, others) {
		return t.events
	}
	return slices.DeleteFunc(slices.Clone(t.events), others)
}

func (t *tx) notifyRun(id engine.ID) { t.Notify(engine.Notification{Kind: engine.NotifyRun, ID: id}) }

func (t *tx) notifyWorker(id string) {
	t.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id})
}

func (t *tx) notifyRegistered(id string) {
	t.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id, Registered: true})
}

// addEndings adds the outcomes of ended runs to their notifications.
func (t *tx) addEndings() {
	for i := range t.events {
		e := &t.events[i]
		r := t.db.runs[e.ID]
		if e.Kind != engine.NotifyEnd || e.SideEffects != nil || r == nil || !r.Status.Ended() {
			continue
		}
		e.Ending = &engine.Ending{
			Namespace: r.Namespace, Status: r.Status, ContinuedAs: r.ContinuedAs, FinishedAt: r.FinishedAt,
		}
		if r.Status == engine.RunCompleted {
			e.Ending.Output = r.Output
		} else {
			e.Ending.Error = r.Error
		}
	}
}
