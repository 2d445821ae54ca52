// Package postgres keeps runs, steps and workers in PostgreSQL 14 or later; several servers may
// share one database. It fills engine.Store, whose comments are the contract; the statements are in
// sql/, one a file, beside their twins of the SQLite backend.
//
// The calls that are made most are gathered into one transaction, of one round trip (write.go), and
// so are heartbeats (beats.go); any other has a transaction of its own (tx.go), which is repeated
// when a rival was in its way. What other servers must hear of is sent with NOTIFY, outside of it
// (notifier.go). Reads have connections of their own.
//
// Files that both backends have say the same of their databases, and are to be read side by side. By subject:
//
//   - Operations: those of package storelogic (operations.go), over the rows of a transaction
//     (tx*.go); and with statements of their own, because they are called most, results of steps
//     and ends of runs (operations.go), starts (runs.go, handoff.go), claims (claim.go, gate.go)
//     and the register of workers (workers.go).
//   - The columns of runs, which nothing else knows one by one: run_row.go.
//   - What the store remembers of rows that hardly ever change: known.go.
//   - Reading: views*.go and counts.go, all through rows.go.
//   - The life of a database: migrate.go, upkeep.go, check.go, copy.go, standing.go.
//
// Only here: the address, its connections and what a pooler before the database takes away
// (connect.go), and the database's clock and whether it takes writes (health.go).
package postgres

import (
	"context"
	_ "embed"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// Store is engine.Store on PostgreSQL. Make it with Open.
type Store struct {
	storelogic.Operations
	sessions
	log        *slog.Logger
	clock      clock
	notifier   *notifier
	writer     *writer
	beats      *beats
	background sync.WaitGroup // what the writer, heartbeats and loads have begun
	loads      loads

	commits storekit.CommitCounts

	pooled bool // sessions of the database are shared, see pooler.go

	database   string // host/database, for people
	schemaName string // where the tables are
	schema     int
	warnings   []string // about the database, found as it was opened
	floors     floors
	laneIDs    sync.Map // laneKey to int64: lanes that are known to exist
	namespaces sync.Map // string to struct{}: likewise

	mu     sync.RWMutex // held for reading by every call under way
	closed bool

	suspicions suspicions
	health     struct {
		sync.Mutex
		at  time.Time
		err error
	}
	fatal chan struct{} // never closed: a database of its own judges its own disk
}

// sessions are all of a store but the one that listens.
type sessions struct {
	pool  *pool // writes; its plans do not depend on statistics
	views *pool // reading, apart, so that lists cannot starve heartbeats
}

var (
	_ engine.Store   = (*Store)(nil)
	_ engine.Commits = (*Store)(nil)
)

// Open connects to the database of a postgres:// URL, waiting up to half a minute for one that is
// still starting, and migrates it unless o.KeepSchema is set. o.ReadOnly is refused.
//
// The schema is the one that the URL names with schema=, or else the first on the session's
// search_path that holds Kagzi's tables, or else the first on it. Every connection keeps to that
// schema while the store is open. A new schema is refused while another one that the role can see
// holds Kagzi's tables, unless the URL names one with schema= or search_path=.
//
// A pooler in transaction mode is noticed, unless the URL's pool_mode says what there is:
// "transaction", or "session" for one that leaves sessions whole. Behind the former other servers'
// writes are seen within a second, for notifications do not come through.
func Open(ctx context.Context, url string, o engine.OpenOptions) (*Store, error) {
	return openOn(ctx, url, o, newSessions)
}

func openOn(ctx context.Context, url string, o engine.OpenOptions,
	connected func(context.Context, *address) (sessions, error)) (*Store, error) {
	if o.ReadOnly {
		return nil,
			engine.Invalid("db",
				"a Postgres database cannot be opened for looking only; look at its running server with `kagzi tui --address HOST:PORT`")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	conn, warnings, err := prepare(ctx, config, o)
	if err != nil {
		return nil, err
	}
	s := &Store{log: o.Log, warnings: warnings, database: describeDatabase(config), pooled: config.pooled(), fatal: make(chan struct{})}
	s.Operations = storelogic.NewOperations(s.transact)
	if s.sessions, err = connected(ctx, config); err == nil {
		if err = s.start(ctx, config, conn); err == nil {
			return s, nil
		}
		s.sessions.close()
	}
	conn.Close(context.WithoutCancel(ctx))
	return nil, err
}

func newSessions(ctx context.Context, config *address) (s sessions, err error) {
	if s.pool, err = newPool(ctx, config, writeSettings, localSettings, config.writes); err != nil {
		return sessions{}, translate("open the database", err)
	}
	if s.views, err = newPool(ctx, config, viewSettings, localViewSettings, config.views); err != nil {
		s.pool.Close()
		return sessions{}, translate("open the database", err)
	}
	s.pool.sibling, s.views.sibling = s.views, s.pool
	return s, nil
}

func (s sessions) close() {
	s.views.Close()
	s.pool.Close()
}

// start reads the clock and starts what runs in the background; conn is for the notifier.
func (s *Store) start(ctx context.Context, config *address, conn *pgx.Conn) error {
	s.clock.measure = func(ctx context.Context) (now time.Time, err error) {
		err = s.pool.QueryRow(ctx, readClockSQL).Scan(timeOf(&now))
		return now, err
	}
	if err := s.clock.read(ctx); err != nil {
		return translate("read the database's clock", err)
	}
	newest, err := newestMigration()
	if err != nil {
		return err
	}
	s.schema, s.schemaName = newest, config.place.schema
	s.notifier = newNotifier(s.log, s.pool, config)
	if err := s.notifier.start(ctx, conn); err != nil {
		return err
	}
	s.writer = newWriter(s)
	s.beats = &beats{store: s}
	return nil
}

// enter notes that a call is under way, until leave.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return errClosed
	}
	return nil
}

