package work

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// leasedVerb is a write under a lease, about something that its token has not written about.
type leasedVerb struct {
	name string
	call func(s *fixture.F, l engine.Lease) error
}

var leasedVerbs = []leasedVerb{
	{"BeginStep", func(s *fixture.F, l engine.Lease) error { _, err := s.TryBegin(l, "fresh"); return err }},
	{"CompleteStep", func(s *fixture.F, l engine.Lease) error { _, err := s.TryComplete(l, "fresh", "x"); return err }},
	{"FailStep", func(s *fixture.F, l engine.Lease) error { _, err := s.TryFail(l, "fresh", "no"); return err }},
	{"FailStep held", func(s *fixture.F, l engine.Lease) error {
		_, err := s.TryFail(l, "fresh", "no", fixture.Holding, fixture.ForGood)
		return err
	}},
	{"Sleep", func(s *fixture.F, l engine.Lease) error { return s.TrySleep(l, "fresh", time.Second) }},
	{"Sleep over", func(s *fixture.F, l engine.Lease) error { return s.TrySleep(l, "fresh", 0, fixture.Over) }},
	{"Sleep past", func(s *fixture.F, l engine.Lease) error {
		return s.TrySleep(l, "fresh", 0, fixture.Until(s.Now), fixture.Staying)
	}},
	{"AwaitSignal", func(s *fixture.F, l engine.Lease) error { _, err := s.TryAwait(l, "fresh", "go"); return err }},
	{"StartChild", func(s *fixture.F, l engine.Lease) error {
		_, err := s.TryChild(l, "fresh", fixture.OfType("child"))
		return err
	}},
	{"AwaitChildren", func(s *fixture.F, l engine.Lease) error {
		_, err := s.TryAwaitChildren(l, nil, s.ID())
		return err
	}},
	{"CompleteRun", func(s *fixture.F, l engine.Lease) error { return s.TryFinish(l, "x") }},
	{"FailRun", func(s *fixture.F, l engine.Lease) error { _, err := s.TryFailRun(l, "no"); return err }},
	{"Release", func(s *fixture.F, l engine.Lease) error { return s.TryRelease(l, false) }},
	{"Release parked", func(s *fixture.F, l engine.Lease) error { return s.TryRelease(l, true) }},
}

