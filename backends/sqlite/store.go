// Package sqlite keeps runs, steps and workers in one SQLite file. It implements engine.Store,
// whose comments are the contract. The statements are in sql/, one a file, beside their twins of
// the Postgres backend.
//
// One goroutine writes: it carries out all calls that wait in one transaction and commits once
// (write.go); another makes the commit durable and answers, while the next transaction runs
// (syncer.go). Reads go to a small pool of connections that cannot write, each method on one
// snapshot (read.go). A lock on a file beside the database keeps a second process out, since
// notifications and caches only know of this one.
//
// Files that both backends have say the same of their databases, and are meant to be read side by
// side. By subject:
//
//   - The operations: those of package storelogic (operations.go), over the rows of a transaction (tx_*.go);
//     and with statements of their own, because they are called most, starts (runs.go), claims
//     (work.go, claimed.go, handoff.go), results of steps and ends of runs (complete.go) and the
//     register of workers (workers.go).
//   - Caches of the writer, so that it need not read: caches.go. Writes that wait for a commit of
//     others: deferred.go.
//   - Reads: views*.go, counts.go, keys.go, upkeep.go, all through read.go, rows.go and values.go.
//   - The file: migrate.go, checkpoint.go, health.go, maintenance.go, read-only access while
//     another process serves it (read_only.go).
//
// Below it: internal/sqlite3, the driver; internal/dbfile, the life of a file (lock, identity,
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
	maxAttempts  = 10 // at a file that others open and close meanwhile, for one answer
	// minVersion is the first SQLite in which a checkpoint beside a write cannot corrupt the file.
	minVersion = 3_051_003
)

// Store is an open database. Its methods are those of engine.Store.
type Store struct {
	storelogic.Operations

	path    string // absolute, without symbolic links
	log     *slog.Logger
	lock    *dbfile.Lock
	version string
	schema  int
	// durability is what the writer's connection promises about the disk; empty for a read-only
	// store.
	durability string
	checked    bool // the pages of the file have checksums; unknown for a read-only store

	space     dbfile.DiskSpace
	identity  dbfile.Identity
	listeners storekit.Listeners
	writer    *writer // nil: read-only
	serving   bool    // for a server
	// unsynced is the commit that a snapshot may show and that is not durable yet.
	unsynced atomic.Pointer[commit]
	atDisk   atomic.Pointer[commit] // that is being written or synced, at most one at a time
	loads    loads
	readers  chan *dbfile.Reader // nil: yet to be connected

	closing sync.RWMutex  // held for reading while a call is handed to the writer
	closed  chan struct{} // closed by Close, once

	fatal   chan struct{} // closed with failure, once
	failure atomic.Pointer[FatalError]
	trouble atomic.Pointer[string] // why the last group of writes was not made durable
	proof   proof                  // that it can be now

	cached       atomic.Int64 // bytes of the writer's page cache
	commits      storekit.CommitCounts
	checkpointed atomic.Int64 // when the whole log was last checkpointed, in microseconds; 0: not since the start
}

var (
	_ engine.Store   = (*Store)(nil)
	_ engine.Commits = (*Store)(nil)
)

// ConfigureProcess makes settings of SQLite that hold for the whole process, also for other
// packages that use the library. It must be called before SQLite is first used. A store works
// without them, only slower.
func ConfigureProcess() error { return sqlite3.OwnPageCaches() }

// Open opens the database file at path, which comes into being if it is not there, in a directory
// that does so too. The path stays locked against other processes until Close. With o.ReadOnly it
// is opened read-only, see read_only.go.
func Open(ctx context.Context, path string, o engine.OpenOptions) (*Store, error) {
	return openUpTo(ctx, path, o, maxRenewedAtStart)
}

