package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// stepCall is one call of CompleteStep about a step that nobody has begun, as far as is known, and its answer.
type stepCall struct {
	p    *engine.CompleteStepParams
	step engine.Step
}

// CompleteStep is one insert and one narrow update when the step is new, as nearly every step is: its code ran, and now it is
// reported. Only when that did not apply does it look at what there is.
func (s *Store) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (step engine.Step, err error) {
	if err := s.enter(); err != nil {
		return engine.Step{}, err
	}
	defer s.leave()
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	if p.Step.ID.IsZero() {
		c := &call{step: &stepCall{p: &p}, size: p.Output.Size()}
		if err := s.laneOf(p.Lease.RunID).gather(c); err != nil || c.settled {
			return c.step.step, err
		}
	}
	err = s.writeEntered("complete a step", func(ctx context.Context, t *tx) (err error) {
		step, err = t.completeStep(ctx, &p)
		return err
	})
	if err != nil {
		return engine.Step{}, err
	}
	return step, nil
}

//go:embed sql/complete_new_step.sql
var completeNewStepText string

var completeNewStepSQL = hot(completeNewStepText)

// queueSteps adds the group's results to the batch. Of two for one step the second goes alone.
func queueSteps(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens, ids [][16]byte
	var namespaces, names, metas []string
	var outputs [][]byte
	var sizes, started, nows []int64
	byStep := map[engine.ID]*call{}
	taken := map[stepKey]bool{}
	for _, c := range group {
		if c.step == nil {
			continue
		}
		p := c.step.p
		key := stepKey{p.Lease.RunID, p.Step.Name}
		if taken[key] || byStep[p.ID] != nil {
			continue
		}
		taken[key], byStep[p.ID] = true, c
		c.step.step = newResult(p)
		runs, tokens, ids = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token), append(ids, p.ID)
		namespaces, names = append(namespaces, p.Lease.Namespace), append(names, p.Step.Name)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		sizes, started, nows = append(sizes, int64(p.Output.Size())), append(started, micros(c.step.step.StartedAt)), append(nows, micros(p.Now))
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeNewStepSQL.text, completeNewStepSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "step_ids": ids, "names": names, "outputs": outputs,
		"output_metas": metas, "sizes": sizes, "started_at": started, "now": nows,
		"max_steps": int64(engine.MaxSteps), "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var sequence int64
		var worker string
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &sequence, &worker}, func() error {
			c := byStep[id]
			c.step.step.Sequence, c.step.step.WorkerID = sequence, worker
			answers.settle(c)
			answers.rings = append(answers.rings, engine.Ring{Kind: engine.RingRun, ID: c.step.step.RunID})
			return nil
		})
		return err
	})
}

type stepKey struct {
	run  engine.ID
	name string
}

// newResult is a step that was never announced, as its result makes it, but for its place and its worker.
func newResult(p *engine.CompleteStepParams) engine.Step {
	step := engine.Step{
		ID: p.ID, RunID: p.Lease.RunID, Name: p.Step.Name, Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
		Output: p.Output, Token: p.Lease.Token, CreatedAt: p.Now, StartedAt: p.StartedAt, FinishedAt: p.Now,
	}
	if step.StartedAt.IsZero() {
		step.StartedAt = p.Now
	}
	return step
}

//go:embed sql/count_step.sql
var countStepSQL string

// count adds to what the run has recorded, in its lease.
func (t *tx) count(ctx context.Context, run engine.ID, steps, bytes int, progressed bool) error {
	_, err := t.exec(ctx, countStepSQL, args{"run_id": [16]byte(run), "steps": steps, "bytes": bytes, "progressed": progressed})
	return err
}

