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
// carries out the calls of the next transaction, so that disk and processor work at the same time.
// At most one commit is not durable: the next one is not written before it is.
//
// Other connections see a commit before it is durable. Reads therefore wait for it before they
// answer, because what they read may be lost in a power cut.
type syncer struct {
	store   *Store
	commits chan *commit
	done    chan struct{}
	sync    func(sqlite3.UnsyncedLog) error
}

// commit is a group of calls whose transaction has been committed. They are answered once it is
// durable.
type commit struct {
	calls   []*call
	events  []storekit.Event
	log     sqlite3.UnsyncedLog // the log that must be synced; 0: the commit is durable
	wrote   bool                // it wrote something, so the disk has accepted a write
	begun   time.Time           // when it began to be written
	durable chan struct{}       // closed when it is durable or has failed
	failure *FatalError         // set before durable is closed
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

// finish makes the commit durable, answers its calls and notifies. It never retries a failed sync,
// because the kernel may then treat the unwritten data as written; nothing is acknowledged any
// more.
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
		if len(c.calls) > 0 { // otherwise its calls were answered, and counted, before
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

// seenIsDurable waits until everything that an earlier snapshot may have shown is durable.
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
