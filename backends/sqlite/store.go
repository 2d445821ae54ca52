// Package sqlite keeps runs, steps and workers in one SQLite file. It fills engine.Store, whose comments are the contract; the
// statements are in sql/, one a file, beside their twins of the Postgres backend.
//
// One goroutine writes: it carries out all calls that wait in one transaction and commits once (write.go); another makes that durable
// and answers, while the next transaction is at work (syncer.go). Reads go to a small pool of connections that cannot write, each
// method on one snapshot. A lock on a file beside the database keeps a second process out, since the bell and the writer know of this
// one only.
//
// Files that both backends have say the same of their databases, and are to be read side by side. By subject:
//
//   - Operations: those of package storelogic (operations.go), over the rows of a transaction (tx_*.go); and with statements of their own, because
//     they are called most, starts (runs.go), claims (work.go, gate.go, handoff.go, tasks.go), results of steps (steps.go), ends of runs
//     (finish.go) and the register of workers (workers.go).
//   - What the writer remembers of the rows, so that it need not look: known.go, tally.go, fresh.go.
//   - Reading: views*.go, page.go, counts.go, circumstances.go, loads.go, all through read.go and rows.go.
//   - The life of a file: migrate.go, prune.go, room.go, footing.go, check.go, backup*.go, restore*.go, leftover.go, owner_*.go,
//     copy.go, standing.go.
//
// Only here, between the store and SQLite's library: connections, their statements, and the values that go in and come out (conn.go,
// statement.go, values.go, handle.go, page_cache.go); the write-ahead log, lengthened, gathered, synced and folded for speed (log_ahead.go,
// log_gather.go, sync_*.go, fold.go); checksums of pages and of the log (checksum*.go, underlying.go); and looking at a file that another
// process serves (looking*.go).
package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

const (
	readerCount  = 4
	readDeadline = 5 * time.Second
	maxLooks     = 10 // at a file that others open and close meanwhile, for one answer
	// minVersion is the first SQLite in which a checkpoint beside a write cannot corrupt the file.
	minVersion = 3_051_003
	// unsafeSynchronous names the setting that has commits not synced.
	unsafeSynchronous = "KAGZI_UNSAFE_SYNCHRONOUS"
)

// Store is an open database. Its methods are those of engine.Store.
type Store struct {
	storelogic.Operations

	path    string // absolute, without symbolic links
	log     *slog.Logger
	lock    *lock
	version string
	schema  int
	// durability is what the writer's connection promises about the disk; empty for looking only.
	durability string
	checked    bool // the pages of the file have checksums; not known for looking only

	room    room
	footing footing
	bell    storekit.Listeners
	writer  *writer // nil: for looking only
	serving bool    // for a server
	// unsynced is the commit that a snapshot may show and that is not durable yet.
	unsynced atomic.Pointer[commit]
	atDisk   atomic.Pointer[commit] // that is being written or synced, at most one at a time
	loads    loads
	readers  chan *conn // nil: yet to be connected

	closing sync.RWMutex  // held for reading while a call is handed to the writer
	closed  chan struct{} // closed by Close, once

	fatal   chan struct{} // closed with failure, once
	failure atomic.Pointer[FatalError]
	trouble atomic.Pointer[string] // why the last group of writes was not made durable
	proof   proof                  // that it can be now

	cached  atomic.Int64 // bytes of the writer's page cache
	commits storekit.CommitTally
	folded  atomic.Int64 // when the whole log was last folded into the file, in microseconds; 0: not since the start
}

var (
	_ engine.Store   = (*Store)(nil)
	_ engine.Commits = (*Store)(nil)
)

// Open opens the database file at path, which comes into being if it is not there, in a directory that does so too. The path
// stays locked against other processes until Close. With o.ReadOnly it is opened for looking only, see looking.go.
func Open(ctx context.Context, path string, o engine.OpenOptions) (*Store, error) {
	return openUpTo(ctx, path, o, maxRenewedAtStart)
}

