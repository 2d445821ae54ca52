package runs

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// KeptCases are about runs whose code a worker keeps in memory while they are parked.
var KeptCases = []fixture.Case{
	{Name: "a task for the worker that keeps the run is what it misses", Run: func(s *fixture.F) {
		l := s.Held()
		s.ChildWorker()
		s.Complete(l, "a", "x")
		s.Sleep(l, "nap", time.Second, fixture.Held)
		s.Sleep(l, "later", time.Hour, fixture.Held)
		s.Await(l, "limit", "never", fixture.AtMost(2*time.Second), fixture.HoldingOn)
		s.Await(l, "word", "word", fixture.HoldingOn)
		done, failed, open := s.Child(l, "done"), s.Child(l, "failed"), s.Child(l, "open")
		held := func(p *engine.AwaitChildrenParams) { p.Hold = true }
		_, err := s.TryAwaitChildren(l, held, done, failed, open)
		s.Must(err, "AwaitChildren")
		s.Release(l, true)
		known := history(s, l.RunID)
		s.Signal(l.RunID, "word", "came")
		s.Finish(s.ClaimChild(done), "grown up")
		s.FailRun(s.ClaimChild(failed), "no")
		s.Pass(10 * time.Second)
		task := claimKept(s, l)
		fixture.Equal(s, "base", task.Base, l.Token)
		fixture.Equal(s, "places of what is new", places(task.History), "nap5 limit6 word2 done3 failed4")
		missesNothing(s, known, task)
	}},
	{Name: "a run that waits for a retry, was paused or is to stop is still known", Run: func(s *fixture.F) {
		s.Worker("w1")
		for _, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.Fail(l, "pay", "no") },
			func(l engine.Lease) { s.Sleep(l, "nap", time.Second) },
			func(l engine.Lease) { s.Await(l, "go", "go", fixture.AtMost(time.Second)) },
			func(l engine.Lease) { s.AwaitChildren(l, s.Child(l, "open")); s.CancelWithin(l.RunID, time.Hour) },
			func(l engine.Lease) { s.Sleep(l, "nap", time.Second); s.Pause(l.RunID); s.Resume(l.RunID) },
			func(l engine.Lease) {
				s.Pass(time.Second)
				s.CancelWithin(l.RunID, time.Hour)
				s.Sleep(l, "nap", time.Hour)
			},
		} {
			l := s.HeldNext(fixture.WithPolicy(engine.RetryPolicy{}))
			s.Complete(l, "a", "x")
			end(l)
			known := history(s, l.RunID)
			s.Pass(time.Minute)
			task := claimKept(s, l)
			fixture.Equal(s, "base", task.Base, l.Token)
			missesNothing(s, known, task)
			s.Finish(task.Lease, "done")
		}
	}},
	{Name: "nothing is left out for a worker that may miss more", Run: func(s *fixture.F) {
		s.Worker("w1")
		for n, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.Release(l, false) },
			func(l engine.Lease) { s.Lose("w1") },
			func(l engine.Lease) { s.Now = s.FailRun(l, "no").RetryAt },
			func(l engine.Lease) { s.Pause(l.RunID); s.Resume(l.RunID) },
			func(l engine.Lease) { // parked again since, under another token
				s.Sleep(l, "nap", time.Second)
				s.Pass(time.Second)
				s.Sleep(s.Claim("w1").Lease, "again", time.Second)
			},
			func(l engine.Lease) { // parked, claimed and lost
				s.Sleep(l, "nap", time.Second)
				s.Pass(time.Second)
				s.Claim("w1")
				s.Lose("w1")
			},
			func(l engine.Lease) { // parked, claimed and given back
				s.Sleep(l, "nap", time.Second)
				s.Pass(time.Second)
				s.Release(s.Claim("w1").Lease, false)
			},
			func(l engine.Lease) { // a person set a result
				s.Sleep(l, "nap", time.Hour)
				s.Pause(l.RunID)
				_, err := s.Store.OverrideStep(s.Ctx, engine.OverrideStepParams{SteerParams: s.Steer(l.RunID, "late"),
					ID: s.ID(), Step: "nap", Output: &engine.Payload{}})
				s.Must(err, "OverrideStep")
				s.Resume(l.RunID)
			},
			func(l engine.Lease) { // the server ended an attempt
				s.Begin(l, "slow", func(p *engine.BeginStepParams) { p.StartToClose = time.Second })
				s.Pass(time.Minute)
				s.TimeOut(s.Now)
			},
		} {
			l := s.HeldNext(fixture.WithPolicy(engine.RetryPolicy{}))
			s.Complete(l, "a", "x")
			end(l)
			s.Pass(time.Minute)
			task := claimKept(s, l)
			fixture.Equal(s, "base", task.Base, engine.Token{})
			if len(task.History) == 0 || task.History[0].Name != "a" {
				s.Fatalf("case %d: the history begins with %v, want it to be whole", n, places(task.History))
			}
			s.Finish(task.Lease, "done")
		}
	}},
	{Name: "only the worker that keeps the run gets less than all", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		for _, by := range []string{"w2", ""} {
			l := s.HeldNext()
			s.Complete(l, "a", "x")
			s.Sleep(l, "nap", time.Second)
			s.Pass(time.Second)
			p := s.ClaimParams("w1")
			p.Kept = func(engine.ID) engine.KeptRun { return engine.KeptRun{WorkerID: by, Token: l.Token} }
			task := s.ClaimWith(p).Tasks[0]
			fixture.Equal(s, "base", task.Base, engine.Token{})
			fixture.Equal(s, "places", places(task.History), "a1 nap2")
			s.Finish(task.Lease, "done")
		}
	}},
	{Name: "more than a task carries is a whole history", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "a", "x")
		s.Await(l, "go", "go")
		s.Signal(l.RunID, "go", "a long answer")
		p := s.ClaimParams("w1")
		p.Kept, p.HistoryBytes = keeps(l), 201
		task := s.ClaimWith(p).Tasks[0]
		fixture.Equal(s, "base", task.Base, engine.Token{})
		fixture.Equal(s, "places", places(task.History), "a1")
		fixture.Equal(s, "rest", task.NextSequence, 2)
	}},
	{Name: "a kept run gets the slot of its worker", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		l := s.HeldNext()
		s.Sleep(l, "nap", time.Second)
		other := s.HeldNext()
		s.Sleep(other, "nap", time.Second)
		s.Pass(time.Second)
		p := s.ClaimParams("w2", "w1")
		p.Kept, p.Prefer = keeps(l), true
		holders := map[engine.ID]string{}
		for _, task := range s.ClaimWith(p).Tasks {
			holders[task.Run.ID] = task.Run.WorkerID
		}
		fixture.Equal(s, "holder", holders[l.RunID], "w1")
		fixture.Equal(s, "holder of the other", holders[other.RunID], "w2")
	}},
	{Name: "a due run is left to its worker for a moment", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		for _, room := range []bool{true, false} {
			l := s.HeldNext()
			s.Sleep(l, "nap", time.Second)
			s.Pass(time.Second)
			due := s.Now
			p := s.ClaimParams("w2")
			p.Prefer = true
			p.Kept = func(engine.ID) engine.KeptRun {
				return engine.KeptRun{WorkerID: "w1", Token: l.Token, Room: room}
			}
			claimed := s.ClaimWith(p)
			if room {
				fixture.Equal(s, "runs", len(claimed.Tasks), 0)
				s.SameTime("next due", claimed.NextDue, due.Add(engine.KeepTime))
				s.Pass(engine.KeepTime)
				p.Now = s.Now
				claimed = s.ClaimWith(p)
			}
			fixture.Equal(s, "runs", len(claimed.Tasks), 1)
			fixture.Equal(s, "base", claimed.Tasks[0].Base, engine.Token{})
			s.Finish(claimed.Tasks[0].Lease, "done")
		}
	}},
}