var FenceCases = []fixture.Case{
	{Name: "a stale token changes nothing, for any operation and status",
		Run: func(s *fixture.F) {
			s.Worker("w1")
			s.Worker("w2")
			for status, run := range s.RunsOfEveryStatus() {
				before, steps := s.Run(run), len(s.Attempts(run, ""))
				for _, verb := range leasedVerbs {
					err := verb.call(s, engine.Lease{Namespace: fixture.Space, RunID: run, Token: s.Token()})
					s.Lost(err, status, verb.name+" of a run that is "+status.String())
					s.SameRun(s.Run(run), before)
					fixture.Equal(s, "steps after "+verb.name, len(s.Attempts(run, "")), steps)
				}
			}
		}},
	{Name: "every operation refuses an unknown run", Run: func(s *fixture.F) {
		l := s.Held()
		before := s.Run(l.RunID)
		for _, verb := range leasedVerbs {
			err := verb.call(s, engine.Lease{Namespace: fixture.Space, RunID: s.ID(), Token: l.Token})
			s.Refused(err, engine.ErrNotFound, verb.name+" of an unknown run")
			err = verb.call(s, engine.Lease{Namespace: "other", RunID: l.RunID, Token: l.Token})
			s.Refused(err, engine.ErrNotFound, verb.name+" in another namespace")
		}
		s.SameRun(s.Run(l.RunID), before)
	}},
	{Name: "a slow worker's writes do not affect the next holder", Run: func(s *fixture.F) {
		old := s.Held()
		s.Begin(old, "pay")
		s.Worker("w2")
		s.Offline("w1", engine.OfflineLost)
		next := s.Claim("w2").Lease
		s.Complete(next, "pick", "x")
		before := s.Run(old.RunID)
		for _, verb := range leasedVerbs {
			s.Lost(verb.call(s, old), engine.RunRunning, verb.name)
		}
		_, err := s.TryComplete(old, "pay", "late")
		s.Lost(err, engine.RunRunning, "CompleteStep of what it had begun")
		_, err = s.TryComplete(old, "pick", "late")
		s.Lost(err, engine.RunRunning, "CompleteStep of what another completed")
		_, err = s.TryFail(old, "pay", "late")
		s.Lost(err, engine.RunRunning, "FailStep of what it had begun")
		s.SameRun(s.Run(old.RunID), before)
		s.Payload("output of pick", s.Step(old.RunID, "pick").Output, fixture.Text("x"))
		s.Complete(next, "pay", "in time")
		s.Finish(next, "done")
	}},
	{Name: "a token is refused while its run waits again", Run: func(s *fixture.F) {
		old := s.Held()
		s.Sleep(old, "nap", time.Hour)
		_, err := s.TryComplete(old, "pay", "late")
		s.Lost(err, engine.RunSleeping, "CompleteStep after a sleep")
		_, err = s.TryBegin(old, "pay")
		s.Lost(err, engine.RunSleeping, "BeginStep after a sleep")
		s.Pass(time.Hour)
		l := s.Claim("w1").Lease
		s.Fail(l, "pay", "no")
		_, err = s.TryComplete(l, "ship", "late")
		s.Lost(err, engine.RunPending, "CompleteStep after a retry")
		s.Status(old.RunID, engine.RunPending)
	}},
	{Name: "an old lease counts while it is current", Run: func(s *fixture.F) {
		l := s.Held()
		s.Pass(365 * 24 * time.Hour)
		s.Complete(l, "pay", "late but first")
		s.Finish(l, "done")
		s.Status(l.RunID, engine.RunCompleted)
	}},
	{Name: "repeated results are OK after the run has another holder", Run: func(s *fixture.F) {
		old := s.Held()
		done := s.Complete(old, "pay", "paid")
		s.Lose("w1")
		next := s.Claim("w1").Lease
		s.SameStep(s.Complete(old, "pay", "paid"), done)
		_, err := s.TryComplete(old, "pay", "other")
		s.Refused(err, engine.ErrConflict, "other content")
		s.Finish(next, "done")
		s.SameStep(s.Complete(old, "pay", "paid"), done)
		fixture.Equal(s, "attempts", len(s.Attempts(old.RunID, "pay")), 1)
	}},
	{Name: "a lease does not open other runs", Run: func(s *fixture.F) {
		a, b := s.Held(), s.HeldNext()
		mixed := engine.Lease{Namespace: fixture.Space, RunID: b.RunID, Token: a.Token}
		for _, verb := range leasedVerbs {
			s.Lost(verb.call(s, mixed), engine.RunRunning, verb.name)
		}
		s.Status(b.RunID, engine.RunRunning)
	}},
	{Name: "the zero token opens no run", Run: func(s *fixture.F) {
		s.Worker("w1")
		for status, run := range s.EndedRuns() {
			for _, verb := range leasedVerbs {
				s.Lost(verb.call(s, engine.Lease{Namespace: fixture.Space, RunID: run}), status, verb.name)
			}
		}
	}},
	{Name: "CurrentLease returns the current lease", Run: func(s *fixture.F) {
		l := s.Held()
		got, err := s.Store.CurrentLease(s.Ctx, fixture.Space, l.RunID)
		s.Must(err, "CurrentLease")
		fixture.Equal(s, "token", got.Token, l.Token)
		fixture.Equal(s, "run", got.RunID, l.RunID)
		s.Sleep(l, "nap", time.Hour)
		_, err = s.Store.CurrentLease(s.Ctx, fixture.Space, l.RunID)
		s.Lost(err, engine.RunSleeping, "CurrentLease of a sleeping run")
		s.Cancel(l.RunID)
		_, err = s.Store.CurrentLease(s.Ctx, fixture.Space, l.RunID)
		s.Lost(err, engine.RunCancelled, "CurrentLease of an ended run")
		_, err = s.Store.CurrentLease(s.Ctx, fixture.Space, s.ID())
		s.Refused(err, engine.ErrNotFound, "CurrentLease of an unknown run")
	}},
	{Name: "HeldBy lists a worker's leases in the order of runs", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		for range 5 {
			s.Start()
		}
		low := s.ClaimWith(s.ClaimParams("w2")).Tasks
		tasks := s.ClaimWith(s.ClaimParams("w1", "w2", "w1")).Tasks
		got := s.HeldBy("w1")
		fixture.Equal(s, "leases", len(got), 2)
		fixture.Equal(s, "first", got[0].Token, tasks[0].Lease.Token)
		fixture.Equal(s, "second", got[1].Token, tasks[2].Lease.Token)
		fixture.Equal(s, "first of w2", s.HeldBy("w2")[0].RunID, low[0].Run.ID)
		fixture.Equal(s, "leases of nobody", len(s.HeldBy("nobody")), 0)
	}},
}
