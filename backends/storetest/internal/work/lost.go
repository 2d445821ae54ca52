package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var LostCases = []fixture.Case{
	{Name: "a lost worker's run is due at once with one loss counted", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Pass(time.Minute)
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 1)
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, s.Now)
		fixture.Equal(s, "losses", run.LeaseLosses, 1)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		fixture.Equal(s, "failures", run.Failures, 0)
		fixture.Equal(s, "worker", run.WorkerID, "")
		fixture.Equal(s, "pay is interrupted", fixture.Ptr(s.Step(l.RunID, "pay")).Interrupted(), true)
		fixture.Equal(s, "reason", s.WorkerState("w1").Reason, engine.OfflineLost)
	}},
	{Name: "OfflineLost changes nothing after a heartbeat", Run: func(s *fixture.F) {
		l := s.Held()
		heard := s.Now
		s.Pass(time.Minute)
		s.Heartbeat("w1")
		look := engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard, Now: s.Now}
		taken, err := s.Store.ForceOfflineWorker(s.Ctx, look)
		s.Must(err, "ForceOfflineWorker")
		fixture.Equal(s, "answer", taken, engine.Deregistered{})
		fixture.Equal(s, "status", s.WorkerState("w1").Status, engine.WorkerOnline)
		s.Complete(l, "pay", "paid")
		look.HeardAt = s.Now
		taken, err = s.Store.ForceOfflineWorker(s.Ctx, look)
		s.Must(err, "OfflineWorker with the newest heartbeat")
		fixture.Equal(s, "answer", taken, engine.Deregistered{Off: true, Freed: 1})
		taken, err = s.Store.ForceOfflineWorker(s.Ctx, look)
		s.Must(err, "OfflineWorker of one that is OFFLINE, as another server calls it")
		fixture.Equal(s, "answer", taken, engine.Deregistered{})
	}},
	{Name: "a heartbeat counts after the clock was set back", Run: func(s *fixture.F) {
		l := s.Held()
		heard, before := s.WorkerState("w1").LastHeartbeatAt, s.Now
		s.Now = s.Now.Add(-time.Hour)
		for range 2 {
			s.Heartbeat("w1")
			after := s.WorkerState("w1").LastHeartbeatAt
			if !after.After(heard) {
				s.Fatalf("last heartbeat = %s after a heartbeat, want later than the one before, %s",
					fixture.Clock(after), fixture.Clock(heard))
			}
			taken, err := s.Store.ForceOfflineWorker(
				s.Ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard,
					Now: s.Now})
			s.Must(err, "ForceOfflineWorker")
			fixture.Equal(s, "answer", taken, engine.Deregistered{})
			heard = after
		}
		s.Complete(l, "pay", "paid")
		s.Now = before.Add(time.Minute)
		s.Heartbeat("w1")
		s.SameTime("last heartbeat", s.WorkerState("w1").LastHeartbeatAt, s.Now)
	}},
	{Name: "a registration counts after the clock was set back", Run: func(s *fixture.F) {
		l := s.Held()
		heard := s.WorkerState("w1").LastHeartbeatAt
		s.Now = s.Now.Add(-time.Hour)
		for range 2 {
			again := s.Register(s.NewWorker("w1"), true)
			after := s.WorkerState("w1").LastHeartbeatAt
			if !after.After(heard) {
				s.Fatalf("last heartbeat = %s after the worker registered again, want later than the one before, %s",
					fixture.Clock(after), fixture.Clock(heard))
			}
			s.SameTime("last heartbeat that it is told", again.LastHeartbeatAt, after)
			taken, err := s.Store.ForceOfflineWorker(
				s.Ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard,
					Now: s.Now})
			s.Must(err, "ForceOfflineWorker")
			fixture.Equal(s, "answer", taken, engine.Deregistered{})
			heard = after
		}
		s.Complete(l, "pay", "paid")
	}},
	{Name: "a worker lost after the clock was set back frees its runs", Run: func(s *fixture.F) {
		plain := s.Held()
		long := s.Held(func(r *engine.StartRun) { r.Timeouts.Heartbeat = time.Minute })
		s.Now = s.Now.Add(-time.Hour)
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 1)
		s.Status(plain.RunID, engine.RunPending)
		next := s.FreeLost(s.Now).Next
		s.SameTime("when the other is freed", next, s.Now.Add(time.Minute))
		s.Now = next
		fixture.Equal(s, "freed by its own heartbeat timeout", fixture.IDsText(s.FreeLost(s.Now).Runs),
			fixture.IDsText([]engine.ID{long.RunID}))
		s.Status(long.RunID, engine.RunPending)
	}},
	{Name: "the third loss in a row fails a job", Run: func(s *fixture.F) {
		s.Worker("w1")
		job := s.Start(fixture.OfType(engine.JobType))
		for n := range engine.MaxJobLosses {
			s.Status(job, engine.RunPending)
			s.Now = s.Now.Add(time.Minute)
			s.Worker("w1")
			s.SameIDs("claimed", s.ClaimedIDs("w1", 1, func(p *engine.ClaimParams) { p.Types = []string{engine.JobType} }),
				[]engine.ID{job})
			s.Pass(time.Second)
			s.Offline("w1", engine.OfflineLost)
			fixture.Equal(s, "losses", s.Run(job).LeaseLosses, n+1)
		}
		s.Failure("error", s.Status(job, engine.RunFailed).Error, engine.CrashedAfter(engine.MaxJobLosses))
	}},
	{Name: "delays grow from the second loss, the tenth fails the run", Run: func(s *fixture.F) {
		l := s.Held()
		for n := 1; n < engine.MaxLeaseLosses; n++ {
			s.Pass(time.Second)
			s.Offline("w1", engine.OfflineLost)
			want := engine.AfterLeaseLost(engine.LostRun{Losses: n - 1}, engine.Loss{Runs: 1}, s.Now)
			run := s.Status(l.RunID, engine.RunPending)
			fixture.Equal(s, "losses", run.LeaseLosses, n)
			s.SameTime("available at", run.AvailableAt, want.AvailableAt)
			s.Worker("w1")
			if n > 1 {
				s.SameTime("next due", s.ClaimNothing("w1").NextDue, want.AvailableAt)
			}
			s.Now = want.AvailableAt
			l = s.Claim("w1").Lease
		}
		s.Begin(l, "pay")
		s.Pass(time.Second)
		s.Offline("w1", engine.OfflineLost)
		run := s.Status(l.RunID, engine.RunFailed)
		s.Failure("error", run.Error, engine.CrashedFailure())
		fixture.Equal(s, "losses", run.LeaseLosses, engine.MaxLeaseLosses)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		s.SameTime("finished at", run.FinishedAt, s.Now)
		s.Failure("error of the open step", s.Step(l.RunID, "pay").Error, engine.RunEndedFailure())
		s.Worker("w1")
		s.Pass(time.Hour)
		s.ClaimNothing("w1")
		s.Lost(s.TryFinish(l, "late"), engine.RunFailed, "CompleteRun")
	}},
	{Name: "a step's result resets the count of losses", Run: func(s *fixture.F) {
		l := s.HeldAfterLosses(3)
		fixture.Equal(s, "losses", s.Run(l.RunID).LeaseLosses, 3)
		s.Complete(l, "pay", "paid")
		s.Lose("w1")
		run := s.Run(l.RunID)
		fixture.Equal(s, "losses", run.LeaseLosses, 1)
		s.SameTime("available at", run.AvailableAt, s.Now)
		s.Claim("w1")
		s.Lose("w1")
		run = s.Run(l.RunID)
		fixture.Equal(s, "losses after one without a result", run.LeaseLosses, 2)
		s.SameTime("available at", run.AvailableAt, s.Now.Add(time.Second))
	}},
	{Name: "a consumed signal resets the count of losses",
		Run: func(s *fixture.F) {
			l := s.HeldAfterLosses(3)
			s.Await(l, "paid?", "paid", fixture.HoldingOn)
			s.Lose("w1")
			fixture.Equal(s, "losses after one that waited", s.Run(l.RunID).LeaseLosses, 4)
			s.Signal(l.RunID, "shipped", "yes")
			s.Pass(time.Hour)
			l = s.Claim("w1").Lease
			s.Await(l, "shipped?", "shipped")
			s.Lose("w1")
			fixture.Equal(s, "losses after one that took a signal", s.Run(l.RunID).LeaseLosses, 1)
		}},
	{Name: "a result before a release resets the count of losses", Run: func(s *fixture.F) {
		l := s.HeldAfterLosses(3)
		s.Complete(l, "pay", "paid")
		s.Release(l, false)
		s.Claim("w1")
		s.Lose("w1")
		fixture.Equal(s, "losses", s.Run(l.RunID).LeaseLosses, 1)
	}},
	{Name: "a release neither counts nor resets losses", Run: func(s *fixture.F) {
		s.Held()
		s.Lose("w1")
		l := s.Claim("w1").Lease
		s.Release(l, false)
		s.Claim("w1")
		s.Lose("w1")
		fixture.Equal(s, "losses", s.Run(l.RunID).LeaseLosses, 2)
	}},
	{Name: "a run's own heartbeat timeout extends its lease", Run: func(s *fixture.F) {
		longer := s.Held(fixture.WithTimeouts(engine.Timeouts{Heartbeat: 10 * time.Minute}))
		long := s.HeldNext(fixture.WithTimeouts(engine.Timeouts{Heartbeat: 5 * time.Minute}))
		short := s.HeldNext(fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Second}))
		plain := s.HeldNext()
		heard := s.Now
		s.Pass(42 * time.Second)
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 2)
		s.Status(short.RunID, engine.RunPending)
		s.Status(plain.RunID, engine.RunPending)
		s.Status(long.RunID, engine.RunRunning)
		s.Complete(long, "pay", "its token still counts")

		free := func(at time.Time, want []engine.ID, next time.Time) {
			s.Helper()
			freed := s.FreeLost(at)
			fixture.Equal(s, "freed", fixture.IDsText(freed.Runs), fixture.IDsText(want))
			s.SameTime("next", freed.Next, next)
			s.Now = at
		}
		free(s.Now, nil, heard.Add(5*time.Minute))
		free(heard.Add(5*time.Minute-time.Microsecond), nil, heard.Add(5*time.Minute))
		free(heard.Add(5*time.Minute), []engine.ID{long.RunID}, heard.Add(10*time.Minute))
		run := s.Status(long.RunID, engine.RunPending)
		fixture.Equal(s, "losses, as the worker held four", run.LeaseLosses, 0)
		s.SuspectOf(long.RunID, 4)
		_, err := s.TryComplete(long, "ship", "late")
		s.Lost(err, engine.RunPending, "CompleteStep")
		free(heard.Add(time.Hour), []engine.ID{longer.RunID}, time.Time{})
		s.Status(longer.RunID, engine.RunPending)
		free(heard.Add(2*time.Hour), nil, time.Time{})
	}},
	{Name: "a lease past its worker's loss is kept by a new registration", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithTimeouts(engine.Timeouts{Heartbeat: 5 * time.Minute}))
		s.Pass(time.Minute)
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 0)
		s.Worker("w1")
		freed := s.FreeLost(s.Now.Add(time.Hour))
		fixture.Equal(s, "freed", len(freed.Runs), 0)
		s.SameTime("next", freed.Next, time.Time{})
		s.Complete(l, "pay", "paid")
	}},
	{Name: "taking over an OFFLINE id frees its runs as lost", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
		s.Pass(time.Minute)
		s.Offline("w1", engine.OfflineLost)
		s.Status(l.RunID, engine.RunRunning)
		successor := s.NewWorker("w1")
		successor.InstanceID = "successor"
		s.Register(successor, true)
		run := s.Status(l.RunID, engine.RunPending)
		fixture.Equal(s, "losses", run.LeaseLosses, 1)
		fixture.Equal(s, "leases of the successor", len(s.HeldBy("w1")), 0)
		_, err := s.TryComplete(l, "pay", "late")
		s.Lost(err, engine.RunPending, "CompleteStep")
	}},
	{Name: "very many leases of a worker are freed in portions",
		Run: func(s *fixture.F) {
			const many = 250
			for _, reason := range []engine.OfflineReason{
				engine.OfflineLost, engine.OfflineForced, engine.OfflineDeregistered} {
				s.Worker("w1")
				s.HoldMany("w1", many)
				before, _ := s.Commits()
				fixture.Equal(s, "freed", s.Offline("w1", reason), many)
				if c, known := s.Commits(); known && c-before < 3 {
					s.Fatalf("commits for %d runs of a worker = %d, want several", many, c-before)
				}
				fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
				fixture.Equal(s, "freed again", s.Offline("w1", reason), 0)
				s.Pass(engine.LossJitter)
				want := many
				if reason == engine.OfflineLost {
					want = many / 2
				}
				fixture.Equal(s, "claimed by another",
					len(s.ClaimedIDs(s.Worker(fmt.Sprintf("successor-%d", reason)), many+1)), want)
				s.ClaimedIDs(s.Worker("other"), many+1)
			}
		}},
	{Name: "taking over an id with very many leases frees in portions", Run: func(s *fixture.F) {
		const many = 250
		s.Worker("w1")
		s.HoldMany("w1", many, fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
		s.Pass(time.Minute)
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 0)
		successor := s.NewWorker("w1")
		successor.InstanceID = "successor"
		before, _ := s.Commits()
		fixture.Equal(s, "status", s.Register(successor, true).Status, engine.WorkerOnline)
		if c, known := s.Commits(); known && c-before < 3 {
			s.Fatalf("commits for %d runs of an old instance = %d, want several", many, c-before)
		}
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
		s.Pass(engine.LossJitter)
		ids := s.ClaimedIDs("w1", many)
		fixture.Equal(s, "claimed by the successor", len(ids), many/2)
		for _, id := range ids {
			s.SuspectOf(id, many)
		}
	}},
	{
		Name: "leases past a worker's loss are freed in portions", Run: func(s *fixture.F) {
			const many = 250
			s.Worker("w1")
			s.HoldMany("w1", many, fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Hour}))
			s.HoldMany("w1", many)
			heard := s.Now
			s.Pass(time.Minute)
			fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), many)
			s.Now = heard.Add(time.Hour)
			for left := many; left > 0; {
				freed := s.FreeLost(s.Now)
				n := len(freed.Runs)
				if n == 0 || n == many {
					s.Fatalf("FreeLost freed %d of %d, want a portion", n, many)
				}
				if left -= n; left > 0 {
					s.SameTime("next", freed.Next, s.Now)
				} else {
					s.SameTime("next", freed.Next, time.Time{})
				}
			}
			fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
		}},
	{Name: "a lost worker is kept while it has leases", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithTimeouts(engine.Timeouts{Heartbeat: 48 * time.Hour}))
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 0)
		s.Pass(24 * time.Hour)
		s.PruneRecords(engine.PruneRecordsParams{Workers: s.Now, Limit: 10})
		fixture.Equal(s, "status", s.WorkerState("w1").Status, engine.WorkerOffline)
		s.Pass(24 * time.Hour)
		fixture.Equal(s, "freed when its time is over", fixture.IDsText(s.FreeLost(s.Now).Runs), l.RunID.String())
		s.Status(l.RunID, engine.RunPending)
		s.PruneRecords(engine.PruneRecordsParams{Workers: s.Now, Limit: 10})
		_, err := s.Store.GetWorker(s.Ctx, "w1")
		s.Refused(err, engine.ErrNotFound, "GetWorker")
	}},
	{Name: "losing one worker does not affect the others", Run: func(s *fixture.F) {
		s.Held()
		s.Worker("w2")
		s.Start()
		theirs := s.Claim("w2").Lease
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 1)
		s.Complete(theirs, "pay", "paid")
		fixture.Equal(s, "losses", s.Run(theirs.RunID).LeaseLosses, 0)
		fixture.Equal(s, "leases of w2", len(s.HeldBy("w2")), 1)
	}},
	{Name: "a DRAINING worker can be lost", Run: func(s *fixture.F) {
		l := s.Held()
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker")
		fixture.Equal(s, "freed", s.Offline("w1", engine.OfflineLost), 1)
		s.Status(l.RunID, engine.RunPending)
	}},
	{Name: "timers and retries survive the loss of the worker", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		v := s.Fail(l, "pay", "no", fixture.Holding)
		wake := s.Now.Add(time.Hour)
		s.Lose("w1")
		l = s.Claim("w1").Lease
		s.SameTime("wake at", s.Step(l.RunID, "nap").WakeAt, wake)
		s.SameTime("retry at", s.Step(l.RunID, "pay").RetryAt, v.RetryAt)
		s.Release(l, true)
		s.SameTime("available at", s.Run(l.RunID).AvailableAt, v.RetryAt)
	}},
}
