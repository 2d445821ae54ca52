package work

import (
	"fmt"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var TicketCases = []fixture.Case{
	{Name: "a last step and the run's end may be sent together", Run: func(s *fixture.F) {
		l := s.Held()
		s.Line().Step(l, "pay", "paid").End(l, "all").Well()
		s.InSequence(l.RunID, "pay")
		run := s.Status(l.RunID, engine.RunCompleted)
		fixture.Equal(s, "steps of the run", run.Steps, 1)
		fixture.Equal(s, "bytes of the run", run.Bytes, int64(len("input")+len("paid")+len("all")))
		s.Payload("output", run.Output, fixture.Text("all"))
	}},
	{Name: "a hundred steps and an end keep their order", Run: func(s *fixture.F) {
		l := s.Held()
		line, names := s.Line(), []string{}
		for i := range 100 {
			names = append(names, fmt.Sprintf("step %d", i))
			line.Step(l, names[i], "done")
		}
		line.End(l, "all").Well()
		s.InSequence(l.RunID, names...)
		s.Status(l.RunID, engine.RunCompleted)
	}},
	{Name: "writes of every kind can form a sequence", Run: func(s *fixture.F) {
		l := s.Held()
		begun := s.ID()
		s.Line().
			Then("begin", func(at engine.Sequenced) error {
				_, err := s.Store.BeginStep(s.Ctx, engine.BeginStepParams{
					Sequenced: at, Lease: l, Name: "pay", Kind: engine.StepFunction, ID: begun, Now: s.Now})
				return err
			}).
			Then("pay", func(at engine.Sequenced) error {
				_, err := s.Store.CompleteStep(s.Ctx,
					engine.CompleteStepParams{Sequenced: at, Lease: l, Step: engine.StepRef{ID: begun},
						Output: fixture.Text("paid"), Now: s.Now})
				return err
			}).
			Step(l, "pack", "packed").
			Then("note", func(at engine.Sequenced) error {
				return s.Store.SetRunNote(s.Ctx, engine.SetNoteParams{
					Sequenced: at, Lease: l, Note: "packed", Now: s.Now})
			}).
			Step(l, "ship", "shipped").
			Then("fail", func(at engine.Sequenced) error {
				_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{
					Sequenced: at, Lease: l, Failure: fixture.Boom("lost at sea"), Now: s.Now})
				return err
			}).Well()
		s.InSequence(l.RunID, "pay", "pack", "ship")
		fixture.Equal(s, "note", s.Run(l.RunID).Note, "packed")
	}},
	{Name: "nothing after a refused write is carried out", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		errs := s.Line().Step(l, "pay", "paid twice").Step(l, "ship", "shipped").End(l, "all").Done()
		s.Refused(errs["pay"], engine.ErrConflict, "another result of a step")
		s.Behind(errs, "ship", "the end")
		s.InSequence(l.RunID, "pay")
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "nothing after a write refused outside the store is done", Run: func(s *fixture.F) {
		l := s.Held()
		errs := s.Line().RefusedBefore("pay").Step(l, "ship", "shipped").End(l, "all").Done()
		s.Behind(errs, "ship", "the end")
		s.InSequence(l.RunID)
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "nothing after a write with a lost lease is carried out", Run: func(s *fixture.F) {
		stale := s.Held()
		s.Lose("w1")
		l := s.Claim("w1").Lease
		fixture.Equal(s, "run claimed again", l.RunID, stale.RunID)
		errs := s.Line().Step(stale, "pay", "paid").Step(l, "ship", "shipped").End(l, "all").Done()
		s.Lost(errs["pay"], engine.RunRunning, "CompleteStep under an old lease")
		s.Behind(errs, "ship", "the end")
		s.InSequence(l.RunID)
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "writes before a refused one are carried out", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		errs := s.Line().Step(l, "pack", "packed").Step(l, "pay", "paid twice").End(l, "all").Done()
		s.Must(errs["pack"], "the step before it")
		s.Refused(errs["pay"], engine.ErrConflict, "another result of a step")
		s.Behind(errs, "the end")
		s.InSequence(l.RunID, "pay", "pack")
	}},
	{Name: "a second result for a step breaks the sequence", Run: func(s *fixture.F) {
		l := s.Held()
		errs := s.Line().Step(l, "pay", "paid").Step(l, "pack", "packed").StepAs("again", l, "pack", "packed twice").
			Step(l, "ship", "shipped").End(l, "all").Done()
		s.Refused(errs["again"], engine.ErrConflict, "another result of a step")
		s.Behind(errs, "ship", "the end")
		s.InSequence(l.RunID, "pay", "pack")
	}},
	{Name: "a repeated sequence gets its first answers", Run: func(s *fixture.F) {
		l := s.Held()
		for range 2 {
			s.Line().Step(l, "pay", "paid").Step(l, "ship", "shipped").End(l, "all").Well()
		}
		s.InSequence(l.RunID, "pay", "ship")
		s.Status(l.RunID, engine.RunCompleted)
	}},
	{Name: "a sequence repeated from its middle continues", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		s.Line().Step(l, "pay", "paid").Step(l, "ship", "shipped").End(l, "all").Well()
		s.InSequence(l.RunID, "pay", "ship")
		s.Status(l.RunID, engine.RunCompleted)
	}},
	{Name: "a refused end keeps the steps before it", Run: func(s *fixture.F) {
		const recorded = engine.MaxRunBytes/engine.MaxPayload - 1
		l := s.Filled(recorded)
		errs := s.Line().Step(l, "pay", "paid").
			Then("the end", func(at engine.Sequenced) error {
				// Too large together with what the run has recorded.
				output := engine.Payload{Data: make([]byte, engine.MaxPayload)}
				_, err := s.Store.CompleteRun(s.Ctx, engine.CompleteRunParams{
					Sequenced: at, Lease: l, Output: output, Now: s.Now})
				return err
			}).Done()
		s.Must(errs["pay"], "the step before the end")
		s.Refused(errs["the end"], engine.ErrTooLarge, "an end that is too large")
		fixture.Equal(s, "bytes", s.Run(l.RunID).Bytes, recorded*engine.MaxPayload+int64(len("paid")))
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "concurrent sequences keep their own order", Run: func(s *fixture.F) {
		const runs, steps, broken = 24, 8, 5
		worker := s.Worker("w1")
		workers := make([]string, runs)
		for i := range workers {
			workers[i] = worker
			s.Start()
		}
		tasks := s.ClaimWith(s.ClaimParams(workers...)).Tasks
		fixture.Equal(s, "claimed runs", len(tasks), runs)
		lines := make([]*fixture.Line, runs)
		for i := range lines {
			lines[i] = s.Line()
		}
		breaks := func(i int) bool { return i%3 == 0 }
		for n := range steps {
			for i, task := range tasks {
				if n == broken && breaks(i) {
					lines[i].StepAs("again", task.Lease, "step 0", "another result")
					continue
				}
				lines[i].Step(task.Lease, fmt.Sprintf("step %d", n), "done")
			}
		}
		for i, task := range tasks {
			errs := lines[i].End(task.Lease, "all").Done()
			names := []string{}
			for n := range steps {
				if breaks(i) && n == broken {
					break
				}
				names = append(names, fmt.Sprintf("step %d", n))
			}
			s.InSequence(task.Run.ID, names...)
			if breaks(i) {
				s.Refused(errs["again"], engine.ErrConflict, "another result of a step")
				s.Behind(errs, "step 6", "step 7", "the end")
				s.Status(task.Run.ID, engine.RunRunning)
				continue
			}
			s.Must(errs["the end"], "the end")
			s.Status(task.Run.ID, engine.RunCompleted)
		}
	}},
}
