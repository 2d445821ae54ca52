package runs

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var CancelCases = []fixture.Case{
	{Name: "a PENDING, RUNNING or SLEEPING run can be ended", Run: func(s *fixture.F) {
		for _, verb := range fixture.EndVerbs {
			sleeping := s.HeldAgain()
			s.Sleep(sleeping, "nap", time.Hour)
			running := s.HeldNext()
			for _, run := range []engine.ID{s.Start(), running.RunID, sleeping.RunID} {
				s.Pass(time.Second)
				end, err := verb.End(s, run, "no longer wanted")
				s.Must(err, verb.Name)
				fixture.Equal(s, "answer", end, engine.RunEnd{Status: verb.Status, Changed: true})
				got := s.Status(run, verb.Status)
				s.Failure("error", got.Error, engine.EndedByFailure(verb.Status, "no longer wanted"))
				s.SameTime("finished at", got.FinishedAt, s.Now)
				s.SameTime("available at", got.AvailableAt, time.Time{})
				fixture.Equal(s, "waiting for", got.WaitingFor, "")
			}
			fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
			if next := s.ClaimNothing("w1").NextDue; !next.IsZero() {
				s.Fatalf("an ended run is due at %s", fixture.Clock(next))
			}
		}
	}},
	{Name: "an empty reason is replaced by a default text", Run: func(s *fixture.F) {
		for _, verb := range fixture.EndVerbs {
			run := s.Start()
			_, err := verb.End(s, run, "")
			s.Must(err, verb.Name)
			s.Failure("error", s.Run(run).Error, engine.EndedByFailure(verb.Status, ""))
		}
	}},
	{Name: "ending a run again in the same way changes nothing", Run: func(s *fixture.F) {
		for _, verb := range fixture.EndVerbs {
			run := s.Start()
			_, err := verb.End(s, run, "first")
			s.Must(err, verb.Name)
			before := s.Run(run)
			s.Pass(time.Second)
			end, err := verb.End(s, run, "second")
			s.Must(err, verb.Name+" again")
			fixture.Equal(s, "answer", end, engine.RunEnd{Status: verb.Status})
			s.SameRun(s.Run(run), before)
		}
	}},
	{Name: "a run that ended otherwise is refused with its status", Run: func(s *fixture.F) {
		s.Worker("w1")
		for _, verb := range fixture.EndVerbs {
			for status, run := range s.EndedRuns() {
				if status == verb.Status {
					continue
				}
				before := s.Run(run)
				_, err := verb.End(s, run, "x")
				s.Refused(err, engine.ErrPrecondition, verb.Name+" of a run that is "+status.String())
				s.Explained(err, status, verb.Name)
				s.SameRun(s.Run(run), before)
			}
		}
	}},
	{Name: "ending an unknown run is RunNotFound", Run: func(s *fixture.F) {
		run := s.Start()
		for _, verb := range fixture.EndVerbs {
			_, err := verb.End(s, s.ID(), "x")
			s.Refused(err, engine.ErrNotFound, verb.Name+" of an unknown run")
			p := s.EndParams(run, "x")
			p.Namespace = "other"
			_, err = verb.Call(s.Store, s.Ctx, p)
			s.Refused(err, engine.ErrNotFound, verb.Name+" in another namespace")
		}
		s.Status(run, engine.RunPending)
	}},
	{Name: "the holder of an ended run gets LeaseLost with its status", Run: func(s *fixture.F) {
		for _, verb := range fixture.EndVerbs {
			l := s.HeldAgain()
			s.Begin(l, "pay")
			_, err := verb.End(s, l.RunID, "")
			s.Must(err, verb.Name)
			_, err = s.TryComplete(l, "pay", "paid")
			s.Lost(err, verb.Status, "CompleteStep")
			s.Lost(s.TryFinish(l, "done"), verb.Status, "CompleteRun")
			_, err = s.TryFailRun(l, "no")
			s.Lost(err, verb.Status, "FailRun")
			s.Lost(s.TryRelease(l, false), verb.Status, "Release")
			beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = []engine.Lease{l} })
			fixture.Equal(s, "lost leases", len(beat.Lost), 1)
		}
	}},
	{Name: "a repeated result is OK although the run has ended since", Run: func(s *fixture.F) {
		l := s.Held()
		done := s.Complete(l, "pay", "paid")
		s.Cancel(l.RunID)
		s.SameStep(s.Complete(l, "pay", "paid"), done)
		_, err := s.TryComplete(l, "pay", "other")
		s.Refused(err, engine.ErrConflict, "CompleteStep with other content")
		s.Status(l.RunID, engine.RunCancelled)
	}},
	{Name: "an ended run shows its last worker", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		s.Cancel(l.RunID)
		run := s.Run(l.RunID)
		fixture.Equal(s, "worker", run.WorkerID, "w1")
		fixture.Equal(s, "steps", run.Steps, 1)
		fixture.Equal(s, "bytes of the steps", run.Bytes >= int64(len("input")+len("paid")), true)
	}},
}
