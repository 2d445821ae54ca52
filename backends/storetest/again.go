package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// againCases are the retries of whole runs.
var againCases = []testCase{
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
}
