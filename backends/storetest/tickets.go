package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// line is writes that stand behind one another: each is handed to the store as soon as that before it has its place.
type line struct {
	s     *stage
	last  *engine.Ticket
	group sync.WaitGroup
	mu    sync.Mutex
	errs  map[string]error
}

func (s *stage) line() *line { return &line{s: s, errs: map[string]error{}} }

// then hands the next write over; what it answers is found under its name when the line is over.
func (l *line) then(name string, write func(at engine.Sequenced) error) *line {
	l.s.Helper()
	if l.last != nil {
		l.s.placed(l.last, name)
	}
	turn := engine.NewTicket(l.last)
	l.last = turn
	l.group.Go(func() {
		err := write(engine.Sequenced{Ticket: turn})
		turn.Close(err)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs[name] = err
	})
	return l
}

// placed waits until a write has its place, or its answer; name is the one behind it.
func (s *stage) placed(turn *engine.Ticket, name string) {
	s.Helper()
	select {
	case <-turn.Admitted():
		return
	default:
	}
	over, enough := soon()
	defer enough()
	select {
	case <-turn.Admitted():
	case <-over:
		s.Fatalf("what is before %q got no place within %s, nor an answer", name, patience)
	}
}

func (l *line) step(lease engine.Lease, name, output string) *line {
	return l.stepAs(name, lease, name, output)
}

// stepAs is step with a name of its own for the answer, for a step that the line names more than once.
func (l *line) stepAs(answer string, lease engine.Lease, name, output string) *line {
	p := engine.CompleteStepParams{Lease: lease, Step: named(name), ID: l.s.id(), Output: text(output), Now: l.s.now}
	return l.then(answer, func(at engine.Sequenced) error {
		p.Sequenced = at
		_, err := l.s.store.CompleteStep(l.s.ctx, p)
		return err
	})
}

func (l *line) end(lease engine.Lease, output string) *line {
	p := engine.CompleteRunParams{Lease: lease, Output: text(output), Now: l.s.now}
	return l.then("the end", func(at engine.Sequenced) error {
		p.Sequenced = at
		_, err := l.s.store.CompleteRun(l.s.ctx, p)
		return err
	})
}

// refusedBefore is a write that was refused before it came to a store.
func (l *line) refusedBefore(name string) *line {
	return l.then(name, func(engine.Sequenced) error { return engine.Invalid("step", "is not valid") })
}

// done waits for all answers.
func (l *line) done() map[string]error {
	l.group.Wait()
	return l.errs
}

// well fails the case unless each was carried out.
func (l *line) well() {
	l.s.Helper()
	for name, err := range l.done() {
		l.s.must(err, name)
	}
}

// behind fails the case unless these were refused for what is before them.
func (s *stage) behind(errs map[string]error, names ...string) {
	s.Helper()
	for _, name := range names {
		if !errors.Is(errs[name], engine.ErrPrevRefused) {
			s.Fatalf("%s behind a write that was refused: error = %v, want %v", name, errs[name], engine.ErrPrevRefused)
		}
	}
}

// inSequence fails the case unless these are the run's steps, in this order.
func (s *stage) inSequence(run engine.ID, names ...string) {
	s.Helper()
	got := ""
	for _, step := range s.attempts(run, "") {
		got += fmt.Sprintf(" %d:%s", step.Sequence, step.Name)
	}
	want := ""
	for i, name := range names {
		want += fmt.Sprintf(" %d:%s", i+1, name)
	}
	equal(s, "steps", got, want)
}