func (s *Store) leave() { s.mu.RUnlock() }

// Close waits for the calls that have begun and ends the store.
func (s *Store) Close() error {
	if s.stop() {
		s.sessions.close()
	}
	return nil
}

// stop is Close, but leaves the sessions as they are. It says whether the store was open until now.
func (s *Store) stop() bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.closed = true
	s.mu.Unlock()

	s.writer.close()
	s.background.Wait()
	s.clock.wait()
	s.notifier.close()
	return true
}

// Now is the database's time, at no cost.
func (s *Store) Now() time.Time { return s.clock.now() }

// Uncertainty is how long the answer took by which Now is known.
func (s *Store) Uncertainty() time.Duration { return s.clock.uncertainty() }

// Fatal is never closed: a Postgres that cannot sync its disk stops by itself, and its client sees it as unavailable.
func (s *Store) Fatal() <-chan struct{} { return s.fatal }

// Failure is always nil, see Fatal.
func (s *Store) Failure() error { return nil }

const (
	healthTimeout = 2 * time.Second
	healthKept    = time.Second
)

// Health asks the database whether it takes writes, at most once a second. Where there is reason to
// suspect that it does not, it writes.
func (s *Store) Health(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.health.Lock()
	defer s.health.Unlock()
	if now := time.Now(); s.health.at.IsZero() || now.Sub(s.health.at) >= healthKept {
		s.health.err = s.askHealth(ctx)
		s.health.at = now
	}
	return s.health.err
}

// CommitSizes tells how many writes shared a commit.
func (s *Store) CommitSizes() engine.CommitSizes { return s.commits.Sizes() }

//go:embed sql/health.sql
var healthSQL string

func (s *Store) askHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	var readOnly, fenced bool
	if err := s.pool.QueryRow(ctx, healthSQL).Scan(&readOnly, &fenced); err != nil {
		return translate("ask for the database's health", err)
	}
	if fenced {
		return unavailable("this database was moved to another one; its server is to be started on that")
	}
	if readOnly {
		return errReadOnly
	}
	if s.suspicions.any() {
		return s.tryToWrite(ctx)
	}
	return nil
}

// view runs one reading on behalf of a caller, who may give up.
func (s *Store) view(ctx context.Context, doing string, read func(ctx context.Context) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := read(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return translate(doing, err)
	}
	return nil
}
