package sqlite

import (
	"context"
	_ "embed"
)

// session is a connection within a transaction.
type session struct {
	conn *conn
	ctx  context.Context
}

func (s session) query(text *string, each func(*row) error, args ...arg) error {
	return s.conn.query(s.ctx, text, each, args...)
}

// found is query for a statement that has one row at most.
func (s session) found(text *string, one func(*row) error, args ...arg) (found bool, err error) {
	err = s.conn.query(s.ctx, text, func(r *row) error {
		found = true
		return one(r)
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
	return none, errMoving
}

// readOnce is read with one connection. moved says that the file was, or for an error may have been, changed in a way that leaves the answer
// in doubt: a server that comes or goes makes and deletes files that a looker is about to open.
func readOnce[V any](ctx context.Context, s *Store, verb string, do func(session) (V, error)) (out V, moved bool, err error) {
	var c *conn
	select {
	case <-s.closed:
		return out, false, errClosed
	default:
	}
	select {
	case c = <-s.readers:
	case <-s.closed:
		return out, false, errClosed
	case <-ctx.Done():
		return out, false, translate(verb, ctx.Err())
	}
	sound := false // a connection that failed is not used again
	defer func() {
		if !sound && c != nil {
			c.close()
			c = nil
		}
		s.readers <- c
	}()
	if c, err = s.connected(ctx, c); err != nil {
		return out, s.looking() && ctx.Err() == nil, s.failedRead(verb, err)
	}
	value, err := snapshot(ctx, c, do)
	if s.looking() && !c.sight.still(s.path) {
		return out, true, nil
	}
	moved = s.looking() && err != nil && !isRefusal(err) && ctx.Err() == nil
	if sound = err == nil || isRefusal(err); sound {
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
func (s *Store) connected(ctx context.Context, c *conn) (*conn, error) {
	switch {
	case s.looking():
		return s.look(ctx, c)
	case c == nil:
		return connectReader(s.path)
	}
	return c, nil
}

//go:embed sql/begin_read.sql
var beginReadSQL string

// snapshot calls do in a transaction of its own. An error of the engine has left the connection sound.
func snapshot[V any](ctx context.Context, c *conn, do func(session) (V, error)) (value V, err error) {
	if _, err := c.exec(ctx, &beginReadSQL); err != nil {
		return value, err
	}
	value, err = do(session{conn: c, ctx: ctx})
	if _, ending := c.exec(context.WithoutCancel(ctx), &commitSQL); ending != nil && (err == nil || isRefusal(err)) {
		err = ending
	}
	return value, err
}

func (s *Store) failedRead(verb string, err error) error {
	if s.looking() {
		return translateLook(verb, err)
	}
	if failure := fatal(err, true); failure != nil {
		s.die(failure)
	}
	return translate(verb, err)
}
