package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var KeyCases = []fixture.Case{
	{Name: "at most the limit of a key runs, in the order of due times",
		Run: func(s *fixture.F) {
			s.Worker("w1")
			var want []engine.ID
			for range 6 {
				want = append(want, s.Start(fixture.Keyed("customer-1", 2)))
				s.Pass(time.Second)
			}
			var leases []engine.Lease
			var got []engine.ID
			take := func() {
				s.Helper()
				for _, task := range s.ClaimWith(s.ClaimParams("w1", "w1", "w1", "w1")).Tasks {
					leases, got = append(leases, task.Lease), append(got, task.Run.ID)
				}
				if len(leases) > 2 {
					s.Fatalf("%d runs of the key at a time, want at most 2", len(leases))
				}
			}
			for take(); len(leases) > 0; take() {
				s.Finish(leases[0], "done")
				leases = leases[1:]
			}
			s.SameIDs("order", got, want)
		}},
	{Name: "a run without a free slot is gated and keeps its place", Run: func(s *fixture.F) {
		l := s.Held(fixture.Keyed("k", 1))
		s.Pass(time.Second)
		second := s.Start(fixture.Keyed("k", 1))
		since := s.Now
		s.Pass(time.Second)
		s.ClaimNothing("w1")
		run := s.Run(second)
		fixture.Equal(s, "gated", run.Gated, true)
		fixture.Equal(s, "status", run.Status, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, time.Time{})
		s.SameTime("held at", run.HeldAt, since)
		s.Finish(l, "done")
		run = s.Run(second)
		fixture.Equal(s, "gated after the slot is free", run.Gated, false)
		s.SameTime("available at", run.AvailableAt, since)
		s.SameTime("held at", run.HeldAt, time.Time{})
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, second)
	}},
	{Name: "gated runs get slots in claim order", Run: func(s *fixture.F) {
		preferred := func(p int) func(*engine.StartRun) { return func(r *engine.StartRun) { r.Priority = p } }
		l := s.Held(fixture.Keyed("k", 1))
		first := s.Start(fixture.Keyed("k", 1), preferred(-5))
		s.Pass(time.Second)
		urgent := s.Start(fixture.Keyed("k", 1), preferred(5))
		last := s.Start(fixture.Keyed("k", 1), preferred(-5))
		s.Start(fixture.Keyed("other", 1))
		for range 3 { // a claim that finds a blocked lane reads no further in it
			s.ClaimWith(s.ClaimParams("w1"))
		}
		line := func(when string, want ...engine.ID) {
			s.Helper()
			for ahead, id := range want {
				c, err := s.Store.ExplainInputs(s.Ctx, fixture.Space, id)
				s.Must(err, "ExplainInputs")
				fixture.Equal(s, fmt.Sprintf("gated %s, number %d", when, ahead), c.Run.Gated, true)
				fixture.Equal(s, fmt.Sprintf("ahead %s of number %d", when, ahead), c.AheadInLine, ahead)
			}
		}
		line("at first", urgent, first, last)
		s.Pass(time.Hour)
		line("when the first has waited long", urgent, first, last)
		s.Finish(l, "done")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, urgent)
	}},
	{Name: "a gated run does not block other runs", Run: func(s *fixture.F) {
		s.Held(fixture.Keyed("k", 1))
		for range 20 {
			s.Start(fixture.Keyed("k", 1))
		}
		other, free := s.Start(fixture.Keyed("other", 1)), s.Start()
		s.SameIDs("claimed", s.ClaimedIDs("w1", 2), []engine.ID{other, free})
		s.ClaimNothing("w1")
		fixture.Equal(s, "claimed with a new arrival", s.Start() == s.Claim("w1").Run.ID, true)
	}},
	{Name: "a run over its own limit does not block higher limits", Run: func(s *fixture.F) {
		s.Worker("w1")
		several := func(n int) (ids []engine.ID) {
			for range n {
				ids = append(ids, s.Start(fixture.Keyed("k", 2)))
			}
			return ids
		}
		many := several(2)
		s.SameIDs("claimed at first", s.ClaimedIDs("w1", 2), many)
		s.Pass(time.Second)
		strict := s.Start(fixture.Keyed("k", 1))
		s.Pass(time.Second)
		next := several(3)
		s.ClaimNothing("w1")
		end := func(id engine.ID) { s.Finish(s.LeaseOf(id), "done") }
		gated := func(when string, want ...engine.ID) {
			s.Helper()
			var got []engine.ID
			for _, id := range append([]engine.ID{strict}, next...) {
				if s.Run(id).Gated {
					got = append(got, id)
				}
			}
			s.SameIDs("gated "+when, got, want)
		}
		gated("while two hold the key", strict, next[0], next[1], next[2])
		end(many[0])
		gated("while one holds it", strict, next[1], next[2])
		s.SameIDs("claimed then", s.ClaimedIDs("w1", 4), next[:1])
		end(many[1])
		gated("while the next holds it", strict, next[2])
		end(next[0])
		gated("while nobody holds it")
		s.SameIDs("claimed in the order of their arrival", s.ClaimedIDs("w1", 4), []engine.ID{strict, next[1]})
		end(strict)
		s.SameIDs("claimed in the end", s.ClaimedIDs("w1", 4), next[2:])
	}},
	{Name: "keys are separate by type and namespace", Run: func(s *fixture.F) {
		w := s.NewWorker("w1")
		w.Types = []string{fixture.Kind, "other"}
		s.Register(w, true)
		a := s.Start(fixture.Keyed("k", 1))
		b := s.Start(fixture.Keyed("k", 1), fixture.OfType("other"))
		s.SameIDs("claimed", s.ClaimedIDs("w1", 4, func(p *engine.ClaimParams) {
			p.Types = []string{fixture.Kind, "other"}
		}), []engine.ID{a, b})
		elsewhere := s.NewWorker("w2")
		elsewhere.Namespace = "elsewhere"
		s.Register(elsewhere, true)
		c := s.Start(fixture.Keyed("k", 1), fixture.InSpace("elsewhere"))
		s.SameIDs("claimed elsewhere", s.ClaimedIDs("w2", 4, func(p *engine.ClaimParams) { p.Namespace = "elsewhere" }),
			[]engine.ID{c})
	}},
	{Name: "a claim treats runs with a key like others", Run: func(s *fixture.F) {
		for _, key := range []func(*engine.StartRun){func(*engine.StartRun) {}, fixture.Keyed("k", 1)} {
			began := s.Now
			first := s.Held(key, fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
			s.Complete(first, "pay", "paid")
			s.Await(first, "approval", "approved", fixture.AtMost(time.Minute), fixture.HoldingOn)
			s.Sleep(first, "nap", time.Minute)
			s.Pass(time.Minute)
			over := s.Now
			s.Pass(time.Second)
			s.Heartbeat("w1")
			task := s.Claim("w1")
			fixture.Equal(s, "status", task.Run.Status, engine.RunRunning)
			fixture.Equal(s, "waiting for", task.Run.WaitingFor, "")
			s.SameTime("started at", task.Run.StartedAt, began)
			fixture.Equal(s, "steps in the history", len(task.History), 3)
			for _, step := range task.History {
				fixture.Equal(s, "status of "+step.Name, step.Status, engine.StepCompleted)
				fixture.Equal(s, step.Name+" timed out", step.TimedOut, step.Name == "approval")
				fixture.Equal(s, step.Name+" is awaited", step.Awaited, 0)
				if step.Name != "pay" {
					s.SameTime("end of "+step.Name, step.FinishedAt, over)
				}
			}
			fixture.Equal(s, "place of the next step", s.Complete(task.Lease, "ship", "shipped").Sequence, 4)
			run := s.Run(task.Run.ID)
			fixture.Equal(s, "steps", run.Steps, 4)
			fixture.Equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")+len("shipped")))
			s.Pass(42 * time.Second)
			fixture.Equal(s, "freed with its worker", s.Offline("w1", engine.OfflineLost), 0)
			freed := s.FreeLost(s.Now)
			fixture.Equal(s, "freed later", len(freed.Runs), 0)
			s.SameTime("next", freed.Next, over.Add(time.Second+time.Hour))
			s.Worker("w1")
			s.Finish(task.Lease, "done")
		}
	}},
	{Name: "runs with keys are claimed in the common order", Run: func(s *fixture.F) {
		s.Worker("w1")
		low := s.Start(fixture.Keyed("a", 1))
		s.Pass(time.Second)
		high := s.Start(fixture.Keyed("b", 1), fixture.WithPriority(5))
		next := s.Start(fixture.WithPriority(5))
		last := s.Start(fixture.Keyed("c", 1), fixture.WithPriority(5))
		s.SameIDs("claimed by priority", s.ClaimedIDs("w1", 1), []engine.ID{high})
		s.SameIDs("claimed by age", s.ClaimedIDs("w1", 1, fixture.ByAge(1)), []engine.ID{low})
		s.SameIDs("claimed at last", s.ClaimedIDs("w1", 9), []engine.ID{next, last})
	}},
	{Name: "a claim by age passes over runs whose key has no slot", Run: func(s *fixture.F) {
		s.Held(fixture.Keyed("a", 1))
		s.Start(fixture.Keyed("a", 1), fixture.WithPriority(-5))
		s.Pass(time.Second)
		old := s.Start(fixture.Keyed("b", 1), fixture.WithPriority(-9))
		s.Pass(time.Second)
		urgent := s.Start(fixture.WithPriority(5))
		s.SameIDs("claimed", s.ClaimedIDs("w1", 2, fixture.ByAge(1)), []engine.ID{old, urgent})
	}},
	{Name: "a run with a key needs offers that meet its requirements", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Start(fixture.Keyed("a", 1), fixture.Requiring("gpu", ""))
		eu := s.Start(fixture.Keyed("b", 1), fixture.Requiring("zone", "eu"))
		plain := s.Start(fixture.Keyed("c", 1))
		in := func(zone string) func(*engine.ClaimParams) {
			return func(p *engine.ClaimParams) { p.Offers = []engine.Offer{{Key: "zone", Value: zone}} }
		}
		s.SameIDs("claimed in another zone", s.ClaimedIDs("w1", 9, in("us")), []engine.ID{plain})
		next := s.Start(fixture.Keyed("d", 1))
		s.SameIDs("claimed in the zone", s.ClaimedIDs("w1", 9, in("eu")), []engine.ID{eu, next})
	}},
	{Name: "queue and type limits count runs with a key", Run: func(s *fixture.F) {
		s.Worker("w1")
		for _, other := range []struct{ space, queue string }{{fixture.Space, "second"}, {"other", fixture.Queue}} {
			s.Start(fixture.InSpace(other.space), fixture.InQueue(other.queue), fixture.Keyed("k", 1))
			away := func(p *engine.ClaimParams) { p.Namespace, p.Queue = other.space, other.queue }
			fixture.Equal(s, "tasks of "+other.space+"/"+other.queue, len(s.ClaimLimited(1, away).Tasks), 1)
		}
		for range 3 {
			s.Start(fixture.Keyed("several", 9))
		}
		for name, limit := range map[string]func(*engine.ClaimParams){
			"the queue": queueLimit(1), "the type": typeLimit(fixture.Kind, 1)} {
			claimed := s.ClaimLimited(3, limit)
			fixture.Equal(s, "tasks under the limit of "+name, len(claimed.Tasks), 1)
			fixture.Equal(s, "limited", claimed.Limited, true)
			fixture.Equal(s, "tasks at the limit of "+name, len(s.ClaimLimited(3, limit).Tasks), 0)
			s.Finish(claimed.Tasks[0].Lease, "done")
		}
	}},
	{Name: "any end of a lease frees its slot", Run: func(s *fixture.F) {
		for name, end := range map[string]func(l engine.Lease){
			"complete":  func(l engine.Lease) { s.Finish(l, "") },
			"fail":      func(l engine.Lease) { s.FailRun(l, "no") },
			"cancel":    func(l engine.Lease) { s.Cancel(l.RunID) },
			"terminate": func(l engine.Lease) { _, _ = s.Store.TerminateRun(s.Ctx, s.EndParams(l.RunID, "")) },
			"pause":     func(l engine.Lease) { s.Pause(l.RunID) },
			"sleep":     func(l engine.Lease) { s.Sleep(l, "nap", 24*time.Hour) },
			"retry":     func(l engine.Lease) { s.Fail(l, "pay", "no") },
			"signal":    func(l engine.Lease) { s.Await(l, "approval", "approval") },
			"loss":      func(l engine.Lease) { s.Lose("w1"); s.Cancel(l.RunID) },
			"continue": func(l engine.Lease) {
				next := engine.StartRun{Run: engine.Run{ID: s.ID(), AvailableAt: s.Now.Add(time.Hour)}}
				s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
			},
		} {
			key := fixture.Keyed("key-"+name, 1)
			s.Worker("w1")
			first := s.Start(key)
			s.Pass(time.Millisecond)
			task := s.Claim("w1")
			fixture.Equal(s, "claimed for "+name, task.Run.ID, first)
			second := s.Start(key)
			s.Pass(time.Millisecond)
			s.ClaimNothing("w1")
			fixture.Equal(s, "gated by "+name, s.Run(second).Gated, true)
			end(task.Lease)
			next := s.Claim("w1")
			fixture.Equal(s, "claimed after "+name, next.Run.ID, second)
			s.Finish(next.Lease, "")
			s.CancelOpen(first)
		}
	}},
	{Name: "a sleeping run holds no slot and waits for one again", Run: func(s *fixture.F) {
		l := s.Held(fixture.Keyed("k", 1))
		s.Sleep(l, "nap", time.Minute)
		second := s.Start(fixture.Keyed("k", 1))
		next := s.Claim("w1")
		fixture.Equal(s, "claimed", next.Run.ID, second)
		s.Pass(time.Minute)
		s.ClaimNothing("w1")
		run := s.Run(l.RunID)
		fixture.Equal(s, "gated", run.Gated, true)
		fixture.Equal(s, "status", run.Status, engine.RunSleeping)
		s.Finish(next.Lease, "")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, l.RunID)
	}},
	{Name: "a run in a queue without workers holds no slot", Run: func(s *fixture.F) {
		l := s.Held(fixture.Keyed("k", 1))
		away := s.Start(fixture.Keyed("k", 1), fixture.InQueue("nobody"))
		s.Pass(time.Second)
		here := s.Start(fixture.Keyed("k", 1))
		s.Pass(time.Second)
		s.ClaimNothing("w1")
		s.Finish(l, "done")
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, here)
		s.Status(away, engine.RunPending)
	}},
	{Name: "a cancelled run passes its slot on", Run: func(s *fixture.F) {
		for _, how := range []func(engine.ID){func(id engine.ID) { s.Cancel(id) }, func(id engine.ID) { s.Pause(id) }} {
			l := s.Held(fixture.Keyed("k", 1))
			second := s.Start(fixture.Keyed("k", 1))
			s.Pass(time.Second)
			third := s.Start(fixture.Keyed("k", 1))
			s.Pass(time.Second)
			s.ClaimNothing("w1")
			s.Finish(l, "done")
			fixture.Equal(s, "second gated", s.Run(second).Gated, false)
			how(second)
			next := s.Claim("w1")
			fixture.Equal(s, "claimed", next.Run.ID, third)
			s.Finish(next.Lease, "")
			s.CancelOpen(second)
		}
	}},
	{Name: "a gated run can be cancelled, paused and timed out", Run: func(s *fixture.F) {
		l := s.Held(fixture.Keyed("k", 1))
		cancelled, paused := s.Start(fixture.Keyed("k", 1)), s.Start(fixture.Keyed("k", 1))
		late := s.Start(fixture.Keyed("k", 1), func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Second) })
		s.ClaimNothing("w1")
		s.Cancel(cancelled)
		s.Pause(paused)
		s.Pass(time.Second)
		s.Expire()
		s.Status(late, engine.RunTimedOut)
		s.Finish(l, "done")
		s.ClaimNothing("w1")
		s.Resume(paused)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, paused)
	}},
	{Name: "each run's own limit applies", Run: func(s *fixture.F) {
		s.Held(fixture.Keyed("k", 3))
		tight, loose := s.Start(fixture.Keyed("k", 1)), s.Start(fixture.Keyed("k", 3))
		s.SameIDs("claimed", s.ClaimedIDs("w1", 5), []engine.ID{loose})
		fixture.Equal(s, "gated", s.Run(tight).Gated, true)
	}},
	{Name: "concurrent claims keep within the limit of a key", Run: func(s *fixture.F) {
		s.TakeInTurn(60, 3, func(int) int { return 3 })
	}},
	{Name: "concurrent claims with different limits leave no run behind", Run: func(s *fixture.F) {
		s.TakeInTurn(60, 3, func(i int) int { return 1 + i%3 })
	}},
	{Name: "a gated run that ends leaves its place to the next", Run: func(s *fixture.F) {
		l := s.Held(fixture.Keyed("k", 1))
		gone, next := s.Start(fixture.Keyed("k", 1)), s.Start(fixture.Keyed("k", 1))
		s.ClaimNothing("w1")
		s.Cancel(gone)
		ended := s.Status(gone, engine.RunCancelled)
		fixture.Equal(s, "gated after its end", ended.Gated, false)
		s.Finish(l, "done")
		s.Status(gone, engine.RunCancelled)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, next)
	}},
	{Name: "a run gated after a sleep keeps its timer's wait", Run: func(s *fixture.F) {
		sleeper := s.Held(fixture.Keyed("k", 1))
		s.Sleep(sleeper, "nap", time.Minute)
		wake := s.Now.Add(time.Minute)
		l := s.HeldNext(fixture.Keyed("k", 1))
		s.Pass(time.Hour)
		s.ClaimNothing("w1")
		fixture.Equal(s, "gated", s.Run(sleeper.RunID).Gated, true)
		s.Finish(l, "done")
		s.Parked(sleeper.RunID, "timer:nap", wake)
	}},
	{Name: "slots of a key are separate by name, type and namespace",
		Run: func(s *fixture.F) {
			s.Worker("w1")
			w := s.NewWorker("w2")
			w.Namespace = "other"
			s.Register(w, true)
			claim := func(in string) (tasks []engine.Task) {
				s.Helper()
				for worker, namespace := range map[string]string{"w1": fixture.Space, "w2": "other"} {
					p := s.ClaimParams(worker, worker, worker)
					p.Namespace, p.Queue, p.Types = namespace, in, []string{fixture.Kind, "another"}
					tasks = append(tasks, s.ClaimWith(p).Tasks...)
				}
				return tasks
			}
			s.Start(fixture.InQueue("elsewhere"), fixture.Keyed("a", 1))
			fixture.Equal(s, "claimed elsewhere", len(claim("elsewhere")), 1)
			type line struct {
				namespace       string
				changes         []func(*engine.StartRun)
				inQueue, ofType int
				lease           engine.Lease
				waits           engine.ID
			}
			lines := []*line{
				{fixture.Space, []func(*engine.StartRun){fixture.Keyed("k", 1)}, 3, 2, engine.Lease{}, engine.ID{}},
				{fixture.Space, []func(*engine.StartRun){fixture.Keyed("l", 1), fixture.WithPriority(5)}, 3, 2,
					engine.Lease{}, engine.ID{}},
				{fixture.Space, []func(*engine.StartRun){fixture.Keyed("k", 1), fixture.OfType("another")}, 3, 1,
					engine.Lease{}, engine.ID{}},
				{"other", []func(*engine.StartRun){fixture.Keyed("k", 1), fixture.InSpace("other")}, 1, 1,
					engine.Lease{},
					engine.ID{}},
			}
			wait := func(l *line) {
				s.Helper()
				l.waits = s.Start(l.changes...)
				s.Pass(time.Second)
				fixture.Equal(s, "claimed of a key that has no slot", len(claim(fixture.Queue)), 0)
			}
			for _, l := range lines {
				s.Start(l.changes...)
				tasks := claim(fixture.Queue)
				fixture.Equal(s, "claimed", len(tasks), 1)
				l.lease = tasks[0].Lease
				wait(l)
			}
			for i, l := range lines {
				s.Finish(l.lease, "done")
				for j, other := range lines {
					run, err := s.Store.GetRun(s.Ctx, other.namespace, other.waits)
					s.Must(err, "GetRun")
					fixture.Equal(s, fmt.Sprintf("gated in line %d after the end in line %d", j, i), run.Gated, j != i)
				}
				tasks := claim(fixture.Queue)
				fixture.Equal(s, "claimed after the end", len(tasks), 1)
				fixture.Equal(s, "run that was claimed", tasks[0].Run.ID, l.waits)
				l.lease = tasks[0].Lease
				wait(l)
			}
			n, err := s.Store.GetNamespace(s.Ctx, "other")
			s.Must(err, "GetNamespace")
			n.Enabled = false
			_, err = s.Store.UpdateNamespace(s.Ctx, engine.NamespaceParams{
				Namespace: n, Method: "DisableNamespace", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
			s.Must(err, "UpdateNamespace")
			for _, l := range lines {
				c, err := s.Store.ExplainInputs(s.Ctx, l.namespace, l.waits)
				s.Must(err, "ExplainInputs")
				fixture.Equal(s, "namespace is enabled", c.NamespaceEnabled, l.namespace == fixture.Space)
				fixture.Equal(s, "running in the queue", c.RunningInQueue, l.inQueue)
				fixture.Equal(s, "running of the type", c.RunningOfType, l.ofType)
				fixture.Equal(s, "places of the key", c.PlacesOfKey, 1)
				fixture.Equal(s, "ahead in the line", c.AheadInLine, 0)
			}
		}},
	{Name: "the run due first gets the slot, not the one started first", Run: func(s *fixture.F) {
		l := s.Held(fixture.Keyed("k", 1))
		due := s.Now.Add(time.Minute)
		var first, second []engine.ID
		for _, priority := range []int{0, 5} { // a lane for each
			second = append(second, s.Start(fixture.Keyed("k", 1), fixture.WithPriority(priority),
				fixture.DueAt(due.Add(time.Second))))
			first = append(first, s.Start(fixture.Keyed("k", 1), fixture.WithPriority(priority), fixture.DueAt(due)))
		}
		s.Pass(time.Hour)
		for range 3 { // a claim that finds a blocked lane reads no further in it
			s.ClaimNothing("w1")
		}
		s.Finish(l, "done")
		for i := range first {
			fixture.Equal(s, "gated who was due first", s.Run(first[i]).Gated, false)
			fixture.Equal(s, "gated who was due next", s.Run(second[i]).Gated, true)
		}
	}},
}
