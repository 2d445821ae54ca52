package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// explainWait explains a run that a timer, signal, child or delay makes due.
func explainWait(c *Circumstances, now time.Time) Explanation {
	c = cleaningUp(c, now)
	r := &c.Run
	e := Explanation{NextAt: r.AvailableAt}
	kind, name, _ := strings.Cut(r.WaitingFor, ":")
	waiting := Step{}
	for _, s := range c.Steps {
		if s.Name == name && kind == "timer" || s.SignalName == name && kind == "signal" && s.Kind == StepSignal ||
			s.ChildRunID.String() == name && kind == "child" {
			waiting = s
		}
	}
	switch {
	case kind == "timer":
		e.Blocker, e.Since = BlockedByTimer, waiting.StartedAt
		e.Summary = fmt.Sprintf("sleeps in %s, wakes %s", name, in(r.AvailableAt, now))
	case kind == "signal":
		e.Blocker, e.Since = BlockedBySignal, waiting.StartedAt
		e.Summary = "waits for signal " + name + ", without a timeout"
		if !r.AvailableAt.IsZero() {
			e.Summary = fmt.Sprintf("waits for signal %s, times out %s", name, in(r.AvailableAt, now))
		}
		e.add("`kagzi workflow signal %s %s` sends it", r.ID, name)
	case kind == "child":
		e.Blocker, e.Since = BlockedByChild, waiting.StartedAt
		e.Summary = "waits for child run " + name
		if n := openChildren(c.Steps); n > 1 {
			e.Summary = fmt.Sprintf("waits for %d child runs, the first is %s", n, name)
		}
		e.add("`kagzi workflow explain %s` shows what that run waits for", name)
	default:
		e, waiting = explainDelay(c, now)
	}
	e.addWaits(slices.DeleteFunc(slices.Clone(c.Steps), func(s Step) bool {
		told := s.ID == waiting.ID || kind == "child" && s.Kind == StepChild // the summary covers all children
		return told || s.Status == StepRunning && s.Kind != StepSleep && s.Awaited == 0
	}), now)
	return e
}

// addWaits names what else the code waits for. Parallel branches may each wait, and any of them
// wakes the run.
func (e *Explanation) addWaits(steps []Step, now time.Time) {
	var waits []string
	var child ID
	children := 0
	for _, s := range steps {
		switch {
		case s.Status == StepPending:
			waits = append(waits, fmt.Sprintf("step %s is retried %s%s", s.Name, in(s.RetryAt, now),
				because(s.Error)))
		case !s.Open():
		case s.Kind == StepSleep:
			waits = append(waits, fmt.Sprintf("timer %s fires %s", s.Name, in(s.WakeAt, now)))
		case s.Kind == StepSignal && s.WakeAt.IsZero():
			waits = append(waits, "it also waits for signal "+s.SignalName)
		case s.Kind == StepSignal:
			waits = append(waits, fmt.Sprintf("it also waits for signal %s, which times out %s", s.SignalName,
				in(s.WakeAt, now)))
		case s.Kind == StepChild:
			if children++; children == 1 {
				child = s.ChildRunID
			}
		}
	}
	switch {
	case children == 1:
		e.add("child run %s has not ended yet", child)
	case children > 1:
		e.add("%d child runs have not ended yet, the first is %s", children, child)
	}
	for _, wait := range waits[:min(len(waits), maxNamed)] {
		e.add("%s", wait)
	}
	if more := len(waits) - maxNamed; more > 0 {
		e.add("and %s", count(more, "more wait", "more waits"))
	}
}

// cleaningUp returns c without the timers and retries that the run's cancellation ended. They stay
// open in the record, and one of them may be the next to fire. If the code waits for nothing else,
// cleaningUp returns c itself.
func cleaningUp(c *Circumstances, now time.Time) *Circumstances {
	r := &c.Run
	if r.CancelRequestedAt.IsZero() {
		return c
	}
	ended := func(s Step) bool {
		return (s.Kind == StepSleep || s.Status == StepPending) && s.StartedAt.Before(r.CancelRequestedAt)
	}
	live := *c
	live.Steps = slices.DeleteFunc(slices.Clone(c.Steps), ended)
	p := Park(live.Steps, now, now)
	if !p.AvailableAt.IsZero() && !p.AvailableAt.After(now) {
		return c // there is nothing else
	}
	first := func(s Step) bool {
		return ended(s) && (r.WaitingFor == "timer:"+s.Name || s.Status == StepPending &&
			s.RetryAt.Equal(r.AvailableAt))
	}
	if slices.ContainsFunc(c.Steps, first) {
		live.Run.AvailableAt, live.Run.WaitingFor = p.AvailableAt, p.WaitingFor
	}
	return &live
}

// openChildren counts the child runs that the code waits for.
func openChildren(steps []Step) (n int) {
	for _, s := range steps {
		if s.Kind == StepChild && s.Open() && s.Awaited != 0 {
			n++
		}
	}
	return n
}

