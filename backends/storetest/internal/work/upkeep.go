package work

import (
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var UpkeepCases = []fixture.Case{
	{Name: "a timed-out attempt is retried and its lease ends", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Begin(l, "pay", fixture.StartToClose(time.Second))
		out := s.TimeOut(s.Now.Add(time.Second - time.Microsecond))
		fixture.Equal(s, "timed out too early", len(out.Attempts), 0)
		s.SameTime("next", out.Next, first.TimeoutAt)
		s.Now = first.TimeoutAt
		want := engine.AfterStepFailed(nil, nil, 1, engine.StepTimedOutFailure(), s.Now, 0.5)
		out = s.TimeOut(s.Now)
		fixture.Equal(s, "timed out", fixture.TimedOutText(out),
			fixture.TimedOutText(fixture.TimedOut(l.RunID, "pay", want)))
		fixture.Equal(s, "its worker", out.Attempts[0].Worker, "w1")
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "status", step.Status, engine.StepPending)
		fixture.Equal(s, "failures", step.Failures, 1)
		s.Failure("error", step.Error, engine.StepTimedOutFailure())
		s.SameTime("retry at", step.RetryAt, want.RetryAt)
		s.SameTime("timeout at", step.TimeoutAt, time.Time{})
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, want.RetryAt)
		s.Tried(l.RunID, 1, 1)
		fixture.Equal(s, "losses", run.LeaseLosses, 0)
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
		_, err := s.TryComplete(l, "pay", "late")
		s.Lost(err, engine.RunPending, "CompleteStep of what timed out")
		fixture.Equal(s, "timed out again", len(s.TimeOut(s.Now).Attempts), 0)
	}},
	{Name: "a final timeout fails the step and makes the run due", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		s.Begin(l, "pay", fixture.StartToClose(time.Second))
		s.Pass(time.Minute)
		fixture.Equal(s, "timed out", fixture.TimedOutText(s.TimeOut(s.Now)),
			fixture.TimedOutText(fixture.TimedOut(l.RunID, "pay", engine.Verdict{})))
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "status", step.Status, engine.StepFailed)
		s.Failure("error", step.Error, engine.StepTimedOutFailure())
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, s.Now)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		begun, err := s.TryBegin(s.Claim("w1").Lease, "pay")
		s.Must(err, "BeginStep")
		fixture.Equal(s, "execute", begun.Execute, false)
		s.Failure("error for the code", begun.Step.Error, engine.StepTimedOutFailure())
	}},
	{Name: "a report after the timeout is refused", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay", fixture.StartToClose(time.Second))
		s.Pass(time.Minute)
		s.TimeOut(s.Now)
		_, err := s.TryFail(l, "pay", "late")
		s.Lost(err, engine.RunPending, "FailStep of what timed out")
		s.Cancel(l.RunID)
		_, err = s.TryFail(l, "pay", "late")
		s.Lost(err, engine.RunCancelled, "FailStep of what timed out before the end")
		_, err = s.TryComplete(l, "pay", "late")
		s.Lost(err, engine.RunCancelled, "CompleteStep of what timed out before the end")
	}},
	{Name: "a timeout interrupts parallel steps and parks the run", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "slow", fixture.StartToClose(time.Second))
		s.Begin(l, "other", fixture.StartToClose(time.Hour))
		s.Sleep(l, "nap", time.Second+time.Millisecond, fixture.Held)
		wake := s.Now.Add(time.Second + time.Millisecond)
		s.Pass(time.Second)
		s.SameTime("next", s.TimeOut(s.Now).Next, time.Time{})
		s.Failure("error of the sibling", s.Step(l.RunID, "other").Error, engine.InterruptedFailure())
		run := s.Status(l.RunID, engine.RunSleeping)
		s.SameTime("available at", run.AvailableAt, wake)
		fixture.Equal(s, "waiting for", run.WaitingFor, "timer:nap")
	}},
	{Name: "a final timeout makes the run due whatever it waits for", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "slow", fixture.StartToClose(time.Second),
			fixture.StepPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		s.Begin(l, "other", fixture.StartToClose(time.Second+time.Millisecond),
			fixture.StepPolicy(engine.RetryPolicy{MaximumAttempts: 9, InitialIntervalMS: 60_000}))
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		s.Pass(time.Minute)
		s.TimeOut(s.Now)
		fixture.Equal(s, "status of the one step", s.Step(l.RunID, "slow").Status, engine.StepFailed)
		fixture.Equal(s, "status of the other", s.Step(l.RunID, "other").Status, engine.StepPending)
		s.SameTime("available at", s.Status(l.RunID, engine.RunPending).AvailableAt, s.Now)
	}},
	{Name: "timeouts are handled oldest first, up to a limit", Run: func(s *fixture.F) {
		a, b, c := s.Held(), s.HeldNext(), s.HeldNext()
		s.Begin(b, "pay", fixture.StartToClose(2*time.Second))
		s.Begin(a, "pay", fixture.StartToClose(time.Second))
		last := s.Begin(c, "pay", fixture.StartToClose(time.Hour))
		s.Pass(time.Minute)
		out, err := s.Store.TimeoutSteps(s.Ctx, engine.TimeoutStepsParams{Now: s.Now, Limit: 1})
		s.Must(err, "TimeoutSteps")
		fixture.Equal(s, "timed out", len(out.Attempts), 1)
		fixture.Equal(s, "run that timed out", out.Attempts[0].RunID, a.RunID)
		s.SameTime("next", out.Next, s.Now.Add(-time.Minute+2*time.Second))
		s.Status(a.RunID, engine.RunPending)
		s.Status(b.RunID, engine.RunRunning)
		out = s.TimeOut(s.Now)
		fixture.Equal(s, "timed out", len(out.Attempts), 1)
		s.SameTime("next", out.Next, last.TimeoutAt)
		s.Status(c.RunID, engine.RunRunning)
	}},
	{Name: "TimeoutSteps skips the first attempts as asked", Run: func(s *fixture.F) {
		a, b := s.Held(), s.HeldNext()
		s.Begin(a, "pay", fixture.StartToClose(time.Second))
		s.Begin(b, "pay", fixture.StartToClose(2*time.Second))
		s.Pass(time.Minute)
		for _, want := range []int{1, 0} {
			out, err := s.Store.TimeoutSteps(s.Ctx, engine.TimeoutStepsParams{Now: s.Now, Limit: 10, Skip: 1})
			s.Must(err, "TimeoutSteps")
			fixture.Equal(s, "timed out", len(out.Attempts), want)
			s.SameTime("next", out.Next, time.Time{})
		}
		s.Status(a.RunID, engine.RunRunning)
		s.Status(b.RunID, engine.RunPending)
	}},
	{Name: "a completed or interrupted step does not time out", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "done", fixture.StartToClose(time.Second))
		s.Complete(l, "done", "x")
		s.Begin(l, "failed", fixture.StartToClose(time.Second))
		s.Fail(l, "failed", "no", fixture.Holding)
		s.Begin(l, "cut", fixture.StartToClose(time.Second))
		s.Release(l, false)
		s.Begin(s.Claim("w1").Lease, "cut", fixture.StartToClose(time.Hour))
		s.Pass(time.Minute)
		out := s.TimeOut(s.Now)
		fixture.Equal(s, "timed out", len(out.Attempts), 0)
		s.SameTime("next", out.Next, s.Now.Add(time.Hour-time.Minute))
		s.Cancel(l.RunID)
		s.SameTime("next without an open step", s.TimeOut(s.Now).Next, time.Time{})
	}},
	{Name: "Prune deletes runs with all their rows", Run: func(s *fixture.F) {
		s.Worker("w1")
		l := s.HeldNext(fixture.WithExternal("ext"), fixture.WithRequest("req"), fixture.Tagged("k", "v"))
		step := s.Complete(l, "pay", "paid")
		s.Started(s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("second")))
		s.Finish(l, "done")
		ended := s.Now
		fixture.Equal(s, "runs that ended at that very moment", s.Prune(ended, 10), 0)
		fixture.Equal(s, "runs that ended before it", s.Prune(ended.Add(time.Microsecond), 10), 1)
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, l.RunID)
		s.Refused(err, engine.ErrNotFound, "GetRun")
		_, err = s.Store.GetStep(s.Ctx, fixture.Space, step.ID)
		s.Refused(err, engine.ErrNotFound, "GetStep")
		_, _, err = s.Store.ListSteps(s.Ctx, fixture.Space, l.RunID, engine.StepFilter{}, engine.Page{Limit: 1})
		s.Refused(err, engine.ErrNotFound, "ListSteps")
		_, err = s.Store.GetRunByExternalID(s.Ctx, fixture.Space, "ext")
		s.Refused(err, engine.ErrNotFound, "GetRunByExternalID")
		s.Refused(s.TryFinish(l, "done"), engine.ErrNotFound, "CompleteRun repeated")
		s.SameIDs("runs with the tag", s.Listed(
			engine.RunFilter{Namespace: fixture.Space, Tags: map[string]string{"k": "v"}}), nil)
		for _, request := range []string{"req", "second"} {
			again := s.NewRun(fixture.WithRequest(request), fixture.OfType("other"))
			fixture.Equal(s, "a start with a forgotten request", s.Started(again), engine.Started{RunID: again.ID})
		}
	}},
	{Name: "a request id is known longer than its run", Run: func(s *fixture.F) {
		s.Worker("w1")
		since := s.Now
		l := s.HeldNext(fixture.WithExternal("ext"), fixture.WithRequest("made"))
		s.Started(s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("answered")))
		s.FailRun(l, "no")
		retry := s.Retry(l.RunID, func(p *engine.RetryRunParams) { p.RequestID = "retried" })
		s.Cancel(retry.RunID)
		s.Pass(time.Hour)
		for _, status := range []engine.RunStatus{engine.RunFailed, engine.RunCancelled} {
			n, err := s.Store.Prune(s.Ctx, engine.PruneParams{Namespace: fixture.Space, Status: status, Before: s.Now,
				Requests: since.Add(-time.Millisecond), Limit: 10})
			s.Must(err, "Prune")
			fixture.Equal(s, "pruned", n, 1)
		}
		known := func(when string) {
			s.Helper()
			for _, request := range []string{"made", "answered"} {
				again := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest(request))
				again.Input = fixture.Text("other")
				fixture.Equal(s, request+" "+when, s.Started(again),
					engine.Started{RunID: l.RunID, Existed: true, Repeated: true})
				again.Type = "other"
				started, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{again}})
				s.Must(err, "StartRuns")
				s.Refused(started[0].Err, engine.ErrConflict, "a start of another type "+when)
			}
			again, err := s.TryRetry(l.RunID, func(p *engine.RetryRunParams) { p.RequestID = "retried" })
			s.Must(err, "RetryRun "+when)
			fixture.Equal(s, "retried "+when, again, engine.Started{RunID: retry.RunID, Existed: true, Repeated: true})
			_, err = s.TryRetry(l.RunID, func(p *engine.RetryRunParams) { p.RequestID, p.Restart = "retried", true })
			s.Refused(err, engine.ErrConflict, "another retry "+when)
		}
		known("after its run was deleted")
		s.PruneRecords(engine.PruneRecordsParams{Requests: since.Truncate(time.Millisecond), Limit: 10})
		known("until it is old enough")
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, l.RunID)
		s.Refused(err, engine.ErrNotFound, "GetRun")
		fixture.Equal(s, "more", s.PruneRecords(engine.PruneRecordsParams{Requests: s.Now, Limit: 2}), true)
		fixture.Equal(s, "more at last", s.PruneRecords(engine.PruneRecordsParams{Requests: s.Now, Limit: 2}), false)
		for _, request := range []string{"made", "answered"} {
			again := s.NewRun(fixture.WithRequest(request))
			fixture.Equal(s, "forgotten "+request, s.Started(again), engine.Started{RunID: again.ID})
		}
	}},
	{Name: "a trigger's request id is known longer than its run", Run: func(s *fixture.F) {
		schedule := s.Plan()
		trigger := func() engine.Started {
			started, err := s.Store.TriggerSchedule(s.Ctx, engine.TriggerScheduleParams{Namespace: fixture.Space,
				Ref: schedule.ID.String(), RunID: s.ID(), RequestID: "r", AuditID: s.ID(), Now: s.Now})
			s.Must(err, "TriggerSchedule")
			return started
		}
		first := trigger()
		s.Cancel(first.RunID)
		s.Pass(time.Hour)
		_, err := s.Store.Prune(s.Ctx, engine.PruneParams{Namespace: fixture.Space, Status: engine.RunCancelled,
			Before: s.Now, Limit: 10})
		s.Must(err, "Prune")
		fixture.Equal(s, "again", trigger(), engine.Started{RunID: first.RunID, Existed: true, Repeated: true})
	}},
	{Name: "Prune takes the oldest first, up to its limit", Run: func(s *fixture.F) {
		s.Worker("w1")
		var leases []engine.Lease
		for range 5 {
			leases = append(leases, s.HeldNext())
		}
		for _, i := range []int{3, 1, 4, 0, 2} {
			s.Pass(time.Second)
			s.Finish(leases[i], "done")
		}
		s.Pass(time.Second)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 2), 2)
		for i, gone := range []bool{false, true, false, true, false} {
			_, err := s.Store.GetRun(s.Ctx, fixture.Space, leases[i].RunID)
			fixture.Equal(s, "gone", err != nil, gone)
		}
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 3)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 0)
	}},
	{Name: "Prune deletes no open run and no other run's rows", Run: func(s *fixture.F) {
		running, sleeping := s.Held(fixture.WithExternal("ext"), fixture.Tagged("k", "v")), s.HeldNext()
		done := s.Complete(running, "pay", "paid")
		s.Sleep(sleeping, "nap", 1000*time.Hour)
		s.Fail(s.HeldNext(), "pay", "no")
		s.Cancel(s.Start(fixture.Tagged("k", "v")))
		pending := s.Start(fixture.WithRequest("req"))
		s.Pass(1000 * 24 * time.Hour)
		before := []engine.Run{s.Run(running.RunID), s.Run(sleeping.RunID), s.Run(pending)}
		fixture.Equal(s, "pruned", s.Prune(s.Now, 100), 1)
		for _, run := range before {
			s.SameRun(s.Run(run.ID), run)
		}
		s.SameStep(s.Step(running.RunID, "pay"), done)
		s.SameIDs("runs with the tag", s.Listed(
			engine.RunFilter{Namespace: fixture.Space, Tags: map[string]string{"k": "v"}}), []engine.ID{running.RunID})
		s.Finish(running, "done")
	}},
	{Name: "Prune handles every status of ended runs", Run: func(s *fixture.F) {
		s.Worker("w1")
		ended := s.EndedRuns()
		s.Pass(time.Second)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 100), len(ended))
		fixture.Equal(s, "runs", s.CountRuns(), 0)
	}},
	{Name: "PruneRecords deletes workers OFFLINE before its time", Run: func(s *fixture.F) {
		s.Worker("gone")
		s.Worker("online")
		s.Worker("recent")
		s.Offline("gone", engine.OfflineDeregistered)
		s.Pass(time.Hour)
		s.Offline("recent", engine.OfflineLost)
		s.Prune(s.Now, 10)
		_, err := s.Store.GetWorker(s.Ctx, "gone")
		s.Refused(err, engine.ErrNotFound, "GetWorker")
		fixture.Equal(s, "status", s.WorkerState("online").Status, engine.WorkerOnline)
		fixture.Equal(s, "status", s.WorkerState("recent").Status, engine.WorkerOffline)
	}},
	{Name: "PruneRecords deletes old audit events of all namespaces",
		Run: func(s *fixture.F) {
			note := func(namespace, subject string) {
				s.Helper()
				e := engine.AuditEvent{ID: s.ID(), At: s.Now, Method: "CancelWorkflow", Namespace: namespace,
					Subject: "run", SubjectID: subject, Outcome: "PERMISSION_DENIED"}
				s.Must(s.Store.NoteRefusal(s.Ctx, e), "NoteRefusal")
			}
			left := func(want ...string) {
				s.Helper()
				var got []string
				for _, namespace := range []string{fixture.Space, "other", ""} {
					events, _, err := s.Store.ListAuditEvents(
						s.Ctx, engine.AuditFilter{Namespace: namespace}, engine.Page{Limit: 10})
					s.Must(err, "ListAuditEvents")
					for _, e := range events {
						got = append(got, e.SubjectID)
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					s.Fatalf("audit events = %q, want %q", got, want)
				}
			}
			s.Now = s.Now.Truncate(time.Millisecond)
			begun := s.Now
			for i, namespace := range []string{"other", fixture.Space, "", fixture.Space, fixture.Space} {
				note(namespace, fmt.Sprint(i))
				s.Pass(time.Second)
			}
			fixture.Equal(s, "more", s.PruneRecords(
				engine.PruneRecordsParams{Workers: s.Now, Fires: s.Now, Limit: 2}), false)
			left("0", "1", "2", "3", "4")
			before := engine.PruneRecordsParams{Audit: begun.Add(3 * time.Second), Limit: 2}
			fixture.Equal(s, "more", s.PruneRecords(before), true)
			left("2", "3", "4")
			fixture.Equal(s, "more", s.PruneRecords(before), false)
			left("3", "4")
			fixture.Equal(s, "more", s.PruneRecords(before), false)
			left("3", "4")
			before.Audit = begun.Add(3*time.Second + time.Millisecond)
			fixture.Equal(s, "more", s.PruneRecords(before), false)
			left("4")
		}},
	{Name: "PruneRecords says whether more records are left", Run: func(s *fixture.F) {
		for _, id := range []string{"a", "b", "c"} {
			s.Worker(id)
			s.Offline(id, engine.OfflineDeregistered)
		}
		s.Pass(time.Hour)
		p := engine.PruneRecordsParams{Workers: s.Now, Limit: 2}
		fixture.Equal(s, "more", s.PruneRecords(p), true)
		fixture.Equal(s, "more", s.PruneRecords(p), false)
		_, err := s.Store.GetWorker(s.Ctx, "c")
		s.Refused(err, engine.ErrNotFound, "GetWorker")
	}},
	{Name: "LiveWorkers returns all that are not OFFLINE", Run: func(s *fixture.F) {
		s.Worker("a")
		s.Pass(time.Second)
		s.Worker("b")
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "b", Now: s.Now}), "DrainWorker")
		other := s.NewWorker("c")
		other.Namespace = "other"
		s.Register(other, true)
		s.Worker("d")
		s.Offline("d", engine.OfflineForced)
		live, err := s.Store.LiveWorkers(s.Ctx)
		s.Must(err, "LiveWorkers")
		heard := map[string]time.Time{}
		for _, w := range live {
			heard[w.ID] = w.HeardAt
		}
		fixture.Equal(s, "live workers", len(live), 3)
		s.SameTime("a was heard", heard["a"], s.Now.Add(-time.Second))
		s.SameTime("b was heard", heard["b"], s.Now)
		s.SameTime("c was heard", heard["c"], s.Now)
	}},
}