// openUpTo is Open; a file of that size at most is rewritten when it has no checksums.
func openUpTo(ctx context.Context, path string, o engine.OpenOptions, largest int64) (*Store, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Store{log: o.Log, readers: make(chan *dbfile.Reader, readerCount), closed: make(chan struct{}),
		fatal: make(chan struct{})}
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
	if err := dbfile.RemoveLeftovers(s.path); err != nil { // no reason not to serve what there is
		s.log.Warn("what was left half-made beside the database could not be deleted", "error", err)
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
		s.space.Dir = filepath.Dir(s.path)
		s.writer = newWriter(s)
		s.proof.pause = proofPause
		s.writer.tx = tx{session: session{conn: c, ctx: context.Background()}, currentRows: map[engine.ID]moving{},
			unclaimed: map[engine.ID]queueKey{}}
		err = s.writer.tx.queues.load(&s.writer.tx)
	}
	if err == nil {
		// A server that a sync has failed ends, and nobody knows what of its log is on the disk
		// although it can be read. In the file it is.
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

// connectWriter opens the one connection that writes. Its settings are part of the DSN, because
// they must hold from its first statement on.
func connectWriter(path string, log *slog.Logger) (*sqlite3.Conn, error) {
	synchronous := "full"
	if level := os.Getenv(sqlite3.UnsafeSynchronous); level == "normal" {
		log.Warn(
			"KAGZI_UNSAFE_SYNCHRONOUS=normal is set: A POWER CUT WILL LOSE ACKNOWLEDGED WRITES; it is for measurements only")
		synchronous = level
	} else if level != "" {
		return nil, engine.Invalid(sqlite3.UnsafeSynchronous, "%q is not known, want normal or nothing", level)
	}
	return sqlite3.Open(sqlite3.DSN(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)",
		"synchronous("+synchronous+")", "journal_mode(wal)",
		fmt.Sprintf("journal_size_limit(%d)", dbfile.MaxLogBytes), "wal_autocheckpoint(0)", "cache_size(-65536)"))
}

// prepareSchema brings the schema up to date, unless it is to be kept, and returns SQLite's version
// and the schema's number.
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

// soundVersion is SQLite's version, which must not be one that corrupts files.
func soundVersion(ctx context.Context, c *sqlite3.Conn) (version string, err error) {
	if version, err = c.Version(ctx); err != nil {
		return "", err
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil ||
		major*1_000_000+minor*1000+patch < minVersion {
		return "", fmt.Errorf("SQLite %s has a defect that corrupts files, 3.51.3 or later is needed", version)
	}
	return version, nil
}

// pulledAway is the failure of a server whose files are not in their places; nil where they are.
func (s *Store) pulledAway() *FatalError {
	if err := s.identity.Lost(s.path); err != nil {
		return dbfile.DiskFailed(err)
	}
	return nil
}

// lacksRoom reports whether new runs from outside are refused because the disk is nearly full. A
// read-only store has a better reason to refuse them.
func (s *Store) lacksRoom() bool { return !s.readOnly() && s.space.Low() }

// SetHolder adds a line about this process, such as its address, to what a second server is told
// that finds the database locked.
func (s *Store) SetHolder(text string) error {
	if s.readOnly() {
		return engine.ErrReadOnly
	}
	return s.lock.Describe(text)
}

// Now is the wall clock.
func (s *Store) Now() time.Time { return engine.Micros(time.Now()) }

// Uncertainty is none: Now is the clock itself.
func (s *Store) Uncertainty() time.Duration { return 0 }

// stalledAfter is how long the disk may be at one commit before the store is unwell, whose trouble
// is to show within 5 s.
const stalledAfter = 4 * time.Second

// Health asks whether the files are in their places; whether they can be written the last group of
// writes has told, or tells by not coming to its end. A read-only store is well until it is closed.
func (s *Store) Health(context.Context) error {
	select {
	case <-s.closed:
		return dbfile.ErrClosed
	default:
	}
	// First, because a disk that hangs may not even say which files it has.
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

// proveAgain has it found out whether the trouble is over, which Health says the next time.
func (s *Store) proveAgain() {
	s.closing.RLock() // Close waits for a proof that has begun
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

// CommitSizes tells how many writes shared a commit.
func (s *Store) CommitSizes() engine.CommitSizes { return s.commits.Sizes() }

// Fatal is closed when the disk failed a write or the file is damaged.
func (s *Store) Fatal() <-chan struct{} { return s.fatal }

// Failure is a *FatalError once Fatal is closed.
func (s *Store) Failure() error {
	if f := s.failure.Load(); f != nil {
		return f
	}
	return nil
}

// die is the end of acknowledging anything.
func (s *Store) die(failure *FatalError) {
	why := failure.Error()
	s.trouble.Store(&why)
	if s.failure.CompareAndSwap(nil, failure) {
		close(s.fatal)
	}
}

// Close waits for the writes that have begun.
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

// closeReaders waits for those who read; each comes back within its deadline.
func (s *Store) closeReaders() {
	for range readerCount {
		if c := <-s.readers; c != nil {
			c.Close()
		}
	}
}

// FatalError is why nothing may be acknowledged any more.
type FatalError = dbfile.FatalError

var errExhausted = dbfile.ErrExhausted

// Listen tells what this process commits: nobody else can be at work on the file, so nothing needs
// to leave the process.
func (s *Store) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	if s.readOnly() {
		return s.listenReadOnly(ctx, notify)
	}
	if err := s.listeners.Listen(ctx, s.closed, notify, o); err != nil {
		return err
	}
	return dbfile.ErrClosed
}
