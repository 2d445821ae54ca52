package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/kagzi/kagzi/engine"
)

// readRun reads the columns that every statement about whole runs selects, in their order, payloads apart.
func readRun(r *row) (engine.Run, error) {
	run := engine.Run{
		ID: r.id(), Namespace: r.text(), ExternalID: r.text(), RequestID: r.text(), Queue: r.text(), Type: r.text(), Version: r.text(),
		Status: engine.RunStatus(r.num()), Priority: int(r.num()), Attempts: int(r.num()), Failures: int(r.num()),
		LeaseLosses: int(r.num()), Steps: r.num(), Bytes: r.num(),
	}
	failure := r.text()
	run.CreatedAt, run.AvailableAt, run.StartedAt, run.FinishedAt, run.DeadlineAt = r.time(), r.time(), r.time(), r.time(), r.time()
	run.WorkerID, run.WaitingFor = r.text(), r.text()
	policy := r.text()
	run.Timeouts = engine.Timeouts{StartToClose: r.length(), Heartbeat: r.length(), Execution: r.length()}
	tags, requirements := r.text(), r.text()
	run.OnFailureWorkflow, run.OnFailureQueue, run.ConcurrencyKey = r.text(), r.text(), r.text()
	run.ConcurrencyLimit, run.ParentRunID, run.ParentStepID, run.Traceparent = int(r.num()), r.id(), r.id(), r.text()

	var err error
	decode(failure, &run.Error, &err)
	decode(policy, &run.RetryPolicy, &err)
	decode(tags, &run.Tags, &err)
	decode(requirements, &run.Requirements, &err)
	return run, err
}

// readWholeRun is readRun followed by the run's payloads.
func readWholeRun(r *row) (engine.Run, error) {
	run, err := readRun(r)
	if err == nil {
		run.Input, err = readPayload(r)
	}
	if err == nil {
		run.Output, err = readPayload(r)
	}
	return run, err
}

// readStep reads the columns that every statement about whole attempts selects, in their order.
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
	s.CreatedAt, s.StartedAt, s.FinishedAt, s.TimeoutAt, s.RetryAt, s.WakeAt = r.time(), r.time(), r.time(), r.time(), r.time(), r.time()
	s.Duration = r.length()
	decode(r.text(), &s.RetryPolicy, &err)
	return s, err
}

// readPayload reads the data and then the metadata.
func readPayload(r *row) (p engine.Payload, err error) {
	p.Data = r.bytes()
	decode(r.text(), &p.Metadata, &err)
	return p, err
}

// readWorker reads the columns that every statement about whole workers selects, in their order.
func readWorker(r *row) (engine.Worker, error) {
	w := engine.Worker{
		ID: r.text(), Namespace: r.text(), InstanceID: r.text(), Status: engine.WorkerStatus(r.num()), Reason: engine.OfflineReason(r.num()),
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
	w.RegisteredAt, w.LastHeartbeatAt, w.DeregisteredAt = r.time(), r.time(), r.time()
	return w, err
}

// decode reads a JSON column into v, where an empty text leaves v as it is. It does nothing once err is set.
func decode(text string, v any, err *error) {
	if text == "" || *err != nil {
		return
	}
	if bad := json.Unmarshal([]byte(text), v); bad != nil {
		*err = fmt.Errorf("a JSON column holds what is none: %w", bad)
	}
}

// The values below are made of strings, numbers and booleans, which JSON always can hold; NaN and infinities, which it
// cannot, are refused or absent before.

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("sqlite: " + err.Error())
	}
	return string(text)
}

// encodeMap is canonical: the keys are sorted.
func encodeMap[V any](m map[string]V) string {
	if len(m) == 0 {
		return ""
	}
	return encode(m)
}

func encodeFailure(f *engine.Failure) string {
	if f == nil {
		return ""
	}
	return encode(f)
}

func encodePolicy(p *engine.RetryPolicy) string {
	if p == nil {
		return ""
	}
	return encode(p)
}

// encodeIDs is a JSON list of hexadecimal digits, for statements about several rows.
func encodeIDs(ids []engine.ID) string {
	list := make([]byte, 0, 2+len(ids)*35)
	list = append(list, '[')
	for i, id := range ids {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, '"')
		list = hex.AppendEncode(list, id[:])
		list = append(list, '"')
	}
	return string(append(list, ']'))
}
