package postgres

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

const (
	writeTimeout  = 10 * time.Second
	writeAttempts = 5
	writerLanes   = 4
	maxGroup      = 512     // calls in one commit
	maxGroupBytes = 8 << 20 // of payloads in one commit, about
)

// write carries out do in a transaction of its own. do may be called again, with a fresh transaction, when the
// database says that the first did not happen. It does not run on the caller's context: what has begun is carried through.
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
	var keys []int64
	for attempt := 1; ; attempt++ {
		err := s.attempt(ctx, keys, func(t *tx) (err error) {
			answer, err = do(t)
			return err
		})
		if err == nil {
			return answer, nil
		}
		if first, ok := errors.AsType[*keysFirst](err); ok {
			keys = append(keys, first.keys...)
		}
		if attempt == writeAttempts || !retryable(err) || !pause(ctx, attempt) {
			return none, translate(doing, err)
		}
	}
}

// attempt carries out do in one transaction, once. It begins with the locks of these keys.
func (s *Store) attempt(ctx context.Context, keys []int64, do func(t *tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // closes the connection when the transaction is open still
	t := &tx{ctx: ctx, store: s, conn: conn, batch: &pgx.Batch{}}
	t.batch.Queue("begin")
	err = t.lockKeys(keys)
	if err == nil {
		err = do(t)
	}
	if err != nil {
		t.rollback()
		return err
	}
	engine.Failpoint("postgres.before_commit")
	if err := t.commit(); err != nil {
		t.rollback()
		return err
	}
	engine.Failpoint("postgres.after_commit")
	s.commits.Add(1)
	s.remember(t)
	s.bell.ring(t.rings)
	return nil
}

// pause waits a few milliseconds, at random, so that rivals do not meet again.
func pause(ctx context.Context, attempt int) bool {
	wait := time.Duration(attempt) * time.Duration(1+rand.IntN(10)) * time.Millisecond
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// call is one write that waits in a lane for its group.
type call struct {
	start  *startCall
	step   *stepCall
	finish *finishCall
	size   int
	// settled says that the group's commit carried the call out; otherwise, without err, nothing has happened and the call is for a
	// transaction of its own.
	settled bool
	err     error
	done    chan struct{}
}

// lane is one of the goroutines that write the common cases. It takes all calls that wait, sends them as one transaction in
// one round trip, and answers; so the cost of a commit is shared by whoever came meanwhile. Calls of one run share a lane, so
// they do not wait for each other's locks.
//
// A statement of a group leaves out each call to which the common case does not apply, and an error aborts the group; either way
// the calls that did not happen go on in transactions of their own, where each fails alone.
type lane struct {
	store *Store
	wake  chan struct{} // capacity one
	ended chan struct{}

	mu      sync.Mutex
	waiting []*call
	closed  bool
}

func newLane(s *Store) *lane {
	l := &lane{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go l.run()
	return l
}

// close ends the lane once nothing waits.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.nudge()
	<-l.ended
}

func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // already awake
	}
}

// laneOf is where the calls of a run go.
func (s *Store) laneOf(id engine.ID) *lane { return s.lanes[id[15]%writerLanes] }

// gather has c written with whatever else waits and returns when it is settled or is known not to have happened.
func (l *lane) gather(c *call) error {
	c.done = make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, c)
	l.mu.Unlock()
	l.nudge()
	<-c.done
	return c.err
}

func (l *lane) run() {
	defer close(l.ended)
	for range l.wake {
		for {
			group, closed := l.take()
			if len(group) == 0 {
				if closed {
					return
				}
				break
			}
			l.store.writeGroup(group)
			for _, c := range group {
				close(c.done)
			}
		}
	}
}

// take removes as many waiting calls as fit into one commit.
func (l *lane) take() (group []*call, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < len(l.waiting) && n < maxGroup {
		size += l.waiting[n].size
		if n > 0 && size > maxGroupBytes {
			break
		}
		n++
	}
	group = append(group, l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	clear(l.waiting[len(l.waiting):cap(l.waiting)])
	return group, l.closed
}

// writeGroup sends the group as one pipelined batch, which is one transaction.
func (s *Store) writeGroup(group []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	batch, answers := &pgx.Batch{}, &groupAnswers{}
	queueLocks(batch, group)
	queueSteps(batch, answers, group)
	queueFinishes(batch, answers, group)
	queueStarts(batch, answers, group)
	engine.Failpoint("postgres.before_commit")
	err := s.pool.SendBatch(ctx, batch).Close()
	if err == nil {
		engine.Failpoint("postgres.after_commit")
		s.commits.Add(len(answers.settled))
		for _, c := range answers.settled {
			c.settled = true
		}
		s.bell.ring(answers.rings)
		return
	}
	if alone(err) {
		return // nobody is settled
	}
	err = translate("write", err)
	for _, c := range group {
		c.err = err
	}
}

// groupAnswers is what a group's statements say, to be believed once the transaction is committed.
type groupAnswers struct {
	settled []*call
	rings   []engine.Ring
}

func (a *groupAnswers) settle(c *call) {
	if len(a.settled) > 0 {
		engine.Failpoint("postgres.mid_group")
	}
	a.settled = append(a.settled, c)
}

//go:embed sql/lock_runs.sql
var lockRunsText string

var lockRunsSQL = hot(lockRunsText)

//go:embed sql/lock_leases.sql
var lockLeasesText string

var lockLeasesSQL = hot(lockLeasesText)

// queueLocks locks what the group writes to, in statements of their own, so that those after them see it as it is then: first
// the runs that end, then all leases. Everybody locks the newest runs first, so that a child comes before its parent.
func queueLocks(batch *pgx.Batch, group []*call) {
	var runs, leases [][16]byte
	for _, c := range group {
		switch {
		case c.finish != nil:
			runs = append(runs, c.finish.p.Lease.RunID)
			leases = append(leases, c.finish.p.Lease.RunID)
		case c.step != nil:
			leases = append(leases, c.step.p.Lease.RunID)
		}
	}
	if len(runs) > 0 {
		batch.Queue(lockRunsSQL.text, lockRunsSQL.bind(args{"run_ids": runs})...)
	}
	if len(leases) > 0 {
		batch.Queue(lockLeasesSQL.text, lockLeasesSQL.bind(args{"run_ids": leases})...)
	}
}

// alone says that the group failed by what one of its calls holds, or by a rival, and that each may be tried by itself.
func alone(err error) bool {
	if retryable(err) {
		return true
	}
	_, lost := errors.AsType[*engine.Error](translate("", err))
	return !lost
}
