package runs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// open sets a concurrency key with a limit that counts from the first claim to the end.
func open(key string, limit int) func(*engine.StartRun) {
	return func(r *engine.StartRun) {
		r.ConcurrencyKey, r.ConcurrencyLimit, r.ConcurrencyScope = key, limit, engine.ScopeOpen
	}
}

// retried lets the run itself be tried again.
func retried(r *engine.StartRun) {
	r.RetryPolicy = &engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 1000}
}

// continueAs completes the run, which continues as one with these changes, and returns the next run.
func continueAs(s *fixture.F, l engine.Lease, changes ...func(*engine.StartRun)) engine.ID {
	s.Helper()
	next := engine.StartRun{Run: engine.Run{ID: s.ID(), Input: fixture.Text("next")}}
	for _, change := range changes {
		change(&next)
	}
	s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
	return next.ID
}

// openWaits are the ways in which a run with a place waits, and how it becomes due again; nil: it is
// due at once.
var openWaits = []struct {
	name  string
	wait  func(s *fixture.F, l engine.Lease)
	again func(s *fixture.F, run engine.ID)
}{
	{"sleep", func(s *fixture.F, l engine.Lease) { s.Sleep(l, "nap", time.Hour) },
		func(s *fixture.F, _ engine.ID) { s.Pass(time.Hour) }},
	{"signal", func(s *fixture.F, l engine.Lease) { s.Await(l, "approval", "approval") },
		func(s *fixture.F, run engine.ID) { s.Signal(run, "approval", "yes") }},
	{"child", func(s *fixture.F, l engine.Lease) { s.AwaitChildren(l, s.Child(l, "ship")) },
		func(s *fixture.F, run engine.ID) { s.Cancel(s.Step(run, "ship").ChildRunID) }},
	{"retry of a step", func(s *fixture.F, l engine.Lease) { s.Fail(l, "pay", "no") },
		func(s *fixture.F, _ engine.ID) { s.Pass(time.Hour) }},
	{"retry of the run", func(s *fixture.F, l engine.Lease) { s.FailRun(l, "no") },
		func(s *fixture.F, _ engine.ID) { s.Pass(time.Hour) }},
	{"release", func(s *fixture.F, l engine.Lease) { s.Release(l, false) }, nil},
	{"pause", func(s *fixture.F, l engine.Lease) { s.Pause(l.RunID) },
		func(s *fixture.F, run engine.ID) { s.Resume(run) }},
	{"pause while it sleeps", func(s *fixture.F, l engine.Lease) {
		s.Sleep(l, "nap", time.Second)
		s.Pause(l.RunID)
		s.Pass(time.Hour)
	}, func(s *fixture.F, run engine.ID) { s.Resume(run) }},
	{"lost worker", func(s *fixture.F, _ engine.Lease) { s.Lose("w1"); s.Worker("w1") }, nil},
	{"continuation", func(s *fixture.F, l engine.Lease) {
		continueAs(s, l, func(r *engine.StartRun) { r.CreatedAt, r.AvailableAt = s.Now, s.Now.Add(time.Minute) })
	}, func(s *fixture.F, _ engine.ID) { s.Pass(time.Hour) }},
}

// openEnds are the ends of runs; the lease is not used if nobody holds the run.
var openEnds = []struct {
	name string
	held bool // only the holder can end it so
	end  func(s *fixture.F, l engine.Lease)
}{
	{"complete", true, func(s *fixture.F, l engine.Lease) { s.Finish(l, "") }},
	{"fail", true, func(s *fixture.F, l engine.Lease) { s.FailRun(l, "no") }},
	{"cancel", false, func(s *fixture.F, l engine.Lease) { s.Cancel(l.RunID) }},
	{"terminate", false, func(s *fixture.F, l engine.Lease) {
		_, err := s.Store.TerminateRun(s.Ctx, s.EndParams(l.RunID, ""))
		s.Must(err, "TerminateRun")
	}},
	{"grace", false, func(s *fixture.F, l engine.Lease) {
		s.CancelWithin(l.RunID, time.Second)
		s.Pass(time.Minute)
		s.Expire()
	}},
	{"deadline", false, func(s *fixture.F, _ engine.Lease) { s.Pass(3 * time.Hour); s.Expire() }},
	{"continuation under another key", true, func(s *fixture.F, l engine.Lease) { continueAs(s, l, open("else", 1)) }},
	{"continuation of another type", true, func(s *fixture.F, l engine.Lease) {
		continueAs(s, l, func(r *engine.StartRun) { r.Type = "other" })
	}},
}

