package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// keyed gives a run a concurrency key with a limit.
func keyed(key string, limit int) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.ConcurrencyKey, r.ConcurrencyLimit = key, limit }
}

var keyCases = []testCase{
	{"of a key no more than its limit run at a time, in the order in which they were due", func(s *stage) {
		s.worker("w1")
		var want []engine.ID
		for range 6 {
			want = append(want, s.start(keyed("customer-1", 2)))
			s.pass(time.Second)
		}
		var leases []engine.Lease
		var got []engine.ID
		take := func() {
			s.Helper()
			for _, task := range s.claimWith(s.claimParams("w1", "w1", "w1", "w1")).Tasks {
				leases, got = append(leases, task.Lease), append(got, task.Run.ID)
			}
			if len(leases) > 2 {
				s.Fatalf("%d runs of the key at a time, want at most 2", len(leases))
			}
		}
		for take(); len(leases) > 0; take() {
			s.finish(leases[0], "done")
			leases = leases[1:]
		}
		s.sameIDs("order", got, want)
	}},
	{"a run that finds all slots taken is gated, keeps its place, and says so", func(s *stage) {
		l := s.held(keyed("k", 1))
		s.pass(time.Second)
		second := s.start(keyed("k", 1))
		since := s.now
		s.pass(time.Second)
		s.claimNothing("w1")
		run := s.run(second)
		equal(s, "gated", run.Gated, true)
		equal(s, "status", run.Status, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, time.Time{})
		s.sameTime("held at", run.HeldAt, since)
		s.finish(l, "done")
		run = s.run(second)
		equal(s, "gated after the slot is free", run.Gated, false)
		s.sameTime("available at", run.AvailableAt, since)
		s.sameTime("held at", run.HeldAt, time.Time{})
		equal(s, "claimed", s.claim("w1").Run.ID, second)
	}},
	{"the line for a key is in the order in which its runs are taken", func(s *stage) {
		preferred := func(p int) func(*engine.StartRun) { return func(r *engine.StartRun) { r.Priority = p } }
		l := s.held(keyed("k", 1))
		first := s.start(keyed("k", 1), preferred(-5))
		s.pass(time.Second)
		urgent := s.start(keyed("k", 1), preferred(5))
		last := s.start(keyed("k", 1), preferred(-5))
		s.start(keyed("other", 1))
		for range 3 { // a claim that finds a lane held up looks no further in it
			s.claimWith(s.claimParams("w1"))
		}
		line := func(when string, want ...engine.ID) {
			s.Helper()
			for ahead, id := range want {
				c, err := s.store.ExplainInputs(s.ctx, space, id, s.now)
				s.must(err, "ExplainInputs")
				equal(s, fmt.Sprintf("gated %s, number %d", when, ahead), c.Run.Gated, true)
				equal(s, fmt.Sprintf("ahead %s of number %d", when, ahead), c.AheadInLine, ahead)
			}
		}
		line("at first", urgent, first, last)
		s.pass(engine.StarvationAfter - time.Second)
		line("when the first has waited long", first, urgent, last)
		s.finish(l, "done")
		equal(s, "claimed", s.claim("w1").Run.ID, first)
	}},
	{"a gated run does not stand in the way of others", func(s *stage) {
		s.held(keyed("k", 1))
		for range 20 {
			s.start(keyed("k", 1))
		}
		other, free := s.start(keyed("other", 1)), s.start()
		s.sameIDs("claimed", s.claimedIDs("w1", 2), []engine.ID{other, free})
		s.claimNothing("w1")
		equal(s, "claimed with a new arrival", s.start() == s.claim("w1").Run.ID, true)
	}},
	{"who finds no room by its own limit keeps nobody back who does", func(s *stage) {
		s.worker("w1")
		several := func(n int) (ids []engine.ID) {
			for range n {
				ids = append(ids, s.start(keyed("k", 2)))
			}
			return ids
		}
		many := several(2)
		s.sameIDs("claimed at first", s.claimedIDs("w1", 2), many)
		s.pass(time.Second)
		strict := s.start(keyed("k", 1))
		s.pass(time.Second)
		next := several(3)
		s.claimNothing("w1")
		end := func(id engine.ID) { s.finish(s.leaseOf(id), "done") }
		gated := func(when string, want ...engine.ID) {
			s.Helper()
			var got []engine.ID
			for _, id := range append([]engine.ID{strict}, next...) {
				if s.run(id).Gated {
					got = append(got, id)
				}
			}
			s.sameIDs("gated "+when, got, want)
		}
		gated("while two hold the key", strict, next[0], next[1], next[2])
		end(many[0])
		gated("while one holds it", strict, next[1], next[2])
		s.sameIDs("claimed then", s.claimedIDs("w1", 4), next[:1])
		end(many[1])
		gated("while the next holds it", strict, next[2])
		end(next[0])
		gated("while nobody holds it")
		s.sameIDs("claimed in the order of their arrival", s.claimedIDs("w1", 4), []engine.ID{strict, next[1]})
		end(strict)
		s.sameIDs("claimed in the end", s.claimedIDs("w1", 4), next[2:])
	}},
	{"keys are apart by type and namespace", func(s *stage) {
		w := s.newWorker("w1")
		w.Types = []string{kind, "other"}
		s.register(w, true)
		a := s.start(keyed("k", 1))
		b := s.start(keyed("k", 1), ofType("other"))
		s.sameIDs("claimed", s.claimedIDs("w1", 4, func(p *engine.ClaimParams) { p.Types = []string{kind, "other"} }), []engine.ID{a, b})
		elsewhere := s.newWorker("w2")
		elsewhere.Namespace = "elsewhere"
		s.register(elsewhere, true)
		c := s.start(keyed("k", 1), inSpace("elsewhere"))
		s.sameIDs("claimed elsewhere", s.claimedIDs("w2", 4, func(p *engine.ClaimParams) { p.Namespace = "elsewhere" }), []engine.ID{c})
	}},
	{"a claim makes of a run with a key and of its steps what it makes of others", func(s *stage) {
		for _, key := range []func(*engine.StartRun){func(*engine.StartRun) {}, keyed("k", 1)} {
			began := s.now
			first := s.held(key, withTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
			s.complete(first, "pay", "paid")
			s.await(first, "approval", "approved", atMost(time.Minute), holdingOn)
			s.sleep(first, "nap", time.Minute)
			s.pass(time.Minute)
			over := s.now
			s.pass(time.Second)
			s.heartbeat("w1")
			task := s.claim("w1")
			equal(s, "status", task.Run.Status, engine.RunRunning)
			equal(s, "waiting for", task.Run.WaitingFor, "")
			s.sameTime("started at", task.Run.StartedAt, began)
			equal(s, "steps in the history", len(task.History), 3)
			for _, step := range task.History {
				equal(s, "status of "+step.Name, step.Status, engine.StepCompleted)
				equal(s, step.Name+" timed out", step.TimedOut, step.Name == "approval")
				equal(s, step.Name+" is awaited", step.Awaited, 0)
				if step.Name != "pay" {
					s.sameTime("end of "+step.Name, step.FinishedAt, over)
				}
			}
			equal(s, "place of the next step", s.complete(task.Lease, "ship", "shipped").Sequence, 4)
			run := s.run(task.Run.ID)
			equal(s, "steps", run.Steps, 4)
			equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")+len("shipped")))
			s.pass(42 * time.Second)
			equal(s, "freed with its worker", s.offline("w1", engine.OfflineLost), 0)
			freed := s.freeLost(s.now)
			equal(s, "freed later", len(freed.Runs), 0)
			s.sameTime("next", freed.Next, over.Add(time.Second+time.Hour))
			s.worker("w1")
			s.finish(task.Lease, "done")
		}
	}},
	{"runs with keys are taken in the order of all", func(s *stage) {
		s.worker("w1")
		low := s.start(keyed("a", 1))
		s.pass(time.Second)
		high := s.start(keyed("b", 1), withPriority(5))
		next := s.start(withPriority(5))
		last := s.start(keyed("c", 1), withPriority(5))
		s.sameIDs("claimed by priority", s.claimedIDs("w1", 1), []engine.ID{high})
		s.pass(engine.StarvationAfter - time.Second)
		s.sameIDs("claimed when one has waited long", s.claimedIDs("w1", 9), []engine.ID{low, next, last})
	}},
	{"a run with a key goes only to offers that meet its requirements", func(s *stage) {
		s.worker("w1")
		s.start(keyed("a", 1), requiring("gpu", ""))
		eu := s.start(keyed("b", 1), requiring("zone", "eu"))
		plain := s.start(keyed("c", 1))
		in := func(zone string) func(*engine.ClaimParams) {
			return func(p *engine.ClaimParams) { p.Offers = []engine.Offer{{Key: "zone", Value: zone}} }
		}
		s.sameIDs("claimed in another zone", s.claimedIDs("w1", 9, in("us")), []engine.ID{plain})
		next := s.start(keyed("d", 1))
		s.sameIDs("claimed in the zone", s.claimedIDs("w1", 9, in("eu")), []engine.ID{eu, next})
	}},
	{"limits count for a run with a key what they count for others", func(s *stage) {
		s.worker("w1")
		for _, other := range []struct{ space, queue string }{{space, "second"}, {"other", queue}} {
			s.start(inSpace(other.space), inQueue(other.queue), keyed("k", 1))
			away := func(p *engine.ClaimParams) { p.Namespace, p.Queue = other.space, other.queue }
			equal(s, "tasks of "+other.space+"/"+other.queue, len(s.claimLimited(1, away).Tasks), 1)
		}
		for range 3 {
			s.start(keyed("several", 9))
		}
		for name, limit := range map[string]func(*engine.ClaimParams){"the queue": queueLimit(1), "the type": typeLimit(kind, 1)} {
			claimed := s.claimLimited(3, limit)
			equal(s, "tasks under the limit of "+name, len(claimed.Tasks), 1)
			equal(s, "limited", claimed.Limited, true)
			equal(s, "tasks at the limit of "+name, len(s.claimLimited(3, limit).Tasks), 0)
			s.finish(claimed.Tasks[0].Lease, "done")
		}
	}},
	{"a slot is free again whatever ends the lease", func(s *stage) {
		for name, end := range map[string]func(l engine.Lease){
			"complete":  func(l engine.Lease) { s.finish(l, "") },
			"fail":      func(l engine.Lease) { s.failRun(l, "no") },
			"cancel":    func(l engine.Lease) { s.cancel(l.RunID) },
			"terminate": func(l engine.Lease) { _, _ = s.store.TerminateRun(s.ctx, s.endParams(l.RunID, "")) },
			"pause":     func(l engine.Lease) { s.pause(l.RunID) },
			"sleep":     func(l engine.Lease) { s.sleep(l, "nap", 24*time.Hour) },
			"retry":     func(l engine.Lease) { s.fail(l, "pay", "no") },
			"signal":    func(l engine.Lease) { s.await(l, "approval", "approval") },
			"loss":      func(l engine.Lease) { s.lose("w1"); s.cancel(l.RunID) },
			"continue": func(l engine.Lease) {
				next := engine.StartRun{Run: engine.Run{ID: s.id(), AvailableAt: s.now.Add(time.Hour)}}
				s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
			},
		} {
			key := keyed("key-"+name, 1)
			s.worker("w1")
			first := s.start(key)
			s.pass(time.Millisecond)
			task := s.claim("w1")
			equal(s, "claimed for "+name, task.Run.ID, first)
			second := s.start(key)
			s.pass(time.Millisecond)
			s.claimNothing("w1")
			equal(s, "gated by "+name, s.run(second).Gated, true)
			end(task.Lease)
			next := s.claim("w1")
			equal(s, "claimed after "+name, next.Run.ID, second)
			s.finish(next.Lease, "")
			s.cancelOpen(first)
		}
	}},
	{"a run that sleeps holds no slot, and waits in line when it wakes", func(s *stage) {
		l := s.held(keyed("k", 1))
		s.sleep(l, "nap", time.Minute)
		second := s.start(keyed("k", 1))
		next := s.claim("w1")
		equal(s, "claimed", next.Run.ID, second)
		s.pass(time.Minute)
		s.claimNothing("w1")
		run := s.run(l.RunID)
		equal(s, "gated", run.Gated, true)
		equal(s, "status", run.Status, engine.RunSleeping)
		s.finish(next.Lease, "")
		equal(s, "claimed", s.claim("w1").Run.ID, l.RunID)
	}},
	{"a run in a queue without workers does not keep the slot from others", func(s *stage) {
		l := s.held(keyed("k", 1))
		away := s.start(keyed("k", 1), inQueue("nobody"))
		s.pass(time.Second)
		here := s.start(keyed("k", 1))
		s.pass(time.Second)
		s.claimNothing("w1")
		s.finish(l, "done")
		equal(s, "claimed", s.claim("w1").Run.ID, here)
		s.status(away, engine.RunPending)
	}},
	{"a run that had its turn and is cancelled passes it on", func(s *stage) {
		for _, how := range []func(engine.ID){func(id engine.ID) { s.cancel(id) }, func(id engine.ID) { s.pause(id) }} {
			l := s.held(keyed("k", 1))
			second := s.start(keyed("k", 1))
			s.pass(time.Second)
			third := s.start(keyed("k", 1))
			s.pass(time.Second)
			s.claimNothing("w1")
			s.finish(l, "done")
			equal(s, "second gated", s.run(second).Gated, false)
			how(second)
			next := s.claim("w1")
			equal(s, "claimed", next.Run.ID, third)
			s.finish(next.Lease, "")
			s.cancelOpen(second)
		}
	}},
	{"a gated run can be cancelled, paused and resumed, and timed out", func(s *stage) {
		l := s.held(keyed("k", 1))
		cancelled, paused := s.start(keyed("k", 1)), s.start(keyed("k", 1))
		late := s.start(keyed("k", 1), func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Second) })
		s.claimNothing("w1")
		s.cancel(cancelled)
		s.pause(paused)
		s.pass(time.Second)
		s.expire()
		s.status(late, engine.RunTimedOut)
		s.finish(l, "done")
		s.claimNothing("w1")
		s.resume(paused)
		equal(s, "claimed", s.claim("w1").Run.ID, paused)
	}},
	{"a run's own limit counts", func(s *stage) {
		s.held(keyed("k", 3))
		tight, loose := s.start(keyed("k", 1)), s.start(keyed("k", 3))
		s.sameIDs("claimed", s.claimedIDs("w1", 5), []engine.ID{loose})
		equal(s, "gated", s.run(tight).Gated, true)
	}},
	{"claims at the same time never pass the limit, and none is left behind", func(s *stage) {
		s.takeInTurn(60, 3, func(int) int { return 3 })
	}},
	{"of runs whose limits differ none is left behind either", func(s *stage) {
		s.takeInTurn(60, 3, func(i int) int { return 1 + i%3 })
	}},
	{"a gated run that ends leaves its place to the next", func(s *stage) {
		l := s.held(keyed("k", 1))
		gone, next := s.start(keyed("k", 1)), s.start(keyed("k", 1))
		s.claimNothing("w1")
		s.cancel(gone)
		ended := s.status(gone, engine.RunCancelled)
		equal(s, "gated after its end", ended.Gated, false)
		s.finish(l, "done")
		s.status(gone, engine.RunCancelled)
		equal(s, "claimed", s.claim("w1").Run.ID, next)
	}},
	{"a run that slept before it was gated sleeps for the same when it is let through", func(s *stage) {
		sleeper := s.held(keyed("k", 1))
		s.sleep(sleeper, "nap", time.Minute)
		wake := s.now.Add(time.Minute)
		l := s.heldNext(keyed("k", 1))
		s.pass(time.Hour)
		s.claimNothing("w1")
		equal(s, "gated", s.run(sleeper.RunID).Gated, true)
		s.finish(l, "done")
		s.parked(sleeper.RunID, "timer:nap", wake)
	}},
	{"the slots of a key, and the line for them, are those of its own name, type and namespace", func(s *stage) {
		s.worker("w1")
		w := s.newWorker("w2")
		w.Namespace = "other"
		s.register(w, true)
		claim := func(in string) (tasks []engine.Task) {
			s.Helper()
			for worker, namespace := range map[string]string{"w1": space, "w2": "other"} {
				p := s.claimParams(worker, worker, worker)
				p.Namespace, p.Queue, p.Types = namespace, in, []string{kind, "another"}
				tasks = append(tasks, s.claimWith(p).Tasks...)
			}
			return tasks
		}
		s.start(inQueue("elsewhere"), keyed("a", 1))
		equal(s, "claimed elsewhere", len(claim("elsewhere")), 1)
		type line struct {
			namespace       string
			changes         []func(*engine.StartRun)
			inQueue, ofType int
			lease           engine.Lease
			waits           engine.ID
		}
		lines := []*line{
			{space, []func(*engine.StartRun){keyed("k", 1)}, 3, 2, engine.Lease{}, engine.ID{}},
			{space, []func(*engine.StartRun){keyed("l", 1), withPriority(5)}, 3, 2, engine.Lease{}, engine.ID{}},
			{space, []func(*engine.StartRun){keyed("k", 1), ofType("another")}, 3, 1, engine.Lease{}, engine.ID{}},
			{"other", []func(*engine.StartRun){keyed("k", 1), inSpace("other")}, 1, 1, engine.Lease{}, engine.ID{}},
		}
		wait := func(l *line) {
			s.Helper()
			l.waits = s.start(l.changes...)
			s.pass(time.Second)
			equal(s, "claimed of a key that has no slot", len(claim(queue)), 0)
		}
		for _, l := range lines {
			s.start(l.changes...)
			tasks := claim(queue)
			equal(s, "claimed", len(tasks), 1)
			l.lease = tasks[0].Lease
			wait(l)
		}
		for i, l := range lines {
			s.finish(l.lease, "done")
			for j, other := range lines {
				run, err := s.store.GetRun(s.ctx, other.namespace, other.waits)
				s.must(err, "GetRun")
				equal(s, fmt.Sprintf("gated in line %d after the end in line %d", j, i), run.Gated, j != i)
			}
			tasks := claim(queue)
			equal(s, "claimed after the end", len(tasks), 1)
			equal(s, "run that was claimed", tasks[0].Run.ID, l.waits)
			l.lease = tasks[0].Lease
			wait(l)
		}
		n, err := s.store.GetNamespace(s.ctx, "other")
		s.must(err, "GetNamespace")
		n.Enabled = false
		_, err = s.store.UpdateNamespace(s.ctx, engine.NamespaceParams{Namespace: n, Method: "DisableNamespace", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateNamespace")
		for _, l := range lines {
			c, err := s.store.ExplainInputs(s.ctx, l.namespace, l.waits, s.now)
			s.must(err, "ExplainInputs")
			equal(s, "namespace is enabled", c.NamespaceEnabled, l.namespace == space)
			equal(s, "running in the queue", c.RunningInQueue, l.inQueue)
			equal(s, "running of the type", c.RunningOfType, l.ofType)
			equal(s, "running of the key", c.RunningOfKey, 1)
			equal(s, "ahead in the line", c.AheadInLine, 0)
		}
	}},
	{"the first in the line is who was due first, and not who was started first", func(s *stage) {
		l := s.held(keyed("k", 1))
		due := s.now.Add(time.Minute)
		var first, second []engine.ID
		for _, priority := range []int{0, 5} { // each a lane of its own
			second = append(second, s.start(keyed("k", 1), withPriority(priority), dueAt(due.Add(time.Second))))
			first = append(first, s.start(keyed("k", 1), withPriority(priority), dueAt(due)))
		}
		s.pass(time.Hour)
		for range 3 { // a claim that finds a lane held up looks no further in it
			s.claimNothing("w1")
		}
		s.finish(l, "done")
		for i := range first {
			equal(s, "gated who was due first", s.run(first[i]).Gated, false)
			equal(s, "gated who was due next", s.run(second[i]).Gated, true)
		}
	}},
}

// takeInTurn has claimants at work at the same time on runs of one key, whose limits are at most limit, until all are done.
func (s *stage) takeInTurn(runs, limit int, limitOf func(i int) int) {
	s.Helper()
	const claimants = 8
	for i := range claimants {
		s.worker(fmt.Sprint("w", i))
	}
	for i := range runs {
		s.start(keyed("k", limitOf(i)))
	}
	var mu sync.Mutex
	holding, most, done := 0, 0, 0
	var group sync.WaitGroup
	for i := range claimants {
		mint := &mint{n: uint64(i+1) << 32}
		worker := fmt.Sprint("w", i)
		group.Go(func() {
			for {
				mu.Lock()
				over := done == runs
				mu.Unlock()
				if over || s.ctx.Err() != nil {
					return
				}
				p := engine.ClaimParams{Namespace: space, Queue: queue, Types: []string{kind}, HistoryBytes: 1, Now: s.now,
					Slots: []engine.ClaimSlot{{WorkerID: worker, Token: mint.token()}, {WorkerID: worker, Token: mint.token()}}}
				claimed, err := s.store.Claim(s.ctx, p)
				if err != nil {
					return
				}
				mu.Lock()
				holding += len(claimed.Tasks)
				most = max(most, holding)
				mu.Unlock()
				for _, task := range claimed.Tasks {
					mu.Lock()
					holding-- // before it is free, so that the count is never too high
					done++
					mu.Unlock()
					if _, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Lease: task.Lease, Now: s.now}); err != nil {
						return
					}
				}
			}
		})
	}
	group.Wait()
	if most > limit || done != runs {
		s.Fatalf("at most %d held at a time and %d of %d done, want at most %d and all", most, done, runs, limit)
	}
}

// cancelOpen cancels a run unless it has ended already.
func (s *stage) cancelOpen(run engine.ID) {
	s.Helper()
	if !s.run(run).Status.Ended() {
		s.cancel(run)
	}
}
