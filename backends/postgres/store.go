// Package postgres keeps runs, steps and workers in PostgreSQL 14 or later; several servers may
// share one database. It implements engine.Store, whose comments are the contract. The statements
// are in sql/, one per file, under the same names as in the SQLite backend.
//
// The most frequent calls are gathered into groups, each of which is one transaction with one round
// trip (write.go); so are heartbeats (beats.go). Most operations of package storelogic are gathered
// into groups of their own, with two round trips (group.go). Any other call has its own transaction
// (tx.go), which is retried after a conflict with another one. Other servers are notified with NOTIFY,
// outside of that transaction (notifier.go). Reads have their own connections.
//
// Files with the same name in both backends are meant to be read side by side:
//
//   - Operations: those of package storelogic (operations.go), over the rows of a transaction
//     (tx*.go) or of a group (group*.go). The most frequent ones have statements of their own: step results and ends of
//     runs
//     (operations.go), starts (runs.go, handoff.go), claims (claim.go, gate.go), and the register
//     of workers (workers.go).
//   - Rows: run_row.go (the columns of runs), rows.go (those of other tables).
//   - Caches of rows that rarely change: known.go.
//   - Reads: views*.go and counts.go.
//   - The database as a whole: migrate.go, upkeep.go, check.go, copy.go, standing.go.
//
// Only here: addresses, connections and poolers (connect.go), errors (errors.go), notifications
// (notifier.go, notifications.go), and the database's clock and health (health.go).
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
	background sync.WaitGroup // goroutines of the writer, heartbeats and loads
	loads      loads

	commits storekit.CommitCounts

	pooled bool // sessions of the database are shared by a pooler, see connect.go

	database   string // host/database, for people
	schemaName string // schema of the tables
	schema     int
	warnings   []string // about the database, found when it was opened
	floors     floors
	begun      begun
	laneIDs    sync.Map // laneKey to int64: lanes that are known to exist
	namespaces sync.Map // string to struct{}: namespaces that are known to exist

	mu     sync.RWMutex // read-locked by every call in progress
	closed bool

	suspicions suspicions
	health     struct {
		sync.Mutex
		at  time.Time
		err error
	}
	fatal chan struct{} // never closed: the database handles failures of its disk itself
}

// sessions holds all sessions of a store except the one that listens.
type sessions struct {
	pool  *pool // for writes; its plans do not depend on statistics
	views *pool // for reads, separate so that lists cannot starve heartbeats
}

var (
	_ engine.Store   = (*Store)(nil)
	_ engine.Commits = (*Store)(nil)
)

// Open connects to the database of a postgres:// URL. It waits up to half a minute for one that is
// still starting, and migrates it unless o.KeepSchema is set. o.ReadOnly is refused.
//
// The schema is the one that the URL names with schema=, or else the first on the session's
// search_path that holds Kagzi's tables, or else the first on it. Every connection uses that schema
// while the store is open. A new schema is refused if the role can see another one that holds
// Kagzi's tables, unless the URL names one with schema= or search_path=.
//
// A pooler in transaction mode is detected, unless the URL's pool_mode names the mode:
// "transaction", or "session" for one that keeps sessions whole. In transaction mode NOTIFY does
// not work, so other servers' writes are noticed within a second.
func Open(ctx context.Context, url string, o engine.OpenOptions) (*Store, error) {
	return openOn(ctx, url, o, newSessions)
}

func openOn(ctx context.Context, url string, o engine.OpenOptions,
	connected func(context.Context, *address) (sessions, error)) (*Store, error) {
	if o.ReadOnly {
		return nil,
			engine.Invalid("db",
				"a Postgres database cannot be opened read-only; connect to its running server with `kagzi tui --address HOST:PORT`")
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
	s := &Store{log: o.Log, warnings: warnings, database: describeDatabase(config), pooled: config.pooled(),
		fatal: make(chan struct{})}
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

// start reads the clock and starts the background goroutines; conn is for the notifier.
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

// enter records that a call is in progress, until leave.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return errClosed
	}
	return nil
}

func (s *Store) leave() { s.mu.RUnlock() }

// Close waits for the calls that have begun and closes the store.
func (s *Store) Close() error {
	if s.stop() {
		s.sessions.close()
	}
	return nil
}

// stop is Close, but keeps the sessions. It says whether the store was open until now.
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

// Now returns the database's time without asking the database.
func (s *Store) Now() time.Time { return s.clock.now() }

// Uncertainty returns how long the answer took that Now relies on.
func (s *Store) Uncertainty() time.Duration { return s.clock.uncertainty() }

// Fatal returns a channel that is never closed: a Postgres that cannot sync its disk stops by
// itself, and is then unavailable.
func (s *Store) Fatal() <-chan struct{} { return s.fatal }

// Failure returns nil, see Fatal.
func (s *Store) Failure() error { return nil }

const (
	healthTimeout = 2 * time.Second
	healthKept    = time.Second
)

// Health asks the database whether it accepts writes, at most once a second. If there are signs
// that it does not, it makes a small write.
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

// CommitSizes returns how many writes shared a commit.
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
		return unavailable("this database was moved to another one; start the server on that one")
	}
	if readOnly {
		return errReadOnly
	}
	if s.suspicions.any() {
		return s.tryToWrite(ctx)
	}
	return nil
}

// view runs one read for a caller, which may give up.
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
