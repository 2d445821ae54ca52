package runs

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var PauseCases = []fixture.Case{
	{Name: "a paused run is claimed only after it is resumed", Run: func(s *fixture.F) {
		s.Worker("w1")
		run := s.Start()
		fixture.Equal(s, "paused", s.Pause(run).Paused, true)
		s.ClaimNothing("w1")
		s.Pass(time.Hour)
		s.ClaimNothing("w1")
		resumed := s.Resume(run)
		fixture.Equal(s, "paused after resuming", resumed.Paused, false)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, run)
	}},
	{Name: "pausing ends the lease without using budgets", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "x")
		s.Begin(l, "ship")
		s.Pause(l.RunID)
		run := s.Status(l.RunID, engine.RunPending)
		fixture.Equal(s, "lease losses", run.LeaseLosses, 0)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		s.Lost(s.TryFinish(l, "x"), engine.RunPending, "CompleteRun while paused")
		fixture.Equal(s, "interrupted", s.Attempts(l.RunID, "ship")[0].Error.Code, engine.FailureCrashed)
		s.Resume(l.RunID)
		task := s.Claim("w1")
		s.Payload("history", task.History[0].Output, fixture.Text("x"))
	}},
	{Name: "timers of a paused run are completed when it is resumed", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Minute)
		wake := s.Now.Add(time.Minute)
		s.Pause(l.RunID)
		run := s.Status(l.RunID, engine.RunSleeping)
		s.SameTime("held at", run.HeldAt, wake)
		s.SameTime("available at", run.AvailableAt, time.Time{})
		s.Resume(l.RunID)
		s.Parked(l.RunID, "timer:nap", wake)
		s.Pause(l.RunID)
		s.Pass(time.Hour)
		s.ClaimNothing("w1")
		s.Resume(l.RunID)
		task := s.Claim("w1")
		s.SameTime("the timer was over at", task.History[0].FinishedAt, wake)
	}},
	{Name: "a run whose wait ends while paused keeps its due time",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Await(l, "paid?", "paid", fixture.AtMost(time.Minute), fixture.HoldingOn)
			s.Sleep(l, "nap", time.Minute)
			due := s.Now.Add(time.Minute)
			s.Pause(l.RunID)
			s.Pass(time.Hour)
			s.Signal(l.RunID, "paid", "yes")
			s.SameTime("held at", s.Run(l.RunID).HeldAt, due)
			s.Resume(l.RunID)
			s.SameTime("available at", s.Run(l.RunID).AvailableAt, due)
		}},
	{Name: "pause and resume may be repeated, an ended run refuses both", Run: func(s *fixture.F) {
		run := s.Start()
		s.Resume(run)
		s.Pause(run)
		s.Pause(run)
		s.Resume(run)
		s.Resume(run)
		fixture.Equal(s, "audit events", len(s.Audit(run.String())), 2)
		s.Cancel(run)
		_, err := s.Store.PauseRun(s.Ctx, engine.PauseRunParams{SteerParams: s.Steer(run, "")})
		s.Refused(err, engine.ErrPrecondition, "PauseRun")
		s.Explained(err, engine.RunCancelled, "PauseRun")
		_, err = s.Store.ResumeRun(s.Ctx, engine.ResumeRunParams{SteerParams: s.Steer(run, "")})
		s.Refused(err, engine.ErrPrecondition, "ResumeRun")
		_, err = s.Store.PauseRun(s.Ctx, engine.PauseRunParams{SteerParams: s.Steer(s.ID(), "")})
		s.Refused(err, engine.ErrNotFound, "PauseRun of a run that is not there")
	}},
	{Name: "a paused run can be cancelled and terminated", Run: func(s *fixture.F) {
		a, b := s.Start(), s.Start()
		s.Pause(a)
		s.Pause(b)
		fixture.Equal(s, "status", s.Cancel(a).Status, engine.RunCancelled)
		end, err := s.Store.TerminateRun(s.Ctx, s.EndParams(b, ""))
		s.Must(err, "TerminateRun")
		fixture.Equal(s, "status", end.Status, engine.RunTerminated)
	}},
	{Name: "pausing is audited", Run: func(s *fixture.F) {
		run := s.Start()
		s.Pause(run)
		s.Pass(time.Minute)
		s.Resume(run)
		list := s.Audit(run.String())
		fixture.Equal(s, "audit events", len(list), 2)
		resumed, paused := list[0], list[1]
		fixture.Equal(s, "newest first", resumed.Method, "ResumeWorkflow")
		fixture.Equal(s, "method", paused.Method, "PauseWorkflow")
		fixture.Equal(s, "actor", paused.Actor, fixture.Somebody)
		fixture.Equal(s, "reason", paused.Reason, "hold on")
		fixture.Equal(s, "subject", paused.Subject+" "+paused.SubjectID, "run "+run.String())
		fixture.Equal(s, "outcome", paused.Outcome, "ok")
		s.SameTime("at", paused.At, s.Now.Add(-time.Minute))
	}},
	{Name: "a note is listed until another replaces it", Run: func(s *fixture.F) {
		l := s.Held()
		for _, note := range []string{"3 of 10", "4 of 10"} {
			s.Must(s.Store.SetRunNote(s.Ctx, engine.SetNoteParams{Lease: l, Note: note, Now: s.Now}), "SetRunNote")
			list, _, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space}, engine.Page{Limit: 1})
			s.Must(err, "ListRuns")
			fixture.Equal(s, "note", list[0].Note, note)
		}
		s.Lose("w1")
		s.Lost(s.Store.SetRunNote(s.Ctx, engine.SetNoteParams{Lease: l, Note: "late", Now: s.Now}), engine.RunPending,
			"SetRunNote")
		fixture.Equal(s, "note", s.Run(l.RunID).Note, "4 of 10")
	}},
	{Name: "pause, resume and pin return the whole run", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "x")
		for range 2 { // the second changes nothing
			s.SameRun(s.Pause(l.RunID), s.Run(l.RunID))
		}
		for range 2 {
			s.SameRun(s.Resume(l.RunID), s.Run(l.RunID))
		}
		for range 2 {
			pinned, err := s.Store.PinRun(s.Ctx, engine.PinRunParams{SteerParams: s.Steer(l.RunID, ""), Pinned: true})
			s.Must(err, "PinRun")
			s.SameRun(pinned, s.Run(l.RunID))
		}
	}},
	{Name: "a paused run that ends is no longer paused", Run: func(s *fixture.F) {
		run := s.Start()
		s.Pause(run)
		s.Cancel(run)
		ended := s.Run(run)
		fixture.Equal(s, "paused", ended.Paused, false)
		s.SameTime("held at", ended.HeldAt, time.Time{})
	}},
}
