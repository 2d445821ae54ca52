package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// readStep reads the columns of statements that select whole attempts.
func readStep(r *row) (engine.Step, error) {
	s := engine.Step{
		ID: r.id(), RunID: r.id(), Name: r.text(), Kind: engine.StepKind(r.num()), Status: engine.StepStatus(r.num()),
		Attempt: int(r.num()), Failures: int(r.num()), Latest: r.flag(), Sequence: r.num(),
	}
	var err error
	if s.Input, err = readPayload(r); err != nil {
		return s, err
	}
	if s.Output, err = readPayload(r); err != nil {
		return s, err
	}
	decode(r.text(), &s.Error, &err)
	s.Token, s.WorkerID = r.token(), r.text()
	s.CreatedAt, s.StartedAt, s.FinishedAt, s.TimeoutAt, s.RetryAt, s.WakeAt = r.time(), r.time(), r.time(), r.time(),
		r.time(), r.time()
	s.Duration = r.length()
	decode(r.text(), &s.RetryPolicy, &err)
	*storekit.DetailOf(&s), s.TimedOut, s.ChildRunID, s.Awaited = r.text(), r.flag(), r.id(), r.num()
	s.OverriddenBy, s.OverrideReason, s.Settled, s.Branch, s.BegunIn = r.text(), r.text(), r.num(), r.text(), r.num()
	return s, err
}

// readPayload reads the data, then the metadata.
func readPayload(r *row) (p engine.Payload, err error) {
	p.Data = r.bytes()
	decode(r.text(), &p.Metadata, &err)
	return p, err
}

// readWorker reads the columns of statements that select whole workers.
func readWorker(r *row) (engine.Worker, error) {
	w := engine.Worker{
		ID: r.text(), Namespace: r.text(), InstanceID: r.text(), Status: engine.WorkerStatus(r.num()),
		Reason: engine.OfflineReason(r.num()),
	}
	var err error
	decode(r.text(), &w.Queues, &err)
	decode(r.text(), &w.Types, &err)
	decode(r.text(), &w.Labels, &err)
	decode(r.text(), &w.Capabilities, &err)
	w.Hostname, w.PID, w.Version, w.Platform = r.text(), int(r.num()), r.text(), r.text()
	w.MaxConcurrent, w.QueueLimit = int(r.num()), int(r.num())
	decode(r.text(), &w.TypeLimits, &err)
	w.Active, w.Completed, w.Failed = int(r.num()), r.num(), r.num()
	decode(r.text(), &w.Stats, &err)
	w.RegisteredAt, w.LastHeartbeatAt, w.DeregisteredAt, w.PausesRuns = r.time(), r.time(), r.time(), r.flag()
	w.BuildID = r.text()
	return w, err
}

// readSignal reads the columns of statements that select signals.
func readSignal(r *row) (s engine.Signal, err error) {
	s = engine.Signal{RunID: r.id(), Sequence: r.num(), Name: r.text(), SignalID: r.text()}
	s.Payload, err = readPayload(r)
	s.ReceivedAt, s.StepName = r.time(), r.text()
	return s, err
}

// readSchedule reads the columns of statements that select schedules, without the input.
func readSchedule(r *row) (engine.Schedule, error) {
	s := engine.Schedule{
		ID: r.id(), Namespace: r.text(), Name: r.text(), RequestID: r.text(), CronExpr: r.text(), TimeZone: r.text(),
		Enabled: r.flag(),
		Queue:   r.text(), Type: r.text(), Version: r.text(),
	}
	var err error
	decode(r.text(), &s.RetryPolicy, &err)
	s.Timeouts = engine.Timeouts{StartToClose: r.length(), Heartbeat: r.length(), Execution: r.length()}
	s.OnFailureWorkflow, s.OnFailureQueue = r.text(), r.text()
	decode(r.text(), &s.Tags, &err)
	s.MaxCatchup, s.Overlap = int(r.num()), engine.Overlap(r.num())
	s.CreatedAt, s.UpdatedAt, s.NextFireAt, s.LastFiredAt, s.Buffered = r.time(), r.time(), r.time(), r.time(), r.time()
	s.Broken, s.Fired, s.Completed, s.Failed, s.Skipped, s.Revision = r.text(), r.num(), r.num(), r.num(),
		r.num(), r.num()
	s.PauseReason, s.Jitter, s.Delay = r.text(), r.length(), r.length()
	s.ConcurrencyKey, s.ConcurrencyLimit, s.ConcurrencyScope = r.text(), int(r.num()),
		engine.ConcurrencyScope(r.num())
	decode(r.text(), &s.RunRetryPolicy, &err)
	return s, err
}

// readWholeSchedule is readSchedule followed by the input.
func readWholeSchedule(r *row) (engine.Schedule, error) {
	s, err := readSchedule(r)
	if err == nil {
		s.Input, err = readPayload(r)
	}
	return s, err
}

// readNamespace reads the columns of statements that select whole namespaces.
func readNamespace(r *row) (engine.Namespace, error) {
	n := engine.Namespace{
		Name: r.text(), ID: r.id(), DisplayName: r.text(), Description: r.text(), Enabled: r.flag(),
		CreatedAt: r.time(), UpdatedAt: r.time(),
		Retention: r.length(),
	}
	keep, err := decodeKeep(r.text())
	n.Keep, n.FailureQueue = keep, r.text()
	return n, err
}

// decodeKeep decodes how long runs are kept by status, in microseconds.
func decodeKeep(text string) (keep map[engine.RunStatus]time.Duration, err error) {
	var micros map[engine.RunStatus]int64
	decode(text, &micros, &err)
	for status, us := range micros {
		if keep == nil {
			keep = make(map[engine.RunStatus]time.Duration, len(micros))
		}
		keep[status] = time.Duration(us) * time.Microsecond
	}
	return keep, err
}

// readAudit reads the columns of an audit event.
func readAudit(r *row) (engine.AuditEvent, error) {
	return engine.AuditEvent{
		ID: r.id(), At: r.time(), Actor: engine.Actor{Name: r.text(), Peer: r.text()}, Method: r.text(),
		Namespace: r.text(),
		Subject:   r.text(), SubjectID: r.text(), Outcome: r.text(), Reason: r.text(), Detail: r.text(),
	}, nil
}

// decode decodes a JSON column into v; an empty text leaves v unchanged. It does nothing once err
// is set.
func decode(text string, v any, err *error) {
	if text == "" || *err != nil {
		return
	}
	var bad error
	if m, ok := v.(*map[string]string); ok {
		*m, bad = storekit.ReadMapText(text)
	} else {
		bad = json.Unmarshal([]byte(text), v)
	}
	if bad != nil {
		*err = fmt.Errorf("a JSON column does not hold JSON: %w", bad)
	}
}
