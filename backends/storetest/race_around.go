package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// raceAroundCases are the races of what stands around runs, and of those who steer them.
var raceAroundCases = []testCase{
	{"claims of one run: one worker has it", func(s *stage) {
		s.worker("w1")
		s.worker("w2")
		for range rounds(10) {
			id := s.start()
			params := make([]engine.ClaimParams, racers)
			for i := range params {
				params[i] = s.claimParams([]string{"w1", "w2"}[i%2])
			}
			claimed := make([]engine.Claimed, racers)
			errs := atOnce(racers, func(i int) (err error) {
				claimed[i], err = s.store.Claim(s.ctx, params[i])
				return err
			})
			holders := 0
			for i, err := range errs {
				s.must(err, "Claim")
				holders += len(claimed[i].Tasks)
			}
			equal(s, "claims that were given the run", holders, 1)
			equal(s, "leases", len(s.heldBy("w1"))+len(s.heldBy("w2")), 1)
			s.cancel(id)
		}
	}},
	{"retries under one request: one counts, and those that ask for the same have its answer", func(s *stage) {
		run := s.failed("a")
		for round := range rounds(10) {
			params := make([]engine.RetryRunParams, racers)
			for i := range params {
				params[i] = engine.RetryRunParams{SteerParams: s.steer(run, "once more"), ID: s.id(), RequestID: fmt.Sprint("r", round), Restart: i%2 == 1}
			}
			answers := make([]engine.Started, racers)
			errs := atOnce(racers, func(i int) (err error) {
				answers[i], err = s.store.RetryRun(s.ctx, params[i])
				return err
			})
			first := slices.IndexFunc(answers, func(a engine.Started) bool { return !a.RunID.IsZero() && !a.Repeated })
			if first < 0 {
				s.Fatalf("round %d: no retry was the first: %v, %v", round, answers, errs)
			}
			for i, err := range errs {
				if params[i].Restart != params[first].Restart {
					s.refused(err, engine.ErrConflict, "RetryRun for something else")
					continue
				}
				s.must(err, "RetryRun")
				equal(s, "answer", answers[i], engine.Started{RunID: params[first].ID, Repeated: i != first})
			}
			s.cancel(params[first].ID)
		}
	}},
	{"a termination against a claim: the run has ended and nobody holds it", func(s *stage) {
		s.worker("w1")
		for range rounds(10) {
			id := s.start()
			claim, end := s.claimParams("w1"), s.endParams(id, "")
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.Claim(s.ctx, claim)
				} else {
					_, err = s.store.TerminateRun(s.ctx, end)
				}
				return err
			})
			s.must(errs[0], "Claim")
			s.must(errs[1], "TerminateRun")
			s.status(id, engine.RunTerminated)
			equal(s, "leases", len(s.heldBy("w1")), 0)
		}
	}},
	{"a pause against a claim: the run waits and nobody holds it", func(s *stage) {
		s.worker("w1")
		for range rounds(10) {
			id := s.start()
			claim, pause := s.claimParams("w1"), s.steer(id, "hold on")
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.Claim(s.ctx, claim)
				} else {
					_, err = s.store.PauseRun(s.ctx, pause)
				}
				return err
			})
			s.must(errs[0], "Claim")
			s.must(errs[1], "PauseRun")
			s.status(id, engine.RunPending)
			equal(s, "leases", len(s.heldBy("w1")), 0)
			s.claimNothing("w1")
			s.resume(id)
			equal(s, "run after the pause", s.claim("w1").Run.ID, id)
			s.cancel(id)
		}
	}},
	{"a failure of a run against its end: one counts", func(s *stage) {
		for range rounds(10) {
			l := s.heldAgain()
			errs := atOnce(2, func(i int) error {
				if i == 0 {
					return s.tryFinish(l, "done")
				}
				_, err := s.tryFailRun(l, "no")
				return err
			})
			if (errs[0] == nil) == (errs[1] == nil) {
				s.Fatalf("end: %v, failure: %v, want one of them to count", errs[0], errs[1])
			}
			want := engine.RunCompleted
			if errs[0] != nil {
				want = engine.RunFailed
			}
			s.status(l.RunID, want)
		}
	}},
	{"a cancel against a sleep: the run has ended and does not wake up", func(s *stage) {
		for range rounds(10) {
			l := s.heldAgain()
			nap := engine.SleepParams{Lease: l, Step: named("nap"), ID: s.id(), Duration: time.Hour, Now: s.now}
			end := s.endParams(l.RunID, "")
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					err = s.store.Sleep(s.ctx, nap)
				} else {
					_, err = s.store.CancelRun(s.ctx, end)
				}
				return err
			})
			s.must(errs[1], "CancelRun")
			if errs[0] != nil {
				s.lost(errs[0], engine.RunCancelled, "Sleep, which lost")
			}
			s.sameTime("available at", s.status(l.RunID, engine.RunCancelled).AvailableAt, time.Time{})
		}
	}},
	{"a signal against an end: it is kept or refused", func(s *stage) {
		for range rounds(10) {
			l := s.heldAgain()
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					return s.tryFinish(l, "done")
				}
				_, err = s.trySignal(l.RunID, "approval", "yes")
				return err
			})
			s.must(errs[0], "CompleteRun")
			s.status(l.RunID, engine.RunCompleted)
			kept := 1
			if errs[1] != nil {
				s.refused(errs[1], engine.ErrPrecondition, "SignalRun, which lost")
				kept = 0
			}
			equal(s, "signals", len(s.signals(l.RunID)), kept)
		}
	}},
	{"a signal against the wait for it: the run goes on", func(s *stage) {
		for range rounds(10) {
			l := s.heldAgain()
			wait := engine.AwaitSignalParams{Lease: l, Step: "approval", Signal: "approval", ID: s.id(), Now: s.now}
			var awaited engine.AwaitedSignal
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					awaited, err = s.store.AwaitSignal(s.ctx, wait)
				} else {
					_, err = s.trySignal(l.RunID, "approval", "yes")
				}
				return err
			})
			s.must(errs[0], "AwaitSignal")
			s.must(errs[1], "SignalRun")
			if awaited.Waiting {
				s.due(l.RunID)
			} else {
				s.status(l.RunID, engine.RunRunning)
			}
			s.payload("output", s.step(l.RunID, "approval").Output, text("yes"))
			s.cancel(l.RunID)
		}
	}},
	{"one signal sent many times at once is delivered once", func(s *stage) {
		for range rounds(5) {
			l := s.heldAgain()
			for _, err := range atOnce(racers, func(int) error {
				_, err := s.trySignal(l.RunID, "approval", "yes", signalID("a"))
				return err
			}) {
				s.must(err, "SignalRun")
			}
			equal(s, "signals", len(s.signals(l.RunID)), 1)
			s.finish(l, "done")
		}
	}},
	{"the end of a child against the wait for it: the parent goes on", func(s *stage) {
		s.childWorker()
		for range rounds(10) {
			parent := s.heldAgain()
			id := s.child(parent, "kid")
			kid := s.claimChild(id)
			var ended []engine.Step
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					ended, err = s.tryAwaitChildren(parent, nil, id)
					return err
				}
				return s.tryFinish(kid, "done")
			})
			s.must(errs[0], "AwaitChildren")
			s.must(errs[1], "CompleteRun of the child")
			if len(ended) == 1 && ended[0].Status == engine.StepCompleted {
				s.status(parent.RunID, engine.RunRunning)
			} else {
				s.due(parent.RunID)
			}
			s.payload("output", s.step(parent.RunID, "kid").Output, text("done"))
			s.cancel(parent.RunID)
		}
	}},
	{"a tick that is fired many times at once starts one run", func(s *stage) {
		var plan engine.Schedule
		for n := range rounds(10) {
			if n%100 == 0 {
				plan = s.plan() // whose runs are few: all of them are listed in each round
			}
			s.pass(time.Minute)
			params := make([]engine.FireScheduleParams, racers)
			for i := range params {
				params[i] = s.fireParams(plan.ID, 1)
			}
			fired := make([]engine.Fired, racers)
			errs := atOnce(racers, func(i int) (err error) {
				fired[i], err = s.store.FireSchedule(s.ctx, params[i])
				return err
			})
			runs := 0
			for i, err := range errs {
				s.must(err, "FireSchedule")
				runs += fired[i].Runs
			}
			equal(s, "runs that were started", runs, 1)
			open := s.listed(engine.RunFilter{Namespace: space, ScheduleID: plan.ID.String(), Statuses: []engine.RunStatus{engine.RunPending}})
			equal(s, "runs that are there", len(open), 1)
			s.cancel(open[0])
		}
	}},
	{"a schedule deleted while it fires starts its run or does not", func(s *stage) {
		for range rounds(10) {
			plan := s.plan()
			s.pass(time.Minute)
			fire := s.fireParams(plan.ID, 1)
			remove := engine.DeleteScheduleParams{Namespace: space, Ref: plan.ID.String(), By: somebody, AuditID: s.id(), Now: s.now}
			var fired engine.Fired
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					fired, err = s.store.FireSchedule(s.ctx, fire)
				} else {
					err = s.store.DeleteSchedule(s.ctx, remove)
				}
				return err
			})
			s.must(errs[1], "DeleteSchedule")
			if errs[0] != nil {
				s.refused(errs[0], engine.ErrNotFound, "FireSchedule of what is gone")
			}
			runs := s.firedRuns(plan.ID)
			equal(s, "runs", len(runs), fired.Runs)
			for i := range runs {
				s.cancel(runs[i].ID)
			}
		}
	}},
	{"of many keys of one name made at once there is one", func(s *stage) {
		s.key("root", engine.RoleAdmin)
		for n := range rounds(5) {
			params := make([]engine.CreateKeyParams, racers)
			for i := range params {
				params[i] = s.newKey(fmt.Sprint("key-", n), engine.RoleViewer)
			}
			made := 0
			for _, err := range atOnce(racers, func(i int) error { _, err := s.store.CreateKey(s.ctx, params[i]); return err }) {
				switch {
				case err == nil:
					made++
				case !errors.Is(err, engine.ErrExists):
					s.Fatalf("CreateKey, which lost: %v", err)
				}
			}
			equal(s, "keys that were made", made, 1)
			kept := s.keyring()
			equal(s, "keys", len(kept), 2)
			for i := range kept {
				if kept[i].Name != "root" {
					s.revoke(kept[i].ID)
				}
			}
		}
	}},
}
