package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// StartRuns makes runs, in one commit.
func (s *Store) StartRuns(ctx context.Context, starts []engine.StartRun) ([]engine.Started, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if len(starts) == 0 {
		return nil, nil
	}
	c := &startCall{starts: starts, lanes: make([]int64, len(starts))}
	if err := s.prepareStarts(c); err != nil {
		return nil, err
	}
	size := 0
	for i := range starts {
		size += starts[i].Input.Size()
	}
	waiting := &call{start: c, size: size}
	if err := s.laneOf(starts[0].ID).gather(waiting); err != nil {
		return nil, err
	}
	if !waiting.settled {
		if err := s.startAlone(c); err != nil {
			return nil, err
		}
	}
	return c.answers, nil
}

// startCall is one call of StartRuns.
type startCall struct {
	starts  []engine.StartRun
	lanes   []int64
	answers []engine.Started
}

// prepareStarts sees to it that the namespaces and lanes exist. They stay when the starts are refused, and do no harm.
func (s *Store) prepareStarts(c *startCall) error {
	for i := range c.starts {
		r := &c.starts[i]
		if err := s.ensureNamespace(r.Namespace, r.CreatedAt); err != nil {
			return err
		}
		id, err := s.ensureLane(laneKey{r.Namespace, r.Queue, r.Type, mapText(r.Requirements), r.Priority})
		if err != nil {
			return err
		}
		c.lanes[i] = id
	}
	return nil
}

//go:embed sql/insert_run.sql
var insertRunText string

var insertRunSQL = hot(insertRunText)

// queueStarts adds the group's starts to the batch. A call that shares a request or an external id with an earlier one of the
// group goes alone, so that the two keep their order.
func queueStarts(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var columns startColumns
	byRun := map[engine.ID]*call{}
	taken := map[[3]string]bool{}
	for i, c := range group {
		if c.start == nil || !c.start.independent(taken) {
			continue
		}
		columns.add(i, c.start)
		byRun[c.start.starts[0].ID] = c
	}
	if len(byRun) == 0 {
		return
	}
	batch.Queue(insertRunSQL.text, insertRunSQL.bind(columns.args())...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		_, err := pgx.ForEachRow(rows, []any{idOf(&id)}, func() error {
			if c := byRun[id]; c != nil {
				c.start.allMade()
				answers.settle(c)
				answers.rings = append(answers.rings, c.start.rings()...)
			}
			return nil
		})
		return err
	})
}

// independent says that no start of the call shares an id with another one in taken, where it adds its own.
func (c *startCall) independent(taken map[[3]string]bool) bool {
	free := true
	for i := range c.starts {
		r := &c.starts[i]
		for _, key := range [...][3]string{{"request", r.Namespace, r.RequestID}, {"external", r.Namespace, r.ExternalID}} {
			if key[2] != "" {
				free = free && !taken[key]
				taken[key] = true
			}
		}
	}
	return free
}

// allMade answers a call each of whose starts made a run.
func (c *startCall) allMade() {
	c.answers = make([]engine.Started, len(c.starts))
	for i := range c.starts {
		c.answers[i].RunID = c.starts[i].ID
	}
}

func (c *startCall) rings() []engine.Ring {
	var rings []engine.Ring
	for i := range c.starts {
		ring := engine.Ring{Kind: engine.RingQueue, Namespace: c.starts[i].Namespace, Name: c.starts[i].Queue}
		if len(rings) == 0 || rings[len(rings)-1] != ring {
			rings = append(rings, ring)
		}
	}
	return rings
}

// startAlone looks closer at each start, in order, in one transaction.
func (s *Store) startAlone(c *startCall) error {
	return s.writeEntered("start runs", func(ctx context.Context, t *tx) error {
		c.answers = make([]engine.Started, len(c.starts))
		for i := range c.starts {
			answer, err := t.startOne(ctx, &c.starts[i], c.lanes[i])
			if err != nil {
				return err
			}
			c.answers[i] = answer
		}
		return nil
	})
}

// startOne answers one start. A rival may take an id between the look and the insert, or end the run that held it; then it
// looks again.
func (t *tx) startOne(ctx context.Context, r *engine.StartRun, lane int64) (engine.Started, error) {
	for range 10 {
		answer, found, err := t.earlier(ctx, r)
		if err != nil || found {
			return answer, err
		}
		made, err := t.insertRun(ctx, r, lane)
		if err != nil {
			return answer, err
		}
		if made {
			t.ringQueue(r.Namespace, r.Queue)
			return engine.Started{RunID: r.ID}, nil
		}
	}
	return engine.Started{}, unavailable("too many starts at once with the same request or external id")
}

