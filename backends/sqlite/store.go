// Package sqlite keeps runs, steps and workers in one SQLite file. It implements engine.Store,
// whose comments are the contract. The statements are in sql/, one per file, under the same names
// as in the Postgres backend.
//
// One goroutine writes: it carries out all waiting calls in one transaction and commits once
// (write.go). Another makes the commit durable and answers the calls, while the next transaction
// runs (syncer.go). Reads use a small pool of connections that cannot write, each method on one
// snapshot (read.go). A lock on a file beside the database keeps other processes out, because
// notifications and caches are inside this process.
//
// Files with the same name in both backends are meant to be read side by side:
//
//   - Opening and closing: store.go.
//   - Operations: those of package storelogic (operations.go), over the rows of a transaction
//     (tx_runs.go, tx_steps.go, tx_schedules.go, tx_records.go). The most frequent ones have
//     statements of their own: starts (runs.go), claims (work.go, claimed.go, handoff.go), step
//     results and ends of runs (complete.go), and the register of workers (workers.go).
//   - Caches of the writer, so that it need not read: caches.go. Writes that wait for another
//     commit: deferred.go.
//   - Rows: run_row.go (the columns of runs), rows.go (those of other tables), values.go.
//   - Reads: views.go, views_of_run.go, counts.go, keys.go, upkeep.go, all through read.go.
//   - The file: migrate.go, checkpoint.go, health.go, maintenance.go, and read_only.go (access
//     while
//     another process runs the server).
//
// Below it: internal/sqlite3, the driver; internal/dbfile, the database file (lock, identity,
// permissions, read-only access); internal/backup, copies of whole files.
package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

const (
	readerCount  = 4
	readDeadline = 5 * time.Second
	maxAttempts  = 10 // attempts per answer at a file that others open and close meanwhile
	// minVersion is the first SQLite in which a checkpoint during a write cannot corrupt the file.
	minVersion = 3_051_003
)

// Store is an open database. Its methods are those of engine.Store.
type Store struct {
	storelogic.Operations

	ahead   func() time.Duration // of the machine's clock, in tests; nil: not at all
	path    string               // absolute, without symbolic links
	log     *slog.Logger
	lock    *dbfile.Lock
	version string
	schema  int
	// durability is the journal mode and synchronous level of the writer's connection; empty for a
	// read-only store.
	durability string
	checked    bool // the pages of the file have checksums; unknown for a read-only store

	space     dbfile.DiskSpace
	identity  dbfile.Identity
	listeners storekit.Listeners
	writer    *writer // nil: read-only
	serving   bool    // opened for a server
	// unsynced is the commit that a snapshot may show but that is not durable yet.
	unsynced atomic.Pointer[commit]
	atDisk   atomic.Pointer[commit] // the commit that is being written or synced; at most one
	loads    loads
	readers  chan *dbfile.Reader // a nil entry is not connected yet

	closing sync.RWMutex  // read-locked while a call is handed to the writer
	closed  chan struct{} // closed by Close, once

	fatal   chan struct{} // closed with failure, once
	failure atomic.Pointer[FatalError]
	trouble atomic.Pointer[string] // why the last group of writes was not made durable; nil: it was
	proof   proof                  // checks whether writes work again

	cached       atomic.Int64 // size of the writer's page cache in bytes
	commits      storekit.CommitCounts
	checkpointed atomic.Int64 // when the whole log was last checkpointed, in microseconds; 0: not since the start
}

var (
	_ engine.Store   = (*Store)(nil)
	_ engine.Commits = (*Store)(nil)
)

// ConfigureProcess makes settings of SQLite for the whole process, including other packages that
// use the library. It must be called before SQLite is first used. A store works without them, only
// slower.
func ConfigureProcess() error { return sqlite3.OwnPageCaches() }

// Open opens the database file at path, and makes the file and its directory if they do not exist.
// The path stays locked against other processes until Close. With o.ReadOnly, see read_only.go.
func Open(ctx context.Context, path string, o engine.OpenOptions) (*Store, error) {
	return openUpTo(ctx, path, o, maxRenewedAtStart)
}

