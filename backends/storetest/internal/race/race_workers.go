package race

import (
	"errors"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// RaceWorkerCases are the races of heartbeats, lost workers, releases and pruning.
var RaceWorkerCases = []fixture.Case{
	{Name: "a heartbeat racing OfflineLost keeps its worker or is told", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			l := s.HeldAgain()
			heard := s.Now
			s.Pass(time.Minute)
			now := s.Now
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.Heartbeat(s.Ctx, engine.HeartbeatParams{
						WorkerID: "w1", Held: []engine.Lease{l}, Now: now})
					return err
				}
				_, err = s.Store.ForceOfflineWorker(s.Ctx,
					engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard, Now: now})
				return err
			})
			s.Must(errs[1], "ForceOfflineWorker")
			if s.WorkerState("w1").Status == engine.WorkerOnline {
				s.Must(errs[0], "Heartbeat of a worker that stayed")
				s.Status(l.RunID, engine.RunRunning)
			} else {
				s.Refused(errs[0], engine.ErrNotFound, "Heartbeat of a worker that was lost")
				s.Status(l.RunID, engine.RunPending)
			}
			s.Cancel(l.RunID)
		}
	}},
	{Name: "concurrent heartbeats of many workers act as if alone", Run: func(s *fixture.F) {
		for range fixture.Rounds(3) {
			s.BeatAtOnce(s.BeatKinds())
		}
	}},
	{Name: "heartbeats of one worker at once all count", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		now := s.Now
		for _, err := range fixture.AtOnce(3*fixture.Racers, func(i int) error {
			p := engine.HeartbeatParams{WorkerID: "w1", Active: 7, Completed: 1 + i%3, Failed: 1,
				Now: now.Add(time.Duration(i) * time.Second)}
			if i%3 == 0 {
				p.WorkerID = "w2"
			}
			_, err := s.Store.Heartbeat(s.Ctx, p)
			return err
		}) {
			s.Must(err, "Heartbeat")
		}
		for worker, want := range map[string]int64{"w1": (2 + 3) * fixture.Racers, "w2": fixture.Racers} {
			w := s.WorkerState(worker)
			fixture.Equal(s, "active of "+worker, w.Active, 7)
			fixture.Equal(s, "completed of "+worker, w.Completed, want)
		}
		fixture.Equal(s, "failed of w1", s.WorkerState("w1").Failed, 2*fixture.Racers)
	}},
	{Name: "heartbeats racing ends of leases report each loss",
		Run: func(s *fixture.F) {
			for range fixture.RoundsOf(fixture.Racers, 10) {
				leases := make([]engine.Lease, fixture.Racers)
				ends := make([]engine.EndRunParams, fixture.Racers)
				for i := range leases {
					worker := fmt.Sprint("w", i)
					s.Worker(worker)
					run := s.Start()
					leases[i], ends[i] = s.Claim(worker).Lease, s.EndParams(run, "")
				}
				beat := func(i int) (engine.Beat, error) {
					return s.Store.Heartbeat(s.Ctx, engine.HeartbeatParams{
						WorkerID: fmt.Sprint("w", i), Held: leases[i : i+1], Whole: true, Now: s.Now})
				}
				beats := make([]engine.Beat, fixture.Racers)
				over := make([]bool, fixture.Racers) // before its heartbeat
				for _, err := range fixture.AtOnce(2*fixture.Racers, func(n int) (err error) {
					i := n / 2
					switch {
					case n%2 == 0 && i%4 == 1: // the end first
						if _, err = s.Store.CancelRun(s.Ctx, ends[i]); err == nil {
							over[i] = true
							beats[i], err = beat(i)
						}
					case n%2 == 0:
						beats[i], err = beat(i)
					case i%2 == 0:
						_, err = s.Store.CancelRun(s.Ctx, ends[i])
					}
					return err
				}) {
					s.Must(err, "Heartbeat or CancelRun")
				}
				for i := range leases {
					status := s.Run(leases[i].RunID).Status
					told := len(beats[i].Lost) > 0
					if told && status == engine.RunRunning || over[i] && !told {
						s.Fatalf("the run is %s, over before the heartbeat: %t, and its worker was told so: %t", status,
							over[i], told)
					}
					later, err := beat(i)
					s.Must(err, "Heartbeat")
					fixture.Equal(s, "told by the next heartbeat", len(later.Lost) > 0, status != engine.RunRunning)
					s.CancelAnyway(leases[i].RunID)
				}
			}
		}},
	{Name: "a claim racing its worker's end leaves no orphaned run", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			s.Worker("w1")
			id := s.Start()
			p := s.ClaimParams("w1")
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.Claim(s.Ctx, p)
					return err
				}
				_, err = s.Store.ForceOfflineWorker(s.Ctx,
					engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineForced, Now: p.Now})
				return err
			})
			s.Must(errs[0], "Claim")
			s.Must(errs[1], "ForceOfflineWorker")
			s.Status(id, engine.RunPending)
			fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
			s.Cancel(id)
		}
	}},
	{Name: "a result racing the loss of its worker counts wholly or not", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			l := s.HeldAgain()
			now := s.Now
			params := engine.CompleteStepParams{Lease: l, Step: fixture.Named("pay"), ID: s.ID(),
				Output: fixture.Text("paid"), Now: now}
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.CompleteStep(s.Ctx, params)
					return err
				}
				_, err = s.Store.ForceOfflineWorker(s.Ctx,
					engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: now, Now: now})
				return err
			})
			s.Must(errs[1], "ForceOfflineWorker")
			run := s.Status(l.RunID, engine.RunPending)
			if errs[0] == nil {
				s.Payload("output", s.Step(l.RunID, "pay").Output, fixture.Text("paid"))
				fixture.Equal(s, "steps", run.Steps, 1)
			} else {
				s.Lost(errs[0], engine.RunPending, "CompleteStep")
				fixture.Equal(s, "steps", run.Steps, 0)
			}
			s.Cancel(l.RunID)
		}
	}},
	{Name: "a failure racing a result of its step loses nothing", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			l := s.HeldAgain()
			s.Begin(l, "pay")
			done := engine.CompleteStepParams{Lease: l, Step: fixture.Named("pay"), ID: s.ID(),
				Output: fixture.Text("paid"), Now: s.Now}
			failed := engine.FailStepParams{Lease: l, Step: fixture.Named("pay"), ID: s.ID(),
				Failure: fixture.Boom("no"), Hold: true, Now: s.Now}
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.CompleteStep(s.Ctx, done)
				} else {
					_, err = s.Store.FailStep(s.Ctx, failed)
				}
				return err
			})
			retried := 0
			switch {
			case errs[1] == nil && errs[0] == nil: // the failure came first, and the result was for the next attempt
				retried = 1
				fixture.Equal(s, "status of the first attempt", s.Attempts(l.RunID, "pay")[0].Status, engine.StepFailed)
				fixture.Equal(s, "status", s.Step(l.RunID, "pay").Status, engine.StepCompleted)
			case errs[1] == nil:
				retried = 1
				s.Refused(errs[0], engine.ErrConflict, "CompleteStep, which lost")
				fixture.Equal(s, "status", s.Step(l.RunID, "pay").Status, engine.StepPending)
			default:
				s.Must(errs[0], "CompleteStep, which won")
				s.Refused(errs[1], engine.ErrConflict, "FailStep, which lost")
				fixture.Equal(s, "status", s.Step(l.RunID, "pay").Status, engine.StepCompleted)
			}
			fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, retried)
			s.Tried(l.RunID, 1, retried)
			s.Cancel(l.RunID)
		}
	}},
	{Name: "a release racing an end leaves the run due or ended",
		Run: func(s *fixture.F) {
			for range fixture.Rounds(20) {
				l := s.HeldAgain()
				errs := fixture.AtOnce(2, func(i int) error {
					if i == 0 {
						return s.TryFinish(l, "done")
					}
					return s.TryRelease(l, false)
				})
				if (errs[0] == nil) == (errs[1] == nil) {
					s.Fatalf("end: %v, release: %v, want one of them to count", errs[0], errs[1])
				}
				want := engine.RunCompleted
				if errs[0] != nil {
					want = engine.RunPending
				}
				s.Status(l.RunID, want)
				s.CancelAnyway(l.RunID)
			}
		}},
	{Name: "after a drain is acknowledged the worker claims nothing", Run: func(s *fixture.F) {
		for range fixture.Rounds(20) {
			s.Register(s.NewWorker("w1"), true)
			id := s.Start()
			p, late := s.ClaimParams("w1"), s.ClaimParams("w1")
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.Claim(s.Ctx, p)
					return err
				}
				if err = s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: p.Now}); err != nil {
					return err
				}
				claimed, err := s.Store.Claim(s.Ctx, late)
				if err == nil && len(claimed.Tasks) > 0 {
					err = errors.New("a draining worker got a run")
				}
				return err
			})
			s.Must(errs[0], "Claim")
			s.Must(errs[1], "DrainWorker and a claim after it")
			s.Cancel(id)
			s.Offline("w1", engine.OfflineDeregistered)
		}
	}},
	{Name: "prune racing every other call breaks nothing", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range fixture.Rounds(10) {
			l := s.HeldNext()
			s.Complete(l, "pay", "paid")
			s.Finish(l, "done")
			before := s.Now.Add(time.Second)
			start := s.NewRun()
			errs := fixture.AtOnce(4, func(i int) (err error) {
				switch i {
				case 0, 1:
					_, err = s.Store.Prune(s.Ctx, engine.PruneParams{Before: before, Limit: 10})
				case 2:
					if err = s.TryFinish(l, "done"); errors.Is(err, engine.ErrNotFound) {
						err = nil
					}
				default:
					_, err = s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{start}})
				}
				return err
			})
			for _, err := range errs {
				s.Must(err, "prune and its rivals")
			}
			s.Cancel(start.ID)
		}
	}},
}
