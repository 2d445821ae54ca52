package sqlite

import (
	_ "embed"
	"fmt"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/save_run.sql
var saveRunSQL string

//go:embed sql/save_lease.sql
var saveLeaseSQL string

//go:embed sql/delete_lease.sql
var deleteLeaseSQL string

func (t *tx) SaveRun(r *storelogic.Run) error {
	held := !r.Token.IsZero()
	t.forget(r.ID)
	switch {
	case held:
		_, err := t.exec(&saveLeaseSQL, idArg("run_id", r.ID), num("steps", r.Steps), num("bytes", r.Bytes),
			flag("progressed", r.Progressed), flag("tied", r.TiedTo))
		if err != nil {
			return err
		}
	case r.WasHeld:
		ended, err := t.exec(&deleteLeaseSQL, idArg("run_id", r.ID))
		if err != nil {
			return err
		}
		t.known.leased(queueKey{r.Namespace, r.Queue}, r.Type, -int(ended))
	}
	m := movingOf(r)
	if before, ok := t.seen[r.ID]; ok && held && before == m {
		return nil
	}
	t.seen[r.ID] = m
	_, err := t.exec(&saveRunSQL, saveRunArgs(r)...)
	return err
}

//go:embed sql/set_output.sql
var setOutputSQL string

func (t *tx) SaveOutput(run engine.ID, output engine.Payload) error {
	_, err := t.exec(&setOutputSQL, idArg("run_id", run), blob("output", output.Data), text("output_meta", encodeMap(output.Metadata)))
	return err
}

func (t *tx) InsertRun(start *engine.StartRun) error {
	made, err := t.insertRun(start, max(start.Bytes, int64(start.Input.Size())), nil)
	if err == nil && !made {
		err = fmt.Errorf("run %s stands in the way of another", start.ID)
	}
	return err
}

func (t *tx) ImportRun(r *engine.Run) error {
	if err := t.useNamespace(r.Namespace, r.CreatedAt); err != nil {
		return err
	}
	requirements := encodeMap(r.Requirements)
	lane, err := t.lane(r, requirements)
	if err != nil {
		return err
	}
	made, err := t.exec(&insertWholeRunSQL, wholeRunArgs(r, lane, requirements)...)
	if err == nil && made == 0 {
		err = fmt.Errorf("run %s stands in the way of another", r.ID)
	}
	if err == nil {
		err = t.insertInput(r)
	}
	if err == nil && r.Output.Size() > 0 {
		err = t.SaveOutput(r.ID, r.Output)
	}
	return err
}
