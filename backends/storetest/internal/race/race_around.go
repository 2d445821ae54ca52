package race

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// RaceAroundCases are the races of schedules, signals, children and operations of people.
var RaceAroundCases = []fixture.Case{
	{Name: "claims of one run: one worker has it", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Worker("w2")
		for range fixture.Rounds(10) {
			id := s.Start()
			params := make([]engine.ClaimParams, fixture.Racers)
			for i := range params {
				params[i] = s.ClaimParams([]string{"w1", "w2"}[i%2])
			}
			claimed := make([]engine.Claimed, fixture.Racers)
			errs := fixture.AtOnce(fixture.Racers, func(i int) (err error) {
				claimed[i], err = s.Store.Claim(s.Ctx, params[i])
				return err
			})
			holders := 0
			for i, err := range errs {
				s.Must(err, "Claim")
				holders += len(claimed[i].Tasks)
			}
			fixture.Equal(s, "claims that were given the run", holders, 1)
			fixture.Equal(s, "leases", len(s.HeldBy("w1"))+len(s.HeldBy("w2")), 1)
			s.Cancel(id)
		}
	}},
	{Name: "concurrent retries under one request make one run",
		Run: func(s *fixture.F) {
			run := s.Failed("a")
			for round := range fixture.Rounds(10) {
				params := make([]engine.RetryRunParams, fixture.Racers)
				for i := range params {
					params[i] = engine.RetryRunParams{SteerParams: s.Steer(run, "once more"), ID: s.ID(),
						RequestID: fmt.Sprint("r", round), Restart: i%2 == 1}
				}
				answers := make([]engine.Started, fixture.Racers)
				errs := fixture.AtOnce(fixture.Racers, func(i int) (err error) {
					answers[i], err = s.Store.RetryRun(s.Ctx, params[i])
					return err
				})
				first := slices.IndexFunc(answers, func(a engine.Started) bool {
					return !a.RunID.IsZero() && !a.Repeated
				})
				if first < 0 {
					s.Fatalf("round %d: no retry was the first: %v, %v", round, answers, errs)
				}
				for i, err := range errs {
					if params[i].Restart != params[first].Restart {
						s.Refused(err, engine.ErrConflict, "RetryRun for something else")
						continue
					}
					s.Must(err, "RetryRun")
					fixture.Equal(s, "answer", answers[i],
						engine.Started{RunID: params[first].ID, Repeated: i != first})
				}
				s.Cancel(params[first].ID)
			}
		}},
	{Name: "a run terminated during its claim has no lease", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range fixture.Rounds(10) {
			id := s.Start()
			claim, end := s.ClaimParams("w1"), s.EndParams(id, "")
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.Claim(s.Ctx, claim)
				} else {
					_, err = s.Store.TerminateRun(s.Ctx, end)
				}
				return err
			})
			s.Must(errs[0], "Claim")
			s.Must(errs[1], "TerminateRun")
			s.Status(id, engine.RunTerminated)
			fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
		}
	}},
	{Name: "a run paused during its claim has no lease", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range fixture.Rounds(10) {
			id := s.Start()
			claim, pause := s.ClaimParams("w1"), engine.PauseRunParams{SteerParams: s.Steer(id, "hold on"), AtOnce: true}
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.Store.Claim(s.Ctx, claim)
				} else {
					_, err = s.Store.PauseRun(s.Ctx, pause)
				}
				return err
			})
			s.Must(errs[0], "Claim")
			s.Must(errs[1], "PauseRun")
			s.Status(id, engine.RunPending)
			fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
			s.ClaimNothing("w1")
			s.Resume(id)
			fixture.Equal(s, "run after the pause", s.Claim("w1").Run.ID, id)
			s.Cancel(id)
		}
	}},
	{Name: "a failure of a run against its end: one counts", Run: func(s *fixture.F) {
		for range fixture.Rounds(10) {
			l := s.HeldAgain()
			errs := fixture.AtOnce(2, func(i int) error {
				if i == 0 {
					return s.TryFinish(l, "done")
				}
				_, err := s.TryFailRun(l, "no")
				return err
			})
			if (errs[0] == nil) == (errs[1] == nil) {
				s.Fatalf("end: %v, failure: %v, want one of them to count", errs[0], errs[1])
			}
			want := engine.RunCompleted
			if errs[0] != nil {
				want = engine.RunFailed
			}
			s.Status(l.RunID, want)
		}
	}},
	{Name: "a run cancelled while it goes to sleep does not wake up", Run: func(s *fixture.F) {
		for range fixture.Rounds(10) {
			l := s.HeldAgain()
			nap := engine.SleepParams{Lease: l, Step: fixture.Named("nap"), ID: s.ID(), Duration: time.Hour, Now: s.Now}
			end := s.EndParams(l.RunID, "")
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					err = s.SleepWith(nap)
				} else {
					_, err = s.Store.CancelRun(s.Ctx, end)
				}
				return err
			})
			s.Must(errs[1], "CancelRun")
			if errs[0] != nil {
				s.Lost(errs[0], engine.RunCancelled, "Sleep, which lost")
			}
			s.SameTime("available at", s.Status(l.RunID, engine.RunCancelled).AvailableAt, time.Time{})
		}
	}},
	{Name: "a signal against an end: it is kept or refused", Run: func(s *fixture.F) {
		for range fixture.Rounds(10) {
			l := s.HeldAgain()
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					return s.TryFinish(l, "done")
				}
				_, err = s.TrySignal(l.RunID, "approval", "yes")
				return err
			})
			s.Must(errs[0], "CompleteRun")
			s.Status(l.RunID, engine.RunCompleted)
			kept := 1
			if errs[1] != nil {
				s.Refused(errs[1], engine.ErrPrecondition, "SignalRun, which lost")
				kept = 0
			}
			fixture.Equal(s, "signals", len(s.Signals(l.RunID)), kept)
		}
	}},
	{Name: "a signal racing the wait for it wakes the run", Run: func(s *fixture.F) {
		for range fixture.Rounds(10) {
			l := s.HeldAgain()
			wait := engine.AwaitSignalParams{Lease: l, Step: "approval", Signal: "approval", ID: s.ID(), Now: s.Now}
			var awaited engine.AwaitedSignal
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					awaited, err = s.Store.AwaitSignal(s.Ctx, wait)
				} else {
					_, err = s.TrySignal(l.RunID, "approval", "yes")
				}
				return err
			})
			s.Must(errs[0], "AwaitSignal")
			s.Must(errs[1], "SignalRun")
			if awaited.Waiting {
				s.Due(l.RunID)
				s.Claim("w1")
			} else {
				s.Status(l.RunID, engine.RunRunning)
			}
			s.Payload("output", s.Step(l.RunID, "approval").Output, fixture.Text("yes"))
			s.Cancel(l.RunID)
		}
	}},
	{Name: "one signal sent many times at once is delivered once", Run: func(s *fixture.F) {
		for range fixture.Rounds(5) {
			l := s.HeldAgain()
			for _, err := range fixture.AtOnce(fixture.Racers, func(int) error {
				_, err := s.TrySignal(l.RunID, "approval", "yes", fixture.SignalID("a"))
				return err
			}) {
				s.Must(err, "SignalRun")
			}
			fixture.Equal(s, "signals", len(s.Signals(l.RunID)), 1)
			s.Finish(l, "done")
		}
	}},
	{Name: "the end of a child racing the wait for it wakes the parent", Run: func(s *fixture.F) {
		s.ChildWorker()
		for range fixture.Rounds(10) {
			parent := s.HeldAgain()
			id := s.Child(parent, "kid")
			kid := s.ClaimChild(id)
			var ended []engine.Step
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					ended, err = s.TryAwaitChildren(parent, nil, id)
					return err
				}
				return s.TryFinish(kid, "done")
			})
			s.Must(errs[0], "AwaitChildren")
			s.Must(errs[1], "CompleteRun of the child")
			if len(ended) == 1 && ended[0].Status == engine.StepCompleted {
				s.Status(parent.RunID, engine.RunRunning)
			} else {
				s.Due(parent.RunID)
			}
			s.Payload("output", s.Step(parent.RunID, "kid").Output, fixture.Text("done"))
			s.Cancel(parent.RunID)
		}
	}},
	{Name: "a tick that is fired many times at once starts one run", Run: func(s *fixture.F) {
		var plan engine.Schedule
		for n := range fixture.Rounds(10) {
			if n%100 == 0 {
				plan = s.Plan() // it has few runs, because each round lists them all
			}
			s.Pass(time.Minute)
			params := make([]engine.FireScheduleParams, fixture.Racers)
			for i := range params {
				params[i] = s.FireParams(plan.ID, 1)
			}
			fired := make([]engine.Fired, fixture.Racers)
			errs := fixture.AtOnce(fixture.Racers, func(i int) (err error) {
				fired[i], err = s.Store.FireSchedule(s.Ctx, params[i])
				return err
			})
			runs := 0
			for i, err := range errs {
				s.Must(err, "FireSchedule")
				runs += fired[i].Runs
			}
			fixture.Equal(s, "runs that were started", runs, 1)
			open := s.Listed(engine.RunFilter{Namespace: fixture.Space, ScheduleID: plan.ID.String(),
				Statuses: []engine.RunStatus{engine.RunPending}})
			fixture.Equal(s, "runs that are there", len(open), 1)
			s.Cancel(open[0])
		}
	}},
	{Name: "a schedule deleted while it fires starts its run or not", Run: func(s *fixture.F) {
		for range fixture.Rounds(10) {
			plan := s.Plan()
			s.Pass(time.Minute)
			fire := s.FireParams(plan.ID, 1)
			remove := engine.DeleteScheduleParams{
				Namespace: fixture.Space, Ref: plan.ID.String(), By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}
			var fired engine.Fired
			errs := fixture.AtOnce(2, func(i int) (err error) {
				if i == 0 {
					fired, err = s.Store.FireSchedule(s.Ctx, fire)
				} else {
					err = s.Store.DeleteSchedule(s.Ctx, remove)
				}
				return err
			})
			s.Must(errs[1], "DeleteSchedule")
			if errs[0] != nil {
				s.Refused(errs[0], engine.ErrNotFound, "FireSchedule of what is gone")
			}
			runs := s.FiredRuns(plan.ID)
			fixture.Equal(s, "runs", len(runs), fired.Runs)
			for i := range runs {
				s.Cancel(runs[i].ID)
			}
		}
	}},
	{Name: "of many keys of one name made at once there is one", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		for n := range fixture.Rounds(5) {
			params := make([]engine.CreateKeyParams, fixture.Racers)
			for i := range params {
				params[i] = s.NewKey(fmt.Sprint("key-", n), engine.RoleViewer)
			}
			made := 0
			for _, err := range fixture.AtOnce(fixture.Racers, func(i int) error {
				_, err := s.Store.CreateKey(s.Ctx, params[i])
				return err
			}) {
				switch {
				case err == nil:
					made++
				case !errors.Is(err, engine.ErrExists):
					s.Fatalf("CreateKey, which lost: %v", err)
				}
			}
			fixture.Equal(s, "keys that were made", made, 1)
			kept := s.Keyring()
			fixture.Equal(s, "keys", len(kept), 2)
			for i := range kept {
				if kept[i].Name != "root" {
					s.Revoke(kept[i].ID)
				}
			}
		}
	}},
}
