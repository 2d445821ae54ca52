package postgres

import (
	_ "embed"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_run_state.sql
var getRunStateText string

var getRunStateSQL = runColumns.Expand(getRunStateText)

//go:embed sql/get_lease.sql
var getLeaseSQL string

// Run locks the run and then its lease; no transaction locks them in the other order.
func (t *tx) Run(namespace string, id engine.ID) (*storelogic.Run, error) {
	run := t.loaded[id]
	delete(t.loaded, id)
	if run == nil {
		runs, err := t.runs([]engine.ID{id})
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		run = runs[0]
	}
	if namespace != "" && run.Namespace != namespace {
		return nil, nil
	}
	return run, nil
}

// runs locks several runs, newest first, and then their leases. It returns the runs that exist, in
// that order.
func (t *tx) runs(ids []engine.ID) ([]*storelogic.Run, error) {
	var runs []*storelogic.Run
	byID := make(map[engine.ID]*storelogic.Run, len(ids))
	which := args{"run_ids": idArray(ids)}
	t.queueRunRows(getRunStateSQL, which, func(run *storelogic.Run) bool {
		runs, byID[run.ID] = append(runs, run), run
		return true
	})
	t.batch.Queue(getLeaseSQL, which).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var l storelogic.Run
		_, err := pgx.ForEachRow(rows, append([]any{idOf(&id)}, leasePlaces(&l)...), func() error {
			if byID[id] != nil {
				t.addLease(byID[id], &l)
			}
			return nil
		})
		return err
	})
	if err := t.send(); err != nil {
		return nil, err
	}
	return runs, t.lockGates(runs)
}

// queueRunRows queues what locks and reads the rows of runs. When it is sent, add is called with each
// run, and says whether it is new.
func (t *tx) queueRunRows(sql string, a args, add func(*storelogic.Run) bool) {
	t.batch.Queue(sql, a).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			run := &storelogic.Run{}
			places := append(runPlaces(&run.Run), &run.LaneID, tokenOf(&run.FinalToken), &run.TiedTo,
				&run.Settled)
			if err := rows.Scan(places...); err != nil {
				return err
			}
			if add(run) {
				t.note(run) // the row before the lease's newer counts are added
			}
		}
		return rows.Err()
	})
}

func leasePlaces(l *storelogic.Run) []any {
	return []any{tokenOf(&l.Token), &l.Holder, timeOf(&l.ClaimedAt), &l.Steps, &l.Bytes, &l.Settled, &l.Progressed}
}

// addLease completes a run with its lease.
func (t *tx) addLease(run, l *storelogic.Run) {
	run.Token, run.Holder, run.ClaimedAt, run.WasHeld = l.Token, l.Holder, l.ClaimedAt, true
	run.Steps, run.Bytes, run.Settled, run.Progressed = l.Steps, l.Bytes, l.Settled, l.Progressed
	if l.Progressed {
		run.LeaseLosses = 0
	}
	t.note(run)
}

// prepare locks the runs that an operation will read one by one, and their concurrency keys, so
// that two transactions about many runs lock in the same order.
func (t *tx) prepare(ids []engine.ID) error {
	if len(ids) == 0 {
		return nil
	}
	runs, err := t.runs(ids)
	if err != nil {
		return err
	}
	if t.loaded == nil {
		t.loaded = make(map[engine.ID]*storelogic.Run, len(runs))
	}
	var keys []int64
	for _, run := range runs {
		t.loaded[run.ID] = run
		if run.ConcurrencyKey != "" {
			keys = append(keys, keyOf(run))
		}
	}
	return t.lockKeys(keys)
}

// ids returns the ids that a statement selects.
func (t *tx) ids(sql string, a args) (list []engine.ID, err error) {
	var id engine.ID
	err = t.read(sql, a, []any{idOf(&id)}, func() { list = append(list, id) })
	return list, err
}

//go:embed sql/held_by.sql
var heldBySQL string

// heldLease is a lease of a worker, not locked.
type heldLease struct {
	engine.Held
	worker    string
	claimedAt time.Time
}

func scanHeld(row pgx.CollectableRow) (h heldLease, err error) {
	err = row.Scan(idOf(&h.Lease.RunID), tokenOf(&h.Lease.Token), &h.Lease.Namespace, &h.worker, timeOf(&h.claimedAt),
		timeOf(&h.GraceUntil), &h.CancelReason, &h.Pausing)
	return h, err
}

func (t *tx) leasesOf(workers []string) ([]heldLease, error) {
	return collect(t, heldBySQL, args{"worker_ids": workers}, scanHeld)
}

