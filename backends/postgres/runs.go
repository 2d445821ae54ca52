package postgres

import (
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// StartRuns makes runs, in one commit.
func (s *Store) StartRuns(_ context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if len(p.Runs) == 0 {
		return nil, nil
	}
	c := &startCall{starts: slices.Clone(p.Runs), lanes: make([]int64, len(p.Runs)), handoff: p.Handoff,
		must: p.NamespaceMustExist}
	if err := s.prepareStarts(c); err != nil {
		return nil, err
	}
	size := 0
	for i := range c.starts {
		n := p.Runs[i].Input.Size()
		c.starts[i].Bytes = int64(n)
		size += n
	}
	return together(s, &call{start: c, size: size}, "start runs", func() []engine.Started { return c.answers }, c.alone)
}

// startCall is one call of StartRuns.
type startCall struct {
	starts  []engine.StartRun
	lanes   []int64
	handoff engine.Handoff // nil: no hand-off
	must    bool           // NamespaceMustExist
	answers []engine.Started
}

// prepareStarts makes missing namespaces and lanes, but no namespace that must exist. They stay if
// the starts are refused, which does no harm.
func (s *Store) prepareStarts(c *startCall) error {
	for i := range c.starts {
		r := &c.starts[i]
		if !c.must || r.Namespace == engine.DefaultNamespace {
			if err := s.ensureNamespace(r.Namespace, r.CreatedAt); err != nil {
				return err
			}
		}
		id, err := s.ensureLane(laneKeyOf(r))
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

//go:embed sql/check_started.sql
var checkStartedText string

var checkStartedSQL = hot(checkStartedText)

// queueStarts adds the group's starts to the batch. A call that shares a request or an external id
// with an earlier one of the group goes alone, to keep their order.
func queueStarts(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var calls []*call
	byRun := map[engine.ID]*call{}
	taken := map[[3]string]bool{}
	for _, c := range group {
		if c.start != nil && c.start.independent(taken) {
			calls = append(calls, c)
			byRun[c.start.starts[0].ID] = c
		}
	}
	if len(calls) == 0 {
		return
	}
	answers.handoffs = handoffsFor(calls)
	columns := startColumns{handoffs: answers.handoffs}
	for i, c := range calls {
		columns.add(i, c.start)
	}
	batch.Queue(insertRunSQL.text, insertRunSQL.bind(columns.args())...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var taken bool
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &taken}, func() error {
			answers.handoffs.noteClaimed(id, taken)
			if c := byRun[id]; c != nil {
				c.start.allMade()
				answers.settle(c)
				answers.started = append(answers.started, c.start)
			}
			return nil
		})
		return err
	})
	made := madeColumns{}
	for _, c := range calls {
		made.add(c.start.starts)
	}
	if len(made.runIDs) > 0 {
		batch.Queue(checkStartedSQL.text, checkStartedSQL.bind(made.args())...)
	}
}

// independent says whether no start of the call has an id that is in taken; it adds the call's ids
// to taken.
func (c *startCall) independent(taken map[[3]string]bool) bool {
	free := true
	for i := range c.starts {
		r := &c.starts[i]
		for _, key := range [...][3]string{{"request", r.Namespace, r.RequestID},
			{"external", r.Namespace, r.ExternalID}} {
			if key[2] != "" {
				free = free && !taken[key]
				taken[key] = true
			}
		}
	}
	return free
}

// allMade answers a call whose starts all made a run.
func (c *startCall) allMade() {
	c.answers = make([]engine.Started, len(c.starts))
	for i := range c.starts {
		c.answers[i].RunID = c.starts[i].ID
	}
}

