package sqlite

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// syncer is the goroutine that makes commits durable and answers their calls. Meanwhile the writer
// carries out the calls of the next transaction, so that neither the disk nor the processor waits
// for the other. There is one commit at a time that is not durable: the next is not written before
// it is.
//
// Other connections see such a commit. Who has read waits for it before the answer, for what was
// read may not be there after a power cut.
type syncer struct {
	store   *Store
	commits chan *commit
	done    chan struct{}
	sync    func(sqlite3.UnsyncedLog) error
}

// commit is a group of calls whose transaction has been committed, and that are answered once that is durable.
type commit struct {
	calls   []*call
	events  []storekit.Event
	log     sqlite3.UnsyncedLog // the log whose sync is owed; 0: the commit is durable
	wrote   bool                // something, which the disk has taken
	begun   time.Time           // when it was about to be written
	durable chan struct{}       // closed when it is, or when it failed
	failure *FatalError         // to be read once that is closed
}

func newSyncer(s *Store) *syncer {
	return &syncer{store: s, commits: make(chan *commit), done: make(chan struct{}), sync: sqlite3.UnsyncedLog.Sync}
}

func newCommit() *commit { return &commit{begun: time.Now(), durable: make(chan struct{})} }

// run ends when commits is closed.
func (s *syncer) run() {
	defer close(s.done)
	for c := range s.commits {
		s.finish(c)
	}
}

// finish makes the commit durable, answers and notifies. A sync that failed is not tried again:
// what was not written then may count as written now. So nothing is acknowledged any more.
func (s *syncer) finish(c *commit) {
	var err error
	if c.log != 0 {
		err = s.sync(c.log)
	}
	if err != nil {
		c.failure = dbfile.DiskFailed(err)
	} else {
		engine.Failpoint("sqlite.after_commit")
		c.failure = s.store.pulledAway()
	}
	if c.failure != nil {
		s.store.die(c.failure)
		for _, call := range c.calls {
			call.fail(c.failure)
		}
		c.events = nil
	} else {
		if c.wrote {
			s.store.trouble.Store(nil)
		}
		if len(c.calls) > 0 { // they were counted when they were answered, where that was before
			s.store.commits.Add(len(c.calls))
		}
		s.store.unsynced.Store(nil)
	}
	s.store.atDisk.CompareAndSwap(c, nil)
	close(c.durable)
	for _, call := range c.calls {
		close(call.done)
	}
	s.store.listeners.Notify(c.events)
}

// seenIsDurable waits until all is durable that a snapshot taken before may have shown.
func (s *Store) seenIsDurable(ctx context.Context, verb string) error {
	c := s.unsynced.Load()
	if c == nil {
		return nil
	}
	select {
	case <-c.durable:
	case <-ctx.Done():
		return dbfile.Translate(verb, ctx.Err())
	}
	if c.failure != nil {
		return dbfile.Translate(verb, c.failure)
	}
	return nil
}
