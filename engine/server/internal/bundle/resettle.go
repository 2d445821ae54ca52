package bundle

import (
	"cmp"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// resettle converts the runs of a capsule for this store: it gives them and all references new ids,
// and ends what cannot continue. References to runs that are not in the capsule are dropped. now is
// the time of the import.
func resettle(runs []capsuleOf, namespace string, now time.Time) ([]engine.ImportedRun, error) {
	m := move{now: now, namespace: namespace, runs: map[engine.ID]engine.ID{}, steps: map[engine.ID]engine.ID{},
		byID: map[engine.ID]*engine.Run{}}
	for i := range runs {
		m.runs[runs[i].Run.ID] = engine.NewID(now)
		m.byID[runs[i].Run.ID] = &runs[i].Run
	}
	for i := range runs {
		if err := m.numberSteps(&runs[i]); err != nil {
			return nil, inFile(runs[i].directory+capsuleSteps, err)
		}
	}
	arrived := map[engine.ID]bool{}
	settled := make([]engine.ImportedRun, len(runs))
	for i := range runs {
		r := &runs[i]
		if parent := r.Run.ParentRunID; m.byID[parent] != nil && !arrived[parent] {
			return nil, inFile(r.directory+capsuleRun,
				engine.Invalid("parent_run_id", "must stand before its children"))
		}
		arrived[r.Run.ID] = true
		if err := m.steerSteps(r); err != nil {
			return nil, inFile(r.directory+capsuleSteps, err)
		}
		m.settleSignals(r)
	}
	for i := range runs { // last, because the steps of other runs need the old state
		m.settleRun(&runs[i].Run)
		settled[i] = runs[i].ImportedRun
		if err := settled[i].Validate(); err != nil {
			return nil, inFile(runs[i].directory[:len(runs[i].directory)-1], err)
		}
	}
	return settled, nil
}

// move holds the maps from old to new ids.
type move struct {
	now       time.Time
	namespace string
	runs      map[engine.ID]engine.ID // old to new
	steps     map[engine.ID]engine.ID
	byID      map[engine.ID]*engine.Run // by old id
}

// numberSteps sorts the attempts of a run and sets their sequence without gaps, Latest, and
// Failures.
func (m *move) numberSteps(r *capsuleOf) error {
	slices.SortStableFunc(r.Steps, func(a, b engine.Step) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Attempt, b.Attempt))
	})
	latest := map[string]*engine.Step{}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.ID.IsZero() || !m.steps[s.ID].IsZero() {
			return engine.Invalid("step_id", "of step %s must be unique", s.Name)
		}
		m.steps[s.ID] = engine.NewID(m.now)
		before := latest[s.Name]
		latest[s.Name] = s
		s.Latest, s.Failures = true, 0
		if before == nil {
			s.Sequence = int64(len(latest))
		} else {
			if before.Kind != s.Kind || before.Attempt >= s.Attempt {
				return engine.Invalid("attempt_number", "of step %s: attempt %d cannot follow attempt %d", s.Name,
					s.Attempt, before.Attempt)
			}
			before.Latest = false
			supersede(before)
			s.Sequence, s.Failures = before.Sequence, before.Failures
		}
		if s.Error != nil && !s.Interrupted() {
			s.Failures++
		}
	}
	return nil
}

// supersede ends an attempt that was still open when it was exported, although a later one exists.
func supersede(s *engine.Step) {
	switch {
	case s.Open() && s.Error == nil:
		fail(s, engine.InterruptedFailure(), s.StartedAt)
	case s.Open():
		fail(s, *s.Error, s.FinishedAt)
	}
}

// steerSteps gives the attempts new ids and ends those that cannot continue: code that ran, waits
// for a child that has ended, and all open steps of an ended run.
func (m *move) steerSteps(r *capsuleOf) error {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.WakeAt.Sub(m.now) > engine.MaxDelay || s.RetryAt.Sub(m.now) > engine.MaxDelay {
			return engine.Invalid("wake_up_at", "or retry_at of step %s lies more than 10 years ahead", s.Name)
		}
		switch {
		case !s.Open():
			m.renameOutput(s)
		case r.Run.Status.Ended():
			fail(s, engine.RunEndedFailure(), r.Run.FinishedAt)
		case s.Kind == engine.StepFunction && s.Status == engine.StepRunning:
			fail(s, engine.InterruptedFailure(), m.now)
		case s.Kind == engine.StepChild && s.Status == engine.StepRunning: // a PENDING one starts another child
			m.endChildStep(s)
		case s.Kind == engine.StepSleep:
			s.Duration = askedFor(s)
		}
		s.ID, s.RunID, s.ChildRunID = m.steps[s.ID], m.runs[r.Run.ID], m.runs[s.ChildRunID]
	}
	return nil
}

