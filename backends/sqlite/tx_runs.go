package sqlite

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// The files tx_*.go implement storelogic.Tx; its comments describe the methods.

var _ storelogic.Tx = (*tx)(nil)

//go:embed sql/get_run_state.sql
var getRunStateText string

var getRunStateSQL = runColumns.Expand(getRunStateText)

func (t *tx) Run(namespace string, id engine.ID) (*storelogic.Run, error) {
	var run storelogic.Run
	found, err := t.found(&getRunStateSQL, func(r *row) (err error) {
		run, err = readRunState(r)
		return err
	}, text("namespace", namespace), idArg("run_id", id))
	if err != nil || !found {
		return nil, err
	}
	t.currentRows[id] = mutableOf(&run)
	return &run, nil
}

// readRunState is readRun followed by the columns that only operations on runs need.
func readRunState(r *row) (storelogic.Run, error) {
	run, err := readRun(r)
	s := storelogic.Run{Run: run, LaneID: r.num(), FinalToken: r.token(), TiedTo: r.flag(), Settled: r.num()}
	s.Token, s.Holder, s.ClaimedAt, s.Progressed = r.token(), r.text(), r.time(), r.flag()
	s.WasHeld = !s.Token.IsZero()
	return s, err
}

//go:embed sql/held_by.sql
var heldBySQL string

func (t *tx) HeldBy(worker string) (ids []engine.ID, err error) {
	err = t.query(&heldBySQL, func(r *row) error {
		h, _ := readHeld(r)
		ids = append(ids, h.Lease.RunID)
		return nil
	}, text("worker_id", worker))
	return ids, err
}

// readHeld reads a lease, with what its worker must be told and when it was claimed.
func readHeld(r *row) (h engine.Held, claimedAt time.Time) {
	h.Lease = engine.Lease{Namespace: r.text(), RunID: r.id(), Token: r.token()}
	claimedAt = r.time()
	h.GraceUntil, h.CancelReason, h.Pausing = r.time(), r.text(), r.flag()
	return h, claimedAt
}

//go:embed sql/pauses_runs.sql
var pausesRunsSQL string

func (t *tx) PausesRuns(worker string) (pauses bool, err error) {
	_, err = t.found(&pausesRunsSQL, func(r *row) error {
		pauses = r.flag()
		return nil
	}, text("worker_id", worker))
	return pauses, err
}

//go:embed sql/get_payloads.sql
var getPayloadsSQL string

func (t *tx) Payloads(run engine.ID) (input, output engine.Payload, err error) {
	err = t.query(&getPayloadsSQL, func(r *row) (err error) {
		if input, err = readPayload(r); err != nil {
			return err
		}
		output, err = readPayload(r)
		return err
	}, idArg("run_id", run))
	return input, output, err
}

// oneID returns the one column of a statement's one row; zero if there is none.
func (t *tx) oneID(statement *string, args ...arg) (id engine.ID, err error) {
	_, err = t.found(statement, func(r *row) error {
		id = r.id()
		return nil
	}, args...)
	return id, err
}

// listIDs returns the one column of a statement's rows.
func (t *tx) listIDs(statement *string, args ...arg) (ids []engine.ID, err error) {
	err = t.query(statement, func(r *row) error {
		ids = append(ids, r.id())
		return nil
	}, args...)
	return ids, err
}

//go:embed sql/open_external.sql
var openExternalSQL string

func (t *tx) OpenExternal(namespace, externalID string) (engine.ID, error) {
	return t.oneID(&openExternalSQL, text("namespace", namespace), text("external_id", externalID))
}

//go:embed sql/requested.sql
var requestedSQL string

func (t *tx) Requested(namespace, requestID string) (engine.ID, error) {
	return t.oneID(&requestedSQL, text("namespace", namespace), text("request_id", requestID))
}

//go:embed sql/insert_request.sql
var insertRequestSQL string

func (t *tx) LeaveRequest(start *engine.StartRun, answer engine.ID) error {
	t.queues.requests = true
	_, err := t.exec(&insertRequestSQL, text("namespace", start.Namespace), text("request_id", start.RequestID),
		idArg("run_id", answer), instant("made_at", engine.Micros(start.CreatedAt)),
		text("task_queue", start.Queue), text("workflow_type", start.Type), text("external_id", start.ExternalID),
		blob("input", start.Input.Data), text("input_meta", encodeMap(start.Input.Metadata)))
	return err
}

//go:embed sql/left_request.sql
var leftRequestSQL string

func (t *tx) LeftRequest(namespace, requestID string) (start *engine.StartRun, err error) {
	_, err = t.found(&leftRequestSQL, func(r *row) (err error) {
		start = &engine.StartRun{Run: engine.Run{
			Namespace: namespace, RequestID: requestID, Queue: r.text(), Type: r.text(), ExternalID: r.text()}}
		start.Input, err = readPayload(r)
		return err
	}, text("namespace", namespace), text("request_id", requestID))
	return start, err
}

//go:embed sql/open_retry.sql
var openRetrySQL string

func (t *tx) OpenRetry(run engine.ID) (engine.ID, error) {
	return t.oneID(&openRetrySQL, idArg("run_id", run))
}