// notifications returns what to send for the starts, given the runs that were handed off.
func (c *startCall) notifications(h *handoffs) []engine.Notification {
	var queues, runs []engine.Notification
	timer := false
	for i := range c.starts {
		taken := h.has(c.starts[i].ID)
		if taken {
			runs = append(runs, engine.Notification{Kind: engine.NotifyRun, ID: c.starts[i].ID})
		}
		queue := engine.Notification{Kind: engine.NotifyQueue, Namespace: c.starts[i].Namespace,
			Name: c.starts[i].Queue, Claimed: taken}
		if len(queues) == 0 || queues[len(queues)-1] != queue {
			queues = append(queues, queue)
		}
		timer = timer || !c.starts[i].DeadlineAt.IsZero()
	}
	if timer {
		queues = append(queues, engine.Notification{Kind: engine.NotifyTimer})
	}
	return append(queues, runs...)
}

// alone handles each start in order, in one transaction. If another transaction takes an id between
// read and insert, it is retried.
func (c *startCall) alone(t *tx) ([]engine.Started, error) {
	refused := map[string]error{}
	answers := make([]engine.Started, len(c.starts))
	for i := range c.starts {
		answer, err := t.startOne(&c.starts[i], c.must, refused)
		if err != nil {
			return nil, err
		}
		answers[i] = answer
	}
	return answers, nil
}

//go:embed sql/mark_commit.sql
var markCommitSQL string

// startOne answers one start. refused caches which namespaces take no starts, and why; nil: they do.
func (t *tx) startOne(r *engine.StartRun, must bool, refused map[string]error) (engine.Started, error) {
	if answer, found, err := t.repeated(r); err != nil || found {
		return answer, t.vouch(answer, err)
	}
	if _, known := refused[r.Namespace]; !known {
		n, err := t.namespaceForUse(r.Namespace)
		if err != nil {
			return engine.Started{}, err
		}
		refused[r.Namespace] = engine.MustExist(r.Namespace, n != nil, must)
		if n != nil && !n.Enabled {
			refused[r.Namespace] = engine.NamespaceDisabled(r.Namespace)
		}
	}
	if err := refused[r.Namespace]; err != nil {
		return engine.Started{Err: err}, nil
	}
	if answer, found, err := t.earlier(r); err != nil || found {
		return answer, t.vouch(answer, err)
	}
	if err := t.InsertRun(r); err != nil {
		return engine.Started{}, err
	}
	made := madeColumns{}
	made.add([]engine.StartRun{*r})
	if len(made.runIDs) > 0 {
		if err := t.queueHot(checkStartedSQL, made.args()); err != nil {
			return engine.Started{}, err
		}
	}
	t.notifyQueue(r.Namespace, r.Queue)
	if !r.DeadlineAt.IsZero() {
		t.Notify(engine.Notification{Kind: engine.NotifyTimer})
	}
	return engine.Started{RunID: r.ID}, nil
}

// vouch makes an answer that a run exists wait until the run is durable. If a commit's wait for its
// standby was cut short, others see the commit although its caller got no answer; that caller
// repeats the call, and a read-only transaction waits for no standby.
func (t *tx) vouch(answer engine.Started, err error) error {
	if err != nil || answer.Err != nil {
		return err
	}
	return t.queue(markCommitSQL, args{})
}

//go:embed sql/get_request.sql
var getRequestSQL string

//go:embed sql/get_external.sql
var getExternalSQL string

//go:embed sql/hold_external.sql
var holdExternalSQL string