// completeStep looks at the step's latest attempt.
func (t *tx) completeStep(ctx context.Context, p *engine.CompleteStepParams) (engine.Step, error) {
	size := p.Output.Size()
	run, err := t.runState(ctx, p.Lease.Namespace, p.Lease.RunID)
	if err != nil {
		return engine.Step{}, err
	}
	if !run.current(p.Lease) {
		return t.completeStepAgain(ctx, run, p)
	}
	prev, err := t.attempt(ctx, run.id, p.Step)
	if err != nil {
		return engine.Step{}, err
	}
	if prev != nil {
		switch {
		case prev.Status == engine.StepCompleted && prev.Kind != engine.StepSleep && prev.Token == p.Lease.Token && prev.Output.Equal(p.Output):
			return *prev, nil
		case prev.Kind == engine.StepSleep:
			return engine.Step{}, sleepOnly(prev.Name)
		case !prev.Latest, !prev.Open() && !prev.Interrupted():
			return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
		}
	}
	if run.bytes+int64(size) > engine.MaxRunBytes {
		return engine.Step{}, tooManyBytes("output", run.bytes, size)
	}
	step, fresh, err := next(run, prev, p.Step.Name, p.ID, p.StartedAt, p.Now)
	if err != nil {
		return engine.Step{}, err
	}
	step.Status, step.Output, step.FinishedAt, step.TimeoutAt = engine.StepCompleted, p.Output, p.Now, time.Time{}
	if err := t.put(ctx, run, prev, &step); err != nil {
		return engine.Step{}, err
	}
	return step, t.count(ctx, run.id, fresh, size, true)
}

// next is the attempt that a report is about: the one that runs or, where none does, a new one. fresh is 1 when the step
// itself is new.
func next(run *runState, prev *engine.Step, name string, id engine.ID, startedAt, now time.Time) (step engine.Step, fresh int, err error) {
	if prev != nil && prev.Status == engine.StepRunning {
		return *prev, 0, nil
	}
	step = engine.Step{
		ID: id, RunID: run.id, Name: name, Kind: engine.StepFunction, Status: engine.StepRunning, Attempt: 1, Latest: true,
		Sequence: run.steps + 1, Token: run.token, WorkerID: run.worker, CreatedAt: now, StartedAt: startedAt,
	}
	if startedAt.IsZero() {
		step.StartedAt = now
	}
	if prev == nil {
		if run.steps >= engine.MaxSteps {
			return step, 0, engine.TooLarge("step", "the run has %d steps already, at most %d are allowed", run.steps, engine.MaxSteps)
		}
		return step, 1, nil
	}
	step.Name, step.Kind, step.Attempt, step.Failures = prev.Name, prev.Kind, prev.Attempt+1, prev.Failures
	step.Sequence, step.RetryPolicy = prev.Sequence, prev.RetryPolicy
	return step, 0, nil
}

//go:embed sql/insert_step.sql
var insertStepSQL string

//go:embed sql/supersede_step.sql
var supersedeStepSQL string

//go:embed sql/update_step.sql
var updateStepSQL string

// put writes an attempt: over prev when it is the same, otherwise as a new one, with prev the latest no longer.
func (t *tx) put(ctx context.Context, run *runState, prev, step *engine.Step) error {
	step.Token, step.WorkerID = run.token, run.worker
	t.ringRun(run.id)
	if prev != nil && prev.ID == step.ID {
		return t.update(ctx, step)
	}
	if prev != nil {
		if _, err := t.exec(ctx, supersedeStepSQL, args{"step_id": [16]byte(prev.ID)}); err != nil {
			return err
		}
	}
	a := changeable(step)
	a["run_id"], a["name"], a["kind"], a["attempt"] = [16]byte(step.RunID), step.Name, int16(step.Kind), step.Attempt
	a["sequence"], a["input"], a["input_meta"] = step.Sequence, dataOrNull(step.Input.Data), mapText(step.Input.Metadata)
	a["created_at"], a["retry_policy"] = micros(step.CreatedAt), pointerText(step.RetryPolicy)
	_, err := t.exec(ctx, insertStepSQL, a)
	return err
}

// update writes what can change of an attempt.
func (t *tx) update(ctx context.Context, step *engine.Step) error {
	_, err := t.exec(ctx, updateStepSQL, changeable(step))
	return err
}

// changeable is what can change of an attempt, for the statements that write it.
func changeable(step *engine.Step) args {
	return args{
		"step_id": [16]byte(step.ID), "status": int16(step.Status), "failures": step.Failures,
		"output": dataOrNull(step.Output.Data), "output_meta": mapText(step.Output.Metadata), "error": pointerText(step.Error),
		"token": [16]byte(step.Token), "worker_id": step.WorkerID, "started_at": microsOrNull(step.StartedAt),
		"finished_at": microsOrNull(step.FinishedAt), "timeout_at": microsOrNull(step.TimeoutAt), "retry_at": microsOrNull(step.RetryAt),
		"wake_at": microsOrNull(step.WakeAt), "duration_us": step.Duration.Microseconds(),
	}
}

