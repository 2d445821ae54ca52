package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Blocker says what keeps a run from continuing. The numbers are those of the protocol.
type Blocker uint8

const (
	BlockedByNothing     Blocker = 1 // it runs, or has ended, or could be handed out
	BlockedByNoWorker    Blocker = 2
	BlockedByBusyWorkers Blocker = 3
	BlockedByRetryDelay  Blocker = 4
	BlockedByTimer       Blocker = 5
	BlockedBySignal      Blocker = 6
	BlockedByChild       Blocker = 7
	BlockedByPause       Blocker = 8
	BlockedByKey         Blocker = 9
	BlockedByNamespace   Blocker = 10
	BlockedByStart       Blocker = 11 // start_at is in the future
)

// Explanation says what a run does or waits for, and why.
type Explanation struct {
	Summary string // one sentence, without a full stop
	Details []string
	Blocker Blocker
	Since   time.Time // zero if not known
	NextAt  time.Time // when the run changes without outside action; zero if it does not, or if the time is not known

	Blocked []BlockedCode // code that keeps the run from moving on, as of its worker's last heartbeat

	anytime bool // NextAt is unset because something happens within seconds
}

// Explain says what a run waits for, since when, and what comes next. It names missing workers.
func Explain(c Circumstances, now time.Time) Explanation {
	r := &c.Run
	var e Explanation
	switch {
	case r.Status.Ended():
		e = explainEnd(r, now)
	case r.Status == RunRunning:
		e = explainRunning(&c, now)
	case r.Paused:
		e = explainPause(&c, now)
	case r.Gated:
		e = explainKey(&c, r.HeldAt)
		e.add("%s, and %s ahead of this one in line", takenBy(&c),
			count(c.AheadInLine, "run is", "runs are"))
	case r.AvailableAt.IsZero() || r.AvailableAt.After(now):
		e = explainWait(&c, now)
	default:
		e = explainDue(&c, now)
	}
	if !r.Status.Ended() {
		e.addSuspect(r)
		e.addDisabled(&c)
		e.addLimits(r, now)
	}
	return e
}

func (e *Explanation) add(format string, args ...any) {
	e.Details = append(e.Details, fmt.Sprintf(format, args...))
}

// addSuspect adds that the run may have killed its worker, what that means, and when it ends.
func (e *Explanation) addSuspect(r *Run) {
	s := r.Suspect
	switch {
	case !s.Is():
		return
	case s.Of > 1:
		e.add(
			"it is one of %d suspects: worker %s was lost while it held them, and one worker gets at most %d of them at a time",
			s.Of, s.Worker, s.Limit())
	case s.Again:
		e.add("it is a suspect: worker %s was lost while it held the run; no worker gets another suspect beside it",
			s.Worker)
	default:
		e.add("it is a suspect: worker %s was lost while it held the run", s.Worker)
	}
	e.add("the suspicion ends when it records a result, waits or ends, or has run for %s", brief(SuspectFor))
}

// addDisabled adds that the run stays where it is even after its wait ends.
func (e *Explanation) addDisabled(c *Circumstances) {
	if c.NamespaceEnabled || c.Run.Status == RunRunning || e.Blocker == BlockedByNamespace {
		return
	}
	e.add("namespace %[1]s is disabled; the run cannot continue until `kagzi namespace enable %[1]s`",
		c.Run.Namespace)
}

// addLimits adds the moments at which a cancellation or the deadline ends the run.
func (e *Explanation) addLimits(r *Run, now time.Time) {
	if !r.CancelRequestedAt.IsZero() {
		why := ""
		if r.CancelReason != "" {
			why = ": " + r.CancelReason
		}
		e.add("cancellation was requested %s ago%s; the run is CANCELLED when its code returns, or %s at the latest",
			brief(now.Sub(r.CancelRequestedAt)), why, in(r.GraceUntil, now))
		e.nextBy(r.GraceUntil)
	}
	switch {
	case r.DeadlineAt.IsZero():
	case r.Paused && !r.PausedAt.IsZero():
		e.add("its deadline does not run while it is paused; it has %s left", brief(r.DeadlineAt.Sub(r.PausedAt)))
	case r.Paused:
		e.add("its deadline does not run while it is paused")
	default:
		e.add("its deadline ends it %s", in(r.DeadlineAt, now))
		e.nextBy(r.DeadlineAt)
	}
}

// nextBy moves NextAt forward to t, unless something happens earlier.
func (e *Explanation) nextBy(t time.Time) {
	if !e.anytime && (e.NextAt.IsZero() || t.Before(e.NextAt)) {
		e.NextAt = t
	}
}

