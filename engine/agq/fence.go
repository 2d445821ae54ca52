package agq

import "errors"

// A worker's newest connection has its jobs, and the others that popped before are fenced: what they say for
// the worker is refused. On one server the door knows which is the newest. Between servers the store does: every
// session of a worker has a number of its own, with which it registers as its pid. A connection is compared with
// it before a report counts and before a job is handed out; a pop that waits is told by the store's notification.

// takeOver makes a connection the one that pops for the worker, and fences the one before.
func (w *worker) takeOver(c *conn) {
	w.mu.Lock()
	before := w.owner
	w.owner = c
	w.mu.Unlock()
	if before != nil && before != c {
		before.fence()
	}
	c.mu.Lock()
	c.fenced, c.popped = false, w.number
	c.mu.Unlock()
}

// replaced ends a worker's session for a newer one of the same worker, opened by c.
func (w *worker) replaced(c *conn) {
	w.close()
	w.mu.Lock()
	before := w.owner
	w.owner = nil
	w.mu.Unlock()
	if before != nil && before != c {
		before.fence()
	}
}

// fence gives up the pop of a connection whose worker has a newer one, and refuses what it says from now on.
func (c *conn) fence() {
	c.mu.Lock()
	c.fenced = true
	c.mu.Unlock()
	c.giveUp()
}

// fenceOf is fence for a connection whose session has been taken over, unless it has a newer one itself.
func (c *conn) fenceOf(session int) {
	c.mu.Lock()
	if c.popped != session {
		c.mu.Unlock()
		return
	}
	c.fenced = true
	c.mu.Unlock()
	c.giveUp()
}

// takenOver says whether another session of the worker is the newest, as the store has it. That is one of
// another server: the one before on this server knows it already.
func (w *worker) takenOver() bool {
	if !w.door.shared {
		return false
	}
	newest, err := w.door.server.PIDOf(w.ctx, w.who)
	return err == nil && newest != w.number
}

// goneFor says whether a connection needs a new session, because another server has the newest one. The
// connection that pops already is the older one then, and gets to know that in other ways.
func (w *worker) goneFor(c *conn) bool {
	w.mu.Lock()
	owns := w.owner == c
	w.mu.Unlock()
	return !owns && w.takenOver()
}

// isTakenOver says whether a worker's session on another server has taken over what this connection popped.
// newest is the number of the worker's session in the store.
func (c *conn) isTakenOver(newest int) bool {
	c.mu.Lock()
	over := c.popped != 0 && c.popped != newest
	c.mu.Unlock()
	if over {
		c.fence()
	}
	return over
}

// errFenced says that the connection's worker has a newer one.
func (c *conn) errFenced() error {
	return errors.New("worker " + c.identity + " has a newer connection, which has taken its jobs over")
}

func (c *conn) isFenced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fenced
}

// checkNewest returns an error if a newer session of the worker, on another server, has taken its jobs over.
func (c *conn) checkNewest(w *worker) error {
	if !w.takenOver() {
		return nil
	}
	c.fence()
	return c.errFenced()
}
