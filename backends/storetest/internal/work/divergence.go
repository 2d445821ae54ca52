package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// DivergenceCases are about runs whose history does not match the code of a build.
var DivergenceCases = []fixture.Case{
	{Name: "a diverged run goes to another build and counts no attempt", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		want := s.Run(run)
		want.Divergences = []engine.Divergence{{BuildID: "one", ReportedAt: s.Now,
			Made: fixture.Report("charge", "pay").Made, Owed: fixture.Report("charge", "pay").Owed}}
		s.SameRun(s.Run(run), want)
		fixture.Equal(s, "attempts", want.Attempts, 1)
		claimed := s.ClaimNothing("one")
		fixture.Equal(s, "limited", claimed.Limited, false)
		s.SameTime("next due", claimed.NextDue, time.Time{})
		s.Build("also-one", "one")
		s.ClaimNothing("also-one")
		s.Build("two", "two")
		fixture.Equal(s, "claimed by the other build", s.Claim("two").Run.ID, run)
	}},
	{Name: "a worker without a build gets a diverged run", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.Worker("plain")
		s.StaysDue(run, "a worker without a build serves it")
		fixture.Equal(s, "claimed run", s.Claim("plain").Run.ID, run)
	}},
	{Name: "a diverged run keeps no other run waiting", Run: func(s *fixture.F) {
		s.DivergedFrom("one")
		fresh := s.Start()
		s.SameIDs("claimed beside it", s.ClaimedIDs("one", 10), []engine.ID{fresh})
	}},
	{Name: "a diverged run comes before other runs", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.Start(fixture.WithPriority(100))
		s.Build("two", "two")
		fixture.Equal(s, "claimed first", s.Claim("two").Run.ID, run)
	}},
	{Name: "a run that each build in service has reported is paused", Run: func(s *fixture.F) {
		s.Build("two", "two")
		run := s.DivergedFrom("one")
		s.StaysDue(run, "a build in service has not reported")
		due := s.Run(run).AvailableAt
		s.Pass(time.Second)
		s.Diverge(s.Claim("two").Lease)
		s.IsPaused(run, "both have reported")
		paused := s.Status(run, engine.RunPending)
		s.SameTime("held at", paused.HeldAt, due.Add(time.Second))
		s.SameTime("available at", paused.AvailableAt, time.Time{})
		fixture.Equal(s, "reports", fmt.Sprint(s.Reported(run)), "[one two]")
		fixture.Equal(s, "audit events", len(s.Audit(run.String())), 0)
		s.SameIDs("paused again", s.PauseDiverged(10), nil)
	}},
	{Name: "a paused diverged run stays paused when a new build registers", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.IsPaused(run, "the only build has reported")
		s.Build("two", "two")
		s.ClaimNothing("two")
		fixture.Equal(s, "paused", s.Run(run).Paused, true)
		s.Resume(run)
		fixture.Equal(s, "claimed after the resume", s.Claim("two").Run.ID, run)
	}},
	{Name: "a resume forgets the reports", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.IsPaused(run, "the only build has reported")
		resumed := s.Resume(run)
		fixture.Equal(s, "reports", len(resumed.Divergences), 0)
		fixture.Equal(s, "claimed by the same build", s.Claim("one").Run.ID, run)
	}},
	{Name: "an accepted divergence lets code skip what is recorded", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.IsPaused(run, "the only build has reported")
		before := s.Run(run)
		p := engine.ResumeRunParams{SteerParams: s.Steer(run, "go on"), AcceptDivergence: true}
		resumed, err := s.Store.ResumeRun(s.Ctx, p)
		s.Must(err, "ResumeRun")
		fixture.Equal(s, "owed from", resumed.OwedFrom, before.OwedFrom+1)
		again, err := s.Store.ResumeRun(s.Ctx, p)
		s.Must(err, "ResumeRun")
		fixture.Equal(s, "owed from after a repeat", again.OwedFrom, before.OwedFrom+1)
	}},
	{Name: "a resume forgets the reports of a run that is not paused", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.Build("two", "two")
		s.Resume(run)
		fixture.Equal(s, "claimed by the same build", s.Claim("one").Run.ID, run)
		fixture.Equal(s, "audited", s.Audit(run.String())[0].Method, "ResumeWorkflow")
	}},
	{Name: "a pause by a person forgets the reports", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.Pause(run)
		fixture.Equal(s, "reports", len(s.Reported(run)), 0)
		r := s.Run(run)
		fixture.Equal(s, "paused as diverged", r.Diverged(), false)
		s.SameIDs("paused", s.PauseDiverged(10), nil)
	}},
	{Name: "a diverged run is paused when the last other build goes away", Run: func(s *fixture.F) {
		for worker, leave := range map[string]func(worker string){
			"deregistered": func(w string) { s.Offline(w, engine.OfflineDeregistered) },
			"lost":         func(w string) { s.Offline(w, engine.OfflineLost) },
			"forced":       func(w string) { s.Offline(w, engine.OfflineForced) },
			"draining": func(w string) {
				s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: w, Now: s.Now}), "DrainWorker")
			},
			"with other types": func(w string) {
				s.Build(w, "two", func(p *engine.Worker) { p.Types = []string{"another"} })
			},
		} {
			run := s.DivergedFrom("one")
			s.Build(worker, "two")
			s.StaysDue(run, "worker "+worker+" may take it")
			leave(worker)
			s.IsPaused(run, "the other worker is "+worker)
			s.Cancel(run)
		}
	}},
	{Name: "a diverged run whose worker is lost is paused if no other build serves it", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.Build("two", "two")
		s.Claim("two")
		s.SameIDs("paused while a worker holds it", s.PauseDiverged(10), nil)
		s.Offline("two", engine.OfflineLost)
		fixture.Equal(s, "reports after the loss", fmt.Sprint(s.Reported(run)), "[one]")
		s.ClaimNothing("one")
		s.IsPaused(run, "only the build that has reported is left")
	}},
	{Name: "a diverged run waits while no worker serves it", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.Offline("one", engine.OfflineDeregistered)
		s.StaysDue(run, "nobody serves it")
		s.Build("one-again", "one")
		s.IsPaused(run, "a worker of the build that has reported came back alone")
	}},
	{Name: "workers that do not serve a run do not count for its pause", Run: func(s *fixture.F) {
		s.Build("queue", "two", func(w *engine.Worker) { w.Queues = []string{"another"} })
		s.Build("type", "two", func(w *engine.Worker) { w.Types = []string{"another"} })
		s.Build("space", "two", func(w *engine.Worker) { w.Namespace = "another" })
		s.Build("label", "two")
		capable := func(w *engine.Worker) { w.Capabilities = map[string]string{"gpu": "1"} }
		s.Build("one", "one", capable)
		run := s.Start(fixture.Requiring("gpu", "1"))
		p := s.ClaimParams("one")
		p.Offers = []engine.Offer{{Key: "gpu", Value: "1"}}
		s.Diverge(s.ClaimWith(p).Tasks[0].Lease)
		s.IsPaused(run, "none of the others serves it")
		s.Resume(run)
		s.Build("capable", "two", capable)
		p = s.ClaimParams("one")
		p.Offers = []engine.Offer{{Key: "gpu", Value: "1"}}
		s.Diverge(s.ClaimWith(p).Tasks[0].Lease)
		s.StaysDue(run, "one that serves it has not reported")
	}},
	{Name: "a record forgets the reports of divergence", Run: func(s *fixture.F) {
		for i, record := range []struct {
			what string
			do   func(l engine.Lease)
		}{
			{"a step that begins", func(l engine.Lease) { s.Begin(l, "pay") }},
			{"a result", func(l engine.Lease) { s.Complete(l, "pay", "paid") }},
			{"an SDK's own record", func(l engine.Lease) { s.Complete(l, "kagzi:now", "1") }},
			{"a failure", func(l engine.Lease) { s.Fail(l, "pay", "no", fixture.Holding) }},
			{"a timer", func(l engine.Lease) { s.Sleep(l, "nap", time.Hour) }},
			{"a signal that it takes", func(l engine.Lease) {
				s.Signal(l.RunID, "paid", "yes")
				s.Await(l, "paid?", "paid")
			}},
			{"a signal that it waits for", func(l engine.Lease) { s.Await(l, "paid?", "paid") }},
			{"a child", func(l engine.Lease) { s.Child(l, "ship") }},
			{"a failure of the run", func(l engine.Lease) { s.FailRun(l, "no") }},
		} {
			one, two := fmt.Sprint("one-", i), fmt.Sprint("two-", i)
			s.Build(one, one)
			run := s.Start(fixture.WithPolicy(engine.RetryPolicy{InitialIntervalMS: 3_600_000}))
			s.Diverge(s.Claim(one).Lease)
			s.Build(two, two)
			l := s.Claim(two).Lease
			fixture.Equal(s, "claimed run", l.RunID, run)
			fixture.Equal(s, "reports before "+record.what, len(s.Reported(run)), 1)
			record.do(l)
			fixture.Equal(s, "reports after "+record.what, len(s.Reported(run)), 0)
			s.Cancel(run)
		}
	}},
	{Name: "what is no record keeps the reports of divergence", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		step := s.Child(l, "ship")
		s.Await(l, "paid?", "paid", fixture.HoldingOn)
		s.Diverge(l)
		s.Build("two", "two")
		for _, keep := range []struct {
			what string
			do   func(l engine.Lease)
		}{
			{"a note", func(l engine.Lease) {
				s.Must(s.Store.SetRunNote(s.Ctx, engine.SetNoteParams{Lease: l, Note: "half", Now: s.Now}), "SetRunNote")
				s.Release(l, false)
			}},
			{"the end of a recorded step's child that it asks for", func(l engine.Lease) {
				_, _ = s.TryAwaitChildren(l, func(p *engine.AwaitChildrenParams) { p.Hold = true }, step)
				s.Release(l, false)
			}},
			{"a wait that was recorded before", func(l engine.Lease) {
				s.Await(l, "paid?", "paid", fixture.HoldingOn)
				s.Release(l, false)
			}},
			{"a loss", func(engine.Lease) { s.Lose("two") }},
		} {
			keep.do(s.Claim("two").Lease)
			fixture.Equal(s, "reports after "+keep.what, fmt.Sprint(s.Reported(l.RunID)), "[one]")
		}
	}},
	{Name: "an override forgets the reports of divergence", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		s.Complete(l, "pay", "paid")
		s.Diverge(l)
		s.IsPaused(l.RunID, "the only build has reported")
		out := fixture.Text("paid in cash")
		_, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{
			SteerParams: s.Steer(l.RunID, "why"), ID: s.ID(), Step: "pay", Output: &out})
		s.Must(err, "OverrideStep")
		fixture.Equal(s, "reports", len(s.Reported(l.RunID)), 0)
		fixture.Equal(s, "paused", s.Run(l.RunID).Paused, true)
	}},
	{Name: "a repeated report is answered again, another is a conflict", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		s.Diverge(l)
		s.Diverge(l)
		s.Refused(s.TryDiverge(l, fixture.Report("other", "pay")), engine.ErrConflict, "another report")
		s.Refused(s.TryRelease(l, false), engine.ErrConflict, "a plain release")
		fixture.Equal(s, "reports", len(s.Reported(l.RunID)), 1)
		s.Build("two", "two")
		other := s.Claim("two")
		s.Diverge(l)
		fixture.Equal(s, "reports", len(s.Reported(l.RunID)), 1)
		s.Finish(other.Lease, "done")
	}},
	{Name: "a second report of a build replaces its first", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one", "two")
		p := s.ClaimParams("one")
		p.BuildID = "" // as an older server claims
		s.Must(s.TryDiverge(s.ClaimWith(p).Tasks[0].Lease, fixture.Report("again", "pay")), "Release")
		reports := s.Run(run).Divergences
		fixture.Equal(s, "reports", len(reports), 2)
		fixture.Equal(s, "newest", reports[1].BuildID+" "+reports[1].Made[0].Name, "one again")
	}},
	{Name: "a worker without a build cannot report a divergence", Run: func(s *fixture.F) {
		l := s.Held()
		s.Refused(s.TryDiverge(l, fixture.Report("charge", "pay")), engine.ErrInvalid, "a report without a build")
		s.Finish(l, "done")
	}},
	{Name: "a diverged suspect goes only where both allow", Run: func(s *fixture.F) {
		s.Build("one", "one")
		leases := s.ManyOf("one", 2)
		for _, l := range leases {
			s.Diverge(l)
		}
		s.Build("two", "two")
		s.ClaimLeases("two", 2)
		s.Offline("two", engine.OfflineLost)
		s.Pass(engine.LossJitter)
		s.Build("three", "three")
		fixture.Equal(s, "claimed suspects", len(s.ClaimLeases("three", 2)), 1)
		fixture.Equal(s, "limited", s.ClaimNothing("three").Limited, true)
		s.ClaimNothing("one")
		s.Build("four", "four")
		fixture.Equal(s, "claimed by the next", len(s.ClaimLeases("four", 2)), 1)
	}},
	{Name: "runs held apart by their reports count no suspects of a loss", Run: func(s *fixture.F) {
		s.Build("one", "one")
		for _, l := range s.ManyOf("one", 3) {
			s.Diverge(l)
		}
		s.Build("two", "two")
		leases := s.ClaimLeases("two", 3)
		fixture.Equal(s, "claimed", len(leases), 3)
		s.Pass(time.Minute)
		s.Offline("two", engine.OfflineLost)
		for _, l := range leases {
			s.SuspectOf(l.RunID, 3)
			fixture.Equal(s, "again", s.Run(l.RunID).Suspect.Again, false)
		}
	}},
	{Name: "many diverged runs hide none from another build", Run: func(s *fixture.F) {
		const many = 1100
		s.Build("three", "three")
		last := s.HeldOf("three")
		s.Build("one", "one")
		for _, l := range s.ManyOf("one", many) {
			s.Diverge(l)
		}
		s.Diverge(last)
		fixture.Equal(s, "claimed by the first", s.Claim("one").Run.ID, last.RunID)
		s.ClaimNothing("one")
		s.Build("two", "two")
		fixture.Equal(s, "claimed by the second", len(s.ClaimLeases("two", 100)), 100)
	}},
	{Name: "a diverged run waits for a slot of its key", Run: func(s *fixture.F) {
		s.Build("one", "one")
		keyed := fixture.Keyed("k", 1)
		l := s.HeldOf("one", keyed)
		s.Diverge(l)
		other := s.Start(keyed)
		fixture.Equal(s, "claimed by the build that has diverged", s.Claim("one").Run.ID, other)
		s.Build("two", "two")
		s.ClaimNothing("two")
		fixture.Equal(s, "gated", s.Run(l.RunID).Gated, true)
		s.Cancel(other)
		s.ClaimNothing("one")
		fixture.Equal(s, "claimed when the slot is free", s.Claim("two").Run.ID, l.RunID)
	}},
	{Name: "a diverged run that was asked to stop is not paused", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		s.CancelWithin(l.RunID, time.Minute)
		s.Diverge(l)
		s.StaysDue(l.RunID, "it was asked to stop")
	}},
	{Name: "a request to stop gives a paused diverged run to each build again", Run: func(s *fixture.F) {
		run := s.DivergedFrom("one")
		s.IsPaused(run, "the only build has reported")
		s.CancelWithin(run, time.Minute)
		fixture.Equal(s, "claimed run", s.Claim("one").Run.ID, run)
	}},
	{Name: "a parked diverged run is paused once it is due", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		s.Await(l, "paid?", "paid", fixture.HoldingOn)
		s.Diverge(l)
		s.Build("two", "two")
		s.Await(s.Claim("two").Lease, "paid?", "paid")
		s.Offline("two", engine.OfflineDeregistered)
		s.SameIDs("paused while it waits for a signal", s.PauseDiverged(10), nil)
		fixture.Equal(s, "reports", fmt.Sprint(s.Reported(l.RunID)), "[one]")
		s.Signal(l.RunID, "paid", "yes")
		s.IsPaused(l.RunID, "it is due for nobody")
	}},
	{Name: "PauseDiverged keeps to its limit", Run: func(s *fixture.F) {
		s.Build("one", "one")
		for _, l := range s.ManyOf("one", 5) {
			s.Diverge(l)
		}
		fixture.Equal(s, "first", len(s.PauseDiverged(3)), 3)
		fixture.Equal(s, "rest", len(s.PauseDiverged(3)), 2)
		fixture.Equal(s, "then", len(s.PauseDiverged(3)), 0)
	}},
	{Name: "a report and a due diverged run are notified", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		ear := s.Listen()
		s.Diverge(l)
		ear.Hears("Release with a divergence", engine.Notification{Kind: engine.NotifyDiverged},
			engine.Notification{Kind: engine.NotifyRun, ID: l.RunID},
			engine.Notification{Kind: engine.NotifyQueue, Namespace: fixture.Space, Name: fixture.Queue})
		s.Build("two", "two")
		again := s.Claim("two").Lease
		s.Release(again, false)
		ear.Hears("Release of a run with reports", engine.Notification{Kind: engine.NotifyDiverged})
	}},
	{Name: "an end that leaves calls unreached names them", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one")
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Unreached: []string{"pay", "ship"}, Now: s.Now}), "CompleteRun")
		fixture.Equal(s, "unreached", fmt.Sprint(s.Run(l.RunID).Unreached), "[pay ship]")
		l = s.HeldOf("one")
		_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{Lease: l, Failure: fixture.Boom("no"),
			Unreached: []string{"pay"}, Now: s.Now})
		s.Must(err, "FailRun")
		fixture.Equal(s, "unreached", fmt.Sprint(s.Run(l.RunID).Unreached), "[pay]")
	}},
	{Name: "a failure that is retried forgets what was unreached", Run: func(s *fixture.F) {
		s.Build("one", "one")
		l := s.HeldOf("one", fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 1000}))
		_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{Lease: l, Failure: fixture.Boom("no"),
			Unreached: []string{"pay"}, Now: s.Now})
		s.Must(err, "FailRun")
		fixture.Equal(s, "unreached", len(s.Run(l.RunID).Unreached), 0)
	}},
	{Name: "an end with unreached calls is refused while another build may reach them", Run: func(s *fixture.F) {
		s.Build("one", "one")
		s.Build("also-one", "one")
		l := s.HeldOf("one")
		end := engine.CompleteRunParams{Lease: l, Unreached: []string{"pay"}, Now: s.Now}
		failed := engine.FailRunParams{Lease: l, Failure: fixture.Boom("no"), Unreached: []string{"pay"}, Now: s.Now}
		refused := func(why string) {
			s.Refused(s.TryEnd(end), engine.ErrPrecondition, "CompleteRun "+why)
			_, err := s.Store.FailRun(s.Ctx, failed)
			s.Refused(err, engine.ErrPrecondition, "FailRun "+why)
			s.Status(l.RunID, engine.RunRunning)
		}
		s.Worker("plain")
		refused("beside a worker without a build")
		s.Offline("plain", engine.OfflineDeregistered)
		s.Build("two", "two")
		refused("beside another build")
		s.Diverge(l)
		other := s.Claim("two").Lease
		end.Lease, failed.Lease = other, other
		s.Must(s.TryEnd(end), "CompleteRun when the other build has reported")
	}},
}
