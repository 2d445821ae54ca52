package simulate

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

// watch compares every change in the database with what may follow from the state before. Its rules
// come from the promises, not from the server's code.
type watch struct {
	report *Report
	trace  bool
	began  time.Time

	mu     sync.Mutex
	tokens map[engine.Token]engine.ID // every token ever granted → run
	// the steps that had a result at each claim whose activation is not known to have begun, and at
	// the last one
	handed map[handing][]map[string]bool
	held   map[string]int // leases of each concurrency key
	// the runs in hand of each worker, now and before the call
	inHand, inHandBefore map[string]map[engine.ID]*memory.Run
	names                map[engine.ID]int // run → order in which it was first seen
}

// handing is a run handed to a worker.
type handing struct {
	worker string
	run    engine.ID
}

func newWatch(r *Report, trace bool) *watch {
	return &watch{report: r, trace: trace, began: time.Now(), tokens: map[engine.Token]engine.ID{},
		handed: map[handing][]map[string]bool{},
		held:   map[string]int{}, names: map[engine.ID]int{}, inHand: map[string]map[engine.ID]*memory.Run{}}
}

// known returns the steps that had a result when the worker was handed the run that it now begins.
// If an earlier task never reached the worker, it returns those of that task.
func (w *watch) known(worker string, run engine.ID) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	claims := w.handed[handing{worker, run}]
	if len(claims) == 0 {
		return nil
	}
	if len(claims) > 1 {
		w.handed[handing{worker, run}] = claims[1:]
	}
	return claims[0]
}

// heed receives every call, while the database is locked.
func (w *watch) heed(c *memory.Call, changes []memory.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record(c, changes)
	if c.Err != nil {
		w.report.note("refused: " + c.Verb)
		return
	}
	if c.Write {
		w.report.note("done: " + c.Verb)
	}
	w.fenced(c, changes)
	if p, is := c.Params.(engine.OfflineWorkerParams); is {
		w.inHandBefore = map[string]map[engine.ID]*memory.Run{p.WorkerID: maps.Clone(w.inHand[p.WorkerID])}
	}
	for _, change := range claimOrder(c, changes) {
		w.changed(c, change)
	}
}

// claimOrder returns the changes in the order in which a claim handed out their runs: each run's
// limit is compared with what was handed out before.
func claimOrder(c *memory.Call, changes []memory.Change) []memory.Change {
	claimed, ok := c.Answer.(engine.Claimed)
	if !ok {
		return changes
	}
	place := func(change memory.Change) int {
		return slices.IndexFunc(claimed.Tasks, func(t engine.Task) bool {
			return change.New != nil && t.Run.ID == change.New.ID
		})
	}
	return slices.SortedStableFunc(slices.Values(changes), func(a, b memory.Change) int { return place(a) - place(b) })
}

