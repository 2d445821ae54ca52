package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

var ChildCases = []fixture.Case{
	{Name: "a child is a run with a parent and a RUNNING step", Run: func(s *fixture.F) {
		l := s.Held()
		child := s.Child(l, "ship", fixture.WithExternal("shipment"), func(r *engine.StartRun) {
			r.Input = fixture.Text("parcel")
		})
		run := s.Run(child)
		fixture.Equal(s, "parent", run.ParentRunID, l.RunID)
		step := s.Step(l.RunID, "ship")
		fixture.Equal(s, "parent step", run.ParentStepID, step.ID)
		fixture.Equal(s, "status of the step", step.Status, engine.StepRunning)
		fixture.Equal(s, "child of the step", step.ChildRunID, child)
		fixture.Equal(s, "type of the child", step.ChildType, run.Type)
		fixture.Equal(s, "signal of the child", step.SignalName, "")
		fixture.Equal(s, "external id", run.ExternalID, "shipment")
		s.Payload("input", run.Input, fixture.Text("parcel"))
		s.Status(child, engine.RunPending)
		s.Status(l.RunID, engine.RunRunning)
		fixture.Equal(s, "steps of the parent", s.Run(l.RunID).Steps, 1)
	}},
	{Name: "starting a child again under its step name returns it", Run: func(s *fixture.F) {
		l := s.Held()
		child := s.Child(l, "ship")
		fixture.Equal(s, "child", s.Child(l, "ship"), child)
		s.Release(l, false)
		fixture.Equal(s, "child, asked under the old lease", s.Child(l, "ship"), child)
		next := s.Claim("w1").Lease
		fixture.Equal(s, "child, asked under the next lease", s.Child(next, "ship"), child)
		children, _, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space, ParentRunID: l.RunID},
			engine.Page{Limit: 10})
		s.Must(err, "ListRuns")
		fixture.Equal(s, "children", len(children), 1)
		_, err = s.TryChild(l, "other")
		s.Lost(err, engine.RunRunning, "StartChild of another under the old lease")
	}},
	{Name: "another child under a step's name is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		child := s.Child(l, "ship", fixture.WithExternal("shipment"))
		refused := func(when string) {
			s.Helper()
			for what, change := range map[string]func(*engine.StartRun){
				"input":       func(r *engine.StartRun) { r.Input = fixture.Text("other") },
				"type":        fixture.OfType("other"),
				"queue":       fixture.InQueue("other"),
				"external id": fixture.WithExternal("other"),
			} {
				_, err := s.TryChild(l, "ship", fixture.WithExternal("shipment"), change)
				s.Refused(err, engine.ErrConflict, "StartChild with another "+what+when)
			}
		}
		refused("")
		s.Release(l, false)
		refused(" when the lease is over")
		fixture.Equal(s, "child", s.Child(l, "ship", fixture.WithExternal("shipment")), child)
		fixture.Equal(s, "child, asked under the next lease",
			s.Child(s.Claim("w1").Lease, "ship", fixture.WithExternal("other")), child)
	}},
	{Name: "the end of a child completes the parent's step at once",
		Run: func(s *fixture.F) {
			s.ChildWorker()
			l := s.Held()
			child := s.Child(l, "ship")
			fixture.Equal(s, "finished", len(s.AwaitChildren(l, child)), 0)
			s.Parked(l.RunID, "child:"+child.String(), time.Time{})
			s.Finish(s.ClaimChild(child), "delivered")
			step := s.Step(l.RunID, "ship")
			fixture.Equal(s, "status of the step", step.Status, engine.StepCompleted)
			s.Payload("output of the step", step.Output, fixture.Text("delivered"))
			s.SameTime("finished at", step.FinishedAt, s.Now)
			s.Due(l.RunID)
			task := s.Claim("w1")
			s.Payload("output in the history", task.History[0].Output, fixture.Text("delivered"))
			steps := s.AwaitChildren(task.Lease, child)
			fixture.Equal(s, "finished", len(steps), 1)
			s.Payload("output of the answer", steps[0].Output, fixture.Text("delivered"))
			s.Status(l.RunID, engine.RunRunning)
		}},
	{Name: "a failed child fails the step with its error and name", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.FailRun(s.ClaimChild(child), "lost at sea")
		step := s.Step(l.RunID, "ship")
		fixture.Equal(s, "status of the step", step.Status, engine.StepFailed)
		fixture.Equal(s, "message", step.Error.Message, "lost at sea")
		fixture.Equal(s, "type", step.Error.Type, "boom")
		fixture.Equal(s, "child", step.Error.Metadata["child_run_id"], child.String())
		fixture.Equal(s, "child's status", step.Error.Metadata["child_status"], "FAILED")
		steps := s.AwaitChildren(l, child)
		fixture.Equal(s, "finished", len(steps), 1)
	}},
	{Name: "a cancelled, terminated or timed-out child fails the step", Run: func(s *fixture.F) {
		l := s.Held()
		a, b := s.Child(l, "a"), s.Child(l, "b")
		c := s.Child(l, "c", func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Second) })
		s.AwaitChildren(l, a, b, c)
		s.Cancel(a)
		_, err := s.Store.TerminateRun(s.Ctx, s.EndParams(b, "enough"))
		s.Must(err, "TerminateRun")
		s.Pass(time.Second)
		s.Expire()
		for name, status := range map[string]string{"a": "CANCELLED", "b": "TERMINATED", "c": "TIMED_OUT"} {
			step := s.Step(l.RunID, name)
			fixture.Equal(s, "status of step "+name, step.Status, engine.StepFailed)
			fixture.Equal(s, "child's status "+name, step.Error.Metadata["child_status"], status)
		}
		s.Due(l.RunID)
	}},
	{Name: "a wait for all children wakes at the last", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		var children []engine.ID
		for i := range 5 {
			children = append(children, s.Child(l, fmt.Sprint("c", i)))
		}
		fixture.Equal(s, "finished", len(s.AwaitChildren(l, children...)), 0)
		for i, child := range children {
			s.ClaimNothing("w1")
			s.Parked(l.RunID, "child:"+child.String(), time.Time{})
			s.Pass(time.Second)
			s.Finish(s.ClaimChild(child), fmt.Sprint(i))
		}
		s.Due(l.RunID)
		task := s.Claim("w1")
		steps := s.AwaitChildren(task.Lease, children...)
		fixture.Equal(s, "finished", len(steps), 5)
		for i, step := range steps {
			fixture.Equal(s, "child in the order asked for", step.ChildRunID, children[i])
			s.Payload("output", step.Output, fixture.Text(fmt.Sprint(i)))
		}
	}},
	{Name: "a wait for any child wakes at the first", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		a, b := s.Child(l, "a"), s.Child(l, "b")
		anyOf := func(p *engine.AwaitChildrenParams) { p.Any = true }
		steps, err := s.TryAwaitChildren(l, anyOf, a, b)
		s.Must(err, "AwaitChildren")
		fixture.Equal(s, "finished", len(steps), 0)
		s.Finish(s.ClaimChild(a), "first")
		s.Due(l.RunID)
		steps, err = s.TryAwaitChildren(s.Claim("w1").Lease, anyOf, a, b)
		s.Must(err, "AwaitChildren")
		fixture.Equal(s, "finished", len(steps), 1)
		fixture.Equal(s, "the one that has", steps[0].ChildRunID, a)
	}},
	{Name: "two groups of awaited children wake the parent separately", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		holding := func(p *engine.AwaitChildrenParams) { p.Hold = true }
		a, b, c, d := s.Child(l, "a"), s.Child(l, "b"), s.Child(l, "c"), s.Child(l, "d")
		for _, group := range [][]engine.ID{{a, b}, {c, d}} {
			steps, err := s.TryAwaitChildren(l, holding, group...)
			s.Must(err, "AwaitChildren")
			fixture.Equal(s, "finished", len(steps), 0)
		}
		s.Status(l.RunID, engine.RunRunning)
		s.Release(l, true)
		s.Finish(s.ClaimChild(a), "")
		s.ClaimNothing("w1")
		s.Finish(s.ClaimChild(b), "")
		s.Due(l.RunID)
	}},
	{Name: "a child that ends under a lease makes a later park due", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		_, err := s.TryAwaitChildren(l, func(p *engine.AwaitChildrenParams) { p.Hold = true }, child)
		s.Must(err, "AwaitChildren")
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		s.Finish(s.ClaimChild(child), "")
		s.Status(l.RunID, engine.RunRunning)
		s.Release(l, true)
		s.Due(l.RunID)
	}},
	{Name: "a child that was returned does not cut a later park short", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		_, err := s.TryAwaitChildren(l, func(p *engine.AwaitChildrenParams) { p.Hold = true }, child)
		s.Must(err, "AwaitChildren")
		s.Finish(s.ClaimChild(child), "")
		fixture.Equal(s, "finished", len(s.AwaitChildren(l, child)), 1)
		s.Sleep(l, "nap", time.Hour)
		s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Hour))
	}},
	{Name: "a child that is not awaited does not wake its parent", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.Sleep(l, "nap", time.Hour)
		s.Finish(s.ClaimChild(child), "")
		s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Hour))
		fixture.Equal(s, "status of the step", s.Step(l.RunID, "ship").Status, engine.StepCompleted)
	}},
	{Name: "a wait repeated after its lease ended gets the same answer", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.AwaitChildren(l, child)
		fixture.Equal(s, "finished", len(s.AwaitChildren(l, child)), 0)
		s.Finish(s.ClaimChild(child), "")
		fixture.Equal(s, "finished, the child having ended", len(s.AwaitChildren(l, child)), 0)
		s.Claim("w1")
		fixture.Equal(s, "finished, another holding the parent", len(s.AwaitChildren(l, child)), 0)
	}},
	{Name: "a run can wait only for its own children", Run: func(s *fixture.F) {
		l := s.Held()
		_, err := s.TryAwaitChildren(l, nil, s.Start())
		s.Refused(err, engine.ErrNotFound, "AwaitChildren of another run's child")
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "a child named twice in a wait is returned once", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		fixture.Equal(s, "finished", len(s.AwaitChildren(l, child, child)), 0)
		s.Finish(s.ClaimChild(child), "shipped")
		s.Due(l.RunID)
		l = s.Claim("w1").Lease
		fixture.Equal(s, "finished", len(s.AwaitChildren(l, child, child)), 1)
	}},
	{Name: "a child with an external id in use is refused", Run: func(s *fixture.F) {
		s.Start(fixture.WithExternal("taken"), fixture.OfType("other"))
		l := s.Held()
		_, err := s.TryChild(l, "ship", fixture.OfType("child"), fixture.WithExternal("taken"))
		s.Refused(err, engine.ErrExists, "StartChild")
		fixture.Equal(s, "steps", len(s.Attempts(l.RunID, "")), 0)
		s.Child(l, "ship")
	}},
	{Name: "a child step under another kind's name is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "x")
		_, err := s.TryChild(l, "pay")
		s.Refused(err, engine.ErrConflict, "StartChild")
	}},
	{Name: "when a parent ends, its children close as their policy says",
		Run: func(s *fixture.F) {
			s.ChildWorker()
			l := s.Held()
			stay, unset := s.Child(l, "stay", fixture.Closing(engine.CloseAbandon)), s.Child(l, "unset")
			cancelled, killed := s.Child(l, "cancelled", fixture.Closing(engine.CloseCancel)),
				s.Child(l, "killed", fixture.Closing(engine.CloseTerminate))
			over := s.Child(l, "over", fixture.Closing(engine.CloseCancel))
			for _, child := range []engine.ID{stay, unset, cancelled, killed} {
				s.ClaimChild(child)
			}
			s.Finish(s.ClaimChild(over), "done")
			grandchild := s.Child(s.LeaseOf(cancelled), "grandchild", fixture.Closing(engine.CloseTerminate))
			s.Finish(l, "done")
			s.Status(stay, engine.RunRunning)
			s.Status(unset, engine.RunRunning)
			s.Status(cancelled, engine.RunCancelled)
			s.Status(killed, engine.RunTerminated)
			s.Status(grandchild, engine.RunTerminated)
			s.Status(over, engine.RunCompleted)
			fixture.Equal(s, "leases of the children's worker", len(s.HeldBy("nurse")), 2)
		}},
	{Name: "children of a continued run end with the next run",
		Run: func(s *fixture.F) {
			s.ChildWorker()
			l := s.Held()
			stay := s.Child(l, "stay", fixture.Closing(engine.CloseAbandon))
			cancelled, killed := s.Child(l, "cancelled", fixture.Closing(engine.CloseCancel)),
				s.Child(l, "killed", fixture.Closing(engine.CloseTerminate))
			over := s.Child(l, "over", fixture.Closing(engine.CloseCancel))
			s.ClaimChild(stay)
			held := s.ClaimChild(cancelled)
			s.ClaimChild(killed)
			s.Finish(s.ClaimChild(over), "done")
			first := l.RunID
			for range 2 {
				next := s.NewRun()
				s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
				for _, child := range []engine.ID{cancelled, killed} {
					s.Status(child, engine.RunRunning)
					fixture.Equal(s, "parent", s.Run(child).ParentRunID, next.ID)
					fixture.Equal(s, "step that started it", s.Run(child).ParentStepID, engine.ID{})
				}
				s.Complete(held, "work of "+next.ID.String(), "x") // its lease goes on
				l = s.Claim("w1").Lease
			}
			fixture.Equal(s, "parent of one that is to stay", s.Run(stay).ParentRunID, first)
			fixture.Equal(s, "parent of one that was over", s.Run(over).ParentRunID, first)
			s.Finish(l, "done")
			s.Status(stay, engine.RunRunning)
			s.Status(cancelled, engine.RunCancelled)
			s.Status(killed, engine.RunTerminated)
			s.Status(over, engine.RunCompleted)
			fixture.Equal(s, "leases of the children's worker", len(s.HeldBy("nurse")), 1)
		}},
	{Name: "a parent that is tried again keeps its children", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		child := s.Child(l, "ship", fixture.Closing(engine.CloseTerminate))
		fixture.Equal(s, "retry", s.FailRun(l, "no").Retry, true)
		s.Status(child, engine.RunPending)
		fixture.Equal(s, "status of the step", s.Step(l.RunID, "ship").Status, engine.StepRunning)
	}},
	{Name: "a child that ends after its parent changes no step", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.Finish(l, "done")
		before := s.Step(l.RunID, "ship")
		s.Failure("error of the step", before.Error, engine.RunEndedFailure())
		s.Finish(s.ClaimChild(child), "late")
		fixture.Equal(s, "the step", fixture.StepText(s.Step(l.RunID, "ship")), fixture.StepText(before))
	}},
	{Name: "a run started inside a step is a child by lineage only", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		step := s.Begin(l, "pay")
		child := s.Start(fixture.OfType("child"), func(r *engine.StartRun) {
			r.ParentRunID, r.ParentStepID = l.RunID, step.ID
		})
		s.Finish(s.ClaimChild(child), "done")
		fixture.Equal(s, "status of the step", s.Step(l.RunID, "pay").Status, engine.StepRunning)
		s.Complete(l, "pay", "x")
	}},
	{Name: "a child that continues ends as its last run", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.AwaitChildren(l, child)
		next := s.NewRun(fixture.OfType("child"))
		_, err := s.Store.CompleteRun(s.Ctx, engine.CompleteRunParams{
			Lease: s.ClaimChild(child), ContinueAs: &next, Now: s.Now})
		s.Must(err, "CompleteRun")
		fixture.Equal(s, "status of the step", s.Step(l.RunID, "ship").Status, engine.StepRunning)
		s.Status(l.RunID, engine.RunSleeping)
		fixture.Equal(s, "parent of the next", s.Run(next.ID).ParentRunID, l.RunID)
		s.Finish(s.ClaimChild(next.ID), "arrived")
		fixture.Equal(s, "output of the step", string(s.Step(l.RunID, "ship").Output.Data), "arrived")
		s.Due(l.RunID)
	}},
	{Name: "the output of a continued child names the run it came from",
		Run: func(s *fixture.F) {
			s.ChildWorker()
			l := s.Held()
			first, plain := s.Child(l, "ship"), s.Child(l, "plain")
			held := s.ClaimChild(first)
			last := first
			own := map[string]string{"encoding": "x", engine.MetaChildRunID: "what the code wrote"}
			s.Must(s.TryEnd(engine.CompleteRunParams{
				Lease: s.ClaimChild(plain), Output: engine.Payload{Data: []byte("done"), Metadata: own}, Now: s.Now}),
				"CompleteRun")
			for range 2 {
				next := s.NewRun(fixture.OfType("child"))
				s.Must(s.TryEnd(engine.CompleteRunParams{Lease: held, ContinueAs: &next, Now: s.Now}), "CompleteRun")
				held, last = s.ClaimChild(next.ID), next.ID
			}
			before := s.Run(l.RunID).Bytes
			s.Must(s.TryEnd(engine.CompleteRunParams{
				Lease: held, Output: engine.Payload{Data: []byte("arrived"), Metadata: own}, Now: s.Now}),
				"CompleteRun")
			want := map[string]engine.Payload{
				"ship": {Data: []byte("arrived"), Metadata: map[string]string{
					"encoding": "x", engine.MetaChildRunID: last.String()}},
				"plain": {Data: []byte("done"), Metadata: map[string]string{"encoding": "x"}},
			}
			for name, output := range want {
				s.Payload("output of step "+name, s.Step(l.RunID, name).Output, output)
			}
			fixture.Equal(s, "child of the step", s.Step(l.RunID, "ship").ChildRunID, first)
			fixture.Equal(s, "bytes", s.Run(l.RunID).Bytes-before, int64(want["ship"].Size()))
			s.Payload("the last run's own output", s.Run(last).Output,
				engine.Payload{Data: []byte("arrived"), Metadata: own})
			steps := s.AwaitChildren(l, first, plain)
			fixture.Equal(s, "finished", len(steps), 2)
			for _, step := range steps {
				s.Payload("output of the answer for "+step.Name, step.Output, want[step.Name])
			}
			s.Release(l, false)
			for _, step := range s.Claim("w1").History {
				s.Payload("output in the history of "+step.Name, step.Output, want[step.Name])
			}
		}},
	{Name: "a child's result over the parent's limit fails the step", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
		for i := range 31 {
			_, err := s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{
				Lease: l, Step: fixture.Named(fmt.Sprint(i)), ID: s.ID(), Output: big, Now: s.Now})
			s.Must(err, "CompleteStep")
		}
		child := s.Child(l, "ship")
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: s.ClaimChild(child), Output: big, Now: s.Now}),
			"CompleteRun of the child")
		step := s.Step(l.RunID, "ship")
		fixture.Equal(s, "status of the step", step.Status, engine.StepFailed)
		fixture.Equal(s, "type", step.Error.Type, "too_large")
		s.Status(child, engine.RunCompleted)
	}},
	{Name: "a paused parent with an ended child is due when resumed", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.AwaitChildren(l, child)
		s.Pause(l.RunID)
		s.Finish(s.ClaimChild(child), "")
		s.ClaimNothing("w1")
		s.Resume(l.RunID)
		s.Due(l.RunID)
	}},
	{Name: "losing a child's worker does not end the wait", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship")
		s.AwaitChildren(l, child)
		s.ClaimChild(child)
		s.Offline("nurse", engine.OfflineLost)
		s.Status(l.RunID, engine.RunSleeping)
		s.ChildWorker()
		s.Finish(s.ClaimChild(child), "after all")
		s.Due(l.RunID)
	}},
	{Name: "a parent waits for a thousand children without a lease", Run: func(s *fixture.F) {
		w := s.NewWorker("nurse")
		w.Types = []string{"child"}
		s.Register(w, true)
		l := s.Held()
		children := make([]engine.ID, thousand())
		for i := range children {
			children[i] = s.Child(l, fmt.Sprint("c", i))
		}
		s.AwaitChildren(l, children...)
		fixture.Equal(s, "leases of the parent's worker", len(s.HeldBy("w1")), 0)
		for left := len(children); left > 0; {
			p := s.ClaimParams(repeat("nurse", min(left, 100))...)
			p.Types = []string{"child"}
			for _, task := range s.ClaimWith(p).Tasks {
				if left--; left == 0 {
					s.ClaimNothing("w1")
				}
				s.Finish(task.Lease, "ok")
			}
		}
		fixture.Equal(s, "finished", len(s.AwaitChildren(s.Claim("w1").Lease, children...)), len(children))
	}},
	{Name: "a child may be due later than its start, not earlier", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		now := s.Now
		later := s.Child(l, "later", fixture.DueAt(now.Add(time.Minute)))
		s.SameTime("due later", s.Run(later).AvailableAt, now.Add(time.Minute))
		sooner := s.Child(l, "sooner", fixture.DueAt(now.Add(-time.Minute)))
		s.SameTime("due sooner", s.Run(sooner).AvailableAt, now)
		s.ClaimChild(sooner)
	}},
	{Name: "a child's result counts toward its parent's bytes", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		for step, end := range map[string]func(engine.Lease){
			"good": func(child engine.Lease) { s.Finish(child, "done") },
			"bad":  func(child engine.Lease) { s.FailRun(child, "no") },
		} {
			child := s.Child(l, step)
			before := s.Run(l.RunID).Bytes
			end(s.ClaimChild(child))
			size := s.Step(l.RunID, step).Output.Size()
			if e := s.Step(l.RunID, step).Error; e != nil {
				size = e.Size()
			}
			fixture.Equal(s, "bytes for the "+step+" end", s.Run(l.RunID).Bytes-before, int64(size))
		}
	}},
}

// thousand is smaller unless tests try everything.
func thousand() int { return long.Count(150, 1000) }

func repeat(word string, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = word
	}
	return words
}
