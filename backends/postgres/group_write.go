package postgres

import (
	"bytes"
	_ "embed"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/commit_soon.sql
var commitSoonSQL string

// write queues the changes of the group, one statement per table.
func (g *opGroup) write() error {
	t := g.tx
	if g.announces() {
		if err := t.queue(commitSoonSQL, args{}); err != nil {
			return err
		}
	}
	if err := g.writeRuns(); err != nil {
		return err
	}
	if err := g.writeSteps(); err != nil {
		return err
	}
	var made, consumed []args
	for _, s := range g.rows.signals {
		switch {
		case s.now == nil:
		case s.base == nil:
			made = append(made, signalArgs(s.now))
			t.bytes += s.now.Payload.Size()
		default:
			consumed = append(consumed, args{"run_id": [16]byte(s.now.RunID), "sequence": s.now.Sequence,
				"step_name": s.now.StepName})
		}
	}
	if err := t.queueRows(insertSignalSQL, made...); err != nil {
		return err
	}
	if err := t.queueRows(consumeSignalSQL, consumed...); err != nil {
		return err
	}
	var receipts []args
	of := map[engine.Token]int{}
	for _, r := range g.rows.receipts {
		if i, again := of[r.token]; again {
			receipts[i] = receiptArgs(r.run, r.token, r.receipt)
			continue
		}
		of[r.token] = len(receipts)
		receipts = append(receipts, receiptArgs(r.run, r.token, r.receipt))
	}
	if err := t.queueRows(insertReceiptSQL, receipts...); err != nil {
		return err
	}
	if err := t.queueRows(insertAuditSQL, g.rows.audits...); err != nil {
		return err
	}
	return g.writeSchedules()
}

// announces says whether the group only says that steps have begun.
func (g *opGroup) announces() bool {
	return !slices.ContainsFunc(g.members, func(m *member) bool { return m.decided && m.call.op.Name != "BeginStep" })
}

// writeRuns queues the changes of runs, of their leases, the newest first, and of their outputs.
func (g *opGroup) writeRuns() error {
	t := g.tx
	var changed []*groupRun
	var outputs []args
	for id, run := range g.rows.runs {
		if run.now != nil {
			changed = append(changed, run)
		}
		if run.output != nil {
			t.bytes += run.output.Size()
			outputs = append(outputs, outputArgs(id, *run.output))
		}
	}
	slices.SortFunc(changed, func(a, b *groupRun) int { return bytes.Compare(b.now.ID[:], a.now.ID[:]) })
	var runs, leases []args
	var freed [][16]byte
	for _, run := range changed {
		final := *run.now
		final.WasHeld = run.base.WasHeld
		c := t.changesOf(&final)
		if c.run != nil {
			runs = append(runs, c.run)
		}
		if c.lease != nil {
			leases = append(leases, c.lease)
		}
		if c.freed != nil {
			freed = append(freed, [16]byte(final.ID))
		}
	}
	if len(freed) > 0 {
		if err := t.queueHot(deleteLeaseSQL, args{"run_id": freed}); err != nil {
			return err
		}
	}
	if err := t.queueRows(saveLeaseSQL, leases...); err != nil {
		return err
	}
	if err := t.queueRows(saveRunSQL, runs...); err != nil {
		return err
	}
	if err := t.queueRows(setOutputSQL, outputs...); err != nil {
		return err
	}
	return g.writeStarts()
}

// writeStarts queues the runs that operations make, after the runs whose external ids they may take
// over.
func (g *opGroup) writeStarts() error {
	starts := g.rows.starts
	if len(starts) == 0 {
		return nil
	}
	made := &startCall{starts: starts, lanes: make([]int64, len(starts))}
	for i := range starts {
		lane, err := g.tx.ensureLane(laneKeyOf(&starts[i]))
		if err != nil {
			return err
		}
		made.lanes[i] = lane
		g.tx.bytes += starts[i].Input.Size()
		g.tx.due = append(g.tx.due, dueRun{queueKey{starts[i].Namespace, starts[i].Queue},
			micros(starts[i].AvailableAt)})
	}
	columns := startColumns{lookedAt: true}
	columns.add(0, made)
	return g.tx.queueHot(insertRunSQL, columns.args())
}

// writeSteps queues new steps and the changes of others.
func (g *opGroup) writeSteps() error {
	t := g.tx
	var made, saved []args
	for _, s := range g.rows.steps {
		switch {
		case s.now == nil:
		case s.base == nil:
			made = append(made, newStepArgs(s.now))
			t.bytes += s.now.Input.Size() + s.now.Output.Size()
		default:
			saved = append(saved, savedStepArgs(s.now, s.output, s.superseded))
			t.bytes += s.now.Output.Size()
		}
	}
	if err := t.queueRows(insertStepSQL, made...); err != nil {
		return err
	}
	if err := t.queueRows(updateStepSQL, saved...); err != nil {
		return err
	}
	for _, run := range g.rows.runs {
		if run.retryAt != nil {
			if err := t.queue(retryStepsSQL, run.retryAt); err != nil {
				return err
			}
		}
	}
	return nil
}
