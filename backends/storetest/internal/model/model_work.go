package model

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// Writes under a lease in the model.

// written returns the answer to a write under a lease if it must be answered without an effect.
// target is the step or run that it is about.
func (m *model) written(l engine.Lease, target, content string) (*modelRun, string) {
	r := m.run(l.RunID)
	if r == nil {
		return nil, errText(engine.ErrNotFound)
	}
	if w, ok := m.writes[writeKey(l, target)]; ok {
		if w.content == content {
			return nil, w.answer
		}
		if a := r.latest(target); a == nil || a.Status != engine.StepRunning || a.Token != l.Token {
			return nil, errText(engine.ErrConflict)
		}
	}
	if r.token != l.Token {
		return nil, errText(engine.LeaseLost(l.RunID, r.Status))
	}
	return r, ""
}

func writeKey(l engine.Lease, target string) string { return l.Token.Wire() + target }

// wrote says whether a write of this lease about the target took effect.
func (m *model) wrote(l engine.Lease, target string) bool {
	_, ok := m.writes[writeKey(l, target)]
	return ok
}

// note records a write that took effect.
func (m *model) note(l engine.Lease, target, content, answer string) string {
	m.writes[writeKey(l, target)] = modelWrite{content, answer}
	return answer
}

// attempt returns the RUNNING attempt of a step, or a new one after its last.
func (m *model) attempt(r *modelRun, id engine.ID, name string, kind engine.StepKind,
	policy *engine.RetryPolicy) *engine.Step {
	last := r.latest(name)
	if last != nil && last.Status == engine.StepRunning {
		return last
	}
	next := &engine.Step{ID: id, RunID: r.ID, Name: name, Kind: kind, Attempt: 1, Latest: true, RetryPolicy: policy,
		BegunIn: r.OwedFrom}
	if last == nil {
		r.Steps++
		next.Sequence = r.Steps
	} else {
		next.Attempt, next.Failures, next.Sequence = last.Attempt+1, last.Failures, last.Sequence
		last.Latest = false
		if last.Status == engine.StepPending {
			last.Status = engine.StepFailed
		}
	}
	r.attempts = append(r.attempts, next)
	return next
}

func (m *model) begin(p engine.BeginStepParams) string {
	r := m.run(p.Lease.RunID)
	if r == nil {
		return errText(engine.ErrNotFound)
	}
	if r.token != p.Lease.Token {
		return errText(engine.LeaseLost(r.ID, r.Status))
	}
	if last := r.latest(p.Name); last != nil {
		switch {
		case last.Kind != p.Kind:
			return errText(engine.ErrConflict)
		case last.Status == engine.StepCompleted, last.Status == engine.StepFailed && !last.Interrupted():
			return begunText(engine.Begun{Step: *last})
		case last.Status == engine.StepPending && last.RetryAt.After(p.Now):
			return errText(engine.ErrPrecondition)
		}
	}
	a := m.attempt(r, p.ID, p.Name, p.Kind, p.RetryPolicy)
	if a.ID == p.ID {
		a.Status, a.Token, a.TimeoutAt = engine.StepRunning, p.Lease.Token, p.Now.Add(p.StartToClose)
	}
	return begunText(engine.Begun{Step: *a, Execute: true})
}

func (m *model) complete(p engine.CompleteStepParams) string {
	content := "output " + string(p.Output.Data)
	r, answer := m.written(p.Lease, p.Step.Name, content)
	if r == nil {
		return answer
	}
	if last := r.latest(p.Step.Name); last != nil {
		switch {
		case last.Kind == engine.StepSleep:
			return errText(engine.ErrPrecondition)
		case last.Status == engine.StepCompleted, last.Status == engine.StepFailed && !last.Interrupted():
			return errText(engine.ErrConflict)
		}
	}
	a := m.attempt(r, p.ID, p.Step.Name, engine.StepFunction, nil)
	a.Output, a.Token, a.Error = p.Output, p.Lease.Token, nil
	r.ends(a, engine.StepCompleted)
	r.progressed, r.Suspect = true, engine.Suspect{}
	return m.note(p.Lease, p.Step.Name, content, stepLine(*a))
}

func (m *model) fail(p engine.FailStepParams) string {
	content := "failure " + p.Failure.Message
	r, answer := m.written(p.Lease, p.Step.Name, content)
	if r == nil {
		return answer
	}
	if last := r.latest(p.Step.Name); last != nil &&
		(last.Kind == engine.StepSleep || last.Status == engine.StepCompleted ||
			last.Status == engine.StepFailed && !last.Interrupted()) {
		return errText(engine.ErrConflict)
	}
	a := m.attempt(r, p.ID, p.Step.Name, engine.StepFunction, p.RetryPolicy)
	a.Token = p.Lease.Token
	v := m.failed(r, a, p.Failure, p.Now, p.Jitter)
	if !v.Retry {
		r.ends(a, engine.StepFailed)
	}
	r.Suspect = engine.Suspect{}
	if v.Retry && !p.Hold {
		m.park(r, p.Now)
	}
	m.note(p.Lease, p.Step.Name, content, fixture.DecisionText(fixture.Repeated(v)))
	return fixture.DecisionText(v)
}

