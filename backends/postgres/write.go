package postgres

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

const (
	writeTimeout  = 10 * time.Second // to get a connection, and then for each answer
	writeAttempts = 5
	maxGroups     = 4        // groups of one kind at the same time
	maxGroup      = 512      // rows in one commit, unless one call has more
	maxGroupBytes = 8 << 20  // approximate bytes of payloads in one commit
	besideWeight  = 64       // weight of waiting calls, per running group, that starts another
	bytesOfWeight = 16 << 10 // bytes of payloads that weigh as much as a row
)

// write calls do in its own transaction. If the database says that the transaction did not happen,
// do is called again with a new one. It does not use the caller's context: what has begun is
// carried out.
func write[A any](s *Store, doing string, do func(t *tx) (A, error)) (A, error) {
	var none A
	if err := s.enter(); err != nil {
		return none, err
	}
	defer s.leave()
	return writeEntered(s, doing, do)
}

// writeEntered is write for a call that has entered the store already.
func writeEntered[A any](s *Store, doing string, do func(t *tx) (A, error)) (A, error) {
	var answer, none A
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	var locks locksFirst
	for attempt := 1; ; attempt++ {
		err := s.attempt(ctx, &locks, func(t *tx) (err error) {
			answer, err = do(t)
			return err
		})
		if err == nil {
			return answer, nil
		}
		if first, ok := errors.AsType[*locksFirst](err); ok && ctx.Err() == nil {
			// This is no chance conflict: these keys and runs were not known before. So it ends,
			// however many children of a run are gated or end by themselves.
			locks.keys = append(locks.keys, first.keys...)
			if first.runs != nil {
				locks.runs = first.runs // they include the earlier ones
			}
			attempt--
			continue
		}
		if sqlState(err) == codeNull {
			s.forget()
		}
		if attempt == writeAttempts || !retryable(err) || !pause(ctx, attempt) {
			return none, translate(doing, err)
		}
	}
}

// attempt calls do in one transaction, once, as soon as it has a connection, for which it waits
// until ctx ends. The transaction first takes these locks; nil: none.
func (s *Store) attempt(ctx context.Context, first *locksFirst, do func(t *tx) error) (err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	ended := s.suspicions.write()
	defer func() { ended(err) }()
	defer conn.Release() // closes the connection if the transaction is still open
	t := &tx{store: s, conn: conn, batch: &pgx.Batch{}, calls: 1}
	t.batch.Queue("begin")
	if s.pool.local != nil { // before anything is described, see enter
		s.pool.queueSettings(t.batch)
		err = t.send()
	}
	if err == nil && first != nil {
		if err = t.lockKeys(first.keys); err == nil {
			err = t.prepare(first.runs)
		}
	}
	if err == nil {
		err = do(t)
	}
	if err != nil {
		t.rollback()
		return err
	}
	engine.Failpoint("postgres.before_commit")
	err = t.commit()
	s.floors.due(t.due)
	if err != nil {
		if unsettled(err) {
			s.notifier.commitUnknown()
		}
		t.rollback()
		return err
	}
	engine.Failpoint("postgres.after_commit")
	s.commits.Add(t.calls)
	s.remember(t)
	s.notifier.notify(t.events)
	return nil
}

