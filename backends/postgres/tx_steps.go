package postgres

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

// Attempt tries the id first.
func (t *tx) Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	if !ref.ID.IsZero() {
		step, err := t.oneStep(getAttemptSQL, args{"step_id": [16]byte(ref.ID), "run_id": [16]byte(run)})
		if err != nil || step != nil {
			return step, err
		}
	}
	if ref.Name == "" {
		return nil, nil
	}
	return t.oneStep(getLatestAttemptSQL, args{"run_id": [16]byte(run), "name": ref.Name})
}

//go:embed sql/get_attempt_of_lease.sql
var getAttemptOfLeaseSQL string

// AttemptOf is needed when a worker repeats a write.
func (t *tx) AttemptOf(run engine.ID, name string, token engine.Token) (*engine.Step, error) {
	return t.oneStep(getAttemptOfLeaseSQL, args{"run_id": [16]byte(run), "name": name, "token": [16]byte(token)})
}

func (t *tx) oneStep(statement string, a args) (*engine.Step, error) {
	var step engine.Step
	found, err := t.found(statement, a, stepPlaces(&step)...)
	if err != nil || !found {
		return nil, err
	}
	return &step, nil
}

//go:embed sql/list_waiting.sql
var listWaitingSQL string

// Waiting uses two small indexes, however long the history is.
func (t *tx) Waiting(run engine.ID) ([]engine.Step, error) {
	return collect(t, listWaitingSQL, args{"run_id": [16]byte(run)}, scanStep)
}

//go:embed sql/next_of_group.sql
var nextOfGroupSQL string

// NextOfGroup uses the index of open steps.
func (t *tx) NextOfGroup(run engine.ID, group int64) (*engine.Step, error) {
	return t.oneStep(nextOfGroupSQL, args{"run_id": [16]byte(run), "awaited": group})
}

//go:embed sql/list_results.sql
var listResultsSQL string

// Results reads the whole history.
func (t *tx) Results(run engine.ID) ([]engine.Step, error) {
	return collect(t, listResultsSQL, args{"run_id": [16]byte(run)}, scanStep)
}

//go:embed sql/list_child_steps.sql
var listChildStepsSQL string

// ChildSteps uses the index of children.
func (t *tx) ChildSteps(run engine.ID, children []engine.ID) ([]engine.Step, error) {
	return collect(t, listChildStepsSQL, args{"run_id": [16]byte(run), "children": idArray(children)}, scanStep)
}

//go:embed sql/insert_step.sql
var insertStepText string

var insertStepSQL = hot(insertStepText)

// InsertSteps sends one insert per step, all in one round trip.
func (t *tx) InsertSteps(steps []engine.Step) error {
	for i := range steps {
		s := &steps[i]
		t.bytes += s.Input.Size() + s.Output.Size()
		if err := t.queueRows(insertStepSQL, newStepArgs(s)); err != nil {
			return err
		}
	}
	return nil
}

// newStepArgs returns all columns of an attempt.
func newStepArgs(s *engine.Step) args {
	a := changeable(s)
	a["run_id"], a["name"], a["kind"], a["attempt"] = [16]byte(s.RunID), s.Name, int16(s.Kind), s.Attempt
	a["latest"], a["sequence"], a["created_at"] = s.Latest, s.Sequence, micros(s.CreatedAt)
	a["overridden_by"], a["override_reason"] = s.OverriddenBy, s.OverrideReason
	a["branch"], a["begun_in"] = s.Branch, s.BegunIn
	a["input"], a["input_meta"] = dataOrNull(s.Input.Data), mapText(s.Input.Metadata)
	return a
}

// savedStepArgs returns what update_step.sql writes.
func savedStepArgs(s *engine.Step, paid, superseded bool) args {
	return merge(changeable(s), args{"paid": paid, "superseded": superseded})
}

