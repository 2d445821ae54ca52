package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_attempt.sql
var getAttemptSQL string

//go:embed sql/get_latest_attempt.sql
var getLatestAttemptSQL string

func (t *tx) Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	if !ref.ID.IsZero() {
		step, err := t.oneStep(&getAttemptSQL, idArg("step_id", ref.ID), idArg("run_id", run))
		if err != nil || step != nil || ref.Name == "" {
			return step, err
		}
	}
	return t.oneStep(&getLatestAttemptSQL, idArg("run_id", run), text("name", ref.Name))
}

//go:embed sql/get_attempt_of_lease.sql
var getAttemptOfLeaseSQL string

func (t *tx) AttemptOf(run engine.ID, name string, token engine.Token) (*engine.Step, error) {
	return t.oneStep(&getAttemptOfLeaseSQL, idArg("run_id", run), text("name", name), tokenArg("token", token))
}

func (t *tx) oneStep(statement *string, args ...arg) (*engine.Step, error) {
	var step engine.Step
	found, err := t.found(statement, func(r *row) (err error) {
		step, err = readStep(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &step, nil
}

func (t *tx) steps(statement *string, args ...arg) ([]engine.Step, error) {
	if err := t.flushCounts(); err != nil {
		return nil, err
	}
	return t.session.steps(statement, args...)
}

func (s session) steps(statement *string, args ...arg) (steps []engine.Step, err error) {
	err = s.query(statement, func(r *row) error {
		step, err := readStep(r)
		steps = append(steps, step)
		return err
	}, args...)
	return steps, err
}

//go:embed sql/list_waiting.sql
var listWaitingSQL string

func (t *tx) Waiting(run engine.ID) ([]engine.Step, error) {
	return t.steps(&listWaitingSQL, idArg("run_id", run))
}

//go:embed sql/list_results.sql
var listResultsSQL string

func (t *tx) Results(run engine.ID) ([]engine.Step, error) {
	return t.steps(&listResultsSQL, idArg("run_id", run))
}

//go:embed sql/next_of_group.sql
var nextOfGroupSQL string

func (t *tx) NextOfGroup(run engine.ID, group int64) (*engine.Step, error) {
	return t.oneStep(&nextOfGroupSQL, idArg("run_id", run), num("awaited", group))
}

//go:embed sql/list_child_steps.sql
var listChildStepsSQL string

func (t *tx) ChildSteps(run engine.ID, children []engine.ID) ([]engine.Step, error) {
	return t.steps(&listChildStepsSQL, idArg("run_id", run), text("children", encodeIDs(children)))
}

//go:embed sql/insert_step.sql
var insertStepSQL string

func (t *tx) InsertSteps(steps []engine.Step) error {
	for i := range steps {
		s := &steps[i]
		t.leases.markOpen(s.RunID)
		_, err := t.exec(&insertStepSQL,
			idArg("step_id", s.ID), idArg("run_id", s.RunID), text("name", s.Name), num("kind", s.Kind),
			num("status", s.Status),
			num("attempt", s.Attempt), num("failures", s.Failures), flag("latest", s.Latest),
			num("sequence", s.Sequence),
			blob("input", s.Input.Data), text("input_meta", encodeMap(s.Input.Metadata)),
			blob("output", s.Output.Data), text("output_meta", encodeMap(s.Output.Metadata)),
			text("error", encodeFailure(s.Error)),
			blob("token", s.Token[:]), text("worker_id", s.WorkerID), instant("created_at", s.CreatedAt),
			instant("started_at", s.StartedAt), instant("finished_at", s.FinishedAt),
			instant("timeout_at", s.TimeoutAt),
			instant("retry_at", s.RetryAt), instant("wake_at", s.WakeAt), length("duration_us", s.Duration),
			text("retry_policy", encodePolicy(s.RetryPolicy)), text("signal_name", *storekit.DetailOf(s)),
			flag("timed_out", s.TimedOut),
			idArg("child_run_id", s.ChildRunID), num("awaited", s.Awaited), text("overridden_by", s.OverriddenBy),
			text("override_reason", s.OverrideReason), num("settled", s.Settled), text("branch", s.Branch),
			num("begun_in", s.BegunIn))
		if err != nil {
			return err
		}
	}
	return nil
}

//go:embed sql/supersede_step.sql
var supersedeStepSQL string

func (t *tx) Supersede(step engine.ID) error {
	_, err := t.exec(&supersedeStepSQL, idArg("step_id", step))
	return err
}

//go:embed sql/update_step.sql
var updateStepSQL string

func (t *tx) SaveStep(s *engine.Step) error {
	t.leases.markOpen(s.RunID)
	_, err := t.exec(&updateStepSQL,
		idArg("step_id", s.ID), num("status", s.Status), num("failures", s.Failures),
		blob("output", s.Output.Data), text("output_meta", encodeMap(s.Output.Metadata)),
		text("error", encodeFailure(s.Error)),
		blob("token", s.Token[:]), text("worker_id", s.WorkerID), instant("started_at", s.StartedAt),
		instant("finished_at", s.FinishedAt), instant("timeout_at", s.TimeoutAt), instant("retry_at", s.RetryAt),
		instant("wake_at", s.WakeAt), length("duration_us", s.Duration),
		text("retry_policy", encodePolicy(s.RetryPolicy)),
		text("signal_name", *storekit.DetailOf(s)), flag("timed_out", s.TimedOut), idArg("child_run_id", s.ChildRunID),
		num("awaited", s.Awaited), num("settled", s.Settled))
	return err
}

//go:embed sql/settle_step.sql
var settleStepSQL string

func (t *tx) SettleStep(step engine.ID, settled int64) error {
	_, err := t.exec(&settleStepSQL, idArg("step_id", step), num("settled", settled))
	return err
}

//go:embed sql/interrupt_steps.sql
var interruptStepsSQL string

func (t *tx) InterruptSteps(run engine.ID, f engine.Failure, now time.Time) error {
	_, err := t.exec(&interruptStepsSQL, idArg("run_id", run), text("error", encodeFailure(&f)), instant("now", now))
	return err
}

//go:embed sql/end_steps.sql
var endStepsSQL string

func (t *tx) EndSteps(run engine.ID, f engine.Failure, now time.Time) error {
	_, err := t.exec(&endStepsSQL, idArg("run_id", run), text("error", encodeFailure(&f)), instant("now", now))
	return err
}

//go:embed sql/wake_steps.sql
var wakeStepsSQL string

func (t *tx) WakeSteps(run engine.ID, now time.Time) error {
	_, err := t.exec(&wakeStepsSQL, idArg("run_id", run), instant("now", now))
	return err
}

//go:embed sql/retry_steps.sql
var retryStepsSQL string

func (t *tx) RetrySteps(run engine.ID, at time.Time) error {
	t.leases.markOpen(run)
	_, err := t.exec(&retryStepsSQL, idArg("run_id", run), instant("retry_at", at))
	return err
}

//go:embed sql/await_steps.sql
var awaitStepsSQL string

func (t *tx) SetAwaited(steps []engine.ID, group int64) error {
	_, err := t.exec(&awaitStepsSQL, text("step_ids", encodeIDs(steps)), num("awaited", group))
	return err
}

//go:embed sql/list_timed_out.sql
var listTimedOutSQL string

func (t *tx) LateSteps(now time.Time, limit int) (late []engine.Step, next time.Time, err error) {
	err = t.query(&listTimedOutSQL, func(r *row) error {
		step, err := readStep(r)
		if len(late) < limit && !step.TimeoutAt.After(now) {
			late = append(late, step)
		} else if next.IsZero() {
			next = step.TimeoutAt
		}
		return err
	}, num("limit", limit+1))
	return late, next, err
}
