package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var StepCases = []fixture.Case{
	{Name: "a result without BeginStep is a completed first attempt", Run: func(s *fixture.F) {
		l := s.Held()
		began := s.Now.Add(-time.Second)
		p := engine.CompleteStepParams{Lease: l, Step: fixture.Named("pay"), ID: s.ID(), Output: fixture.Text("paid"),
			StartedAt: began, Now: s.Now}
		step, err := s.Store.CompleteStep(s.Ctx, p)
		s.Must(err, "CompleteStep")
		want := engine.Step{
			ID: p.ID, RunID: l.RunID, Name: "pay", Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1,
			Latest:   true,
			Sequence: 1, Output: fixture.Text("paid"), Token: l.Token, WorkerID: "w1", CreatedAt: step.CreatedAt,
			StartedAt: began, FinishedAt: s.Now, Settled: 1,
		}
		s.SameStep(step, want)
		s.SameStep(s.Step(l.RunID, "pay"), want)
		s.SameTime("started at, when nobody says", s.Complete(l, "ship", "x").StartedAt, s.Now)
		run := s.Status(l.RunID, engine.RunRunning)
		fixture.Equal(s, "steps", run.Steps, 2)
		fixture.Equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")+len("x")))
	}},
	{Name: "repeating a result returns the first answer", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Complete(l, "pay", "paid")
		s.Pass(time.Second)
		s.SameStep(s.Complete(l, "pay", "paid"), first)
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
		run := s.Run(l.RunID)
		fixture.Equal(s, "steps", run.Steps, 1)
		fixture.Equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")))
	}},
	{Name: "another result for a recorded step is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Complete(l, "pay", "paid")
		_, err := s.TryComplete(l, "pay", "paid twice")
		s.Refused(err, engine.ErrConflict, "CompleteStep")
		_, err = s.TryFail(l, "pay", "no")
		s.Refused(err, engine.ErrConflict, "FailStep")
		s.Refused(s.TrySleep(l, "pay", time.Second), engine.ErrConflict, "Sleep")
		s.SameStep(s.Step(l.RunID, "pay"), first)
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "a result recorded under an earlier lease is never replaced", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Complete(l, "pay", "paid")
		s.Fail(l, "ship", "no", fixture.ForGood)
		s.Release(l, false)
		l = s.Claim("w1").Lease
		for _, output := range []string{"paid", "other"} {
			_, err := s.TryComplete(l, "pay", output)
			s.Refused(err, engine.ErrConflict, "CompleteStep of a completed step")
			_, err = s.TryComplete(l, "ship", output)
			s.Refused(err, engine.ErrConflict, "CompleteStep of a failed step")
		}
		s.SameStep(s.Step(l.RunID, "pay"), first)
		fixture.Equal(s, "status of ship", s.Step(l.RunID, "ship").Status, engine.StepFailed)
	}},
	{Name: "a result completes the begun RUNNING attempt", Run: func(s *fixture.F) {
		l := s.Held()
		policy := engine.RetryPolicy{MaximumAttempts: 9}
		began := s.Now.Add(-time.Millisecond)
		id := s.ID()
		begun, err := s.TryBegin(l, "pay", fixture.StepPolicy(policy), func(p *engine.BeginStepParams) {
			p.ID, p.StartedAt, p.Input = id, began, fixture.Text("in")
		})
		s.Must(err, "BeginStep")
		fixture.Equal(s, "execute", begun.Execute, true)
		want := engine.Step{
			ID: id, RunID: l.RunID, Name: "pay", Kind: engine.StepFunction, Status: engine.StepRunning, Attempt: 1,
			Latest: true, Sequence: 1,
			Input: fixture.Text("in"), Token: l.Token, WorkerID: "w1", CreatedAt: s.Now, StartedAt: began,
			TimeoutAt: s.Now.Add(engine.DefaultStepTimeout), RetryPolicy: &policy,
		}
		s.SameStep(begun.Step, want)
		s.SameStep(s.Step(l.RunID, "pay"), want)

		s.Pass(time.Second)
		done := s.Complete(l, "pay", "paid")
		want.Status, want.Output, want.FinishedAt, want.TimeoutAt = engine.StepCompleted, fixture.Text("paid"), s.Now,
			time.Time{}
		want.Settled = 1
		s.SameStep(done, want)
		s.SameStep(s.Step(l.RunID, "pay"), want)
		fixture.Equal(s, "bytes", s.Run(l.RunID).Bytes, int64(len("input")+len("in")+len("paid")))
		fixture.Equal(s, "steps", s.Run(l.RunID).Steps, 1)
	}},
	{Name: "a step may be named by the id from BeginStep", Run: func(s *fixture.F) {
		l := s.Held()
		begun := s.Begin(l, "pay")
		p := engine.CompleteStepParams{Lease: l, Step: engine.StepRef{ID: begun.ID}, ID: s.ID(),
			Output: fixture.Text("paid"), Now: s.Now}
		step, err := s.Store.CompleteStep(s.Ctx, p)
		s.Must(err, "CompleteStep by id")
		fixture.Equal(s, "attempt completed", step.ID, begun.ID)
		_, err = s.Store.CompleteStep(s.Ctx, p)
		s.Must(err, "CompleteStep by id, repeated")

		p.Step, p.ID = engine.StepRef{ID: s.ID(), Name: "ship"}, s.ID()
		step, err = s.Store.CompleteStep(s.Ctx, p)
		s.Must(err, "CompleteStep with an unknown id and a name")
		fixture.Equal(s, "name", step.Name, "ship")
	}},
	{Name: "an id of no step of the run is not found", Run: func(s *fixture.F) {
		l := s.Held()
		other := s.Begin(s.HeldNext(), "theirs")
		mine := s.Begin(l, "mine")
		for _, id := range []engine.ID{s.ID(), other.ID} {
			ref := engine.StepRef{ID: id}
			_, err := s.Store.CompleteStep(s.Ctx, engine.CompleteStepParams{
				Lease: l, Step: ref, ID: s.ID(), Output: fixture.Text("x"), Now: s.Now})
			s.Refused(err, engine.ErrNotFound, "CompleteStep")
			_, err = s.Store.FailStep(s.Ctx, engine.FailStepParams{
				Lease: l, Step: ref, ID: s.ID(), Failure: fixture.Boom("no"), Now: s.Now})
			s.Refused(err, engine.ErrNotFound, "FailStep")
			err = s.SleepWith(engine.SleepParams{
				Lease: l, Step: ref, ID: s.ID(), Duration: time.Second, Now: s.Now})
			s.Refused(err, engine.ErrNotFound, "Sleep")
		}
		fixture.Equal(s, "steps", s.Run(l.RunID).Steps, 1)
		s.SameStep(s.Step(l.RunID, "mine"), mine)
	}},
	{Name: "a completed step is not executed again", Run: func(s *fixture.F) {
		l := s.Held()
		done := s.Complete(l, "pay", "paid")
		for range 2 {
			begun, err := s.TryBegin(l, "pay")
			s.Must(err, "BeginStep")
			fixture.Equal(s, "execute", begun.Execute, false)
			s.SameStep(begun.Step, done)
			s.Release(l, false)
			l = s.Claim("w1").Lease
		}
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
		begun, err := s.TryBegin(l, "ship")
		s.Must(err, "BeginStep of another step")
		fixture.Equal(s, "execute", begun.Execute, true)
	}},
	{Name: "a step that failed for good returns its error", Run: func(s *fixture.F) {
		l := s.Held()
		s.Fail(l, "pay", "broke", fixture.ForGood)
		s.Release(l, false)
		begun, err := s.TryBegin(s.Claim("w1").Lease, "pay")
		s.Must(err, "BeginStep")
		fixture.Equal(s, "execute", begun.Execute, false)
		want := fixture.Boom("broke")
		want.NonRetryable = true
		s.Failure("error", begun.Step.Error, want)
	}},
	{Name: "beginning a step again under its lease returns its attempt", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Begin(l, "pay")
		s.Pass(time.Second)
		s.SameStep(s.Begin(l, "pay"), first)
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
		fixture.Equal(s, "steps", s.Run(l.RunID).Steps, 1)
	}},
	{Name: "an interrupted step runs again without using its budget", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Begin(l, "pay")
		s.Pass(time.Second)
		s.Release(l, false)
		cut := s.Step(l.RunID, "pay")
		fixture.Equal(s, "attempt", cut.ID, first.ID)
		fixture.Equal(s, "status", cut.Status, engine.StepFailed)
		fixture.Equal(s, "interrupted", cut.Interrupted(), true)
		s.Failure("error", cut.Error, engine.InterruptedFailure())
		fixture.Equal(s, "failures", cut.Failures, 0)
		s.SameTime("finished at", cut.FinishedAt, s.Now)
		s.SameTime("timeout at", cut.TimeoutAt, time.Time{})

		l = s.Claim("w1").Lease
		second := s.Begin(l, "pay")
		fixture.Equal(s, "attempt number", second.Attempt, 2)
		fixture.Equal(s, "failures", second.Failures, 0)
		fixture.Equal(s, "sequence", second.Sequence, first.Sequence)
		if second.ID == first.ID {
			s.Fatalf("the second attempt has the first one's id")
		}
		s.Complete(l, "pay", "paid")
		all := s.Attempts(l.RunID, "pay")
		fixture.Equal(s, "attempts", len(all), 2)
		fixture.Equal(s, "first is the latest", all[0].Latest, false)
		fixture.Equal(s, "second is the latest", all[1].Latest, true)
		fixture.Equal(s, "attempts of the run", s.Run(l.RunID).Attempts, 1)
		fixture.Equal(s, "steps of the run", s.Run(l.RunID).Steps, 1)
	}},
	{Name: "an interrupted step can be completed without BeginStep", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Release(l, false)
		step := s.Complete(s.Claim("w1").Lease, "pay", "paid")
		fixture.Equal(s, "attempt number", step.Attempt, 2)
		fixture.Equal(s, "sequence", step.Sequence, 1)
		all := s.Attempts(l.RunID, "pay")
		fixture.Equal(s, "attempts", len(all), 2)
		fixture.Equal(s, "first is the latest", all[0].Latest, false)
		fixture.Equal(s, "first keeps its place", all[0].Status, engine.StepFailed)
	}},
	{Name: "steps are ordered by their beginning", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "slow")
		s.Complete(l, "fast", "1")
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		s.Fail(l, "bad", "no", fixture.Holding, fixture.ForGood)
		s.Complete(l, "slow", "2")
		for i, step := range s.Attempts(l.RunID, "") {
			fixture.Equal(s, "sequence of "+step.Name, step.Sequence, int64(i+1))
			fixture.Equal(s, "name", step.Name, []string{"slow", "fast", "nap", "bad"}[i])
		}
		fixture.Equal(s, "steps", s.Run(l.RunID).Steps, 4)
	}},
	{Name: "steps of one name in two runs are separate", Run: func(s *fixture.F) {
		a, b := s.Held(), s.HeldNext()
		s.Complete(a, "pay", "1")
		s.Complete(b, "pay", "2")
		s.Payload("output of the first", s.Step(a.RunID, "pay").Output, fixture.Text("1"))
		s.Payload("output of the second", s.Step(b.RunID, "pay").Output, fixture.Text("2"))
	}},
	{Name: "a step of another kind under a name is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		_, err := s.TryBegin(l, "pay", fixture.AsSleep)
		s.Refused(err, engine.ErrConflict, "BeginStep of a function as a sleep")
		s.Begin(l, "nap", fixture.AsSleep)
		_, err = s.TryBegin(l, "nap")
		s.Refused(err, engine.ErrConflict, "BeginStep of a sleep as a function")
	}},
	{Name: "a timer cannot be completed", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		s.Release(l, false)
		_, err := s.TryComplete(s.Claim("w1").Lease, "nap", "x")
		s.Refused(err, engine.ErrPrecondition, "CompleteStep of a timer")
		fixture.Equal(s, "status", s.Step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{Name: "a step timeout is its own, else the run's or the default", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithTimeouts(engine.Timeouts{StartToClose: time.Minute}))
		s.SameTime("its own", s.Begin(l, "a", fixture.StartToClose(time.Second)).TimeoutAt, s.Now.Add(time.Second))
		s.SameTime("the run's", s.Begin(l, "b").TimeoutAt, s.Now.Add(time.Minute))
		s.SameTime("the default", s.Begin(s.HeldNext(), "c").TimeoutAt, s.Now.Add(engine.DefaultStepTimeout))
		s.SameTime("a timer has none", s.Begin(l, "d", fixture.AsSleep).TimeoutAt, time.Time{})
	}},
	{Name: "a slow worker clock does not shorten a step's timeout", Run: func(s *fixture.F) {
		l := s.Held()
		slow := func(p *engine.BeginStepParams) { p.StartedAt = s.Now.Add(-time.Hour) }
		step := s.Begin(l, "pay", fixture.StartToClose(time.Minute), slow)
		s.SameTime("started at", step.StartedAt, s.Now.Add(-time.Hour))
		s.SameTime("timeout at", step.TimeoutAt, s.Now.Add(time.Minute))
	}},
	{Name: "GetStep finds an attempt by its id", Run: func(s *fixture.F) {
		l := s.Held()
		done := s.Complete(l, "pay", "paid")
		got, err := s.Store.GetStep(s.Ctx, fixture.Space, done.ID)
		s.Must(err, "GetStep")
		s.SameStep(got, done)
		_, err = s.Store.GetStep(s.Ctx, fixture.Space, s.ID())
		s.Refused(err, engine.ErrNotFound, "GetStep of an unknown id")
		_, err = s.Store.GetStep(s.Ctx, "other", done.ID)
		s.Refused(err, engine.ErrNotFound, "GetStep in another namespace")
	}},
	{Name: "an acknowledged result is visible to the next read", Run: func(s *fixture.F) {
		l := s.Held()
		for i := range 30 {
			name := fmt.Sprintf("step-%02d", i)
			step := s.Complete(l, name, "x")
			got, err := s.Store.GetStep(s.Ctx, fixture.Space, step.ID)
			s.Must(err, "GetStep right after CompleteStep")
			s.SameStep(got, step)
		}
	}},
	{Name: "a run accepts at most MaxSteps steps", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "begun")
		s.CompleteMany(l, engine.MaxSteps-1)
		fixture.Equal(s, "steps", s.Run(l.RunID).Steps, engine.MaxSteps)
		_, err := s.TryBegin(l, "more")
		s.Refused(err, engine.ErrTooLarge, "BeginStep")
		_, err = s.TryComplete(l, "more", "x")
		s.Refused(err, engine.ErrTooLarge, "CompleteStep")
		_, err = s.TryFail(l, "more", "no")
		s.Refused(err, engine.ErrTooLarge, "FailStep")
		s.Refused(s.TrySleep(l, "more", time.Second), engine.ErrTooLarge, "Sleep")
		s.Complete(l, "begun", "fits") // it is counted already
		s.Release(l, false)

		task := s.Claim("w1")
		fixture.Equal(s, "steps of the next task", task.Run.Steps, engine.MaxSteps)
		got := len(task.History)
		for next := task.NextSequence; next != 0; {
			more, rest, err := s.Store.GetHistory(
				s.Ctx, engine.HistoryParams{Namespace: fixture.Space, RunID: l.RunID, From: next,
					Bytes: engine.HistoryBytes})
			s.Must(err, "GetHistory")
			got, next = got+len(more), rest
		}
		fixture.Equal(s, "steps in the whole history", got, engine.MaxSteps)
		s.Finish(task.Lease, "done")
	}},
	{Name: "a run accepts at most MaxRunBytes", Run: func(s *fixture.F) {
		l := s.Filled(engine.MaxRunBytes / engine.MaxPayload)
		fixture.Equal(s, "bytes", s.Run(l.RunID).Bytes, engine.MaxRunBytes)
		_, err := s.TryComplete(l, "more", "x")
		s.Refused(err, engine.ErrTooLarge, "CompleteStep")
		_, err = s.TryBegin(l, "more", func(p *engine.BeginStepParams) { p.Input = fixture.Text("x") })
		s.Refused(err, engine.ErrTooLarge, "BeginStep")
		s.Complete(l, "empty", "")
		s.Must(s.TryFinish(l, ""), "CompleteRun")
	}},
}