func explainEnd(r *Run, now time.Time) Explanation {
	e := Explanation{Blocker: BlockedByNothing, Since: r.FinishedAt}
	ago := brief(now.Sub(r.FinishedAt)) + " ago"
	switch {
	case !r.ContinuedAs.IsZero():
		e.Summary = "continued as run " + r.ContinuedAs.String() + " " + ago
	case r.Status == RunCompleted:
		e.Summary = "completed " + ago
	default:
		e.Summary = strings.ToLower(strings.ReplaceAll(r.Status.String(), "_", " ")) + " " + ago
		if r.Error != nil {
			e.Summary += ": " + r.Error.Message
		}
		e.addRetry(r)
	}
	return e
}

// addRetry adds how to retry a run that did not complete. A run that reached its size limit needs
// --restart: a retry that keeps its steps would reach the limit again.
func (e *Explanation) addRetry(r *Run) {
	full := r.Steps >= MaxSteps || r.Bytes > MaxRunBytes-MaxPayload
	if r.Error == nil || r.Error.Code != FailureExhausted || !full {
		e.add("`kagzi workflow retry %s` retries it and keeps the results of completed steps", r.ID)
		return
	}
	e.add(
		"a retry that keeps completed steps would hit the same limit; make the code record less or "+
			"continue as new, then `kagzi workflow retry %s --restart` runs it from the beginning", r.ID)
}

func explainRunning(c *Circumstances, now time.Time) Explanation {
	r := &c.Run
	e := Explanation{Blocker: BlockedByNothing, Since: r.StartedAt, Summary: "runs on worker " + r.WorkerID}
	for _, s := range c.Steps {
		switch {
		case s.Kind == StepFunction && s.Status == StepRunning:
			e.Summary = fmt.Sprintf("runs step %s%s on worker %s for %s", s.Name, attempt(s.Attempt), r.WorkerID,
				brief(now.Sub(s.StartedAt)))
			e.Since, e.NextAt = s.StartedAt, s.TimeoutAt
			if !s.TimeoutAt.IsZero() {
				e.add("step %s times out %s", s.Name, in(s.TimeoutAt, now))
			}
		}
	}
	if r.Pausing {
		e.addPausing(c, now)
	}
	e.addBlocked(c, now)
	e.addWaits(c.Steps, now)
	e.addHolder(c, now)
	return e
}

// addBlocked adds what the worker has reported of code that keeps the run from moving on. Code outside
// of SDK calls is in the summary, unless a step runs beside it.
func (e *Explanation) addBlocked(c *Circumstances, now time.Time) {
	r := &c.Run
	i := slices.IndexFunc(c.Workers, func(w Worker) bool { return w.ID == r.WorkerID })
	if i < 0 {
		return
	}
	for _, b := range c.Workers[i].Stats.Blocked {
		if b.RunID != r.ID.String() {
			continue
		}
		e.Blocked = append(e.Blocked, b)
		place := "its code"
		if b.Branch != "" {
			place = "the code of branch " + b.Branch
		}
		lasts := brief(now.Sub(b.Since))
		if len(b.Held) > 0 {
			e.add("new calls are held for %s (%s), because the code has not made recorded ones: %s; "+
				"it diverges when no branch can make them", lasts, callNames(b.Held), callNames(b.Owed))
			continue
		}
		if e.Since.Equal(r.StartedAt) && len(e.Blocked) == 1 {
			e.Since = b.Since
			e.Summary += fmt.Sprintf(", where %s is blocked outside of SDK calls for %s", place, lasts)
		} else {
			e.add("%s is blocked outside of SDK calls for %s", place, lasts)
		}
		e.add("it keeps its slot; wait with a sleep, a signal or a future of the SDK instead")
	}
}

// addPausing says that a run in hand is to be paused.
func (e *Explanation) addPausing(c *Circumstances, now time.Time) {
	e.Summary = "pausing, as soon as what runs is recorded: " + e.Summary
	if p := c.LastPause; p != nil {
		why := ""
		if p.Reason != "" {
			why = ": " + p.Reason
		}
		e.add("the pause was asked for by %s %s ago%s", p.Actor.Name, brief(now.Sub(p.At)), why)
	}
	e.add("`kagzi workflow pause --now %[1]s` interrupts it, `kagzi workflow resume %[1]s` takes the pause back",
		c.Run.ID)
}