// HeldBy requires that the worker is locked, so that it gets no new leases meanwhile. It leaves out
// leases that the worker loses before the runs are locked.
func (t *tx) HeldBy(worker string) ([]engine.ID, error) {
	leases, err := t.leasesOf([]string{worker})
	if err != nil {
		return nil, err
	}
	ids := make([]engine.ID, len(leases))
	for i, l := range leases {
		ids[i] = l.Lease.RunID
	}
	return t.still(ids, func(r *storelogic.Run) bool { return r.Holder == worker && !r.Token.IsZero() })
}

//go:embed sql/held_to_free.sql
var heldToFreeSQL string

// heldToFree is HeldBy for the first leases only, without those whose run's own heartbeat timeout
// has not passed. full says that there may be more.
func (t *tx) heldToFree(w *engine.Worker, p *engine.OfflineWorkerParams) (ids []engine.ID, full bool, err error) {
	var heard time.Time
	if p.Reason == engine.OfflineLost {
		heard = w.LastHeartbeatAt
	}
	ids, err = t.ids(heldToFreeSQL, args{"worker_id": w.ID, "heard_at": microsOrNull(heard), "now": micros(p.Now),
		"limit": storelogic.FreedAtOnce})
	if err != nil {
		return nil, false, err
	}
	full = len(ids) == storelogic.FreedAtOnce
	ids, err = t.still(ids, func(r *storelogic.Run) bool { return r.Holder == w.ID && !r.Token.IsZero() })
	return ids, full, err
}

// still locks runs and leaves out those for which the condition no longer holds.
func (t *tx) still(ids []engine.ID, holds func(r *storelogic.Run) bool) ([]engine.ID, error) {
	if err := t.prepare(ids); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id engine.ID) bool { return t.loaded[id] == nil || !holds(t.loaded[id]) }), nil
}

//go:embed sql/get_loss.sql
var getLossSQL string

func (t *tx) Loss(worker string) (engine.Loss, error) {
	l := engine.Loss{Worker: worker}
	_, err := t.found(getLossSQL, args{"worker_id": worker}, timeOf(&l.At), timeOf(&l.HeardAt), &l.Runs, &l.Suspects)
	return l, err
}

//go:embed sql/pauses_runs.sql
var pausesRunsSQL string

// PausesRuns does not lock the worker; what it knows changes only when it registers.
func (t *tx) PausesRuns(worker string) (pauses bool, err error) {
	_, err = t.found(pausesRunsSQL, args{"worker_id": worker}, &pauses)
	return pauses, err
}

//go:embed sql/get_payloads.sql
var getPayloadsSQL string

// Payloads reads the payloads separately, because few operations need them.
func (t *tx) Payloads(run engine.ID) (input, output engine.Payload, err error) {
	_, err = t.found(getPayloadsSQL, args{"run_id": [16]byte(run)},
		slices.Concat(payloadPlaces(&input), payloadPlaces(&output))...)
	return input, output, err
}

//go:embed sql/open_external.sql
var openExternalSQL string

// OpenExternal only reads. If another transaction takes the id meanwhile, the insert fails and the
// operation is retried.
func (t *tx) OpenExternal(namespace, externalID string) (id engine.ID, err error) {
	_, err = t.found(openExternalSQL, args{"namespace": namespace, "external_id": externalID}, idOf(&id))
	return id, err
}

//go:embed sql/requested.sql
var requestedSQL string

// Requested only reads, as OpenExternal does.
func (t *tx) Requested(namespace, requestID string) (id engine.ID, err error) {
	_, err = t.found(requestedSQL, args{"namespace": namespace, "request_id": requestID}, idOf(&id))
	return id, err
}

//go:embed sql/insert_request.sql
var insertRequestSQL string

// LeaveRequest fails if another transaction made the request meanwhile; the operation is then
// retried.
func (t *tx) LeaveRequest(start *engine.StartRun, answer engine.ID) error {
	return t.queue(insertRequestSQL, args{"namespace": start.Namespace, "request_id": start.RequestID,
		"run_id": [16]byte(answer), "made_at": micros(engine.Micros(start.CreatedAt)),
		"task_queue": start.Queue, "workflow_type": start.Type, "external_id": start.ExternalID,
		"input": dataOrNull(start.Input.Data), "input_meta": mapText(start.Input.Metadata)})
}

//go:embed sql/left_request.sql
var leftRequestSQL string

