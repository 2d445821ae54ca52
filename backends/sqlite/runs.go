package sqlite

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/kagzi/kagzi/engine"
)

// StartRuns is one call of the writer however many runs it makes. It is refused while the disk is nearly full, so that
// what is at work can come to its end.
func (s *Store) StartRuns(ctx context.Context, starts []engine.StartRun) ([]engine.Started, error) {
	if s.room.low() {
		return nil, errExhausted
	}
	size := 0
	for i := range starts {
		size += starts[i].Input.Size()
	}
	return write(ctx, s, "StartRuns", size, func(t *tx) ([]engine.Started, error) {
		answers := make([]engine.Started, len(starts))
		for i := range starts {
			answer, err := t.start(&starts[i])
			if err != nil && !isRefusal(err) {
				return nil, fmt.Errorf("start %d of %d: %w", i+1, len(starts), err)
			}
			answer.Err = err
			answers[i] = answer
		}
		return answers, nil
	})
}

//go:embed sql/insert_run.sql
var insertRunSQL string

//go:embed sql/insert_input.sql
var insertInputSQL string

//go:embed sql/insert_tag.sql
var insertTagSQL string

// start makes the run in one insert if nothing stands against it, and looks closer only if something does.
func (t *tx) start(p *engine.StartRun) (engine.Started, error) {
	if err := t.namespace(p.Namespace, p.CreatedAt); err != nil {
		return engine.Started{}, err
	}
	requirements := encodeMap(p.Requirements)
	lane, err := t.lane(&p.Run, requirements)
	if err != nil {
		return engine.Started{}, err
	}
	made, err := t.exec(&insertRunSQL, insertRunArgs(p, lane, requirements)...)
	if err != nil {
		return engine.Started{}, err
	}
	if made == 0 {
		return t.startAgain(p)
	}
	_, err = t.exec(&insertInputSQL, idArg("run_id", p.ID), blob("input", p.Input.Data), text("input_meta", encodeMap(p.Input.Metadata)))
	for key, value := range p.Tags {
		if err == nil {
			_, err = t.exec(&insertTagSQL, text("namespace", p.Namespace), text("key", key), text("value", value), idArg("run_id", p.ID))
		}
	}
	t.ringQueue(p.Namespace, p.Queue)
	return engine.Started{RunID: p.ID}, err
}

func insertRunArgs(p *engine.StartRun, lane int64, requirements string) []arg {
	return []arg{
		idArg("run_id", p.ID), text("namespace", p.Namespace), text("external_id", p.ExternalID), text("request_id", p.RequestID),
		num("lane_id", lane), text("task_queue", p.Queue), text("workflow_type", p.Type), text("version", p.Version),
		num("priority", p.Priority), num("bytes", p.Input.Size()), instant("created_at", engine.Micros(p.CreatedAt)),
		instant("available_at", engine.Micros(p.AvailableAt)), instant("deadline_at", engine.Micros(p.DeadlineAt)),
		text("retry_policy", encodePolicy(p.RetryPolicy)), length("start_to_close_us", p.Timeouts.StartToClose),
		length("heartbeat_us", p.Timeouts.Heartbeat), length("execution_us", p.Timeouts.Execution), text("tags", encodeMap(p.Tags)),
		text("requirements", requirements), text("on_failure_workflow", p.OnFailureWorkflow), text("on_failure_queue", p.OnFailureQueue),
		text("concurrency_key", p.ConcurrencyKey), num("concurrency_limit", p.ConcurrencyLimit),
		idArg("parent_run_id", p.ParentRunID), idArg("parent_step_id", p.ParentStepID), text("traceparent", p.Traceparent),
		flag("never", p.Reuse == engine.ReuseNever),
	}
}

//go:embed sql/get_request.sql
var getRequestSQL string

//go:embed sql/get_external.sql
var getExternalSQL string

//go:embed sql/insert_request.sql
var insertRequestSQL string

// startAgain answers a start that something stands against: the request was made before, or the external id is in use.
func (t *tx) startAgain(p *engine.StartRun) (answer engine.Started, err error) {
	same := false
	repeated, err := t.found(&getRequestSQL, func(r *row) (err error) {
		answer = engine.Started{RunID: r.id(), Existed: r.flag(), Repeated: true}
		queue, kind, external := r.text(), r.text(), r.text()
		input, err := readPayload(r)
		same = queue == p.Queue && kind == p.Type && external == p.ExternalID && input.Equal(p.Input)
		return err
	}, text("namespace", p.Namespace), text("request_id", p.RequestID), idArg("run_id", p.ID))
	if err != nil {
		return engine.Started{}, err
	}
	if repeated && !same {
		return engine.Started{}, &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: answer.RunID.String(),
			Message: "this request was made before with another type, queue, external id or input: it started run " + answer.RunID.String()}
	}
	if repeated {
		return answer, nil
	}
	answer = engine.Started{Existed: true}
	var status engine.RunStatus
	exists, err := t.found(&getExternalSQL, func(r *row) error {
		answer.RunID, status = r.id(), engine.RunStatus(r.num())
		return nil
	}, text("namespace", p.Namespace), text("external_id", p.ExternalID), flag("never", p.Reuse == engine.ReuseNever))
	switch {
	case err != nil:
		return engine.Started{}, err
	case !exists:
		return engine.Started{}, fmt.Errorf("run %s stands in the way of nothing that can be found", p.ID)
	case p.Reuse == engine.ReuseReject:
		return engine.Started{}, &engine.Error{Kind: engine.KindExists, Subject: "run", SubjectID: answer.RunID.String(),
			Message: fmt.Sprintf("external id %q is in use by run %s, which is %s", p.ExternalID, answer.RunID, status)}
	}
	if p.RequestID != "" {
		_, err = t.exec(&insertRequestSQL, text("namespace", p.Namespace), text("request_id", p.RequestID), idArg("run_id", answer.RunID),
			text("task_queue", p.Queue), text("workflow_type", p.Type), text("external_id", p.ExternalID),
			blob("input", p.Input.Data), text("input_meta", encodeMap(p.Input.Metadata)))
	}
	return answer, err
}

// CancelRun ends the run as CANCELLED.
func (s *Store) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return s.endRun(ctx, "CancelRun", engine.RunCancelled, p)
}

// TerminateRun ends the run as TERMINATED.
func (s *Store) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return s.endRun(ctx, "TerminateRun", engine.RunTerminated, p)
}

func (s *Store) endRun(ctx context.Context, verb string, status engine.RunStatus, p engine.EndRunParams) (engine.RunEnd, error) {
	return write(ctx, s, verb, 0, func(t *tx) (engine.RunEnd, error) {
		run, err := t.runState(p.Namespace, p.RunID)
		switch {
		case err != nil:
			return engine.RunEnd{}, err
		case run.status == status:
			return engine.RunEnd{Status: status}, nil
		case run.status.Ended():
			return engine.RunEnd{}, engine.RunEnded(p.RunID, run.status)
		}
		failure := engine.EndedByFailure(status, p.Reason)
		t.ringWorker(run.worker)
		return engine.RunEnd{Status: status, Changed: true}, t.end(&run, status, &failure, engine.Token{}, p.Now)
	})
}
