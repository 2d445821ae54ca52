package race

import (
	"fmt"
	"sync"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// RaceCases are the races of starts, claims, steps and ends.
var RaceCases = []fixture.Case{
	{Name: "of many tokens exactly one finishes the run", Run: func(s *fixture.F) {
		for range fixture.Rounds(1) {
			l := s.HeldAgain()
			tokens := []engine.Lease{l}
			for range fixture.Racers - 1 {
				tokens = append(tokens, engine.Lease{Namespace: fixture.Space, RunID: l.RunID, Token: s.Token()})
			}
			errs := fixture.AtOnce(fixture.Racers, func(i int) error { return s.TryFinish(tokens[i], fmt.Sprint(i)) })
			s.Must(errs[0], "CompleteRun of the holder")
			for _, err := range errs[1:] {
				s.Refused(err, engine.ErrLeaseLost, "CompleteRun of another token")
			}
			s.Payload("output", s.Status(l.RunID, engine.RunCompleted).Output, fixture.Text("0"))
		}
	}},
	{Name: "of many different ends under one token exactly one counts", Run: func(s *fixture.F) {
		for range fixture.Rounds(10) {
			l := s.HeldAgain()
			errs := fixture.AtOnce(fixture.Racers, func(i int) error { return s.TryFinish(l, fmt.Sprint(i)) })
			winner := s.OnlyWinner(errs, engine.ErrConflict)
			s.Payload("output", s.Status(l.RunID, engine.RunCompleted).Output, fixture.Text(fmt.Sprint(winner)))
		}
	}},
	{Name: "many repetitions of one end all count as that one", Run: func(s *fixture.F) {
		for range fixture.Rounds(1) {
			l := s.HeldAgain()
			for _, err := range fixture.AtOnce(fixture.Racers, func(int) error { return s.TryFinish(l, "done") }) {
				s.Must(err, "CompleteRun")
			}
		}
	}},
	{Name: "of many different results of one step exactly one counts", Run: func(s *fixture.F) {
		const steps = 10
		for range fixture.RoundsOf(steps, 1) {
			l := s.HeldAgain()
			for n := range steps {
				name := fmt.Sprint("step-", n)
				params := make([]engine.CompleteStepParams, fixture.Racers)
				for i := range params {
					params[i] = engine.CompleteStepParams{
						Lease: l, Step: fixture.Named(name), ID: s.ID(), Output: fixture.Text(fmt.Sprint(i)),
						Now: s.Now}
				}
				errs := fixture.AtOnce(fixture.Racers, func(i int) error {
					_, err := s.Store.CompleteStep(s.Ctx, params[i])
					return err
				})
				winner := s.OnlyWinner(errs, engine.ErrConflict)
				s.Payload("output", s.Step(l.RunID, name).Output, fixture.Text(fmt.Sprint(winner)))
				fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, name)), 1)
			}
			fixture.Equal(s, "steps", s.Run(l.RunID).Steps, steps)
			s.Cancel(l.RunID)
		}
	}},
	{Name: "a step begun many times at once is one attempt", Run: func(s *fixture.F) {
		for range fixture.Rounds(1) {
			l := s.HeldAgain()
			params := make([]engine.BeginStepParams, fixture.Racers)
			for i := range params {
				params[i] = engine.BeginStepParams{Lease: l, ID: s.ID(), Name: "pay", Kind: engine.StepFunction,
					Now: s.Now}
			}
			attempts := make([]engine.ID, fixture.Racers)
			errs := fixture.AtOnce(fixture.Racers, func(i int) error {
				begun, err := s.Store.BeginStep(s.Ctx, params[i])
				attempts[i] = begun.Step.ID
				return err
			})
			for i, err := range errs {
				s.Must(err, "BeginStep")
				fixture.Equal(s, "attempt", attempts[i], attempts[0])
			}
			fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
			s.Cancel(l.RunID)
		}
	}},
	{Name: "parallel steps of one run all count", Run: func(s *fixture.F) {
		l := s.Held()
		s.CompleteMany(l, 200)
		run := s.Run(l.RunID)
		fixture.Equal(s, "steps", run.Steps, 200)
		fixture.Equal(s, "bytes", run.Bytes, int64(len("input")+200))
		seen := map[int64]bool{}
		for _, step := range s.Attempts(l.RunID, "") {
			seen[step.Sequence] = true
		}
		fixture.Equal(s, "places in the sequence", len(seen), 200)
	}},
	{Name: "cancel against complete: one wins and both learn which", Run: func(s *fixture.F) {
		for range fixture.Rounds(30) {
			l := s.HeldAgain()
			p := s.EndParams(l.RunID, "")
			errs := fixture.AtOnce(2, func(i int) error {
				if i == 0 {
					return s.TryFinish(l, "done")
				}
				_, err := s.Store.CancelRun(s.Ctx, p)
				return err
			})
			switch status := s.Run(l.RunID).Status; status {
			case engine.RunCompleted:
				s.Must(errs[0], "CompleteRun, which won")
				s.Refused(errs[1], engine.ErrPrecondition, "CancelRun, which lost")
				s.Explained(errs[1], engine.RunCompleted, "CancelRun")
			case engine.RunCancelled:
				s.Must(errs[1], "CancelRun, which won")
				s.Lost(errs[0], engine.RunCancelled, "CompleteRun, which lost")
			default:
				s.Fatalf("the run is %s", status)
			}
		}
	}},
	{Name: "cancel against terminate: exactly one changes the run", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			p := s.EndParams(s.Start(), "")
			ends := make([]engine.RunEnd, 4)
			errs := fixture.AtOnce(4, func(i int) (err error) {
				ends[i], err = fixture.EndVerbs[i%2].Call(s.Store, s.Ctx, p)
				return err
			})
			status, changed := s.Run(p.RunID).Status, 0
			for i, err := range errs {
				if fixture.EndVerbs[i%2].Status == status {
					s.Must(err, fixture.EndVerbs[i%2].Name)
				} else {
					s.Refused(err, engine.ErrPrecondition, fixture.EndVerbs[i%2].Name)
				}
				if ends[i].Changed {
					changed++
				}
			}
			fixture.Equal(s, "calls that changed the run", changed, 1)
		}
	}},
	{Name: "many claimers hand out each run once", Run: func(s *fixture.F) {
		const runs, claimers = 200, 10
		s.Worker("w1")
		batch := make([]engine.StartRun, runs)
		for i := range batch {
			batch[i] = s.NewRun(fixture.OfType([]string{fixture.Kind, "a", "b"}[i%3]))
		}
		s.StartAll(batch...)
		params := make([][]engine.ClaimParams, claimers)
		for i := range params {
			for range runs {
				p := s.ClaimParams("w1", "w1", "w1")
				p.Types = []string{fixture.Kind, "a", "b"}
				params[i] = append(params[i], p)
			}
		}
		var mu sync.Mutex
		times := map[engine.ID]int{}
		errs := fixture.AtOnce(claimers, func(i int) error {
			for _, p := range params[i] {
				claimed, err := s.Store.Claim(s.Ctx, p)
				if err != nil || len(claimed.Tasks) == 0 {
					return err
				}
				mu.Lock()
				for _, task := range claimed.Tasks {
					times[task.Run.ID]++
				}
				mu.Unlock()
			}
			return nil
		})
		for _, err := range errs {
			s.Must(err, "Claim")
		}
		fixture.Equal(s, "runs handed out", len(times), runs)
		for id, n := range times {
			fixture.Equal(s, "times that "+id.String()+" was handed out", n, 1)
		}
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), runs)
	}},
	{Name: "starts with one request at once make one run", Run: func(s *fixture.F) {
		for n := range fixture.Rounds(3) {
			s.RacingStarts(func() engine.StartRun { return s.NewRun(fixture.WithRequest(fmt.Sprint("req-", n))) })
		}
	}},
	{Name: "starts with one external id at once make one run", Run: func(s *fixture.F) {
		for n := range fixture.Rounds(3) {
			s.RacingStarts(func() engine.StartRun { return s.NewRun(fixture.WithExternal(fmt.Sprint("ext-", n))) })
		}
	}},
	{Name: "batches with the same external ids make one run each", Run: func(s *fixture.F) {
		batches := make([][]engine.StartRun, 8)
		for i := range batches {
			for k := range 20 {
				n := k
				if i%2 == 1 {
					n = 19 - k
				}
				batches[i] = append(batches[i], s.NewRun(
					fixture.WithExternal(fmt.Sprint("ext-", n)), fixture.WithRequest(fmt.Sprint("req-", i, "-", n))))
			}
		}
		for _, err := range fixture.AtOnce(len(batches), func(i int) error {
			_, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: batches[i]})
			return err
		}) {
			s.Must(err, "StartRuns")
		}
		fixture.Equal(s, "runs", s.CountRuns(), 20)
	}},
	{Name: "an external id that becomes free during a start is no error", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			p := s.EndParams(s.Start(fixture.WithExternal("ext")), "")
			start := s.NewRun(fixture.WithExternal("ext"))
			var answers []engine.Started
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.CancelRun(s.Ctx, p)
					return err
				}
				answers, err = s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{start}})
				return err
			})
			s.Must(errs[0], "CancelRun")
			s.Must(errs[1], "StartRuns")
			s.Must(answers[0].Err, "start")
			if !answers[0].Existed {
				s.Cancel(start.ID)
			}
		}
	}},
	{Name: "a request has one answer while its external id's run ends",
		Run: func(s *fixture.F) {
			for n := range fixture.Rounds(20) {
				holder := s.Start(fixture.WithExternal("ext"))
				p := s.EndParams(holder, "")
				start := func() engine.StartRun {
					return s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest(fmt.Sprint("req-", n)))
				}
				starts := []engine.StartRun{start(), start()}
				answers := make([]engine.Started, len(starts))
				for _, err := range fixture.AtOnce(len(starts)+1, func(i int) error {
					if i == len(starts) {
						_, err := s.Store.CancelRun(s.Ctx, p)
						return err
					}
					got, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: starts[i : i+1]})
					if err == nil {
						answers[i], err = got[0], got[0].Err
					}
					return err
				}) {
					s.Must(err, "StartRuns or CancelRun")
				}
				fixture.Equal(s, "run of the second answer", answers[1].RunID, answers[0].RunID)
				fixture.Equal(s, "run of the answer again", s.Started(starts[0]).RunID, answers[0].RunID)
				if answers[0].RunID != holder {
					s.Cancel(answers[0].RunID)
				}
			}
		}},
}
