package runs

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// unknowing registers worker w1 as one that does not know how to pause.
func unknowing(s *fixture.F) {
	w := s.NewWorker("w1")
	w.PausesRuns = false
	s.Register(w, true)
}

// pausedBy asks to pause a run in hand and ends its lease in a way that does not end the run.
func pausedBy(s *fixture.F, l engine.Lease, ends func()) engine.Run {
	s.Helper()
	fixture.Equal(s, "pausing", s.AskPause(l.RunID).Pausing, true)
	s.Pass(time.Second)
	ends()
	run := s.Run(l.RunID)
	fixture.Equal(s, "paused", run.Paused, true)
	fixture.Equal(s, "pausing", run.Pausing, false)
	s.SameTime("paused at", run.PausedAt, s.Now)
	s.SameTime("available at", run.AvailableAt, time.Time{})
	return run
}

// pausing returns the runs that the worker's heartbeat is told to pause.
func pausing(s *fixture.F, leases ...engine.Lease) []engine.ID {
	s.Helper()
	beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = leases })
	held, err := s.Store.HeldBy(s.Ctx, "w1")
	s.Must(err, "HeldBy")
	var ids, read []engine.ID
	for _, l := range beat.Pausing {
		ids = append(ids, l.RunID)
	}
	for _, h := range held {
		if h.Pausing {
			read = append(read, h.Lease.RunID)
		}
	}
	s.SameIDs("HeldBy, which are pausing", read, ids)
	return ids
}