// pause waits a few milliseconds, at random, so that the conflicting transactions do not meet
// again.
func pause(ctx context.Context, attempt int) bool {
	wait := time.Duration(attempt) * time.Duration(1+rand.IntN(10)) * time.Millisecond
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// call is one write of a common kind, or another write about a run with a lease.
type call struct {
	run    engine.ID // the run; zero: a start, which has no ticket and no order with other calls
	ticket *engine.Ticket
	start  *startCall
	step   *stepCall
	finish *finishCall
	op     *operation // nil: it is no operation that a group can carry out
	size   int
	// logic means that a group carries it out by its operation: it is not of a common kind, or the
	// group's statement did not apply.
	logic bool
	// alone means that no group carries it out.
	alone bool
	// settled means that the group's commit carried the call out. If it is false and err is nil,
	// nothing has happened; the call continues in its own transaction, and its run is reserved for
	// it until letGo.
	settled bool
	err     error
	done    chan struct{}
}

// writer gathers waiting calls into groups, each of which is one transaction in one round trip. So
// calls share the cost of a commit, and a call that finds no group running does not wait. A second
// group starts while another runs only if enough calls have gathered to be worth a commit.
//
// At most one group, or one caller, has calls of a run at a time, and calls of a run are carried
// out in the order in which they came. So a call has its place in the sequence once it waits here.
//
// There are two kinds of groups: those of the common calls, by statements of their own, and those of
// operations of package storelogic (group.go). If one call of a run does not fit the fast path, the
// group's statement leaves out all calls of that run, and they wait for a group of operations. What
// such a group leaves out, and the calls of a group that failed, continue in their own transactions,
// one after the other, where each fails alone.
type writer struct {
	store *Store

	mu      sync.Mutex
	waiting []*call
	alones  int    // waiting calls that no group carries out
	others  [2]int // waiting calls for groups, by kind
	weight  [2]int // weight of the calls that wait for a group, by kind
	under   [2]int // running groups, by kind
	busy    map[engine.ID]struct{}

	idle   int          // number of idle goroutines that carry out groups
	groups chan []*call // to these, with capacity for all of them; closed when no more will come
}

func newWriter(s *Store) *writer {
	return &writer{store: s, busy: map[engine.ID]struct{}{}, groups: make(chan []*call, 2*maxGroups)}
}

// together carries out a call in a group or, if that is not possible, by do in its own transaction.
// answer returns the group's answer.
func together[A any](s *Store, c *call, doing string, answer func() A, do func(t *tx) (A, error)) (A, error) {
	var none A
	if err := s.writer.gather(c); err != nil {
		return none, err
	}
	if c.settled {
		return answer(), nil
	}
	err := errPanicked
	defer func() { s.writer.letGo(c, err) }()
	alone, err := writeEntered(s, doing, do)
	return alone, err
}

// errPanicked fails the calls after one whose operation did not return.
var errPanicked = errors.New("an earlier call for the run panicked")

// inLine carries out a call that is not of a common kind in its own transaction, after the earlier
// calls of its run.
func inLine[A any](s *Store, run engine.ID, ticket *engine.Ticket, doing string, do func(t *tx) (A, error)) (A, error) {
	var none A
	if err := s.enter(); err != nil {
		return none, err
	}
	defer s.leave()
	c := &call{run: run, ticket: ticket, alone: true}
	return together(s, c, doing, nil, do)
}

// gather writes c in a group. It returns when c is settled, has failed, or must continue in its own
// transaction; in the last case the caller calls letGo afterwards.
func (w *writer) gather(c *call) error {
	c.done = make(chan struct{})
	w.mu.Lock()
	w.waiting = append(w.waiting, c)
	kind := c.kind()
	w.count(c)
	idle := w.under[kind] == 0 && !c.alone
	if !idle && (c.alone || !w.full(kind)) {
		w.advance()
	}
	w.mu.Unlock()
	c.ticket.Admit()
	if idle {
		// the run's next call joins the group, for example its end after its last step; otherwise
		// this costs nothing
		runtime.Gosched()
		w.mu.Lock()
		if !w.full(kind) {
			w.advance()
		}
		w.mu.Unlock()
	}
	<-c.done
	return c.err
}

// count adds a call that waits from now on.
func (w *writer) count(c *call) {
	w.weight[c.kind()] += c.weight()
	if c.alone {
		w.alones++
	} else {
		w.others[c.kind()]++
	}
}

// kind returns the kind of group that carries the call out: 1 by its operation, 0 by statements.
func (c *call) kind() int {
	if c.logic {
		return 1
	}
	return 0
}

// weight returns how much a call adds to what is worth a commit: its rows and its payloads.
func (c *call) weight() int {
	if c.alone {
		return 0
	}
	return c.rows() + c.size/bytesOfWeight
}

// rows returns how many runs the call makes, or 1 for the run or step that it writes to.
func (c *call) rows() int {
	if c.start != nil {
		return len(c.start.starts)
	}
	return 1
}

// letGo ends a call that continued in its own transaction.
func (w *writer) letGo(c *call, err error) {
	c.ticket.Resolve(err)
	if c.run.IsZero() {
		return
	}
	w.mu.Lock()
	delete(w.busy, c.run)
	w.advance()
	w.mu.Unlock()
}

// advance starts the groups that can start. The caller has locked the writer.
func (w *writer) advance() {
	for group := w.next(); len(group) > 0; group = w.next() {
		if w.idle > 0 {
			w.idle--
			w.groups <- group
		} else {
			w.store.background.Go(func() { w.carry(group) })
		}
	}
}

// next returns a group to start now; empty if there is none. The caller has locked the writer.
func (w *writer) next() []*call {
	if len(w.waiting) == 0 {
		return nil
	}
	full := [2]bool{w.full(0), w.full(1)}
	if (full[0] || w.others[0] == 0) && (full[1] || w.others[1] == 0) && w.alones == 0 {
		return nil
	}
	group := w.take(full)
	if len(group) > 0 {
		w.under[group[0].kind()]++
	}
	return group
}

// carry carries out a group, and those after it. The goroutine is kept, because growing the stack
// that a batch needs takes longer than sending the batch.
func (w *writer) carry(group []*call) {
	for more := true; more; group, more = <-w.groups {
		for len(group) > 0 {
			group = w.carryOut(group)
		}
	}
}

// close stops the goroutines that carry out groups. No call waits any more, and none will come.
func (w *writer) close() { close(w.groups) }

// full says whether no group of a kind may start now beside the running ones.
func (w *writer) full(kind int) bool {
	under := w.under[kind]
	return under == maxGroups || under > 0 && w.weight[kind] < under*besideWeight
}

// take removes the calls to go alone, which it answers, and as many others of the first kind that is
// not full as fit into one commit.
func (w *writer) take(full [2]bool) (group []*call) {
	left := w.waiting[:0]
	rows, size := 0, 0
	place := newPlaces()
	for i, c := range w.waiting {
		if w.alones == 0 && (rows >= maxGroup || (full[0] || w.others[0] == 0) && (full[1] || w.others[1] == 0)) {
			left = append(left, w.waiting[i:]...)
			break
		}
		_, busy := w.busy[c.run]
		switch {
		case busy && !place.mine[c.run], place.behind[c.run]:
			// Earlier calls of the run come first.
		case c.alone && !place.mine[c.run]:
			w.alones--
			w.goAlone(c)
			continue
		case !c.alone && !full[c.kind()] && (len(group) == 0 || place.joins(c, group[0].logic) &&
			rows+c.rows() <= maxGroup && size+c.size <= maxGroupBytes) && place.fits(c):
			w.weight[c.kind()] -= c.weight()
			w.others[c.kind()]--
			if w.refuse(c) {
				continue
			}
			rows, size = rows+c.rows(), size+c.size
			c.logic = c.logic || len(group) > 0 && group[0].logic
			place.add(c)
			if !c.run.IsZero() {
				w.busy[c.run] = struct{}{}
			}
			group = append(group, c)
			continue
		}
		place.behind[c.run] = !c.run.IsZero()
		left = append(left, c)
	}
	clear(w.waiting[len(left):])
	w.waiting = left
	return group
}

// goAlone reserves the run for the call's caller.
func (w *writer) goAlone(c *call) {
	if w.refuse(c) {
		return
	}
	if !c.run.IsZero() {
		w.busy[c.run] = struct{}{}
	}
	close(c.done)
}

// refuse answers a call that comes after a failed one in its sequence. All calls before it have
// ended, or are in its group.
func (w *writer) refuse(c *call) bool {
	if c.err = c.ticket.Err(); c.err == nil {
		return false
	}
	c.ticket.Resolve(c.err)
	close(c.done)
	return true
}