// keeps says that worker w1 parked the run under this lease and keeps it.
func keeps(l engine.Lease) func(engine.ID) engine.KeptRun {
	return func(run engine.ID) engine.KeptRun {
		if run != l.RunID {
			return engine.KeptRun{}
		}
		return engine.KeptRun{WorkerID: "w1", Token: l.Token}
	}
}

// claimKept claims the run for worker w1, which keeps it since it parked it under this lease.
func claimKept(s *fixture.F, l engine.Lease) engine.Task {
	s.Helper()
	p := s.ClaimParams("w1")
	p.Kept = keeps(l)
	tasks := s.ClaimWith(p).Tasks
	fixture.Equal(s, "claimed runs", len(tasks), 1)
	fixture.Equal(s, "claimed run", tasks[0].Run.ID, l.RunID)
	return tasks[0]
}

func history(s *fixture.F, run engine.ID) []engine.Step {
	s.Helper()
	steps, _, err := s.Store.GetHistory(s.Ctx, engine.HistoryParams{Namespace: fixture.Space, RunID: run,
		Bytes: engine.HistoryBytes})
	s.Must(err, "GetHistory")
	return steps
}

// missesNothing requires that what a worker knew, with what its task says, is the whole history.
func missesNothing(s *fixture.F, known []engine.Step, task engine.Task) {
	s.Helper()
	latest := map[string]engine.Step{}
	for _, step := range known {
		step.Awaited = 0 // no claimed step is
		latest[step.Name] = step
	}
	for _, step := range task.History {
		latest[step.Name] = step
	}
	whole := history(s, task.Run.ID)
	fixture.Equal(s, "steps", len(latest), len(whole))
	for _, step := range whole {
		s.SameStep(latest[step.Name], step)
	}
}
