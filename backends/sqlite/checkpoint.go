package sqlite

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// When the log has grown, a checkpoint copies it into the file, on its own connection while the
// writer goes on. The writer then checkpoints what was added meanwhile, so that SQLite restarts the
// log with the next commit.

const (
	// checkpointPages is the growth of the log that starts a checkpoint.
	checkpointPages = 4000
	// restPages is the growth of the log during a checkpoint after which the writer waits.
	restPages = checkpointPages / 2
)

// checkpointer runs checkpoints concurrently with the writer.
type checkpointer struct {
	path string
	run  func(context.Context, *sqlite3.Conn) checkpointResult
	conn *dbfile.Reader        // nil: not opened yet
	over chan checkpointResult // nil: not running
}

// checkpointResult is the outcome of a checkpoint.
type checkpointResult struct {
	frames, copied int64 // frames in the log, and how many of them were copied into the file
	err            error
}

// runCheckpoint checkpoints as much as readers allow.
func runCheckpoint(ctx context.Context, c *sqlite3.Conn) (f checkpointResult) {
	f.frames, f.copied, f.err = c.Checkpoint(ctx)
	return f
}

// start begins a checkpoint.
func (f *checkpointer) start() {
	over := make(chan checkpointResult, 1)
	f.over = over
	go func() {
		var err error
		if f.conn == nil {
			f.conn, err = dbfile.OpenReader(f.path)
		}
		if err != nil {
			over <- checkpointResult{err: err}
			return
		}
		done := f.run(context.Background(), f.conn.Conn)
		if done.err == nil && done.copied > 0 {
			// SQLite leaves this sync to the checkpoint that completes the log. That one is the
			// writer's, and all calls would wait for it.
			done.err = f.conn.SyncFile()
		}
		over <- done
	}()
}

// close waits for a running checkpoint and returns its error.
func (f *checkpointer) close() (err error) {
	if f.over != nil {
		err = (<-f.over).err
		f.over = nil
	}
	if f.conn != nil {
		f.conn.Close()
	}
	return err
}

// checkpoint begins or completes a checkpoint between two groups. What a reader blocks now is left
// to the next one.
func (w *writer) checkpoint() {
	if cached, err := w.tx.conn.CacheBytes(); err == nil {
		w.store.cached.Store(cached)
	}
	pages, err := w.tx.conn.TakePagesWritten()
	if err != nil || w.store.failure.Load() != nil {
		return
	}
	w.logPages += pages
	switch {
	case w.checkpointer.over == nil:
		if w.logPages >= checkpointPages && w.await() == nil {
			w.logPages = 0
			w.checkpointer.start()
		}
	case w.logPages >= restPages:
		w.checkpointRest(<-w.checkpointer.over)
	default:
		select {
		case f := <-w.checkpointer.over:
			w.checkpointRest(f)
		default:
		}
	}
}

// checkpointRest checkpoints what was added during a checkpoint. If that checkpoint could not run,
// for example because no file could be opened, it checkpoints the whole log on the writer's
// connection.
func (w *writer) checkpointRest(f checkpointResult) {
	w.checkpointer.over = nil
	rest := f.err == nil && w.logPages > 0 || f.err != nil && dbfile.AsFatal(f.err, !sqlite3.FailedWrite(f.err)) == nil
	if rest && w.await() == nil {
		w.logPages = 0
		f = runCheckpoint(w.tx.ctx, w.tx.conn)
	}
	err := f.err
	if err == nil && f.copied == f.frames {
		w.store.checkpointed.Store(w.store.Now().UnixMicro())
	}
	if err == nil && f.frames*4096 > dbfile.MaxLogBytes {
		err = w.truncate()
		w.logTooShort = w.store.serving
	}
	if failure := dbfile.AsFatal(err, false); failure != nil {
		w.store.die(failure)
	} else if err != nil && sqlite3.Code(err) != 0 && !sqlite3.IsFull(err) {
		w.store.log.Warn("checkpoint", "error", err)
	}
}

// truncate checkpoints the log and truncates it. It waits for readers only briefly, because writes
// wait for it.
func (w *writer) truncate() error {
	if err := w.tx.conn.Script(w.tx.ctx, "pragma busy_timeout = 200"); err != nil {
		return err
	}
	err := w.tx.flushCounts()
	if err == nil {
		_, err = w.tx.conn.CheckpointAll(w.tx.ctx)
	}
	if resetting := w.tx.conn.Script(w.tx.ctx, "pragma busy_timeout = 5000"); err == nil {
		err = resetting
	}
	return err
}

// A commit that overwrites the log is on disk in half the time of one that lengthens it, because
// then the file system also writes its own metadata. SQLite overwrites its log after a checkpoint.
// To have this from a server's first commit on, the log is lengthened between calls with zeros,
// which are not frames.

const (
	// bytes between two checkpoints, and what a group may add
	logAhead      = (checkpointPages + maxGroup) * sqlite3.LogFrameBytes
	lengthenBy    = 256 << 10             // bytes per step
	lengthenAfter = 10 * time.Millisecond // time without a call
)

// firstCall waits for a call. Meanwhile it lengthens the log and completes checkpoints. false means
// that there will be no call.
func (w *writer) firstCall() (*call, bool) {
	for {
		short := w.logTooShort && w.store.failure.Load() == nil
		var durable chan struct{}
		var quiet <-chan time.Time
		switch {
		case !short || w.checkpointer.over != nil:
		case w.before != nil: // its sync would have to write the zeros too
			durable = w.before.durable
		case w.calledLately: // callers that were answered may call again at once
			quiet = time.After(lengthenAfter)
		default:
			select {
			case c, open := <-w.calls:
				return w.first(c, open)
			default:
				w.logTooShort = w.lengthen()
				continue
			}
		}
		select {
		case c, open := <-w.calls:
			return w.first(c, open)
		case <-w.deferred.due:
			if c := w.deferred.take(1); c != nil {
				return w.first(c[0], true)
			}
		case f := <-w.checkpointer.over:
			w.checkpointRest(f)
		case <-durable:
			w.before = nil
		case <-quiet:
			w.calledLately = false
		}
	}
}

// first returns the call that begins a group. When the store is being closed, deferred writes begin
// one.
func (w *writer) first(c *call, open bool) (*call, bool) {
	w.calledLately = true
	if !open {
		if left := w.deferred.take(1); left != nil {
			return left[0], true
		}
	}
	return c, open
}

// lengthen adds some zeros to the log and syncs them, unless the disk is nearly full. more reports
// whether the log is still too short. Its errors are ignored, because a disk that fails this fails
// the next commit too.
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

// lengthenAlone locks the log meanwhile, so that zeros do not overwrite what another program has
// just added.
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
