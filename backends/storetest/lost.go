package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var lostCases = []testCase{
	{"a lost worker's run is due at once, one loss counted and no attempt", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.pass(time.Minute)
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 1)
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, s.now)
		equal(s, "losses", run.LeaseLosses, 1)
		equal(s, "attempts", run.Attempts, 1)
		equal(s, "failures", run.Failures, 0)
		equal(s, "worker", run.WorkerID, "")
		equal(s, "pay is interrupted", ptr(s.step(l.RunID, "pay")).Interrupted(), true)
		equal(s, "reason", s.workerState("w1").Reason, engine.OfflineLost)
	}},
	{"a second look that heard the worker changes nothing", func(s *stage) {
		l := s.held()
		heard := s.now
		s.pass(time.Minute)
		s.heartbeat("w1")
		look := engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard, Now: s.now}
		taken, err := s.store.ForceOfflineWorker(s.ctx, look)
		s.must(err, "ForceOfflineWorker")
		equal(s, "taken off", taken, engine.TakenOff{})
		equal(s, "status", s.workerState("w1").Status, engine.WorkerOnline)
		s.complete(l, "pay", "paid")
		look.HeardAt = s.now
		taken, err = s.store.ForceOfflineWorker(s.ctx, look)
		s.must(err, "OfflineWorker with the newest heartbeat")
		equal(s, "taken off", taken, engine.TakenOff{Off: true, Freed: 1})
		taken, err = s.store.ForceOfflineWorker(s.ctx, look)
		s.must(err, "OfflineWorker of one that is OFFLINE, as another server calls it")
		equal(s, "taken off", taken, engine.TakenOff{})
	}},
	{"a heartbeat counts although the clock was set back", func(s *stage) {
		l := s.held()
		heard, before := s.workerState("w1").LastHeartbeatAt, s.now
		s.now = s.now.Add(-time.Hour)
		for range 2 {
			s.heartbeat("w1")
			after := s.workerState("w1").LastHeartbeatAt
			if !after.After(heard) {
				s.Fatalf("last heartbeat = %s after a heartbeat, want later than the one before, %s", clock(after), clock(heard))
			}
			taken, err := s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard, Now: s.now})
			s.must(err, "ForceOfflineWorker")
			equal(s, "taken off", taken, engine.TakenOff{})
			heard = after
		}
		s.complete(l, "pay", "paid")
		s.now = before.Add(time.Minute)
		s.heartbeat("w1")
		s.sameTime("last heartbeat", s.workerState("w1").LastHeartbeatAt, s.now)
	}},
	{"a worker that registers again is heard from although the clock was set back", func(s *stage) {
		l := s.held()
		heard := s.workerState("w1").LastHeartbeatAt
		s.now = s.now.Add(-time.Hour)
		for range 2 {
			again := s.register(s.newWorker("w1"), true)
			after := s.workerState("w1").LastHeartbeatAt
			if !after.After(heard) {
				s.Fatalf("last heartbeat = %s after the worker registered again, want later than the one before, %s", clock(after), clock(heard))
			}
			s.sameTime("last heartbeat that it is told", again.LastHeartbeatAt, after)
			taken, err := s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard, Now: s.now})
			s.must(err, "ForceOfflineWorker")
			equal(s, "taken off", taken, engine.TakenOff{})
			heard = after
		}
		s.complete(l, "pay", "paid")
	}},
	{"a worker that is lost after the clock was set back gives up what it held", func(s *stage) {
		plain := s.held()
		long := s.held(func(r *engine.StartRun) { r.Timeouts.Heartbeat = time.Minute })
		s.now = s.now.Add(-time.Hour)
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 1)
		s.status(plain.RunID, engine.RunPending)
		next := s.freeLost(s.now).Next
		s.sameTime("when the other is freed", next, s.now.Add(time.Minute))
		s.now = next
		equal(s, "freed by its own heartbeat timeout", idsText(s.freeLost(s.now).Runs), idsText([]engine.ID{long.RunID}))
		s.status(long.RunID, engine.RunPending)
	}},
	{"the delay grows from the second loss on, and the tenth in a row fails the run", func(s *stage) {
		l := s.held()
		for n := 1; n < engine.MaxLeaseLosses; n++ {
			s.pass(time.Second)
			s.offline("w1", engine.OfflineLost)
			want := engine.AfterLeaseLost(n-1, false, s.now)
			run := s.status(l.RunID, engine.RunPending)
			equal(s, "losses", run.LeaseLosses, n)
			s.sameTime("available at", run.AvailableAt, want.AvailableAt)
			s.worker("w1")
			if n > 1 {
				s.sameTime("next due", s.claimNothing("w1").NextDue, want.AvailableAt)
			}
			s.now = want.AvailableAt
			l = s.claim("w1").Lease
		}
		s.begin(l, "pay")
		s.pass(time.Second)
		s.offline("w1", engine.OfflineLost)
		run := s.status(l.RunID, engine.RunFailed)
		s.failure("error", run.Error, engine.CrashedFailure())
		equal(s, "losses", run.LeaseLosses, engine.MaxLeaseLosses)
		equal(s, "attempts", run.Attempts, 1)
		s.sameTime("finished at", run.FinishedAt, s.now)
		s.failure("error of the open step", s.step(l.RunID, "pay").Error, engine.RunEndedFailure())
		s.worker("w1")
		s.pass(time.Hour)
		s.claimNothing("w1")
		s.lost(s.tryFinish(l, "late"), engine.RunFailed, "CompleteRun")
	}},
	{"a step's result starts the count of losses anew", func(s *stage) {
		l := s.heldAfterLosses(3)
		equal(s, "losses", s.run(l.RunID).LeaseLosses, 3)
		s.complete(l, "pay", "paid")
		s.lose("w1")
		run := s.run(l.RunID)
		equal(s, "losses", run.LeaseLosses, 1)
		s.sameTime("available at", run.AvailableAt, s.now)
		s.claim("w1")
		s.lose("w1")
		run = s.run(l.RunID)
		equal(s, "losses after one without a result", run.LeaseLosses, 2)
		s.sameTime("available at", run.AvailableAt, s.now.Add(time.Second))
	}},
	{"a signal that is taken starts the count of losses anew, one that is waited for does not", func(s *stage) {
		l := s.heldAfterLosses(3)
		s.await(l, "paid?", "paid", holdingOn)
		s.lose("w1")
		equal(s, "losses after one that waited", s.run(l.RunID).LeaseLosses, 4)
		s.signal(l.RunID, "shipped", "yes")
		s.pass(time.Hour)
		l = s.claim("w1").Lease
		s.await(l, "shipped?", "shipped")
		s.lose("w1")
		equal(s, "losses after one that took a signal", s.run(l.RunID).LeaseLosses, 1)
	}},
	{"a step's result counts anew also when the lease ended otherwise", func(s *stage) {
		l := s.heldAfterLosses(3)
		s.complete(l, "pay", "paid")
		s.release(l, false)
		s.claim("w1")
		s.lose("w1")
		equal(s, "losses", s.run(l.RunID).LeaseLosses, 1)
	}},
	{"a release between losses neither counts nor forgives", func(s *stage) {
		s.held()
		s.lose("w1")
		l := s.claim("w1").Lease
		s.release(l, false)
		s.claim("w1")
		s.lose("w1")
		equal(s, "losses", s.run(l.RunID).LeaseLosses, 2)
	}},
	{"a run's own heartbeat timeout lengthens its lease beyond its worker's", func(s *stage) {
		longer := s.held(withTimeouts(engine.Timeouts{Heartbeat: 10 * time.Minute}))
		long := s.heldNext(withTimeouts(engine.Timeouts{Heartbeat: 5 * time.Minute}))
		short := s.heldNext(withTimeouts(engine.Timeouts{Heartbeat: time.Second}))
		plain := s.heldNext()
		heard := s.now
		s.pass(42 * time.Second)
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 2)
		s.status(short.RunID, engine.RunPending)
		s.status(plain.RunID, engine.RunPending)
		s.status(long.RunID, engine.RunRunning)
		s.complete(long, "pay", "its token still counts")

		free := func(at time.Time, want []engine.ID, next time.Time) {
			s.Helper()
			freed := s.freeLost(at)
			equal(s, "freed", idsText(freed.Runs), idsText(want))
			s.sameTime("next", freed.Next, next)
			s.now = at
		}
		free(s.now, nil, heard.Add(5*time.Minute))
		free(heard.Add(5*time.Minute-time.Microsecond), nil, heard.Add(5*time.Minute))
		free(heard.Add(5*time.Minute), []engine.ID{long.RunID}, heard.Add(10*time.Minute))
		run := s.status(long.RunID, engine.RunPending)
		equal(s, "losses", run.LeaseLosses, 1)
		s.sameTime("available at", run.AvailableAt, s.now)
		_, err := s.tryComplete(long, "ship", "late")
		s.lost(err, engine.RunPending, "CompleteStep")
		free(heard.Add(time.Hour), []engine.ID{longer.RunID}, time.Time{})
		s.status(longer.RunID, engine.RunPending)
		free(heard.Add(2*time.Hour), nil, time.Time{})
	}},
	{"a lease that outlived its worker is safe again when the instance comes back", func(s *stage) {
		l := s.held(withTimeouts(engine.Timeouts{Heartbeat: 5 * time.Minute}))
		s.pass(time.Minute)
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 0)
		s.worker("w1")
		freed := s.freeLost(s.now.Add(time.Hour))
		equal(s, "freed", len(freed.Runs), 0)
		s.sameTime("next", freed.Next, time.Time{})
		s.complete(l, "pay", "paid")
	}},
	{"a takeover of an OFFLINE id frees what the old instance still held, as lost", func(s *stage) {
		l := s.held(withTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
		s.pass(time.Minute)
		s.offline("w1", engine.OfflineLost)
		s.status(l.RunID, engine.RunRunning)
		heir := s.newWorker("w1")
		heir.InstanceID = "heir"
		s.register(heir, true)
		run := s.status(l.RunID, engine.RunPending)
		equal(s, "losses", run.LeaseLosses, 1)
		equal(s, "leases of the heir", len(s.heldBy("w1")), 0)
		_, err := s.tryComplete(l, "pay", "late")
		s.lost(err, engine.RunPending, "CompleteStep")
	}},
	{"a worker that holds very many is rid of them in portions, each a commit of its own", func(s *stage) {
		const many = 250
		for _, reason := range []engine.OfflineReason{engine.OfflineLost, engine.OfflineForced, engine.OfflineDeregistered} {
			s.worker("w1")
			s.holdMany("w1", many)
			before, _ := s.commits()
			equal(s, "freed", s.offline("w1", reason), many)
			if c, known := s.commits(); known && c-before < 3 {
				s.Fatalf("commits for %d runs of a worker = %d, want several", many, c-before)
			}
			equal(s, "leases", len(s.heldBy("w1")), 0)
			equal(s, "freed again", s.offline("w1", reason), 0)
			equal(s, "claimed by another", len(s.claimedIDs(s.worker(fmt.Sprintf("heir-%d", reason)), many+1)), many)
		}
	}},
	{"a takeover of the id of one that holds very many frees them in portions, as lost", func(s *stage) {
		const many = 250
		s.worker("w1")
		s.holdMany("w1", many, withTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
		s.pass(time.Minute)
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 0)
		heir := s.newWorker("w1")
		heir.InstanceID = "heir"
		before, _ := s.commits()
		equal(s, "status", s.register(heir, true).Status, engine.WorkerOnline)
		if c, known := s.commits(); known && c-before < 3 {
			s.Fatalf("commits for %d runs of an old instance = %d, want several", many, c-before)
		}
		equal(s, "leases", len(s.heldBy("w1")), 0)
		for _, id := range s.claimedIDs("w1", many) {
			if losses := s.run(id).LeaseLosses; losses != 1 {
				s.Fatalf("losses = %d, want 1", losses)
			}
		}
	}},
	{"runs that outlive a lost worker in great numbers are freed in portions, and keep none of the others from it", func(s *stage) {
		const many = 250
		s.worker("w1")
		s.holdMany("w1", many, withTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
		s.holdMany("w1", many)
		heard := s.now
		s.pass(time.Minute)
		equal(s, "freed", s.offline("w1", engine.OfflineLost), many)
		s.now = heard.Add(time.Hour)
		for left := many; left > 0; {
			freed := s.freeLost(s.now)
			n := len(freed.Runs)
			if n == 0 || n == many {
				s.Fatalf("FreeLost freed %d of %d, want a portion", n, many)
			}
			if left -= n; left > 0 {
				s.sameTime("next", freed.Next, s.now)
			} else {
				s.sameTime("next", freed.Next, time.Time{})
			}
		}
		equal(s, "leases", len(s.heldBy("w1")), 0)
	}},
	{"a lost worker is not forgotten while a run outlives it", func(s *stage) {
		l := s.held(withTimeouts(engine.Timeouts{Heartbeat: 48 * time.Hour}))
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 0)
		s.pass(24 * time.Hour)
		s.pruneRecords(engine.PruneRecordsParams{Workers: s.now, Limit: 10})
		equal(s, "status", s.workerState("w1").Status, engine.WorkerOffline)
		s.pass(24 * time.Hour)
		equal(s, "freed when its time is over", idsText(s.freeLost(s.now).Runs), l.RunID.String())
		s.status(l.RunID, engine.RunPending)
		s.pruneRecords(engine.PruneRecordsParams{Workers: s.now, Limit: 10})
		_, err := s.store.GetWorker(s.ctx, "w1")
		s.refused(err, engine.ErrNotFound, "GetWorker")
	}},
	{"losing one worker leaves the others alone", func(s *stage) {
		s.held()
		s.worker("w2")
		s.start()
		theirs := s.claim("w2").Lease
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 1)
		s.complete(theirs, "pay", "paid")
		equal(s, "losses", s.run(theirs.RunID).LeaseLosses, 0)
		equal(s, "leases of w2", len(s.heldBy("w2")), 1)
	}},
	{"a draining worker can be lost too", func(s *stage) {
		l := s.held()
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker")
		equal(s, "freed", s.offline("w1", engine.OfflineLost), 1)
		s.status(l.RunID, engine.RunPending)
	}},
	{"a timer and a retry survive the loss of the worker", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Hour, held)
		v := s.fail(l, "pay", "no", holding)
		wake := s.now.Add(time.Hour)
		s.lose("w1")
		l = s.claim("w1").Lease
		s.sameTime("wake at", s.step(l.RunID, "nap").WakeAt, wake)
		s.sameTime("retry at", s.step(l.RunID, "pay").RetryAt, v.RetryAt)
		s.release(l, true)
		s.sameTime("available at", s.run(l.RunID).AvailableAt, v.RetryAt)
	}},
}
