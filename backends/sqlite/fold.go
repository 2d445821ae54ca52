package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// The log is folded into the file (a checkpoint) when it has grown, on a connection of its own while the writer goes on; what came meanwhile is folded
// by the writer, so that SQLite begins the log anew with the next commit.

const (
	// checkpointPages is how much the log grows before it is folded into the file.
	checkpointPages = 4000
	// restPages is how much the log may grow meanwhile before the writer waits.
	restPages = checkpointPages / 2
)

// folder is the connection by which the log is folded while the writer is at work.
type folder struct {
	path string
	fold func(context.Context, *sqlite3.Conn) folding
	conn *dbfile.Reader // nil: none yet
	over chan folding   // nil: it is not at work
}

// folding is what came of it.
type folding struct {
	frames, folded int64 // in the log, and of these in the file
	err            error
}

// foldOn folds what readers allow.
func foldOn(ctx context.Context, c *sqlite3.Conn) (f folding) {
	f.frames, f.folded, f.err = c.Checkpoint(ctx)
	return f
}

// start begins to fold the log.
func (f *folder) start() {
	over := make(chan folding, 1)
	f.over = over
	go func() {
		var err error
		if f.conn == nil {
			f.conn, err = dbfile.OpenReader(f.path)
		}
		if err != nil {
			over <- folding{err: err}
			return
		}
		done := f.fold(context.Background(), f.conn.Conn)
		if done.err == nil && done.folded > 0 { // SQLite leaves that to who folds the last of a log, which is the writer, whom everybody waits for
			done.err = f.conn.SyncFile()
		}
		over <- done
	}()
}

// close waits for what is under way, and says what came of it.
func (f *folder) close() (err error) {
	if f.over != nil {
		err = (<-f.over).err
		f.over = nil
	}
	if f.conn != nil {
		f.conn.Close()
	}
	return err
}

// checkpoint looks, between two groups, whether the log is to be folded or has been. What cannot be folded now, because of a reader, is after the next
// pages.
func (w *writer) checkpoint() {
	if cached, err := w.tx.conn.CacheBytes(); err == nil {
		w.store.cached.Store(cached)
	}
	pages, err := w.tx.conn.TakePagesWritten()
	if err != nil || w.store.failure.Load() != nil {
		return
	}
	w.log += pages
	switch {
	case w.folder.over == nil:
		if w.log >= checkpointPages && w.await() == nil {
			w.log = 0
			w.folder.start()
		}
	case w.log >= restPages:
		w.foldRest(<-w.folder.over)
	default:
		select {
		case f := <-w.folder.over:
			w.foldRest(f)
		default:
		}
	}
}

// foldRest folds what has come while the log was folded, and all of it where that has merely not come about, as without a file left to open:
// the writer has its files.
func (w *writer) foldRest(f folding) {
	w.folder.over = nil
	rest := f.err == nil && w.log > 0 || f.err != nil && dbfile.AsFatal(f.err, !sqlite3.FailedWrite(f.err)) == nil
	if rest && w.await() == nil {
		w.log = 0
		f = foldOn(w.tx.ctx, w.tx.conn)
	}
	err := f.err
	if err == nil && f.folded == f.frames {
		w.store.folded.Store(w.store.Now().UnixMicro())
	}
	if err == nil && f.frames*4096 > dbfile.MaxLogBytes {
		err = w.truncate()
		w.short = w.store.serving
	}
	if failure := dbfile.AsFatal(err, false); failure != nil {
		w.store.die(failure)
	} else if err != nil && sqlite3.Code(err) != 0 && !sqlite3.IsFull(err) {
		w.store.log.Warn("checkpoint", "error", err)
	}
}

// truncate also cuts the log short. It waits for readers, but not for long: writes wait for it.
func (w *writer) truncate() error {
	if err := w.tx.conn.Script(w.tx.ctx, "pragma busy_timeout = 200"); err != nil {
		return err
	}
	err := w.tx.settle()
	if err == nil {
		_, err = w.tx.conn.CheckpointAll(w.tx.ctx)
	}
	if resetting := w.tx.conn.Script(w.tx.ctx, "pragma busy_timeout = 5000"); err == nil {
		err = resetting
	}
	return err
}