// insertRun makes the run; false when one of its ids turns out to be taken.
func (t *tx) insertRun(ctx context.Context, r *engine.StartRun, lane int64) (bool, error) {
	var columns startColumns
	columns.add(0, &startCall{starts: []engine.StartRun{*r}, lanes: []int64{lane}})
	made := false
	err := pgx.BeginFunc(ctx, t.Tx, func(savepoint pgx.Tx) error {
		tag, err := savepoint.Exec(ctx, insertRunSQL.text, insertRunSQL.bind(columns.args())...)
		made = tag.RowsAffected() > 0
		return err
	})
	if sqlState(err) == codeUnique {
		return false, nil
	}
	return made, err
}

//go:embed sql/get_request.sql
var getRequestSQL string

//go:embed sql/get_external.sql
var getExternalSQL string

//go:embed sql/insert_request.sql
var insertRequestSQL string

// earlier is the answer to a start that makes no run: its request has been answered before, or its external id is taken.
func (t *tx) earlier(ctx context.Context, r *engine.StartRun) (answer engine.Started, found bool, err error) {
	if answer, found, err = t.repeated(ctx, r); err != nil || found || r.ExternalID == "" {
		return answer, found, err
	}
	var id engine.ID
	var status engine.RunStatus
	err = t.QueryRow(ctx, getExternalSQL, args{
		"namespace": r.Namespace, "external_id": r.ExternalID, "never": r.Reuse == engine.ReuseNever,
	}).Scan(idOf(&id), numberOf(&status))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return answer, false, nil
	case err != nil:
		return answer, false, err
	case r.Reuse == engine.ReuseReject:
		return engine.Started{Err: externalTaken(r.ExternalID, id, status)}, true, nil
	}
	if r.RequestID != "" {
		n, err := t.exec(ctx, insertRequestSQL, args{"namespace": r.Namespace, "request_id": r.RequestID, "run_id": [16]byte(id),
			"task_queue": r.Queue, "workflow_type": r.Type, "external_id": r.ExternalID,
			"input": dataOrNull(r.Input.Data), "input_meta": mapText(r.Input.Metadata)})
		if err != nil {
			return answer, false, err
		}
		if n == 0 { // a rival was first
			return t.repeated(ctx, r)
		}
	}
	return engine.Started{RunID: id, Existed: true}, true, nil
}

// repeated is the first answer to the start's request, if it has had one.
func (t *tx) repeated(ctx context.Context, r *engine.StartRun) (answer engine.Started, found bool, err error) {
	var first engine.Run
	places := append([]any{idOf(&answer.RunID), &answer.Existed, &first.Queue, &first.Type, &first.ExternalID}, payloadPlaces(&first.Input)...)
	err = t.QueryRow(ctx, getRequestSQL, args{"namespace": r.Namespace, "request_id": r.RequestID, "run_id": [16]byte(r.ID)}).Scan(places...)
	if errors.Is(err, pgx.ErrNoRows) {
		return answer, false, nil
	}
	if err != nil {
		return answer, false, err
	}
	if first.Type != r.Type || first.Queue != r.Queue || first.ExternalID != r.ExternalID || !first.Input.Equal(r.Input) {
		return engine.Started{Err: requestConflict(answer.RunID)}, true, nil
	}
	answer.Repeated = true
	return answer, true, nil
}

// CancelRun ends the run as CANCELLED.
func (s *Store) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return s.endRun("cancel a run", engine.RunCancelled, p)
}

// TerminateRun ends the run as TERMINATED.
func (s *Store) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return s.endRun("terminate a run", engine.RunTerminated, p)
}

func (s *Store) endRun(doing string, status engine.RunStatus, p engine.EndRunParams) (end engine.RunEnd, err error) {
	err = s.write(doing, func(ctx context.Context, t *tx) error {
		run, err := t.runState(ctx, p.Namespace, p.RunID)
		switch {
		case err != nil:
			return err
		case run.status == status:
			end = engine.RunEnd{Status: status}
			return nil
		case run.status.Ended():
			return engine.RunEnded(p.RunID, run.status)
		}
		failure := engine.EndedByFailure(status, p.Reason)
		if run.worker != "" {
			t.ringWorker(run.worker)
		}
		end = engine.RunEnd{Status: status, Changed: true}
		return t.end(ctx, run, status, &failure, engine.Token{}, p.Now)
	})
	if err != nil {
		return engine.RunEnd{}, err
	}
	return end, nil
}

func externalTaken(externalID string, run engine.ID, status engine.RunStatus) error {
	return &engine.Error{Kind: engine.KindExists, Subject: "run", SubjectID: run.String(), Status: status,
		Message: fmt.Sprintf("external id %q is in use by run %s, which is %s", externalID, run, status)}
}

func requestConflict(run engine.ID) error {
	return &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: run.String(),
		Message: "this request was made before with another type, queue, external id or input: it started run " + run.String()}
}
