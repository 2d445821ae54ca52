package sqlite

import (
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

// tally is what the writer remembers of the leases under which steps are reported and runs end, so that the common step costs one
// insert, the common end looks at nothing, and its run's counts are written once for all steps of a commit. What it remembers is what
// the rows say, but for the counts of dirty ones; settle writes these before any other statement of the transaction can look at them.
type tally struct {
	leases map[engine.ID]*counted
	dirty  []*counted
}

// counted is a lease with its counts.
type counted struct {
	run        engine.ID
	token      engine.Token
	namespace  string
	queue      string
	kind       string
	worker     string
	steps      int64
	bytes      int64
	tied       bool // the run's end concerns others
	progressed bool
	plain      bool // every step of the run was recorded under this lease, in one insert: none of them is open
	dirty      bool
}

//go:embed sql/get_lease.sql
var getLeaseSQL string

// lease is the one that l names, nil when its token is not the current one.
func (t *tx) lease(l engine.Lease) (*counted, error) {
	c := t.tally.leases[l.RunID]
	if c == nil {
		c = &counted{run: l.RunID}
		found, err := t.found(&getLeaseSQL, func(r *row) error {
			c.token, c.namespace, c.queue, c.kind, c.worker = r.token(), r.text(), r.text(), r.text(), r.text()
			c.steps, c.bytes, c.tied, c.progressed = r.num(), r.num(), r.flag(), r.flag()
			return nil
		}, idArg("run_id", l.RunID))
		if err != nil || !found {
			return nil, err
		}
		t.tally.leases[l.RunID] = c
	}
	if c.token != l.Token || l.Namespace != "" && c.namespace != l.Namespace {
		return nil, nil
	}
	return c, nil
}

// claimed remembers a lease that was just made, of a run that nothing was reported about so far.
func (t *tally) claimed(run *engine.Run, token engine.Token) {
	t.leases[run.ID] = &counted{
		run: run.ID, token: token, namespace: run.Namespace, queue: run.Queue, kind: run.Type, worker: run.WorkerID, bytes: run.Bytes,
		tied: run.Tied(), plain: true,
	}
}

// open notes that not all steps of the run were recorded in one insert.
func (t *tally) open(run engine.ID) {
	if c := t.leases[run]; c != nil {
		c.plain = false
	}
}

// add counts a step with its result.
func (t *tally) add(c *counted, size int) {
	c.steps++
	c.bytes += int64(size)
	c.progressed = true
	if !c.dirty {
		c.dirty = true
		t.dirty = append(t.dirty, c)
	}
}

//go:embed sql/settle_lease.sql
var settleLeaseSQL string

// settle writes the counts that are only remembered.
func (t *tx) settle() error {
	for _, c := range t.tally.dirty {
		if !c.dirty { // it has ended since
			continue
		}
		c.dirty = false
		_, err := t.conn.Exec(t.ctx, &settleLeaseSQL, idArg("run_id", c.run), num("steps", c.steps), num("bytes", c.bytes))
		if err != nil {
			t.wrote = true
			return err
		}
	}
	t.tally.dirty = t.tally.dirty[:0]
	return nil
}

// forget is for whoever changes or ends a lease, or the steps under it, otherwise.
func (t *tx) forget(run engine.ID) {
	delete(t.tally.leases, run)
	delete(t.fresh, run)
}
