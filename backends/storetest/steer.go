package storetest

import (
	"fmt"
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
			s.must(s.store.SetNote(s.ctx, engine.SetNoteParams{Lease: l, Note: note, Now: s.now}), "SetNote")
			list, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, engine.Page{Limit: 1})
			s.must(err, "ListRuns")
			equal(s, "note", list[0].Note, note)
		}
		s.lose("w1")
		s.lost(s.store.SetNote(s.ctx, engine.SetNoteParams{Lease: l, Note: "late", Now: s.now}), engine.RunPending, "SetNote")
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

var repairCases = []testCase{
	{"a retry is a new run with the same input and the results so far", func(s *stage) {
		l := s.held(withExternal("order-1"), withPriority(3), tagged("a", "b"))
		s.complete(l, "pay", "paid")
		s.sleep(l, "nap", time.Second)
		s.pass(time.Second)
		l = s.claim("w1").Lease
		s.fail(l, "ship", "no", forGood)
		s.complete(l, "refund", "refunded")
		s.failRun(l, "no")
		s.pass(time.Minute)
		answer := s.retry(l.RunID)
		old, run := s.run(l.RunID), s.run(answer.RunID)
		equal(s, "old status", old.Status, engine.RunFailed)
		equal(s, "retried from", run.RetriedFrom, l.RunID)
		equal(s, "external id", run.ExternalID, "order-1")
		equal(s, "priority", run.Priority, 3)
		equal(s, "attempts", run.Attempts, 1)
		s.payload("input", run.Input, text("input"))
		task := s.claim("w1")
		equal(s, "claimed", task.Run.ID, run.ID)
		equal(s, "steps kept", len(task.History), 3)
		for i, name := range []string{"pay", "nap", "refund"} {
			equal(s, "step", task.History[i].Name, name)
			equal(s, "sequence", task.History[i].Sequence, int64(i+1))
			equal(s, "run of the step", task.History[i].RunID, run.ID)
		}
		s.payload("output of pay", task.History[0].Output, text("paid"))
		equal(s, "sequence of the next", s.complete(task.Lease, "ship", "shipped").Sequence, 4)
		s.finish(task.Lease, "done")
		equal(s, "steps of the old run", len(s.attempts(l.RunID, "")), 4)
		retries, err := s.store.ListRetries(s.ctx, space, l.RunID)
		s.must(err, "ListRetries")
		equal(s, "retries", len(retries), 1)
	}},
	{"a retry from a step runs that one and all after it again", func(s *stage) {
		run := s.failed("a", "b", "c")
		answer := s.retry(run, func(p *engine.RetryRunParams) { p.FromStep = "b" })
		task := s.claim("w1")
		equal(s, "claimed", task.Run.ID, answer.RunID)
		equal(s, "steps kept", len(task.History), 1)
		equal(s, "step", task.History[0].Name, "a")
		equal(s, "bytes", task.Run.Bytes, int64(len("input")+len("a done")))
		equal(s, "what was done", s.audit(run.String())[0].Detail, "as "+answer.RunID.String()+", from step b")
		_, err := s.tryRetry(run, func(p *engine.RetryRunParams) { p.FromStep = "x" })
		if err == nil {
			s.Fatalf("a retry from a step that was never begun succeeded")
		}
	}},
	{"a result that a retry kept is not recorded again, whatever attempt it was", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.now = s.fail(l, "pay", "no money").RetryAt
		l = s.claim("w1").Lease
		s.begin(l, "pay")
		s.complete(l, "pay", "paid")
		s.failRun(l, "no")
		s.retry(l.RunID)
		l = s.claim("w1").Lease
		s.complete(l, "ship", "sent")
		_, err := s.tryComplete(l, "pay", "paid twice")
		s.refused(err, engine.ErrConflict, "CompleteStep")
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
		s.payload("output", s.step(l.RunID, "pay").Output, text("paid"))
		equal(s, "steps of the run", s.run(l.RunID).Steps, 2)
	}},
	{"a restart keeps nothing and may have another input", func(s *stage) {
		run := s.failed("a")
		other := text("other")
		answer := s.retry(run, func(p *engine.RetryRunParams) { p.Restart, p.Input = true, &other })
		task := s.claim("w1")
		equal(s, "claimed", task.Run.ID, answer.RunID)
		equal(s, "steps kept", len(task.History), 0)
		s.payload("input", task.Run.Input, other)
		equal(s, "bytes", task.Run.Bytes, int64(len("other")))
		list := s.audit(run.String())
		equal(s, "audit events", len(list), 1)
		equal(s, "what was done", list[0].Method+" "+list[0].Detail, "RetryWorkflow as "+answer.RunID.String()+", restarted with another input")
	}},
	{"a retry while one is open is that one", func(s *stage) {
		run := s.failed("a")
		first := s.retry(run)
		again := s.retry(run)
		equal(s, "run", again.RunID, first.RunID)
		equal(s, "existed", again.Existed, true)
		s.cancel(first.RunID)
		third := s.retry(run)
		if third.RunID == first.RunID || third.Existed {
			s.Fatalf("a retry after the first has ended is the same run")
		}
	}},
	{"a retry while one has continued as new is the run that goes on", func(s *stage) {
		run := s.failed("a")
		s.retry(run)
		var last engine.ID
		for range 2 {
			next := s.newRun()
			last = next.ID
			s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.claim("w1").Lease, ContinueAs: &next, Now: s.now}), "CompleteRun")
		}
		by := func(p *engine.RetryRunParams) { p.RequestID = "r" }
		again := s.retry(run, by)
		equal(s, "run", again.RunID, last)
		equal(s, "existed", again.Existed, true)
		equal(s, "the same request again", s.retry(run, by), engine.Started{RunID: last, Existed: true, Repeated: true})
		s.cancel(last)
		third := s.retry(run)
		if third.RunID == last || third.Existed {
			s.Fatalf("a retry after the last has ended is the same run")
		}
	}},
	{"a repeated request is answered alike, whatever became of the retry", func(s *stage) {
		run := s.failed("a")
		by := func(p *engine.RetryRunParams) { p.RequestID = "r" }
		first := s.retry(run, by)
		s.cancel(first.RunID)
		again := s.retry(run, by)
		equal(s, "run", again.RunID, first.RunID)
		equal(s, "existed", again.Existed, false)
		equal(s, "repeated", again.Repeated, true)
	}},
	{"a request for another retry is a conflict, whatever the first was answered", func(s *stage) {
		run, other := s.failed("a", "b"), s.failed("a", "b")
		input, second := text("in"), text("two")
		asked := []func(*engine.RetryRunParams){
			func(*engine.RetryRunParams) {},
			func(p *engine.RetryRunParams) { p.FromStep = "b" },
			func(p *engine.RetryRunParams) { p.Restart = true },
			func(p *engine.RetryRunParams) { p.Restart, p.Input = true, &input },
		}
		otherwise := []func(*engine.RetryRunParams){
			func(p *engine.RetryRunParams) { p.RunID = other },
			func(p *engine.RetryRunParams) { p.FromStep = "a" },
			func(p *engine.RetryRunParams) { p.Restart = !p.Restart },
			func(p *engine.RetryRunParams) { p.Input = &second },
			func(p *engine.RetryRunParams) { p.Input = &engine.Payload{} },
			func(p *engine.RetryRunParams) {
				p.Input = &engine.Payload{Data: input.Data, Metadata: map[string]string{"content-type": "text/plain"}}
			},
		}
		for i, ask := range asked {
			for _, existed := range []bool{false, true} {
				under := func(p *engine.RetryRunParams) { p.RequestID = fmt.Sprint(i, existed) }
				if existed {
					s.retry(run)
				}
				first := s.retry(run, under, ask)
				equal(s, fmt.Sprintf("existed, of retry %d", i), first.Existed, existed)
				s.cancel(first.RunID)
				for n, change := range otherwise {
					_, err := s.tryRetry(run, under, ask, change)
					s.refused(err, engine.ErrConflict, fmt.Sprintf("retry %d (an earlier one: %t) with change %d", i, existed, n))
				}
				again := s.retry(run, under, ask, func(p *engine.RetryRunParams) { p.Reason = "asked again" })
				equal(s, fmt.Sprintf("retry %d again", i), again, engine.Started{RunID: first.RunID, Existed: existed, Repeated: true})
			}
		}
	}},
	{"a start is no repetition of a retry that was answered with an earlier one", func(s *stage) {
		run := s.failed("a")
		s.retry(run)
		s.retry(run, func(p *engine.RetryRunParams) { p.RequestID = "r" })
		s.refused(s.tryStart(s.newRun(withRequest("r"))).Err, engine.ErrConflict, "a start")
	}},
	{"only what has ended badly can be tried again", func(s *stage) {
		l := s.held()
		_, err := s.tryRetry(l.RunID)
		s.refused(err, engine.ErrPrecondition, "RetryRun of a RUNNING run")
		s.explained(err, engine.RunRunning, "RetryRun")
		s.finish(l, "done")
		_, err = s.tryRetry(l.RunID)
		s.refused(err, engine.ErrPrecondition, "RetryRun of a COMPLETED run")
		_, err = s.tryRetry(s.id())
		s.refused(err, engine.ErrNotFound, "RetryRun of a run that is not there")
		for _, end := range []func(engine.ID){
			func(id engine.ID) { s.cancel(id) },
			func(id engine.ID) { _, _ = s.store.TerminateRun(s.ctx, s.endParams(id, "")) },
		} {
			run := s.start()
			end(run)
			s.retry(run)
		}
	}},
	{"an external id that another run holds by now refuses a retry", func(s *stage) {
		l := s.held(withExternal("order-1"))
		s.failRun(l, "no")
		s.start(withExternal("order-1"))
		_, err := s.tryRetry(l.RunID)
		s.refused(err, engine.ErrExists, "RetryRun")
	}},
	{"a deadline that has passed is left behind, and a limit counts anew", func(s *stage) {
		late := s.start(func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Second) })
		limited := s.start(withTimeouts(engine.Timeouts{Execution: time.Second}), func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Second) })
		s.pass(time.Second)
		s.expire()
		s.sameTime("deadline", s.run(s.retry(late).RunID).DeadlineAt, time.Time{})
		s.sameTime("deadline", s.run(s.retry(limited).RunID).DeadlineAt, s.now.Add(time.Second))
	}},
	{"signals that nothing had consumed come along", func(s *stage) {
		l := s.held()
		s.signal(l.RunID, "a", "1")
		s.signal(l.RunID, "b", "2", signalID("x"))
		s.await(l, "a", "a")
		s.failRun(l, "no")
		answer := s.retry(l.RunID)
		list := s.signals(answer.RunID)
		equal(s, "signals", len(list), 1)
		equal(s, "name", list[0].Name, "b")
		equal(s, "bytes", s.run(answer.RunID).Bytes, int64(len("input")+len("1")+len("2")))
		equal(s, "repeated", s.signal(answer.RunID, "b", "2", signalID("x")).Repeated, true)
	}},
	{"a retry keeps a wait whose limit has passed, and from that wait on waits anew, without the signals that it had taken", func(s *stage) {
		fromWait := func(p *engine.RetryRunParams) { p.FromStep = "approval" }
		l := s.held()
		s.await(l, "approval", "approval", atMost(time.Hour))
		s.pass(time.Hour)
		s.failRun(s.claim("w1").Lease, "nobody approved")
		s.retry(l.RunID)
		kept := s.claim("w1")
		s.signal(kept.Run.ID, "approval", "late")
		equal(s, "timed out", s.await(kept.Lease, "approval", "approval").Step.TimedOut, true)
		s.failRun(kept.Lease, "nobody approved")
		s.retry(kept.Run.ID, fromWait)
		anew := s.claim("w1")
		equal(s, "steps kept", len(anew.History), 0)
		s.payload("taken", s.await(anew.Lease, "approval", "approval").Step.Output, text("late"))
		s.failRun(anew.Lease, "no")
		s.retry(anew.Run.ID, fromWait)
		equal(s, "waiting", s.await(s.claim("w1").Lease, "approval", "approval").Waiting, true)
	}},
	{"a retry is nobody's child", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship", closing(engine.CloseTerminate))
		s.failRun(s.claimChild(child), "no")
		answer := s.retry(child)
		equal(s, "parent", s.run(answer.RunID).ParentRunID, engine.ID{})
		s.finish(l, "done")
		s.status(answer.RunID, engine.RunPending)
	}},
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
	{"imported runs stand as they are given, open ones paused", func(s *stage) {
		parent, child := s.id(), s.id()
		stepID := s.id()
		ended := engine.Run{
			ID: child, Namespace: space, ExternalID: "taken", Queue: queue, Type: kind, Status: engine.RunFailed, Attempts: 3, Bytes: 5,
			Input: text("in"), Output: text("out"), Error: &engine.Failure{Message: "no"}, CreatedAt: s.now.Add(-time.Hour), StartedAt: s.now.Add(-time.Hour),
			FinishedAt: s.now.Add(-time.Minute), ParentRunID: parent, ParentStepID: stepID, Origin: engine.OriginImport,
		}
		open := engine.Run{ID: parent, Namespace: space, ExternalID: "taken", Queue: queue, Type: kind, Status: engine.RunSleeping, Attempts: 1, Steps: 1,
			Input: text("in"), CreatedAt: s.now.Add(-time.Hour), StartedAt: s.now.Add(-time.Hour), Origin: engine.OriginImport}
		step := engine.Step{ID: stepID, RunID: parent, Name: "ship", Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
			Sequence: 1, Output: text("x"), CreatedAt: s.now, StartedAt: s.now, FinishedAt: s.now}
		s.start(withExternal("taken"), ofType("other"))
		p := engine.ImportRunsParams{Namespace: space, RequestID: "import", By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{
			{Run: open, Steps: []engine.Step{step}, Signals: []engine.Signal{{RunID: parent, Sequence: 1, Name: "go", Payload: text("!"), ReceivedAt: s.now}}},
			{Run: ended},
		}}
		for i := range p.Runs {
			s.must(p.Runs[i].Validate(), "Validate")
		}
		answer, err := s.store.ImportRuns(s.ctx, p)
		s.must(err, "ImportRuns")
		equal(s, "run", answer.RunID, parent)
		got := s.run(parent)
		equal(s, "paused", got.Paused, true)
		equal(s, "status", got.Status, engine.RunPending)
		got = s.status(child, engine.RunFailed)
		equal(s, "attempts", got.Attempts, 3)
		s.payload("output", got.Output, text("out"))
		s.sameTime("finished at", got.FinishedAt, ended.FinishedAt)
		again, err := s.store.ImportRuns(s.ctx, p)
		s.must(err, "ImportRuns repeated")
		equal(s, "repeated", again.Repeated, true)
		p.Runs[0].Run.Input = text("other")
		_, err = s.store.ImportRuns(s.ctx, p)
		s.refused(err, engine.ErrConflict, "ImportRuns repeated with another run")
		p.RequestID = ""
		_, err = s.store.ImportRuns(s.ctx, p)
		s.refused(err, engine.ErrExists, "ImportRuns under ids that are taken")
		s.worker("w1")
		s.resume(parent)
		task := s.claim("w1")
		s.payload("history", task.History[0].Output, text("x"))
		equal(s, "signals", s.await(task.Lease, "go", "go").Waiting, false)
	}},
	{"an imported run that waits to be tried again goes on as any other", func(s *stage) {
		s.worker("w1")
		policy := engine.RetryPolicy{MaximumAttempts: 3}
		imported := func() engine.Lease {
			s.Helper()
			run := engine.Run{ID: s.id(), Namespace: space, Queue: queue, Type: kind, Status: engine.RunPending, Attempts: 2, RetryPolicy: &policy,
				Input: text("in"), Error: &engine.Failure{Message: "no"}, CreatedAt: s.now.Add(-time.Hour), Origin: engine.OriginImport}
			step := engine.Step{ID: s.id(), RunID: run.ID, Name: "ship", Kind: engine.StepFunction, Status: engine.StepFailed, Attempt: 1, Latest: true,
				Sequence: 1, CreatedAt: s.now, StartedAt: s.now, FinishedAt: s.now} // what its error was the capsule does not tell
			p := engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{{Run: run, Steps: []engine.Step{step}}}}
			s.must(p.Runs[0].Validate(), "Validate")
			_, err := s.store.ImportRuns(s.ctx, p)
			s.must(err, "ImportRuns")
			s.resume(run.ID)
			return s.claim("w1").Lease
		}
		l := imported()
		s.failure("error", s.run(l.RunID).Error, engine.Failure{Message: "no"})
		s.finish(l, "done")
		if run := s.status(l.RunID, engine.RunCompleted); run.Error != nil {
			s.Fatalf("a COMPLETED run has the error %v, want none", run.Error)
		}
		l = imported()
		v := s.failRun(l, "no again")
		equal(s, "retry", v.Retry, true)
		equal(s, "status of the step", s.step(l.RunID, "ship").Status, engine.StepPending)
	}},
	{"an imported run that ends takes its imported children along", func(s *stage) {
		s.worker("w1")
		run := func(parent engine.ID) engine.ImportedRun {
			return engine.ImportedRun{Run: engine.Run{ID: s.id(), Namespace: space, Queue: queue, Type: kind, Status: engine.RunPending, Attempts: 1, Input: text("in"),
				CreatedAt: s.now, Origin: engine.OriginImport, ParentRunID: parent, ParentClose: engine.CloseCancel}}
		}
		parent := run(engine.ID{})
		child := run(parent.Run.ID)
		_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{parent, child}})
		s.must(err, "ImportRuns")
		s.resume(parent.Run.ID)
		s.finish(s.claim("w1").Lease, "done")
		s.status(child.Run.ID, engine.RunCancelled)
	}},
	{"an imported run that is open has come to no end, whatever it says", func(s *stage) {
		s.worker("w1")
		run := engine.Run{ID: s.id(), Namespace: space, Queue: queue, Type: kind, Status: engine.RunPending, Attempts: 1, Input: text("in"),
			Output: text("out"), CreatedAt: s.now.Add(-time.Hour), FinishedAt: s.now.Add(-time.Minute), ContinuedAs: s.id(), Origin: engine.OriginImport,
			OnFailureWorkflow: "mourn"}
		_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{{Run: run}}})
		s.must(err, "ImportRuns")
		open := []engine.RunStatus{engine.RunPending, engine.RunRunning, engine.RunSleeping}
		list, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space, Statuses: open}, engine.Page{Limit: 10})
		s.must(err, "ListRuns")
		equal(s, "open runs", len(list), 1)
		s.resume(run.ID)
		s.failRun(s.claim("w1").Lease, "no")
		got := s.status(run.ID, engine.RunFailed)
		s.payload("output", got.Output, engine.Payload{})
		handlers, err := s.store.ListHandlers(s.ctx, space, run.ID)
		s.must(err, "ListHandlers")
		equal(s, "handlers", len(handlers), 1)
	}},
	{"a pinned run is kept, and let go", func(s *stage) {
		run := s.failed()
		pin := func(pinned bool) {
			s.Helper()
			r, err := s.store.PinRun(s.ctx, engine.PinRunParams{SteerParams: s.steer(run, ""), Pinned: pinned})
			s.must(err, "PinRun")
			equal(s, "pinned", r.Pinned, pinned)
		}
		pin(true)
		pin(true)
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 0)
		pin(false)
		equal(s, "pruned", s.prune(s.now, 10), 1)
	}},
	{"an imported run is kept from when it was imported, however long ago it ended elsewhere", func(s *stage) {
		ago := s.now.Add(-24 * time.Hour)
		run := func(id engine.ID) engine.ImportedRun {
			return engine.ImportedRun{Run: engine.Run{ID: id, Namespace: space, Queue: queue, Type: kind, Status: engine.RunFailed, Attempts: 1,
				Input: text("in"), CreatedAt: ago, FinishedAt: ago, Origin: engine.OriginImport}}
		}
		first := engine.FirstID(s.now)
		other := engine.DerivedID(s.now, first, "other")
		for _, id := range []engine.ID{first, other} {
			_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{
				Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{run(id)},
			})
			s.must(err, "ImportRuns")
		}
		equal(s, "pruned with the runs that ended before the import", s.prune(s.now, 10), 0)
		equal(s, "pruned when it was imported so long ago itself", s.prune(s.now.Add(time.Millisecond), 10), 2)
	}},
	{"a run stays as long as an open one refers to it", func(s *stage) {
		s.childWorker()
		old := s.failed("a")
		retried := s.retry(old).RunID
		l := s.held(ofType(kind), func(r *engine.StartRun) { r.Priority = 9 })
		child := s.child(l, "ship")
		s.finish(s.claimChild(child), "")
		abandoned := s.held(withPriority(9))
		grown := s.child(abandoned, "ship", closing(engine.CloseAbandon))
		s.finish(abandoned, "")
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 0)
		s.cancel(retried)
		s.finish(l, "done")
		s.cancel(grown)
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 6)
		for _, id := range []engine.ID{old, retried, l.RunID, child, abandoned.RunID, grown} {
			_, err := s.store.GetRun(s.ctx, space, id)
			s.refused(err, engine.ErrNotFound, fmt.Sprint("GetRun of ", id))
		}
	}},
	{"a run stays as long as what handles its failure, or goes on for it, is open", func(s *stage) {
		l := s.held(onFailure)
		s.failRun(l, "no")
		handler := s.handler(l.RunID).ID
		going := s.held(withPriority(9))
		next := s.newRun()
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: going, ContinueAs: &next, Now: s.now}), "CompleteRun")
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 0)
		s.cancel(handler)
		s.pass(time.Hour)
		equal(s, "pruned when the handler has ended", s.prune(s.now, 10), 2)
		s.cancel(next.ID)
		s.pass(time.Hour)
		equal(s, "pruned when the next has ended", s.prune(s.now, 10), 2)
		for _, id := range []engine.ID{l.RunID, handler, going.RunID, next.ID} {
			_, err := s.store.GetRun(s.ctx, space, id)
			s.refused(err, engine.ErrNotFound, fmt.Sprint("GetRun of ", id))
		}
	}},
	{"a run that stays keeps none that ended after it", func(s *stage) {
		old := s.failed()
		s.pass(time.Minute)
		next := s.failed()
		open := s.retry(old).RunID
		s.pass(time.Hour)
		prune := func(what string, want int) {
			s.Helper()
			n, err := s.store.Prune(s.ctx, engine.PruneParams{Namespace: space, Status: engine.RunFailed, Before: s.now, Limit: 1})
			s.must(err, "Prune")
			equal(s, what, n, want)
		}
		prune("pruned behind the one that stays", 1)
		_, err := s.store.GetRun(s.ctx, space, next)
		s.refused(err, engine.ErrNotFound, "GetRun")
		prune("pruned while only that one is left", 0)
		s.cancel(open)
		prune("pruned when it need not stay", 1)
	}},
	{"retention is by namespace and outcome", func(s *stage) {
		s.failed()
		l := s.held()
		s.finish(l, "done")
		elsewhere := s.start(inSpace("elsewhere"))
		_, err := s.store.CancelRun(s.ctx, engine.EndRunParams{Namespace: "elsewhere", RunID: elsewhere, By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "CancelRun")
		s.pass(time.Hour)
		prune := func(namespace string, status engine.RunStatus, before time.Time) int {
			s.Helper()
			n, err := s.store.Prune(s.ctx, engine.PruneParams{Namespace: namespace, Status: status, Before: before, Limit: 10})
			s.must(err, "Prune")
			return n
		}
		equal(s, "of another outcome", prune(space, engine.RunCancelled, s.now), 0)
		equal(s, "of another namespace", prune("elsewhere", engine.RunFailed, s.now), 0)
		equal(s, "before it ended", prune(space, engine.RunFailed, s.now.Add(-time.Hour)), 0)
		equal(s, "failed", prune(space, engine.RunFailed, s.now), 1)
		equal(s, "completed", prune(space, engine.RunCompleted, s.now), 1)
		equal(s, "elsewhere", prune("elsewhere", engine.RunCancelled, s.now), 1)
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