// openUpTo is Open; a file of that size at most is written anew when it has no checksums.
func openUpTo(ctx context.Context, path string, o engine.OpenOptions, largest int64) (*Store, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Store{log: o.Log, readers: make(chan *conn, readerCount), closed: make(chan struct{}), fatal: make(chan struct{})}
	s.Operations = storelogic.NewOperations(s.transact)
	if o.ReadOnly {
		if err := s.openLooking(ctx, path); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := s.open(ctx, path, o, largest); err != nil {
		if s.lock != nil {
			s.lock.release()
		}
		return nil, err
	}
	for range readerCount {
		s.readers <- nil
	}
	s.serving = o.Serving
	s.writer.short = o.Serving
	go s.writer.run()
	go s.writer.syncer.run()
	return s, nil
}

func (s *Store) open(ctx context.Context, path string, o engine.OpenOptions, largest int64) (err error) {
	if s.path, err = prepareFile(path); err != nil {
		return err
	}
	if s.lock, err = acquire(s.path); err != nil {
		return err
	}
	if err := refuseLoneLog(s.path); err != nil {
		return err
	}
	if err := clearAway(s.path); err != nil { // no reason not to serve what there is
		s.log.Warn("what was left half-made beside the database could not be deleted", "error", err)
	}
	if err := createPrivately(s.path); err != nil {
		return err
	}
	if err := refuseForeign(s.path, s.log); err != nil {
		return err
	}
	c, err := connectWriter(s.path, s.log)
	if err != nil {
		return refusedToOpen(s.path, err)
	}
	s.version, s.schema, err = prepareSchema(ctx, c, s.path, o)
	if err == nil && !o.KeepSchema {
		c, err = s.withChecksums(ctx, c, largest)
	}
	if err == nil {
		s.durability, err = durabilityOf(ctx, c)
	}
	if err == nil {
		s.room.path = filepath.Dir(s.path)
		s.writer = newWriter(s)
		s.proof.pause = proofPause
		if strings.HasSuffix(s.durability, "synchronous=full") {
			s.writer.gathers = 1
		}
		s.writer.tx = tx{session: session{conn: c, ctx: context.Background()}, seen: map[engine.ID]moving{}, unclaimed: map[engine.ID]queueKey{}}
		err = s.writer.tx.known.load(&s.writer.tx)
	}
	if err == nil {
		// A server that a sync has failed ends, and nobody knows what of its log is on the disk although it can be read. In the file it is.
		if err = s.writer.truncate(); isFull(err) {
			err = nil
		}
	}
	if err == nil {
		s.footing, err = stand(s.path, s.lock)
	}
	if err != nil {
		if c != nil {
			c.close()
		}
		return refusedToOpen(s.path, err)
	}
	return nil
}

// refusedToOpen gives damage, and a disk that fails writes, their exit codes and what to do about it.
func refusedToOpen(path string, err error) error {
	if failure := fatal(err, !failedWrite(err)); failure != nil {
		err = failure
	}
	return fmt.Errorf("open the database %s: %w", path, err)
}

// connectWriter opens the one connection that writes. Its settings are part of the DSN, because they must hold from its first statement on.
func connectWriter(path string, log *slog.Logger) (*conn, error) {
	synchronous := "full"
	if level := os.Getenv(unsafeSynchronous); level == "normal" {
		log.Warn("KAGZI_UNSAFE_SYNCHRONOUS=normal is set: A POWER CUT WILL LOSE ACKNOWLEDGED WRITES; it is for measurements only")
		synchronous = level
	} else if level != "" {
		return nil, engine.Invalid(unsafeSynchronous, "%q is not known, want normal or nothing", level)
	}
	return connect(dsn(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)", "synchronous("+synchronous+")", "journal_mode(wal)",
		fmt.Sprintf("journal_size_limit(%d)", maxWAL), "wal_autocheckpoint(0)", "cache_size(-65536)"))
}

