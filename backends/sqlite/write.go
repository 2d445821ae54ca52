package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	maxGroup      = 512     // calls in one commit
	maxGroupBytes = 8 << 20 // of payloads in one commit, about
)

// writer is the goroutine that writes. It takes all calls that wait, carries them out in one
// transaction, as well as those that come meanwhile, and commits once; so the cost of a commit is
// shared, and a caller alone does not wait for others.
//
// Calls look before they write, so one that is refused has as a rule changed nothing, and the
// transaction goes on without it. Should one fail after it has written, the whole transaction is
// rolled back and each call is carried out again in one of its own: a call must therefore have no
// effect outside its transaction.
type writer struct {
	store           *Store
	calls           chan *call
	deferred        deferredWrites
	done            chan struct{}
	syncer          *syncer
	tx              tx
	group           []*call
	size            int     // of the group's payloads, about
	deferredInGroup int     // deferred writes in the group
	next            *call   // begins the next group, because it did not fit in; nil: none does
	before          *commit // that the syncer is at; nil: none
	logPages        int     // pages that the log has grown by since the last checkpoint began
	checkpointer    checkpointer
	logTooShort     bool // the log is shorter than it is to be for a server
	calledLately    bool // lately
}

func newWriter(s *Store) *writer {
	return &writer{
		store: s, checkpointer: checkpointer{path: s.path, run: runCheckpoint}, calls: make(chan *call, maxGroup),
		deferred: deferredWrites{due: make(chan struct{}, 1)},
		done:     make(chan struct{}), syncer: newSyncer(s),
	}
}

// call is one write that waits for its commit.
type call struct {
	verb     string
	size     int           // bytes of payloads, about
	harmless bool          // a power cut may undo it after the answer
	mayWait  time.Duration // how long it may wait for a commit of others
	// hears what came of it, once, before the caller is answered or after it has given up; nil: nobody does
	then   func(error)
	do     func(*tx) error
	ticket *engine.Ticket // nil: it stands behind nothing
	err    error
	done   chan struct{}
}

// carryOut is do, unless the call stands behind one that has failed.
func (c *call) carryOut(t *tx) {
	if c.err = c.ticket.Err(); c.err == nil {
		c.err = c.do(t)
	}
	c.ticket.Resolve(c.err)
}

// fail answers that what was carried out cannot be made durable.
func (c *call) fail(why error) {
	c.err = dbfile.Translate(c.verb, why)
	c.ticket.Resolve(c.err)
}

// tx is the transaction that a call is carried out in, of the writer's one connection.
type tx struct {
	session
	queues      queueCache
	leases      leaseCache
	recentRuns  map[engine.ID]*engine.Run // started lately and as they were then
	currentRows map[engine.ID]moving      // the runs that the current call has read or saved, as their rows are
	events      []storekit.Event          // for those who listen, after the commit
	// unclaimed are the runs that were started in this transaction and not claimed in it, with their queues.
	unclaimed map[engine.ID]queueKey
	wrote     bool // the current call has changed something
}

func (t *tx) exec(text *string, args ...arg) (int64, error) {
	if err := t.flushCounts(); err != nil {
		return 0, err
	}
	return t.direct(text, args...)
}

// direct is exec for statements that do not look at what is only remembered.
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

// returning is query for a statement that writes, with one row at most.
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

// notifyStarted notifies of a run that was just started, as though it were Claimed; at the end of
// the transaction left says whether it is.
func (t *tx) notifyStarted(run *engine.Run) {
	t.unclaimed[run.ID] = queueKey{run.Namespace, run.Queue}
	t.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: run.Namespace, Name: run.Queue, Claimed: true})
}

// left takes the events of the transaction. Those for runs that were started and are there to be claimed say so.
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

// silence forgets the events of the transaction.
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

// write submits do to the writer and waits for the commit. do may be called more than once; a caller that gives up
// does not stop it.
func write[V any](ctx context.Context, s *Store, verb string, size int, do func(*tx) (V, error)) (V, error) {
	return writeAs(ctx, s, &call{verb: verb, size: size}, do)
}

// maxAbandoned is the size up to which a call may wait for the writer though nobody waits for it any more.
const maxAbandoned = 16 << 10