//go:embed sql/open_children.sql
var openChildrenSQL string

func (t *tx) OpenChildren(parent engine.ID) ([]engine.ID, error) {
	return t.listIDs(&openChildrenSQL, idArg("run_id", parent))
}

//go:embed sql/set_parent.sql
var setParentSQL string

func (t *tx) SetParent(run, parent, step engine.ID) error {
	t.forget(run)
	_, err := t.exec(&setParentSQL, idArg("run_id", run), idArg("parent_run_id", parent),
		idArg("parent_step_id", step))
	return err
}

//go:embed sql/first_gated.sql
var firstGatedSQL string

func (t *tx) FirstGated(namespace, workflowType, key string) ([]engine.ID, error) {
	return t.listIDs(&firstGatedSQL, text("namespace", namespace), text("workflow_type", workflowType),
		text("concurrency_key", key))
}

//go:embed sql/list_expiring.sql
var listExpiringSQL string

func (t *tx) Expired(now time.Time, limit int) (ids []engine.ID, next time.Time, err error) {
	err = t.query(&listExpiringSQL, func(r *row) error {
		if id, at := r.id(), r.time(); len(ids) < limit && !at.After(now) {
			ids = append(ids, id)
		} else if next.IsZero() {
			next = at
		}
		return nil
	}, num("limit", limit+1))
	return ids, next, err
}

//go:embed sql/list_left_behind.sql
var listLeftBehindSQL string

func (t *tx) LeftBehind(now time.Time, limit int) (left []storelogic.Left, next time.Time, err error) {
	err = t.query(&listLeftBehindSQL, func(r *row) error {
		l := storelogic.Left{RunID: r.id(), Lost: r.flag()}
		switch at := r.time(); {
		case !at.After(now) && len(left) < limit:
			left = append(left, l)
		case next.IsZero():
			next = at
		}
		return nil
	}, num("limit", limit+1))
	return left, next, err
}

//go:embed sql/held_to_free.sql
var heldToFreeSQL string

// heldToFree returns the first runs of the worker to free, without those that keep their lease for
// now.
func (t *tx) heldToFree(w *engine.Worker, p *engine.OfflineWorkerParams) (ids []engine.ID, err error) {
	var heard time.Time
	if p.Reason == engine.OfflineLost {
		heard = w.LastHeartbeatAt
	}
	err = t.query(&heldToFreeSQL, func(r *row) error {
		ids = append(ids, r.id())
		return nil
	}, text("worker_id", w.ID), instant("heard_at", heard), instant("now", p.Now), num("limit", storelogic.FreedAtOnce))
	return ids, err
}

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
			flag("progressed", r.Progressed), flag("tied", r.TiedTo), flag("suspect", r.Apart()),
			flag("pausing", r.Pausing), num("settled", r.Settled), num("owed_from", r.OwedFrom))
		if err != nil {
			return err
		}
	case r.WasHeld:
		ended, err := t.exec(&deleteLeaseSQL, idArg("run_id", r.ID))
		if err != nil {
			return err
		}
		t.queues.leased(queueKey{r.Namespace, r.Queue}, r.Type, -int(ended))
	}
	m := mutableOf(r)
	if before, ok := t.currentRows[r.ID]; ok && held && before == m {
		return nil
	}
	t.currentRows[r.ID] = m
	t.queues.apart = t.queues.apart || r.Apart() && !held
	_, err := t.exec(&saveRunSQL, saveRunArgs(r)...)
	return err
}

//go:embed sql/set_output.sql
var setOutputSQL string

func (t *tx) SaveOutput(run engine.ID, output engine.Payload) error {
	_, err := t.exec(&setOutputSQL, idArg("run_id", run), blob("output", output.Data),
		text("output_meta", encodeMap(output.Metadata)))
	return err
}

func (t *tx) InsertRun(start *engine.StartRun) error {
	made, err := t.insertRun(start, max(start.Bytes, int64(start.Input.Size())), nil)
	if err == nil && !made {
		err = fmt.Errorf("run %s cannot be made: its id or external id is taken", start.ID)
	}
	return err
}

func (t *tx) ImportRun(r *storelogic.Run) error {
	if err := t.useNamespace(r.Namespace, r.CreatedAt); err != nil {
		return err
	}
	requirements := encodeMap(r.Requirements)
	lane, err := t.lane(&r.Run, requirements)
	if err != nil {
		return err
	}
	made, err := t.exec(&insertWholeRunSQL, wholeRunArgs(&r.Run, lane, requirements)...)
	if err == nil && made == 0 {
		err = fmt.Errorf("run %s cannot be made: its id or external id is taken", r.ID)
	}
	if err == nil {
		err = t.insertInput(&r.Run)
	}
	if err == nil && r.Output.Size() > 0 {
		err = t.SaveOutput(r.ID, r.Output)
	}
	if err == nil && (r.Settled != 0 || r.TiedTo != r.Tied()) { // which only an import sets
		_, err = t.exec(&saveRunSQL, saveRunArgs(r)...)
	}
	return err
}
