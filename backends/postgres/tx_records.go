package postgres

import (
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_receipt.sql
var getReceiptSQL string

// Receipt is needed only when a call is repeated.
func (t *tx) Receipt(run engine.ID, token engine.Token) (r storelogic.Receipt, err error) {
	_, err = t.found(getReceiptSQL, args{"token": [16]byte(token), "run_id": [16]byte(run)}, &r.Verb, &r.Content,
		timeOf(&r.RetryAt))
	return r, err
}

//go:embed sql/insert_receipt.sql
var insertReceiptText string

var insertReceiptSQL = hot(insertReceiptText)

// LeaveReceipt replaces an earlier receipt of the same lease.
func (t *tx) LeaveReceipt(run engine.ID, token engine.Token, r storelogic.Receipt) error {
	return t.queueRows(insertReceiptSQL, receiptArgs(run, token, r))
}

func receiptArgs(run engine.ID, token engine.Token, r storelogic.Receipt) args {
	return args{"token": [16]byte(token), "run_id": [16]byte(run), "verb": r.Verb, "content": r.Content,
		"retry_at": microsOrNull(r.RetryAt)}
}

func scanSignal(row pgx.CollectableRow) (s engine.Signal, err error) {
	err = row.Scan(signalPlaces(&s)...)
	return s, err
}

//go:embed sql/next_signal.sql
var nextSignalSQL string

// NextSignal is exact while the run is locked.
func (t *tx) NextSignal(run engine.ID, name string) (*engine.Signal, error) {
	return t.oneSignal(nextSignalSQL, args{"run_id": [16]byte(run), "name": name})
}

//go:embed sql/get_signal.sql
var getSignalSQL string

// SignalByID is needed when a sender repeats a signal.
func (t *tx) SignalByID(run engine.ID, signalID string) (*engine.Signal, error) {
	return t.oneSignal(getSignalSQL, args{"run_id": [16]byte(run), "signal_id": signalID})
}

func (t *tx) oneSignal(statement string, a args) (*engine.Signal, error) {
	var s engine.Signal
	found, err := t.found(statement, a, signalPlaces(&s)...)
	if err != nil || !found {
		return nil, err
	}
	return &s, nil
}

//go:embed sql/list_unconsumed.sql
var listUnconsumedSQL string

// Unconsumed reads the signals with their payloads.
func (t *tx) Unconsumed(run engine.ID) ([]engine.Signal, error) {
	return collect(t, listUnconsumedSQL, args{"run_id": [16]byte(run)}, scanSignal)
}

//go:embed sql/count_signals.sql
var countSignalsSQL string

// CountSignals is exact while the run is locked.
func (t *tx) CountSignals(run engine.ID) (waiting int, last int64, err error) {
	_, err = t.found(countSignalsSQL, args{"run_id": [16]byte(run)}, &waiting, &last)
	return waiting, last, err
}

//go:embed sql/insert_signal.sql
var insertSignalText string

var insertSignalSQL = hot(insertSignalText)

// InsertSignals sends one insert per signal, all in one round trip.
func (t *tx) InsertSignals(signals []engine.Signal) error {
	for i := range signals {
		t.bytes += signals[i].Payload.Size()
		if err := t.queueRows(insertSignalSQL, signalArgs(&signals[i])); err != nil {
			return err
		}
	}
	return nil
}

func signalArgs(s *engine.Signal) args {
	return args{"run_id": [16]byte(s.RunID), "sequence": s.Sequence, "name": s.Name, "signal_id": s.SignalID,
		"payload": dataOrNull(s.Payload.Data), "payload_meta": mapText(s.Payload.Metadata),
		"received_at": micros(s.ReceivedAt), "step_name": s.StepName}
}

//go:embed sql/measure_unconsumed.sql
var measureUnconsumedSQL string

// MeasureUnconsumed is exact while the run is locked.
func (t *tx) MeasureUnconsumed(run engine.ID) (int64, error) {
	sizes, err := collect(t, measureUnconsumedSQL, args{"run_id": [16]byte(run)},
		func(r pgx.CollectableRow) (int64, error) {
			var count, data int64
			var text string
			if err := r.Scan(&count, &data, &text); err != nil {
				return 0, err
			}
			meta, err := storekit.ReadMapText(text)
			return data + count*int64(engine.Payload{Metadata: meta}.Size()), err
		})
	var bytes int64
	for _, size := range sizes {
		bytes += size
	}
	return bytes, err
}

//go:embed sql/move_signals.sql
var moveSignalsSQL string

// MoveSignals changes only the rows' run.
func (t *tx) MoveSignals(from, to engine.ID) error {
	return t.queue(moveSignalsSQL, args{"run_id": [16]byte(from), "to": [16]byte(to)})
}

//go:embed sql/signal_in_chain.sql
var signalInChainSQL string

// SignalInChain reads what is committed.
func (t *tx) SignalInChain(first engine.ID, signalID string) (bool, error) {
	var run [16]byte
	return t.found(signalInChainSQL, args{"first": [16]byte(first), "signal_id": signalID}, &run)
}

//go:embed sql/return_signals.sql
var returnSignalsSQL string

// ReturnSignals is exact while the run is locked.
func (t *tx) ReturnSignals(run engine.ID, steps []string) error {
	return t.queue(returnSignalsSQL, args{"run_id": [16]byte(run), "step_names": steps})
}

//go:embed sql/consume_signal.sql
var consumeSignalText string

var consumeSignalSQL = hot(consumeSignalText)

// ConsumeSignal keeps the signal, with the step that consumed it.
func (t *tx) ConsumeSignal(run engine.ID, sequence int64, step string) error {
	return t.queueRows(consumeSignalSQL, args{"run_id": [16]byte(run), "sequence": sequence, "step_name": step})
}

//go:embed sql/get_namespace.sql
var getNamespaceSQL string

// Namespace returns the last committed state. A transaction that changes a namespace has locked it
// before (Store.UpdateNamespace). One that only reads it happens before or after that change, and
// both are correct.
func (t *tx) Namespace(name string) (*engine.Namespace, error) {
	var n engine.Namespace
	found, err := t.found(getNamespaceSQL, args{"namespace": name}, namespacePlaces(&n)...)
	if err != nil || !found {
		return nil, err
	}
	return &n, nil
}

//go:embed sql/insert_namespace.sql
var insertNamespaceSQL string

// InsertNamespace fails if a start of another server makes the namespace meanwhile; the operation
// is then retried.
func (t *tx) InsertNamespace(n *engine.Namespace) error {
	t.makes(n.Name)
	a := namespaceArgs(n)
	a["id"], a["created_at"] = [16]byte(n.ID), micros(n.CreatedAt)
	return t.queue(insertNamespaceSQL, a)
}

//go:embed sql/update_namespace.sql
var updateNamespaceSQL string

// SaveNamespace writes the settings.
func (t *tx) SaveNamespace(n *engine.Namespace) error {
	return t.queue(updateNamespaceSQL, namespaceArgs(n))
}

// namespaceArgs returns the columns of a namespace that can change.
func namespaceArgs(n *engine.Namespace) args {
	return args{"namespace": n.Name, "display_name": n.DisplayName, "description": n.Description, "enabled": n.Enabled,
		"updated_at": micros(n.UpdatedAt), "retention_us": n.Retention.Microseconds(), "keep": keepText(n.Keep),
		"failure_queue": n.FailureQueue}
}

//go:embed sql/get_handler_queue.sql
var getHandlerQueueSQL string

// HandlerQueue locks nothing: if the worker goes, the handler's run waits for the next one.
func (t *tx) HandlerQueue(namespace, workflowType string) (queue string, err error) {
	_, err = t.found(getHandlerQueueSQL, args{"namespace": namespace, "workflow_type": workflowType}, &queue)
	return queue, err
}

// Worker does not lock the worker; operations that change workers have their own statements.
func (t *tx) Worker(id string) (*engine.Worker, error) {
	return t.oneWorker(getWorkerSQL, args{"worker_id": id})
}

func (t *tx) oneWorker(statement string, a args) (*engine.Worker, error) {
	var w engine.Worker
	found, err := t.found(statement, a, workerPlaces(&w)...)
	if err != nil || !found {
		return nil, err
	}
	return &w, nil
}

//go:embed sql/get_api_key.sql
var getAPIKeySQL string

// APIKey is exact in a transaction that has locked the keys.
func (t *tx) APIKey(id engine.ID) (*engine.APIKey, error) {
	return t.oneAPIKey(getAPIKeySQL, args{"key_id": [16]byte(id)})
}

//go:embed sql/get_api_key_by_name.sql
var getAPIKeyByNameSQL string

// APIKeyNamed is exact under the same lock.
func (t *tx) APIKeyNamed(name string) (*engine.APIKey, error) {
	return t.oneAPIKey(getAPIKeyByNameSQL, args{"name": name})
}

func (t *tx) oneAPIKey(statement string, a args) (*engine.APIKey, error) {
	var k engine.APIKey
	found, err := t.found(statement, a, apiKeyPlaces(&k)...)
	if err != nil || !found {
		return nil, err
	}
	return &k, nil
}

//go:embed sql/count_lasting_api_keys.sql
var countLastingAPIKeysSQL string

// CountAPIKeys is exact under the same lock.
func (t *tx) CountAPIKeys() (all, lasting int, err error) {
	_, err = t.found(countLastingAPIKeysSQL, args{}, &all, &lasting)
	return all, lasting, err
}

//go:embed sql/insert_api_key.sql
var insertAPIKeySQL string

// InsertAPIKey inserts the key with the given fields.
func (t *tx) InsertAPIKey(k *engine.APIKey) error {
	return t.queue(insertAPIKeySQL, args{"key_id": [16]byte(k.ID), "name": k.Name, "role": int16(k.Role),
		"namespaces": listText(k.Namespaces),
		"queues":     listText(k.Queues), "types": listText(k.Types), "worker_ids": listText(k.WorkerIDs), "hash": k.Hash[:],
		"created_at": micros(k.CreatedAt),
		"expires_at": microsOrNull(k.ExpiresAt)})
}

//go:embed sql/revoke_api_key.sql
var revokeAPIKeySQL string

// RevokeAPIKey keeps the row.
func (t *tx) RevokeAPIKey(id engine.ID, at time.Time) error {
	return t.queue(revokeAPIKeySQL, args{"key_id": [16]byte(id), "now": micros(at)})
}

//go:embed sql/insert_audit.sql
var insertAuditText string

var insertAuditSQL = hot(insertAuditText)

// InsertAudit commits with the change.
func (t *tx) InsertAudit(e engine.AuditEvent) error {
	return t.queueRows(insertAuditSQL, auditArgs(&e))
}

func auditArgs(e *engine.AuditEvent) args {
	return args{"event_id": [16]byte(e.ID), "at": micros(e.At), "actor": e.Actor.Name, "peer": e.Actor.Peer,
		"method": e.Method, "namespace": e.Namespace, "subject": e.Subject, "subject_id": e.SubjectID,
		"outcome": e.Outcome,
		"reason":  e.Reason, "detail": e.Detail}
}

//go:embed sql/lock_schedule.sql
var lockScheduleSQL string

//go:embed sql/lock_schedule_by_name.sql
var lockScheduleByNameSQL string

// Schedule is locked after the runs, if both are.
func (t *tx) Schedule(namespace, ref string) (*engine.Schedule, error) {
	if id, err := engine.ParseID(ref); err == nil {
		s, err := t.oneSchedule(lockScheduleSQL, args{"namespace": namespace, "schedule_id": [16]byte(id)})
		if err != nil || s != nil {
			return s, err
		}
	}
	return t.oneSchedule(lockScheduleByNameSQL, args{"namespace": namespace, "name": ref})
}

//go:embed sql/get_schedule_by_request.sql
var getScheduleByRequestSQL string

// ScheduleByRequest is needed when a client repeats CreateSchedule.
func (t *tx) ScheduleByRequest(namespace, requestID string) (*engine.Schedule, error) {
	return t.oneSchedule(getScheduleByRequestSQL, args{"namespace": namespace, "request_id": requestID})
}

func (t *tx) oneSchedule(statement string, a args) (*engine.Schedule, error) {
	var s engine.Schedule
	found, err := t.found(statement, a, wholeSchedule(&s)...)
	if err != nil || !found {
		return nil, err
	}
	return &s, nil
}

func wholeSchedule(s *engine.Schedule) []any {
	return slices.Concat(schedulePlaces(s), payloadPlaces(&s.Input))
}

//go:embed sql/insert_schedule.sql
var insertScheduleSQL string

// InsertSchedule fails if another transaction took the name or the request meanwhile; the operation
// is then retried.
func (t *tx) InsertSchedule(s *engine.Schedule) error {
	a := scheduleArgs(s)
	a["namespace"], a["request_id"], a["created_at"] = s.Namespace, s.RequestID, micros(s.CreatedAt)
	return t.queue(insertScheduleSQL, a)
}

//go:embed sql/update_schedule.sql
var updateScheduleSQL string

// SaveSchedule writes a schedule that is locked.
func (t *tx) SaveSchedule(s *engine.Schedule) error {
	return t.queue(updateScheduleSQL, scheduleArgs(s))
}

// scheduleArgs returns the columns of a schedule that can change.
func scheduleArgs(s *engine.Schedule) args {
	return args{
		"schedule_id": [16]byte(s.ID), "name": s.Name, "cron_expr": s.CronExpr, "time_zone": s.TimeZone,
		"enabled":    s.Enabled,
		"task_queue": s.Queue, "workflow_type": s.Type, "version": s.Version,
		"input": dataOrNull(s.Input.Data), "input_meta": mapText(s.Input.Metadata),
		"retry_policy":      pointerText(s.RetryPolicy),
		"start_to_close_us": s.Timeouts.StartToClose.Microseconds(),
		"heartbeat_us":      s.Timeouts.Heartbeat.Microseconds(),
		"execution_us":      s.Timeouts.Execution.Microseconds(), "on_failure_workflow": s.OnFailureWorkflow,
		"on_failure_queue": s.OnFailureQueue, "tags": mapText(s.Tags), "max_catchup": s.MaxCatchup,
		"overlap":    int16(s.Overlap),
		"updated_at": micros(s.UpdatedAt), "next_fire_at": microsOrNull(s.NextFireAt),
		"last_fired_at": microsOrNull(s.LastFiredAt),
		"buffered":      microsOrNull(s.Buffered), "broken": s.Broken, "fired": s.Fired, "completed": s.Completed,
		"failed":  s.Failed,
		"skipped": s.Skipped, "revision": s.Revision,
		"pause_reason": s.PauseReason, "jitter_us": s.Jitter.Microseconds(), "delay_us": s.Delay.Microseconds(),
		"concurrency_key": s.ConcurrencyKey, "concurrency_limit": s.ConcurrencyLimit,
		"concurrency_scope": int16(s.ConcurrencyScope), "run_retry_policy": pointerText(s.RunRetryPolicy),
	}
}

//go:embed sql/delete_fires.sql
var deleteFiresSQL string

//go:embed sql/delete_schedule.sql
var deleteScheduleSQL string

// DeleteSchedule keeps its runs.
func (t *tx) DeleteSchedule(id engine.ID) error {
	if err := t.queue(deleteFiresSQL, args{"schedule_id": [16]byte(id)}); err != nil {
		return err
	}
	return t.queue(deleteScheduleSQL, args{"schedule_id": [16]byte(id)})
}

//go:embed sql/waiting_schedules.sql
var waitingSchedulesSQL string

// WaitingSchedules locks none of them. A transaction that ends a run of one meanwhile, under the
// namespace's old state, has locked the schedule; the next transaction that locks the schedule sees
// what it did.
func (t *tx) WaitingSchedules(namespace string) ([]engine.ID, error) {
	return t.ids(waitingSchedulesSQL, args{"namespace": namespace})
}

//go:embed sql/open_of.sql
var openOfSQL string

// OpenOf is exact while the schedule is locked, because every transaction that starts or ends one
// of its runs locks it.
func (t *tx) OpenOf(schedule, but engine.ID) (n int, err error) {
	_, err = t.found(openOfSQL, args{"schedule_id": schedule.String(), "but": [16]byte(but)}, &n)
	return n, err
}

//go:embed sql/insert_fire.sql
var insertFireSQL string

// InsertFire refuses a tick that another server fires too.
func (t *tx) InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error) {
	n, err := t.exec(insertFireSQL, args{"schedule_id": [16]byte(schedule), "tick": micros(tick),
		"run_id": [16]byte(run), "now": micros(now)})
	return n > 0, err
}

//go:embed sql/fired_run.sql
var firedRunSQL string

// FiredRun reads a schedule that is locked.
func (t *tx) FiredRun(schedule engine.ID, tick time.Time) (run engine.ID, err error) {
	_, err = t.found(firedRunSQL, args{"schedule_id": [16]byte(schedule), "tick": micros(tick)}, idOf(&run))
	return run, err
}
