package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

const (
	groupRounds = 6 // reads of a group; operations that need more go alone
	groupTries  = 2 // groups that may leave an operation out because of a lock, before it goes alone
)

// operation is a call of package storelogic that a group can carry out.
type operation struct {
	storelogic.Call
	do     func(storelogic.Tx) (any, error)
	answer any
	missed int  // groups that left it out because another transaction had locked a run
	again  bool // the next group may take it
}

// grouped are the operations that share a transaction. The others are rare, or concern many runs.
var grouped = map[string]bool{
	"BeginStep": true, "CompleteStep": true, "FailStep": true, "Sleep": true, "AwaitSignal": true, "SignalRun": true,
	"StartChild": true, "AwaitChildren": true, "SetRunNote": true, "FailRun": true, "CompleteRun": true, "Release": true,
	"CancelRun": true, "TerminateRun": true, "FireSchedule": true,
}

// These errors of a group's Tx end an operation within the group, not the group.
var (
	errMissing   = errors.New("rows are missing that the next read of the group will bring")
	errLocked    = errors.New("another transaction has locked a run")
	errElsewhere = errors.New("the operation needs a transaction of its own")
)

// opGroup carries out operations of package storelogic in one transaction: it reads what they will
// probably need, in one round trip; decides one after the other, each seeing what those before it
// have written; reads what was missing, and decides all of them again; and writes all rows, in one
// statement per table, in one round trip with the commit. Nothing is written before all operations
// are decided, so an operation that is refused leaves nothing behind, and refuses nobody else.
//
// A group that holds many runs waits for none: it skips runs that another transaction has locked.
// Operations that need one are left to the next group, and then go alone, where each can wait.
type opGroup struct {
	store   *Store
	tx      *tx // the transaction: its batch, and the rows as they are stored
	members []*member
	rows    groupRows

	beforeRound func() // nil except in tests
}

// member is an operation in its group.
type member struct {
	groupTx
	call    *call
	decided bool  // the operation was carried out or refused
	err     error // the refusal
	out     bool  // this group does not carry it out
}

func newOpGroup(s *Store, calls []*call) *opGroup {
	g := &opGroup{store: s, rows: newGroupRows(len(calls))}
	for _, c := range calls {
		c.op.again = true
		m := &member{call: c}
		m.groupTx = groupTx{tx: &tx{store: s, batch: &pgx.Batch{}, elsewhere: true}, rows: &g.rows}
		g.members = append(g.members, m)
		g.rows.expect(c)
	}
	return g
}

// writeOperations carries out a group of operations.
func (s *Store) writeOperations(calls []*call) {
	g := newOpGroup(s, calls)
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	err := g.carryOut(ctx)
	switch {
	case err == nil:
		g.settle()
	case alone(err):
		for _, c := range calls {
			c.op.again = false
		}
	default:
		if unsettled(err) {
			s.notifier.commitUnknown()
		}
		for _, c := range calls {
			c.err = translate(c.op.Doing, err)
		}
	}
}

// carryOut is the transaction.
func (g *opGroup) carryOut(ctx context.Context) (err error) {
	conn, err := g.store.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	ended := g.store.suspicions.write()
	defer func() { ended(err) }()
	defer conn.Release() // closes the connection if the transaction is still open
	g.tx = &tx{store: g.store, conn: conn, batch: &pgx.Batch{}}
	defer func() {
		g.store.floors.due(g.tx.due)
		if err != nil {
			g.tx.rollback()
		}
	}()
	g.tx.batch.Queue("begin")
	if g.store.pool.local != nil { // before anything is described, see pool.enter
		g.store.pool.queueSettings(g.tx.batch)
		if err := g.tx.send(); err != nil {
			return err
		}
	}
	for round := 1; ; round++ {
		if g.beforeRound != nil {
			g.beforeRound()
		}
		if err := g.rows.queueReads(g.tx); err != nil {
			return err
		}
		if err := g.tx.send(); err != nil {
			return err
		}
		if complete := g.decide(round == groupRounds); complete {
			break
		}
	}
	if err := g.write(); err != nil {
		return err
	}
	engine.Failpoint("postgres.before_commit")
	return g.tx.commit()
}