// explainDelay explains a PENDING run that becomes due later: because of a retry, a lost worker, or
// a delayed start. It returns the step that is retried, if there is one.
func explainDelay(c *Circumstances, now time.Time) (e Explanation, retried Step) {
	r := &c.Run
	e = Explanation{Blocker: BlockedByRetryDelay, NextAt: r.AvailableAt}
	whole := r.LeaseLosses < 2 // a first loss delays nothing
	for _, s := range c.Steps {
		if s.Status == StepPending && s.RetryAt.Equal(r.AvailableAt) {
			e.Since = s.FinishedAt
			if s.Failures == 0 {
				whole = true // the whole run is retried, and this step with it
				break
			}
			policy := firstPolicy(s.RetryPolicy, r.RetryPolicy)
			e.Summary = fmt.Sprintf("retries %s, attempt %d%s %s%s", s.Name, s.Failures+1, of(policy),
				in(r.AvailableAt, now), because(s.Error))
			return e, s
		}
	}
	switch {
	case r.Failures > 0 && whole:
		e.Summary = fmt.Sprintf("retries the whole run, attempt %d%s %s%s", r.Failures+1,
			of(firstPolicy(r.OwnPolicy())), in(r.AvailableAt, now), because(r.Error))
	case r.Suspect.Of > 1 || r.Suspect.Is() && r.LeaseLosses == 0:
		e.Summary = fmt.Sprintf("its worker %s was lost, runs again %s", r.Suspect.Worker, in(r.AvailableAt, now))
	case r.LeaseLosses > 0:
		e.Summary = fmt.Sprintf("lost %s in a row, runs again %s", count(r.LeaseLosses, "worker", "workers"),
			in(r.AvailableAt, now))
		e.add("it fails after %d in a row", LossLimit(r.Type))
		if r.Failures > 0 {
			e.add("before that its code failed %s%s", count(r.Failures, "time", "times"), because(r.Error))
		}
	default:
		e.Blocker, e.Since = BlockedByStart, r.CreatedAt
		e.Summary = "starts " + in(r.AvailableAt, now)
	}
	return e, Step{}
}

// explainDue explains a run that a matching worker could claim now.
func explainDue(c *Circumstances, now time.Time) Explanation {
	r := &c.Run
	e := Explanation{Since: r.AvailableAt}
	if !c.NamespaceEnabled {
		e.Blocker, e.Summary = BlockedByNamespace, "due, but namespace "+r.Namespace+" is disabled"
		e.add("`kagzi namespace enable %s` lets it continue", r.Namespace)
		return e
	}
	if len(r.Divergences) > 0 {
		return explainDivergence(r, now)
	}
	fitting, free := fit(c)
	switch {
	case len(fitting) == 0:
		e.Blocker = BlockedByNoWorker
		e.Summary = fmt.Sprintf("due for %s, but no online worker serves type %s in queue %s%s",
			brief(now.Sub(r.AvailableAt)), r.Type, r.Queue, withRequirements(r))
		e.addMissing(c)
	case len(free) == 0:
		e.Blocker = BlockedByBusyWorkers
		e.Summary = fmt.Sprintf("due for %s, but all workers that could take it are busy (%d)",
			brief(now.Sub(r.AvailableAt)), len(fitting))
		e.addEach(fitting, func(w *Worker) string { return "worker " + w.ID + " " + MatchWorker(c, w).Reason })
	case r.TakesPlace() && c.PlacesOfKey >= max(r.ConcurrencyLimit, 1):
		// No claim has seen the run yet: the next one puts it in line.
		e = explainKey(c, r.AvailableAt)
		e.add("%s", takenBy(c))
	case r.Suspect.Of > 1 || r.Suspect.Is() && now.Sub(r.AvailableAt) > handOver:
		e.Blocker = BlockedByBusyWorkers
		e.Summary = fmt.Sprintf(
			"due for %s, but it is one of %s of the loss of worker %s, and no free worker may hold another",
			brief(now.Sub(r.AvailableAt)), count(r.Suspect.Of, "suspect", "suspects"), r.Suspect.Worker)
	case now.Sub(r.AvailableAt) <= handOver:
		e.Blocker, e.anytime = BlockedByNothing, true
		to := "worker " + free[0].ID
		if len(free) > 1 {
			to = fmt.Sprintf("one of %d workers", len(free))
		}
		e.Summary = fmt.Sprintf("due for %s, and about to be handed to %s", brief(now.Sub(r.AvailableAt)), to)
	default:
		e.Blocker = BlockedByNothing
		e.addUntaken(r, free, now)
	}
	return e
}

// handOver limits how long a due run counts as about to be claimed by a free worker. A claim takes
// milliseconds.
const handOver = time.Second