// askedFor returns the duration of a timer, or 0 if it was set by its end. The code will set it in
// the same way again. The API has no field for this, but a timer set by duration has whole
// milliseconds, and one set by its end hardly ever does.
func askedFor(s *engine.Step) time.Duration {
	length := s.WakeAt.Sub(s.StartedAt)
	if s.WakeAt.IsZero() || s.StartedAt.IsZero() || length < 0 || length%time.Millisecond != 0 {
		return 0
	}
	return length
}

// endChildStep ends a step whose child, or the last run that the child continued as, had ended when
// the child was exported. If that run is not in the capsule, because it started during the export,
// the step is interrupted and the code starts another child.
func (m *move) endChildStep(s *engine.Step) {
	child := m.byID[s.ChildRunID]
	for range len(m.byID) { // the runs may name each other in a circle
		if child == nil || child.ContinuedAs.IsZero() {
			break
		}
		child = m.byID[child.ContinuedAs]
	}
	switch {
	case child == nil:
		s.ChildRunID = engine.ID{}
		fail(s, engine.InterruptedFailure(), m.now)
	case child.Status == engine.RunCompleted:
		output := engine.ChildOutput(child.Output, m.runs[s.ChildRunID], m.runs[child.ID])
		s.Status, s.Output, s.FinishedAt = engine.StepCompleted, output, child.FinishedAt
		s.Settled = engine.Unsettled
	case child.Status.Ended():
		arrived := *child
		arrived.ID = m.runs[child.ID]
		fail(s, engine.ChildFailure(&arrived), child.FinishedAt)
		s.Settled = engine.Unsettled
	}
}

// renameOutput replaces the run that a child's output names (MetaChildRunID) by its new id. The old
// id must not stay: a forged capsule could then give a parent the output of any run, and a codec
// that binds outputs to their runs would accept it.
func (m *move) renameOutput(s *engine.Step) {
	if s.Kind != engine.StepChild || s.OverriddenBy != "" {
		return
	}
	child := m.runs[s.ChildRunID]
	ended := child
	if of, err := engine.ParseID(s.Output.Metadata[engine.MetaChildRunID]); err == nil && !m.runs[of].IsZero() {
		ended = m.runs[of]
	}
	s.Output = engine.ChildOutput(s.Output, child, ended)
}

func fail(s *engine.Step, f engine.Failure, at time.Time) {
	s.Status, s.Error, s.FinishedAt = engine.StepFailed, &f, at
}

// settleSignals numbers the signals of a run. A signal whose step was not completed in the export
// waits to be consumed again.
func (m *move) settleSignals(r *capsuleOf) {
	consumed := map[string]bool{}
	for i := range r.Steps {
		s := &r.Steps[i]
		consumed[s.Name] = consumed[s.Name] || s.Kind == engine.StepSignal && s.Status == engine.StepCompleted
	}
	slices.SortStableFunc(r.Signals, func(a, b engine.Signal) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for i := range r.Signals {
		s := &r.Signals[i]
		s.RunID, s.Sequence = m.runs[r.Run.ID], int64(i+1)
		if !r.Run.Status.Ended() && !consumed[s.StepName] {
			s.StepName = ""
		}
	}
}

// settleRun gives a run its new ids, and makes it an imported run.
func (m *move) settleRun(r *engine.Run) {
	r.ID = m.runs[r.ID]
	r.ParentRunID, r.ParentStepID = m.runs[r.ParentRunID], m.steps[r.ParentStepID]
	r.FailedRunID, r.RetriedFrom = m.runs[r.FailedRunID], m.runs[r.RetriedFrom]
	r.ContinuedFrom, r.ContinuedAs = m.runs[r.ContinuedFrom], m.runs[r.ContinuedAs]
	r.FirstRunID = m.runs[r.FirstRunID]
	*r = engine.Imported(*r, m.namespace, m.now)
}
