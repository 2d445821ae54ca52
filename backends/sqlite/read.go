package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
)

// session is a connection within a transaction.
type session struct {
	conn *sqlite3.Conn
	ctx  context.Context
}

func (s session) query(text *string, each func(*row) error, args ...arg) error {
	return s.conn.Query(s.ctx, text, eachRow(each), args...)
}

// found is query for a statement that has one row at most.
func (s session) found(text *string, one func(*row) error, args ...arg) (found bool, err error) {
	err = s.conn.Query(s.ctx, text, func(r *sqlite3.Row) error {
		found = true
		return one((*row)(r))
	}, args...)
	return found, err
}

// read calls do on a snapshot of the database. What do returns is nobody's but the caller's; of a file that somebody else may begin to
// change, do may be called more than once.
func read[V any](ctx context.Context, s *Store, verb string, do func(session) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	var none V
	var doubt error
	for range maxLooks {
		out, moved, err := readOnce(ctx, s, verb, do)
		if !moved {
			return out, err
		}
		doubt = err
	}
	if doubt != nil {
		return none, doubt
	}
	return none, dbfile.ErrMoving
}

// readOnce is read with one connection. moved says that the file was, or for an error may have been, changed in a way that leaves the answer
// in doubt: a server that comes or goes makes and deletes files that a looker is about to open.
func readOnce[V any](ctx context.Context, s *Store, verb string, do func(session) (V, error)) (out V, moved bool, err error) {
	var c *dbfile.Reader
	select {
	case <-s.closed:
		return out, false, dbfile.ErrClosed
	default:
	}
	select {
	case c = <-s.readers:
	case <-s.closed:
		return out, false, dbfile.ErrClosed
	case <-ctx.Done():
		return out, false, dbfile.Translate(verb, ctx.Err())
	}
	sound := false // a connection that failed is not used again
	defer func() {
		if !sound && c != nil {
			c.Close()
			c = nil
		}
		s.readers <- c
	}()
	if c, err = s.connected(ctx, c); err != nil {
		return out, s.looking() && ctx.Err() == nil, s.failedRead(verb, err)
	}
	value, err := snapshot(ctx, c.Conn, do)
	if s.looking() && !c.Current(s.path) {
		return out, true, nil
	}
	moved = s.looking() && err != nil && !dbfile.IsRefusal(err) && ctx.Err() == nil
	if sound = err == nil || dbfile.IsRefusal(err); sound {
		if unsynced := s.seenIsDurable(ctx, verb); unsynced != nil {
			return out, false, unsynced
		}
	}
	if err != nil {
		return out, moved, s.failedRead(verb, err)
	}
	return value, false, nil
}

// connected is c, or a new connection where there is none or it is not good any more.
func (s *Store) connected(ctx context.Context, c *dbfile.Reader) (*dbfile.Reader, error) {
	switch {
	case s.looking():
		return s.look(ctx, c)
	case c == nil:
		return dbfile.OpenReader(s.path)
	}
	return c, nil
}

// snapshot calls do in a transaction of its own. An error of the engine has left the connection sound.
func snapshot[V any](ctx context.Context, c *sqlite3.Conn, do func(session) (V, error)) (value V, err error) {
	if err := c.BeginRead(ctx); err != nil {
		return value, err
	}
	value, err = do(session{conn: c, ctx: ctx})
	if ending := c.Commit(context.WithoutCancel(ctx)); ending != nil && (err == nil || dbfile.IsRefusal(err)) {
		err = ending
	}
	return value, err
}

func (s *Store) failedRead(verb string, err error) error {
	if s.looking() {
		return dbfile.TranslateReadOnly(verb, err)
	}
	if failure := dbfile.AsFatal(err, true); failure != nil {
		s.die(failure)
	}
	return dbfile.Translate(verb, err)
}