// earlier answers a start whose external id is taken.
//
// Another server may answer the same request meanwhile with a run that ends afterwards, and no
// unique key prevents that answer and a new run from both existing. So a transaction that answers a
// request with a run keeps that run from ending until the answer is recorded, and a transaction
// that has looked for such a run then looks for a recorded answer again: if a run has ended since,
// its answer is recorded by now.
func (t *tx) earlier(r *engine.StartRun) (answer engine.Started, found bool, err error) {
	if r.ExternalID == "" || r.Origin != engine.OriginUser {
		return answer, false, nil
	}
	id, status, kind, found, err := t.external(r)
	if err != nil {
		return answer, false, err
	}
	if r.RequestID != "" {
		if answer, repeated, err := t.repeated(r); err != nil || repeated {
			return answer, repeated, err
		}
	}
	switch {
	case !found:
		return answer, false, nil
	case r.Reuse == engine.ReuseReject:
		return engine.Started{Err: engine.ExternalIDTaken(r.ExternalID, id, status)}, true, nil
	case !status.Ended() && kind != r.Type:
		return engine.Started{Err: engine.ExternalIDOfOtherType(r.ExternalID, id, kind)}, true, nil
	}
	other, err := t.otherInput(id, r)
	if err == nil && r.RequestID != "" {
		err = t.LeaveRequest(r, id)
	}
	return engine.Started{RunID: id, Existed: true, OtherInput: other}, true, err
}

// external returns the run that has the start's external id. If a request will be answered with it,
// the run is locked until the commit.
func (t *tx) external(r *engine.StartRun) (id engine.ID, status engine.RunStatus, kind string, found bool,
	err error) {
	never := r.Reuse == engine.ReuseNever
	for {
		found, err = t.found(getExternalSQL, args{
			"namespace": r.Namespace, "external_id": r.ExternalID, "never": never}, idOf(&id), numberOf(&status), &kind)
		if err != nil || !found || r.RequestID == "" || r.Reuse == engine.ReuseReject {
			return id, status, kind, found, err
		}
		held, err := t.found(holdExternalSQL, args{"run_id": [16]byte(id), "never": never}, idOf(&id))
		if err != nil || held {
			return id, status, kind, held, err
		}
	}
}

// repeated returns the first answer to the start's request, if there was one.
func (t *tx) repeated(r *engine.StartRun) (answer engine.Started, found bool, err error) {
	var first engine.Run
	gone := false
	places := append([]any{idOf(&answer.RunID), &answer.Existed, &gone, &first.Queue, &first.Type, &first.ExternalID},
		payloadPlaces(&first.Input)...)
	found, err = t.found(getRequestSQL, args{
		"namespace": r.Namespace, "request_id": r.RequestID, "run_id": [16]byte(r.ID)}, places...)
	if err != nil || !found {
		return engine.Started{}, false, err
	}
	if first.Type != r.Type || first.Queue != r.Queue || first.ExternalID != r.ExternalID ||
		!gone && !first.Input.Equal(r.Input) {
		return engine.Started{Err: engine.StartConflict(answer.RunID)}, true, nil
	}
	answer.Repeated = true
	if answer.Existed && !gone {
		answer.OtherInput, err = t.otherInput(answer.RunID, r)
	}
	return answer, true, err
}

// otherInput says that the run has another input than the start asks for.
func (t *tx) otherInput(run engine.ID, r *engine.StartRun) (bool, error) {
	input, _, err := t.Payloads(run)
	return !input.Equal(r.Input), err
}

// madeColumns holds the arrays of check_started.sql, one element per start that another transaction
// may have overtaken.
type madeColumns struct {
	runIDs                              [][16]byte
	namespaces, externalIDs, requestIDs []string
	never                               []bool
}

func (c *madeColumns) add(starts []engine.StartRun) {
	for i := range starts {
		r, never := &starts[i], starts[i].Reuse == engine.ReuseNever
		if r.ExternalID == "" || r.Origin != engine.OriginUser || r.RequestID == "" && !never {
			continue
		}
		c.runIDs, c.namespaces = append(c.runIDs, r.ID), append(c.namespaces, r.Namespace)
		c.externalIDs, c.requestIDs = append(c.externalIDs, r.ExternalID), append(c.requestIDs, r.RequestID)
		c.never = append(c.never, never)
	}
}

func (c *madeColumns) args() args {
	return args{"run_ids": c.runIDs, "namespaces": c.namespaces, "external_ids": c.externalIDs,
		"request_ids": c.requestIDs, "never": c.never}
}
