package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var WorkerCases = []fixture.Case{
	{Name: "a registered worker is ONLINE with its profile", Run: func(s *fixture.F) {
		w := s.NewWorker("w1")
		w.Queues, w.Types = []string{"b", "a", "B"}, []string{"z", "y"}
		w.Labels, w.Capabilities = map[string]string{"zone": "eu"}, map[string]string{"gpu": "a100", "ram": ""}
		w.MaxConcurrent, w.QueueLimit, w.TypeLimits = 5, 3, map[string]int{"y": 2}
		ignored := w
		ignored.Status, ignored.Reason, ignored.Active, ignored.Completed, ignored.Failed = engine.WorkerOffline,
			engine.OfflineLost, 9, 9, 9
		ignored.Stats, ignored.RegisteredAt, ignored.DeregisteredAt = engine.WorkerStats{CPUPercent: 9},
			s.Now.Add(-time.Hour), s.Now
		got := s.Register(ignored, true)
		w.Status, w.RegisteredAt, w.LastHeartbeatAt = engine.WorkerOnline, s.Now, s.Now
		s.SameText("worker", fixture.WorkerText(got), fixture.WorkerText(w))
		s.SameText("worker", fixture.WorkerText(s.WorkerState("w1")), fixture.WorkerText(w))
	}},
	{Name: "a registration makes the worker's namespace",
		Run: func(s *fixture.F) {
			w := s.NewWorker("w1")
			w.Namespace = "brand-new"
			s.Register(w, true)
			fixture.Equal(s, "namespace", s.WorkerState("w1").Namespace, "brand-new")
			_, err := s.Store.GetWorker(s.Ctx, "w2")
			s.Refused(err, engine.ErrNotFound, "GetWorker")
		}},
	{Name: "the same instance keeps its id and leases", Run: func(s *fixture.F) {
		l := s.Held()
		again := s.NewWorker("another-id")
		again.InstanceID, again.Hostname, again.Queues = "instance-w1", "moved", []string{fixture.Queue, "more"}
		again.Types, again.PID, again.Version, again.Platform = []string{fixture.Kind, "other"}, 8, "2", "linux/arm64"
		again.Labels, again.Capabilities = map[string]string{"zone": "eu"}, map[string]string{"gpu": "a100"}
		again.MaxConcurrent, again.QueueLimit, again.TypeLimits = 5, 3, map[string]int{"other": 2}
		s.Pass(time.Second)
		for _, chosen := range []bool{false, true} {
			got := s.Register(again, chosen)
			fixture.Equal(s, "id", got.ID, "w1")
			fixture.Equal(s, "status", got.Status, engine.WorkerOnline)
			fixture.Equal(s, "host", got.Hostname, "moved")
			fixture.Equal(s, "queues", len(got.Queues), 2)
			s.SameTime("heard from", got.LastHeartbeatAt, s.Now)
			s.SameText("worker", fixture.WorkerText(s.WorkerState("w1")), fixture.WorkerText(got))
		}
		_, err := s.Store.GetWorker(s.Ctx, "another-id")
		s.Refused(err, engine.ErrNotFound, "GetWorker")
		elsewhere := again
		elsewhere.Namespace = "elsewhere"
		fixture.Equal(s, "id of an instance of that name in another namespace", s.Register(elsewhere, true).ID,
			"another-id")
		s.Complete(l, "pay", "paid")
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 1)
	}},
	{Name: "the same instance stays DRAINING or returns from OFFLINE", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker")
		fixture.Equal(s, "status", s.Register(s.NewWorker("w1"), true).Status, engine.WorkerDraining)
		for _, reason := range []engine.OfflineReason{
			engine.OfflineDeregistered, engine.OfflineLost, engine.OfflineForced} {
			s.Offline("w1", reason)
			got := s.Register(s.NewWorker("w1"), true)
			fixture.Equal(s, "status", got.Status, engine.WorkerOnline)
			fixture.Equal(s, "reason", got.Reason, 0)
			s.SameTime("deregistered at", got.DeregisteredAt, time.Time{})
			s.SameText("worker", fixture.WorkerText(s.WorkerState("w1")), fixture.WorkerText(got))
		}
		s.Start()
		s.Claim("w1")
	}},
	{Name: "an id in use by another instance is refused", Run: func(s *fixture.F) {
		s.Worker("w1")
		thief := s.NewWorker("w1")
		thief.InstanceID = "thief"
		try := func() error {
			_, err := s.Store.RegisterWorker(s.Ctx,
				engine.RegisterWorkerParams{Worker: thief, Chosen: true, Now: s.Now})
			return err
		}
		s.Refused(try(), engine.ErrExists, "RegisterWorker of an ONLINE id")
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker")
		s.Refused(try(), engine.ErrExists, "RegisterWorker of a DRAINING id")
		fixture.Equal(s, "instance", s.WorkerState("w1").InstanceID, "instance-w1")
	}},
	{Name: "an OFFLINE worker's id is taken over with zero totals", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Heartbeat("w1", func(p *engine.HeartbeatParams) {
			p.Active, p.Completed, p.Failed, p.Stats = 1, 5, 2, &engine.WorkerStats{CPUPercent: 50}
		})
		s.Offline("w1", engine.OfflineDeregistered)
		s.Pass(time.Hour)
		successor := s.NewWorker("w1")
		successor.InstanceID = "successor"
		got := s.Register(successor, true)
		want := successor
		want.Status, want.RegisteredAt, want.LastHeartbeatAt = engine.WorkerOnline, s.Now, s.Now
		s.SameText("worker", fixture.WorkerText(got), fixture.WorkerText(want))
		s.SameText("worker", fixture.WorkerText(s.WorkerState("w1")), fixture.WorkerText(want))
		_, _, err := s.Store.ListWorkers(s.Ctx, engine.WorkerFilter{}, engine.Page{Limit: 10})
		s.Must(err, "ListWorkers")
	}},
	{Name: "an instance that lost its id registers as new", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Offline("w1", engine.OfflineLost)
		successor := s.NewWorker("w1")
		successor.InstanceID = "successor"
		s.Register(successor, true)
		old := s.NewWorker("w2")
		old.InstanceID = "instance-w1"
		fixture.Equal(s, "id", s.Register(old, false).ID, "w2")
		fixture.Equal(s, "instance of w1", s.WorkerState("w1").InstanceID, "successor")
	}},
	{Name: "a heartbeat adds counts and sets the active number", Run: func(s *fixture.F) {
		s.Worker("w1")
		stats := engine.WorkerStats{CPUPercent: 12.5, MemoryBytes: 1 << 40, DiskAvailableBytes: 3, UptimeSeconds: 4,
			AverageRunMS: 0.25, Blocked: []engine.BlockedCode{
				{RunID: "r", Branch: "1", Since: time.Unix(1_700_000_000, 0).UTC(), Stack: "main.wait()\n\tmain.go:1"},
				{RunID: "r", Since: time.Unix(1_700_000_000, 0).UTC(), Held: []engine.Call{{Name: "a"}},
					Owed: []engine.Call{{Name: "b"}}}}}
		s.Pass(time.Second)
		beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) {
			p.Active, p.Completed, p.Failed, p.Stats = 3, 10, 1, &stats
		})
		fixture.Equal(s, "status", beat.Status, engine.WorkerOnline)
		fixture.Equal(s, "lost", len(beat.Lost), 0)
		s.Pass(time.Second)
		s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Active, p.Completed = 2, 5 })
		w := s.WorkerState("w1")
		fixture.Equal(s, "active", w.Active, 2)
		fixture.Equal(s, "completed", w.Completed, 15)
		fixture.Equal(s, "failed", w.Failed, 1)
		fixture.Equal(s, "stats", fmt.Sprintf("%+v", w.Stats), fmt.Sprintf("%+v", stats))
		s.SameTime("heard from", w.LastHeartbeatAt, s.Now)
		live, err := s.Store.LiveWorkers(s.Ctx)
		s.Must(err, "LiveWorkers")
		fixture.Equal(s, "live workers", len(live), 1)
		fixture.Equal(s, "id", live[0].ID, "w1")
		s.SameTime("heard at", live[0].HeardAt, s.Now)
	}},
	{Name: "a delayed heartbeat counts from when the worker was heard",
		Run: func(s *fixture.F) {
			s.Worker("w1")
			s.Pass(time.Second)
			beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) {
				p.Completed, p.Whole, p.MaxWait = 3, true, time.Millisecond
			})
			fixture.Equal(s, "status", beat.Status, engine.WorkerOnline)
			w := s.WorkerState("w1")
			fixture.Equal(s, "completed", w.Completed, 3)
			s.SameTime("heard from", w.LastHeartbeatAt, s.Now)
			_, err := s.TryHeartbeat("nobody", func(p *engine.HeartbeatParams) { p.MaxWait = time.Millisecond })
			s.Refused(err, engine.ErrNotFound, "Heartbeat of an unknown worker")
		}},
	{Name: "a heartbeat of an unknown or OFFLINE worker is refused", Run: func(s *fixture.F) {
		s.Worker("w1")
		for _, reason := range []engine.OfflineReason{
			engine.OfflineDeregistered, engine.OfflineLost, engine.OfflineForced} {
			s.Offline("w1", reason)
			before := s.WorkerState("w1")
			s.Pass(time.Second)
			_, err := s.TryHeartbeat("w1", func(p *engine.HeartbeatParams) { p.Completed = 1 })
			s.Refused(err, engine.ErrNotFound, "Heartbeat of an OFFLINE worker")
			s.SameText("worker", fixture.WorkerText(s.WorkerState("w1")), fixture.WorkerText(before))
			s.Worker("w1")
		}
		_, err := s.TryHeartbeat("nobody")
		s.Refused(err, engine.ErrNotFound, "Heartbeat of an unknown worker")
	}},
	{Name: "a heartbeat returns the leases that the worker lost", Run: func(s *fixture.F) {
		kept, ended, released, asleep := s.Held(), s.HeldNext(), s.HeldNext(), s.HeldNext()
		s.Finish(ended, "done")
		s.Sleep(asleep, "nap", time.Hour)
		s.Release(released, false)
		s.Worker("w2")
		theirs := s.Claim("w2").Lease
		wrong := engine.Lease{RunID: kept.RunID, Token: s.Token()}
		unknown := engine.Lease{RunID: s.ID(), Token: s.Token()}
		bare := engine.Lease{RunID: kept.RunID, Token: kept.Token} // as a worker names it
		beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) {
			p.Held = []engine.Lease{bare, ended, released, asleep, theirs, wrong, unknown}
		})
		got := map[engine.Token]bool{}
		for _, l := range beat.Lost {
			got[l.Token] = true
		}
		fixture.Equal(s, "lost leases", len(beat.Lost), 6)
		for _, l := range []engine.Lease{ended, released, asleep, theirs, wrong, unknown} {
			fixture.Equal(s, "lost names each", got[l.Token], true)
		}
		s.Complete(kept, "pay", "paid")
		s.Complete(theirs, "pay", "paid")
	}},
	{Name: "a lease named twice in a heartbeat is kept", Run: func(s *fixture.F) {
		l := s.Held()
		s.Pass(time.Hour)
		beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.Whole = []engine.Lease{l, l}, true })
		fixture.Equal(s, "lost leases", len(beat.Lost), 0)
		s.Complete(l, "pay", "paid")
	}},
	{Name: "Whole frees unnamed leases after NameWithin", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		kept := s.HeldNext()
		claimed := s.Now
		whole := func(p *engine.HeartbeatParams) {
			p.Held, p.Whole, p.NameWithin = []engine.Lease{kept}, true, 10*time.Second
		}
		s.Now = claimed.Add(10*time.Second - time.Microsecond)
		s.Heartbeat("w1", whole)
		fixture.Equal(s, "leases just before", len(s.HeldBy("w1")), 2)
		s.Now = claimed.Add(10 * time.Second)
		s.Heartbeat("w1", func(p *engine.HeartbeatParams) {
			p.Held, p.NameWithin = []engine.Lease{kept}, 10*time.Second
		})
		fixture.Equal(s, "leases after a heartbeat that is not whole", len(s.HeldBy("w1")), 2)
		beat := s.Heartbeat("w1", whole)
		fixture.Equal(s, "lost leases of those named", len(beat.Lost), 0)
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 1)
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, s.Now)
		fixture.Equal(s, "losses", run.LeaseLosses, 0)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		fixture.Equal(s, "steps", run.Steps, 1)
		s.Lost(s.TryFinish(l, "late"), engine.RunPending, "CompleteRun")
		s.Complete(kept, "pay", "paid")
	}},
	{Name: "Whole frees very many leases in portions",
		Run: func(s *fixture.F) {
			const many = 250
			kept := s.Held()
			s.HoldMany("w1", many)
			s.Pass(time.Minute)
			before, _ := s.Commits()
			s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.Whole = []engine.Lease{kept}, true })
			if c, known := s.Commits(); known && c-before < 3 {
				s.Fatalf("commits for %d runs that a heartbeat does not name = %d, want several", many, c-before)
			}
			fixture.Equal(s, "leases", len(s.HeldBy("w1")), 1)
			fixture.Equal(s, "claimed by another", len(s.ClaimedIDs(s.Worker("w2"), many+1)), many)
			s.Complete(kept, "pay", "paid")
		}},
	{Name: "Whole frees no lease of another worker", Run: func(s *fixture.F) {
		l := s.Held()
		s.Worker("w2")
		s.Pass(time.Hour)
		s.Heartbeat("w2", func(p *engine.HeartbeatParams) { p.Whole = true })
		s.Complete(l, "pay", "paid")
	}},
	{Name: "Whole frees a lease named under another token", Run: func(s *fixture.F) {
		l := s.Held()
		s.Pass(time.Hour)
		wrong := engine.Lease{RunID: l.RunID, Token: s.Token()}
		beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held, p.Whole = []engine.Lease{wrong}, true })
		fixture.Equal(s, "lost leases", len(beat.Lost), 1)
		s.Status(l.RunID, engine.RunPending)
	}},
	{Name: "a DRAINING worker keeps its leases and gets no new ones", Run: func(s *fixture.F) {
		l := s.Held()
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker")
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker again")
		fixture.Equal(s, "status", s.WorkerState("w1").Status, engine.WorkerDraining)
		fixture.Equal(s, "status in the beat", s.Heartbeat("w1").Status, engine.WorkerDraining)
		s.Start()
		s.ClaimNothing("w1")
		s.Complete(l, "pay", "paid")
		s.Finish(l, "done")
		s.Offline("w1", engine.OfflineDeregistered)
		s.Refused(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), engine.ErrNotFound,
			"DrainWorker of an OFFLINE worker")
		s.Refused(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "nobody", Now: s.Now}),
			engine.ErrNotFound, "DrainWorker of an unknown worker")
	}},
	{Name: "draining and forcing off are audited for people only",
		Run: func(s *fixture.F) {
			drain := func(by engine.Actor, id engine.ID) error {
				return s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{
					WorkerID: "w1", By: by, AuditID: id, Now: s.Now.Add(456 * time.Nanosecond)})
			}
			force := func(by engine.Actor, id engine.ID) {
				_, err := s.Store.ForceOfflineWorker(s.Ctx,
					engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineForced, By: by, AuditID: id,
						Now: s.Now})
				s.Must(err, "ForceOfflineWorker")
			}
			s.Worker("w1")
			drained, gone := s.ID(), s.ID()
			s.Must(drain(fixture.Somebody, drained), "DrainWorker")
			want := engine.AuditEvent{ID: drained, At: s.Now, Actor: fixture.Somebody, Method: "DrainWorker",
				Namespace: fixture.Space, Subject: "worker", SubjectID: "w1", Outcome: "ok"}
			s.Must(drain(fixture.Somebody, s.ID()), "DrainWorker again")
			s.Pass(time.Second)
			force(fixture.Somebody, gone)
			force(fixture.Somebody, s.ID())
			s.Refused(drain(fixture.Somebody, s.ID()), engine.ErrNotFound, "DrainWorker of an OFFLINE worker")
			events := s.Audit("w1")
			fixture.Equal(s, "audit events", len(events), 2)
			s.SameText("event of the drain", fixture.AuditText(events[1]), fixture.AuditText(want))
			want.ID, want.At, want.Method = gone, s.Now, "ForceOfflineWorker"
			s.SameText("event of the end", fixture.AuditText(events[0]), fixture.AuditText(want))
			s.Worker("w1")
			s.Must(drain(engine.Actor{}, engine.ID{}), "DrainWorker by the worker itself")
			s.Offline("w1", engine.OfflineDeregistered)
			s.Worker("w1")
			s.Offline("w1", engine.OfflineLost)
			fixture.Equal(s, "audit events after goodbyes and a loss", len(s.Audit("w1")), 2)
		}},
	{Name: "a worker that leaves frees its runs without a loss",
		Run: func(s *fixture.F) {
			for _, reason := range []engine.OfflineReason{engine.OfflineDeregistered, engine.OfflineForced} {
				a := s.HeldAgain()
				b := s.HeldNext(fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
				s.Begin(a, "pay")
				s.Pass(time.Second)
				fixture.Equal(s, "freed", s.Offline("w1", reason), 2)
				w := s.WorkerState("w1")
				fixture.Equal(s, "status", w.Status, engine.WorkerOffline)
				fixture.Equal(s, "reason", w.Reason, reason)
				s.SameTime("deregistered at", w.DeregisteredAt, s.Now)
				for _, l := range []engine.Lease{a, b} {
					run := s.Status(l.RunID, engine.RunPending)
					s.SameTime("available at", run.AvailableAt, s.Now)
					fixture.Equal(s, "losses", run.LeaseLosses, 0)
					fixture.Equal(s, "attempts", run.Attempts, 1)
					fixture.Equal(s, "worker", run.WorkerID, "")
					_, err := s.TryComplete(l, "pay", "late")
					s.Lost(err, engine.RunPending, "CompleteStep")
				}
				fixture.Equal(s, "pay is interrupted", fixture.Ptr(s.Step(a.RunID, "pay")).Interrupted(), true)
				s.Cancel(a.RunID)
				s.Cancel(b.RunID)
			}
		}},
	{Name: "ForceOfflineWorker may be repeated, unknown is refused", Run: func(s *fixture.F) {
		s.Held()
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineForced), 1)
		before := s.WorkerState("w1")
		s.Pass(time.Second)
		fixture.Equal(s, "freed again", s.Offline("w1", engine.OfflineForced), 0)
		s.SameText("worker", fixture.WorkerText(s.WorkerState("w1")), fixture.WorkerText(before))
		_, err := s.Store.ForceOfflineWorker(s.Ctx,
			engine.OfflineWorkerParams{WorkerID: "nobody", Reason: engine.OfflineForced, Now: s.Now})
		s.Refused(err, engine.ErrNotFound, "OfflineWorker of an unknown worker")
		live, err := s.Store.LiveWorkers(s.Ctx)
		s.Must(err, "LiveWorkers")
		fixture.Equal(s, "live workers", len(live), 0)
	}},
}
