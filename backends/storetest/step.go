package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var stepCases = []testCase{
	{"a result that was never announced is a completed first attempt", func(s *stage) {
		l := s.held()
		began := s.now.Add(-time.Second)
		p := engine.CompleteStepParams{Lease: l, Step: named("pay"), ID: s.id(), Output: text("paid"), StartedAt: began, Now: s.now}
		step, err := s.store.CompleteStep(s.ctx, p)
		s.must(err, "CompleteStep")
		want := engine.Step{
			ID: p.ID, RunID: l.RunID, Name: "pay", Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
			Sequence: 1, Output: text("paid"), Token: l.Token, WorkerID: "w1", CreatedAt: step.CreatedAt, StartedAt: began, FinishedAt: s.now,
		}
		s.sameStep(step, want)
		s.sameStep(s.step(l.RunID, "pay"), want)
		s.sameTime("started at, when nobody says", s.complete(l, "ship", "x").StartedAt, s.now)
		run := s.status(l.RunID, engine.RunRunning)
		equal(s, "steps", run.Steps, 2)
		equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")+len("x")))
	}},
	{"a repeated result is quiet and gets the first answer", func(s *stage) {
		l := s.held()
		first := s.complete(l, "pay", "paid")
		s.pass(time.Second)
		s.sameStep(s.complete(l, "pay", "paid"), first)
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
		run := s.run(l.RunID)
		equal(s, "steps", run.Steps, 1)
		equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")))
	}},
	{"another result for a recorded step is a conflict and changes nothing", func(s *stage) {
		l := s.held()
		first := s.complete(l, "pay", "paid")
		_, err := s.tryComplete(l, "pay", "paid twice")
		s.refused(err, engine.ErrConflict, "CompleteStep")
		_, err = s.tryFail(l, "pay", "no")
		s.refused(err, engine.ErrConflict, "FailStep")
		s.refused(s.trySleep(l, "pay", time.Second), engine.ErrConflict, "Sleep")
		s.sameStep(s.step(l.RunID, "pay"), first)
		s.status(l.RunID, engine.RunRunning)
	}},
	{"a result recorded under an earlier lease is never replaced", func(s *stage) {
		l := s.held()
		first := s.complete(l, "pay", "paid")
		s.fail(l, "ship", "no", forGood)
		s.release(l, false)
		l = s.claim("w1").Lease
		for _, output := range []string{"paid", "other"} {
			_, err := s.tryComplete(l, "pay", output)
			s.refused(err, engine.ErrConflict, "CompleteStep of a completed step")
			_, err = s.tryComplete(l, "ship", output)
			s.refused(err, engine.ErrConflict, "CompleteStep of a failed step")
		}
		s.sameStep(s.step(l.RunID, "pay"), first)
		equal(s, "status of ship", s.step(l.RunID, "ship").Status, engine.StepFailed)
	}},
	{"a begun step is a RUNNING attempt that its result completes", func(s *stage) {
		l := s.held()
		policy := engine.RetryPolicy{MaximumAttempts: 9}
		began := s.now.Add(-time.Millisecond)
		id := s.id()
		begun, err := s.tryBegin(l, "pay", stepPolicy(policy), func(p *engine.BeginStepParams) {
			p.ID, p.StartedAt, p.Input = id, began, text("in")
		})
		s.must(err, "BeginStep")
		equal(s, "execute", begun.Execute, true)
		want := engine.Step{
			ID: id, RunID: l.RunID, Name: "pay", Kind: engine.StepFunction, Status: engine.StepRunning, Attempt: 1, Latest: true, Sequence: 1,
			Input: text("in"), Token: l.Token, WorkerID: "w1", CreatedAt: s.now, StartedAt: began,
			TimeoutAt: s.now.Add(engine.DefaultStepTimeout), RetryPolicy: &policy,
		}
		s.sameStep(begun.Step, want)
		s.sameStep(s.step(l.RunID, "pay"), want)

		s.pass(time.Second)
		done := s.complete(l, "pay", "paid")
		want.Status, want.Output, want.FinishedAt, want.TimeoutAt = engine.StepCompleted, text("paid"), s.now, time.Time{}
		s.sameStep(done, want)
		s.sameStep(s.step(l.RunID, "pay"), want)
		equal(s, "bytes", s.run(l.RunID).Bytes, int64(len("input")+len("in")+len("paid")))
		equal(s, "steps", s.run(l.RunID).Steps, 1)
	}},
	{"a step may be named by the id that BeginStep gave", func(s *stage) {
		l := s.held()
		begun := s.begin(l, "pay")
		p := engine.CompleteStepParams{Lease: l, Step: engine.StepRef{ID: begun.ID}, ID: s.id(), Output: text("paid"), Now: s.now}
		step, err := s.store.CompleteStep(s.ctx, p)
		s.must(err, "CompleteStep by id")
		equal(s, "attempt completed", step.ID, begun.ID)
		_, err = s.store.CompleteStep(s.ctx, p)
		s.must(err, "CompleteStep by id, repeated")

		p.Step, p.ID = engine.StepRef{ID: s.id(), Name: "ship"}, s.id()
		step, err = s.store.CompleteStep(s.ctx, p)
		s.must(err, "CompleteStep with an unknown id and a name")
		equal(s, "name", step.Name, "ship")
	}},
	{"an id of no step of the run is not found", func(s *stage) {
		l := s.held()
		other := s.begin(s.heldNext(), "theirs")
		mine := s.begin(l, "mine")
		for _, id := range []engine.ID{s.id(), other.ID} {
			ref := engine.StepRef{ID: id}
			_, err := s.store.CompleteStep(s.ctx, engine.CompleteStepParams{Lease: l, Step: ref, ID: s.id(), Output: text("x"), Now: s.now})
			s.refused(err, engine.ErrNotFound, "CompleteStep")
			_, err = s.store.FailStep(s.ctx, engine.FailStepParams{Lease: l, Step: ref, ID: s.id(), Failure: boom("no"), Now: s.now})
			s.refused(err, engine.ErrNotFound, "FailStep")
			err = s.store.Sleep(s.ctx, engine.SleepParams{Lease: l, Step: ref, ID: s.id(), Duration: time.Second, Now: s.now})
			s.refused(err, engine.ErrNotFound, "Sleep")
		}
		equal(s, "steps", s.run(l.RunID).Steps, 1)
		s.sameStep(s.step(l.RunID, "mine"), mine)
	}},
	{"a completed step need not be executed again", func(s *stage) {
		l := s.held()
		done := s.complete(l, "pay", "paid")
		for range 2 {
			begun, err := s.tryBegin(l, "pay")
			s.must(err, "BeginStep")
			equal(s, "execute", begun.Execute, false)
			s.sameStep(begun.Step, done)
			s.release(l, false)
			l = s.claim("w1").Lease
		}
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
		begun, err := s.tryBegin(l, "ship")
		s.must(err, "BeginStep of another step")
		equal(s, "execute", begun.Execute, true)
	}},
	{"a step that failed for good is answered with its error", func(s *stage) {
		l := s.held()
		s.fail(l, "pay", "broke", forGood)
		s.release(l, false)
		begun, err := s.tryBegin(s.claim("w1").Lease, "pay")
		s.must(err, "BeginStep")
		equal(s, "execute", begun.Execute, false)
		want := boom("broke")
		want.NonRetryable = true
		s.failure("error", begun.Step.Error, want)
	}},
	{"beginning a step again under one lease gives the same attempt", func(s *stage) {
		l := s.held()
		first := s.begin(l, "pay")
		s.pass(time.Second)
		s.sameStep(s.begin(l, "pay"), first)
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
		equal(s, "steps", s.run(l.RunID).Steps, 1)
	}},
	{"an interrupted step is run again and costs nothing", func(s *stage) {
		l := s.held()
		first := s.begin(l, "pay")
		s.pass(time.Second)
		s.release(l, false)
		cut := s.step(l.RunID, "pay")
		equal(s, "attempt", cut.ID, first.ID)
		equal(s, "status", cut.Status, engine.StepFailed)
		equal(s, "interrupted", cut.Interrupted(), true)
		s.failure("error", cut.Error, engine.InterruptedFailure())
		equal(s, "failures", cut.Failures, 0)
		s.sameTime("finished at", cut.FinishedAt, s.now)
		s.sameTime("timeout at", cut.TimeoutAt, time.Time{})

		l = s.claim("w1").Lease
		second := s.begin(l, "pay")
		equal(s, "attempt number", second.Attempt, 2)
		equal(s, "failures", second.Failures, 0)
		equal(s, "sequence", second.Sequence, first.Sequence)
		if second.ID == first.ID {
			s.Fatalf("the second attempt has the first one's id")
		}
		s.complete(l, "pay", "paid")
		all := s.attempts(l.RunID, "pay")
		equal(s, "attempts", len(all), 2)
		equal(s, "first is the latest", all[0].Latest, false)
		equal(s, "second is the latest", all[1].Latest, true)
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 1)
		equal(s, "steps of the run", s.run(l.RunID).Steps, 1)
	}},
	{"an interrupted step can be completed without being begun", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.release(l, false)
		step := s.complete(s.claim("w1").Lease, "pay", "paid")
		equal(s, "attempt number", step.Attempt, 2)
		equal(s, "sequence", step.Sequence, 1)
		all := s.attempts(l.RunID, "pay")
		equal(s, "attempts", len(all), 2)
		equal(s, "first is the latest", all[0].Latest, false)
		equal(s, "first keeps its place", all[0].Status, engine.StepFailed)
	}},
	{"steps stand in the order in which they began", func(s *stage) {
		l := s.held()
		s.begin(l, "slow")
		s.complete(l, "fast", "1")
		s.sleep(l, "nap", time.Hour, held)
		s.fail(l, "bad", "no", holding, forGood)
		s.complete(l, "slow", "2")
		for i, step := range s.attempts(l.RunID, "") {
			equal(s, "sequence of "+step.Name, step.Sequence, int64(i+1))
			equal(s, "name", step.Name, []string{"slow", "fast", "nap", "bad"}[i])
		}
		equal(s, "steps", s.run(l.RunID).Steps, 4)
	}},
	{"steps of one name in two runs are two steps", func(s *stage) {
		a, b := s.held(), s.heldNext()
		s.complete(a, "pay", "1")
		s.complete(b, "pay", "2")
		s.payload("output of the first", s.step(a.RunID, "pay").Output, text("1"))
		s.payload("output of the second", s.step(b.RunID, "pay").Output, text("2"))
	}},
	{"a step of another kind under one name is a conflict", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		_, err := s.tryBegin(l, "pay", asSleep)
		s.refused(err, engine.ErrConflict, "BeginStep of a function as a sleep")
		s.begin(l, "nap", asSleep)
		_, err = s.tryBegin(l, "nap")
		s.refused(err, engine.ErrConflict, "BeginStep of a sleep as a function")
	}},
	{"a timer cannot be completed", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Hour, held)
		s.release(l, false)
		_, err := s.tryComplete(s.claim("w1").Lease, "nap", "x")
		s.refused(err, engine.ErrPrecondition, "CompleteStep of a timer")
		equal(s, "status", s.step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{"an attempt times out by its own limit, else the run's, else the default", func(s *stage) {
		l := s.held(withTimeouts(engine.Timeouts{StartToClose: time.Minute}))
		s.sameTime("its own", s.begin(l, "a", startToClose(time.Second)).TimeoutAt, s.now.Add(time.Second))
		s.sameTime("the run's", s.begin(l, "b").TimeoutAt, s.now.Add(time.Minute))
		s.sameTime("the default", s.begin(s.heldNext(), "c").TimeoutAt, s.now.Add(engine.DefaultStepTimeout))
		s.sameTime("a timer has none", s.begin(l, "d", asSleep).TimeoutAt, time.Time{})
	}},
	{"a worker's clock that is slow takes nothing off a step's time", func(s *stage) {
		l := s.held()
		slow := func(p *engine.BeginStepParams) { p.StartedAt = s.now.Add(-time.Hour) }
		step := s.begin(l, "pay", startToClose(time.Minute), slow)
		s.sameTime("started at", step.StartedAt, s.now.Add(-time.Hour))
		s.sameTime("timeout at", step.TimeoutAt, s.now.Add(time.Minute))
	}},
	{"one step is found by its attempt's id", func(s *stage) {
		l := s.held()
		done := s.complete(l, "pay", "paid")
		got, err := s.store.GetStep(s.ctx, space, done.ID)
		s.must(err, "GetStep")
		s.sameStep(got, done)
		_, err = s.store.GetStep(s.ctx, space, s.id())
		s.refused(err, engine.ErrNotFound, "GetStep of an unknown id")
		_, err = s.store.GetStep(s.ctx, "other", done.ID)
		s.refused(err, engine.ErrNotFound, "GetStep in another namespace")
	}},
	{"an acknowledged result is there for whoever asks next", func(s *stage) {
		l := s.held()
		for i := range 30 {
			name := fmt.Sprintf("step-%02d", i)
			step := s.complete(l, name, "x")
			got, err := s.store.GetStep(s.ctx, space, step.ID)
			s.must(err, "GetStep right after CompleteStep")
			s.sameStep(got, step)
		}
	}},
	{"a run has room for MaxSteps steps and no more", func(s *stage) {
		l := s.held()
		s.begin(l, "begun")
		s.completeMany(l, engine.MaxSteps-1)
		equal(s, "steps", s.run(l.RunID).Steps, engine.MaxSteps)
		_, err := s.tryBegin(l, "more")
		s.refused(err, engine.ErrTooLarge, "BeginStep")
		_, err = s.tryComplete(l, "more", "x")
		s.refused(err, engine.ErrTooLarge, "CompleteStep")
		_, err = s.tryFail(l, "more", "no")
		s.refused(err, engine.ErrTooLarge, "FailStep")
		s.refused(s.trySleep(l, "more", time.Second), engine.ErrTooLarge, "Sleep")
		s.complete(l, "begun", "fits") // it has its place
		s.release(l, false)

		task := s.claim("w1")
		equal(s, "steps of the next task", task.Run.Steps, engine.MaxSteps)
		got := len(task.History)
		for next := task.NextSequence; next != 0; {
			more, rest, err := s.store.GetHistory(s.ctx, engine.HistoryParams{Namespace: space, RunID: l.RunID, From: next, Bytes: engine.HistoryBytes})
			s.must(err, "GetHistory")
			got, next = got+len(more), rest
		}
		equal(s, "steps in the whole history", got, engine.MaxSteps)
		s.finish(task.Lease, "done")
	}},
	{"a run has room for MaxRunBytes and not one byte more", func(s *stage) {
		l := s.filled(engine.MaxRunBytes / engine.MaxPayload)
		equal(s, "bytes", s.run(l.RunID).Bytes, engine.MaxRunBytes)
		_, err := s.tryComplete(l, "more", "x")
		s.refused(err, engine.ErrTooLarge, "CompleteStep")
		_, err = s.tryBegin(l, "more", func(p *engine.BeginStepParams) { p.Input = text("x") })
		s.refused(err, engine.ErrTooLarge, "BeginStep")
		s.complete(l, "empty", "")
		s.must(s.tryFinish(l, ""), "CompleteRun")
	}},
}

