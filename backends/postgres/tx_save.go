package postgres

import (
	_ "embed"
	"maps"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// stored is a run as its rows stand, so that only what has changed is written: most steps change the lease alone.
type stored struct {
	run   args
	lease args // nil: it has none
}

// note remembers how a run stands: first its own row, and when its lease has been put in, the lease.
func (t *tx) note(r *storelogic.Run) {
	if t.stored == nil {
		t.stored = map[engine.ID]stored{}
	}
	s, known := t.stored[r.ID]
	if !known || !r.WasHeld {
		s = stored{run: runArgs(r)}
	}
	if r.WasHeld {
		s.lease = leaseArgs(r)
	}
	t.stored[r.ID] = s
}

//go:embed sql/save_run.sql
var saveRunSQL string

//go:embed sql/save_lease.sql
var saveLeaseSQL string

//go:embed sql/delete_lease.sql
var deleteLeaseSQL string

// SaveRun leaves the counts in the lease while there is one.
func (t *tx) SaveRun(r *storelogic.Run) error {
	was, now := t.stored[r.ID], stored{run: runArgs(r)}
	switch {
	case !r.Token.IsZero():
		now.lease = leaseArgs(r)
		if was.run != nil {
			now.run["steps"], now.run["bytes"] = was.run["steps"], was.run["bytes"]
		}
		if !maps.Equal(was.lease, now.lease) {
			if err := t.queue(saveLeaseSQL, now.lease); err != nil {
				return err
			}
		}
	case r.WasHeld && (was.run == nil || was.lease != nil):
		if err := t.queue(deleteLeaseSQL, args{"run_id": [16]byte(r.ID)}); err != nil {
			return err
		}
	}
	if t.stored == nil {
		t.stored = map[engine.ID]stored{}
	}
	t.stored[r.ID] = now
	if maps.Equal(was.run, now.run) {
		return nil
	}
	if !r.AvailableAt.IsZero() {
		t.due = append(t.due, dueRun{queueKey{r.Namespace, r.Queue}, micros(r.AvailableAt)})
	}
	return t.queue(saveRunSQL, now.run)
}

// leaseArgs is what can change of a lease, for save_lease.sql.
func leaseArgs(r *storelogic.Run) args {
	return args{"run_id": [16]byte(r.ID), "steps": r.Steps, "bytes": r.Bytes, "progressed": r.Progressed, "tied": r.TiedTo}
}

//go:embed sql/set_output.sql
var setOutputSQL string

// SaveOutput writes beside the input.
func (t *tx) SaveOutput(run engine.ID, output engine.Payload) error {
	return t.queueWith(output.Size(), setOutputSQL, args{"run_id": [16]byte(run), "output": dataOrNull(output.Data), "output_meta": mapText(output.Metadata)})
}

// InsertRun has a rival who took one of the ids meanwhile make the insert fail, so that the verb is tried again.
func (t *tx) InsertRun(start *engine.StartRun) error {
	lane, err := t.ensureLane(laneKeyOf(start))
	if err != nil {
		return err
	}
	if err := t.ensureNamespace(start.Namespace, start.CreatedAt); err != nil {
		return err
	}
	t.due = append(t.due, dueRun{queueKey{start.Namespace, start.Queue}, micros(start.AvailableAt)})
	t.bytes += start.Input.Size()
	columns := startColumns{lookedAt: true}
	columns.add(0, &startCall{starts: []engine.StartRun{*start}, lanes: []int64{lane}})
	return t.queueHot(insertRunSQL, columns.args())
}

// ImportRun makes the run and then writes over it what its life has made of it.
func (t *tx) ImportRun(r *engine.Run) error {
	if err := t.InsertRun(&engine.StartRun{Run: *r}); err != nil {
		return err
	}
	if err := t.SaveRun(&storelogic.Run{Run: *r, TiedTo: r.Tied()}); err != nil {
		return err
	}
	if r.Output.Size() == 0 {
		return nil
	}
	return t.SaveOutput(r.ID, r.Output)
}
