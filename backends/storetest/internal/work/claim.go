package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var ClaimCases = []fixture.Case{
	{Name: "a claim returns a due run with input and the slot's token", Run: func(s *fixture.F) {
		s.Worker("w1")
		start := s.NewRun()
		s.Started(start)
		s.Pass(time.Second)
		p := s.ClaimParams("w1")
		claimed := s.ClaimWith(p)
		fixture.Equal(s, "tasks", len(claimed.Tasks), 1)
		task := claimed.Tasks[0]
		fixture.Equal(s, "token", task.Lease.Token, p.Slots[0].Token)
		fixture.Equal(s, "run of the lease", task.Lease.RunID, start.ID)
		fixture.Equal(s, "history", len(task.History), 0)
		fixture.Equal(s, "rest of the history", task.NextSequence, 0)
		s.SameTime("claimed at", task.ClaimedAt, s.Now)
		s.Payload("input", task.Run.Input, fixture.Text("input"))
		s.SameTime("next due", claimed.NextDue, time.Time{})
		fixture.Equal(s, "limited", claimed.Limited, false)

		want := start.Run
		want.Status, want.Attempts, want.Bytes = engine.RunRunning, 1, int64(want.Input.Size())
		want.StartedAt, want.WorkerID, want.AvailableAt = s.Now, "w1", time.Time{}
		s.SameRun(task.Run, want)
		s.SameRun(s.Run(start.ID), want)
	}},
	{Name: "a second claimant finds nothing", Run: func(s *fixture.F) {
		s.Held()
		s.Worker("w2")
		claimed := s.ClaimNothing("w2")
		s.SameTime("next due", claimed.NextDue, time.Time{})
		fixture.Equal(s, "limited", claimed.Limited, false)
	}},
	{Name: "a claim of an empty queue is no error", Run: func(s *fixture.F) {
		s.Worker("w1")
		claimed := s.ClaimNothing("w1")
		s.SameTime("next due", claimed.NextDue, time.Time{})
	}},
	{Name: "a run is due at its microsecond, not before", Run: func(s *fixture.F) {
		s.Worker("w1")
		due := s.Now.Add(1500 * time.Microsecond)
		id := s.Start(fixture.DueAt(due))
		s.Pass(1499 * time.Microsecond)
		s.SameTime("next due", s.ClaimNothing("w1").NextDue, due)
		s.Pass(time.Microsecond)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, id)
	}},
	{Name: "the first claim sets StartedAt", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Now
		s.Release(l, false)
		s.Pass(time.Minute)
		task := s.Claim("w1")
		s.SameTime("started at", task.Run.StartedAt, first)
		s.SameTime("started at in the view", s.Run(l.RunID).StartedAt, first)
		s.SameTime("claimed at", task.ClaimedAt, s.Now)
	}},
	{Name: "slots and runs are matched in order", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		a, b, c := s.Start(), s.Start(), s.Start()
		p := s.ClaimParams("w1", "w2", "w1")
		tasks := s.ClaimWith(p).Tasks
		fixture.Equal(s, "tasks", len(tasks), 3)
		for i, id := range []engine.ID{a, b, c} {
			fixture.Equal(s, "run of the task", tasks[i].Run.ID, id)
			fixture.Equal(s, "its token", tasks[i].Lease.Token, p.Slots[i].Token)
			fixture.Equal(s, "its worker", s.Run(id).WorkerID, p.Slots[i].WorkerID)
		}
	}},
	{Name: "a claim returns at most one run per slot", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 5 {
			s.Start()
		}
		claimed := s.ClaimWith(s.ClaimParams("w1", "w1"))
		fixture.Equal(s, "tasks", len(claimed.Tasks), 2)
		fixture.Equal(s, "limited", claimed.Limited, false)
		s.SameTime("next due", claimed.NextDue, time.Time{})
		fixture.Equal(s, "held", len(s.HeldBy("w1")), 2)
	}},
	{Name: "claim order is priority, due time, id", Run: func(s *fixture.F) {
		s.Worker("w1")
		t := s.Now
		s.Pass(10 * time.Second)
		low := s.Start(fixture.WithPriority(-100), fixture.DueAt(t))
		late := s.Start(fixture.DueAt(t.Add(2 * time.Second)))
		early := s.Start(fixture.DueAt(t.Add(time.Second)))
		twin := s.Start(fixture.DueAt(t.Add(time.Second)))
		high := s.Start(fixture.WithPriority(100), fixture.DueAt(t.Add(3*time.Second)))
		one := s.Start(fixture.WithPriority(1), fixture.DueAt(t.Add(3*time.Second)))
		s.SameIDs("order", s.ClaimedIDs("w1", 6), []engine.ID{high, one, early, twin, late, low})
	}},
	{Name: "priorities hold however long a run has been due", Run: func(s *fixture.F) {
		s.Worker("w1")
		low := s.Start(fixture.WithPriority(-100))
		s.Pass(time.Hour)
		high := s.Start(fixture.WithPriority(100))
		s.SameIDs("order", s.ClaimedIDs("w1", 2), []engine.ID{high, low})
	}},
	{Name: "ByAge runs are claimed by age before the others", Run: func(s *fixture.F) {
		s.Worker("w1")
		t := s.Now
		s.Pass(time.Minute)
		due := func(priority, after int) engine.ID {
			return s.Start(fixture.WithPriority(priority), fixture.DueAt(t.Add(time.Duration(after)*time.Second)))
		}
		high, oldest, second, higher, third := due(50, 9), due(-100, 1), due(0, 2), due(100, 8), due(-50, 3)
		s.SameIDs("order", s.ClaimedIDs("w1", 4, fixture.ByAge(2)), []engine.ID{oldest, second, higher, high})
		s.SameIDs("left", s.ClaimedIDs("w1", 4, fixture.ByAge(9)), []engine.ID{third})
	}},
	{Name: "a claim takes only its namespace, queue and types", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Start(fixture.InSpace("other"))
		s.Start(fixture.InQueue("other"))
		s.Start(fixture.OfType("other"))
		s.Start(fixture.OfType("Order"))
		s.ClaimNothing("w1")
		id := s.Start()
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, id)
	}},
	{Name: "several types are claimed in one order", Run: func(s *fixture.F) {
		s.Worker("w1")
		a := s.Start(fixture.OfType("a"))
		s.Start(fixture.OfType("b"))
		c := s.Start(fixture.OfType("c"), fixture.WithPriority(1))
		a2 := s.Start(fixture.OfType("a"))
		ids := s.ClaimedIDs("w1", 9, func(p *engine.ClaimParams) { p.Types = []string{"c", "a", "nobody"} })
		s.SameIDs("order", ids, []engine.ID{c, a, a2})
	}},
	{Name: "a run is claimed only with offers that meet its requirements", Run: func(s *fixture.F) {
		s.Worker("w1")
		plain := s.Start()
		gpu := s.Start(fixture.Requiring("gpu", ""))
		eu := s.Start(fixture.Requiring("zone", "eu"))
		both := s.Start(fixture.Requiring("zone", "eu", "gpu", "a100"))
		with := func(offers ...engine.Offer) func(*engine.ClaimParams) {
			return func(p *engine.ClaimParams) { p.Offers = offers }
		}
		s.SameIDs("without offers", s.ClaimedIDs("w1", 9), []engine.ID{plain})
		s.SameIDs("with the wrong zone", s.ClaimedIDs("w1", 9, with(engine.Offer{Key: "zone", Value: "us"})), nil)
		s.SameIDs("with any gpu", s.ClaimedIDs("w1", 9, with(engine.Offer{Key: "gpu", Value: "t4"})), []engine.ID{gpu})
		s.SameIDs("with two zones", s.ClaimedIDs(
			"w1", 9, with(engine.Offer{Key: "zone", Value: "us"}, engine.Offer{Key: "zone", Value: "eu"})),
			[]engine.ID{eu})
		s.SameIDs("with all", s.ClaimedIDs("w1", 9,
			with(engine.Offer{Key: "gpu", Value: "a100"}, engine.Offer{Key: "zone", Value: "eu"})), []engine.ID{both})
	}},
	{Name: "an offer of all keys with a prefix meets each of them", Run: func(s *fixture.F) {
		s.Worker("w1")
		with := func(offers ...engine.Offer) func(*engine.ClaimParams) {
			return func(p *engine.ClaimParams) { p.Offers = offers }
		}
		both := s.Start(fixture.Requiring("tool:jq", "", "tool:sort", ""))
		s.Start(fixture.Requiring("tool", ""))
		s.Start(fixture.Requiring("toolbox:jq", ""))
		valued := s.Start(fixture.Requiring("tool:jq", "1.7"))
		s.SameIDs("of another prefix", s.ClaimedIDs("w1", 9, with(engine.Offer{Key: "unit:*"})), nil)
		s.SameIDs("with no colon", s.ClaimedIDs("w1", 9, with(engine.Offer{Key: "tool*"})), nil)
		s.SameIDs("of the prefix", s.ClaimedIDs("w1", 9, with(engine.Offer{Key: "tool:*"})), []engine.ID{both})
		s.SameIDs("with the value", s.ClaimedIDs("w1", 9, with(engine.Offer{Key: "tool:*", Value: "1.7"})),
			[]engine.ID{valued})
	}},
	{Name: "a run that no offer meets does not block those after it", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 30 {
			s.Start(fixture.Requiring("gpu", ""), fixture.WithPriority(9))
		}
		id := s.Start()
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, id)
	}},
	{Name: "DRAINING, OFFLINE and unknown workers claim nothing", Run: func(s *fixture.F) {
		for _, w := range []string{"online", "draining", "offline"} {
			s.Worker(w)
		}
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "draining", Now: s.Now}), "DrainWorker")
		s.Offline("offline", engine.OfflineDeregistered)
		id := s.Start()
		s.Start()
		p := s.ClaimParams("draining", "offline", "unknown", "online")
		p.Slots = append(p.Slots, engine.ClaimSlot{WorkerID: "draining", Token: s.Token()})
		claimed := s.ClaimWith(p)
		fixture.Equal(s, "tasks", len(claimed.Tasks), 1)
		fixture.Equal(s, "run", claimed.Tasks[0].Run.ID, id)
		fixture.Equal(s, "token", claimed.Tasks[0].Lease.Token, p.Slots[3].Token)
		fixture.Equal(s, "offline", fmt.Sprint(claimed.Offline), "[draining offline unknown]")
		for _, w := range []string{"draining", "offline", "unknown"} {
			fixture.Equal(s, "offline", fmt.Sprint(s.ClaimNothing(w).Offline), "["+w+"]")
		}
		fixture.Equal(s, "offline among those that are not", len(s.ClaimWith(s.ClaimParams("online")).Offline), 0)
	}},
	{Name: "NextDue is when these slots could take a run", Run: func(s *fixture.F) {
		s.Worker("w1")
		at := func(d time.Duration) time.Time { return s.Now.Add(d) }
		s.Start(fixture.DueAt(at(time.Second)), fixture.Requiring("gpu", ""))
		s.Start(fixture.DueAt(at(time.Second)), fixture.OfType("other"))
		s.Start(fixture.DueAt(at(time.Second)), fixture.InQueue("other"))
		s.Start(fixture.DueAt(at(time.Second)), fixture.InSpace("other"))
		s.Start(fixture.DueAt(at(3*time.Second)), fixture.WithPriority(100))
		s.Start(fixture.DueAt(at(2*time.Second)), fixture.WithPriority(-100))
		s.SameTime("next due", s.ClaimNothing("w1").NextDue, at(2*time.Second))
		p := s.ClaimParams("w1")
		p.Types = []string{fixture.Kind, "other"}
		s.SameTime("next due of both types", s.ClaimWith(p).NextDue, at(time.Second))
		s.Start()
		s.SameTime("next due with no grant left", s.ClaimWith(s.ClaimParams("w1")).NextDue, time.Time{})
		s.Start()
		s.SameTime("next due beside a task", s.ClaimWith(s.ClaimParams("w1", "w1")).NextDue, at(2*time.Second))
	}},
	{Name: "NextDue counts sleeps and retries, not held or ended runs", Run: func(s *fixture.F) {
		l := s.Held()
		s.ClaimNothing("w1")
		s.Sleep(l, "nap", 7*time.Second)
		s.SameTime("next due with a sleeper", s.ClaimNothing("w1").NextDue, s.Now.Add(7*time.Second))
		l = s.HeldNext()
		v := s.Fail(l, "pay", "no")
		s.SameTime("next due with a retry", s.ClaimNothing("w1").NextDue, v.RetryAt)
		s.Cancel(l.RunID)
		s.SameTime("next due without it", s.ClaimNothing("w1").NextDue, s.Now.Add(7*time.Second))
	}},
	{Name: "a task has the latest attempt of each step in order", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "a", "1")
		s.Begin(l, "b")
		s.Fail(l, "b", "no", fixture.Holding)
		s.Complete(l, "c", "3")
		s.Release(l, false)
		s.Pass(time.Hour)
		l = s.Claim("w1").Lease
		s.Begin(l, "b")
		s.Release(l, false)
		task := s.Claim("w1")
		fixture.Equal(s, "steps in the history", len(task.History), 3)
		for i, name := range []string{"a", "b", "c"} {
			fixture.Equal(s, "name", task.History[i].Name, name)
			s.SameStep(task.History[i], s.Step(l.RunID, name))
		}
		fixture.Equal(s, "attempt of b", task.History[1].Attempt, 2)
		fixture.Equal(s, "rest of the history", task.NextSequence, 0)
		fixture.Equal(s, "steps of the run", task.Run.Steps, 3)
	}},
	{Name: "pages of a long history leave nothing out", Run: func(s *fixture.F) {
		l := s.Held()
		const steps = 20
		for i := range steps {
			s.Complete(l, "step-"+string(rune('a'+i)), "0123456789")
		}
		s.Release(l, false)
		p := s.ClaimParams("w1")
		p.HistoryBytes = 35
		task := s.ClaimWith(p).Tasks[0]
		if n := len(task.History); n == 0 || n == steps {
			s.Fatalf("the task brings %d of %d steps, want a part", n, steps)
		}
		got := task.History
		for next := task.NextSequence; next != 0; {
			fixture.Equal(s, "where the rest begins", next, int64(len(got)+1))
			more, rest, err := s.Store.GetHistory(
				s.Ctx, engine.HistoryParams{Namespace: fixture.Space, RunID: l.RunID, From: next, Bytes: 1})
			s.Must(err, "GetHistory")
			if len(more) == 0 || rest != 0 && rest <= next {
				s.Fatalf("a page from %d has %d steps and goes on at %d", next, len(more), rest)
			}
			got, next = append(got, more...), rest
		}
		fixture.Equal(s, "steps", len(got), steps)
		for i, step := range got {
			fixture.Equal(s, "sequence", step.Sequence, int64(i+1))
			s.Payload("output", step.Output, fixture.Text("0123456789"))
		}
	}},
	{Name: "GetHistory from the beginning equals the claim's history", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "a", "1")
		s.Complete(l, "b", "2")
		steps, rest, err := s.Store.GetHistory(s.Ctx,
			engine.HistoryParams{Namespace: fixture.Space, RunID: l.RunID, Bytes: engine.HistoryBytes})
		s.Must(err, "GetHistory")
		fixture.Equal(s, "rest", rest, 0)
		fixture.Equal(s, "steps", len(steps), 2)
		s.SameStep(steps[1], s.Step(l.RunID, "b"))
	}},
	{Name: "many lanes are merged into one order", Run: func(s *fixture.F) {
		s.Worker("w1")
		var want []engine.ID
		for i := range 60 {
			s.Pass(time.Millisecond)
			changes := []func(*engine.StartRun){fixture.OfType([]string{"a", "b", "c"}[i%3])}
			if i%4 == 0 {
				changes = append(changes, fixture.Requiring("zone", []string{"eu", "us"}[i%8/4]))
			}
			want = append(want, s.Start(changes...))
		}
		offers := []engine.Offer{{Key: "zone", Value: "eu"}, {Key: "zone", Value: "us"}}
		var got []engine.ID
		for range 6 {
			got = append(got, s.ClaimedIDs("w1", 10, func(p *engine.ClaimParams) {
				p.Types, p.Offers = []string{"a", "b", "c"}, offers
			})...)
		}
		s.SameIDs("order", got, want)
	}},
}
