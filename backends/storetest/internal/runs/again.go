package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// AgainCases are the retries of whole runs.
var AgainCases = []fixture.Case{
	{Name: "a retry is a new run with the same input and the results", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithExternal("order-1"), fixture.WithPriority(3), fixture.Tagged("a", "b"))
		s.Complete(l, "pay", "paid")
		s.Sleep(l, "nap", time.Second)
		s.Pass(time.Second)
		l = s.Claim("w1").Lease
		s.Fail(l, "ship", "no", fixture.ForGood)
		s.Complete(l, "refund", "refunded")
		s.FailRun(l, "no")
		s.Pass(time.Minute)
		answer := s.Retry(l.RunID, func(p *engine.RetryRunParams) { p.KeepAll = true })
		old, run := s.Run(l.RunID), s.Run(answer.RunID)
		fixture.Equal(s, "old status", old.Status, engine.RunFailed)
		fixture.Equal(s, "retried from", run.RetriedFrom, l.RunID)
		fixture.Equal(s, "external id", run.ExternalID, "order-1")
		fixture.Equal(s, "priority", run.Priority, 3)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		s.Payload("input", run.Input, fixture.Text("input"))
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, run.ID)
		fixture.Equal(s, "steps kept", len(task.History), 3)
		for i, name := range []string{"pay", "nap", "refund"} {
			fixture.Equal(s, "step", task.History[i].Name, name)
			fixture.Equal(s, "sequence", task.History[i].Sequence, int64(i+1))
			fixture.Equal(s, "run of the step", task.History[i].RunID, run.ID)
		}
		s.Payload("output of pay", task.History[0].Output, fixture.Text("paid"))
		fixture.Equal(s, "sequence of the next", s.Complete(task.Lease, "ship", "shipped").Sequence, 4)
		s.Finish(task.Lease, "done")
		fixture.Equal(s, "steps of the old run", len(s.Attempts(l.RunID, "")), 4)
		retries, err := s.Store.ListRetries(s.Ctx, fixture.Space, l.RunID)
		s.Must(err, "ListRetries")
		fixture.Equal(s, "retries", len(retries), 1)
	}},
	{Name: "a retry from a step runs that step and later ones again", Run: func(s *fixture.F) {
		run := s.Failed("a", "b", "c")
		answer := s.Retry(run, func(p *engine.RetryRunParams) { p.FromStep = "b" })
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, answer.RunID)
		fixture.Equal(s, "steps kept", len(task.History), 1)
		fixture.Equal(s, "step", task.History[0].Name, "a")
		fixture.Equal(s, "bytes", task.Run.Bytes, int64(len("input")+len("a done")))
		fixture.Equal(s, "what was done", s.Audit(run.String())[0].Detail, "as "+answer.RunID.String()+", from step b")
		_, err := s.TryRetry(run, func(p *engine.RetryRunParams) { p.FromStep = "x" })
		if err == nil {
			s.Fatalf("a retry from a step that was never begun succeeded")
		}
	}},
	{Name: "a result that a retry kept is never recorded again", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Now = s.Fail(l, "pay", "no money").RetryAt
		l = s.Claim("w1").Lease
		s.Begin(l, "pay")
		s.Complete(l, "pay", "paid")
		s.FailRun(l, "no")
		s.Retry(l.RunID)
		l = s.Claim("w1").Lease
		s.Complete(l, "ship", "sent")
		_, err := s.TryComplete(l, "pay", "paid twice")
		s.Refused(err, engine.ErrConflict, "CompleteStep")
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
		s.Payload("output", s.Step(l.RunID, "pay").Output, fixture.Text("paid"))
		fixture.Equal(s, "steps of the run", s.Run(l.RunID).Steps, 2)
	}},
	{Name: "a restart keeps nothing and may have another input", Run: func(s *fixture.F) {
		run := s.Failed("a")
		other := fixture.Text("other")
		answer := s.Retry(run, func(p *engine.RetryRunParams) { p.Restart, p.Input = true, &other })
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, answer.RunID)
		fixture.Equal(s, "steps kept", len(task.History), 0)
		s.Payload("input", task.Run.Input, other)
		fixture.Equal(s, "bytes", task.Run.Bytes, int64(len("other")))
		list := s.Audit(run.String())
		fixture.Equal(s, "audit events", len(list), 1)
		fixture.Equal(s, "what was done", list[0].Method+" "+list[0].Detail,
			"RetryWorkflow as "+answer.RunID.String()+", restarted with another input")
	}},
	{Name: "a retry while one is open is that one", Run: func(s *fixture.F) {
		run := s.Failed("a")
		first := s.Retry(run)
		again := s.Retry(run)
		fixture.Equal(s, "run", again.RunID, first.RunID)
		fixture.Equal(s, "existed", again.Existed, true)
		s.Cancel(first.RunID)
		third := s.Retry(run)
		if third.RunID == first.RunID || third.Existed {
			s.Fatalf("a retry after the first has ended is the same run")
		}
	}},
	{Name: "a retry while one has continued as new is the run that goes on", Run: func(s *fixture.F) {
		run := s.Failed("a")
		s.Retry(run)
		var last engine.ID
		for range 2 {
			next := s.NewRun()
			last = next.ID
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: s.Claim("w1").Lease, ContinueAs: &next, Now: s.Now}),
				"CompleteRun")
		}
		by := func(p *engine.RetryRunParams) { p.RequestID = "r" }
		again := s.Retry(run, by)
		fixture.Equal(s, "run", again.RunID, last)
		fixture.Equal(s, "existed", again.Existed, true)
		fixture.Equal(s, "the same request again", s.Retry(run, by),
			engine.Started{RunID: last, Existed: true, Repeated: true})
		s.Cancel(last)
		third := s.Retry(run)
		if third.RunID == last || third.Existed {
			s.Fatalf("a retry after the last has ended is the same run")
		}
	}},
	{Name: "a repeated request returns the first retry", Run: func(s *fixture.F) {
		run := s.Failed("a")
		by := func(p *engine.RetryRunParams) { p.RequestID = "r" }
		first := s.Retry(run, by)
		s.Cancel(first.RunID)
		again := s.Retry(run, by)
		fixture.Equal(s, "run", again.RunID, first.RunID)
		fixture.Equal(s, "existed", again.Existed, false)
		fixture.Equal(s, "repeated", again.Repeated, true)
	}},
	{Name: "a request for another retry is a conflict", Run: func(s *fixture.F) {
		run, other := s.Failed("a", "b"), s.Failed("a", "b")
		input, second := fixture.Text("in"), fixture.Text("two")
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
					s.Retry(run)
				}
				first := s.Retry(run, under, ask)
				fixture.Equal(s, fmt.Sprintf("existed, of retry %d", i), first.Existed, existed)
				s.Cancel(first.RunID)
				for n, change := range otherwise {
					_, err := s.TryRetry(run, under, ask, change)
					s.Refused(err, engine.ErrConflict, fmt.Sprintf(
						"retry %d (an earlier one: %t) with change %d", i, existed, n))
				}
				again := s.Retry(run, under, ask, func(p *engine.RetryRunParams) { p.Reason = "asked again" })
				fixture.Equal(s, fmt.Sprintf("retry %d again", i), again,
					engine.Started{RunID: first.RunID, Existed: existed, Repeated: true})
			}
		}
	}},
	{Name: "a start does not repeat a retry answered with an older run", Run: func(s *fixture.F) {
		run := s.Failed("a")
		s.Retry(run)
		s.Retry(run, func(p *engine.RetryRunParams) { p.RequestID = "r" })
		s.Refused(s.TryStart(s.NewRun(fixture.WithRequest("r"))).Err, engine.ErrConflict, "a start")
	}},
	{Name: "only a run that did not complete can be retried", Run: func(s *fixture.F) {
		l := s.Held()
		_, err := s.TryRetry(l.RunID)
		s.Refused(err, engine.ErrPrecondition, "RetryRun of a RUNNING run")
		s.Explained(err, engine.RunRunning, "RetryRun")
		s.Finish(l, "done")
		_, err = s.TryRetry(l.RunID)
		s.Refused(err, engine.ErrPrecondition, "RetryRun of a COMPLETED run")
		_, err = s.TryRetry(s.ID())
		s.Refused(err, engine.ErrNotFound, "RetryRun of a run that is not there")
		for _, end := range []func(engine.ID){
			func(id engine.ID) { s.Cancel(id) },
			func(id engine.ID) { _, _ = s.Store.TerminateRun(s.Ctx, s.EndParams(id, "")) },
		} {
			run := s.Start()
			end(run)
			s.Retry(run)
		}
	}},
	{Name: "a retry is refused while another run has its external id", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithExternal("order-1"))
		s.FailRun(l, "no")
		s.Start(fixture.WithExternal("order-1"))
		_, err := s.TryRetry(l.RunID)
		s.Refused(err, engine.ErrExists, "RetryRun")
	}},
	{Name: "a retry drops a passed deadline and restarts its timeout", Run: func(s *fixture.F) {
		late := s.Start(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Second) })
		limited := s.Start(fixture.WithTimeouts(engine.Timeouts{Execution: time.Second}), func(r *engine.StartRun) {
			r.DeadlineAt = s.Now.Add(time.Second)
		})
		s.Pass(time.Second)
		s.Expire()
		s.SameTime("deadline", s.Run(s.Retry(late).RunID).DeadlineAt, time.Time{})
		s.SameTime("deadline", s.Run(s.Retry(limited).RunID).DeadlineAt, s.Now.Add(time.Second))
	}},
	{Name: "a retry copies signals that no step has consumed", Run: func(s *fixture.F) {
		l := s.Held()
		s.Signal(l.RunID, "a", "1")
		s.Signal(l.RunID, "b", "2", fixture.SignalID("x"))
		s.Await(l, "a", "a")
		s.FailRun(l, "no")
		answer := s.Retry(l.RunID)
		list := s.Signals(answer.RunID)
		fixture.Equal(s, "signals", len(list), 1)
		fixture.Equal(s, "name", list[0].Name, "b")
		fixture.Equal(s, "bytes", s.Run(answer.RunID).Bytes, int64(len("input")+len("1")+len("2")))
		fixture.Equal(s, "repeated", s.Signal(answer.RunID, "b", "2", fixture.SignalID("x")).Repeated, true)
	}},
	{
		Name: "a retry keeps a timed-out wait, or repeats it from there", Run: func(s *fixture.F) {
			fromWait := func(p *engine.RetryRunParams) { p.FromStep = "approval" }
			l := s.Held()
			s.Await(l, "approval", "approval", fixture.AtMost(time.Hour))
			s.Pass(time.Hour)
			s.FailRun(s.Claim("w1").Lease, "nobody approved")
			s.Retry(l.RunID)
			kept := s.Claim("w1")
			s.Signal(kept.Run.ID, "approval", "late")
			fixture.Equal(s, "timed out", s.Await(kept.Lease, "approval", "approval").Step.TimedOut, true)
			s.FailRun(kept.Lease, "nobody approved")
			s.Retry(kept.Run.ID, fromWait)
			next := s.Claim("w1")
			fixture.Equal(s, "steps kept", len(next.History), 0)
			s.Payload("taken", s.Await(next.Lease, "approval", "approval").Step.Output, fixture.Text("late"))
			s.FailRun(next.Lease, "no")
			s.Retry(next.Run.ID, fromWait)
			fixture.Equal(s, "waiting", s.Await(s.Claim("w1").Lease, "approval", "approval").Waiting, true)
		}},
	{Name: "a retry that would keep steps after a failure is refused", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "charge", "charged")
		s.Fail(l, "ship", "no", fixture.ForGood)
		s.Complete(l, "kagzi:now", "12:00")
		s.Complete(l, "refund", "refunded")
		s.Fail(l, "restock", "no", fixture.ForGood)
		s.FailRun(l, "no")
		_, err := s.TryRetry(l.RunID)
		want := engine.RetryWouldKeep(l.RunID, engine.RunFailed, []string{"refund", "restock"})
		fixture.Equal(s, "answer", fmt.Sprint(err), want.Error())
		fixture.Equal(s, "kind", engine.KindOf(err), engine.KindPrecondition)
		again := s.Retry(l.RunID, func(p *engine.RetryRunParams) { p.FromStep = "charge" })
		fixture.Equal(s, "steps from charge on", len(s.Attempts(again.RunID, "")), 0)
		s.Cancel(again.RunID)
		again = s.Retry(l.RunID, func(p *engine.RetryRunParams) { p.Restart = true })
		s.Cancel(again.RunID)
		again = s.Retry(l.RunID, func(p *engine.RetryRunParams) { p.KeepAll = true })
		fixture.Equal(s, "steps with all kept", len(s.Attempts(again.RunID, "")), 3)
	}},
	{Name: "a retry that would keep a cancelled run's cleanup is refused", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "charge", "charged")
		s.Pass(time.Second)
		s.CancelWithin(l.RunID, time.Minute)
		s.Pass(time.Second)
		s.Complete(l, "refund", "refunded")
		s.FailRun(l, "cancelled")
		_, err := s.TryRetry(l.RunID)
		want := engine.RetryWouldKeep(l.RunID, engine.RunCancelled, []string{"refund"})
		fixture.Equal(s, "answer", fmt.Sprint(err), want.Error())
	}},
	{Name: "a retry of a run without compensation needs no choice", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "a", "done")
		begun := s.Begin(l, "b")
		s.Pass(time.Second)
		s.Fail(l, "c", "no", fixture.ForGood)
		s.Pass(time.Second)
		_, err := s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{Lease: l,
			Step: engine.StepRef{ID: begun.ID}, Output: fixture.Text("done"), Now: s.Now})
		s.Must(err, "CompleteStep")
		s.Sleep(l, "nap", time.Second)
		s.Pass(time.Second)
		s.FailRun(s.Claim("w1").Lease, "no")
		fixture.Equal(s, "steps kept", len(s.Attempts(s.Retry(l.RunID).RunID, "")), 3)
	}},
	{Name: "a retry takes over children that are open or have completed", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		open := s.Child(l, "open", fixture.WithExternal("open"))
		done := s.Child(l, "done", fixture.WithExternal("done"))
		failed := s.Child(l, "failed", fixture.WithExternal("failed"))
		s.FailRun(l, "no")
		leases := map[engine.ID]engine.Lease{}
		for _, id := range []engine.ID{open, done, failed} {
			leases[id] = s.ClaimChild(id)
		}
		s.Finish(leases[done], "the child's output")
		s.FailRun(leases[failed], "no")
		s.Pass(time.Second)
		again := s.Retry(l.RunID).RunID
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, again)
		fixture.Equal(s, "steps kept", len(task.History), 2)
		fixture.Equal(s, "open child", task.History[0].ChildRunID, open)
		fixture.Equal(s, "its step", task.History[0].Status, engine.StepRunning)
		fixture.Equal(s, "parent of the open child", s.Run(open).ParentRunID, again)
		s.Payload("output of the other", task.History[1].Output,
			engine.ChildOutput(fixture.Text("the child's output"), done, done))
		step, err := s.TryChild(task.Lease, "open", fixture.OfType("child"), fixture.WithExternal("open"))
		s.Must(err, "StartChild of the open child")
		fixture.Equal(s, "started child", step.ChildRunID, open)
		fixture.Equal(s, "the failed child starts again",
			s.Child(task.Lease, "failed", fixture.WithExternal("failed")) != failed, true)
		s.Finish(leases[open], "late")
		waited, err := s.Store.AwaitChildren(s.Ctx,
			engine.AwaitChildrenParams{Lease: task.Lease, Children: []engine.ID{open}, Now: s.Now})
		s.Must(err, "AwaitChildren")
		fixture.Equal(s, "results", len(waited), 1)
		s.Payload("result of the open child", waited[0].Output, engine.ChildOutput(fixture.Text("late"), open, open))
	}},
	{Name: "a retry takes over the run that its child continued as", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		first := s.Child(l, "ship")
		s.FailRun(l, "no")
		next := s.NewRun(fixture.OfType("child"))
		_, err := s.Store.CompleteRun(s.Ctx, engine.CompleteRunParams{
			Lease: s.ClaimChild(first), ContinueAs: &next, Now: s.Now})
		s.Must(err, "CompleteRun")
		again := s.Retry(l.RunID).RunID
		fixture.Equal(s, "parent", s.Run(next.ID).ParentRunID, again)
		s.Finish(s.ClaimChild(next.ID), "late")
		task := s.Claim("w1")
		s.Payload("result", task.History[0].Output, engine.ChildOutput(fixture.Text("late"), first, next.ID))
	}},
	{Name: "a retry keeps its parent and may outlive it", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship", fixture.Closing(engine.CloseTerminate))
		s.FailRun(s.ClaimChild(child), "no")
		answer := s.Retry(child)
		fixture.Equal(s, "parent", s.Run(answer.RunID).ParentRunID, l.RunID)
		fixture.Equal(s, "parent step", s.Run(answer.RunID).ParentStepID, engine.ID{})
		s.Finish(l, "done")
		s.Status(answer.RunID, engine.RunPending)
	}},
}