// failed records a failure of a step's code.
func (m *model) failed(r *modelRun, a *engine.Step, f engine.Failure, now time.Time, roll float64) engine.Verdict {
	a.Failures++
	a.Error = &f
	v := engine.AfterStepFailed(r.RetryPolicy, a.RetryPolicy, a.Failures, f, now, roll)
	a.Status, a.RetryAt = engine.StepFailed, v.RetryAt
	if v.Retry {
		a.Status = engine.StepPending
		r.Attempts++
	}
	return v
}

func (m *model) sleep(p engine.SleepParams) string {
	content := fmt.Sprint("sleep ", p.Duration)
	if r := m.run(p.Lease.RunID); r != nil && r.token == p.Lease.Token {
		if last := r.latest(p.Step.Name); last != nil && last.Kind == engine.StepSleep {
			if answer, over := m.sleepOver(r, last, &p); over {
				return answer
			}
		}
	}
	if p.Over {
		return m.overBefore(&p)
	}
	r, answer := m.written(p.Lease, p.Step.Name, content)
	if r == nil {
		return answer
	}
	last := r.latest(p.Step.Name)
	if last != nil && (last.Kind != engine.StepSleep || last.Status != engine.StepRunning) {
		return errText(engine.ErrConflict)
	}
	if last == nil {
		last = m.attempt(r, p.ID, p.Step.Name, engine.StepSleep, nil)
		last.Status, last.WakeAt, last.Duration = engine.StepRunning, p.Now.Add(p.Duration), p.Duration
	}
	if !p.Hold {
		m.park(r, p.Now)
	}
	return m.note(p.Lease, p.Step.Name, content, "ok")
}

// sleepOver answers a Sleep under the current lease whose timer is over, by its time or because its
// holder says so.
func (m *model) sleepOver(r *modelRun, a *engine.Step, p *engine.SleepParams) (answer string, over bool) {
	stays := p.Over || p.Hold || p.Stay
	switch {
	case a.Status == engine.StepCompleted:
		if stays && (p.Over || a.Duration == p.Duration) {
			return "ok", true
		}
		return errText(engine.ErrConflict), true
	case a.Status != engine.StepRunning || !p.Over && (a.Duration != p.Duration || a.WakeAt.After(p.Now)):
		return "", false
	}
	r.ends(a, engine.StepCompleted)
	a.Token, r.progressed, r.Suspect = p.Lease.Token, true, engine.Suspect{}
	if !stays {
		m.free(r, engine.RunPending, p.Now, p.Now)
	}
	return m.note(p.Lease, p.Step.Name, fmt.Sprint("sleep ", p.Duration), "ok"), true
}

// overBefore answers a Sleep that says that its timer is over, where there is no such timer or the
// lease is over.
func (m *model) overBefore(p *engine.SleepParams) string {
	r := m.run(p.Lease.RunID)
	if r == nil {
		return errText(engine.ErrNotFound)
	}
	a := r.latest(p.Step.Name)
	switch {
	case r.token == p.Lease.Token && a == nil:
		return errText(engine.ErrNotFound)
	case r.token == p.Lease.Token:
		return errText(engine.ErrConflict)
	case a == nil || a.Token != p.Lease.Token && !m.wrote(p.Lease, p.Step.Name),
		a.Kind == engine.StepSleep && a.Status != engine.StepCompleted:
		return errText(engine.LeaseLost(r.ID, r.Status))
	case a.Kind == engine.StepSleep:
		return "ok"
	}
	return errText(engine.ErrConflict)
}

const runsEnd = "/end" // no step has this name

func (m *model) completeRun(p engine.CompleteRunParams) string {
	content := "output " + string(p.Output.Data)
	r, answer := m.written(p.Lease, runsEnd, content)
	if r == nil {
		return answer
	}
	m.over(r, engine.RunCompleted, p.Now)
	return m.note(p.Lease, runsEnd, content, "ok")
}

func (m *model) failRun(p engine.FailRunParams) string {
	content := "failure " + p.Failure.Message
	r, answer := m.written(p.Lease, runsEnd, content)
	if r == nil {
		return answer
	}
	v := engine.AfterRunFailed(r.OwnPolicy(), r.Failures+1, p.Failure, p.Now, p.Jitter)
	if v.Retry {
		r.Attempts++
		r.Failures++
		r.OwedFrom++
		r.Suspect = engine.Suspect{}
		for _, a := range r.attempts {
			if a.Latest && a.Status == engine.StepFailed && !a.Interrupted() {
				a.Status, a.RetryAt, a.Failures, a.Settled = engine.StepPending, v.RetryAt, 0, 0
			}
		}
		m.free(r, engine.RunPending, v.RetryAt, p.Now)
	} else {
		r.Error = &p.Failure
		m.over(r, engine.RunFailed, p.Now)
	}
	m.note(p.Lease, runsEnd, content, fixture.DecisionText(fixture.Repeated(v)))
	return fixture.DecisionText(v)
}

func (m *model) release(p engine.ReleaseParams) string {
	r, answer := m.written(p.Lease, runsEnd, "release")
	if r == nil {
		return answer
	}
	if p.Park {
		m.park(r, p.Now)
	} else {
		m.free(r, engine.RunPending, p.Now, p.Now)
	}
	return m.note(p.Lease, runsEnd, "release", "ok")
}
