package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_receipt.sql
var getReceiptSQL string

func (t *tx) Receipt(run engine.ID, token engine.Token) (rec storelogic.Receipt, err error) {
	_, err = t.found(&getReceiptSQL, func(r *row) error {
		rec = storelogic.Receipt{Verb: r.text(), Content: r.text(), RetryAt: r.time()}
		return nil
	}, tokenArg("token", token), idArg("run_id", run))
	return rec, err
}

//go:embed sql/insert_receipt.sql
var insertReceiptSQL string

func (t *tx) LeaveReceipt(run engine.ID, token engine.Token, rec storelogic.Receipt) error {
	_, err := t.exec(&insertReceiptSQL, tokenArg("token", token), idArg("run_id", run), text("verb", rec.Verb),
		text("content", rec.Content), instant("retry_at", rec.RetryAt))
	return err
}

//go:embed sql/next_signal.sql
var nextSignalSQL string

func (t *tx) NextSignal(run engine.ID, name string) (*engine.Signal, error) {
	return t.oneSignal(&nextSignalSQL, idArg("run_id", run), text("name", name))
}

//go:embed sql/get_signal.sql
var getSignalSQL string

func (t *tx) SignalByID(run engine.ID, signalID string) (*engine.Signal, error) {
	return t.oneSignal(&getSignalSQL, idArg("run_id", run), text("signal_id", signalID))
}

