package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

var childCases = []testCase{
	{"a child is a run with its parent, and a step that runs as long as it does", func(s *stage) {
		l := s.held()
		child := s.child(l, "ship", withExternal("shipment"), func(r *engine.StartRun) { r.Input = text("parcel") })
		run := s.run(child)
		equal(s, "parent", run.ParentRunID, l.RunID)
		step := s.step(l.RunID, "ship")
		equal(s, "parent step", run.ParentStepID, step.ID)
		equal(s, "status of the step", step.Status, engine.StepRunning)
		equal(s, "child of the step", step.ChildRunID, child)
		equal(s, "external id", run.ExternalID, "shipment")
		s.payload("input", run.Input, text("parcel"))
		s.status(child, engine.RunPending)
		s.status(l.RunID, engine.RunRunning)
		equal(s, "steps of the parent", s.run(l.RunID).Steps, 1)
	}},
	{"started again under its name it is the same child", func(s *stage) {
		l := s.held()
		child := s.child(l, "ship")
		equal(s, "child", s.child(l, "ship"), child)
		s.release(l, false)
		equal(s, "child, asked under the old lease", s.child(l, "ship"), child)
		next := s.claim("w1").Lease
		equal(s, "child, asked under the next lease", s.child(next, "ship"), child)
		children, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space, ParentRunID: l.RunID}, engine.Page{Limit: 10})
		s.must(err, "ListRuns")
		equal(s, "children", len(children), 1)
		_, err = s.tryChild(l, "other")
		s.lost(err, engine.RunRunning, "StartChild of another under the old lease")
	}},
	{"repeated with other content it is a conflict, under its own lease", func(s *stage) {
		l := s.held()
		child := s.child(l, "ship", withExternal("shipment"))
		refused := func(when string) {
			s.Helper()
			for what, change := range map[string]func(*engine.StartRun){
				"input":       func(r *engine.StartRun) { r.Input = text("other") },
				"type":        ofType("other"),
				"queue":       inQueue("other"),
				"external id": withExternal("other"),
			} {
				_, err := s.tryChild(l, "ship", withExternal("shipment"), change)
				s.refused(err, engine.ErrConflict, "StartChild with another "+what+when)
			}
		}
		refused("")
		s.release(l, false)
		refused(" when the lease is over")
		equal(s, "child", s.child(l, "ship", withExternal("shipment")), child)
		equal(s, "child, asked under the next lease", s.child(s.claim("w1").Lease, "ship", withExternal("other")), child)
	}},
	{"the parent's step completes with the child's output in the transaction that ends the child", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		equal(s, "finished", len(s.awaitChildren(l, child)), 0)
		s.parked(l.RunID, "child:"+child.String(), time.Time{})
		s.finish(s.claimChild(child), "delivered")
		step := s.step(l.RunID, "ship")
		equal(s, "status of the step", step.Status, engine.StepCompleted)
		s.payload("output of the step", step.Output, text("delivered"))
		s.sameTime("finished at", step.FinishedAt, s.now)
		s.due(l.RunID)
		task := s.claim("w1")
		s.payload("output in the history", task.History[0].Output, text("delivered"))
		steps := s.awaitChildren(task.Lease, child)
		equal(s, "finished", len(steps), 1)
		s.payload("output of the answer", steps[0].Output, text("delivered"))
		s.status(l.RunID, engine.RunRunning)
	}},
	{"a child that fails fails the step, with its error and its name", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.failRun(s.claimChild(child), "lost at sea")
		step := s.step(l.RunID, "ship")
		equal(s, "status of the step", step.Status, engine.StepFailed)
		equal(s, "message", step.Error.Message, "lost at sea")
		equal(s, "type", step.Error.Type, "boom")
		equal(s, "child", step.Error.Metadata["child_run_id"], child.String())
		equal(s, "child's status", step.Error.Metadata["child_status"], "FAILED")
		steps := s.awaitChildren(l, child)
		equal(s, "finished", len(steps), 1)
	}},
	{"a child that is cancelled, terminated or times out fails the step too", func(s *stage) {
		l := s.held()
		a, b := s.child(l, "a"), s.child(l, "b")
		c := s.child(l, "c", func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Second) })
		s.awaitChildren(l, a, b, c)
		s.cancel(a)
		_, err := s.store.TerminateRun(s.ctx, s.endParams(b, "enough"))
		s.must(err, "TerminateRun")
		s.pass(time.Second)
		s.expire()
		for name, status := range map[string]string{"a": "CANCELLED", "b": "TERMINATED", "c": "TIMED_OUT"} {
			step := s.step(l.RunID, name)
			equal(s, "status of step "+name, step.Status, engine.StepFailed)
			equal(s, "child's status "+name, step.Error.Metadata["child_status"], status)
		}
		s.due(l.RunID)
	}},
	{"a wait for all wakes at the last, and costs nothing before", func(s *stage) {
		s.childWorker()
		l := s.held()
		var children []engine.ID
		for i := range 5 {
			children = append(children, s.child(l, fmt.Sprint("c", i)))
		}
		equal(s, "finished", len(s.awaitChildren(l, children...)), 0)
		for i, child := range children {
			s.claimNothing("w1")
			s.parked(l.RunID, "child:"+child.String(), time.Time{})
			s.pass(time.Second)
			s.finish(s.claimChild(child), fmt.Sprint(i))
		}
		s.due(l.RunID)
		task := s.claim("w1")
		steps := s.awaitChildren(task.Lease, children...)
		equal(s, "finished", len(steps), 5)
		for i, step := range steps {
			equal(s, "child in the order asked for", step.ChildRunID, children[i])
			s.payload("output", step.Output, text(fmt.Sprint(i)))
		}
	}},
	{"a wait for any wakes at the first", func(s *stage) {
		s.childWorker()
		l := s.held()
		a, b := s.child(l, "a"), s.child(l, "b")
		anyOf := func(p *engine.AwaitChildrenParams) { p.Any = true }
		steps, err := s.tryAwaitChildren(l, anyOf, a, b)
		s.must(err, "AwaitChildren")
		equal(s, "finished", len(steps), 0)
		s.finish(s.claimChild(a), "first")
		s.due(l.RunID)
		steps, err = s.tryAwaitChildren(s.claim("w1").Lease, anyOf, a, b)
		s.must(err, "AwaitChildren")
		equal(s, "finished", len(steps), 1)
		equal(s, "the one that has", steps[0].ChildRunID, a)
	}},
	{"two groups that are waited for side by side wake each for itself", func(s *stage) {
		s.childWorker()
		l := s.held()
		holding := func(p *engine.AwaitChildrenParams) { p.Hold = true }
		a, b, c, d := s.child(l, "a"), s.child(l, "b"), s.child(l, "c"), s.child(l, "d")
		for _, group := range [][]engine.ID{{a, b}, {c, d}} {
			steps, err := s.tryAwaitChildren(l, holding, group...)
			s.must(err, "AwaitChildren")
			equal(s, "finished", len(steps), 0)
		}
		s.status(l.RunID, engine.RunRunning)
		s.release(l, true)
		s.finish(s.claimChild(a), "")
		s.claimNothing("w1")
		s.finish(s.claimChild(b), "")
		s.due(l.RunID)
	}},
	{"a child that ends while its parent is held makes a later park due at once", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		_, err := s.tryAwaitChildren(l, func(p *engine.AwaitChildrenParams) { p.Hold = true }, child)
		s.must(err, "AwaitChildren")
		s.sleep(l, "nap", time.Hour, held)
		s.finish(s.claimChild(child), "")
		s.status(l.RunID, engine.RunRunning)
		s.release(l, true)
		s.due(l.RunID)
	}},
	{"a child that has been told of cuts no later park short", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		_, err := s.tryAwaitChildren(l, func(p *engine.AwaitChildrenParams) { p.Hold = true }, child)
		s.must(err, "AwaitChildren")
		s.finish(s.claimChild(child), "")
		equal(s, "finished", len(s.awaitChildren(l, child)), 1)
		s.sleep(l, "nap", time.Hour)
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Hour))
	}},
	{"a child that nobody waits for does not wake its parent", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.sleep(l, "nap", time.Hour)
		s.finish(s.claimChild(child), "")
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Hour))
		equal(s, "status of the step", s.step(l.RunID, "ship").Status, engine.StepCompleted)
	}},
	{"a wait repeated under the lease that it ended is answered alike", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.awaitChildren(l, child)
		equal(s, "finished", len(s.awaitChildren(l, child)), 0)
		s.finish(s.claimChild(child), "")
		equal(s, "finished, the child having ended", len(s.awaitChildren(l, child)), 0)
		s.claim("w1")
		equal(s, "finished, another holding the parent", len(s.awaitChildren(l, child)), 0)
	}},
	{"only one's own children can be waited for", func(s *stage) {
		l := s.held()
		_, err := s.tryAwaitChildren(l, nil, s.start())
		s.refused(err, engine.ErrNotFound, "AwaitChildren of a stranger")
		s.status(l.RunID, engine.RunRunning)
	}},
	{"a child that is named twice in a wait is waited for and answered once", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		equal(s, "finished", len(s.awaitChildren(l, child, child)), 0)
		s.finish(s.claimChild(child), "shipped")
		s.due(l.RunID)
		l = s.claim("w1").Lease
		equal(s, "finished", len(s.awaitChildren(l, child, child)), 1)
	}},
	{"an external id that an open run holds refuses the child, and records nothing", func(s *stage) {
		s.start(withExternal("taken"), ofType("other"))
		l := s.held()
		_, err := s.tryChild(l, "ship", ofType("child"), withExternal("taken"))
		s.refused(err, engine.ErrExists, "StartChild")
		equal(s, "steps", len(s.attempts(l.RunID, "")), 0)
		s.child(l, "ship")
	}},
	{"a step of another kind is a conflict", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "x")
		_, err := s.tryChild(l, "pay")
		s.refused(err, engine.ErrConflict, "StartChild")
	}},
	{"when the parent ends its open children end as their policy says, and theirs in turn", func(s *stage) {
		s.childWorker()
		l := s.held()
		stay, unset := s.child(l, "stay", closing(engine.CloseAbandon)), s.child(l, "unset")
		cancelled, killed := s.child(l, "cancelled", closing(engine.CloseCancel)), s.child(l, "killed", closing(engine.CloseTerminate))
		over := s.child(l, "over", closing(engine.CloseCancel))
		for _, child := range []engine.ID{stay, unset, cancelled, killed} {
			s.claimChild(child)
		}
		s.finish(s.claimChild(over), "done")
		grandchild := s.child(s.leaseOf(cancelled), "grandchild", closing(engine.CloseTerminate))
		s.finish(l, "done")
		s.status(stay, engine.RunRunning)
		s.status(unset, engine.RunRunning)
		s.status(cancelled, engine.RunCancelled)
		s.status(killed, engine.RunTerminated)
		s.status(grandchild, engine.RunTerminated)
		s.status(over, engine.RunCompleted)
		equal(s, "leases of the children's worker", len(s.heldBy("nurse")), 2)
	}},
	{"children that are not to outlive a run that continues as new end with the run that goes on", func(s *stage) {
		s.childWorker()
		l := s.held()
		stay := s.child(l, "stay", closing(engine.CloseAbandon))
		cancelled, killed := s.child(l, "cancelled", closing(engine.CloseCancel)), s.child(l, "killed", closing(engine.CloseTerminate))
		over := s.child(l, "over", closing(engine.CloseCancel))
		s.claimChild(stay)
		held := s.claimChild(cancelled)
		s.claimChild(killed)
		s.finish(s.claimChild(over), "done")
		first := l.RunID
		for range 2 {
			next := s.newRun()
			s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
			for _, child := range []engine.ID{cancelled, killed} {
				s.status(child, engine.RunRunning)
				equal(s, "parent", s.run(child).ParentRunID, next.ID)
				equal(s, "step that started it", s.run(child).ParentStepID, engine.ID{})
			}
			s.complete(held, "work of "+next.ID.String(), "x") // its lease goes on
			l = s.claim("w1").Lease
		}
		equal(s, "parent of one that is to stay", s.run(stay).ParentRunID, first)
		equal(s, "parent of one that was over", s.run(over).ParentRunID, first)
		s.finish(l, "done")
		s.status(stay, engine.RunRunning)
		s.status(cancelled, engine.RunCancelled)
		s.status(killed, engine.RunTerminated)
		s.status(over, engine.RunCompleted)
		equal(s, "leases of the children's worker", len(s.heldBy("nurse")), 1)
	}},
	{"a parent that is tried again keeps its children", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		child := s.child(l, "ship", closing(engine.CloseTerminate))
		equal(s, "retry", s.failRun(l, "no").Retry, true)
		s.status(child, engine.RunPending)
		equal(s, "status of the step", s.step(l.RunID, "ship").Status, engine.StepRunning)
	}},
	{"a child's end after the parent's changes nothing there", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.finish(l, "done")
		before := s.step(l.RunID, "ship")
		s.failure("error of the step", before.Error, engine.RunEndedFailure())
		s.finish(s.claimChild(child), "late")
		equal(s, "the step", stepText(s.step(l.RunID, "ship")), stepText(before))
	}},
	{"a run started inside a step is its child by lineage only", func(s *stage) {
		s.childWorker()
		l := s.held()
		step := s.begin(l, "pay")
		child := s.start(ofType("child"), func(r *engine.StartRun) { r.ParentRunID, r.ParentStepID = l.RunID, step.ID })
		s.finish(s.claimChild(child), "done")
		equal(s, "status of the step", s.step(l.RunID, "pay").Status, engine.StepRunning)
		s.complete(l, "pay", "x")
	}},
	{"a child that continues as new goes on as its last run", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.awaitChildren(l, child)
		next := s.newRun(ofType("child"))
		_, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Lease: s.claimChild(child), ContinueAs: &next, Now: s.now})
		s.must(err, "CompleteRun")
		equal(s, "status of the step", s.step(l.RunID, "ship").Status, engine.StepRunning)
		s.status(l.RunID, engine.RunSleeping)
		equal(s, "parent of the next", s.run(next.ID).ParentRunID, l.RunID)
		s.finish(s.claimChild(next.ID), "arrived")
		equal(s, "output of the step", string(s.step(l.RunID, "ship").Output.Data), "arrived")
		s.due(l.RunID)
	}},
	{"the output of a child that has continued as new names the run that it is of, and of no other child", func(s *stage) {
		s.childWorker()
		l := s.held()
		first, plain := s.child(l, "ship"), s.child(l, "plain")
		held := s.claimChild(first)
		last := first
		own := map[string]string{"encoding": "x", engine.MetaChildRunID: "what the code wrote"}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.claimChild(plain), Output: engine.Payload{Data: []byte("done"), Metadata: own}, Now: s.now}), "CompleteRun")
		for range 2 {
			next := s.newRun(ofType("child"))
			s.must(s.tryEnd(engine.CompleteRunParams{Lease: held, ContinueAs: &next, Now: s.now}), "CompleteRun")
			held, last = s.claimChild(next.ID), next.ID
		}
		before := s.run(l.RunID).Bytes
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: held, Output: engine.Payload{Data: []byte("arrived"), Metadata: own}, Now: s.now}), "CompleteRun")
		want := map[string]engine.Payload{
			"ship":  {Data: []byte("arrived"), Metadata: map[string]string{"encoding": "x", engine.MetaChildRunID: last.String()}},
			"plain": {Data: []byte("done"), Metadata: map[string]string{"encoding": "x"}},
		}
		for name, output := range want {
			s.payload("output of step "+name, s.step(l.RunID, name).Output, output)
		}
		equal(s, "child of the step", s.step(l.RunID, "ship").ChildRunID, first)
		equal(s, "bytes", s.run(l.RunID).Bytes-before, int64(want["ship"].Size()))
		s.payload("the last run's own output", s.run(last).Output, engine.Payload{Data: []byte("arrived"), Metadata: own})
		steps := s.awaitChildren(l, first, plain)
		equal(s, "finished", len(steps), 2)
		for _, step := range steps {
			s.payload("output of the answer for "+step.Name, step.Output, want[step.Name])
		}
		s.release(l, false)
		for _, step := range s.claim("w1").History {
			s.payload("output in the history of "+step.Name, step.Output, want[step.Name])
		}
	}},
	{"a result that the parent has no room for is a failure", func(s *stage) {
		s.childWorker()
		l := s.held()
		big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
		for i := range 31 {
			_, err := s.store.CompleteStep(s.ctx, engine.CompleteStepParams{Lease: l, Step: named(fmt.Sprint(i)), ID: s.id(), Output: big, Now: s.now})
			s.must(err, "CompleteStep")
		}
		child := s.child(l, "ship")
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.claimChild(child), Output: big, Now: s.now}), "CompleteRun of the child")
		step := s.step(l.RunID, "ship")
		equal(s, "status of the step", step.Status, engine.StepFailed)
		equal(s, "type", step.Error.Type, "too_large")
		s.status(child, engine.RunCompleted)
	}},
	{"a paused parent is due when it is resumed", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.awaitChildren(l, child)
		s.pause(l.RunID)
		s.finish(s.claimChild(child), "")
		s.claimNothing("w1")
		s.resume(l.RunID)
		s.due(l.RunID)
	}},
	{"a lost worker of a child does not end the wait", func(s *stage) {
		s.childWorker()
		l := s.held()
		child := s.child(l, "ship")
		s.awaitChildren(l, child)
		s.claimChild(child)
		s.offline("nurse", engine.OfflineLost)
		s.status(l.RunID, engine.RunSleeping)
		s.childWorker()
		s.finish(s.claimChild(child), "after all")
		s.due(l.RunID)
	}},
	{"a thousand children are waited for without a lease", func(s *stage) {
		w := s.newWorker("nurse")
		w.Types = []string{"child"}
		s.register(w, true)
		l := s.held()
		children := make([]engine.ID, thousand())
		for i := range children {
			children[i] = s.child(l, fmt.Sprint("c", i))
		}
		s.awaitChildren(l, children...)
		equal(s, "leases of the parent's worker", len(s.heldBy("w1")), 0)
		for left := len(children); left > 0; {
			p := s.claimParams(repeat("nurse", min(left, 100))...)
			p.Types = []string{"child"}
			for _, task := range s.claimWith(p).Tasks {
				if left--; left == 0 {
					s.claimNothing("w1")
				}
				s.finish(task.Lease, "ok")
			}
		}
		equal(s, "finished", len(s.awaitChildren(s.claim("w1").Lease, children...)), len(children))
	}},
	{"a child can be due later than it is started, and not sooner", func(s *stage) {
		s.childWorker()
		l := s.held()
		now := s.now
		later := s.child(l, "later", dueAt(now.Add(time.Minute)))
		s.sameTime("due later", s.run(later).AvailableAt, now.Add(time.Minute))
		sooner := s.child(l, "sooner", dueAt(now.Add(-time.Minute)))
		s.sameTime("due sooner", s.run(sooner).AvailableAt, now)
		s.claimChild(sooner)
	}},
	{"what a child comes to counts to what its parent has recorded", func(s *stage) {
		s.childWorker()
		l := s.held()
		for step, end := range map[string]func(engine.Lease){
			"good": func(child engine.Lease) { s.finish(child, "done") },
			"bad":  func(child engine.Lease) { s.failRun(child, "no") },
		} {
			child := s.child(l, step)
			before := s.run(l.RunID).Bytes
			end(s.claimChild(child))
			size := s.step(l.RunID, step).Output.Size()
			if e := s.step(l.RunID, step).Error; e != nil {
				size = e.Size()
			}
			equal(s, "bytes for the "+step+" end", s.run(l.RunID).Bytes-before, int64(size))
		}
	}},
}

// thousand is fewer when tests do not try everything.
func thousand() int { return long.Count(150, 1000) }

func repeat(word string, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = word
	}
	return words
}

// leaseOf is the lease that a run is held under.
func (s *stage) leaseOf(run engine.ID) engine.Lease {
	s.Helper()
	l, err := s.store.CurrentLease(s.ctx, space, run)
	s.must(err, "CurrentLease")
	return l
}