func keyText(key string, limit int, scope engine.ConcurrencyScope) string {
	return fmt.Sprintf("%s %d %s", key, limit, scope)
}

// OpenKeyCases are about concurrency keys of ScopeOpen.
var OpenKeyCases = []fixture.Case{
	{Name: "a run has its place while it waits", Run: func(s *fixture.F) {
		for _, w := range openWaits {
			s.Worker("w1")
			l := s.HeldNext(open("key "+w.name, 1), retried)
			next := s.Start(open("key "+w.name, 1))
			s.ClaimNothing("w1")
			w.wait(s, l)
			if w.again != nil {
				s.ClaimNothing("w1")
			}
			fixture.Equal(s, "gated during "+w.name, s.Run(next).Gated, true)
			if w.again != nil {
				w.again(s, l.RunID)
			}
			back := s.Claim("w1")
			fixture.Equal(s, "claimed after "+w.name, back.Run.Chain(), l.RunID)
			s.ClaimNothing("w1")
			s.Finish(back.Lease, "")
			fixture.Equal(s, "claimed at the end after "+w.name, s.Claim("w1").Run.ID, next)
			s.Cancel(next)
		}
	}},
	{Name: "each end frees the place", Run: func(s *fixture.F) {
		s.Worker("w1")
		for _, asleep := range []bool{false, true} {
			for _, e := range openEnds {
				if asleep && e.held {
					continue
				}
				key := open(fmt.Sprint(e.name, asleep), 1)
				l := s.HeldNext(key, func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(2 * time.Hour) })
				next := s.Start(key)
				s.ClaimNothing("w1")
				if asleep {
					s.Sleep(l, "nap", 24*time.Hour)
				}
				e.end(s, l)
				run := s.Run(next)
				fixture.Equal(s, fmt.Sprintf("gated after %s, asleep %t", e.name, asleep), run.Gated, false)
				for _, id := range s.ClaimedIDs("w1", 4) {
					s.CancelOpen(id)
				}
				s.CancelOpen(next)
			}
		}
	}},
	{Name: "a place is taken at the first claim, not at the start", Run: func(s *fixture.F) {
		s.Worker("w1")
		paused := s.Start(open("k", 1))
		s.Pause(paused)
		s.Start(open("k", 1), fixture.InQueue("nobody"))
		later := s.Start(open("k", 1), fixture.DueAt(s.Now.Add(time.Hour)))
		s.Pass(time.Second)
		l := s.HeldNext(open("k", 1))
		s.Resume(paused)
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(paused).Gated, true)
		s.Finish(l, "")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, paused)
		s.Status(later, engine.RunPending)
	}},
	{Name: "a run that gave up its turn leaves it to the next", Run: func(s *fixture.F) {
		for _, how := range []func(engine.ID){func(id engine.ID) { s.Cancel(id) }, func(id engine.ID) { s.Pause(id) }} {
			l := s.Held(open("k", 1))
			second := s.Start(open("k", 1))
			s.Pass(time.Second)
			third := s.Start(open("k", 1))
			s.Pass(time.Second)
			s.ClaimNothing("w1")
			s.Finish(l, "done")
			how(second)
			next := s.Claim("w1")
			fixture.Equal(s, "claimed", next.Run.ID, third)
			s.Finish(next.Lease, "")
			s.CancelOpen(second)
		}
	}},
	{Name: "a continuation keeps the place whatever waits for it", Run: func(s *fixture.F) {
		l := s.Held(open("k", 1))
		waits := s.Start(open("k", 1), fixture.WithPriority(9))
		s.ClaimNothing("w1")
		for range 3 {
			next := continueAs(s, l)
			task := s.Claim("w1")
			fixture.Equal(s, "claimed", task.Run.ID, next)
			s.ClaimNothing("w1")
			l = task.Lease
		}
		s.Finish(l, "")
		fixture.Equal(s, "claimed at the end", s.Claim("w1").Run.ID, waits)
	}},
	{Name: "a continuation into another key takes its turn there", Run: func(s *fixture.F) {
		s.Worker("w1")
		a, b := s.HeldNext(open("a", 1)), s.HeldNext(open("b", 1))
		next := continueAs(s, a, open("b", 1))
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(next).Gated, true)
		s.Finish(b, "")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, next)
	}},
	{Name: "a continuation of scope slot takes its turn", Run: func(s *fixture.F) {
		l := s.Held(open("k", 1))
		waits := s.Start(open("k", 1))
		s.ClaimNothing("w1")
		s.Pass(time.Second)
		next := continueAs(s, l, fixture.Keyed("k", 1))
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, waits)
		s.ClaimNothing("w1")
		s.Finish(task.Lease, "")
		fixture.Equal(s, "claimed then", s.Claim("w1").Run.ID, next)
	}},
	{Name: "a retry of an ended run takes its turn", Run: func(s *fixture.F) {
		l := s.Held(open("k", 1))
		s.FailRun(l, "no")
		other := s.HeldNext(open("k", 1))
		again := s.Retry(l.RunID).RunID
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(again).Gated, true)
		s.Finish(other, "")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, again)
	}},
	{Name: "an imported run takes its turn", Run: func(s *fixture.F) {
		l := s.Held(open("k", 1))
		run := s.Run(l.RunID)
		run.ID, run.Origin, run.RequestID = s.ID(), engine.OriginImport, ""
		p := engine.ImportRunsParams{Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
			Runs: []engine.ImportedRun{{Run: run}}}
		_, err := s.Store.ImportRuns(s.Ctx, p)
		s.Must(err, "ImportRuns")
		s.Resume(run.ID)
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(run.ID).Gated, true)
		s.Finish(l, "")
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, run.ID)
		s.Sleep(task.Lease, "nap", time.Hour)
		s.Start(open("k", 1))
		s.ClaimNothing("w1")
	}},
	{Name: "each run counts by its own scope", Run: func(s *fixture.F) {
		slot := s.Held(fixture.Keyed("k", 1))
		whole := s.Start(open("k", 1))
		s.ClaimNothing("w1")
		s.Sleep(slot, "nap", time.Hour)
		task := s.Claim("w1")
		fixture.Equal(s, "claimed while the other sleeps", task.Run.ID, whole)
		s.Sleep(task.Lease, "nap", 2*time.Hour)
		s.Pass(time.Hour)
		s.ClaimNothing("w1")
		run := s.Run(slot.RunID)
		fixture.Equal(s, "gated while the other sleeps", run.Gated, true)
		s.Pass(time.Hour)
		task = s.Claim("w1")
		fixture.Equal(s, "claimed with its place", task.Run.ID, whole)
		s.Finish(task.Lease, "")
		fixture.Equal(s, "claimed at the end", s.Claim("w1").Run.ID, slot.RunID)
	}},
	{Name: "each run of scope open applies its own limit", Run: func(s *fixture.F) {
		s.Sleep(s.Held(open("k", 3)), "nap", time.Hour)
		tight, loose := s.Start(open("k", 1)), s.Start(open("k", 3))
		s.SameIDs("claimed", s.ClaimedIDs("w1", 5), []engine.ID{loose})
		fixture.Equal(s, "gated", s.Run(tight).Gated, true)
		s.Cancel(loose)
		fixture.Equal(s, "gated while one has a place", s.Run(tight).Gated, true)
	}},
	{Name: "an explanation names the runs that have the places", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Sleep(s.HeldNext(open("elsewhere", 9)), "nap", time.Hour)
		asleep := s.HeldNext(open("k", 3))
		s.Sleep(asleep, "nap", time.Hour)
		held, slot := s.HeldNext(open("k", 3)), s.HeldNext(fixture.Keyed("k", 3))
		s.Finish(s.HeldNext(open("k", 9)), "")
		waits := s.Start(open("k", 3))
		s.ClaimNothing("w1")
		c, err := s.Store.ExplainInputs(s.Ctx, fixture.Space, waits)
		s.Must(err, "ExplainInputs")
		fixture.Equal(s, "places", c.PlacesOfKey, 3)
		s.SameIDs("holders", c.HoldersOfKey, []engine.ID{asleep.RunID, held.RunID, slot.RunID})
		for range engine.NamedHolders {
			s.HeldNext(open("k", 99))
		}
		c, err = s.Store.ExplainInputs(s.Ctx, fixture.Space, waits)
		s.Must(err, "ExplainInputs")
		fixture.Equal(s, "many places", c.PlacesOfKey, 3+engine.NamedHolders)
		s.SameIDs("the first holders", c.HoldersOfKey[:3], []engine.ID{asleep.RunID, held.RunID, slot.RunID})
		fixture.Equal(s, "named holders", len(c.HoldersOfKey), engine.NamedHolders)
	}},
	{Name: "a child that would wait for its ancestor is refused", Run: func(s *fixture.F) {
		w := s.NewWorker("w1")
		w.Types = []string{fixture.Kind, "between"}
		s.Register(w, true)
		parent := s.HeldNext(open("k", 2))
		same := []func(*engine.StartRun){open("k", 2), fixture.OfType(fixture.Kind), fixture.InQueue("nobody")}
		refused := func(what string, l engine.Lease, changes ...func(*engine.StartRun)) {
			s.Helper()
			_, err := s.TryChild(l, what, changes...)
			s.Refused(err, engine.ErrPrecondition, "StartChild "+what)
			fixture.Equal(s, "steps after the refusal of "+what, len(s.Attempts(l.RunID, what)), 0)
		}
		refused("of scope open", parent, same...)
		refused("of scope slot", parent, fixture.Keyed("k", 2), fixture.OfType(fixture.Kind))
		s.Child(parent, "abandoned", append(slices.Clone(same), fixture.Closing(engine.CloseAbandon))...)
		s.Child(parent, "another key", open("l", 2), fixture.OfType(fixture.Kind), fixture.InQueue("nobody"))
		between := s.Child(parent, "between", fixture.OfType("between"))
		p := s.ClaimParams("w1")
		p.Types = []string{"between"}
		inside := s.ClaimWith(p).Tasks[0]
		fixture.Equal(s, "claimed", inside.Run.ID, between)
		refused("grandchild", inside.Lease, same...)
		next := engine.StartRun{Run: engine.Run{ID: s.ID(), Type: fixture.Kind}}
		open("k", 2)(&next)
		err := s.TryEnd(engine.CompleteRunParams{Lease: inside.Lease, ContinueAs: &next, Now: s.Now})
		s.Refused(err, engine.ErrPrecondition, "CompleteRun")
		s.Status(between, engine.RunRunning)
		s.Child(s.HeldNext(fixture.Keyed("m", 2)), "of a parent of scope slot", fixture.Keyed("m", 2),
			fixture.OfType(fixture.Kind))
	}},
	{Name: "a schedule gives its runs the key", Run: func(s *fixture.F) {
		plan := s.Plan(func(p *engine.Schedule) {
			p.ConcurrencyKey, p.ConcurrencyLimit, p.ConcurrencyScope = "nightly", 2, engine.ScopeOpen
		})
		p := s.FireParams(plan.ID, 1)
		s.Fire(p)
		for _, run := range s.FiredRuns(plan.ID) {
			fixture.Equal(s, "key of the run", keyText(run.ConcurrencyKey, run.ConcurrencyLimit, run.ConcurrencyScope),
				"nightly 2 OPEN")
		}
		got := s.Schedule(plan.ID)
		fixture.Equal(s, "key of the schedule",
			keyText(got.ConcurrencyKey, got.ConcurrencyLimit, got.ConcurrencyScope), "nightly 2 OPEN")
		s.Replan(plan.ID, func(p *engine.Schedule) { p.ConcurrencyLimit, p.ConcurrencyScope = 3, engine.ScopeSlot })
		got = s.Schedule(plan.ID)
		fixture.Equal(s, "changed key",
			keyText(got.ConcurrencyKey, got.ConcurrencyLimit, got.ConcurrencyScope), "nightly 3 SLOT")
	}},
	{Name: "concurrent claims keep within the places of a key", Run: func(s *fixture.F) {
		s.TakeInTurn(60, 3, func(int) int { return 3 }, open("", 0))
	}},
	{Name: "random runs never take more places than there are", Run: func(s *fixture.F) {
		for seed := range uint64(6) {
			w := &walk{F: s, roll: rand.New(rand.NewPCG(seed, 17)), taken: map[engine.ID]engine.ConcurrencyScope{},
				key: fmt.Sprint("key", seed), seed: seed}
			w.run()
		}
	}},
}