// writeAs is write for a call that has more to say of itself. The caller of a large one stays,
// because it counts what a server holds.
func writeAs[V any](ctx context.Context, s *Store, c *call, do func(*tx) (V, error)) (V, error) {
	var none, out V
	if err := ctx.Err(); err != nil {
		return none, dbfile.Translate(c.verb, err)
	}
	c.done = make(chan struct{})
	c.do = func(t *tx) (err error) {
		out, err = do(t)
		return err
	}
	if err := s.submit(ctx, c); err != nil {
		return none, err
	}
	gaveUp := ctx.Done()
	if c.size > maxAbandoned {
		gaveUp = nil
	}
	select {
	case <-c.done:
		c.over()
	case <-gaveUp:
		go func() {
			<-c.done
			c.over()
		}()
		return none, dbfile.Translate(c.verb, ctx.Err())
	}
	if c.err != nil {
		return none, c.err
	}
	return out, nil
}

func (c *call) over() {
	if c.then != nil {
		c.then(c.err)
	}
}

func (s *Store) submit(ctx context.Context, c *call) error {
	s.closing.RLock()
	defer s.closing.RUnlock()
	select {
	case <-s.closed:
		return dbfile.ErrClosed
	default:
	}
	if s.readOnly() {
		return engine.ErrReadOnly
	}
	if c.mayWait > 0 {
		s.writer.deferred.add(c) // which gives it no place: those that come later may be carried out before it
		return nil
	}
	select {
	case s.writer.calls <- c:
		c.ticket.Admit()
		return nil
	case <-ctx.Done():
		return dbfile.Translate(c.verb, ctx.Err())
	}
}

// run ends when calls is closed and empty. A panic in a call ends the process: what is not committed was never
// acknowledged.
func (w *writer) run() {
	defer close(w.done)
	defer func() {
		close(w.syncer.commits)
		<-w.syncer.done
	}()
	for {
		first := w.next
		if w.next = nil; first == nil {
			var ok bool
			if first, ok = w.firstCall(); !ok {
				return
			}
		}
		// Let those run who are about to call, so that they join this commit, and the syncer begin
		// with the one before. Where nobody waits to run this costs nothing.
		runtime.Gosched()
		w.group, w.size, w.deferredInGroup = append(w.group[:0], first), first.size, 0
		w.gather()
		w.carryOut(true)
		w.checkpoint()
	}
}

// gather adds the calls that wait to the group, as far as they fit in, and says whether there were any.
func (w *writer) gather() (more bool) {
	more = w.joinDeferred()
	for w.next == nil && len(w.group) < maxGroup {
		select {
		case c, open := <-w.calls:
			if !open {
				return more
			}
			more = w.join(c) || more
		default:
			return more
		}
	}
	return more
}

// join adds the call to the group if it fits in.
func (w *writer) join(c *call) bool {
	if w.size+c.size > maxGroupBytes {
		w.next = c
		return false
	}
	w.size += c.size
	w.group = append(w.group, c)
	return true
}

// more adds the calls that wait to the group, and says whether there were any. It waits for some as
// long as the commit before is not durable, since this one cannot be written earlier.
func (w *writer) more() bool {
	for !w.gather() {
		if w.before == nil || w.next != nil || len(w.group) >= maxGroup {
			return false
		}
		select {
		case c, open := <-w.calls:
			if open {
				return w.join(c)
			}
			<-w.before.durable
			return false
		case <-w.before.durable:
			w.before = nil
		}
	}
	return true
}

// await returns when the commit before is durable, or why there is not to be another.
func (w *writer) await() error {
	if w.before != nil {
		<-w.before.durable
		w.before = nil
	}
	return w.store.Failure()
}

// carryOut commits the group, as a whole if possible, and has it answered. The group is open when
// those who come meanwhile may join it.
func (w *writer) carryOut(open bool) {
	c, alone, err := w.commit(open)
	switch {
	case alone:
		for _, c := range slices.Clone(w.group) {
			w.group = append(w.group[:0], c)
			w.carryOut(false)
		}
	case err != nil:
		_ = w.await() // or it would say later that all is well
		w.failed(err)
	case c.log == 0:
		w.handOver(c)
		w.syncer.finish(c) // it is at nothing else
	case w.harmless():
		// It is answered at once. It is on disk before the next one is written all the same, for
		// only the last commit of a log may be cut short by a crash (checksum_log.go).
		rest := newCommit()
		rest.log, rest.wrote, c.log = c.log, c.wrote, 0
		w.handOver(c)
		w.syncer.finish(c)
		w.before = rest
		w.store.atDisk.Store(rest)
		w.syncer.commits <- rest
	default:
		w.handOver(c)
		w.before = c
		w.syncer.commits <- c
	}
}

