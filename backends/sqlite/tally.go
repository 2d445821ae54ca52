package sqlite

import (
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

// tally is what the writer remembers of the leases under which steps are reported, so that the common step costs one insert,
// and its run's counts are written once for all steps of a commit. What it remembers is what the rows say, but for the counts
// of dirty ones; settle writes these before any other statement of the transaction can look at them.
type tally struct {
	leases map[engine.ID]*counted
	dirty  []*counted
}

// counted is a lease with its counts.
type counted struct {
	run       engine.ID
	token     engine.Token
	namespace string
	worker    string
	steps     int64
	bytes     int64
	dirty     bool
}

//go:embed sql/get_lease.sql
var getLeaseSQL string

// lease is the one that l names, nil when its token is not the current one.
func (t *tx) lease(l engine.Lease) (*counted, error) {
	c := t.tally.leases[l.RunID]
	if c == nil {
		c = &counted{run: l.RunID}
		found, err := t.found(&getLeaseSQL, func(r *row) error {
			c.token, c.namespace, c.worker, c.steps, c.bytes = r.token(), r.text(), r.text(), r.num(), r.num()
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

// add counts a step with its result.
func (t *tally) add(c *counted, size int) {
	c.steps++
	c.bytes += int64(size)
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
		c.dirty = false
		_, err := t.conn.exec(t.ctx, &settleLeaseSQL, idArg("run_id", c.run), num("steps", c.steps), num("bytes", c.bytes))
		if err != nil {
			t.wrote = true
			return err
		}
	}
	t.tally.dirty = t.tally.dirty[:0]
	return nil
}

// forget is for whoever changes or ends a lease otherwise.
func (t *tx) forget(run engine.ID) { delete(t.tally.leases, run) }
