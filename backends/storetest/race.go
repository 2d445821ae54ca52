package storetest

import (
	"errors"
	"flag"
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var raceRounds = flag.Int("storetest.races", 0, "how often each race is run at least, for a long run: give the test time with -timeout")

// rounds is how often a race is run.
func rounds(usual int) int { return roundsOf(1, usual) }

// roundsOf is rounds where each of them holds several races.
func roundsOf(races, usual int) int { return max(usual, (*raceRounds+races-1)/races) }

// atOnce calls do for 0 to n-1 from n goroutines that start together, and returns their errors.
func atOnce(n int, do func(i int) error) []error {
	errs := make([]error, n)
	gate := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-gate
			errs[i] = do(i)
		})
	}
	close(gate)
	group.Wait()
	return errs
}

const racers = 16

var raceCases = []testCase{
	{"of many tokens exactly one finishes the run", func(s *stage) {
		for range rounds(1) {
			l := s.heldAgain()
			tokens := []engine.Lease{l}
			for range racers - 1 {
				tokens = append(tokens, engine.Lease{Namespace: space, RunID: l.RunID, Token: s.token()})
			}
			errs := atOnce(racers, func(i int) error { return s.tryFinish(tokens[i], fmt.Sprint(i)) })
			s.must(errs[0], "CompleteRun of the holder")
			for _, err := range errs[1:] {
				s.refused(err, engine.ErrLeaseLost, "CompleteRun of a stranger")
			}
			s.payload("output", s.status(l.RunID, engine.RunCompleted).Output, text("0"))
		}
	}},
	{"of many different ends under one token exactly one counts", func(s *stage) {
		for range rounds(10) {
			l := s.heldAgain()
			errs := atOnce(racers, func(i int) error { return s.tryFinish(l, fmt.Sprint(i)) })
			winner := s.onlyWinner(errs, engine.ErrConflict)
			s.payload("output", s.status(l.RunID, engine.RunCompleted).Output, text(fmt.Sprint(winner)))
		}
	}},
	{"many repetitions of one end all count as that one", func(s *stage) {
		for range rounds(1) {
			l := s.heldAgain()
			for _, err := range atOnce(racers, func(int) error { return s.tryFinish(l, "done") }) {
				s.must(err, "CompleteRun")
			}
		}
	}},
	{"of many different results of one step exactly one counts", func(s *stage) {
		const steps = 10
		for range roundsOf(steps, 1) {
			l := s.heldAgain()
			for n := range steps {
				name := fmt.Sprint("step-", n)
				params := make([]engine.CompleteStepParams, racers)
				for i := range params {
					params[i] = engine.CompleteStepParams{Lease: l, Step: named(name), ID: s.id(), Output: text(fmt.Sprint(i)), Now: s.now}
				}
				errs := atOnce(racers, func(i int) error { _, err := s.store.CompleteStep(s.ctx, params[i]); return err })
				winner := s.onlyWinner(errs, engine.ErrConflict)
				s.payload("output", s.step(l.RunID, name).Output, text(fmt.Sprint(winner)))
				equal(s, "attempts", len(s.attempts(l.RunID, name)), 1)
			}
			equal(s, "steps", s.run(l.RunID).Steps, steps)
			s.cancel(l.RunID)
		}
	}},
	{"a step begun many times at once is one attempt", func(s *stage) {
		for range rounds(1) {
			l := s.heldAgain()
			params := make([]engine.BeginStepParams, racers)
			for i := range params {
				params[i] = engine.BeginStepParams{Lease: l, ID: s.id(), Name: "pay", Kind: engine.StepFunction, Now: s.now}
			}
			attempts := make([]engine.ID, racers)
			errs := atOnce(racers, func(i int) error {
				begun, err := s.store.BeginStep(s.ctx, params[i])
				attempts[i] = begun.Step.ID
				return err
			})
			for i, err := range errs {
				s.must(err, "BeginStep")
				equal(s, "attempt", attempts[i], attempts[0])
			}
			equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
			s.cancel(l.RunID)
		}
	}},
	{"parallel steps of one run all count", func(s *stage) {
		l := s.held()
		s.completeMany(l, 200)
		run := s.run(l.RunID)
		equal(s, "steps", run.Steps, 200)
		equal(s, "bytes", run.Bytes, int64(len("input")+200))
		seen := map[int64]bool{}
		for _, step := range s.attempts(l.RunID, "") {
			seen[step.Sequence] = true
		}
		equal(s, "places in the sequence", len(seen), 200)
	}},
	{"cancel against complete: one wins and both learn which", func(s *stage) {
		for range rounds(30) {
			l := s.heldAgain()
			p := s.endParams(l.RunID, "")
			errs := atOnce(2, func(i int) error {
				if i == 0 {
					return s.tryFinish(l, "done")
				}
				_, err := s.store.CancelRun(s.ctx, p)
				return err
			})
			switch status := s.run(l.RunID).Status; status {
			case engine.RunCompleted:
				s.must(errs[0], "CompleteRun, which won")
				s.refused(errs[1], engine.ErrPrecondition, "CancelRun, which lost")
				s.explained(errs[1], engine.RunCompleted, "CancelRun")
			case engine.RunCancelled:
				s.must(errs[1], "CancelRun, which won")
				s.lost(errs[0], engine.RunCancelled, "CompleteRun, which lost")
			default:
				s.Fatalf("the run is %s", status)
			}
		}
	}},
	{"cancel against terminate: exactly one changes the run", func(s *stage) {
		for range rounds(20) {
			p := s.endParams(s.start(), "")
			ends := make([]engine.RunEnd, 4)
			errs := atOnce(4, func(i int) (err error) {
				ends[i], err = endVerbs[i%2].call(s.store, s.ctx, p)
				return err
			})
			status, changed := s.run(p.RunID).Status, 0
			for i, err := range errs {
				if endVerbs[i%2].status == status {
					s.must(err, endVerbs[i%2].name)
				} else {
					s.refused(err, engine.ErrPrecondition, endVerbs[i%2].name)
				}
				if ends[i].Changed {
					changed++
				}
			}
			equal(s, "calls that changed the run", changed, 1)
		}
	}},
	{"many claimers hand out each run once", func(s *stage) {
		const runs, claimers = 200, 10
		s.worker("w1")
		batch := make([]engine.StartRun, runs)
		for i := range batch {
			batch[i] = s.newRun(ofType([]string{kind, "a", "b"}[i%3]))
		}
		s.startAll(batch...)
		params := make([][]engine.ClaimParams, claimers)
		for i := range params {
			for range runs {
				p := s.claimParams("w1", "w1", "w1")
				p.Types = []string{kind, "a", "b"}
				params[i] = append(params[i], p)
			}
		}
		var mu sync.Mutex
		times := map[engine.ID]int{}
		errs := atOnce(claimers, func(i int) error {
			for _, p := range params[i] {
				claimed, err := s.store.Claim(s.ctx, p)
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
			s.must(err, "Claim")
		}
		equal(s, "runs handed out", len(times), runs)
		for id, n := range times {
			equal(s, "times that "+id.String()+" was handed out", n, 1)
		}
		equal(s, "leases", len(s.heldBy("w1")), runs)
	}},
	{"starts with one request at once make one run", func(s *stage) {
		for n := range rounds(3) {
			s.racingStarts(func() engine.StartRun { return s.newRun(withRequest(fmt.Sprint("req-", n))) })
		}
	}},
	{"starts with one external id at once make one run", func(s *stage) {
		for n := range rounds(3) {
			s.racingStarts(func() engine.StartRun { return s.newRun(withExternal(fmt.Sprint("ext-", n))) })
		}
	}},
	{"batches with the same external ids in other orders make one run each", func(s *stage) {
		batches := make([][]engine.StartRun, 8)
		for i := range batches {
			for k := range 20 {
				n := k
				if i%2 == 1 {
					n = 19 - k
				}
				batches[i] = append(batches[i], s.newRun(withExternal(fmt.Sprint("ext-", n)), withRequest(fmt.Sprint("req-", i, "-", n))))
			}
		}
		for _, err := range atOnce(len(batches), func(i int) error {
			_, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: batches[i]})
			return err
		}) {
			s.must(err, "StartRuns")
		}
		equal(s, "runs", s.countRuns(), 20)
	}},
	{"an external id that becomes free while it is asked for is no error", func(s *stage) {
		for range rounds(20) {
			p := s.endParams(s.start(withExternal("ext")), "")
			start := s.newRun(withExternal("ext"))
			var answers []engine.Started
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.CancelRun(s.ctx, p)
					return err
				}
				answers, err = s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: []engine.StartRun{start}})
				return err
			})
			s.must(errs[0], "CancelRun")
			s.must(errs[1], "StartRuns")
			s.must(answers[0].Err, "start")
			if !answers[0].Existed {
				s.cancel(start.ID)
			}
		}
	}},
	{"one request has one answer, although the run that holds its external id ends meanwhile", func(s *stage) {
		for n := range rounds(20) {
			holder := s.start(withExternal("ext"))
			p := s.endParams(holder, "")
			start := func() engine.StartRun { return s.newRun(withExternal("ext"), withRequest(fmt.Sprint("req-", n))) }
			starts := []engine.StartRun{start(), start()}
			answers := make([]engine.Started, len(starts))
			for _, err := range atOnce(len(starts)+1, func(i int) error {
				if i == len(starts) {
					_, err := s.store.CancelRun(s.ctx, p)
					return err
				}
				got, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: starts[i : i+1]})
				if err == nil {
					answers[i], err = got[0], got[0].Err
				}
				return err
			}) {
				s.must(err, "StartRuns or CancelRun")
			}
			equal(s, "run of the second answer", answers[1].RunID, answers[0].RunID)
			equal(s, "run of the answer again", s.started(starts[0]).RunID, answers[0].RunID)
			if answers[0].RunID != holder {
				s.cancel(answers[0].RunID)
			}
		}
	}},
	{"a heartbeat against the second look: either the worker stays or it is told", func(s *stage) {
		for range rounds(20) {
			l := s.heldAgain()
			heard := s.now
			s.pass(time.Minute)
			now := s.now
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.Heartbeat(s.ctx, engine.HeartbeatParams{WorkerID: "w1", Held: []engine.Lease{l}, Now: now})
					return err
				}
				_, err = s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: heard, Now: now})
				return err
			})
			s.must(errs[1], "ForceOfflineWorker")
			if s.workerState("w1").Status == engine.WorkerOnline {
				s.must(errs[0], "Heartbeat of a worker that stayed")
				s.status(l.RunID, engine.RunRunning)
			} else {
				s.refused(errs[0], engine.ErrNotFound, "Heartbeat of a worker that was lost")
				s.status(l.RunID, engine.RunPending)
			}
			s.cancel(l.RunID)
		}
	}},
	{"of many heartbeats at once each says and does what it would alone", func(s *stage) {
		for range rounds(3) {
			s.beatAtOnce(s.beatKinds())
		}
	}},
	{"heartbeats of one worker at once all count", func(s *stage) {
		s.worker("w1")
		s.worker("w2")
		now := s.now
		for _, err := range atOnce(3*racers, func(i int) error {
			p := engine.HeartbeatParams{WorkerID: "w1", Active: 7, Completed: 1 + i%3, Failed: 1, Now: now.Add(time.Duration(i) * time.Second)}
			if i%3 == 0 {
				p.WorkerID = "w2"
			}
			_, err := s.store.Heartbeat(s.ctx, p)
			return err
		}) {
			s.must(err, "Heartbeat")
		}
		for worker, want := range map[string]int64{"w1": (2 + 3) * racers, "w2": racers} {
			w := s.workerState(worker)
			equal(s, "active of "+worker, w.Active, 7)
			equal(s, "completed of "+worker, w.Completed, want)
		}
		equal(s, "failed of w1", s.workerState("w1").Failed, 2*racers)
	}},
	{"heartbeats against the ends of leases: who is told nothing holds it still, or is told next time", func(s *stage) {
		for range roundsOf(racers, 10) {
			leases := make([]engine.Lease, racers)
			ends := make([]engine.EndRunParams, racers)
			for i := range leases {
				worker := fmt.Sprint("w", i)
				s.worker(worker)
				run := s.start()
				leases[i], ends[i] = s.claim(worker).Lease, s.endParams(run, "")
			}
			beat := func(i int) (engine.Beat, error) {
				return s.store.Heartbeat(s.ctx, engine.HeartbeatParams{WorkerID: fmt.Sprint("w", i), Held: leases[i : i+1], Whole: true, Now: s.now})
			}
			beats := make([]engine.Beat, racers)
			over := make([]bool, racers) // before its heartbeat
			for _, err := range atOnce(2*racers, func(n int) (err error) {
				i := n / 2
				switch {
				case n%2 == 0 && i%4 == 1: // the end first
					if _, err = s.store.CancelRun(s.ctx, ends[i]); err == nil {
						over[i] = true
						beats[i], err = beat(i)
					}
				case n%2 == 0:
					beats[i], err = beat(i)
				case i%2 == 0:
					_, err = s.store.CancelRun(s.ctx, ends[i])
				}
				return err
			}) {
				s.must(err, "Heartbeat or CancelRun")
			}
			for i := range leases {
				status := s.run(leases[i].RunID).Status
				told := len(beats[i].Lost) > 0
				if told && status == engine.RunRunning || over[i] && !told {
					s.Fatalf("the run is %s, over before the heartbeat: %t, and its worker was told so: %t", status, over[i], told)
				}
				later, err := beat(i)
				s.must(err, "Heartbeat")
				equal(s, "told by the next heartbeat", len(later.Lost) > 0, status != engine.RunRunning)
				s.cancelAnyway(leases[i].RunID)
			}
		}
	}},
	{"a claim against its worker's end leaves no run with a worker that is gone", func(s *stage) {
		for range rounds(20) {
			s.worker("w1")
			id := s.start()
			p := s.claimParams("w1")
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.Claim(s.ctx, p)
					return err
				}
				_, err = s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineForced, Now: p.Now})
				return err
			})
			s.must(errs[0], "Claim")
			s.must(errs[1], "ForceOfflineWorker")
			s.status(id, engine.RunPending)
			equal(s, "leases", len(s.heldBy("w1")), 0)
			s.cancel(id)
		}
	}},
	{"a result against the loss of the worker: it counts whole or not at all", func(s *stage) {
		for range rounds(20) {
			l := s.heldAgain()
			now := s.now
			params := engine.CompleteStepParams{Lease: l, Step: named("pay"), ID: s.id(), Output: text("paid"), Now: now}
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.CompleteStep(s.ctx, params)
					return err
				}
				_, err = s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: now, Now: now})
				return err
			})
			s.must(errs[1], "ForceOfflineWorker")
			run := s.status(l.RunID, engine.RunPending)
			if errs[0] == nil {
				s.payload("output", s.step(l.RunID, "pay").Output, text("paid"))
				equal(s, "steps", run.Steps, 1)
			} else {
				s.lost(errs[0], engine.RunPending, "CompleteStep")
				equal(s, "steps", run.Steps, 0)
			}
			s.cancel(l.RunID)
		}
	}},
	{"a failure against a result of one step: nothing that was acknowledged is lost", func(s *stage) {
		for range rounds(20) {
			l := s.heldAgain()
			s.begin(l, "pay")
			done := engine.CompleteStepParams{Lease: l, Step: named("pay"), ID: s.id(), Output: text("paid"), Now: s.now}
			failed := engine.FailStepParams{Lease: l, Step: named("pay"), ID: s.id(), Failure: boom("no"), Hold: true, Now: s.now}
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.CompleteStep(s.ctx, done)
				} else {
					_, err = s.store.FailStep(s.ctx, failed)
				}
				return err
			})
			retried := 0
			switch {
			case errs[1] == nil && errs[0] == nil: // the failure came first, and the result was the next attempt's
				retried = 1
				equal(s, "status of the first attempt", s.attempts(l.RunID, "pay")[0].Status, engine.StepFailed)
				equal(s, "status", s.step(l.RunID, "pay").Status, engine.StepCompleted)
			case errs[1] == nil:
				retried = 1
				s.refused(errs[0], engine.ErrConflict, "CompleteStep, which lost")
				equal(s, "status", s.step(l.RunID, "pay").Status, engine.StepPending)
			default:
				s.must(errs[0], "CompleteStep, which won")
				s.refused(errs[1], engine.ErrConflict, "FailStep, which lost")
				equal(s, "status", s.step(l.RunID, "pay").Status, engine.StepCompleted)
			}
			equal(s, "failures", s.step(l.RunID, "pay").Failures, retried)
			equal(s, "attempts of the run", s.run(l.RunID).Attempts, 1+retried)
			s.cancel(l.RunID)
		}
	}},
	{"a release against an end: the run is done or due, and whoever holds it next is the only one", func(s *stage) {
		for range rounds(20) {
			l := s.heldAgain()
			errs := atOnce(2, func(i int) error {
				if i == 0 {
					return s.tryFinish(l, "done")
				}
				return s.tryRelease(l, false)
			})
			if (errs[0] == nil) == (errs[1] == nil) {
				s.Fatalf("end: %v, release: %v, want one of them to count", errs[0], errs[1])
			}
			want := engine.RunCompleted
			if errs[0] != nil {
				want = engine.RunPending
			}
			s.status(l.RunID, want)
			s.cancelAnyway(l.RunID)
		}
	}},
	{"a drain against a claim: nothing is handed out once the drain is known", func(s *stage) {
		for range rounds(20) {
			s.register(s.newWorker("w1"), true)
			id := s.start()
			p, late := s.claimParams("w1"), s.claimParams("w1")
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = s.store.Claim(s.ctx, p)
					return err
				}
				if err = s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: p.Now}); err != nil {
					return err
				}
				claimed, err := s.store.Claim(s.ctx, late)
				if err == nil && len(claimed.Tasks) > 0 {
					err = errors.New("a draining worker got a run")
				}
				return err
			})
			s.must(errs[0], "Claim")
			s.must(errs[1], "DrainWorker and a claim after it")
			s.cancel(id)
			s.offline("w1", engine.OfflineDeregistered)
		}
	}},
	{"prune against everything breaks nothing", func(s *stage) {
		s.worker("w1")
		for range rounds(10) {
			l := s.heldNext()
			s.complete(l, "pay", "paid")
			s.finish(l, "done")
			before := s.now.Add(time.Second)
			start := s.newRun()
			errs := atOnce(4, func(i int) (err error) {
				switch i {
				case 0, 1:
					_, err = s.store.Prune(s.ctx, engine.PruneParams{Before: before, Limit: 10})
				case 2:
					if err = s.tryFinish(l, "done"); errors.Is(err, engine.ErrNotFound) {
						err = nil
					}
				default:
					_, err = s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: []engine.StartRun{start}})
				}
				return err
			})
			for _, err := range errs {
				s.must(err, "prune and its rivals")
			}
			s.cancel(start.ID)
		}
	}},
}