// handOver gives the commit the calls and events that it answers with.
func (w *writer) handOver(c *commit) {
	c.calls, c.events = w.group, w.tx.left()
	w.group, w.tx.events = nil, nil
	clear(w.tx.unclaimed)
}

// failed answers a group that could not be made durable.
func (w *writer) failed(err error) {
	if failure := dbfile.AsFatal(err, false); failure != nil {
		w.store.die(failure)
	} else {
		why := "the last write failed: " + dbfile.Translate("commit", err).Error()
		w.store.proof.failed()
		w.store.trouble.Store(&why)
	}
	for _, c := range w.group {
		c.fail(err)
		close(c.done)
	}
	w.tx.silence()
}

// commit carries the calls out and ends the transaction, which may have to be made durable still.
// alone says that a call failed after it had written and that nothing of the group has happened;
// the calls are then to be carried out one by one. An error means likewise that nothing has
// happened, or that nobody will find it. A call that was refused has its err.
func (w *writer) commit(open bool) (c *commit, alone bool, err error) {
	t := &w.tx
	if failure := w.store.failure.Load(); failure != nil {
		return nil, false, failure
	}
	before := t.conn.TotalChanges()
	if err := t.conn.Begin(t.ctx); err != nil {
		return nil, false, err
	}
	if t.queues.stale {
		if err := t.queues.load(t); err != nil {
			return nil, false, w.rollback(err)
		}
	}
	for i := 0; i < len(w.group) || open && w.more(); i++ {
		if i > 0 {
			engine.Failpoint("sqlite.mid_group")
		}
		call := w.group[i]
		sent := len(t.events)
		t.wrote = false
		clear(t.currentRows)
		if call.carryOut(t); call.err == nil {
			continue
		}
		call.err = dbfile.OfData(call.verb, call.err)
		t.events = t.events[:sent]
		if !t.wrote && dbfile.IsRefusal(call.err) {
			continue
		}
		failure := w.rollback(call.err)
		if len(w.group) > 1 && dbfile.AsFatal(failure, false) == nil {
			return nil, true, nil
		}
		if err := w.await(); err != nil {
			return nil, false, err
		}
		if dbfile.IsRefusal(call.err) { // it undid what it had written
			return newCommit(), false, nil
		}
		return nil, false, failure
	}
	if err := t.flushCounts(); err != nil {
		return nil, false, w.rollback(err)
	}
	if err := w.await(); err != nil {
		return nil, false, w.rollback(err)
	}
	engine.Failpoint("sqlite.before_commit")
	c = newCommit()
	c.wrote = t.conn.TotalChanges() != before
	w.store.unsynced.Store(c)
	w.store.atDisk.Store(c)
	if c.log, err = t.conn.CommitUnsynced(t.ctx); err != nil {
		w.store.atDisk.Store(nil)
		w.store.unsynced.Store(nil)
		close(c.durable)
		return nil, false, w.rollback(err)
	}
	return c, false, nil
}

// harmless says that a power cut may undo the group after its answer.
func (w *writer) harmless() bool {
	return !slices.ContainsFunc(w.group, func(c *call) bool { return !c.harmless })
}

// rollback undoes the transaction, and returns why. SQLite may have done so by itself, as it does
// when the disk is full; then there is nothing to roll back, and that error says nothing.
func (w *writer) rollback(why error) error {
	w.tx.conn.Rollback(w.tx.ctx)
	w.tx.silence()
	w.tx.queues.stale = true
	return why
}

// close checkpoints the log and deletes it. SQLite leaves the log alone while another process has
// the file open, so the checkpoint comes first: a copy of the file alone is then complete. If the
// disk has failed a write, the log stays as it is: SQLite counts pages as checkpointed before they
// are synced, and reports a failed sync only once. The next start checkpoints all of it again.
func (w *writer) close() (err error) {
	if failed := w.checkpointer.close(); sqlite3.FailedWrite(failed) {
		err = failed
	}
	if err == nil && w.store.failure.Load() == nil {
		truncating := w.truncate()
		if sqlite3.FailedWrite(truncating) {
			err = truncating
		} else if truncating != nil && sqlite3.Code(truncating) != 0 && !sqlite3.IsFull(truncating) {
			w.store.log.Warn("checkpoint", "error", truncating)
		}
	}
	if failure := dbfile.AsFatal(err, false); failure != nil {
		w.store.die(failure)
		err = failure
	}
	if sqlite3.FailedWrite(w.store.Failure()) {
		err = errors.Join(err, w.tx.conn.LeaveLog())
	}
	return errors.Join(err, w.tx.conn.Close())
}