func (t *tx) oneSignal(statement *string, args ...arg) (*engine.Signal, error) {
	var signal engine.Signal
	found, err := t.found(statement, func(r *row) (err error) {
		signal, err = readSignal(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &signal, nil
}

//go:embed sql/list_unconsumed.sql
var listUnconsumedSQL string

func (t *tx) Unconsumed(run engine.ID) (signals []engine.Signal, err error) {
	err = t.query(&listUnconsumedSQL, func(r *row) error {
		signal, err := readSignal(r)
		signals = append(signals, signal)
		return err
	}, idArg("run_id", run))
	return signals, err
}

//go:embed sql/count_signals.sql
var countSignalsSQL string

func (t *tx) CountSignals(run engine.ID) (waiting int, last int64, err error) {
	err = t.query(&countSignalsSQL, func(r *row) error {
		waiting, last = int(r.num()), r.num()
		return nil
	}, idArg("run_id", run))
	return waiting, last, err
}

//go:embed sql/insert_signal.sql
var insertSignalSQL string

func (t *tx) InsertSignals(signals []engine.Signal) error {
	for i := range signals {
		s := &signals[i]
		_, err := t.exec(&insertSignalSQL, idArg("run_id", s.RunID), num("sequence", s.Sequence), text("name", s.Name),
			text("signal_id", s.SignalID), blob("payload", s.Payload.Data),
			text("payload_meta", encodeMap(s.Payload.Metadata)),
			instant("received_at", s.ReceivedAt), text("step_name", s.StepName))
		if err != nil {
			return err
		}
	}
	return nil
}

//go:embed sql/measure_unconsumed.sql
var measureUnconsumedSQL string

func (t *tx) MeasureUnconsumed(run engine.ID) (bytes int64, err error) {
	err = t.query(&measureUnconsumedSQL, func(r *row) error {
		count, data := r.num(), r.num()
		meta, err := storekit.ReadMapText(r.text())
		bytes += data + count*int64(engine.Payload{Metadata: meta}.Size())
		return err
	}, idArg("run_id", run))
	return bytes, err
}

//go:embed sql/move_signals.sql
var moveSignalsSQL string

func (t *tx) MoveSignals(from, to engine.ID) error {
	_, err := t.exec(&moveSignalsSQL, idArg("run_id", from), idArg("to", to))
	return err
}

//go:embed sql/signal_in_chain.sql
var signalInChainSQL string

func (t *tx) SignalInChain(first engine.ID, signalID string) (bool, error) {
	return t.found(&signalInChainSQL, func(*row) error {
		return nil
	}, idArg("first", first), text("signal_id", signalID))
}

//go:embed sql/consume_signal.sql
var consumeSignalSQL string

func (t *tx) ConsumeSignal(run engine.ID, sequence int64, step string) error {
	_, err := t.exec(&consumeSignalSQL, idArg("run_id", run), num("sequence", sequence), text("step_name", step))
	return err
}

//go:embed sql/return_signals.sql
var returnSignalsSQL string

func (t *tx) ReturnSignals(run engine.ID, steps []string) error {
	_, err := t.exec(&returnSignalsSQL, idArg("run_id", run), text("step_names", encode(steps)))
	return err
}

//go:embed sql/get_worker.sql
var getWorkerSQL string

func (t *tx) Worker(id string) (*engine.Worker, error) {
	return t.oneWorker(&getWorkerSQL, text("worker_id", id))
}

//go:embed sql/get_handler_queue.sql
var getHandlerQueueSQL string

func (t *tx) HandlerQueue(namespace, workflowType string) (string, error) {
	var queues []string
	_, err := t.found(&getHandlerQueueSQL, func(r *row) (err error) {
		decode(r.text(), &queues, &err)
		return err
	}, text("namespace", namespace), text("workflow_type", workflowType))
	if err != nil || len(queues) == 0 {
		return "", err
	}
	return queues[0], nil
}

//go:embed sql/get_api_key.sql
var getAPIKeySQL string

func (t *tx) APIKey(id engine.ID) (*engine.APIKey, error) {
	return t.oneAPIKey(&getAPIKeySQL, idArg("key_id", id))
}

//go:embed sql/get_api_key_by_name.sql
var getAPIKeyByNameSQL string

func (t *tx) APIKeyNamed(name string) (*engine.APIKey, error) {
	return t.oneAPIKey(&getAPIKeyByNameSQL, text("name", name))
}

func (t *tx) oneAPIKey(statement *string, args ...arg) (*engine.APIKey, error) {
	var key engine.APIKey
	found, err := t.found(statement, func(r *row) (err error) {
		key, err = readAPIKey(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &key, nil
}

//go:embed sql/count_lasting_api_keys.sql
var countLastingAPIKeysSQL string

func (t *tx) CountAPIKeys() (all, lasting int, err error) {
	err = t.query(&countLastingAPIKeysSQL, func(r *row) error {
		all, lasting = int(r.num()), int(r.num())
		return nil
	})
	return all, lasting, err
}

//go:embed sql/insert_api_key.sql
var insertAPIKeySQL string

func (t *tx) InsertAPIKey(k *engine.APIKey) error {
	_, err := t.exec(&insertAPIKeySQL, idArg("key_id", k.ID), text("name", k.Name), num("role", k.Role),
		text("namespaces", encodeList(k.Namespaces)), text("queues", encodeList(k.Queues)),
		text("types", encodeList(k.Types)), text("worker_ids", encodeList(k.WorkerIDs)),
		blob("hash", k.Hash[:]), instant("created_at", k.CreatedAt), instant("expires_at", k.ExpiresAt))
	return err
}

//go:embed sql/revoke_api_key.sql
var revokeAPIKeySQL string

func (t *tx) RevokeAPIKey(id engine.ID, at time.Time) error {
	_, err := t.exec(&revokeAPIKeySQL, idArg("key_id", id), instant("now", at))
	return err
}

//go:embed sql/insert_audit.sql
var insertAuditSQL string

func (t *tx) InsertAudit(e engine.AuditEvent) error {
	_, err := t.exec(&insertAuditSQL, auditArgs(&e)...)
	return err
}

func auditArgs(e *engine.AuditEvent) []arg {
	return []arg{
		idArg("event_id", e.ID), instant("at", e.At), text("actor", e.Actor.Name), text("peer", e.Actor.Peer),
		text("method", e.Method),
		text("namespace", e.Namespace), text("subject", e.Subject), text("subject_id", e.SubjectID),
		text("outcome", e.Outcome),
		text("reason", e.Reason), text("detail", e.Detail),
	}
}

// Notify merges consecutive equal notifications.
func (t *tx) Notify(n engine.Notification) {
	e := storekit.Event{Notification: n}
	if last := len(t.events); last == 0 || t.events[last-1] != e {
		t.events = append(t.events, e)
	}
}

func (t *tx) ReportSideEffects(e *engine.SideEffects) {
	t.events = append(t.events, storekit.Event{SideEffects: e})
}

var _ storelogic.Restoring = (*tx)(nil)

// afterRestore prepares rows from a backup for a server, in one commit.
func (s *Store) afterRestore(ctx context.Context, p engine.AfterRestoreParams) (engine.AfterRestore, error) {
	return write(ctx, s, "AfterRestore", 0, func(t *tx) (engine.AfterRestore, error) {
		return storelogic.AfterRestore(t, p)
	})
}

//go:embed sql/restore_leases.sql
var restoreLeasesSQL string

func (t *tx) Leases() (held []engine.ID, err error) {
	err = t.query(&restoreLeasesSQL, func(r *row) error {
		held = append(held, r.id())
		return nil
	})
	return held, err
}

//go:embed sql/restore_workers.sql
var restoreWorkersSQL string

func (t *tx) DeregisterWorkers(now time.Time) (int, error) {
	n, err := t.exec(&restoreWorkersSQL, num("reason", engine.OfflineForced), instant("now", now))
	return int(n), err
}

//go:embed sql/restore_schedules.sql
var restoreSchedulesSQL string

func (t *tx) DueSchedules(now time.Time) (due []engine.Schedule, err error) {
	err = t.query(&restoreSchedulesSQL, func(r *row) error {
		s, err := readSchedule(r)
		due = append(due, s)
		return err
	}, instant("now", now))
	return due, err
}

func (t *tx) Stand(name, value string, at time.Time) error {
	var n int64
	var err error
	if value == "" {
		n, err = dbfile.DeleteState(t.ctx, t.conn, name)
	} else {
		n, err = dbfile.SetState(t.ctx, t.conn, name, value, at)
	}
	t.wrote = t.wrote || n > 0 || err != nil
	return err
}