// changeable returns the columns of an attempt that can change.
func changeable(s *engine.Step) args {
	return args{
		"step_id": [16]byte(s.ID), "status": int16(s.Status), "failures": s.Failures,
		"output": dataOrNull(s.Output.Data), "output_meta": mapText(s.Output.Metadata), "error": pointerText(s.Error),
		"token": [16]byte(s.Token), "worker_id": s.WorkerID, "started_at": microsOrNull(s.StartedAt),
		"finished_at": microsOrNull(s.FinishedAt), "timeout_at": microsOrNull(s.TimeoutAt),
		"retry_at": microsOrNull(s.RetryAt),
		"wake_at":  microsOrNull(s.WakeAt), "duration_us": s.Duration.Microseconds(),
		"retry_policy": pointerText(s.RetryPolicy),
		"signal_name":  *storekit.DetailOf(s), "timed_out": s.TimedOut, "child_run_id": idOrNull(s.ChildRunID),
		"awaited": s.Awaited, "settled": s.Settled,
	}
}

//go:embed sql/supersede_step.sql
var supersedeStepSQL string

// Supersede clears latest, for the next attempt.
func (t *tx) Supersede(step engine.ID) error {
	return t.queue(supersedeStepSQL, args{"step_id": [16]byte(step)})
}

//go:embed sql/update_step.sql
var updateStepText string

var updateStepSQL = hot(updateStepText)

// SaveStep does not write the input and the fields that identify the attempt.
func (t *tx) SaveStep(s *engine.Step) error {
	return t.queueRows(updateStepSQL, savedStepArgs(s, true, false))
}

//go:embed sql/settle_step.sql
var settleStepSQL string

// SettleStep writes only that column.
func (t *tx) SettleStep(step engine.ID, settled int64) error {
	return t.queue(settleStepSQL, args{"step_id": [16]byte(step), "settled": settled})
}

//go:embed sql/interrupt_steps.sql
var interruptStepsSQL string

// InterruptSteps does not change steps that only wait.
func (t *tx) InterruptSteps(run engine.ID, f engine.Failure, now time.Time) error {
	return t.queue(interruptStepsSQL, args{"run_id": [16]byte(run), "error": pointerText(&f), "now": micros(now)})
}

//go:embed sql/end_steps.sql
var endStepsSQL string

// EndSteps ends every open step.
func (t *tx) EndSteps(run engine.ID, f engine.Failure, now time.Time) error {
	return t.queue(endStepsSQL, args{"run_id": [16]byte(run), "error": pointerText(&f), "now": micros(now)})
}

//go:embed sql/wake_steps.sql
var wakeStepsSQL string

// WakeSteps changes only timers.
func (t *tx) WakeSteps(run engine.ID, now time.Time) error {
	return t.queue(wakeStepsSQL, args{"run_id": [16]byte(run), "now": micros(now)})
}

//go:embed sql/retry_steps.sql
var retryStepsSQL string

// RetrySteps does not change interrupted steps, which run again in any case.
func (t *tx) RetrySteps(run engine.ID, at time.Time) error {
	return t.queue(retryStepsSQL, args{"run_id": [16]byte(run), "retry_at": micros(at)})
}

//go:embed sql/await_steps.sql
var awaitStepsSQL string

// SetAwaited writes only that column.
func (t *tx) SetAwaited(steps []engine.ID, group int64) error {
	return t.queue(awaitStepsSQL, args{"step_ids": idArray(steps), "awaited": group})
}

//go:embed sql/list_timed_out.sql
var listTimedOutSQL string

//go:embed sql/list_late_steps.sql
var listLateStepsSQL string

// LateSteps locks the runs and checks their steps again.
func (t *tx) LateSteps(now time.Time, limit int) (late []engine.Step, next time.Time, err error) {
	var steps, runs []engine.ID
	var step, run engine.ID
	var at time.Time
	places := []any{idOf(&step), idOf(&run), timeOf(&at)}
	err = t.read(listTimedOutSQL, args{"limit": limit + 1}, places, func() {
		switch {
		case !at.After(now) && len(steps) < limit:
			steps, runs = append(steps, step), append(runs, run)
		case next.IsZero():
			next = at
		}
	})
	if err != nil || len(steps) == 0 {
		return nil, next, err
	}
	if err := t.prepare(runs); err != nil {
		return nil, next, err
	}
	late, err = collect(t, listLateStepsSQL, args{"step_ids": idArray(steps), "now": micros(now)}, scanStep)
	return late, next, err
}