// LeftRequest returns what LeaveRequest recorded, or nil.
func (t *tx) LeftRequest(namespace, requestID string) (*engine.StartRun, error) {
	start := &engine.StartRun{Run: engine.Run{Namespace: namespace, RequestID: requestID}}
	found, err := t.found(leftRequestSQL, args{"namespace": namespace, "request_id": requestID},
		append([]any{&start.Queue, &start.Type, &start.ExternalID}, payloadPlaces(&start.Input)...)...)
	if err != nil || !found {
		return nil, err
	}
	return start, nil
}

//go:embed sql/open_retry.sql
var openRetrySQL string

// OpenRetry is exact while the run is locked.
func (t *tx) OpenRetry(run engine.ID) (id engine.ID, err error) {
	_, err = t.found(openRetrySQL, args{"run_id": [16]byte(run)}, idOf(&id))
	return id, err
}

//go:embed sql/open_children.sql
var openChildrenSQL string

//go:embed sql/lock_free_runs.sql
var lockFreeRunsSQL string

// OpenChildren is exact while the run is locked, and locks the children. A transaction that ends a
// child holds the child and wants its parent, so one that holds the parent must not wait for
// children.
func (t *tx) OpenChildren(parent engine.ID) ([]engine.ID, error) {
	open, err := t.ids(openChildrenSQL, args{"run_id": [16]byte(parent)})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	free, err := t.ids(lockFreeRunsSQL, args{"run_ids": idArray(open)})
	if err == nil && len(free) < len(open) {
		// together with the runs that it holds, so that all are locked in one order
		err = &locksFirst{runs: slices.AppendSeq(open, maps.Keys(t.stored))}
	}
	return open, err
}

//go:embed sql/set_parent.sql
var setParentSQL string

func (t *tx) SetParent(run, parent, step engine.ID) error {
	return t.queue(setParentSQL, args{"run_id": [16]byte(run), "parent_run_id": [16]byte(parent),
		"parent_step_id": idOrNull(step)})
}

//go:embed sql/list_expiring.sql
var listExpiringSQL string

// Expired locks the runs and checks them again.
func (t *tx) Expired(now time.Time, limit int) (expired []engine.ID, next time.Time, err error) {
	var id engine.ID
	var at time.Time
	err = t.read(listExpiringSQL, args{"limit": limit + 1}, []any{idOf(&id), timeOf(&at)}, func() {
		switch {
		case !at.After(now) && len(expired) < limit:
			expired = append(expired, id)
		case next.IsZero():
			next = at
		}
	})
	if err != nil {
		return nil, next, err
	}
	expired, err = t.still(expired, func(r *storelogic.Run) bool {
		return !r.Status.Ended() && !r.ExpiresAt().IsZero() && !r.ExpiresAt().After(now)
	})
	return expired, next, err
}

//go:embed sql/list_left_behind.sql
var listLeftBehindSQL string

//go:embed sql/lock_workers.sql
var lockWorkersSQL string

// leftBehind is a lease that an OFFLINE worker still has.
type leftBehind struct {
	storelogic.Left
	worker string
	freeAt time.Time
}

func (t *tx) listLeftBehind(limit int) ([]leftBehind, error) {
	return collect(t, listLeftBehindSQL, args{"limit": limit}, func(row pgx.CollectableRow) (l leftBehind, err error) {
		err = row.Scan(idOf(&l.RunID), &l.worker, &l.Lost, timeOf(&l.freeAt))
		return l, err
	})
}

// LeftBehind locks the workers, which might register again, then the runs, and checks again.
func (t *tx) LeftBehind(now time.Time, limit int) (left []storelogic.Left, next time.Time, err error) {
	held, err := t.listLeftBehind(limit + 1)
	if err != nil {
		return nil, next, err
	}
	var ids []engine.ID
	var workers []string
	for _, l := range held {
		switch {
		case !l.freeAt.After(now) && len(ids) < limit:
			ids, workers = append(ids, l.RunID), append(workers, l.worker)
		case next.IsZero():
			next = l.freeAt
		}
	}
	if len(ids) == 0 {
		return nil, next, nil
	}
	if err := t.queue(lockWorkersSQL, args{"worker_ids": workers}); err != nil {
		return nil, next, err
	}
	if err := t.prepare(ids); err != nil {
		return nil, next, err
	}
	held, err = t.listLeftBehind(limit + 1)
	for _, l := range held {
		if slices.Contains(ids, l.RunID) && !l.freeAt.After(now) {
			left = append(left, l.Left)
		}
	}
	return left, next, err
}