// openUpTo is Open; it rewrites a file without checksums if the file has at most that size.
func openUpTo(ctx context.Context, path string, o engine.OpenOptions, largest int64) (*Store, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Store{log: o.Log, ahead: o.Ahead, readers: make(chan *dbfile.Reader, readerCount),
		closed: make(chan struct{}), fatal: make(chan struct{})}
	s.Operations = storelogic.NewOperations(s.transact)
	if o.ReadOnly {
		if err := s.openReadOnly(ctx, path); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := s.open(ctx, path, o, largest); err != nil {
		if s.lock != nil {
			s.lock.Release()
		}
		return nil, err
	}
	for range readerCount {
		s.readers <- nil
	}
	s.serving = o.Serving
	s.writer.logTooShort = o.Serving
	go s.writer.run()
	go s.writer.syncer.run()
	return s, nil
}

func (s *Store) open(ctx context.Context, path string, o engine.OpenOptions, largest int64) (err error) {
	if s.path, err = dbfile.Prepare(path); err != nil {
		return err
	}
	if s.lock, err = dbfile.Acquire(s.path); err != nil {
		return err
	}
	if err := dbfile.RefuseLoneLog(s.path); err != nil {
		return err
	}
	if err := dbfile.RemoveLeftovers(s.path); err != nil { // not a reason to refuse to serve
		s.log.Warn("cannot delete leftover files beside the database", "error", err)
	}
	if err := dbfile.CreatePrivately(s.path); err != nil {
		return err
	}
	if err := dbfile.RefuseWritableByOthers(s.path, s.log); err != nil {
		return err
	}
	c, err := connectWriter(s.path, s.log)
	if err != nil {
		return dbfile.OpenError(s.path, err)
	}
	s.version, s.schema, err = prepareSchema(ctx, c, s.path, o)
	if err == nil && !o.KeepSchema {
		c, err = s.withChecksums(ctx, c, largest)
	}
	if err == nil {
		s.durability, err = durabilityOf(ctx, c)
	}
	if err == nil {
		s.space.Dir, s.space.Changed = filepath.Dir(s.path), s.tellSpace
		s.writer = newWriter(s)
		s.proof.pause = proofPause
		s.writer.tx = tx{session: session{conn: c, ctx: context.Background()}, currentRows: map[engine.ID]mutableRun{},
			unclaimed: map[engine.ID]queueKey{}}
		err = s.writer.tx.queues.load(&s.writer.tx)
	}
	if err == nil {
		// If the last server's sync failed, nobody knows which part of the log is on disk, although
		// it can be read. A checkpoint makes it durable in the file.
		if err = s.writer.truncate(); sqlite3.IsFull(err) {
			err = nil
		}
	}
	if err == nil {
		s.identity, err = dbfile.Identify(s.path, s.lock)
	}
	if err != nil {
		if c != nil {
			c.Close()
		}
		return dbfile.OpenError(s.path, err)
	}
	return nil
}

// connectWriter opens the only connection that writes. Its settings are part of the DSN because
// they must apply from its first statement on.
func connectWriter(path string, log *slog.Logger) (*sqlite3.Conn, error) {
	synchronous := "full"
	if level := os.Getenv(sqlite3.UnsafeSynchronous); level == "normal" {
		log.Warn(
			"KAGZI_UNSAFE_SYNCHRONOUS=normal is set: A POWER CUT WILL LOSE ACKNOWLEDGED WRITES; it is for measurements only")
		synchronous = level
	} else if level != "" {
		return nil, engine.Invalid(sqlite3.UnsafeSynchronous, "%q is unknown, want normal or nothing", level)
	}
	return sqlite3.Open(sqlite3.DSN(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)",
		"synchronous("+synchronous+")", "journal_mode(wal)",
		fmt.Sprintf("journal_size_limit(%d)", dbfile.MaxLogBytes), "wal_autocheckpoint(0)", "cache_size(-65536)"))
}

// prepareSchema migrates the schema, unless the options keep it, and returns SQLite's version and
// the schema's number.
func prepareSchema(ctx context.Context, c *sqlite3.Conn, path string, o engine.OpenOptions) (version string, number int,
	err error) {
	if version, err = soundVersion(ctx, c); err != nil {
		return "", 0, err
	}
	if err = dbfile.RefuseMoved(ctx, c); err != nil {
		return "", 0, err
	}
	number, err = migrate(ctx, c, path, o)
	return version, number, err
}