// onlyWinner is who of many got no error; the others' errors must be of the target's kind.
func (s *stage) onlyWinner(errs []error, target error) int {
	s.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err != nil:
			s.refused(err, target, "a loser")
		case winner >= 0:
			s.Fatalf("%d and %d both won", winner, i)
		default:
			winner = i
		}
	}
	if winner < 0 {
		s.Fatalf("nobody won")
	}
	return winner
}

// racingStarts makes starts at once which must all be answered with one run, and make that one alone.
func (s *stage) racingStarts(start func() engine.StartRun) {
	s.Helper()
	starts, ids := make([]engine.StartRun, racers), make([]engine.ID, racers)
	for i := range starts {
		starts[i] = start()
		ids[i] = starts[i].ID
	}
	answers := make([][]engine.Started, racers)
	errs := atOnce(racers, func(i int) (err error) {
		answers[i], err = s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: starts[i : i+1]})
		return err
	})
	fresh := 0
	for i, err := range errs {
		s.must(err, "StartRuns")
		s.must(answers[i][0].Err, "start")
		equal(s, "run", answers[i][0].RunID, answers[0][0].RunID)
		if !answers[i][0].Existed && !answers[i][0].Repeated {
			fresh++
		}
	}
	equal(s, "starts that made the run", fresh, 1)
	equal(s, "runs of the round", len(s.gotten(ids...)), 1) // by their ids: a list would read those of all rounds before
}