// addUntaken explains a due run that free workers do not claim. They may have died: only missing
// heartbeats show that.
func (e *Explanation) addUntaken(r *Run, free []*Worker, now time.Time) {
	last := slices.MaxFunc(free, func(a, b *Worker) int {
		return a.LastHeartbeatAt.Compare(b.LastHeartbeatAt)
	}).LastHeartbeatAt
	e.addEach(free, func(w *Worker) string {
		return fmt.Sprintf("worker %s: last heartbeat %s ago", w.ID, brief(now.Sub(w.LastHeartbeatAt)))
	})
	e.add("a dead worker goes offline when its lease expires")
	e.Summary = fmt.Sprintf("due for %s, but not yet claimed by %s with a free slot, last heartbeat %s ago",
		brief(now.Sub(r.AvailableAt)), count(len(free), "worker", "workers"), brief(now.Sub(last)))
}

// fit returns the ONLINE workers that can run c.Run, and among them those with a free slot.
func fit(c *Circumstances) (fitting, free []*Worker) {
	for i := range c.Workers {
		switch m := MatchWorker(c, &c.Workers[i]); {
		case m.CanRun && m.Busy:
			fitting = append(fitting, &c.Workers[i])
		case m.CanRun:
			fitting, free = append(fitting, &c.Workers[i]), append(free, &c.Workers[i])
		}
	}
	return fitting, free
}

// WorkerMatch says whether a worker can run a run.
type WorkerMatch struct {
	CanRun bool
	Busy   bool   // it can, but a limit keeps it from taking one more run now
	Reason string // why it cannot, or which limit keeps it; it follows the worker's name in a sentence
}

// MatchWorker says whether a worker can run c.Run, and why not. Of c it uses the run and the counts of running
// runs.
func MatchWorker(c *Circumstances, w *Worker) WorkerMatch {
	r := &c.Run
	switch {
	case w.Status == WorkerOffline:
		return WorkerMatch{Reason: "is offline"}
	case w.Status == WorkerDraining:
		return WorkerMatch{Reason: "is draining and takes nothing new"}
	case !slices.Contains(w.Queues, r.Queue):
		return WorkerMatch{Reason: fmt.Sprintf("does not serve queue %s: it serves %s", r.Queue, listed(w.Queues))}
	case !slices.Contains(w.Types, r.Type):
		return WorkerMatch{Reason: fmt.Sprintf("serves the queue, but not type %s: it serves %s", r.Type, listed(w.Types))}
	case !Meets(w.Offers(), r.Requirements):
		return WorkerMatch{Reason: "does not offer " + strings.Join(unmet(w, r.Requirements), ", ")}
	case r.DivergedIn(w.BuildID):
		return WorkerMatch{Reason: fmt.Sprintf("has build %s, whose code has diverged from the run's history", w.BuildID)}
	}
	limit, limited := w.TypeLimits[r.Type]
	m := WorkerMatch{CanRun: true, Busy: true}
	switch {
	case w.Active >= w.MaxConcurrent:
		m.Reason = fmt.Sprintf("runs %d of %d", w.Active, w.MaxConcurrent)
	case w.QueueLimit > 0 && c.RunningInQueue >= w.QueueLimit:
		m.Reason = fmt.Sprintf("has to wait: %d of at most %d runs of its queue are running", c.RunningInQueue,
			w.QueueLimit)
	case limited && c.RunningOfType >= limit:
		m.Reason = fmt.Sprintf("has to wait: %d of at most %d runs of type %s are running", c.RunningOfType, limit, r.Type)
	default:
		m.Busy = false
	}
	return m
}

// maxNamed limits how many workers or waits an explanation names.
const maxNamed = 20

// addEach adds a line for each of the first maxNamed workers, and how many more there are.
func (e *Explanation) addEach(workers []*Worker, say func(w *Worker) string) {
	for _, w := range workers[:min(len(workers), maxNamed)] {
		e.add("%s", say(w))
	}
	if more := len(workers) - maxNamed; more > 0 {
		e.add("and %s", count(more, "more worker", "more workers"))
	}
}

// addMissing adds what each worker of the queue lacks to run r.
func (e *Explanation) addMissing(c *Circumstances) {
	r := &c.Run
	if len(c.Workers) == 0 {
		e.add("no worker is connected to queue %s", r.Queue)
	}
	workers := make([]*Worker, len(c.Workers))
	for i := range c.Workers {
		workers[i] = &c.Workers[i]
	}
	e.addEach(workers, func(w *Worker) string { return "worker " + w.ID + " " + MatchWorker(c, w).Reason })
}

func unmet(w *Worker, requirements map[string]string) (missing []string) {
	for _, key := range slices.Sorted(maps.Keys(requirements)) {
		if !Meets(w.Offers(), map[string]string{key: requirements[key]}) {
			missing = append(missing, requirement(key, requirements[key]))
		}
	}
	return missing
}
