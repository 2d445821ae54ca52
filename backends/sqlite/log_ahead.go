package sqlite

import (
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// A commit is on disk in half the time where it overwrites the log and does not lengthen it: a file system writes down the new length, and what
// belongs to the file now, besides. SQLite overwrites its log once that has been folded into the file. So that this is so from the first commit of a
// server, the log is lengthened ahead, with zeros, which nobody takes for frames, between calls.

const (
	logAhead      = (checkpointPages + maxGroup) * (4096 + frameHeaderBytes) // bytes: what is folded at a time, and what a group may add
	lengthenBy    = 256 << 10                                                // bytes, at a time
	lengthenAfter = 10 * time.Millisecond                                    // without a call
	zerosBytes    = 64 << 10                                                 // in one write, of which the library takes no more than twice that
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
	if w.store.room.low() {
		return false
	}
	more, err := w.lengthenAlone()
	if failure := fatal(err, false); failure != nil {
		w.store.die(failure)
	}
	return more && err == nil
}

// lengthenAlone has the log to itself meanwhile: zeros of ours must not come upon what another program has just added to it.
func (w *writer) lengthenAlone() (more bool, err error) {
	c, ctx := w.tx.conn, w.tx.ctx
	if _, err := c.exec(ctx, &beginSQL); err != nil {
		return false, err
	}
	log, err := c.logPlace()
	if err == nil {
		more, err = c.lengthen(log)
	}
	if _, ending := c.exec(ctx, &rollbackSQL); err == nil {
		err = ending
	}
	return more, err
}

// lengthen adds zeros to the log at a place, and says whether there are more to add.
func (h *handle) lengthen(log uintptr) (more bool, err error) {
	if fileAt(log).methods == 0 { // it is not open yet
		return false, nil
	}
	under := underlying{h.tls, log}
	size, code := under.size()
	if err := h.check(code); err != nil || size >= logAhead {
		return false, err
	}
	zeros := libc.Xcalloc(h.tls, 1, zerosBytes)
	if zeros == 0 {
		return false, nil // it is not needed
	}
	defer libc.Xfree(h.tls, zeros)
	for end := size + lengthenBy; size < end; size += zerosBytes {
		if err := h.check(under.write(zeros, zerosBytes, size)); err != nil {
			return false, err
		}
	}
	return true, h.check(syncFile(h.tls, log, lib.SQLITE_SYNC_NORMAL))
}
