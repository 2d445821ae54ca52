package memory

import (
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// step returns the attempt with the highest number that the filter accepts; nil if there is none.
func (t *tx) step(run engine.ID, take func(*engine.Step) bool) *engine.Step {
	var found *engine.Step
	if r := t.db.runs[run]; r != nil {
		for _, s := range r.Steps {
			if take(s) && (found == nil || s.Attempt > found.Attempt) {
				found = s
			}
		}
	}
	if found == nil {
		return nil
	}
	step := *found
	return &step
}

func (t *tx) Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	if !ref.ID.IsZero() {
		step := t.step(run, func(s *engine.Step) bool { return s.ID == ref.ID })
		if step != nil || ref.Name == "" {
			return step, nil
		}
	}
	return t.step(run, func(s *engine.Step) bool { return s.Name == ref.Name }), nil
}

func (t *tx) AttemptOf(run engine.ID, name string, token engine.Token) (*engine.Step, error) {
	return t.step(run, func(s *engine.Step) bool { return s.Name == name && s.Token == token }), nil
}

// steps returns the attempts that the filter accepts, by sequence and attempt.
func (t *tx) steps(run engine.ID, take func(*engine.Step) bool) (steps []engine.Step) {
	if r := t.db.runs[run]; r != nil {
		for _, s := range r.Steps {
			if take(s) {
				steps = append(steps, *s)
			}
		}
	}
	slices.SortStableFunc(steps, compareSteps)
	return steps
}

// bare returns steps without their payloads.
func bare(steps []engine.Step) []engine.Step {
	for i := range steps {
		steps[i].Input, steps[i].Output = engine.Payload{}, engine.Payload{}
	}
	return steps
}

func (t *tx) Waiting(run engine.ID) ([]engine.Step, error) {
	return bare(t.steps(run, func(s *engine.Step) bool { return s.Open() || s.Awaited != 0 })), nil
}

func (t *tx) Results(run engine.ID) ([]engine.Step, error) {
	return t.steps(run, func(s *engine.Step) bool { return s.Latest && !s.Open() }), nil
}

func (t *tx) NextOfGroup(run engine.ID, group int64) (*engine.Step, error) {
	open := bare(t.steps(run, func(s *engine.Step) bool { return s.Open() && s.Awaited == group }))
	if len(open) == 0 {
		return nil, nil
	}
	next := slices.MinFunc(open, func(a, b engine.Step) int { return compareIDs(a.ID, b.ID) })
	return &next, nil
}

func (t *tx) ChildSteps(run engine.ID, children []engine.ID) ([]engine.Step, error) {
	return t.steps(run, func(s *engine.Step) bool {
		return s.Kind == engine.StepChild && s.Latest && slices.Contains(children, s.ChildRunID)
	}), nil
}

func (t *tx) InsertSteps(steps []engine.Step) error {
	for _, s := range steps {
		r := t.change(s.RunID)
		r.Steps = append(r.Steps, &s)
	}
	return nil
}

func (t *tx) Supersede(id engine.ID) error {
	t.changeStep(id, func(s *engine.Step) {
		s.Latest = false
		if s.Status == engine.StepPending {
			s.Status = engine.StepFailed
		}
	})
	return nil
}

func (t *tx) SaveStep(step *engine.Step) error {
	t.changeSteps(step.RunID, func(s *engine.Step) bool {
		if s.ID != step.ID {
			return false
		}
		saved := *step
		saved.Latest, saved.Attempt, saved.Sequence, saved.Input, saved.CreatedAt = s.Latest, s.Attempt, s.Sequence,
			s.Input, s.CreatedAt
		saved.OverriddenBy, saved.OverrideReason = s.OverriddenBy, s.OverrideReason
		saved.Branch, saved.BegunIn = s.Branch, s.BegunIn
		*s = saved
		return true
	})
	return nil
}

// failOpen fails the open attempts that the filter accepts.
func (t *tx) failOpen(run engine.ID, f engine.Failure, now time.Time, take func(*engine.Step) bool) {
	t.changeSteps(run, func(s *engine.Step) bool {
		if !s.Open() || !take(s) {
			return false
		}
		s.Status, s.Error, s.FinishedAt, s.TimeoutAt = engine.StepFailed, &f, now, time.Time{}
		return true
	})
}

func (t *tx) InterruptSteps(run engine.ID, f engine.Failure, now time.Time) error {
	t.failOpen(run, f, now, func(s *engine.Step) bool {
		return s.Status == engine.StepRunning && s.Kind == engine.StepFunction
	})
	return nil
}

func (t *tx) EndSteps(run engine.ID, f engine.Failure, now time.Time) error {
	t.failOpen(run, f, now, func(s *engine.Step) bool { return s.Status == engine.StepRunning })
	t.changeSteps(run, func(s *engine.Step) bool {
		waits := s.Status == engine.StepPending
		if waits {
			s.Status = engine.StepFailed
		}
		return waits
	})
	return nil
}

func (t *tx) WakeSteps(run engine.ID, now time.Time) error {
	t.changeSteps(run, func(s *engine.Step) bool {
		if s.Status != engine.StepRunning || s.Kind != engine.StepSleep || s.WakeAt.IsZero() || s.WakeAt.After(now) {
			return false
		}
		s.Status, s.FinishedAt = engine.StepCompleted, s.WakeAt
		s.Settled, s.Awaited = engine.Unsettled, engine.AwaitedByNone
		return true
	})
	return nil
}

func (t *tx) SettleStep(id engine.ID, settled int64) error {
	t.changeStep(id, func(s *engine.Step) { s.Settled = settled })
	return nil
}

func (t *tx) RetrySteps(run engine.ID, at time.Time) error {
	t.changeSteps(run, func(s *engine.Step) bool {
		if s.Status != engine.StepFailed || !s.Latest || s.Interrupted() {
			return false
		}
		s.Status, s.RetryAt, s.Failures, s.Settled = engine.StepPending, at, 0, 0
		return true
	})
	return nil
}

func (t *tx) SetAwaited(steps []engine.ID, group int64) error {
	for _, id := range steps {
		t.changeStep(id, func(s *engine.Step) { s.Awaited = group })
	}
	return nil
}

func (t *tx) LateSteps(now time.Time, limit int) (late []engine.Step, next time.Time, err error) {
	var timed []engine.Step
	for _, r := range t.db.runs {
		for _, s := range r.Steps {
			if s.Status == engine.StepRunning && !s.TimeoutAt.IsZero() {
				timed = append(timed, *s)
			}
		}
	}
	slices.SortFunc(timed, func(a, b engine.Step) int {
		if d := a.TimeoutAt.Compare(b.TimeoutAt); d != 0 {
			return d
		}
		return compareIDs(a.ID, b.ID)
	})
	for _, s := range timed {
		if len(late) == limit || s.TimeoutAt.After(now) {
			return late, s.TimeoutAt, nil
		}
		late = append(late, s)
	}
	return late, next, nil
}