// walk does random things with runs of one key, and counts its places by itself.
type walk struct {
	*fixture.F
	roll   *rand.Rand
	key    string
	seed   uint64
	leases []engine.Lease
	runs   []engine.ID
	taken  map[engine.ID]engine.ConcurrencyScope
}

func (w *walk) run() {
	w.Worker("w1")
	for range 300 {
		switch n := w.roll.IntN(10); {
		case n < 2 && len(w.runs) < 40:
			w.runs = append(w.runs, w.Start(w.fresh))
		case n < 5:
			w.claim()
		case n < 6:
			w.Pass(time.Duration(w.roll.IntN(3)) * time.Second)
		case n < 7 && len(w.runs) > 0:
			w.steer(w.runs[w.roll.IntN(len(w.runs))])
		case len(w.leases) > 0:
			i := w.roll.IntN(len(w.leases))
			l := w.leases[i]
			w.leases = slices.Delete(w.leases, i, i+1)
			w.work(l)
		}
	}
	w.drain()
}

func (w *walk) fresh(r *engine.StartRun) {
	open(w.key, 1+w.roll.IntN(3))(r)
	r.ConcurrencyScope = engine.ConcurrencyScope(w.roll.IntN(2))
	r.Priority = w.roll.IntN(2)
	retried(r)
}