// record adds the call to the trace.
func (w *watch) record(c *memory.Call, changes []memory.Change) {
	if !c.Write {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v", c.Verb, c.Err != nil)
	for _, change := range changes {
		if r := change.New; r != nil {
			if _, known := w.names[r.ID]; !known {
				w.names[r.ID] = len(w.names) + 1
			}
			fmt.Fprintf(&b, " %d:%s", w.names[r.ID], r.Status)
			for _, s := range r.Steps {
				if before := stepOf(change.Old, s.ID); before == nil || before.Status != s.Status {
					fmt.Fprintf(&b, " %s#%d:%s", s.Name, s.Attempt, s.Status)
				}
			}
		}
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", w.report.Trace, b.String())
	w.report.Trace = h.Sum64()
	if w.trace {
		line := fmt.Sprintf("%10s  %s", time.Since(w.began).Round(time.Millisecond), b.String())
		if c.Err != nil {
			line += "  (" + c.Err.Error() + ")"
		}
		w.report.Log = append(w.report.Log, line)
	}
}

// fenced compares workers' writes with the leases. A write that changes its run must carry the
// run's token; one that changes nothing must carry a token that the run once had.
func (w *watch) fenced(c *memory.Call, changes []memory.Change) {
	l := leaseOf(c.Params)
	if l.RunID.IsZero() {
		return
	}
	run, granted := w.tokens[l.Token]
	w.report.check(5, granted && run == l.RunID, "%s about run %s counted under a token that it never had",
		c.Verb, l.RunID)
	for _, change := range changes {
		if change.New == nil || change.New.ID != l.RunID || change.Old == nil {
			continue
		}
		held := change.Old.Lease
		w.report.check(5, held != nil && held.Token == l.Token, "%s changed run %s, whose lease was another",
			c.Verb, l.RunID)
	}
}

// changed compares a run with its state before.
func (w *watch) changed(c *memory.Call, change memory.Change) {
	old, r := change.Old, change.New
	if r == nil {
		w.report.check(4, false, "run %s was deleted by %s", old.ID, c.Verb)
		return
	}
	w.leases(c, old, r)
	w.shape(c, r)
	if old == nil {
		w.report.check(8, r.Attempts == 1 && r.Failures == 0 &&
			r.LeaseLosses == 0, "run %s begins with %d attempts", r.ID, r.Attempts)
		return
	}
	if old.Status.Ended() {
		w.report.check(4, sameEnd(old, r), "%s changed run %s after its end: %s became %s", c.Verb, r.ID,
			endOf(old), endOf(r))
	}
	w.steps(c, old, r)
	w.attempts(c, old, r)
}

func sameEnd(a, b *memory.Run) bool {
	return a.Status == b.Status && a.Output.Equal(b.Output) && a.FinishedAt.Equal(b.FinishedAt) &&
		a.ContinuedAs == b.ContinuedAs &&
		(a.Error == nil) == (b.Error == nil) && (a.Error == nil || a.Error.Equal(*b.Error)) &&
		a.FinalToken == b.FinalToken
}

func endOf(r *memory.Run) string {
	return endText(r.Status.String(), string(r.Output.Data), r.FinishedAt)
}

// leases compares leases with each other.
func (w *watch) leases(c *memory.Call, old, r *memory.Run) {
	var before *memory.Lease
	if old != nil {
		before = old.Lease
	}
	w.suspects(c, before, r)
	if r.Lease != nil && (before == nil || before.Token != r.Lease.Token) {
		w.report.check(5, before == nil, "%s granted run %s, which was held", c.Verb, r.ID)
		_, used := w.tokens[r.Lease.Token]
		w.report.check(5, !used, "%s granted run %s under a token that was used before", c.Verb, r.ID)
		w.tokens[r.Lease.Token] = r.ID
		done := map[string]bool{}
		for _, s := range r.Steps {
			if s.Latest && s.Status == engine.StepCompleted {
				done[s.Name] = true
			}
		}
		to := handing{r.Lease.Holder, r.ID}
		w.handed[to] = append(w.handed[to], done)
		if claim, is := c.Params.(engine.ClaimParams); is && old != nil {
			due := !old.AvailableAt.IsZero() && !old.AvailableAt.After(claim.Now)
			w.report.check(10, due, "run %s was handed out before its time, or while it was paused", r.ID)
		}
	}
	w.places(old, r)
}

// places counts the places of a run's concurrency key that are taken. A run that takes one must find it
// free; one that continues another brings its own.
func (w *watch) places(old, r *memory.Run) {
	had, has, key := old != nil && hasPlace(old), hasPlace(r), keyOf(r)
	if has && !had {
		w.held[key]++
		w.report.check(15, old == nil || w.held[key] <= max(r.ConcurrencyLimit, 1),
			"%d runs have a place of key %s, at most %d may", w.held[key], r.ConcurrencyKey, r.ConcurrencyLimit)
	}
	if had && !has {
		w.held[key]--
	}
	if r.Status == engine.RunSleeping && has {
		w.report.note("runs asleep with a place of their key")
	}
	if old == nil && has {
		w.report.note("continuations that keep their place")
	}
}

// hasPlace says whether a run has a place of its concurrency key: while it is held or, with ScopeOpen,
// from its first claim to its end.
func hasPlace(r *memory.Run) bool {
	switch {
	case r.ConcurrencyKey == "" || r.Status.Ended():
		return false
	case r.ConcurrencyScope == engine.ScopeOpen:
		return !r.StartedAt.IsZero() || r.HasPlace
	}
	return r.Lease != nil
}

// suspects checks that no worker gets more suspects of one loss than it may hold.
func (w *watch) suspects(c *memory.Call, before *memory.Lease, r *memory.Run) {
	if before != nil && (r.Lease == nil || r.Lease.Holder != before.Holder) {
		delete(w.inHand[before.Holder], r.ID)
	}
	if r.Lease == nil {
		return
	}
	if claim, is := c.Params.(engine.ClaimParams); is && before == nil && r.Suspect.Is() {
		held := 1
		for _, o := range w.inHand[r.Lease.Holder] {
			if o.Suspect == r.Suspect && o.Lease.ClaimedAt.After(engine.SuspectSince(claim.Now)) {
				held++
			}
		}
		w.report.check(8, held <= max(r.Suspect.Of/2, 1), "worker %s got %d of %d suspects", r.Lease.Holder, held,
			r.Suspect.Of)
		w.report.note("suspects handed out")
	}
	w.hold(r)
}

func (w *watch) hold(r *memory.Run) {
	if w.inHand[r.Lease.Holder] == nil {
		w.inHand[r.Lease.Holder] = map[engine.ID]*memory.Run{}
	}
	w.inHand[r.Lease.Holder][r.ID] = r
}

// blamed checks that the run which counts the loss of its worker was the only suspect in its hands,
// or the only run.
func (w *watch) blamed(c *memory.Call, old *memory.Run) {
	p, is := c.Params.(engine.OfflineWorkerParams)
	if !is || old.Lease == nil {
		return
	}
	held, suspects := w.inHandBefore[p.WorkerID], 0
	for _, o := range held {
		if o.Suspect.Is() && o.Lease.ClaimedAt.After(engine.SuspectSince(p.HeardAt)) {
			suspects++
		}
	}
	w.report.check(8, len(held) == 1 || old.Suspect.Is() && suspects == 1,
		"run %s counts the loss of worker %s, which held %d runs and %d suspects", old.ID, p.WorkerID,
		len(held), suspects)
}

// recount counts the places of each concurrency key and the leases of each worker.
func (w *watch) recount(runs []*memory.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.held)
	clear(w.inHand)
	for _, r := range runs {
		if r.Lease != nil {
			w.hold(r)
		}
		if hasPlace(r) {
			w.held[keyOf(r)]++
		}
	}
}

// keyOf returns the concurrency key of a run, which is that of its type.
func keyOf(r *memory.Run) string { return r.Type + "\x00" + r.ConcurrencyKey }

// shape compares the fields of one run with each other.
func (w *watch) shape(c *memory.Call, r *memory.Run) {
	w.report.check(13, (r.Status == engine.RunRunning) == (r.Lease != nil), "after %s run %s is %s, held: %t", c.Verb,
		r.ID, r.Status, r.Lease != nil)
	latest, completed, names := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, s := range r.Steps {
		names[s.Name] = true
		if s.Latest {
			latest[s.Name]++
		}
		if s.Status == engine.StepCompleted {
			completed[s.Name]++
		}
		w.report.check(13, !r.Status.Ended() || !s.Open(), "after %s run %s is %s, and its step %s is %s", c.Verb, r.ID,
			r.Status, s.Name, s.Status)
	}
	for name := range names {
		w.report.check(13, latest[name] == 1, "after %s run %s has %d latest attempts of step %s", c.Verb, r.ID,
			latest[name], name)
		w.report.check(3, completed[name] <= 1, "after %s run %s has %d results of step %s", c.Verb, r.ID,
			completed[name], name)
	}
	w.report.check(13, r.RunSteps() == int64(len(names)), "after %s run %s counts %d steps and has %d", c.Verb, r.ID,
		r.RunSteps(), len(names))
}

func stepOf(r *memory.Run, id engine.ID) *engine.Step {
	if r != nil {
		for _, s := range r.Steps {
			if s.ID == id {
				return s
			}
		}
	}
	return nil
}

// steps compares each attempt with its state before.
func (w *watch) steps(c *memory.Call, old, r *memory.Run) {
	for _, before := range old.Steps {
		s := stepOf(r, before.ID)
		if s == nil {
			w.report.check(3, false, "%s deleted step %s of run %s", c.Verb, before.Name, r.ID)
			continue
		}
		if before.Status == engine.StepCompleted {
			w.report.check(3, s.Status == engine.StepCompleted && s.Output.Equal(before.Output) &&
				s.FinishedAt.Equal(before.FinishedAt),
				"%s changed the result of step %s of run %s from %q to %q", c.Verb, s.Name, r.ID, before.Output.Data,
				s.Output.Data)
		}
		if before.Kind == engine.StepSleep && before.Status == engine.StepRunning && s.Status == engine.StepCompleted {
			w.report.check(10, !s.WakeAt.After(time.Now()), "%s ended timer %s of run %s at %s, before %s", c.Verb,
				s.Name, r.ID, time.Now(), s.WakeAt)
		}
	}
}

// attempts compares the run's counts with what just happened.
func (w *watch) attempts(c *memory.Call, old, r *memory.Run) {
	failures := r.Attempts - old.Attempts
	switch c.Verb {
	case "FailStep", "FailRun", "TimeoutSteps":
		w.report.check(8, failures >= 0, "%s took %d attempts from run %s", c.Verb, -failures, r.ID)
		if c.Verb != "TimeoutSteps" {
			w.report.check(8, failures <= 1, "%s counted %d attempts of run %s", c.Verb, failures, r.ID)
		}
		if verdict, is := c.Answer.(engine.Verdict); is && leaseOf(c.Params).RunID == r.ID {
			w.report.check(8, verdict.Retry == (failures == 1),
				"FailStep of run %s: retry is %t, and its attempts grew by %d", r.ID, verdict.Retry, failures)
		}
	default:
		w.report.check(8, failures == 0, "%s counted %d attempts of run %s", c.Verb, failures, r.ID)
	}
	lost := c.Verb == "ForceOfflineWorker" || c.Verb == "FreeLost" || c.Verb == "RegisterWorker"
	w.report.check(8, lost || r.LeaseLosses <= old.LeaseLosses, "%s counted a loss of run %s", c.Verb, r.ID)
	if r.LeaseLosses > old.LeaseLosses {
		w.report.note("leases lost")
		w.blamed(c, old)
	}
	if r.Status == engine.RunFailed && old.Status != engine.RunFailed && lost {
		w.report.check(8, r.LeaseLosses == engine.MaxLeaseLosses, "run %s failed for its %d losses",
			r.ID, r.LeaseLosses)
	}
}