var turnCases = []testCase{
	{"a last step and the run's end may be under way together", func(s *stage) {
		l := s.held()
		s.line().step(l, "pay", "paid").end(l, "all").well()
		s.inSequence(l.RunID, "pay")
		run := s.status(l.RunID, engine.RunCompleted)
		equal(s, "steps of the run", run.Steps, 1)
		equal(s, "bytes of the run", run.Bytes, int64(len("input")+len("paid")+len("all")))
		s.payload("output", run.Output, text("all"))
	}},
	{"a hundred steps and the end keep their order", func(s *stage) {
		l := s.held()
		line, names := s.line(), []string{}
		for i := range 100 {
			names = append(names, fmt.Sprintf("step %d", i))
			line.step(l, names[i], "done")
		}
		line.end(l, "all").well()
		s.inSequence(l.RunID, names...)
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"writes of every kind stand in one line", func(s *stage) {
		l := s.held()
		begun := s.id()
		s.line().
			then("begin", func(at engine.Sequenced) error {
				_, err := s.store.BeginStep(s.ctx, engine.BeginStepParams{Sequenced: at, Lease: l, Name: "pay", Kind: engine.StepFunction, ID: begun, Now: s.now})
				return err
			}).
			then("pay", func(at engine.Sequenced) error {
				_, err := s.store.CompleteStep(s.ctx, engine.CompleteStepParams{Sequenced: at, Lease: l, Step: engine.StepRef{ID: begun}, Output: text("paid"), Now: s.now})
				return err
			}).
			step(l, "pack", "packed").
			then("note", func(at engine.Sequenced) error {
				return s.store.SetRunNote(s.ctx, engine.SetNoteParams{Sequenced: at, Lease: l, Note: "packed", Now: s.now})
			}).
			step(l, "ship", "shipped").
			then("fail", func(at engine.Sequenced) error {
				_, err := s.store.FailRun(s.ctx, engine.FailRunParams{Sequenced: at, Lease: l, Failure: boom("lost at sea"), Now: s.now})
				return err
			}).well()
		s.inSequence(l.RunID, "pay", "pack", "ship")
		equal(s, "note", s.run(l.RunID).Note, "packed")
	}},
	{"nothing happens behind a write that was refused", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		errs := s.line().step(l, "pay", "paid twice").step(l, "ship", "shipped").end(l, "all").done()
		s.refused(errs["pay"], engine.ErrConflict, "another result of a step")
		s.behind(errs, "ship", "the end")
		s.inSequence(l.RunID, "pay")
		s.status(l.RunID, engine.RunRunning)
	}},
	{"nor behind one that was refused before it came to the store", func(s *stage) {
		l := s.held()
		errs := s.line().refusedBefore("pay").step(l, "ship", "shipped").end(l, "all").done()
		s.behind(errs, "ship", "the end")
		s.inSequence(l.RunID)
		s.status(l.RunID, engine.RunRunning)
	}},
	{"nor behind one whose lease is lost, whatever lease it names itself", func(s *stage) {
		stale := s.held()
		s.lose("w1")
		l := s.claim("w1").Lease
		equal(s, "run claimed again", l.RunID, stale.RunID)
		errs := s.line().step(stale, "pay", "paid").step(l, "ship", "shipped").end(l, "all").done()
		s.lost(errs["pay"], engine.RunRunning, "CompleteStep under an old lease")
		s.behind(errs, "ship", "the end")
		s.inSequence(l.RunID)
		s.status(l.RunID, engine.RunRunning)
	}},
	{"what stands before a refused write has happened", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		errs := s.line().step(l, "pack", "packed").step(l, "pay", "paid twice").end(l, "all").done()
		s.must(errs["pack"], "the step before it")
		s.refused(errs["pay"], engine.ErrConflict, "another result of a step")
		s.behind(errs, "the end")
		s.inSequence(l.RunID, "pay", "pack")
	}},
	{"a step that a line names twice with other results breaks it there", func(s *stage) {
		l := s.held()
		errs := s.line().step(l, "pay", "paid").step(l, "pack", "packed").stepAs("again", l, "pack", "packed twice").
			step(l, "ship", "shipped").end(l, "all").done()
		s.refused(errs["again"], engine.ErrConflict, "another result of a step")
		s.behind(errs, "ship", "the end")
		s.inSequence(l.RunID, "pay", "pack")
	}},
	{"a repeated line gets its first answers", func(s *stage) {
		l := s.held()
		for range 2 {
			s.line().step(l, "pay", "paid").step(l, "ship", "shipped").end(l, "all").well()
		}
		s.inSequence(l.RunID, "pay", "ship")
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"a line that is repeated from its middle goes on", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		s.line().step(l, "pay", "paid").step(l, "ship", "shipped").end(l, "all").well()
		s.inSequence(l.RunID, "pay", "ship")
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"an end that is refused leaves the steps before it", func(s *stage) {
		const recorded = engine.MaxRunBytes/engine.MaxPayload - 1
		l := s.filled(recorded)
		errs := s.line().step(l, "pay", "paid").
			then("the end", func(at engine.Sequenced) error {
				// Too large together with what the run has recorded.
				output := engine.Payload{Data: make([]byte, engine.MaxPayload)}
				_, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Sequenced: at, Lease: l, Output: output, Now: s.now})
				return err
			}).done()
		s.must(errs["pay"], "the step before the end")
		s.refused(errs["the end"], engine.ErrTooLarge, "an end that is too large")
		equal(s, "bytes", s.run(l.RunID).Bytes, recorded*engine.MaxPayload+int64(len("paid")))
		s.status(l.RunID, engine.RunRunning)
	}},
	{"many lines at once keep their order each, and one that breaks breaks alone", func(s *stage) {
		const runs, steps, broken = 24, 8, 5
		worker := s.worker("w1")
		workers := make([]string, runs)
		for i := range workers {
			workers[i] = worker
			s.start()
		}
		tasks := s.claimWith(s.claimParams(workers...)).Tasks
		equal(s, "claimed runs", len(tasks), runs)
		lines := make([]*line, runs)
		for i := range lines {
			lines[i] = s.line()
		}
		breaks := func(i int) bool { return i%3 == 0 }
		for n := range steps {
			for i, task := range tasks {
				if n == broken && breaks(i) {
					lines[i].stepAs("again", task.Lease, "step 0", "another result")
					continue
				}
				lines[i].step(task.Lease, fmt.Sprintf("step %d", n), "done")
			}
		}
		for i, task := range tasks {
			errs := lines[i].end(task.Lease, "all").done()
			names := []string{}
			for n := range steps {
				if breaks(i) && n == broken {
					break
				}
				names = append(names, fmt.Sprintf("step %d", n))
			}
			s.inSequence(task.Run.ID, names...)
			if breaks(i) {
				s.refused(errs["again"], engine.ErrConflict, "another result of a step")
				s.behind(errs, "step 6", "step 7", "the end")
				s.status(task.Run.ID, engine.RunRunning)
				continue
			}
			s.must(errs["the end"], "the end")
			s.status(task.Run.ID, engine.RunCompleted)
		}
	}},
}