// claim fails the case if a run takes a place that is not free.
func (w *walk) claim() {
	w.Helper()
	for _, task := range w.ClaimWith(w.ClaimParams("w1", "w1")).Tasks {
		run := &task.Run
		if _, has := w.taken[run.ID]; !has {
			if len(w.taken) >= run.ConcurrencyLimit {
				w.Fatalf("seed %d: run %s, limit %d, was claimed while %d places are taken", w.seed, run.ID,
					run.ConcurrencyLimit, len(w.taken))
			}
			w.taken[run.ID] = run.ConcurrencyScope
		}
		w.leases = append(w.leases, task.Lease)
	}
}

// parted records that a lease is over.
func (w *walk) parted(run engine.ID) {
	if w.taken[run] == engine.ScopeSlot || w.Run(run).Status.Ended() {
		delete(w.taken, run)
	}
}

func (w *walk) steer(run engine.ID) {
	r := w.Run(run)
	switch {
	case r.Status.Ended():
		return
	case r.Paused:
		w.Resume(run)
	case w.roll.IntN(3) == 0:
		w.Cancel(run)
	default:
		w.Pause(run)
	}
	w.leases = slices.DeleteFunc(w.leases, func(l engine.Lease) bool { return l.RunID == run })
	w.parted(run)
}

func (w *walk) work(l engine.Lease) {
	switch w.roll.IntN(6) {
	case 0:
		w.Sleep(l, fmt.Sprint("nap", w.roll.Uint64()), time.Duration(1+w.roll.IntN(3))*time.Second)
	case 1:
		w.FailRun(l, "no")
	case 2:
		w.Release(l, false)
	case 3:
		next := continueAs(w.F, l)
		w.runs = append(w.runs, next)
		if w.taken[l.RunID] == engine.ScopeOpen {
			w.taken[next] = engine.ScopeOpen
		}
	default:
		w.Finish(l, "")
	}
	w.parted(l.RunID)
}

// drain fails the case if a run waits although places are free.
func (w *walk) drain() {
	for range 400 {
		w.Pass(2 * time.Second)
		open := 0
		for _, id := range w.runs {
			if r := w.Run(id); r.Paused {
				w.Resume(id)
			} else if !r.Status.Ended() {
				open++
			}
		}
		w.claim()
		if open == 0 {
			return
		}
		for _, l := range w.leases {
			w.Finish(l, "")
			w.parted(l.RunID)
		}
		w.leases = nil
	}
	w.Fatalf("seed %d: runs are left after 400 rounds of claims", w.seed)
}
