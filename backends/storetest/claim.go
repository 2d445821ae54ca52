package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var claimCases = []testCase{
	{"a claim hands over a due run with its input under the grant's token", func(s *stage) {
		s.worker("w1")
		start := s.newRun()
		s.started(start)
		s.pass(time.Second)
		p := s.claimParams("w1")
		claimed := s.claimWith(p)
		equal(s, "tasks", len(claimed.Tasks), 1)
		task := claimed.Tasks[0]
		equal(s, "token", task.Lease.Token, p.Slots[0].Token)
		equal(s, "run of the lease", task.Lease.RunID, start.ID)
		equal(s, "history", len(task.History), 0)
		equal(s, "rest of the history", task.NextSequence, 0)
		s.sameTime("claimed at", task.ClaimedAt, s.now)
		s.payload("input", task.Run.Input, text("input"))
		s.sameTime("next due", claimed.NextDue, time.Time{})
		equal(s, "limited", claimed.Limited, false)

		want := start.Run
		want.Status, want.Attempts, want.Bytes = engine.RunRunning, 1, int64(want.Input.Size())
		want.StartedAt, want.WorkerID, want.AvailableAt = s.now, "w1", time.Time{}
		s.sameRun(task.Run, want)
		s.sameRun(s.run(start.ID), want)
	}},
	{"a second claimant finds nothing", func(s *stage) {
		s.held()
		s.worker("w2")
		claimed := s.claimNothing("w2")
		s.sameTime("next due", claimed.NextDue, time.Time{})
		equal(s, "limited", claimed.Limited, false)
	}},
	{"a claim on an empty queue is no error", func(s *stage) {
		s.worker("w1")
		claimed := s.claimNothing("w1")
		s.sameTime("next due", claimed.NextDue, time.Time{})
	}},
	{"a run is due at its microsecond and not before", func(s *stage) {
		s.worker("w1")
		due := s.now.Add(1500 * time.Microsecond)
		id := s.start(dueAt(due))
		s.pass(1499 * time.Microsecond)
		s.sameTime("next due", s.claimNothing("w1").NextDue, due)
		s.pass(time.Microsecond)
		equal(s, "claimed", s.claim("w1").Run.ID, id)
	}},
	{"the first claim alone sets when a run started", func(s *stage) {
		l := s.held()
		first := s.now
		s.release(l, false)
		s.pass(time.Minute)
		task := s.claim("w1")
		s.sameTime("started at", task.Run.StartedAt, first)
		s.sameTime("started at in the view", s.run(l.RunID).StartedAt, first)
		s.sameTime("claimed at", task.ClaimedAt, s.now)
	}},
	{"grants and runs meet in the order of both", func(s *stage) {
		s.worker("w1")
		s.worker("w2")
		a, b, c := s.start(), s.start(), s.start()
		p := s.claimParams("w1", "w2", "w1")
		tasks := s.claimWith(p).Tasks
		equal(s, "tasks", len(tasks), 3)
		for i, id := range []engine.ID{a, b, c} {
			equal(s, "run of the task", tasks[i].Run.ID, id)
			equal(s, "its token", tasks[i].Lease.Token, p.Slots[i].Token)
			equal(s, "its worker", s.run(id).WorkerID, p.Slots[i].WorkerID)
		}
	}},
	{"no more runs than grants are handed out", func(s *stage) {
		s.worker("w1")
		for range 5 {
			s.start()
		}
		claimed := s.claimWith(s.claimParams("w1", "w1"))
		equal(s, "tasks", len(claimed.Tasks), 2)
		equal(s, "limited", claimed.Limited, false)
		s.sameTime("next due", claimed.NextDue, time.Time{})
		equal(s, "held", len(s.heldBy("w1")), 2)
	}},
	{"higher priority goes first, then what is due longer, then the smaller id", func(s *stage) {
		s.worker("w1")
		t := s.now
		s.pass(10 * time.Second)
		low := s.start(withPriority(-100), dueAt(t))
		late := s.start(dueAt(t.Add(2 * time.Second)))
		early := s.start(dueAt(t.Add(time.Second)))
		twin := s.start(dueAt(t.Add(time.Second)))
		high := s.start(withPriority(100), dueAt(t.Add(3*time.Second)))
		one := s.start(withPriority(1), dueAt(t.Add(3*time.Second)))
		s.sameIDs("order", s.claimedIDs("w1", 6), []engine.ID{high, one, early, twin, late, low})
	}},
	{"a run that has been due for StarvationAfter goes before all priorities", func(s *stage) {
		s.worker("w1")
		t := s.now
		s.pass(2 * engine.StarvationAfter)
		high := s.start(withPriority(100), dueAt(s.now))
		starved := s.start(withPriority(-100), dueAt(s.now.Add(-engine.StarvationAfter)))
		almost := s.start(withPriority(-100), dueAt(s.now.Add(-engine.StarvationAfter+time.Microsecond)))
		starvedHigh := s.start(withPriority(50), dueAt(s.now.Add(-engine.StarvationAfter)))
		oldest := s.start(withPriority(0), dueAt(t))
		s.sameIDs("order", s.claimedIDs("w1", 5), []engine.ID{starvedHigh, oldest, starved, high, almost})
	}},
	{"only runs of the namespace, queue and types are taken", func(s *stage) {
		s.worker("w1")
		s.start(inSpace("other"))
		s.start(inQueue("other"))
		s.start(ofType("other"))
		s.start(ofType("Order"))
		s.claimNothing("w1")
		id := s.start()
		equal(s, "claimed", s.claim("w1").Run.ID, id)
	}},
	{"several types are taken in one order", func(s *stage) {
		s.worker("w1")
		a := s.start(ofType("a"))
		s.start(ofType("b"))
		c := s.start(ofType("c"), withPriority(1))
		a2 := s.start(ofType("a"))
		ids := s.claimedIDs("w1", 9, func(p *engine.ClaimParams) { p.Types = []string{"c", "a", "nobody"} })
		s.sameIDs("order", ids, []engine.ID{c, a, a2})
	}},
	{"a run goes only to offers that meet its requirements", func(s *stage) {
		s.worker("w1")
		plain := s.start()
		gpu := s.start(requiring("gpu", ""))
		eu := s.start(requiring("zone", "eu"))
		both := s.start(requiring("zone", "eu", "gpu", "a100"))
		with := func(offers ...engine.Offer) func(*engine.ClaimParams) {
			return func(p *engine.ClaimParams) { p.Offers = offers }
		}
		s.sameIDs("without offers", s.claimedIDs("w1", 9), []engine.ID{plain})
		s.sameIDs("with the wrong zone", s.claimedIDs("w1", 9, with(engine.Offer{Key: "zone", Value: "us"})), nil)
		s.sameIDs("with any gpu", s.claimedIDs("w1", 9, with(engine.Offer{Key: "gpu", Value: "t4"})), []engine.ID{gpu})
		s.sameIDs("with two zones", s.claimedIDs("w1", 9, with(engine.Offer{Key: "zone", Value: "us"}, engine.Offer{Key: "zone", Value: "eu"})), []engine.ID{eu})
		s.sameIDs("with all", s.claimedIDs("w1", 9, with(engine.Offer{Key: "gpu", Value: "a100"}, engine.Offer{Key: "zone", Value: "eu"})), []engine.ID{both})
	}},
	{"a run that nobody here can take does not hide those behind it", func(s *stage) {
		s.worker("w1")
		for range 30 {
			s.start(requiring("gpu", ""), withPriority(9))
		}
		id := s.start()
		equal(s, "claimed", s.claim("w1").Run.ID, id)
	}},
	{"workers that are draining, offline or unknown get nothing", func(s *stage) {
		for _, w := range []string{"online", "draining", "offline"} {
			s.worker(w)
		}
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "draining", Now: s.now}), "DrainWorker")
		s.offline("offline", engine.OfflineDeregistered)
		id := s.start()
		s.start()
		p := s.claimParams("draining", "offline", "unknown", "online")
		p.Slots = append(p.Slots, engine.ClaimSlot{WorkerID: "draining", Token: s.token()})
		claimed := s.claimWith(p)
		equal(s, "tasks", len(claimed.Tasks), 1)
		equal(s, "run", claimed.Tasks[0].Run.ID, id)
		equal(s, "token", claimed.Tasks[0].Lease.Token, p.Slots[3].Token)
		equal(s, "offline", fmt.Sprint(claimed.Offline), "[draining offline unknown]")
		for _, w := range []string{"draining", "offline", "unknown"} {
			equal(s, "offline", fmt.Sprint(s.claimNothing(w).Offline), "["+w+"]")
		}
		equal(s, "offline among those that are not", len(s.claimWith(s.claimParams("online")).Offline), 0)
	}},
	{"next due is exactly when these grants could take a run", func(s *stage) {
		s.worker("w1")
		at := func(d time.Duration) time.Time { return s.now.Add(d) }
		s.start(dueAt(at(time.Second)), requiring("gpu", ""))
		s.start(dueAt(at(time.Second)), ofType("other"))
		s.start(dueAt(at(time.Second)), inQueue("other"))
		s.start(dueAt(at(time.Second)), inSpace("other"))
		s.start(dueAt(at(3*time.Second)), withPriority(100))
		s.start(dueAt(at(2*time.Second)), withPriority(-100))
		s.sameTime("next due", s.claimNothing("w1").NextDue, at(2*time.Second))
		p := s.claimParams("w1")
		p.Types = []string{kind, "other"}
		s.sameTime("next due of both types", s.claimWith(p).NextDue, at(time.Second))
		s.start()
		s.sameTime("next due with no grant left", s.claimWith(s.claimParams("w1")).NextDue, time.Time{})
		s.start()
		s.sameTime("next due beside a task", s.claimWith(s.claimParams("w1", "w1")).NextDue, at(2*time.Second))
	}},
	{"next due knows sleepers and retries, not those that are held or over", func(s *stage) {
		l := s.held()
		s.claimNothing("w1")
		s.sleep(l, "nap", 7*time.Second)
		s.sameTime("next due with a sleeper", s.claimNothing("w1").NextDue, s.now.Add(7*time.Second))
		l = s.heldNext()
		v := s.fail(l, "pay", "no")
		s.sameTime("next due with a retry", s.claimNothing("w1").NextDue, v.RetryAt)
		s.cancel(l.RunID)
		s.sameTime("next due without it", s.claimNothing("w1").NextDue, s.now.Add(7*time.Second))
	}},
	{"a claim brings the latest attempt of each step in order", func(s *stage) {
		l := s.held()
		s.complete(l, "a", "1")
		s.begin(l, "b")
		s.fail(l, "b", "no", holding)
		s.complete(l, "c", "3")
		s.release(l, false)
		s.pass(time.Hour)
		l = s.claim("w1").Lease
		s.begin(l, "b")
		s.release(l, false)
		task := s.claim("w1")
		equal(s, "steps in the history", len(task.History), 3)
		for i, name := range []string{"a", "b", "c"} {
			equal(s, "name", task.History[i].Name, name)
			s.sameStep(task.History[i], s.step(l.RunID, name))
		}
		equal(s, "attempt of b", task.History[1].Attempt, 2)
		equal(s, "rest of the history", task.NextSequence, 0)
		equal(s, "steps of the run", task.Run.Steps, 3)
	}},
	{"long history comes in pages that leave nothing out", func(s *stage) {
		l := s.held()
		const steps = 20
		for i := range steps {
			s.complete(l, "step-"+string(rune('a'+i)), "0123456789")
		}
		s.release(l, false)
		p := s.claimParams("w1")
		p.HistoryBytes = 35
		task := s.claimWith(p).Tasks[0]
		if n := len(task.History); n == 0 || n == steps {
			s.Fatalf("the task brings %d of %d steps, want a part", n, steps)
		}
		got := task.History
		for next := task.NextSequence; next != 0; {
			equal(s, "where the rest begins", next, int64(len(got)+1))
			more, rest, err := s.store.GetHistory(s.ctx, engine.HistoryParams{Namespace: space, RunID: l.RunID, From: next, Bytes: 1})
			s.must(err, "GetHistory")
			if len(more) == 0 || rest != 0 && rest <= next {
				s.Fatalf("a page from %d has %d steps and goes on at %d", next, len(more), rest)
			}
			got, next = append(got, more...), rest
		}
		equal(s, "steps", len(got), steps)
		for i, step := range got {
			equal(s, "sequence", step.Sequence, int64(i+1))
			s.payload("output", step.Output, text("0123456789"))
		}
	}},
	{"history from the beginning is what a claim delivers", func(s *stage) {
		l := s.held()
		s.complete(l, "a", "1")
		s.complete(l, "b", "2")
		steps, rest, err := s.store.GetHistory(s.ctx, engine.HistoryParams{Namespace: space, RunID: l.RunID, Bytes: engine.HistoryBytes})
		s.must(err, "GetHistory")
		equal(s, "rest", rest, 0)
		equal(s, "steps", len(steps), 2)
		s.sameStep(steps[1], s.step(l.RunID, "b"))
	}},
	{"many lanes are merged into one order", func(s *stage) {
		s.worker("w1")
		var want []engine.ID
		for i := range 60 {
			s.pass(time.Millisecond)
			changes := []func(*engine.StartRun){ofType([]string{"a", "b", "c"}[i%3])}
			if i%4 == 0 {
				changes = append(changes, requiring("zone", []string{"eu", "us"}[i%8/4]))
			}
			want = append(want, s.start(changes...))
		}
		offers := []engine.Offer{{Key: "zone", Value: "eu"}, {Key: "zone", Value: "us"}}
		var got []engine.ID
		for range 6 {
			got = append(got, s.claimedIDs("w1", 10, func(p *engine.ClaimParams) {
				p.Types, p.Offers = []string{"a", "b", "c"}, offers
			})...)
		}
		s.sameIDs("order", got, want)
	}},
}

// heldNext is one more new run in the hands of w1, which is registered.
func (s *stage) heldNext(changes ...func(*engine.StartRun)) engine.Lease {
	s.Helper()
	id := s.start(changes...)
	task := s.claim("w1")
	equal(s, "claimed run", task.Run.ID, id)
	return task.Lease
}
