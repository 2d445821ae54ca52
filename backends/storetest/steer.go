package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

var pauseCases = []testCase{
	{"a paused run is claimed by nobody, and by somebody once it is resumed", func(s *stage) {
		s.worker("w1")
		run := s.start()
		equal(s, "paused", s.pause(run).Paused, true)
		s.claimNothing("w1")
		s.pass(time.Hour)
		s.claimNothing("w1")
		resumed := s.resume(run)
		equal(s, "paused after resuming", resumed.Paused, false)
		equal(s, "claimed", s.claim("w1").Run.ID, run)
	}},
	{"pausing takes a run from its worker, at no cost to its budgets", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "x")
		s.begin(l, "ship")
		s.pause(l.RunID)
		run := s.status(l.RunID, engine.RunPending)
		equal(s, "lease losses", run.LeaseLosses, 0)
		equal(s, "attempts", run.Attempts, 1)
		s.lost(s.tryFinish(l, "x"), engine.RunPending, "CompleteRun while paused")
		equal(s, "interrupted", s.attempts(l.RunID, "ship")[0].Error.Code, engine.FailureCrashed)
		s.resume(l.RunID)
		task := s.claim("w1")
		s.payload("history", task.History[0].Output, text("x"))
	}},
	{"the timers of a paused run wait, and are over when it is resumed late", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Minute)
		wake := s.now.Add(time.Minute)
		s.pause(l.RunID)
		run := s.status(l.RunID, engine.RunSleeping)
		s.sameTime("held at", run.HeldAt, wake)
		s.sameTime("available at", run.AvailableAt, time.Time{})
		s.resume(l.RunID)
		s.parked(l.RunID, "timer:nap", wake)
		s.pause(l.RunID)
		s.pass(time.Hour)
		s.claimNothing("w1")
		s.resume(l.RunID)
		task := s.claim("w1")
		s.sameTime("the timer was over at", task.History[0].FinishedAt, wake)
	}},
	{"a run whose wait ends while it is paused keeps its place among those that are due", func(s *stage) {
		l := s.held()
		s.await(l, "paid?", "paid", atMost(time.Minute), holdingOn)
		s.sleep(l, "nap", time.Minute)
		due := s.now.Add(time.Minute)
		s.pause(l.RunID)
		s.pass(time.Hour)
		s.signal(l.RunID, "paid", "yes")
		s.sameTime("held at", s.run(l.RunID).HeldAt, due)
		s.resume(l.RunID)
		s.sameTime("available at", s.run(l.RunID).AvailableAt, due)
	}},
	{"pausing and resuming twice is fine, and an ended run refuses both", func(s *stage) {
		run := s.start()
		s.resume(run)
		s.pause(run)
		s.pause(run)
		s.resume(run)
		s.resume(run)
		equal(s, "audit events", len(s.audit(run.String())), 2)
		s.cancel(run)
		_, err := s.store.PauseRun(s.ctx, s.steer(run, ""))
		s.refused(err, engine.ErrPrecondition, "PauseRun")
		s.explained(err, engine.RunCancelled, "PauseRun")
		_, err = s.store.ResumeRun(s.ctx, s.steer(run, ""))
		s.refused(err, engine.ErrPrecondition, "ResumeRun")
		_, err = s.store.PauseRun(s.ctx, s.steer(s.id(), ""))
		s.refused(err, engine.ErrNotFound, "PauseRun of a run that is not there")
	}},
	{"a paused run can be cancelled and terminated", func(s *stage) {
		a, b := s.start(), s.start()
		s.pause(a)
		s.pause(b)
		equal(s, "status", s.cancel(a).Status, engine.RunCancelled)
		end, err := s.store.TerminateRun(s.ctx, s.endParams(b, ""))
		s.must(err, "TerminateRun")
		equal(s, "status", end.Status, engine.RunTerminated)
	}},
	{"who paused it, when and why is kept", func(s *stage) {
		run := s.start()
		s.pause(run)
		s.pass(time.Minute)
		s.resume(run)
		list := s.audit(run.String())
		equal(s, "audit events", len(list), 2)
		resumed, paused := list[0], list[1]
		equal(s, "newest first", resumed.Method, "ResumeWorkflow")
		equal(s, "method", paused.Method, "PauseWorkflow")
		equal(s, "actor", paused.Actor, somebody)
		equal(s, "reason", paused.Reason, "hold on")
		equal(s, "subject", paused.Subject+" "+paused.SubjectID, "run "+run.String())
		equal(s, "outcome", paused.Outcome, "ok")
		s.sameTime("at", paused.At, s.now.Add(-time.Minute))
	}},
	{"a note stands in lists until another one does", func(s *stage) {
		l := s.held()
		for _, note := range []string{"3 of 10", "4 of 10"} {
			s.must(s.store.SetRunNote(s.ctx, engine.SetNoteParams{Lease: l, Note: note, Now: s.now}), "SetRunNote")
			list, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, engine.Page{Limit: 1})
			s.must(err, "ListRuns")
			equal(s, "note", list[0].Note, note)
		}
		s.lose("w1")
		s.lost(s.store.SetRunNote(s.ctx, engine.SetNoteParams{Lease: l, Note: "late", Now: s.now}), engine.RunPending, "SetRunNote")
		equal(s, "note", s.run(l.RunID).Note, "4 of 10")
	}},
	{"a run is answered whole when it is paused, resumed and pinned", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "x")
		for range 2 { // the second changes nothing
			s.sameRun(s.pause(l.RunID), s.run(l.RunID))
		}
		for range 2 {
			s.sameRun(s.resume(l.RunID), s.run(l.RunID))
		}
		for range 2 {
			pinned, err := s.store.PinRun(s.ctx, engine.PinRunParams{SteerParams: s.steer(l.RunID, ""), Pinned: true})
			s.must(err, "PinRun")
			s.sameRun(pinned, s.run(l.RunID))
		}
	}},
	{"a paused run that ends is paused no longer", func(s *stage) {
		run := s.start()
		s.pause(run)
		s.cancel(run)
		ended := s.run(run)
		equal(s, "paused", ended.Paused, false)
		s.sameTime("held at", ended.HeldAt, time.Time{})
	}},
}