// decide carries out the operations over the rows that are known, and says whether nothing was
// missing. last: operations that miss something go alone.
func (g *opGroup) decide(last bool) bool {
	g.rows.undo(0)
	held := map[engine.ID]bool{} // runs whose operations this pass leaves out from here on
	complete := true
	for _, m := range g.members {
		m.decided, m.events = false, m.events[:0]
		if m.out || held[m.call.run] {
			held[m.call.run] = true
			continue
		}
		if m.err = m.call.ticket.Err(); m.err == nil {
			m.operate()
		}
		op := m.call.op
		switch {
		case errors.Is(m.err, errMissing) && !last:
			complete = false
		case errors.Is(m.err, errLocked):
			op.missed++
			m.out, op.again = true, op.missed < groupTries
		case errors.Is(m.err, errElsewhere), errors.Is(m.err, errMissing):
			m.out, op.again = true, false
		default:
			m.decided = true
			m.call.ticket.Resolve(m.err)
			continue
		}
		held[m.call.run] = true
	}
	return complete
}

// operate calls the operation, and forgets what a refused one has written. One that panics goes
// alone, where it panics in its caller.
func (m *member) operate() {
	before := len(m.rows.changes)
	defer func() {
		if recover() != nil {
			m.err = errElsewhere
		}
		if m.err != nil {
			m.rows.undo(before)
			m.events = m.events[:0]
		}
	}()
	m.call.op.answer, m.err = m.call.op.do(&m.groupTx)
}

// settle answers the operations once the transaction is committed.
func (g *opGroup) settle() {
	engine.Failpoint("postgres.after_commit")
	settled := 0
	for _, m := range g.members {
		if m.decided {
			m.call.settled, m.call.err = m.err == nil, m.err
			g.tx.events = append(g.tx.events, m.events...)
			settled++
			if m.err == nil {
				g.store.begun.note(m.call.op)
			}
		}
	}
	g.store.commits.Add(settled)
	g.store.notifier.notify(g.tx.events)
}

// settleParams are those of the operation by which a claim settles what happened to a run.
type settleParams struct{}

// settleClaimed settles what happened to runs that were just claimed: in groups, and one after the other
// where a group cannot. kept holds the tokens under which their workers parked them.
func (s *Store) settleClaimed(runs []engine.ID, kept map[engine.ID]engine.Token,
	now time.Time) (map[engine.ID]storelogic.Since, error) {
	const doing = "settle what happened to claimed runs"
	since := map[engine.ID]storelogic.Since{}
	settle := func(t storelogic.Tx, run engine.ID) (storelogic.Since, error) {
		return storelogic.SettleClaimed(t, run, kept[run], now)
	}
	var alone []engine.ID
	for some := range slices.Chunk(runs, maxGroup) {
		calls := make([]*call, len(some))
		for i, run := range some {
			calls[i] = &call{run: run, op: &operation{Call: storelogic.Call{Doing: doing, Params: settleParams{}},
				do: func(t storelogic.Tx) (any, error) { return settle(t, run) }}}
		}
		s.writeOperations(calls)
		for _, c := range calls {
			switch {
			case c.err != nil:
				return nil, c.err
			case c.settled:
				since[c.run] = c.op.answer.(storelogic.Since)
			default:
				alone = append(alone, c.run)
			}
		}
	}
	if len(alone) == 0 {
		return since, nil
	}
	return writeEntered(s, doing, func(t *tx) (map[engine.ID]storelogic.Since, error) {
		err := t.prepare(alone)
		for i := 0; i < len(alone) && err == nil; i++ {
			since[alone[i]], err = settle(t, alone[i])
		}
		return since, err
	})
}