// addHolder adds how long the worker that holds the run has been silent. If it is silent or gone,
// addHolder adds when another worker gets the run.
func (e *Explanation) addHolder(c *Circumstances, now time.Time) {
	r := &c.Run
	i := slices.IndexFunc(c.Workers, func(w Worker) bool { return w.ID == r.WorkerID })
	if i < 0 {
		if r.Timeouts.Heartbeat > c.WorkerLease {
			e.add(
				"the worker is not online in its queue; if it stays away, another worker gets the run after its "+
					"heartbeat timeout of %s",
				brief(r.Timeouts.Heartbeat))
		}
		return
	}
	silent := now.Sub(c.Workers[i].LastHeartbeatAt)
	e.add("the worker's last heartbeat was %s ago", brief(silent))
	keeps := max(c.WorkerLease, r.Timeouts.Heartbeat)
	switch {
	case c.WorkerLease == 0 || silent <= c.WorkerLease/2:
	case silent < keeps:
		over := now.Add(keeps - silent)
		e.nextBy(over)
		e.add("if it stays silent, its lease expires %s and another worker gets the run soon after", in(over, now))
	default:
		// the run may move within seconds; a step's timeout minutes ahead would contradict that
		e.NextAt, e.anytime = time.Time{}, true
		e.add("its lease has expired; if it stays silent, another worker gets the run within seconds")
	}
}

// explainDivergence explains a run whose code has diverged from its history: paused if no build's code
// matches it, else due for another build.
func explainDivergence(r *Run, now time.Time) Explanation {
	last := r.Divergences[len(r.Divergences)-1]
	e := Explanation{Blocker: BlockedByPause, Since: last.ReportedAt,
		Summary: "paused, because its code has diverged from its history, " + brief(now.Sub(last.ReportedAt)) + " ago"}
	if !r.Paused {
		e.Blocker = BlockedByNoWorker
		e.Summary = "waits for a worker of another build, because its code has diverged from its history"
	}
	for _, d := range r.Divergences {
		e.add("build %s calls %s, and does not call the recorded %s", d.BuildID, callNames(d.Made), callNames(d.Owed))
	}
	if !r.Paused {
		e.add("when every build in service has reported this, the run is paused")
		return e
	}
	e.add("to go on, restore the code, or mark the change in it (Patched), and then `kagzi workflow resume %s`", r.ID)
	e.add("or let the code skip what is recorded: `kagzi workflow resume %s --accept-divergence`", r.ID)
	return e
}

// callNames lists the first few calls.
func callNames(calls []Call) string {
	const most = 5
	names := make([]string, 0, most+1)
	for _, c := range calls[:min(len(calls), most)] {
		names = append(names, c.Name)
	}
	if more := len(calls) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "nothing")
}

func explainPause(c *Circumstances, now time.Time) Explanation {
	if c.Run.Diverged() {
		return explainDivergence(&c.Run, now)
	}
	e := Explanation{Blocker: BlockedByPause, Summary: "paused"}
	if p := c.LastPause; p != nil {
		e.Since = p.At
		e.Summary += " by " + p.Actor.Name + " " + brief(now.Sub(p.At)) + " ago"
		if p.Reason != "" {
			e.Summary += ": " + p.Reason
		}
	}
	e.add("`kagzi workflow resume %s` resumes it", c.Run.ID)
	return e
}

// explainKey explains a run whose concurrency key has no free place.
func explainKey(c *Circumstances, since time.Time) Explanation {
	key := c.Run.ConcurrencyKey
	e := Explanation{Blocker: BlockedByKey, Since: since,
		Summary: fmt.Sprintf("waits for a slot of concurrency key %s, which allows %s at a time", key,
			count(c.Run.ConcurrencyLimit, "run", "runs"))}
	if c.Run.ConcurrencyScope == ScopeOpen {
		e.Summary = fmt.Sprintf("waits for a place of concurrency key %s: %d of %d taken%s", key, c.PlacesOfKey,
			max(c.Run.ConcurrencyLimit, 1), byHolders(c))
	}
	return e
}

// takenBy says how many places of the run's concurrency key are taken, and by which runs.
func takenBy(c *Circumstances) string {
	return count(c.PlacesOfKey, "place is", "places are") + " taken" + byHolders(c)
}

func byHolders(c *Circumstances) string {
	if len(c.HoldersOfKey) == 0 {
		return ""
	}
	names := make([]string, len(c.HoldersOfKey))
	for i, id := range c.HoldersOfKey {
		names[i] = id.String()
	}
	by := " by " + strings.Join(names, ", ")
	if more := c.PlacesOfKey - len(names); more > 0 {
		by += fmt.Sprintf(" and %d more", more)
	}
	return by
}
