package postgres

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	limitKept  = 5 * time.Second        // after a refused connection, before another is tried
	limitPause = 100 * time.Millisecond // between attempts while a pool has no connection at all
)

// pool holds connections of one kind. If the database refuses another connection because of a
// limit, calls wait for one of the pool's. Behind a pooler each use of a connection is a
// transaction that sets its parameters itself, because the session may change each time.
type pool struct {
	*pgxpool.Pool
	local   []setting     // set by each transaction; nil: set by the sessions
	permits chan struct{} // one for each connection that the pool may use now
	sibling *pool         // gives up a connection if this pool gets none
	owed    atomic.Bool   // the sibling waits for a connection of this pool
}

// pooledConn is embedded under this name so that its method Conn stays visible.
type pooledConn = pgxpool.Conn

// session is a connection in use, until Release.
type session struct {
	*pooledConn
	pool *pool
}

// Acquire waits for a connection until ctx ends.
func (p *pool) Acquire(ctx context.Context) (*session, error) {
	var refused error
	for {
		select {
		case <-p.permits:
		case <-ctx.Done():
			if refused != nil {
				return nil, refused
			}
			return nil, ctx.Err()
		}
		conn, err := p.Pool.Acquire(ctx)
		if err == nil {
			return &session{conn, p}, nil
		}
		if !tooMany(err) {
			p.permits <- struct{}{}
			return nil, err
		}
		refused = err
		if p.Stat().TotalConns() > 0 {
			// A connection of the pool becomes free; meanwhile nobody tries to open another.
			p.shelve()
			continue
		}
		p.sibling.spare(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(limitPause):
		}
		p.permits <- struct{}{}
	}
}

func (p *pool) shelve() { time.AfterFunc(limitKept, func() { p.permits <- struct{}{} }) }

// spare closes an idle connection, or the next one that becomes idle.
func (p *pool) spare(ctx context.Context) {
	idle := p.AcquireAllIdle(ctx)
	for i, conn := range idle {
		if i == 0 {
			conn.Conn().Close(ctx)
		}
		conn.Release()
	}
	p.owed.Store(len(idle) == 0)
}

// Release gives the connection back. It closes one that is in a transaction.
func (s *session) Release() {
	p := s.pool
	if p == nil {
		return
	}
	s.pool = nil
	if p.owed.CompareAndSwap(true, false) {
		ctx, cancel := context.WithTimeout(context.Background(), limitPause)
		defer cancel()
		s.Conn().Close(ctx)
		s.pooledConn.Release()
		p.shelve() // otherwise the next caller would open another one
		return
	}
	s.pooledConn.Release()
	p.permits <- struct{}{}
}

// tooMany says whether the database, or the pooler in front of it, accepts no more connections.
func tooMany(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == codeTooMany || strings.Contains(e.Message, "no more connections allowed"))
}

// enter acquires a connection and, behind a pooler, begins a transaction with the pool's
// parameters. They are sent before other statements, because a statement is prepared before it
// runs, and its schema depends on a parameter.
func (p *pool) enter(ctx context.Context) (*session, error) {
	s, err := p.Acquire(ctx)
	if err != nil || p.local == nil {
		return s, err
	}
	batch := &pgx.Batch{}
	batch.Queue("begin")
	p.queueSettings(batch)
	if err := s.SendBatch(ctx, batch).Close(); err != nil {
		s.leave()
		return nil, err
	}
	return s, nil
}

// queueSettings adds the parameters of a transaction that has just begun.
func (p *pool) queueSettings(batch *pgx.Batch) {
	if p.local != nil {
		batch.Queue(setLocalSQL.text, setLocalSQL.bind(settingArgs(p.local))...)
	}
}

// leave ends a transaction that is still open, and releases the connection.
func (s *session) leave() {
	rollback(s)
	s.Release()
}

// commit ends the transaction that enter began, if it did.
func (s *session) commit(ctx context.Context) error {
	if s.pool.local == nil {
		return nil
	}
	tag, err := s.Exec(ctx, "commit")
	if err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

// send carries out a batch as one transaction.
func (p *pool) send(ctx context.Context, batch *pgx.Batch) error {
	s, err := p.enter(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	if p.local != nil {
		batch.Queue("commit")
	}
	return s.SendBatch(ctx, batch).Close()
}

// within calls do in a transaction with these options.
func (p *pool) within(ctx context.Context, options pgx.TxOptions, do func(tx pgx.Tx) error) error {
	s, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.Release()
	return pgx.BeginTxFunc(ctx, s.pooledConn, options, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		p.queueSettings(batch)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		return do(tx)
	})
}

func (p *pool) Exec(ctx context.Context, sql string, arguments ...any) (tag pgconn.CommandTag, err error) {
	s, err := p.enter(ctx)
	if err != nil {
		return tag, err
	}
	defer s.leave()
	if tag, err = s.Exec(ctx, sql, arguments...); err == nil {
		err = s.commit(ctx)
	}
	return tag, err
}

func (p *pool) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	s, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.pooledConn.Query(ctx, sql, arguments...)
	if err != nil {
		s.leave()
		return nil, err
	}
	return &sessionRows{Rows: rows, ctx: ctx, session: s}, nil
}

func (p *pool) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	rows, err := p.Query(ctx, sql, arguments...)
	return sessionRow{rows, err}
}

// Ping checks that the database answers.
func (p *pool) Ping(ctx context.Context) error {
	s, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.Release()
	return s.pooledConn.Ping(ctx)
}

// sessionRows releases its connection once the rows are read.
type sessionRows struct {
	pgx.Rows
	ctx     context.Context
	session *session // nil once released
	err     error
}

func (r *sessionRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *sessionRows) Close() {
	r.Rows.Close()
	if r.session == nil {
		return
	}
	if r.err = r.Rows.Err(); r.err == nil {
		r.err = r.session.commit(r.ctx)
	}
	r.session.leave()
	r.session = nil
}

func (r *sessionRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.Rows.Err()
}

type sessionRow struct {
	rows pgx.Rows
	err  error
}

func (r sessionRow) Scan(places ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(places...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
