package sqlite

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"

	_ "embed"
	"fmt"

	"github.com/kagzi/kagzi/engine"
)

// StartRuns is one call of the writer for any number of runs. It is refused while the disk is
// nearly full, so that existing runs can end.
func (s *Store) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	if s.lacksRoom() {
		return nil, errExhausted
	}
	starts, size := p.Runs, 0
	for i := range starts {
		size += starts[i].Input.Size()
	}
	h := handoffs{from: p.Handoff}
	return writeAs(ctx, s, &call{verb: "StartRuns", size: size, ticket: p.Ticket, then: h.finish},
		func(t *tx) ([]engine.Started, error) {
			if err := h.offer(t, starts); err != nil {
				return nil, err
			}
			answers := make([]engine.Started, len(starts))
			for i := range starts {
				answer, err := t.start(&starts[i], p.NamespaceMustExist, h.of(starts[i].ID))
				if err != nil && !dbfile.IsRefusal(err) {
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

//go:embed sql/insert_whole_run.sql
var insertWholeRunText string

var insertWholeRunSQL = runColumns.Expand(insertWholeRunText)

//go:embed sql/insert_input.sql
var insertInputSQL string

//go:embed sql/insert_tag.sql
var insertTagSQL string

// start makes the run in one insert if nothing prevents it, and reads more only if something does.
// to is the poller that gets the run; nil: none.
func (t *tx) start(p *engine.StartRun, must bool, to *handoff) (engine.Started, error) {
	enabled, exists := t.queues.namespaces[p.Namespace]
	if err := engine.MustExist(p.Namespace, exists, must); err != nil {
		return engine.Started{}, err
	}
	if exists && !enabled {
		answer, repeated, err := t.requestedBefore(p)
		if err == nil && !repeated {
			err = engine.NamespaceDisabled(p.Namespace)
		}
		return answer, err
	}
	made, err := t.insertRun(p, int64(p.Input.Size()), to)
	if err != nil {
		return engine.Started{}, err
	}
	if !made {
		return t.startAgain(p)
	}
	if to != nil {
		err = t.acceptHandoff(p, to)
	} else {
		t.rememberRun(p)
		t.notifyStarted(&p.Run)
	}
	if !p.DeadlineAt.IsZero() {
		t.Notify(engine.Notification{Kind: engine.NotifyTimer})
	}
	return engine.Started{RunID: p.ID}, err
}

// insertRun makes the run, with so many bytes recorded at its start, unless something prevents it.
// With a hand-off the run is claimed.
func (t *tx) insertRun(p *engine.StartRun, bytes int64, to *handoff) (made bool, err error) {
	if err := t.useNamespace(p.Namespace, p.CreatedAt); err != nil {
		return false, err
	}
	if blocked, err := t.isBlocked(p); err != nil || blocked {
		return false, err
	}
	requirements := encodeMap(p.Requirements)
	lane, err := t.lane(&p.Run, requirements)
	if err != nil {
		return false, err
	}
	run := p.NewRun()
	run.Bytes = bytes
	to.claims(&run)
	statement, args := &insertRunSQL, plainRunArgs
	if needsAllColumns(&run) {
		statement, args = &insertWholeRunSQL, wholeRunArgs
	}
	n, err := t.direct(statement, args(&run, lane, requirements)...)
	if err != nil || n == 0 {
		return false, err
	}
	return true, t.insertInput(&p.Run)
}

// isBlocked checks what no unique index can: whether the run's request was answered with an earlier
// run, or an ended run had its external id. Checking this inside the insert would make SQLite
// materialize each row first, which costs more than most starts do.
func (t *tx) isBlocked(p *engine.StartRun) (blocked bool, err error) {
	if p.RequestID != "" && t.queues.requests {
		earlier, err := t.Requested(p.Namespace, p.RequestID)
		if err != nil || !earlier.IsZero() {
			return true, err
		}
	}
	if p.ExternalID == "" || p.Reuse != engine.ReuseNever {
		return false, nil
	}
	return t.found(&getExternalSQL, func(*row) error { return nil },
		text("namespace", p.Namespace), text("external_id", p.ExternalID), flag("never", true))
}

// insertInput makes the rows that every run has in other tables.
func (t *tx) insertInput(r *engine.Run) error {
	_, err := t.direct(&insertInputSQL, idArg("run_id", r.ID), blob("input", r.Input.Data),
		text("input_meta", encodeMap(r.Input.Metadata)))
	for key, value := range r.Tags {
		if err == nil {
			_, err = t.exec(&insertTagSQL, text("namespace", r.Namespace), text("key", key), text("value", value),
				idArg("run_id", r.ID))
		}
	}
	return err
}

//go:embed sql/get_request.sql
var getRequestSQL string

//go:embed sql/get_external.sql
var getExternalSQL string

// requestedBefore returns the earlier answer to the request, or to a start with this run id. A
// request for something else is refused.
func (t *tx) requestedBefore(p *engine.StartRun) (answer engine.Started, repeated bool, err error) {
	same := false
	repeated, err = t.found(&getRequestSQL, func(r *row) (err error) {
		answer = engine.Started{RunID: r.id(), Existed: r.flag(), Repeated: true}
		gone := r.flag()
		queue, kind, external := r.text(), r.text(), r.text()
		input, err := readPayload(r)
		same = queue == p.Queue && kind == p.Type && external == p.ExternalID && (gone || input.Equal(p.Input))
		return err
	}, text("namespace", p.Namespace), text("request_id", p.RequestID), idArg("run_id", p.ID))
	switch {
	case err != nil || !repeated:
		return engine.Started{}, false, err
	case !same:
		return engine.Started{}, true, engine.StartConflict(answer.RunID)
	}
	if answer.Existed {
		answer.OtherInput, err = t.otherInput(answer.RunID, p)
	}
	return answer, true, err
}

// otherInput says that the run has another input than the start asks for; false if it is deleted.
func (t *tx) otherInput(run engine.ID, p *engine.StartRun) (bool, error) {
	known, err := t.Run(p.Namespace, run)
	if err != nil || known == nil {
		return false, err
	}
	input, _, err := t.Payloads(run)
	return !input.Equal(p.Input), err
}

// startAgain answers a start that something prevents: the request was made before, or the external
// id is in use.
func (t *tx) startAgain(p *engine.StartRun) (engine.Started, error) {
	answer, repeated, err := t.requestedBefore(p)
	if err != nil || repeated {
		return answer, err
	}
	answer = engine.Started{Existed: true}
	var status engine.RunStatus
	var kind string
	exists, err := t.found(&getExternalSQL, func(r *row) error {
		answer.RunID, status, kind = r.id(), engine.RunStatus(r.num()), r.text()
		return nil
	}, text("namespace", p.Namespace), text("external_id", p.ExternalID), flag("never", p.Reuse == engine.ReuseNever))
	switch {
	case err != nil:
		return engine.Started{}, err
	case !exists:
		return engine.Started{}, fmt.Errorf("run %s cannot be made, and no reason is found", p.ID)
	case p.Reuse == engine.ReuseReject:
		return engine.Started{}, engine.ExternalIDTaken(p.ExternalID, answer.RunID, status)
	case !status.Ended() && kind != p.Type:
		return engine.Started{}, engine.ExternalIDOfOtherType(p.ExternalID, answer.RunID, kind)
	}
	if answer.OtherInput, err = t.otherInput(answer.RunID, p); err != nil {
		return engine.Started{}, err
	}
	if p.RequestID != "" {
		err = t.LeaveRequest(p, answer.RunID)
	}
	return answer, err
}
