package world

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	stepTimeout   = 10 * time.Minute
	usualAttempts = 3
)

// beginStep begins a step, or its next attempt after prev. n is its place among those of its act.
func (w *World) beginStep(r *run, a *act, n int, name string, prev *step) *step {
	s := &step{Step: &kagziv1.Step{
		Namespace: r.Namespace, StepId: w.ids.id(w.now), RunId: r.RunId, Name: name, Kind: functionStep, Status: stepRunning,
		AttemptNumber: 1, CreatedAt: stamp(w.now), StartedAt: stamp(w.now), IsLatest: true, WorkerId: r.GetWorkerId(),
	}}
	if a.input != "" {
		s.Input = jsonPayload(a.input)
	}
	if prev == nil {
		r.StepCount++
		s.Sequence = r.StepCount
	} else {
		s.Sequence, s.AttemptNumber, s.failures = prev.Sequence, prev.AttemptNumber+1, prev.failures
		prev.IsLatest = false
		if prev.Status == stepPending {
			prev.Status = stepFailed
		}
		w.stepChanged(r, prev)
	}
	if a.note != "" {
		r.Note = a.note
	}
	r.steps = append(r.steps, s)
	r.latest[name] = s
	w.stepChanged(r, s)
	switch a.kind {
	case work:
		w.works(r, s, a, n)
	case nap:
		s.Kind = sleepStep
		s.WakeUpAt = stamp(micros(w.now.Add(w.luck.between(a.takes, a.upTo))))
	case wait:
		w.awaitSignal(r, s, a)
	case child:
		w.startChild(r, s, a, n)
	}
	return s
}

// works has a step's code run for as long as it takes. What comes of it is decided as it begins; what a person has tried again was put right.
func (w *World) works(r *run, s *step, a *act, n int) {
	s.TimeoutAt = stamp(w.now.Add(stepTimeout))
	fails := s.failures < a.failing && r.RetriedFromRunId == nil || w.luck.chance(a.odds) || w.weather.spoils(a)
	takes, lease := w.luck.between(a.takes, a.upTo), r.lease
	output := ""
	if a.output != nil {
		output = a.output(w.luck, n)
	}
	w.after(takes, func() {
		if r.lease != lease || r.holder == nil || r.holder.silent || s.Status != stepRunning {
			return // it belongs to another now, or to nobody
		}
		if fails {
			w.failStep(r, s, a)
		} else {
			r.progressed = true
			r.LeaseLosses = 0
			w.activity.stepped(w.now, 1.5+float64(mix(w.seed, uint64(w.now.UnixNano()))%60)/10)
			w.closeStep(r, s, stepCompleted, jsonPayload(output), nil)
		}
		w.proceed(r)
	})
}

// closeStep ends an attempt.
func (w *World) closeStep(r *run, s *step, status kagziv1.StepStatus, output *kagziv1.Payload, why *kagziv1.ErrorDetail) {
	s.Status, s.Output, s.Error, s.FinishedAt, s.TimeoutAt = status, output, why, stamp(w.now), nil
	if status == stepCompleted && output == nil {
		s.Output = &kagziv1.Payload{} // completed with nothing, which is a result too
	}
	w.stepChanged(r, s)
}

// failStep ends an attempt whose code failed: it is tried again, or has failed for good.
func (w *World) failStep(r *run, s *step, a *act) {
	m := a.mishap
	if m == nil {
		m = &usualMishap
	}
	s.failures++
	w.closeStep(r, s, stepFailed, nil, m.detail())
	attempts := r.attemptsOf(a)
	if m.fatal || attempts >= 0 && s.failures >= attempts {
		return
	}
	delay := r.backoff(s.failures)
	if m.again > 0 {
		delay = m.again
	}
	r.Attempts++
	s.Status, s.RetryAt = stepPending, stamp(micros(w.now.Add(delay)))
	w.at(moment(s.RetryAt), func() {
		if s.Status == stepPending && r.holder != nil && !r.holder.silent {
			w.proceed(r)
		}
	})
}

// attemptsOf is how often an act may be tried; -1 is without end.
func (r *run) attemptsOf(a *act) int {
	switch n := int(r.GetRetryPolicy().GetMaximumAttempts()); {
	case a.attempts != 0:
		return a.attempts
	case n != 0:
		return n
	}
	return usualAttempts
}

// backoff is the delay after the n-th failure.
func (r *run) backoff(n int) time.Duration {
	initial, coefficient, most := time.Second, 2.0, time.Minute
	if p := r.RetryPolicy; p != nil {
		if p.InitialIntervalMs > 0 {
			initial = time.Duration(p.InitialIntervalMs) * time.Millisecond
		}
		if p.BackoffCoefficient > 0 {
			coefficient = p.BackoffCoefficient
		}
		if p.MaximumIntervalMs > 0 {
			most = time.Duration(p.MaximumIntervalMs) * time.Millisecond
		}
	}
	return time.Duration(math.Min(float64(initial)*math.Pow(coefficient, float64(n-1)), float64(most)))
}

// startChild starts the n-th child of an act for a step.
func (w *World) startChild(r *run, s *step, a *act, n int) {
	s.Kind = childStep
	p := planOf(a.starts[n])
	if own := r.plan.kids[n]; own != nil {
		p = own
	}
	m := w.message(p, r.Namespace)
	m.ParentRunId, m.ParentStepId = proto.String(r.RunId), proto.String(s.StepId)
	s.ChildRunId = proto.String(w.begins(m, p, w.now).RunId)
	r.closes = true
}

// wakes ends the timers and the waits of a run whose time has come, when a worker gets it.
func (w *World) wakes(r *run) {
	for _, s := range r.openSteps() {
		if at := moment(s.WakeUpAt); s.WakeUpAt == nil || at.After(w.now) || s.Status != stepRunning {
			continue
		}
		s.SignalTimedOut = s.Kind == signalStep
		w.closeStep(r, s, stepCompleted, nil, nil)
		s.FinishedAt = proto.CloneOf(s.WakeUpAt)
	}
}
