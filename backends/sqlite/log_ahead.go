package sqlite

import (
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// A commit is on disk in half the time where it overwrites the log and does not lengthen it: a file system writes down the new length, and what
// belongs to the file now, besides. SQLite overwrites its log once that has been folded into the file. So that this is so from the first commit of a
// server, the log is lengthened ahead, with zeros, which nobody takes for frames, between calls.

const (
	logAhead      = (checkpointPages + maxGroup) * sqlite3.LogFrameBytes // bytes: what is folded at a time, and what a group may add
	lengthenBy    = 256 << 10                                            // bytes, at a time
	lengthenAfter = 10 * time.Millisecond                                // without a call
)

// firstCall waits for a call. While there is none it lengthens the log, and folds the rest of it. false says that there will be none.
func (w *writer) firstCall() (*call, bool) {
	for {
		short := w.short && w.store.failure.Load() == nil
		var durable chan struct{}
		var quiet <-chan time.Time
		switch {
		case !short || w.folder.over != nil:
		case w.before != nil: // its sync would have to see to the zeros too
			durable = w.before.durable
		case w.called: // and may be again at once, by who was answered
			quiet = time.After(lengthenAfter)
		default:
			select {
			case c, open := <-w.calls:
				return w.first(c, open)
			default:
				w.short = w.lengthen()
				continue
			}
		}
		select {
		case c, open := <-w.calls:
			return w.first(c, open)
		case <-w.riders.due:
			if c := w.riders.take(1); c != nil {
				return w.first(c[0], true)
			}
		case f := <-w.folder.over:
			w.foldRest(f)
		case <-durable:
			w.before = nil
		case <-quiet:
			w.called = false
		}
	}
}

// first is the call that begins a group. When there are to be no more, those that still ride do.
func (w *writer) first(c *call, open bool) (*call, bool) {
	w.called = true
	if !open {
		if left := w.riders.take(1); left != nil {
			return left[0], true
		}
	}
	return c, open
}

// lengthen adds some zeros to the log and has them on disk, unless there is little room. more says that it is shorter than it is to be. A disk that
// fails this fails the next commit too.
func (w *writer) lengthen() (more bool) {
	if w.store.space.Low() {
		return false
	}
	more, err := w.lengthenAlone()
	if failure := dbfile.AsFatal(err, false); failure != nil {
		w.store.die(failure)
	}
	return more && err == nil
}

// lengthenAlone has the log to itself meanwhile: zeros of ours must not come upon what another program has just added to it.
func (w *writer) lengthenAlone() (more bool, err error) {
	c, ctx := w.tx.conn, w.tx.ctx
	if err := c.Begin(ctx); err != nil {
		return false, err
	}
	more, err = c.LengthenLog(logAhead, lengthenBy)
	if ending := c.Rollback(ctx); err == nil {
		err = ending
	}
	return more, err
}
