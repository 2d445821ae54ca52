package runs

import (
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// OrderCases are about the order of results, and about signals that the code has not received.
var OrderCases = []fixture.Case{
	{Name: "a result is settled by the operation that gives it to the code", Run: func(s *fixture.F) {
		l := s.Held()
		s.ChildWorker()
		fixture.Equal(s, "first result", s.Complete(l, "a", "x").Settled, 1)
		fixture.Equal(s, "repeated", s.Complete(l, "a", "x").Settled, 1)
		fixture.Equal(s, "begun", s.Begin(l, "b").Settled, 0)
		retry := s.Fail(l, "c", "no", fixture.Holding)
		fixture.Equal(s, "to be retried", retry.Settled, 0)
		fixture.Equal(s, "step to be retried", s.Step(l.RunID, "c").Settled, 0)
		fixture.Equal(s, "begun before", s.Complete(l, "b", "x").Settled, 2)
		fixture.Equal(s, "final failure", s.Fail(l, "d", "no", fixture.ForGood).Settled, 3)
		fixture.Equal(s, "open wait", s.Await(l, "go", "go", fixture.HoldingOn).Step.Settled, 0)
		s.Signal(l.RunID, "go", "!")
		fixture.Equal(s, "wait whose signal has come", s.Step(l.RunID, "go").Settled, 0)
		fixture.Equal(s, "answered wait", s.Await(l, "go", "go", fixture.HoldingOn).Step.Settled, 4)
		fixture.Equal(s, "answered again", s.Await(l, "go", "go", fixture.HoldingOn).Step.Settled, 4)
		fixture.Equal(s, "timer", asleep(s, l, time.Second, fixture.Held).Settled, 0)
		s.Pass(time.Second)
		fixture.Equal(s, "timer that is over", asleep(s, l, 0, fixture.Over).Settled, 5)
		first, second := s.Child(l, "first"), s.Child(l, "second")
		s.Finish(s.ClaimChild(first), "1")
		fixture.Equal(s, "child that has ended", s.Step(l.RunID, "first").Settled, engine.Unsettled)
		s.Finish(s.ClaimChild(second), "2")
		told, err := s.TryChild(l, "second", fixture.OfType("child"))
		s.Must(err, "StartChild again")
		fixture.Equal(s, "child told by its start", told.Settled, 6)
		fixture.Equal(s, "child told by a wait", s.AwaitChildren(l, first, second)[0].Settled, 7)
		fixture.Equal(s, "told again", s.AwaitChildren(l, first)[0].Settled, 7)
		s.Release(l, false)
		fixture.Equal(s, "places in the history", places(s.Claim("w1").History), "a1 b2 c d3 go4 nap5 first7 second6")
	}},
	{Name: "a claim settles in order of the ends", Run: func(s *fixture.F) {
		l := s.Held()
		s.ChildWorker()
		s.Sleep(l, "ten", 10*time.Second, fixture.Held)
		s.Await(l, "limit", "never", fixture.AtMost(20*time.Second), fixture.HoldingOn)
		s.Await(l, "word", "word", fixture.HoldingOn)
		child := s.Child(l, "child")
		held := func(p *engine.AwaitChildrenParams) { p.Hold = true }
		_, err := s.TryAwaitChildren(l, held, child)
		s.Must(err, "AwaitChildren")
		s.Await(l, "equal", "word", fixture.HoldingOn)
		s.Sleep(l, "one", time.Second, fixture.Held)
		s.Sleep(l, "later", time.Hour, fixture.Held)
		s.Release(l, true)
		s.Pass(5 * time.Second)
		s.Signal(l.RunID, "word", "first")
		s.Signal(l.RunID, "word", "second")
		s.Pass(2 * time.Second)
		s.Finish(s.ClaimChild(child), "grown up")
		s.Pass(time.Minute)
		task := s.Claim("w1")
		fixture.Equal(s, "places", places(task.History), "ten5 limit6 word2 child4 equal3 one1 later")
		s.Payload("word", task.History[2].Output, fixture.Text("first"))
		s.Payload("child", task.History[3].Output, s.Step(l.RunID, "child").Output)
		s.Release(task.Lease, false)
		again := s.Claim("w1")
		fixture.Equal(s, "places at the next claim", places(again.History), "ten5 limit6 word2 child4 equal3 one1 later")
		fixture.Equal(s, "next result", s.Complete(again.Lease, "next", "x").Settled, 7)
	}},
	{Name: "what happened during a lease is settled at the next claim, whatever ended it", Run: func(s *fixture.F) {
		s.ChildWorker()
		for n, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.Release(l, false) },
			func(l engine.Lease) { s.Release(l, true) },
			func(l engine.Lease) { s.Lose("w1") },
			func(l engine.Lease) { s.Now = s.FailRun(l, "no").RetryAt },
			func(l engine.Lease) { s.Pause(l.RunID); s.Resume(l.RunID) },
		} {
			s.Register(s.NewWorker("w1"), true)
			l := s.HeldNext(fixture.WithPolicy(engine.RetryPolicy{}))
			s.Sleep(l, "nap", time.Second, fixture.Held)
			child := s.Child(l, "child")
			held := func(p *engine.AwaitChildrenParams) { p.Hold = true }
			_, err := s.TryAwaitChildren(l, held, child)
			s.Must(err, "AwaitChildren")
			s.Finish(s.ClaimChild(child), "1")
			s.Pass(time.Minute)
			end(l)
			task := s.Claim("w1")
			fixture.Equal(s, fmt.Sprint("places in case ", n), places(task.History), "nap2 child1")
			s.Release(task.Lease, true)
			s.Due(l.RunID) // nothing is awaited any more
			s.Cancel(l.RunID)
		}
	}},
	{Name: "a step that timed out is settled at the next claim", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		s.Complete(l, "a", "x")
		s.Begin(l, "slow")
		s.Pass(time.Hour)
		s.TimeOut(s.Now)
		fixture.Equal(s, "settled before the claim", s.Step(l.RunID, "slow").Settled, engine.Unsettled)
		fixture.Equal(s, "places", places(s.Claim("w1").History), "a1 slow2")
	}},
	{Name: "a step that runs again loses its place until it has a result", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
		fixture.Equal(s, "owed from", s.Run(l.RunID).OwedFrom, 0)
		s.Fail(l, "a", "no", fixture.ForGood)
		s.Complete(l, "b", "x")
		s.Begin(l, "c")
		s.Now = s.FailRun(l, "no").RetryAt
		task := s.Claim("w1")
		fixture.Equal(s, "owed from after the retry", task.Run.OwedFrom, 1)
		fixture.Equal(s, "places", places(task.History), "a b2 c")
		step := s.Complete(task.Lease, "a", "x")
		fixture.Equal(s, "new place", step.Settled, 3)
		fixture.Equal(s, "begun in", step.BegunIn, 1)
		fixture.Equal(s, "begun in, before", s.Step(l.RunID, "b").BegunIn, 0)
		fixture.Equal(s, "interrupted step, begun in", s.Begin(task.Lease, "c").BegunIn, 1)
		fixture.Equal(s, "new step, begun in", s.Complete(task.Lease, "d", "x").BegunIn, 1)
	}},
	{Name: "a step has the branch of the call that began it", Run: func(s *fixture.F) {
		l := s.Held()
		s.Signal(l.RunID, "go", "!")
		s.Begin(l, "a", func(p *engine.BeginStepParams) { p.Branch = "1" })
		complete := func(name, branch string) {
			_, err := s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{
				Lease: l, Step: fixture.Named(name), ID: s.ID(), Branch: branch, Now: s.Now})
			s.Must(err, "CompleteStep")
		}
		complete("a", "other")
		complete("b", "2.1")
		complete("c", "2.2")
		s.Fail(l, "d", "no", fixture.Holding, func(p *engine.FailStepParams) { p.Branch = "3" })
		s.Sleep(l, "e", time.Hour, fixture.Held, func(p *engine.SleepParams) { p.Branch = "4" })
		s.Await(l, "f", "go", func(p *engine.AwaitSignalParams) { p.Branch = "5" })
		_, err := s.Store.StartChild(s.Ctx, engine.StartChildParams{
			Lease: l, Step: "g", ID: s.ID(), Branch: "6", Child: s.NewRun(fixture.OfType("child")), Now: s.Now})
		s.Must(err, "StartChild")
		var branches []string
		for _, step := range s.Attempts(l.RunID, "") {
			branches = append(branches, step.Name+" "+step.Branch)
		}
		fixture.Equal(s, "branches", strings.Join(branches, ", "), "a 1, b 2.1, c 2.2, d 3, e 4, f 5, g 6")
	}},
	{Name: "an override keeps the place of what it replaces", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "a", "x")
		s.Fail(l, "b", "no", fixture.ForGood)
		s.Begin(l, "c", func(p *engine.BeginStepParams) { p.Branch = "1.2" })
		s.Pause(l.RunID)
		for n, name := range []string{"b", "c"} {
			text := fixture.Text("by hand")
			step, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{
				SteerParams: s.Steer(l.RunID, "seen"), ID: s.ID(), Step: name, Output: &text})
			s.Must(err, "OverrideStep")
			fixture.Equal(s, "settled", step.Settled, []int64{2, engine.Unsettled}[n])
			fixture.Equal(s, "begun in", step.BegunIn, 0)
			fixture.Equal(s, "branch", step.Branch, []string{"", "1.2"}[n])
			fixture.Equal(s, "owed from", s.Run(l.RunID).OwedFrom, int64(n+1))
		}
		s.Resume(l.RunID)
		task := s.Claim("w1")
		fixture.Equal(s, "places", places(task.History), "a1 b2 c3")
		fixture.Equal(s, "next, begun in", s.Complete(task.Lease, "d", "x").BegunIn, 2)
	}},
	{Name: "a retry of an ended run keeps places, and owes nothing", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		s.ChildWorker()
		s.Begin(l, "b", func(p *engine.BeginStepParams) { p.Branch = "1" })
		s.Complete(l, "a", "x")
		s.Complete(l, "b", "x")
		s.Now = s.FailRun(l, "no").RetryAt
		l = s.Claim("w1").Lease
		s.Complete(l, "c", "x")
		child := s.Child(l, "child", fixture.Closing(engine.CloseAbandon))
		s.Signal(l.RunID, "unread", "!")
		s.FailRun(l, "no")
		fixture.Equal(s, "unread signals", s.Run(l.RunID).UnreadSignals, 1)
		s.Finish(s.ClaimChild(child), "ended since")
		run := s.Retry(l.RunID).RunID
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, run)
		fixture.Equal(s, "places", places(task.History), "b2 a1 c3 child4")
		fixture.Equal(s, "branch", task.History[0].Branch, "1")
		fixture.Equal(s, "begun in", task.History[2].BegunIn, 1)
		fixture.Equal(s, "owed from", task.Run.OwedFrom, 2)
		step := s.Complete(task.Lease, "d", "x")
		fixture.Equal(s, "next place", step.Settled, 5)
		fixture.Equal(s, "next, begun in", step.BegunIn, 2)
		s.Finish(task.Lease, "done")
		fixture.Equal(s, "unread signals of the retry", s.Run(run).UnreadSignals, 1)
	}},
	{Name: "an import keeps places, and owes nothing", Run: func(s *fixture.F) {
		s.Worker("w1")
		in := engine.ImportedRun{Run: s.NewRun().Run}
		in.Run.Status, in.Run.Attempts, in.Run.Origin = engine.RunSleeping, 1, engine.OriginImport
		for n, settled := range []int64{2, 1, engine.Unsettled, 0} {
			in.Steps = append(in.Steps, engine.Step{ID: s.ID(), RunID: in.Run.ID, Name: string(rune('a' + n)),
				Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
				Sequence:  int64(n + 1),
				CreatedAt: s.Now, StartedAt: s.Now, FinishedAt: s.Now, Settled: settled, Branch: "1.1", BegunIn: 4})
		}
		s.Must(in.Validate(), "Validate")
		_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{Namespace: fixture.Space, By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now, Runs: []engine.ImportedRun{in}})
		s.Must(err, "ImportRuns")
		s.Resume(in.Run.ID)
		task := s.Claim("w1")
		fixture.Equal(s, "places", places(task.History), "a2 b1 c3 d")
		fixture.Equal(s, "owed from", task.Run.OwedFrom, 5)
		fixture.Equal(s, "branch", task.History[0].Branch, "1.1")
		fixture.Equal(s, "begun in", task.History[0].BegunIn, 4)
		fixture.Equal(s, "next place", s.Complete(task.Lease, "e", "x").Settled, 4)
	}},
	{Name: "a signal that the code has not received moves to the next run", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "stop", "stop", fixture.HoldingOn)
		s.Signal(l.RunID, "stop", "please")
		fixture.Equal(s, "answered", s.Await(l, "stop", "stop", fixture.HoldingOn).Waiting, false)
		s.Signal(l.RunID, "read", "x")
		s.Await(l, "read", "read")
		next := s.NewRun()
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Unreceived: []string{"stop"}, Now: s.Now}),
			"CompleteRun")
		old := s.Step(l.RunID, "stop")
		fixture.Equal(s, "row of the wait", old.Status, engine.StepCompleted)
		s.Payload("row of the wait", old.Output, fixture.Text("please"))
		fixture.Equal(s, "signals of the old run", len(s.Signals(l.RunID)), 1)
		fixture.Equal(s, "unread signals", s.Run(l.RunID).UnreadSignals, 0)
		fixture.Equal(s, "bytes of the old run", s.Run(l.RunID).Bytes, int64(len("input")+len("please")+len("x")))
		fixture.Equal(s, "bytes of the next", s.Run(next.ID).Bytes, int64(len("input")+len("please")))
		task := s.Claim("w1")
		fixture.Equal(s, "next run", task.Run.ID, next.ID)
		got := s.Await(task.Lease, "stop", "stop")
		s.Payload("received by the next run", got.Step.Output, fixture.Text("please"))
		s.Finish(task.Lease, "done")
		fixture.Equal(s, "unread signals of the next", s.Run(next.ID).UnreadSignals, 0)
	}},
	{Name: "an ended run counts the signals that it has not received", Run: func(s *fixture.F) {
		for what, end := range map[string]struct {
			do     func(l engine.Lease)
			unread int
		}{
			"completed": {func(l engine.Lease) { s.Finish(l, "done") }, 2},
			"completed, one not received": {func(l engine.Lease) {
				s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, Unreceived: []string{"go", "none"}, Now: s.Now}),
					"CompleteRun")
			}, 3},
			"failed, one not received": {func(l engine.Lease) {
				_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{
					Lease: l, Failure: fixture.Boom("no"), Unreceived: []string{"go"}, Now: s.Now})
				s.Must(err, "FailRun")
			}, 3},
			"cancelled": {func(l engine.Lease) { s.Cancel(l.RunID) }, 2},
		} {
			l := s.HeldAgain()
			for range 3 {
				s.Signal(l.RunID, "go", "!")
			}
			s.Await(l, "go", "go")
			end.do(l)
			fixture.Equal(s, "unread signals of a run that "+what, s.Run(l.RunID).UnreadSignals, end.unread)
		}
	}},
	{Name: "a run that is retried keeps what it has received", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		s.Signal(l.RunID, "go", "!")
		s.Await(l, "go", "go")
		v, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{
			Lease: l, Failure: fixture.Boom("no"), Unreceived: []string{"go"}, Now: s.Now})
		s.Must(err, "FailRun")
		fixture.Equal(s, "retried", v.Retry, true)
		fixture.Equal(s, "consumed by", s.Signals(l.RunID)[0].StepName, "go")
	}},
	{Name: "a cancellation that took effect ends the waits of the run", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "go", "go", fixture.AtMost(time.Minute), fixture.HoldingOn)
		s.CancelWithin(l.RunID, time.Hour)
		fixture.Equal(s, "settled", s.Complete(l, engine.CancelledStep, "{}").Settled, 1)
		s.Release(l, true)
		l = s.Claim("w1").Lease
		s.Sleep(l, "cleanup", 10*time.Minute)
		s.Signal(l.RunID, "go", "late")
		s.Parked(l.RunID, "timer:cleanup", s.Now.Add(10*time.Minute))
		s.Pass(10 * time.Minute)
		fixture.Equal(s, "places", places(s.Claim("w1").History), "go kagzi:cancelled1 cleanup2")
		fixture.Equal(s, "the signal waits", s.Signals(l.RunID)[0].StepName, "")
	}},
	{Name: "a wait returns the children that ended first, up to its bytes", Run: func(s *fixture.F) {
		l := s.Held()
		s.ChildWorker()
		var children []engine.ID
		for n := range 3 {
			children = append(children, s.Child(l, fmt.Sprint("child ", n)))
		}
		leases := make([]engine.Lease, 3)
		for n, child := range children {
			leases[n] = s.ClaimChild(child)
		}
		for _, n := range []int{2, 0, 1} {
			s.Pass(time.Second)
			s.Finish(leases[n], "twelve bytes")
		}
		size := s.Step(l.RunID, "child 0").Output.Size()
		ask := func(bytes int) (names string) {
			steps, err := s.TryAwaitChildren(l, func(p *engine.AwaitChildrenParams) { p.Bytes = bytes }, children...)
			s.Must(err, "AwaitChildren")
			return places(steps)
		}
		fixture.Equal(s, "at least one", ask(1), "child 21")
		fixture.Equal(s, "not settled", s.Step(l.RunID, "child 0").Settled, engine.Unsettled)
		fixture.Equal(s, "as many as fit", ask(2*size), "child 21 child 02")
		fixture.Equal(s, "all", ask(0), "child 21 child 02 child 13")
	}},
}

// places returns the names of steps with the places of their results.
func places(steps []engine.Step) string {
	texts := make([]string, len(steps))
	for i, s := range steps {
		texts[i] = s.Name
		if s.Settled != 0 {
			texts[i] += fmt.Sprint(s.Settled)
		}
	}
	return strings.Join(texts, " ")
}

// asleep sets the timer nap.
func asleep(s *fixture.F, l engine.Lease, d time.Duration, change func(*engine.SleepParams)) engine.Step {
	s.Helper()
	step, err := s.Slept(l, "nap", d, change)
	s.Must(err, "Sleep")
	return step
}
