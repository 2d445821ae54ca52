package runs

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// OverrideCases are the step results that people set.
var OverrideCases = []fixture.Case{
	{Name: "an override is recorded with its author and reason",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Fail(l, "pay", "declined")
			s.Pause(l.RunID)
			paid := fixture.Text("paid in cash")
			p := engine.OverrideStepParams{SteerParams: s.Steer(l.RunID, "saw the receipt"), ID: s.ID(), Step: "pay",
				Output: &paid}
			step, err := s.Store.OverrideStep(s.Ctx, p)
			s.Must(err, "OverrideStep")
			fixture.Equal(s, "status", step.Status, engine.StepCompleted)
			fixture.Equal(s, "overridden by", step.OverriddenBy, "local")
			fixture.Equal(s, "reason", step.OverrideReason, "saw the receipt")
			attempts := s.Attempts(l.RunID, "pay")
			fixture.Equal(s, "attempts", len(attempts), 2)
			fixture.Equal(s, "old status", attempts[0].Status, engine.StepFailed)
			fixture.Equal(s, "old is the latest", attempts[0].Latest, false)
			p.ID = s.ID()
			again, err := s.Store.OverrideStep(s.Ctx, p)
			s.Must(err, "OverrideStep repeated")
			fixture.Equal(s, "attempt of the repetition", again.ID, step.ID)
			s.Resume(l.RunID)
			task := s.Claim("w1")
			s.Payload("history", task.History[0].Output, paid)
			list := s.Audit(l.RunID.String())
			fixture.Equal(s, "audited", list[1].Method+" "+list[1].Detail, "OverrideStep pay")
		}},
	{Name: "an ended run's step can be overridden for its retry", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "a", "x")
		s.Fail(l, "pay", "declined", fixture.ForGood)
		s.FailRun(l, "no")
		out := fixture.Text("y")
		_, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{
			SteerParams: s.Steer(l.RunID, "why"), ID: s.ID(), Step: "pay", Output: &out})
		s.Must(err, "OverrideStep")
		s.Status(l.RunID, engine.RunFailed)
		s.Retry(l.RunID)
		task := s.Claim("w1")
		fixture.Equal(s, "steps kept", len(task.History), 2)
		s.Payload("output", task.History[1].Output, out)
	}},
	{Name: "an override of a step that waited for its retry has no place in the order of results yet",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Complete(l, "a", "x")
			s.Fail(l, "pay", "declined")
			s.Pause(l.RunID)
			s.CancelAnyway(l.RunID)
			out := fixture.Text("y")
			step, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{
				SteerParams: s.Steer(l.RunID, "why"), ID: s.ID(), Step: "pay", Output: &out})
			s.Must(err, "OverrideStep")
			fixture.Equal(s, "place", step.Settled, engine.Unsettled)
		}},
	{Name: "a repeated override is answered after the run went on",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Fail(l, "pay", "declined")
			s.Pause(l.RunID)
			paid := fixture.Text("paid in cash")
			p := engine.OverrideStepParams{SteerParams: s.Steer(l.RunID, "saw the receipt"), ID: s.ID(), Step: "pay",
				Output: &paid}
			step, err := s.Store.OverrideStep(s.Ctx, p)
			s.Must(err, "OverrideStep")
			s.Resume(l.RunID)
			repeat := func(when string) {
				s.Helper()
				p.ID, p.AuditID = s.ID(), s.ID()
				again, err := s.Store.OverrideStep(s.Ctx, p)
				s.Must(err, "OverrideStep repeated "+when)
				step.Settled = s.Step(l.RunID, "pay").Settled // once a claim has told it
				s.SameStep(again, step)
				other := p
				other.Reason = "somebody else's"
				_, err = s.Store.OverrideStep(s.Ctx, other)
				s.Refused(err, engine.ErrPrecondition, "OverrideStep for another reason "+when)
			}
			repeat("when the run is due again")
			next := s.Claim("w1").Lease
			repeat("when the run is at work")
			s.Finish(next, "done")
			repeat("when the run has completed")
			fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 2)
		}},
	{Name: "a step can be overridden as failed", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval")
		s.Pause(l.RunID)
		f := fixture.Boom("nobody will ever answer")
		_, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{
			SteerParams: s.Steer(l.RunID, "why"), ID: s.ID(), Step: "approval", Failure: &f})
		s.Must(err, "OverrideStep")
		s.Resume(l.RunID)
		task := s.Claim("w1")
		fixture.Equal(s, "status", task.History[0].Status, engine.StepFailed)
		s.Failure("error", task.History[0].Error, f)
	}},
	{Name: "a timer overridden as failed is set again by a run retry", Run: func(s *fixture.F) {
		l, at := s.FailedTimer()
		fixture.Equal(s, "status", s.Step(l.RunID, "nap").Status, engine.StepPending)
		s.Now = at
		l = s.Claim("w1").Lease
		s.Now = at.Add(-time.Microsecond) // the clock was set back: what was due at the claim is not too early
		s.Sleep(l, "nap", time.Hour)
		s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Hour))
		fixture.Equal(s, "attempt", s.Step(l.RunID, "nap").Attempt, 3)
		s.Sleep(l, "nap", time.Hour)
		s.Pass(time.Hour)
		fixture.Equal(s, "status of the timer", s.Claim("w1").History[0].Status, engine.StepCompleted)
	}},
	{Name: "a claim does not set a timer that must be set later", Run: func(s *fixture.F) {
		l, _ := s.FailedTimer()
		s.CancelWithin(l.RunID, time.Hour) // makes it due at once
		l = s.Claim("w1").Lease
		s.Refused(s.TrySleep(l, "nap", time.Hour), engine.ErrPrecondition, "Sleep before the step is to be tried again")
	}},
	{Name: "a running run cannot be overridden", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "x")
		out := fixture.Text("y")
		p := engine.OverrideStepParams{SteerParams: s.Steer(l.RunID, "why"), ID: s.ID(), Step: "pay", Output: &out}
		_, err := s.Store.OverrideStep(s.Ctx, p)
		s.Refused(err, engine.ErrPrecondition, "OverrideStep")
		s.Pause(l.RunID)
		p.Step = "never"
		_, err = s.Store.OverrideStep(s.Ctx, p)
		s.Refused(err, engine.ErrNotFound, "OverrideStep of a step that was never begun")
		s.Resume(l.RunID)
		s.Finish(s.Claim("w1").Lease, "done")
		p.Step = "pay"
		_, err = s.Store.OverrideStep(s.Ctx, p)
		s.Refused(err, engine.ErrPrecondition, "OverrideStep of a COMPLETED run")
	}},
	{Name: "an override replaces another, the same one is kept",
		Run: func(s *fixture.F) {
			run := s.Failed("pay")
			decide := func(p engine.OverrideStepParams) engine.Step {
				s.Helper()
				p.SteerParams, p.ID, p.Step = s.Steer(run, "why"), s.ID(), "pay"
				step, err := s.Store.OverrideStep(s.Ctx, p)
				s.Must(err, "OverrideStep")
				return step
			}
			one, other, no := fixture.Text("one"), fixture.Text("other"), fixture.Boom("no")
			bytes := s.Run(run).Bytes
			for i, p := range []engine.OverrideStepParams{
				{Output: &one}, {Output: &other}, {Failure: &no}, {Output: &one}} {
				first := decide(p)
				fixture.Equal(s, "attempt", first.Attempt, i+2)
				fixture.Equal(s, "attempt of the repetition", decide(p).ID, first.ID)
				stands := s.Step(run, "pay")
				fixture.Equal(s, "attempt that stands", stands.ID, first.ID)
				if p.Output != nil {
					s.Payload("output", stands.Output, *p.Output)
				} else {
					s.Failure("error", stands.Error, *p.Failure)
				}
			}
			fixture.Equal(s, "attempts", len(s.Attempts(run, "pay")), 5)
			fixture.Equal(s, "audit events", len(s.Audit(run.String())), 4)
			fixture.Equal(s, "bytes", s.Run(run).Bytes, bytes+int64(2*one.Size()+other.Size()+no.Size()))
		}},
	{Name: "an overridden child step ignores the child's end", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.Pause(l.RunID)
		out := fixture.Text("shipped by hand")
		_, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{
			SteerParams: s.Steer(l.RunID, "why"), ID: s.ID(), Step: "ship", Output: &out})
		s.Must(err, "OverrideStep")
		before := s.Attempts(l.RunID, "ship")
		s.Finish(s.ClaimChild(child), "shipped")
		after := s.Attempts(l.RunID, "ship")
		fixture.Equal(s, "attempts", len(after), len(before))
		for i := range before {
			s.SameStep(after[i], before[i])
		}
	}},
}