func connectReader(path string) (*conn, error) {
	path, err := filepath.Abs(path) // a DSN has no relative paths
	if err != nil {
		return nil, err
	}
	if err := refuseLoneLog(path); err != nil {
		return nil, err
	}
	const noNew = "&mode=rw" // where the file has been taken away, another of its name would be taken for it
	return connect(dsn(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)", "synchronous(full)", "query_only(1)") + noNew)
}

//go:embed sql/version.sql
var versionSQL string

// prepareSchema brings the schema up to date, unless it is to be kept, and returns SQLite's version and the schema's number.
func prepareSchema(ctx context.Context, c *conn, path string, o engine.OpenOptions) (version string, number int, err error) {
	if version, err = soundVersion(ctx, c); err != nil {
		return "", 0, err
	}
	if err = refuseMoved(ctx, c); err != nil {
		return "", 0, err
	}
	number, err = migrate(ctx, c, path, o)
	return version, number, err
}

// soundVersion is SQLite's version, which must not be one that corrupts files.
func soundVersion(ctx context.Context, c *conn) (version string, err error) {
	err = c.query(ctx, &versionSQL, func(r *row) error {
		version = r.text()
		return nil
	})
	if err != nil {
		return "", err
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil || major*1_000_000+minor*1000+patch < minVersion {
		return "", fmt.Errorf("SQLite %s has a defect that corrupts files, 3.51.3 or later is needed", version)
	}
	return version, nil
}

// prepareFile makes the directory and returns where the file really is, so that a link to it is the same database.
func prepareFile(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("directory of the database: %w", err)
	}
	if err := refusePlanted(path); err != nil {
		return "", err
	}
	if path, err = resolve(path); err != nil {
		return "", fmt.Errorf("database %s: %w", path, err)
	}
	return path, refuseNetwork(path)
}

// refuseNetwork is an error where a server and others cannot share the file safely.
func refuseNetwork(path string) error {
	if kind := networkFilesystem(filepath.Dir(path)); kind != "" && os.Getenv("KAGZI_ALLOW_NETWORK_FS") != "1" {
		return fmt.Errorf("database %s lies on a network filesystem (%s), whose locks SQLite cannot rely on; "+
			"put it on a local disk, or set KAGZI_ALLOW_NETWORK_FS=1 at your own risk", path, kind)
	}
	return nil
}

// resolve follows symbolic links, also one to a file that is not there yet. On Windows a file that is there is called by its long name: by its short
// one, of eight letters and three, it would have another lock and another log.
func resolve(path string) (string, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return onDriveOf(path, real), nil
	}
	if target, err := os.Readlink(path); err == nil {
		if target = onDriveOf(path, target); !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if _, err := os.Stat(path); err != nil && !os.IsNotExist(err) {
			return path, err // links in a circle
		}
		return resolve(target)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path, err
	}
	return filepath.Join(onDriveOf(path, dir), filepath.Base(path)), nil
}

// onDriveOf is where a link at path leads that leads there. On Windows it may begin at the top of the drive that the link is on.
func onDriveOf(path, there string) string {
	if !filepath.IsAbs(there) && there != "" && os.IsPathSeparator(there[0]) {
		return filepath.VolumeName(path) + there
	}
	return there
}

// createPrivately makes a file that only its owner may read. An existing one is never opened here: closing it would drop
// SQLite's locks on it.
func createPrivately(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return file.Close()
}

// refuseLoneLog refuses to make a database beside the log of one that is gone, or that is empty by now. SQLite would delete that log, and with it
// the last commits of a database that may yet be brought back.
func refuseLoneLog(path string) error {
	file, err := beside(path)
	if err != nil || file != nil && file.Size() > 0 {
		return err
	}
	log, err := beside(path + "-wal")
	if err != nil || log == nil || log.Size() <= logHeaderBytes {
		return err
	}
	return &engine.Error{Kind: engine.KindPrecondition, Message: fmt.Sprintf("there is no database %s, but the log of one, %s-wal, with its last commits: "+
		"bring the database back beside it, or restore a backup with `kagzi db restore`; to begin with an empty one, move the log away", path, path)}
}

// SetHolder adds a line about this process, such as its address, to what a second server is told that finds the
// database locked.
func (s *Store) SetHolder(text string) error {
	if s.looking() {
		return engine.ErrReadOnly
	}
	return s.lock.describe(text)
}

// Now is the wall clock.
func (s *Store) Now() time.Time { return engine.Micros(time.Now()) }

// stalledAfter is how long the disk may be at one commit before the store is unwell, whose trouble is to show within 5 s.
const stalledAfter = 4 * time.Second

// Health asks whether the files are in their places; whether they can be written the last group of writes has told, or tells by not coming to
// its end. A store for looking only is well until it is closed.
func (s *Store) Health(context.Context) error {
	select {
	case <-s.closed:
		return errClosed
	default:
	}
	// First, for a disk that stands still may not even say which files it has.
	if c := s.atDisk.Load(); c != nil && time.Since(c.begun) >= stalledAfter {
		return &engine.Error{Kind: engine.KindUnavailable,
			Message: fmt.Sprintf("the disk has not taken a write for %s", time.Since(c.begun).Truncate(time.Second))}
	}
	if !s.looking() {
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
	if !s.looking() && s.Failure() == nil {
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
		if !s.looking() {
			<-s.writer.done
		}
		return nil
	default:
	}
	close(s.closed)
	if s.looking() {
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
	s.lock.release()
	if err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// closeReaders waits for those who read; each comes back within its deadline.
func (s *Store) closeReaders() {
	for range readerCount {
		if c := <-s.readers; c != nil {
			c.close()
		}
	}
}