// filled is the lease of a run that has recorded n payloads of the greatest size, its input among them.
func (s *stage) filled(n int) engine.Lease {
	s.Helper()
	big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
	l := s.held(func(r *engine.StartRun) { r.Input = big })
	for i := 1; i < n; i++ {
		_, err := s.store.CompleteStep(s.ctx, engine.CompleteStepParams{
			Lease: l, Step: named(fmt.Sprintf("step-%d", i)), ID: s.id(), Output: big, Now: s.now,
		})
		s.must(err, "CompleteStep within the limit")
	}
	return l
}

// completeMany records n steps of one run, from many callers at once so that a backend can gather them.
func (s *stage) completeMany(l engine.Lease, n int) {
	s.Helper()
	const callers = 100
	work := make(chan engine.CompleteStepParams)
	errs := make(chan error, callers)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			var failed error
			for p := range work {
				if _, err := s.store.CompleteStep(s.ctx, p); err != nil {
					failed = err
				}
			}
			errs <- failed
		})
	}
	for i := range n {
		work <- engine.CompleteStepParams{
			Lease: l, Step: named(fmt.Sprintf("step-%05d", i)), ID: s.id(), Output: text("x"), Now: s.now,
		}
	}
	close(work)
	group.Wait()
	for range callers {
		s.must(<-errs, "CompleteStep among many")
	}
}
