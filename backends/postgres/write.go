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

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

const (
	writeTimeout  = 10 * time.Second // for a connection, and then for each answer
	writeAttempts = 5
	maxGroups     = 4        // at a time
	maxGroup      = 512      // rows in one commit, unless one call has more
	maxGroupBytes = 8 << 20  // of payloads in one commit, about
	besideWeight  = 64       // of calls that wait, for each group under way, before another begins
	bytesOfWeight = 16 << 10 // of payloads that weigh as much as a row
)

// write carries out do in a transaction of its own. do may be called again, with a fresh
// transaction, when the database says that the first did not happen. It does not run on the
// caller's context: what has begun is carried through.
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
			// It is no rival that was met by chance: these are keys and runs that were not known
			// before, and so it comes to an end, however many children of a run wait at gates or
			// end by themselves.
			locks.keys = append(locks.keys, first.keys...)
			if first.runs != nil {
				locks.runs = first.runs // among which are those of before
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

// attempt carries out do in one transaction, once, as soon as it has a connection, for which it
// waits until ctx ends. It begins with these locks, nil for none.
func (s *Store) attempt(ctx context.Context, first *locksFirst, do func(t *tx) error) (err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	ended := s.suspicions.write()
	defer func() { ended(err) }()
	defer conn.Release() // closes the connection when the transaction is open still
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

// call is one write of the common cases, or another one about a run that is leased.
type call struct {
	run    engine.ID // which it is about; zero: a start, which keeps no order with others and has no ticket
	ticket *engine.Ticket
	start  *startCall
	step   *stepCall
	finish *finishCall
	size   int
	// alone says that no group carries it out: it has no common case, or that did not apply.
	alone bool
	// settled says that the group's commit carried the call out; otherwise, without err, nothing
	// has happened, and the call is to go on in a transaction of its own, with its run kept for it
	// until it lets go of that.
	settled bool
	err     error
	done    chan struct{}
}

// writer gathers the calls that wait into groups, each of which is one transaction in one round
// trip; so the cost of a commit is shared by whoever came meanwhile, and a caller who finds nobody
// writing does not wait for others. A second group begins beside the first only when enough has
// gathered to be worth a commit of its own.
//
// Of the calls of one run only one group, or one caller, has any at a time, and they are carried
// out in the order in which they came. So a call has its place in the line as soon as it waits
// here.
//
// A statement of a group leaves out all calls of a run of which one does not fit the common case,
// and an error aborts the group; either way the calls that did not happen go on in transactions of
// their own, one after the other, where each fails alone.
type writer struct {
	store *Store

	mu      sync.Mutex
	waiting []*call
	weight  int // of those that wait for a group
	under   int // groups under way
	busy    map[engine.ID]struct{}

	idle   int          // of those who carry groups out
	groups chan []*call // to these, with room for all of them; closed when there will be no more
}

func newWriter(s *Store) *writer {
	return &writer{store: s, busy: map[engine.ID]struct{}{}, groups: make(chan []*call, maxGroups)}
}

// together carries a call out with others, or else, by do, in a transaction of its own. answer is
// what a group has to say.
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

// errPanicked is what those hear that stand behind a call whose operation did not return.
var errPanicked = errors.New("the verb panicked")

// inLine carries out what has no common case, in a transaction of its own, when what was handed
// over before it for its run is done.
func inLine[A any](s *Store, run engine.ID, ticket *engine.Ticket, doing string, do func(t *tx) (A, error)) (A, error) {
	var none A
	if err := s.enter(); err != nil {
		return none, err
	}
	defer s.leave()
	c := &call{run: run, ticket: ticket, alone: true}
	return together(s, c, doing, nil, do)
}

// gather has c written with whatever else waits, and returns when it is settled, has failed, or is
// to go on alone. In the last case the caller calls letGo when it has done so.
func (w *writer) gather(c *call) error {
	c.done = make(chan struct{})
	w.mu.Lock()
	w.waiting = append(w.waiting, c)
	w.weight += c.weight()
	idle := w.under == 0 && !c.alone
	if !idle && (c.alone || !w.full()) {
		w.advance()
	}
	w.mu.Unlock()
	c.ticket.Admit()
	if idle {
		// who stands right behind joins the group, as a run's end does behind its last step; where
		// nobody does, this costs nothing
		runtime.Gosched()
		w.mu.Lock()
		if !w.full() {
			w.advance()
		}
		w.mu.Unlock()
	}
	<-c.done
	return c.err
}

// weight is how much a call adds to what is worth a commit: its rows, and its payloads.
func (c *call) weight() int {
	if c.alone {
		return 0
	}
	return c.rows() + c.size/bytesOfWeight
}

// rows is how many runs the call makes, or else the one run or step that it writes to.
func (c *call) rows() int {
	if c.start != nil {
		return len(c.start.starts)
	}
	return 1
}

// letGo is the end of a call that went on alone.
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

// advance begins what can begin. The caller has locked the writer.
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

// next is a group that is to begin now; empty when none is. The caller has locked the writer.
func (w *writer) next() []*call {
	if len(w.waiting) == 0 {
		return nil
	}
	group := w.take(w.full())
	if len(group) > 0 {
		w.under++
	}
	return group
}

// carry carries out a group, and what comes after it. Whoever does so stays, for it takes longer to
// grow the stack that a batch needs than to send the batch.
func (w *writer) carry(group []*call) {
	for more := true; more; group, more = <-w.groups {
		for len(group) > 0 {
			group = w.carryOut(group)
		}
	}
}

// close lets those go who carry groups out. No call waits any more, and none will come.
func (w *writer) close() { close(w.groups) }

// full says that no group is to begin now beside those that are under way.
func (w *writer) full() bool {
	return w.under == maxGroups || w.under > 0 && w.weight < w.under*besideWeight
}

// take removes the calls that are next to go alone, which it answers, and, unless full, as many
// others as fit into one commit.
func (w *writer) take(full bool) (group []*call) {
	left := w.waiting[:0]
	rows, size := 0, 0
	place := newPlaces()
	for _, c := range w.waiting {
		_, busy := w.busy[c.run]
		switch {
		case busy && !place.mine[c.run], place.behind[c.run]:
			// Those before it come first.
		case c.alone && !place.mine[c.run]:
			w.goAlone(c)
			continue
		case !c.alone && !full && (len(group) == 0 || rows+c.rows() <= maxGroup && size+c.size <= maxGroupBytes) &&
			place.fits(c):
			w.weight -= c.weight()
			if w.refuse(c) {
				continue
			}
			rows, size = rows+c.rows(), size+c.size
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

// goAlone keeps the run for the call's caller.
func (w *writer) goAlone(c *call) {
	if w.refuse(c) {
		return
	}
	if !c.run.IsZero() {
		w.busy[c.run] = struct{}{}
	}
	close(c.done)
}

// refuse answers a call that stands behind one that has failed. All that stands before it has come
// to its end, or is in its group.
func (w *writer) refuse(c *call) bool {
	if c.err = c.ticket.Err(); c.err == nil {
		return false
	}
	c.ticket.Resolve(c.err)
	close(c.done)
	return true
}

// places is what a group that is being gathered has of each run.
type places struct {
	mine   map[engine.ID]bool // has some
	behind map[engine.ID]bool // has left one waiting: what comes after it waits as well
	ends   map[engine.ID]bool // has its end
	steps  map[stepKey]bool
}

func newPlaces() places {
	return places{map[engine.ID]bool{}, map[engine.ID]bool{}, map[engine.ID]bool{}, map[stepKey]bool{}}
}

// fits says that the group's statements carry the call out after what they have of its run: nothing
// comes after an end, nor a step twice.
func (p places) fits(c *call) bool {
	return c.run.IsZero() || !p.ends[c.run] && (c.step == nil || !p.steps[c.step.key()])
}

func (p places) add(c *call) {
	if c.run.IsZero() {
		return
	}
	p.mine[c.run] = true
	if c.step != nil {
		p.steps[c.step.key()] = true
	} else {
		p.ends[c.run] = true
	}
}

// carryOut writes a group, has what waited for it go on, and returns a group that is to be carried
// out next, if there is one.
func (w *writer) carryOut(group []*call) []*call {
	w.store.writeGroup(group)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range group {
		delete(w.busy, c.run)
	}
	w.answer(group)
	w.under--
	own := w.next()
	if len(own) > 0 {
		w.advance()
	} else {
		w.idle++
	}
	return own
}

// answer ends the calls of a group that was written. Those that did not happen stand first in line
// again, in their order.
func (w *writer) answer(group []*call) {
	var again []*call
	for _, c := range group {
		if !c.settled && c.err == nil {
			c.alone = true
			again = append(again, c)
			continue
		}
		c.ticket.Resolve(c.err)
		close(c.done)
	}
	if len(again) > 0 {
		w.waiting = append(again, w.waiting...)
	}
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
	ended := s.suspicions.write()
	err := s.pool.send(ctx, batch)
	ended(err)
	s.floors.due(dueOf(group))
	if err == nil {
		engine.Failpoint("postgres.after_commit")
		s.commits.Add(len(answers.settled))
		for _, c := range answers.settled {
			c.settled = true
		}
		answers.handoffs.settle(true, nil)
		for _, c := range answers.started {
			answers.events = append(answers.events, storekit.Events(c.notifications(answers.handoffs)...)...)
		}
		s.notifier.notify(answers.events)
		return
	}
	if alone(err) {
		answers.handoffs.settle(false, nil)
		return // nobody is settled
	}
	if unsettled(err) {
		s.notifier.commitUnknown()
	}
	err = translate("write", err)
	answers.handoffs.settle(false, err)
	for _, c := range group {
		c.err = err
	}
}

// groupAnswers is what a group's statements say, to be believed once the transaction is committed.
type groupAnswers struct {
	settled  []*call
	events   []storekit.Event
	started  []*startCall
	handoffs *handoffs // to whom runs are given that were started
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

// queueLocks locks what the ends of runs write to, in statements of their own, so that those after
// them see it as it is then: first the runs, then their leases. Everybody locks the newest runs
// first, so that a child comes before its parent.
func queueLocks(batch *pgx.Batch, group []*call) {
	var runs [][16]byte
	for _, c := range group {
		if c.finish != nil {
			runs = append(runs, c.run)
		}
	}
	if len(runs) > 0 {
		batch.Queue(lockRunsSQL.text, lockRunsSQL.bind(args{"run_ids": runs})...)
		batch.Queue(lockLeasesSQL.text, lockLeasesSQL.bind(args{"run_ids": runs})...)
	}
}

// alone says that the group failed by what one of its calls holds, or by a rival, and that each may be tried by itself.
func alone(err error) bool {
	if retryable(err) || ofData(err) {
		return true
	}
	_, lost := errors.AsType[*engine.Error](translate("", err))
	return !lost
}
