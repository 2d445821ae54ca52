package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

var workerCases = []testCase{
	{"a registered worker is ONLINE and stands as it described itself", func(s *stage) {
		w := s.newWorker("w1")
		w.Queues, w.Types = []string{"b", "a", "B"}, []string{"z", "y"}
		w.Labels, w.Capabilities = map[string]string{"zone": "eu"}, map[string]string{"gpu": "a100", "ram": ""}
		w.MaxConcurrent, w.QueueLimit, w.TypeLimits = 5, 3, map[string]int{"y": 2}
		ignored := w
		ignored.Status, ignored.Reason, ignored.Active, ignored.Completed, ignored.Failed = engine.WorkerOffline, engine.OfflineLost, 9, 9, 9
		ignored.Stats, ignored.RegisteredAt, ignored.DeregisteredAt = engine.WorkerStats{CPUPercent: 9}, s.now.Add(-time.Hour), s.now
		got := s.register(ignored, true)
		w.Status, w.RegisteredAt, w.LastHeartbeatAt = engine.WorkerOnline, s.now, s.now
		s.sameText("worker", workerText(got), workerText(w))
		s.sameText("worker", workerText(s.workerState("w1")), workerText(w))
	}},
	{"a worker's namespace comes into being with it, and an unknown worker is not found", func(s *stage) {
		w := s.newWorker("w1")
		w.Namespace = "brand-new"
		s.register(w, true)
		equal(s, "namespace", s.workerState("w1").Namespace, "brand-new")
		_, err := s.store.GetWorker(s.ctx, "w2")
		s.refused(err, engine.ErrNotFound, "GetWorker")
	}},
	{"the same instance gets its id back and keeps its leases", func(s *stage) {
		l := s.held()
		again := s.newWorker("another-id")
		again.InstanceID, again.Hostname, again.Queues = "instance-w1", "moved", []string{queue, "more"}
		again.Types, again.PID, again.Version, again.Platform = []string{kind, "other"}, 8, "2", "linux/arm64"
		again.Labels, again.Capabilities = map[string]string{"zone": "eu"}, map[string]string{"gpu": "a100"}
		again.MaxConcurrent, again.QueueLimit, again.TypeLimits = 5, 3, map[string]int{"other": 2}
		s.pass(time.Second)
		for _, chosen := range []bool{false, true} {
			got := s.register(again, chosen)
			equal(s, "id", got.ID, "w1")
			equal(s, "status", got.Status, engine.WorkerOnline)
			equal(s, "host", got.Hostname, "moved")
			equal(s, "queues", len(got.Queues), 2)
			s.sameTime("heard from", got.LastHeartbeatAt, s.now)
			s.sameText("worker", workerText(s.workerState("w1")), workerText(got))
		}
		_, err := s.store.GetWorker(s.ctx, "another-id")
		s.refused(err, engine.ErrNotFound, "GetWorker")
		elsewhere := again
		elsewhere.Namespace = "elsewhere"
		equal(s, "id of an instance of that name in another namespace", s.register(elsewhere, true).ID, "another-id")
		s.complete(l, "pay", "paid")
		equal(s, "leases", len(s.heldBy("w1")), 1)
	}},
	{"the same instance stays DRAINING, and comes back ONLINE from OFFLINE", func(s *stage) {
		s.worker("w1")
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker")
		equal(s, "status", s.register(s.newWorker("w1"), true).Status, engine.WorkerDraining)
		for _, reason := range []engine.OfflineReason{engine.OfflineDeregistered, engine.OfflineLost, engine.OfflineForced} {
			s.offline("w1", reason)
			got := s.register(s.newWorker("w1"), true)
			equal(s, "status", got.Status, engine.WorkerOnline)
			equal(s, "reason", got.Reason, 0)
			s.sameTime("deregistered at", got.DeregisteredAt, time.Time{})
			s.sameText("worker", workerText(s.workerState("w1")), workerText(got))
		}
		s.start()
		s.claim("w1")
	}},
	{"an id that another instance uses is taken", func(s *stage) {
		s.worker("w1")
		thief := s.newWorker("w1")
		thief.InstanceID = "thief"
		try := func() error {
			_, err := s.store.RegisterWorker(s.ctx, engine.RegisterWorkerParams{Worker: thief, Chosen: true, Now: s.now})
			return err
		}
		s.refused(try(), engine.ErrExists, "RegisterWorker of an ONLINE id")
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker")
		s.refused(try(), engine.ErrExists, "RegisterWorker of a DRAINING id")
		equal(s, "instance", s.workerState("w1").InstanceID, "instance-w1")
	}},
	{"the id of an OFFLINE worker is taken over with totals at zero", func(s *stage) {
		s.worker("w1")
		s.heartbeat("w1", func(p *engine.HeartbeatParams) {
			p.Active, p.Completed, p.Failed, p.Stats = 1, 5, 2, &engine.WorkerStats{CPUPercent: 50}
		})
		s.offline("w1", engine.OfflineDeregistered)
		s.pass(time.Hour)
		heir := s.newWorker("w1")
		heir.InstanceID = "heir"
		got := s.register(heir, true)
		want := heir
		want.Status, want.RegisteredAt, want.LastHeartbeatAt = engine.WorkerOnline, s.now, s.now
		s.sameText("worker", workerText(got), workerText(want))
		s.sameText("worker", workerText(s.workerState("w1")), workerText(want))
		_, _, err := s.store.ListWorkers(s.ctx, engine.WorkerFilter{}, engine.Page{Limit: 10})
		s.must(err, "ListWorkers")
	}},
	{"an instance whose id was taken over is a new worker", func(s *stage) {
		s.worker("w1")
		s.offline("w1", engine.OfflineLost)
		heir := s.newWorker("w1")
		heir.InstanceID = "heir"
		s.register(heir, true)
		old := s.newWorker("w2")
		old.InstanceID = "instance-w1"
		equal(s, "id", s.register(old, false).ID, "w2")
		equal(s, "instance of w1", s.workerState("w1").InstanceID, "heir")
	}},
	{"a heartbeat adds up what was done and shows what is", func(s *stage) {
		s.worker("w1")
		stats := engine.WorkerStats{CPUPercent: 12.5, MemoryBytes: 1 << 40, DiskAvailableBytes: 3, UptimeSeconds: 4, AverageRunMS: 0.25}
		s.pass(time.Second)
		beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Active, p.Completed, p.Failed, p.Stats = 3, 10, 1, &stats })
		equal(s, "status", beat.Status, engine.WorkerOnline)
		equal(s, "lost", len(beat.Lost), 0)
		s.pass(time.Second)
		s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Active, p.Completed = 2, 5 })
		w := s.workerState("w1")
		equal(s, "active", w.Active, 2)
		equal(s, "completed", w.Completed, 15)
		equal(s, "failed", w.Failed, 1)
		equal(s, "stats", w.Stats, stats)
		s.sameTime("heard from", w.LastHeartbeatAt, s.now)
		live, err := s.store.LiveWorkers(s.ctx)
		s.must(err, "LiveWorkers")
		equal(s, "live workers", len(live), 1)
		equal(s, "id", live[0].ID, "w1")
		s.sameTime("heard at", live[0].HeardAt, s.now)
	}},
	{"a heartbeat that may wait is noted like any other, from when the worker was heard", func(s *stage) {
		s.worker("w1")
		s.pass(time.Second)
		beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Completed, p.Whole, p.Patience = 3, true, time.Millisecond })
		equal(s, "status", beat.Status, engine.WorkerOnline)
		w := s.workerState("w1")
		equal(s, "completed", w.Completed, 3)
		s.sameTime("heard from", w.LastHeartbeatAt, s.now)
		_, err := s.tryHeartbeat("nobody", func(p *engine.HeartbeatParams) { p.Patience = time.Millisecond })
		s.refused(err, engine.ErrNotFound, "Heartbeat of an unknown worker")
	}},
	{"a heartbeat of a worker that is unknown or OFFLINE changes nothing", func(s *stage) {
		s.worker("w1")
		for _, reason := range []engine.OfflineReason{engine.OfflineDeregistered, engine.OfflineLost, engine.OfflineForced} {
			s.offline("w1", reason)
			before := s.workerState("w1")
			s.pass(time.Second)
			_, err := s.tryHeartbeat("w1", func(p *engine.HeartbeatParams) { p.Completed = 1 })
			s.refused(err, engine.ErrNotFound, "Heartbeat of an OFFLINE worker")
			s.sameText("worker", workerText(s.workerState("w1")), workerText(before))
			s.worker("w1")
		}
		_, err := s.tryHeartbeat("nobody")
		s.refused(err, engine.ErrNotFound, "Heartbeat of an unknown worker")
	}},
	{"a heartbeat says which leases are the worker's no longer", func(s *stage) {
		kept, ended, released, asleep := s.held(), s.heldNext(), s.heldNext(), s.heldNext()
		s.finish(ended, "done")
		s.sleep(asleep, "nap", time.Hour)
		s.release(released, false)
		s.worker("w2")
		theirs := s.claim("w2").Lease
		wrong := engine.Lease{RunID: kept.RunID, Token: s.token()}
		unknown := engine.Lease{RunID: s.id(), Token: s.token()}
		bare := engine.Lease{RunID: kept.RunID, Token: kept.Token} // as a worker names it
		beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) {
			p.Held = []engine.Lease{bare, ended, released, asleep, theirs, wrong, unknown}
		})
		got := map[engine.Token]bool{}
		for _, l := range beat.Lost {
			got[l.Token] = true
		}
		equal(s, "lost leases", len(beat.Lost), 6)
		for _, l := range []engine.Lease{ended, released, asleep, theirs, wrong, unknown} {
			equal(s, "lost names each", got[l.Token], true)
		}
		s.complete(kept, "pay", "paid")
		s.complete(theirs, "pay", "paid")
	}},
	{"a lease that a heartbeat names twice is the worker's still", func(s *stage) {
		l := s.held()
		s.pass(time.Hour)
		beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.Whole = []engine.Lease{l, l}, true })
		equal(s, "lost leases", len(beat.Lost), 0)
		s.complete(l, "pay", "paid")
	}},
	{"a lease that a whole heartbeat does not name is freed after NameWithin", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		kept := s.heldNext()
		claimed := s.now
		whole := func(p *engine.HeartbeatParams) {
			p.Held, p.Whole, p.NameWithin = []engine.Lease{kept}, true, 10*time.Second
		}
		s.now = claimed.Add(10*time.Second - time.Microsecond)
		s.heartbeat("w1", whole)
		equal(s, "leases just before", len(s.heldBy("w1")), 2)
		s.now = claimed.Add(10 * time.Second)
		s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.NameWithin = []engine.Lease{kept}, 10*time.Second })
		equal(s, "leases after a heartbeat that is not whole", len(s.heldBy("w1")), 2)
		beat := s.heartbeat("w1", whole)
		equal(s, "lost leases of those named", len(beat.Lost), 0)
		equal(s, "leases", len(s.heldBy("w1")), 1)
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, s.now)
		equal(s, "losses", run.LeaseLosses, 0)
		equal(s, "attempts", run.Attempts, 1)
		equal(s, "steps", run.Steps, 1)
		s.lost(s.tryFinish(l, "late"), engine.RunPending, "CompleteRun")
		s.complete(kept, "pay", "paid")
	}},
	{"a whole heartbeat that does not name very many frees them in portions, each a commit of its own", func(s *stage) {
		const many = 250
		kept := s.held()
		s.holdMany("w1", many)
		s.pass(time.Minute)
		before, _ := s.commits()
		s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.Whole = []engine.Lease{kept}, true })
		if c, known := s.commits(); known && c-before < 3 {
			s.Fatalf("commits for %d runs that a heartbeat does not name = %d, want several", many, c-before)
		}
		equal(s, "leases", len(s.heldBy("w1")), 1)
		equal(s, "claimed by another", len(s.claimedIDs(s.worker("w2"), many+1)), many)
		s.complete(kept, "pay", "paid")
	}},
	{"a whole heartbeat frees no lease of another worker", func(s *stage) {
		l := s.held()
		s.worker("w2")
		s.pass(time.Hour)
		s.heartbeat("w2", func(p *engine.HeartbeatParams) { p.Whole = true })
		s.complete(l, "pay", "paid")
	}},
	{"a whole heartbeat that names a run under another token does not name its lease", func(s *stage) {
		l := s.held()
		s.pass(time.Hour)
		wrong := engine.Lease{RunID: l.RunID, Token: s.token()}
		beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.Whole = []engine.Lease{wrong}, true })
		equal(s, "lost leases", len(beat.Lost), 1)
		s.status(l.RunID, engine.RunPending)
	}},
	{"a draining worker keeps what it holds, hears of it, and gets nothing new", func(s *stage) {
		l := s.held()
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker")
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker again")
		equal(s, "status", s.workerState("w1").Status, engine.WorkerDraining)
		equal(s, "status in the beat", s.heartbeat("w1").Status, engine.WorkerDraining)
		s.start()
		s.claimNothing("w1")
		s.complete(l, "pay", "paid")
		s.finish(l, "done")
		s.offline("w1", engine.OfflineDeregistered)
		s.refused(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), engine.ErrNotFound, "DrainWorker of an OFFLINE worker")
		s.refused(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "nobody", Now: s.now}), engine.ErrNotFound, "DrainWorker of an unknown worker")
	}},
	{"a person who has a worker drain or go is in the audit log, once each, and the worker itself is not", func(s *stage) {
		drain := func(by engine.Actor, id engine.ID) error {
			return s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", By: by, AuditID: id, Now: s.now.Add(456 * time.Nanosecond)})
		}
		force := func(by engine.Actor, id engine.ID) {
			_, err := s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineForced, By: by, AuditID: id, Now: s.now})
			s.must(err, "ForceOfflineWorker")
		}
		s.worker("w1")
		drained, gone := s.id(), s.id()
		s.must(drain(somebody, drained), "DrainWorker")
		want := engine.AuditEvent{ID: drained, At: s.now, Actor: somebody, Method: "DrainWorker", Namespace: space, Subject: "worker", SubjectID: "w1", Outcome: "ok"}
		s.must(drain(somebody, s.id()), "DrainWorker again")
		s.pass(time.Second)
		force(somebody, gone)
		force(somebody, s.id())
		s.refused(drain(somebody, s.id()), engine.ErrNotFound, "DrainWorker of an OFFLINE worker")
		events := s.audit("w1")
		equal(s, "audit events", len(events), 2)
		s.sameText("event of the drain", auditText(events[1]), auditText(want))
		want.ID, want.At, want.Method = gone, s.now, "ForceOfflineWorker"
		s.sameText("event of the end", auditText(events[0]), auditText(want))
		s.worker("w1")
		s.must(drain(engine.Actor{}, engine.ID{}), "DrainWorker by the worker itself")
		s.offline("w1", engine.OfflineDeregistered)
		s.worker("w1")
		s.offline("w1", engine.OfflineLost)
		equal(s, "audit events after goodbyes and a loss", len(s.audit("w1")), 2)
	}},
	{"a worker that leaves or is forced off frees its runs at once and nothing is counted", func(s *stage) {
		for _, reason := range []engine.OfflineReason{engine.OfflineDeregistered, engine.OfflineForced} {
			a := s.heldAgain()
			b := s.heldNext(withTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
			s.begin(a, "pay")
			s.pass(time.Second)
			equal(s, "freed", s.offline("w1", reason), 2)
			w := s.workerState("w1")
			equal(s, "status", w.Status, engine.WorkerOffline)
			equal(s, "reason", w.Reason, reason)
			s.sameTime("deregistered at", w.DeregisteredAt, s.now)
			for _, l := range []engine.Lease{a, b} {
				run := s.status(l.RunID, engine.RunPending)
				s.sameTime("available at", run.AvailableAt, s.now)
				equal(s, "losses", run.LeaseLosses, 0)
				equal(s, "attempts", run.Attempts, 1)
				equal(s, "worker", run.WorkerID, "")
				_, err := s.tryComplete(l, "pay", "late")
				s.lost(err, engine.RunPending, "CompleteStep")
			}
			equal(s, "pay is interrupted", ptr(s.step(a.RunID, "pay")).Interrupted(), true)
			s.cancel(a.RunID)
			s.cancel(b.RunID)
		}
	}},
	{"taking a worker off again is fine, an unknown one is not found", func(s *stage) {
		s.held()
		equal(s, "freed", s.offline("w1", engine.OfflineForced), 1)
		before := s.workerState("w1")
		s.pass(time.Second)
		equal(s, "freed again", s.offline("w1", engine.OfflineForced), 0)
		s.sameText("worker", workerText(s.workerState("w1")), workerText(before))
		_, err := s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "nobody", Reason: engine.OfflineForced, Now: s.now})
		s.refused(err, engine.ErrNotFound, "OfflineWorker of an unknown worker")
		live, err := s.store.LiveWorkers(s.ctx)
		s.must(err, "LiveWorkers")
		equal(s, "live workers", len(live), 0)
	}},
}
