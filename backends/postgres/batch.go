package postgres

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// places records which calls of each run the gathered group has.
type places struct {
	mine   map[engine.ID]bool // the group has calls of the run
	behind map[engine.ID]bool // a call of the run was left waiting, so later ones wait too
	ends   map[engine.ID]bool // the group has the run's end
	steps  map[stepKey]bool
}

func newPlaces() places {
	return places{map[engine.ID]bool{}, map[engine.ID]bool{}, map[engine.ID]bool{}, map[stepKey]bool{}}
}

// joins says whether the call is for a group of that kind. A common call is also for the group of
// operations that has earlier calls of its run.
func (p places) joins(c *call, logic bool) bool {
	return c.logic == logic || logic && c.op != nil && p.mine[c.run]
}

// fits says whether the group's statements can carry out the call after the group's other calls of
// its run: nothing follows an end, and no step comes twice.
func (p places) fits(c *call) bool {
	return c.run.IsZero() || c.logic || !p.ends[c.run] && (c.step == nil || !p.steps[c.step.key()])
}

func (p places) add(c *call) {
	if c.run.IsZero() {
		return
	}
	p.mine[c.run] = true
	if c.logic {
		return
	}
	if c.step != nil {
		p.steps[c.step.key()] = true
	} else {
		p.ends[c.run] = true
	}
}

// carryOut writes a group, lets waiting calls continue, and returns the next group to carry out, if
// there is one.
func (w *writer) carryOut(group []*call) []*call {
	kind := group[0].kind()
	if kind == 0 {
		w.store.writeGroup(group)
	} else {
		w.store.writeOperations(group)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range group {
		delete(w.busy, c.run)
	}
	w.answer(group)
	w.under[kind]--
	own := w.next()
	if len(own) > 0 {
		w.advance()
	} else {
		w.idle++
	}
	return own
}

// answer ends the calls of a group that was written. Those that did not happen are first in the
// queue again, in order.
func (w *writer) answer(group []*call) {
	var again []*call
	for _, c := range group {
		if !c.settled && c.err == nil {
			c.alone = c.op == nil || c.logic && !c.op.again
			c.logic = !c.alone
			w.count(c)
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
		return // no call is settled
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

// groupAnswers holds the answers of a group's statements, which are valid once the transaction is
// committed.
type groupAnswers struct {
	settled  []*call
	events   []storekit.Event
	started  []*startCall
	handoffs *handoffs // the matches for runs that were started
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

// queueLocks locks what ends of runs write to, in separate statements, so that later ones see the
// present state: first the runs, then their leases. Everybody locks the newest runs first, so that
// a child comes before its parent.
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

// alone says whether the group failed because of one of its calls, or a conflict, so that each call
// can be tried by itself.
func alone(err error) bool {
	if retryable(err) || ofData(err) {
		return true
	}
	_, lost := errors.AsType[*engine.Error](translate("", err))
	return !lost
}
