package sqlite

import (
	_ "embed"
)

// maxGated is how many runs without a free slot of their concurrency key one transaction sorts out, about.
const maxGated = 1000

// concurrencyKey is a key of a workflow type.
type concurrencyKey struct{ kind, name string }

//go:embed sql/get_key.sql
var getKeySQL string

//go:embed sql/count_key.sql
var countKeySQL string

//go:embed sql/gate_run.sql
var gateRunSQL string

// slot takes a slot of the run's concurrency key; where none is free, the run leaves its lane until one is. Only the writer takes
// and frees slots, so what it has counted holds until the end of the claim.
func (c *claim) slot(run *candidate) (bool, error) {
	k := concurrencyKey{kind: run.lane.kind}
	limit := 0
	err := c.query(&getKeySQL, func(r *row) error {
		k.name, limit = r.text(), int(r.num())
		return nil
	}, idArg("run_id", run.id))
	if err != nil {
		return false, err
	}
	used, counted := c.keys[k]
	if !counted {
		if used, err = c.holders(k); err != nil {
			return false, err
		}
	}
	free := used < max(limit, 1)
	if free {
		used++
	}
	if c.keys == nil {
		c.keys = map[concurrencyKey]int{}
	}
	c.keys[k] = used
	if free {
		return true, nil
	}
	c.gated++
	c.ringRun(run.id)
	c.forget(run.id)
	_, err = c.exec(&gateRunSQL, idArg("run_id", run.id))
	return false, err
}

// holders counts the leases of a key.
func (c *claim) holders(k concurrencyKey) (n int, err error) {
	err = c.query(&countKeySQL, func(r *row) error {
		n = int(r.num())
		return nil
	}, text("namespace", c.p.Namespace), text("workflow_type", k.kind), text("concurrency_key", k.name))
	return n, err
}
