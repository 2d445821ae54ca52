package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	maxFresh      = 4096     // runs that are remembered
	maxFreshInput = 16 << 10 // bytes of input of a run that is
)

// remember keeps a run that was just started, as most are claimed soon after: its claim need not read what was written a moment ago. Whoever
// changes the run forgets it.
func (t *tx) remember(p *engine.StartRun) {
	if related(&p.Run) || p.Input.Size() > maxFreshInput {
		return
	}
	if len(t.fresh) >= maxFresh {
		clear(t.fresh)
	}
	run := started(p)
	t.fresh[run.ID] = &run
}

// started is the run that a caller of StartRuns has made, who gives it nothing but its input.
func started(p *engine.StartRun) engine.Run {
	run := p.NewRun()
	run.Bytes = int64(p.Input.Size())
	return run
}

//go:embed sql/insert_lease.sql
var insertLeaseSQL string

// leaseFresh makes the lease of a run that nothing was reported about yet and that was just taken.
func (t *tx) leaseFresh(run *engine.Run, grant engine.ClaimSlot, now time.Time) error {
	run.Status, run.WorkerID, run.StartedAt, run.AvailableAt = engine.RunRunning, grant.WorkerID, now, time.Time{}
	t.tally.claimed(run, grant.Token)
	_, err := t.direct(&insertLeaseSQL, idArg("run_id", run.ID), tokenArg("token", grant.Token), text("worker_id", grant.WorkerID),
		text("namespace", run.Namespace), text("task_queue", run.Queue), text("workflow_type", run.Type), instant("now", now),
		length("heartbeat_us", run.Timeouts.Heartbeat), num("bytes", run.Bytes), flag("tied", run.Tied()),
		text("concurrency_key", run.ConcurrencyKey))
	return err
}
