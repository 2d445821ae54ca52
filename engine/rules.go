package engine

import (
	"math"
	"time"
)

// Verdict is what follows from a failure.
type Verdict struct {
	Retry   bool
	RetryAt time.Time // when the next attempt may start; with Retry only
	// Failures counts how often the code has failed, this time included; with Retry only, and 0 in
	// the answer to a repetition, from which nothing follows.
	Failures int
}

// RunVerdict is what follows from a failure of a run's code.
type RunVerdict struct {
	Verdict
	// of the run now: PENDING with Retry, else FAILED, or CANCELLED when cancellation had been asked for
	Status RunStatus
	// Handler says that the run was a failure handler itself, so that its failure has none.
	Handler bool
}

// AfterStepFailed decides about a step whose code has now failed n times: its own policy counts, else the run's,
// else the default. The delay runs from now, the commit of the failure.
func AfterStepFailed(run, step *RetryPolicy, n int, f Failure, now time.Time, jitter float64) Verdict {
	return decide(firstPolicy(step, run), n, f, now, jitter)
}

// AfterRunFailed decides about a run whose code has now let n errors escape. A run is tried again only when its
// starter gave it a policy; failures of its steps do not count.
func AfterRunFailed(run *RetryPolicy, n int, f Failure, now time.Time, jitter float64) Verdict {
	if run == nil {
		return Verdict{}
	}
	return decide(*run, n, f, now, jitter)
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

// MaxLeaseLosses in a row fail the run: a poison pill must not eat the fleet.
const MaxLeaseLosses = 10

// LossVerdict is what follows from losing a worker.
type LossVerdict struct {
	Losses      int  // the run's new count
	Failed      bool // it was one too many: the run ends as FAILED with CrashedFailure
	AvailableAt time.Time
}

// AfterLeaseLost decides about a run whose worker was lost. losses is the run's count before;
// progressed says that a step's result was recorded under the lost lease, which starts the count
// again. The first loss costs no delay, later ones 1 s, doubled, at most 5 minutes.
func AfterLeaseLost(losses int, progressed bool, now time.Time) LossVerdict {
	if progressed {
		losses = 0
	}
	losses++
	v := LossVerdict{Losses: losses, AvailableAt: now}
	if losses >= MaxLeaseLosses {
		v.Failed = true
		return v
	}
	if losses > 1 {
		delay := math.Min(math.Pow(2, float64(losses-2)), 300)
		v.AvailableAt = Micros(now.Add(time.Duration(delay * float64(time.Second))))
	}
	return v
}

// Parked is where a run stands that waits.
type Parked struct {
	Status      RunStatus // SLEEPING for a timer, a signal or a child, PENDING for a retry
	AvailableAt time.Time // unset: until something happens
	WaitingFor  string
}

// Park decides how a run whose code waits goes on. steps are those that are open or Awaited. It is
// due at the earliest of their timers, limits and retries; now when what it awaits has happened, or
// when there is nothing to wait for. A timer ends no earlier than it was set, whatever moment its
// code has named: nobody kept the run waiting before, and it is to pass none that wait. A retry
// that was due when the run was claimed, and has not begun since, is none that the code waits for:
// it has not come to that step again, and may never do so.
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
			// without: begun, but its timer was never set
			at, waiting = s.WakeAt, "timer:"+s.Name
			switch {
			case !at.Before(s.StartedAt):
			case s.StartedAt.Before(now): // or the clock was set back
				at = s.StartedAt
			case at.Before(now):
				at = now
			}
		case s.Kind == StepSignal && s.Status == StepRunning && s.Awaited != 0:
			at, waiting = s.WakeAt, "signal:"+s.SignalName
		case s.Kind == StepChild && s.Status == StepRunning && s.Awaited != 0:
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

// satisfied says that something which the code awaits has happened: a step awaited by itself has
// ended, or all of a group.
func satisfied(steps []Step) bool {
	open := map[int64]bool{}
	for _, s := range steps {
		if s.Awaited > 1 && s.Open() {
			open[s.Awaited] = true
		}
	}
	for _, s := range steps {
		if s.Awaited != 0 && !s.Open() && !open[s.Awaited] {
			return true
		}
	}
	return false
}
