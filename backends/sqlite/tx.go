package sqlite

import (
	"github.com/kagzi/kagzi/backends/internal/storekit"

	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

// tx is the transaction in which a call is carried out, on the writer's only connection.
type tx struct {
	session
	queues      queueCache
	leases      leaseCache
	recentRuns  map[engine.ID]*engine.Run // started recently, as they were then
	currentRows map[engine.ID]mutableRun  // rows of the runs that the current call has read or saved
	events      []storekit.Event          // for listeners, after the commit
	// unclaimed holds the runs that were started but not claimed in this transaction, with their
	// queues.
	unclaimed map[engine.ID]queueKey
	wrote     bool // the current call has changed something
}

func (t *tx) exec(text *string, args ...arg) (int64, error) {
	if err := t.flushCounts(); err != nil {
		return 0, err
	}
	return t.direct(text, args...)
}

// direct is exec for statements that do not depend on cached counts.
func (t *tx) direct(text *string, args ...arg) (int64, error) {
	n, err := t.conn.Exec(t.ctx, text, args...)
	t.wrote = t.wrote || n > 0 || err != nil
	return n, err
}

func (t *tx) query(text *string, each func(*row) error, args ...arg) error {
	if err := t.flushCounts(); err != nil {
		return err
	}
	return t.session.query(text, each, args...)
}

func (t *tx) found(text *string, one func(*row) error, args ...arg) (bool, error) {
	if err := t.flushCounts(); err != nil {
		return false, err
	}
	return t.session.found(text, one, args...)
}

// returning is query for a statement that writes and returns at most one row.
func (t *tx) returning(text *string, one func(*row) error, args ...arg) (bool, error) {
	found, err := t.found(text, one, args...)
	t.wrote = t.wrote || found || err != nil
	return found, err
}

func (t *tx) notifyRun(id engine.ID) { t.Notify(engine.Notification{Kind: engine.NotifyRun, ID: id}) }

func (t *tx) notifyEnd(id engine.ID, ending *engine.Ending) {
	t.notifyRun(id)
	t.events = append(t.events, storekit.Event{
		Notification: engine.Notification{Kind: engine.NotifyEnd, ID: id}, Ending: ending})
}

// notifyStarted notifies of a run that was just started, as if it were Claimed. At the end of the
// transaction, left corrects that.
func (t *tx) notifyStarted(run *engine.Run) {
	t.unclaimed[run.ID] = queueKey{run.Namespace, run.Queue}
	t.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: run.Namespace, Name: run.Queue, Claimed: true})
}

// left returns the events of the transaction, and clears Claimed for started runs that can be
// claimed.
func (t *tx) left() []storekit.Event {
	var waiting map[queueKey]bool
	if len(t.unclaimed) > 0 {
		waiting = make(map[queueKey]bool, 1)
	}
	for _, q := range t.unclaimed {
		waiting[q] = true
	}
	for i := range t.events {
		e := &t.events[i]
		e.Claimed = e.Claimed && !waiting[queueKey{e.Namespace, e.Name}]
	}
	return t.events
}

// silence drops the events of the transaction.
func (t *tx) silence() {
	t.events = t.events[:0]
	clear(t.unclaimed)
}

func (t *tx) notifySlot(namespace, queue string) {
	t.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: namespace, Name: queue})
}

func (t *tx) notifyWorker(id string) {
	t.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id})
}

func (t *tx) notifyRegistered(id string) {
	t.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id, Registered: true})
}
