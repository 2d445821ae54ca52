package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// overrideCases are the results that people put in by hand.
var overrideCases = []testCase{
	{"a result put in by hand stands in the history, with who and why, and the old record beside it", func(s *stage) {
		l := s.held()
		s.fail(l, "pay", "declined")
		s.pause(l.RunID)
		paid := text("paid in cash")
		p := engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "saw the receipt"), ID: s.id(), Step: "pay", Output: &paid}
		step, err := s.store.OverrideStep(s.ctx, p)
		s.must(err, "OverrideStep")
		equal(s, "status", step.Status, engine.StepCompleted)
		equal(s, "overridden by", step.OverriddenBy, "local")
		equal(s, "reason", step.OverrideReason, "saw the receipt")
		attempts := s.attempts(l.RunID, "pay")
		equal(s, "attempts", len(attempts), 2)
		equal(s, "old status", attempts[0].Status, engine.StepFailed)
		equal(s, "old is the latest", attempts[0].Latest, false)
		p.ID = s.id()
		again, err := s.store.OverrideStep(s.ctx, p)
		s.must(err, "OverrideStep repeated")
		equal(s, "attempt of the repetition", again.ID, step.ID)
		s.resume(l.RunID)
		task := s.claim("w1")
		s.payload("history", task.History[0].Output, paid)
		list := s.audit(l.RunID.String())
		equal(s, "audited", list[1].Method+" "+list[1].Detail, "OverrideStep pay")
	}},
	{"an ended run's step can be overridden, and a retry keeps it", func(s *stage) {
		l := s.held()
		s.complete(l, "a", "x")
		s.fail(l, "pay", "declined", forGood)
		s.failRun(l, "no")
		out := text("y")
		_, err := s.store.OverrideStep(s.ctx, engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "why"), ID: s.id(), Step: "pay", Output: &out})
		s.must(err, "OverrideStep")
		s.status(l.RunID, engine.RunFailed)
		s.retry(l.RunID)
		task := s.claim("w1")
		equal(s, "steps kept", len(task.History), 2)
		s.payload("output", task.History[1].Output, out)
	}},
	{"a result put in by hand is answered again when its run is at work again, and when it has completed", func(s *stage) {
		l := s.held()
		s.fail(l, "pay", "declined")
		s.pause(l.RunID)
		paid := text("paid in cash")
		p := engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "saw the receipt"), ID: s.id(), Step: "pay", Output: &paid}
		step, err := s.store.OverrideStep(s.ctx, p)
		s.must(err, "OverrideStep")
		s.resume(l.RunID)
		repeat := func(when string) {
			s.Helper()
			p.ID, p.AuditID = s.id(), s.id()
			again, err := s.store.OverrideStep(s.ctx, p)
			s.must(err, "OverrideStep repeated "+when)
			s.sameStep(again, step)
			other := p
			other.Reason = "somebody else's"
			_, err = s.store.OverrideStep(s.ctx, other)
			s.refused(err, engine.ErrPrecondition, "OverrideStep for another reason "+when)
		}
		repeat("when the run is due again")
		next := s.claim("w1").Lease
		repeat("when the run is at work")
		s.finish(next, "done")
		repeat("when the run has completed")
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 2)
	}},
	{"a step can be made to fail for good", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval")
		s.pause(l.RunID)
		f := boom("nobody will ever answer")
		_, err := s.store.OverrideStep(s.ctx, engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "why"), ID: s.id(), Step: "approval", Failure: &f})
		s.must(err, "OverrideStep")
		s.resume(l.RunID)
		task := s.claim("w1")
		equal(s, "status", task.History[0].Status, engine.StepFailed)
		s.failure("error", task.History[0].Error, f)
	}},
	{"a timer that was made to fail is set anew when its run is tried again", func(s *stage) {
		l, at := s.failedTimer()
		equal(s, "status", s.step(l.RunID, "nap").Status, engine.StepPending)
		s.now = at
		l = s.claim("w1").Lease
		s.now = at.Add(-time.Microsecond) // the clock was set back: what was due at the claim is not too early
		s.sleep(l, "nap", time.Hour)
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Hour))
		equal(s, "attempt", s.step(l.RunID, "nap").Attempt, 3)
		s.sleep(l, "nap", time.Hour)
		s.pass(time.Hour)
		equal(s, "status of the timer", s.claim("w1").History[0].Status, engine.StepCompleted)
	}},
	{"a timer that is to be set anew later is not set by a claim that comes before", func(s *stage) {
		l, _ := s.failedTimer()
		s.cancelWithin(l.RunID, time.Hour) // has it due at once
		l = s.claim("w1").Lease
		s.refused(s.trySleep(l, "nap", time.Hour), engine.ErrPrecondition, "Sleep before the step is to be tried again")
	}},
	{"a run that is at work cannot be overridden", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "x")
		out := text("y")
		p := engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "why"), ID: s.id(), Step: "pay", Output: &out}
		_, err := s.store.OverrideStep(s.ctx, p)
		s.refused(err, engine.ErrPrecondition, "OverrideStep")
		s.pause(l.RunID)
		p.Step = "never"
		_, err = s.store.OverrideStep(s.ctx, p)
		s.refused(err, engine.ErrNotFound, "OverrideStep of a step that was never begun")
		s.resume(l.RunID)
		s.finish(s.claim("w1").Lease, "done")
		p.Step = "pay"
		_, err = s.store.OverrideStep(s.ctx, p)
		s.refused(err, engine.ErrPrecondition, "OverrideStep of a COMPLETED run")
	}},
	{"one decision about a step takes the place of another, and the same is recorded once", func(s *stage) {
		run := s.failed("pay")
		decide := func(p engine.OverrideStepParams) engine.Step {
			s.Helper()
			p.SteerParams, p.ID, p.Step = s.steer(run, "why"), s.id(), "pay"
			step, err := s.store.OverrideStep(s.ctx, p)
			s.must(err, "OverrideStep")
			return step
		}
		one, other, no := text("one"), text("other"), boom("no")
		bytes := s.run(run).Bytes
		for i, p := range []engine.OverrideStepParams{{Output: &one}, {Output: &other}, {Failure: &no}, {Output: &one}} {
			first := decide(p)
			equal(s, "attempt", first.Attempt, i+2)
			equal(s, "attempt of the repetition", decide(p).ID, first.ID)
			stands := s.step(run, "pay")
			equal(s, "attempt that stands", stands.ID, first.ID)
			if p.Output != nil {
				s.payload("output", stands.Output, *p.Output)
			} else {
				s.failure("error", stands.Error, *p.Failure)
			}
		}
		equal(s, "attempts", len(s.attempts(run, "pay")), 5)
		equal(s, "audit events", len(s.audit(run.String())), 4)
		equal(s, "bytes", s.run(run).Bytes, bytes+int64(2*one.Size()+other.Size()+no.Size()))
	}},
	{"a child's step that a person has decided about stays so when the child ends", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.pause(l.RunID)
		out := text("shipped by hand")
		_, err := s.store.OverrideStep(s.ctx, engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "why"), ID: s.id(), Step: "ship", Output: &out})
		s.must(err, "OverrideStep")
		before := s.attempts(l.RunID, "ship")
		s.finish(s.claimChild(child), "shipped")
		after := s.attempts(l.RunID, "ship")
		equal(s, "attempts", len(after), len(before))
		for i := range before {
			s.sameStep(after[i], before[i])
		}
	}},
}

// failedTimer is a run that is to be tried again at that moment, and whose timer "nap", made to fail by a person, is to be set anew then.
func (s *stage) failedTimer() (engine.Lease, time.Time) {
	s.Helper()
	l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 1000, Jitter: -1}))
	s.sleep(l, "nap", time.Hour)
	s.pause(l.RunID)
	f := boom("it takes too long")
	_, err := s.store.OverrideStep(s.ctx, engine.OverrideStepParams{SteerParams: s.steer(l.RunID, "why"), ID: s.id(), Step: "nap", Failure: &f})
	s.must(err, "OverrideStep")
	s.resume(l.RunID)
	l = s.claim("w1").Lease
	return l, s.failRun(l, "no").RetryAt
}