// PausingCases are about pauses that let the running step finish.
var PausingCases = []fixture.Case{
	{Name: "a run that nobody holds is paused at once", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Minute)
		for _, id := range []engine.ID{l.RunID, s.Start()} {
			before := s.Run(id)
			run := s.AskPause(id)
			fixture.Equal(s, "paused", run.Paused, true)
			fixture.Equal(s, "pausing", run.Pausing, false)
			fixture.Equal(s, "status", run.Status, before.Status)
			s.SameTime("held at", run.HeldAt, before.AvailableAt)
			s.SameTime("paused at", run.PausedAt, s.Now)
		}
	}},
	{Name: "a run in hand keeps its lease until it is released", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "ship")
		other := s.HeldNext()
		run := s.AskPause(l.RunID)
		fixture.Equal(s, "status", run.Status, engine.RunRunning)
		fixture.Equal(s, "paused", run.Paused, false)
		s.SameRun(run, s.Run(l.RunID))
		s.SameIDs("told to pause", pausing(s, l, other), []engine.ID{l.RunID})
		s.Complete(l, "pay", "in another branch")
		s.Complete(l, "ship", "done")
		s.Complete(l, "bill", "done, too")
		s.Pass(time.Second)
		s.Release(l, false)
		s.Release(l, false) // again
		run = s.Status(l.RunID, engine.RunPending)
		fixture.Equal(s, "paused", run.Paused, true)
		s.SameTime("held at", run.HeldAt, s.Now)
		s.ClaimNothing("w1")
		s.Resume(l.RunID)
		task := s.Claim("w1")
		fixture.Equal(s, "results kept", len(task.History), 3)
		fixture.Equal(s, "lease losses", task.Run.LeaseLosses, 0)
		fixture.Equal(s, "attempts", task.Run.Attempts, 1)
		s.SameIDs("told to pause", pausing(s, task.Lease, other), nil)
	}},
	{Name: "each way to end the lease takes the pause into effect", Run: func(s *fixture.F) {
		nap := s.Held()
		run := pausedBy(s, nap, func() { s.Sleep(nap, "nap", time.Minute) })
		fixture.Equal(s, "waiting for", run.WaitingFor, "timer:nap")
		s.SameTime("held at", run.HeldAt, s.Now.Add(time.Minute))

		parked := s.HeldNext()
		s.Await(parked, "paid?", "paid", fixture.HoldingOn)
		run = pausedBy(s, parked, func() { s.Release(parked, true) })
		fixture.Equal(s, "waiting for", run.WaitingFor, "signal:paid")
		s.SameTime("held at", run.HeldAt, time.Time{})
		s.Signal(parked.RunID, "paid", "yes")
		s.SameTime("held at", s.Run(parked.RunID).HeldAt, s.Now)
		s.ClaimNothing("w1")

		step := s.HeldNext()
		var v engine.Verdict
		run = pausedBy(s, step, func() { v = s.Fail(step, "pay", "no") })
		s.SameTime("held at, of a step to retry", run.HeldAt, v.RetryAt)

		whole := s.HeldNext(func(r *engine.StartRun) { r.RetryPolicy = &engine.RetryPolicy{MaximumAttempts: 3} })
		var w engine.RunVerdict
		run = pausedBy(s, whole, func() { w = s.FailRun(whole, "no") })
		s.SameTime("held at, of a run to retry", run.HeldAt, w.RetryAt)

		interrupted := s.HeldNext()
		s.Begin(interrupted, "ship")
		run = pausedBy(s, interrupted, func() { s.Pause(interrupted.RunID) })
		fixture.Equal(s, "interrupted", s.Attempts(interrupted.RunID, "ship")[0].Error.Code, engine.FailureCrashed)
		s.SameTime("held at, of an interrupted run", run.HeldAt, s.Now)

		lost := s.HeldNext()
		run = pausedBy(s, lost, func() { s.Lose("w1") })
		fixture.Equal(s, "lease losses", run.LeaseLosses, 1)
	}},
	{Name: "a run that ends while it is to be paused has ended", Run: func(s *fixture.F) {
		ends := []func(engine.Lease){
			func(l engine.Lease) { s.Finish(l, "done") },
			func(l engine.Lease) { s.FailRun(l, "no") },
			func(l engine.Lease) { s.Cancel(l.RunID) },
		}
		for _, end := range ends {
			l := s.Held()
			s.AskPause(l.RunID)
			end(l)
			run := s.Run(l.RunID)
			fixture.Equal(s, "ended", run.Status.Ended(), true)
			fixture.Equal(s, "pausing or paused", run.Pausing || run.Paused, false)
		}
		l := s.Held(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Minute) })
		s.AskPause(l.RunID)
		s.Pass(time.Minute)
		s.SameExpired(s.Expire(), engine.Expired{Runs: 1, TimedOut: []engine.ID{l.RunID}})
		fixture.Equal(s, "pausing", s.Run(l.RunID).Pausing, false)
	}},
	{Name: "the run that it continues as is paused in its place", Run: func(s *fixture.F) {
		l := s.Held(func(r *engine.StartRun) { r.Timeouts.Execution = time.Hour })
		s.AskPause(l.RunID)
		s.Pass(time.Second)
		next := s.NewRun()
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		run := s.Status(s.Run(l.RunID).ContinuedAs, engine.RunPending)
		fixture.Equal(s, "paused", run.Paused, true)
		s.SameTime("paused at", run.PausedAt, s.Now)
		s.SameTime("held at", run.HeldAt, s.Now)
		fixture.Equal(s, "the run before is paused", s.Run(l.RunID).Paused, false)
		s.ClaimNothing("w1")
		s.Pass(2 * time.Hour)
		s.SameExpired(s.Expire(), engine.Expired{})
		s.Resume(run.ID)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, run.ID)
	}},
	{Name: "resuming takes the request back", Run: func(s *fixture.F) {
		l := s.Held(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Hour) })
		s.AskPause(l.RunID)
		ear := s.Listen()
		fixture.Equal(s, "pausing", s.Resume(l.RunID).Pausing, false)
		ear.Hears("resume", engine.Notification{Kind: engine.NotifyWorker, Name: "w1"})
		s.SameIDs("told to pause", pausing(s, l), nil)
		s.SameTime("deadline", s.Run(l.RunID).DeadlineAt, s.Now.Add(time.Hour))
		s.Release(l, false)
		fixture.Equal(s, "paused", s.Run(l.RunID).Paused, false)
		s.Claim("w1")
	}},
	{Name: "a cancellation takes the request back", Run: func(s *fixture.F) {
		l := s.Held()
		s.AskPause(l.RunID)
		s.CancelWithin(l.RunID, time.Minute)
		s.SameIDs("told to pause", pausing(s, l), nil)
		s.Release(l, false)
		task := s.Claim("w1")
		fixture.Equal(s, "pausing or paused", task.Run.Pausing || task.Run.Paused, false)
	}},
	{Name: "asking again changes nothing, except at once", Run: func(s *fixture.F) {
		l := s.Held()
		for range 3 {
			s.AskPause(l.RunID)
		}
		fixture.Equal(s, "audit events", len(s.Audit(l.RunID.String())), 1)
		run := s.Pause(l.RunID)
		fixture.Equal(s, "paused", run.Paused, true)
		s.Pass(time.Second)
		for range 2 {
			s.SameRun(s.Pause(l.RunID), run)
			s.SameRun(s.AskPause(l.RunID), run)
		}
		fixture.Equal(s, "audit events", len(s.Audit(l.RunID.String())), 2)
		s.Resume(l.RunID)
		s.Resume(l.RunID)
		fixture.Equal(s, "audit events", len(s.Audit(l.RunID.String())), 3)
	}},
	{Name: "a worker that cannot pause loses the run when it records", Run: func(s *fixture.F) {
		held := func(prepare func(engine.Lease)) engine.Lease {
			unknowing(s)
			id := s.Start()
			l := s.Claim("w1").Lease
			fixture.Equal(s, "claimed", l.RunID, id)
			prepare(l)
			return l
		}
		nothing := func(engine.Lease) {}
		done := held(nothing)
		run := pausedBy(s, done, func() { s.Complete(done, "pay", "x") })
		s.SameTime("held at", run.HeldAt, s.Now)
		fixture.Equal(s, "recorded", s.Step(done.RunID, "pay").Status, engine.StepCompleted)
		again, err := s.TryComplete(done, "pay", "x")
		s.Must(err, "CompleteStep again")
		fixture.Equal(s, "recorded", again.Status, engine.StepCompleted)
		s.Lost(s.TryFinish(done, "x"), engine.RunPending, "CompleteRun after that")

		begun := held(func(l engine.Lease) { s.Begin(l, "ship") })
		pausedBy(s, begun, func() { s.Complete(begun, "ship", "x") })

		failed := held(nothing)
		pausedBy(s, failed, func() {
			s.Fail(failed, "pay", "no", func(p *engine.FailStepParams) {
				p.Failure.NonRetryable = true
			})
		})

		told := held(func(l engine.Lease) { s.Signal(l.RunID, "paid", "yes") })
		pausedBy(s, told, func() { s.Await(told, "paid?", "paid") })

		parent := held(nothing)
		pausedBy(s, parent, func() { s.Child(parent, "child") })

		busy := held(func(l engine.Lease) { s.AskPause(l.RunID) })
		s.Must(s.Store.SetRunNote(s.Ctx, engine.SetNoteParams{Lease: busy, Note: "half", Now: s.Now}), "SetRunNote")
		s.Begin(busy, "ship")
		s.Sleep(busy, "nap", time.Minute, func(p *engine.SleepParams) { p.Hold = true })
		fixture.Equal(s, "paused by what ends no step", s.Run(busy.RunID).Paused, false)
	}},
	{Name: "deadlines do not run while a run is paused", Run: func(s *fixture.F) {
		l := s.Held(func(r *engine.StartRun) {
			r.DeadlineAt, r.NamedDeadlineAt = s.Now.Add(time.Hour), s.Now.Add(2*time.Hour)
			r.Timeouts.Execution = time.Hour
		})
		s.Sleep(l, "nap", time.Minute)
		before := s.Run(l.RunID)
		s.AskPause(l.RunID)
		s.Pass(24 * time.Hour)
		s.SameExpired(s.Expire(), engine.Expired{})
		ear := s.Listen()
		s.Resume(l.RunID)
		ear.Hears("resume", engine.Notification{Kind: engine.NotifyTimer})
		run := s.Run(l.RunID)
		s.SameTime("deadline", run.DeadlineAt, before.DeadlineAt.Add(24*time.Hour))
		s.SameTime("named deadline", run.NamedDeadlineAt, before.NamedDeadlineAt.Add(24*time.Hour))
		s.SameTime("paused at", run.PausedAt, time.Time{})
		s.SameExpired(s.Expire(), engine.Expired{Next: run.DeadlineAt})
		s.Pass(time.Hour)
		s.SameExpired(s.Expire(), engine.Expired{Runs: 1, TimedOut: []engine.ID{l.RunID}})
	}},
	{Name: "the grace of a cancellation runs while it is paused", Run: func(s *fixture.F) {
		l := s.Held(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Second) })
		s.CancelWithin(l.RunID, time.Minute)
		s.AskPause(l.RunID)
		s.Release(l, false)
		s.Pass(2 * time.Second)
		s.SameExpired(s.Expire(), engine.Expired{Next: s.Now.Add(time.Minute - 2*time.Second)})
		s.Pass(time.Minute)
		s.SameExpired(s.Expire(), engine.Expired{Runs: 1, Cancelled: []engine.ID{l.RunID}})
	}},
}