// soundVersion returns SQLite's version, or an error for one that corrupts files.
func soundVersion(ctx context.Context, c *sqlite3.Conn) (version string, err error) {
	if version, err = c.Version(ctx); err != nil {
		return "", err
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil ||
		major*1_000_000+minor*1000+patch < minVersion {
		return "", fmt.Errorf("SQLite %s has a bug that corrupts files; 3.51.3 or later is needed", version)
	}
	return version, nil
}

// pulledAway returns the failure of a server whose files were moved or replaced; nil if they are in
// place.
func (s *Store) pulledAway() *FatalError {
	if err := s.identity.Lost(s.path); err != nil {
		return dbfile.DiskFailed(err)
	}
	return nil
}

// Space implements engine.Disk.
func (s *Store) Space() engine.DiskSpace {
	if s.readOnly() {
		return engine.DiskSpace{}
	}
	left, low, known := s.space.Left()
	return engine.DiskSpace{Free: left, Low: low, Known: known}
}

var _ engine.Disk = (*Store)(nil)

// tellSpace logs that the disk has too little space for new runs, and that it has enough again.
func (s *Store) tellSpace(left uint64, low bool) {
	if low {
		s.log.Warn("the disk is nearly full; refusing new runs until there is room, existing runs go on", "free",
			dbfile.BytesText(int64(left)), "needed", dbfile.BytesText(dbfile.LowWater), "directory", s.space.Dir)
		return
	}
	s.log.Info("the disk has room again; taking new runs", "free", dbfile.BytesText(int64(left)), "directory",
		s.space.Dir)
}

// lacksRoom reports whether new runs of clients are refused because the disk is nearly full. A
// read-only store refuses them for another reason.
func (s *Store) lacksRoom() bool { return !s.readOnly() && s.space.Low() }

// SetHolder adds a line about this process, such as its address, to the error that a second server
// gets for the locked database.
func (s *Store) SetHolder(text string) error {
	if s.readOnly() {
		return engine.ErrReadOnly
	}
	return s.lock.Describe(text)
}

// Now returns the wall clock's time, or that of a test's clock, which is ahead of it.
func (s *Store) Now() time.Time {
	now := time.Now()
	if s.ahead != nil {
		now = now.Add(s.ahead())
	}
	return engine.Micros(now)
}

// Uncertainty returns 0, because Now reads the clock itself.
func (s *Store) Uncertainty() time.Duration { return 0 }

// stalledAfter is how long one commit may take before Health reports a stalled disk.
const stalledAfter = 4 * time.Second

// Health checks that the files are in place, and that the last group of writes succeeded and no
// write hangs. A read-only store is healthy until it is closed.
func (s *Store) Health(context.Context) error {
	select {
	case <-s.closed:
		return dbfile.ErrClosed
	default:
	}
	// First, because a hanging disk may not answer the check of the files either.
	if c := s.atDisk.Load(); c != nil && time.Since(c.begun) >= stalledAfter {
		return &engine.Error{Kind: engine.KindUnavailable,
			Message: fmt.Sprintf("the disk has not taken a write for %s", time.Since(c.begun).Truncate(time.Second))}
	}
	if !s.readOnly() {
		if failure := s.pulledAway(); failure != nil {
			s.die(failure)
		}
	}
	if why := s.trouble.Load(); why != nil {
		s.proveAgain()
		return &engine.Error{Kind: engine.KindUnavailable, Message: *why}
	}
	return nil
}

// proveAgain starts a check whether writes work again; the next Health returns the result.
func (s *Store) proveAgain() {
	s.closing.RLock() // Close waits for a check that has begun
	defer s.closing.RUnlock()
	select {
	case <-s.closed:
		return
	default:
	}
	if !s.readOnly() && s.Failure() == nil {
		s.proof.begin(s.prove)
	}
}

// CommitSizes returns how many writes shared a commit.
func (s *Store) CommitSizes() engine.CommitSizes { return s.commits.Sizes() }

// Fatal returns a channel that is closed when the disk failed a write or the file is damaged.
func (s *Store) Fatal() <-chan struct{} { return s.fatal }

// Failure returns a *FatalError once Fatal is closed.
func (s *Store) Failure() error {
	if f := s.failure.Load(); f != nil {
		return f
	}
	return nil
}

// die stops the store from acknowledging anything.
func (s *Store) die(failure *FatalError) {
	why := failure.Error()
	s.trouble.Store(&why)
	if s.failure.CompareAndSwap(nil, failure) {
		close(s.fatal)
	}
}

// Close waits for the writes that have begun, and closes the store.
func (s *Store) Close() error {
	s.closing.Lock()
	select {
	case <-s.closed:
		s.closing.Unlock()
		if !s.readOnly() {
			<-s.writer.done
		}
		return nil
	default:
	}
	close(s.closed)
	if s.readOnly() {
		s.closing.Unlock()
		s.closeReaders()
		return nil
	}
	close(s.writer.calls)
	s.closing.Unlock()
	<-s.writer.done
	s.proof.wait()
	s.closeReaders()
	err := s.writer.close()
	s.lock.Release()
	if err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// closeReaders waits for running reads; each ends within its deadline.
func (s *Store) closeReaders() {
	for range readerCount {
		if c := <-s.readers; c != nil {
			c.Close()
		}
	}
}

// FatalError is the reason why nothing may be acknowledged any more.
type FatalError = dbfile.FatalError

var errExhausted = dbfile.ErrExhausted

// Listen sends what this process commits. No other process can write to the file, so notifications
// need not leave the process.
func (s *Store) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	if s.readOnly() {
		return s.listenReadOnly(ctx, notify)
	}
	if err := s.listeners.Listen(ctx, s.closed, notify, o); err != nil {
		return err
	}
	return dbfile.ErrClosed
}
