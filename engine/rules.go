package engine

import "time"

// Verdict says what follows from a failure of a step's code.
type Verdict struct {
	Retry   bool
	RetryAt time.Time // when the next attempt may start; only with Retry
	// Failures counts the failures of the code, including this one. It is set only with Retry, and
	// 0 in the answer to a repeated call.
	Failures int
	Settled  int64 // as in Step, unless it is retried
}

// RunVerdict says what follows from a failure of a run's code.
type RunVerdict struct {
	Verdict
	// Status is that of the run now: PENDING with Retry, otherwise FAILED, or CANCELLED if
	// cancellation was requested.
	Status RunStatus
	// Handler says that the run is a failure handler, so no handler is started for its failure.
	Handler bool
}

// AfterStepFailed decides about a step whose code has failed n times, by the step's policy, else
// the run's, else the default. The delay counts from now, the commit of the failure.
func AfterStepFailed(run, step *RetryPolicy, n int, f Failure, now time.Time, jitter float64) Verdict {
	return decide(firstPolicy(step, run), n, f, now, jitter)
}

// AfterRunFailed decides about a run whose code has returned n errors, by its OwnPolicy; nil: it is
// not retried. Failures of its steps do not count.
func AfterRunFailed(own *RetryPolicy, n int, f Failure, now time.Time, jitter float64) Verdict {
	if own == nil {
		return Verdict{}
	}
	return decide(*own, n, f, now, jitter)
}

func decide(p RetryPolicy, n int, f Failure, now time.Time, jitter float64) Verdict {
	if !p.Allows(n, f) {
		return Verdict{}
	}
	delay := p.Backoff(n, jitter)
	if f.RetryAfterMS > 0 {
		delay = time.Duration(min(f.RetryAfterMS, MaxDelay.Milliseconds())) * time.Millisecond
	}
	return Verdict{Retry: true, RetryAt: Micros(now.Add(delay)), Failures: n}
}

// MaxLeaseLosses is how many lost workers in a row fail a run: a run that kills every worker must
// not take down all of them. LossLimit has what holds for a type.
const MaxLeaseLosses = 10

// ClaimTurn counts the runs claimed from a queue since the last that was taken by age. Each caller of
// Claim counts its own, so that one in ClaimByAgeEvery of its runs is the one that has been due
// longest. It counts runs, not slots: how many slots a claim will use is not known before.
type ClaimTurn int

// ByAge returns how many runs of the next claim are to be taken by age.
func (t ClaimTurn) ByAge() int { return (int(t) + 1) / ClaimByAgeEvery }

// After returns the turn after a claim that assigned so many runs, byAge of them by age if it could.
func (t ClaimTurn) After(byAge, runs int) ClaimTurn {
	return max(0, t+ClaimTurn(runs-byAge*ClaimByAgeEvery))
}

// Parked is the state of a parked run.
type Parked struct {
	Status      RunStatus // SLEEPING for a timer, a signal or a child, PENDING for a retry
	AvailableAt time.Time // unset: no time makes it due
	WaitingFor  string
}

// Park decides when a run whose code waits is due. steps are its steps that are open or Awaited.
//
//   - The run is due at the earliest of their timers, time limits and retries. It is due now if
//     what it awaits has happened, or if there is nothing to wait for.
//   - A timer makes the run due no earlier than the moment it was set, even if its end lies before
//     that: the run must not overtake runs that have waited longer.
//   - A retry that was due when the run was claimed, but has not begun since, does not count: the
//     code did not come to that step again, and may never do so.
func Park(steps []Step, claimed, now time.Time) Parked {
	due := Parked{Status: RunPending, AvailableAt: now}
	if satisfied(steps) {
		return due
	}
	var p Parked
	for _, s := range steps {
		var at time.Time
		status, waiting := RunSleeping, ""
		switch {
		case s.Kind == StepSleep && s.Status == StepRunning && !s.WakeAt.IsZero():
			// a SLEEP without WakeAt has begun, but its timer was never set
			at, waiting = s.WakeAt, "timer:"+s.Name
			switch {
			case !at.Before(s.StartedAt):
			case s.StartedAt.Before(now): // or the clock was set back
				at = s.StartedAt
			case at.Before(now):
				at = now
			}
		case s.Kind == StepSignal && s.Status == StepRunning && s.Awaited > 0:
			at, waiting = s.WakeAt, "signal:"+s.SignalName
		case s.Kind == StepChild && s.Status == StepRunning && s.Awaited > 0:
			waiting = "child:" + s.ChildRunID.String()
		case s.Status == StepPending && s.RetryAt.After(claimed):
			at, status = s.RetryAt, RunPending
		default:
			continue
		}
		sooner := !at.IsZero() && (p.AvailableAt.IsZero() || at.Before(p.AvailableAt))
		if p.Status == 0 || sooner {
			p = Parked{Status: status, AvailableAt: at, WaitingFor: waiting}
		}
	}
	if p.Status == 0 {
		return due
	}
	return p
}

// satisfied says whether something that the code awaits has happened: a step awaited by itself has
// ended, or all steps of a group have.
func satisfied(steps []Step) bool {
	open := map[int64]bool{}
	for _, s := range steps {
		if s.Awaited > 1 && s.Open() {
			open[s.Awaited] = true
		}
	}
	for _, s := range steps {
		if s.Awaited > 0 && !s.Open() && !open[s.Awaited] {
			return true
		}
	}
	return false
}