//go:embed sql/get_attempt.sql
var getAttemptSQL string

//go:embed sql/get_latest_attempt.sql
var getLatestAttemptSQL string

// attempt finds what ref names: an attempt by its id, else the latest of the step of that name; nil when it has not begun.
func (t *tx) attempt(ctx context.Context, run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	if !ref.ID.IsZero() {
		step, err := t.oneStep(ctx, getAttemptSQL, args{"step_id": [16]byte(ref.ID), "run_id": [16]byte(run)})
		if err != nil || step != nil {
			return step, err
		}
		if ref.Name == "" {
			return nil, engine.StepNotFound(ref)
		}
	}
	return t.oneStep(ctx, getLatestAttemptSQL, args{"run_id": [16]byte(run), "name": ref.Name})
}

func (t *tx) oneStep(ctx context.Context, statement string, a args) (*engine.Step, error) {
	var step engine.Step
	err := t.QueryRow(ctx, statement, a).Scan(stepPlaces(&step)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &step, nil
}

// BeginStep says what is known about the step, or that its code is to run.
func (s *Store) BeginStep(ctx context.Context, p engine.BeginStepParams) (begun engine.Begun, err error) {
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	err = s.write("begin a step", func(ctx context.Context, t *tx) (err error) {
		begun, err = t.beginStep(ctx, &p)
		return err
	})
	if err != nil {
		return engine.Begun{}, err
	}
	return begun, nil
}

func (t *tx) beginStep(ctx context.Context, p *engine.BeginStepParams) (engine.Begun, error) {
	size := p.Input.Size()
	run, err := t.runState(ctx, p.Lease.Namespace, p.Lease.RunID)
	if err != nil {
		return engine.Begun{}, err
	}
	if !run.current(p.Lease) {
		return t.beginStepAgain(ctx, run, p)
	}
	prev, err := t.attempt(ctx, run.id, engine.StepRef{Name: p.Name})
	if err != nil {
		return engine.Begun{}, err
	}
	if prev != nil {
		switch {
		case prev.Kind != p.Kind:
			return engine.Begun{}, engine.StepConflict(prev.Name, prev.Status)
		case prev.Status == engine.StepRunning:
			return engine.Begun{Step: *prev, Execute: true}, nil
		case prev.Status == engine.StepPending && prev.RetryAt.After(p.Now):
			return engine.Begun{}, tooEarly(prev)
		case !prev.Open() && !prev.Interrupted():
			return engine.Begun{Step: *prev}, nil
		}
	}
	if run.bytes+int64(size) > engine.MaxRunBytes {
		return engine.Begun{}, tooManyBytes("input", run.bytes, size)
	}
	step, fresh, err := next(run, prev, p.Name, p.ID, p.StartedAt, p.Now)
	if err != nil {
		return engine.Begun{}, err
	}
	step.Kind, step.Input = p.Kind, p.Input
	if p.RetryPolicy != nil {
		step.RetryPolicy = p.RetryPolicy
	}
	if p.Kind != engine.StepSleep {
		limit := cmp.Or(p.StartToClose, run.stepLimit, engine.DefaultStepTimeout)
		step.TimeoutAt = engine.Micros(step.StartedAt.Add(limit))
		t.ring(engine.Ring{Kind: engine.RingTimer})
	}
	if err := t.put(ctx, run, prev, &step); err != nil {
		return engine.Begun{}, err
	}
	return engine.Begun{Step: step, Execute: true}, t.count(ctx, run.id, fresh, size, false)
}

func tooEarly(step *engine.Step) error {
	return &engine.Error{Kind: engine.KindPrecondition, Subject: "step", SubjectID: step.Name,
		Message: "step " + step.Name + " is not to be tried again before " + step.RetryAt.Format(time.RFC3339Nano)}
}

func sleepOnly(name string) error {
	return &engine.Error{Kind: engine.KindPrecondition, Subject: "step", SubjectID: name,
		Message: "step " + name + " is a SLEEP: only time ends it"}
}
