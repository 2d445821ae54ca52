package sqlite

import (
	"context"

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
	maxGroupBytes = 8 << 20 // approximate bytes of payloads in one commit
)

// writer is the goroutine that writes. It takes all waiting calls, carries them out in one
// transaction, together with those that come meanwhile, and commits once. So calls share the cost
// of a commit, and a single call does not wait for others.
//
// Calls read before they write, so a refused call has usually changed nothing, and the transaction
// goes on without it. If a call fails after it has written, the whole transaction is rolled back
// and each call is carried out again in its own transaction. A call must therefore have no effect
// outside its transaction.
type writer struct {
	store           *Store
	calls           chan *call
	deferred        deferredWrites
	done            chan struct{}
	syncer          *syncer
	tx              tx
	group           []*call
	size            int     // approximate size of the group's payloads
	deferredInGroup int     // deferred writes in the group
	next            *call   // did not fit into the group and begins the next; nil: none
	before          *commit // the commit that the syncer works on; nil: none
	logPages        int     // pages that the log has grown by since the last checkpoint began
	checkpointer    checkpointer
	logTooShort     bool // the log is shorter than a server's log should be
	calledLately    bool // there were calls recently
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
	size     int           // approximate bytes of payloads
	harmless bool          // a power cut may undo it after its answer
	mayWait  time.Duration // how long it may wait to share the commit of others
	// called once with the outcome, before the caller is answered or after it has given up; may be
	// nil
	then   func(error)
	do     func(*tx) error
	ticket *engine.Ticket // nil: no place in a sequence
	err    error
	done   chan struct{}
}

// carryOut runs do, unless an earlier call of the sequence has failed.
func (c *call) carryOut(t *tx) {
	if c.err = c.ticket.Err(); c.err == nil {
		c.err = c.do(t)
	}
	c.ticket.Resolve(c.err)
}

// fail answers that the call cannot be made durable.
func (c *call) fail(why error) {
	c.err = dbfile.Translate(c.verb, why)
	c.ticket.Resolve(c.err)
}

// write submits do to the writer and waits for the commit. do may be called more than once; it is
// not stopped when the caller gives up.
func write[V any](ctx context.Context, s *Store, verb string, size int, do func(*tx) (V, error)) (V, error) {
	return writeAs(ctx, s, &call{verb: verb, size: size}, do)
}

// maxAbandoned is the size up to which a call may wait for the writer although its caller has given
// up.
const maxAbandoned = 16 << 10

// writeAs is write for a call with further options. The caller of a large call waits in any case,
// because the server counts the memory of its calls in progress.
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
		s.writer.deferred.add(c) // no place in a sequence: later calls may be carried out before it
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

// run ends when calls is closed and empty. A panic in a call ends the process: uncommitted calls
// were not acknowledged.
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
		// Let goroutines run that are about to call, so that they join this commit, and let the
		// syncer begin with the last one. This costs nothing if none is waiting to run.
		runtime.Gosched()
		w.group, w.size, w.deferredInGroup = append(w.group[:0], first), first.size, 0
		w.gather()
		w.carryOut(true)
		w.checkpoint()
	}
}

// gather adds waiting calls to the group as far as they fit, and says whether there were any.
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

// join adds the call to the group if it fits.
func (w *writer) join(c *call) bool {
	if w.size+c.size > maxGroupBytes {
		w.next = c
		return false
	}
	w.size += c.size
	w.group = append(w.group, c)
	return true
}

// more adds waiting calls to the group, and says whether there were any. It waits for calls while
// the last commit is not durable, because the next one cannot be written earlier.
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

// await waits until the last commit is durable, or returns why there must not be another.
func (w *writer) await() error {
	if w.before != nil {
		<-w.before.durable
		w.before = nil
	}
	return w.store.Failure()
}

// carryOut commits the group, as a whole if possible, and has it answered. If open is set, calls
// that come meanwhile may join the group.
func (w *writer) carryOut(open bool) {
	c, alone, err := w.commit(open)
	switch {
	case alone:
		for _, c := range slices.Clone(w.group) {
			w.group = append(w.group[:0], c)
			w.carryOut(false)
		}
	case err != nil:
		_ = w.await() // otherwise it would report success later
		w.failed(err)
	case c.log == 0:
		w.handOver(c)
		w.syncer.finish(c) // the syncer is idle
	case w.harmless():
		// Answer at once. The commit is on disk before the next one is written, because only the
		// last commit of a log may be cut short by a crash (sqlite3/log_checksum.go).
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

// handOver moves the calls and events that the commit answers to it.
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

// commit carries out the calls and ends the transaction, which may still have to be made durable.
// alone means that a call failed after it had written: nothing of the group has happened, and the
// calls must be carried out one by one. After an error nothing has happened either, or nobody will
// find it. A refused call has its err set.
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
		if dbfile.IsRefusal(call.err) { // it undid its writes
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

// harmless says whether a power cut may undo the group after its answer.
func (w *writer) harmless() bool {
	return !slices.ContainsFunc(w.group, func(c *call) bool { return !c.harmless })
}

// rollback undoes the transaction and returns why. SQLite may have rolled back by itself, for
// example because the disk is full; then the error of this rollback is ignored.
func (w *writer) rollback(why error) error {
	w.tx.conn.Rollback(w.tx.ctx)
	w.tx.silence()
	w.tx.queues.stale = true
	return why
}

// close checkpoints the log and deletes it. SQLite keeps the log while another process has the file
// open, so the checkpoint comes first: then a copy of the file alone is complete. If the disk has
// failed a write, the log stays, because SQLite counts pages as checkpointed before they are synced
// and reports a failed sync only once. The next start checkpoints all of it again.
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
