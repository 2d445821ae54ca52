package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// leasedVerb is a write under a lease, about something that its token has not written about.
type leasedVerb struct {
	name string
	call func(s *stage, l engine.Lease) error
}

var leasedVerbs = []leasedVerb{
	{"BeginStep", func(s *stage, l engine.Lease) error { _, err := s.tryBegin(l, "fresh"); return err }},
	{"CompleteStep", func(s *stage, l engine.Lease) error { _, err := s.tryComplete(l, "fresh", "x"); return err }},
	{"FailStep", func(s *stage, l engine.Lease) error { _, err := s.tryFail(l, "fresh", "no"); return err }},
	{"FailStep held", func(s *stage, l engine.Lease) error {
		_, err := s.tryFail(l, "fresh", "no", holding, forGood)
		return err
	}},
	{"Sleep", func(s *stage, l engine.Lease) error { return s.trySleep(l, "fresh", time.Second) }},
	{"CompleteRun", func(s *stage, l engine.Lease) error { return s.tryFinish(l, "x") }},
	{"FailRun", func(s *stage, l engine.Lease) error { _, err := s.tryFailRun(l, "no"); return err }},
	{"Release", func(s *stage, l engine.Lease) error { return s.tryRelease(l, false) }},
	{"Release parked", func(s *stage, l engine.Lease) error { return s.tryRelease(l, true) }},
}

var fenceCases = []testCase{
	{"a token that is not the current one changes nothing, whatever the verb and the status", func(s *stage) {
		s.worker("w1")
		s.worker("w2")
		for status, run := range s.runsOfEveryStatus() {
			before, steps := s.run(run), len(s.attempts(run, ""))
			for _, verb := range leasedVerbs {
				err := verb.call(s, engine.Lease{Namespace: space, RunID: run, Token: s.token()})
				s.lost(err, status, verb.name+" of a run that is "+status.String())
				s.sameRun(s.run(run), before)
				equal(s, "steps after "+verb.name, len(s.attempts(run, "")), steps)
			}
		}
	}},
	{"a run that is not there is not found, whatever the verb", func(s *stage) {
		l := s.held()
		before := s.run(l.RunID)
		for _, verb := range leasedVerbs {
			err := verb.call(s, engine.Lease{Namespace: space, RunID: s.id(), Token: l.Token})
			s.refused(err, engine.ErrNotFound, verb.name+" of an unknown run")
			err = verb.call(s, engine.Lease{Namespace: "other", RunID: l.RunID, Token: l.Token})
			s.refused(err, engine.ErrNotFound, verb.name+" in another namespace")
		}
		s.sameRun(s.run(l.RunID), before)
	}},
	{"a worker that was too slow changes nothing for the next holder", func(s *stage) {
		old := s.held()
		s.begin(old, "pay")
		s.worker("w2")
		s.offline("w1", engine.OfflineLost)
		next := s.claim("w2").Lease
		s.complete(next, "pick", "x")
		before := s.run(old.RunID)
		for _, verb := range leasedVerbs {
			s.lost(verb.call(s, old), engine.RunRunning, verb.name)
		}
		_, err := s.tryComplete(old, "pay", "late")
		s.lost(err, engine.RunRunning, "CompleteStep of what it had begun")
		_, err = s.tryComplete(old, "pick", "late")
		s.lost(err, engine.RunRunning, "CompleteStep of what another completed")
		_, err = s.tryFail(old, "pay", "late")
		s.lost(err, engine.RunRunning, "FailStep of what it had begun")
		s.sameRun(s.run(old.RunID), before)
		s.payload("output of pick", s.step(old.RunID, "pick").Output, text("x"))
		s.complete(next, "pay", "in time")
		s.finish(next, "done")
	}},
	{"the old token of a run that waits again is dead", func(s *stage) {
		old := s.held()
		s.sleep(old, "nap", time.Hour)
		_, err := s.tryComplete(old, "pay", "late")
		s.lost(err, engine.RunSleeping, "CompleteStep after a sleep")
		_, err = s.tryBegin(old, "pay")
		s.lost(err, engine.RunSleeping, "BeginStep after a sleep")
		s.pass(time.Hour)
		l := s.claim("w1").Lease
		s.fail(l, "pay", "no")
		_, err = s.tryComplete(l, "ship", "late")
		s.lost(err, engine.RunPending, "CompleteStep after a retry")
		s.status(old.RunID, engine.RunPending)
	}},
	{"a lease that nobody took still counts, however old", func(s *stage) {
		l := s.held()
		s.pass(365 * 24 * time.Hour)
		s.complete(l, "pay", "late but first")
		s.finish(l, "done")
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"results that counted are answered OK after the run was handed on", func(s *stage) {
		old := s.held()
		done := s.complete(old, "pay", "paid")
		s.lose("w1")
		next := s.claim("w1").Lease
		s.sameStep(s.complete(old, "pay", "paid"), done)
		_, err := s.tryComplete(old, "pay", "other")
		s.refused(err, engine.ErrConflict, "other content")
		s.finish(next, "done")
		s.sameStep(s.complete(old, "pay", "paid"), done)
		equal(s, "attempts", len(s.attempts(old.RunID, "pay")), 1)
	}},
	{"a lease of one run opens no other", func(s *stage) {
		a, b := s.held(), s.heldNext()
		mixed := engine.Lease{Namespace: space, RunID: b.RunID, Token: a.Token}
		for _, verb := range leasedVerbs {
			s.lost(verb.call(s, mixed), engine.RunRunning, verb.name)
		}
		s.status(b.RunID, engine.RunRunning)
	}},
	{"the zero token opens nothing", func(s *stage) {
		s.worker("w1")
		for status, run := range s.endedRuns() {
			for _, verb := range leasedVerbs {
				s.lost(verb.call(s, engine.Lease{Namespace: space, RunID: run}), status, verb.name)
			}
		}
	}},
	{"the current lease can be looked up", func(s *stage) {
		l := s.held()
		got, err := s.store.CurrentLease(s.ctx, space, l.RunID)
		s.must(err, "CurrentLease")
		equal(s, "token", got.Token, l.Token)
		equal(s, "run", got.RunID, l.RunID)
		s.sleep(l, "nap", time.Hour)
		_, err = s.store.CurrentLease(s.ctx, space, l.RunID)
		s.lost(err, engine.RunSleeping, "CurrentLease of a sleeping run")
		s.cancel(l.RunID)
		_, err = s.store.CurrentLease(s.ctx, space, l.RunID)
		s.lost(err, engine.RunCancelled, "CurrentLease of an ended run")
		_, err = s.store.CurrentLease(s.ctx, space, s.id())
		s.refused(err, engine.ErrNotFound, "CurrentLease of an unknown run")
	}},
	{"a worker's leases are listed in the order of their runs", func(s *stage) {
		s.worker("w1")
		s.worker("w2")
		for range 5 {
			s.start()
		}
		low := s.claimWith(s.claimParams("w2")).Tasks
		tasks := s.claimWith(s.claimParams("w1", "w2", "w1")).Tasks
		got := s.heldBy("w1")
		equal(s, "leases", len(got), 2)
		equal(s, "first", got[0].Token, tasks[0].Lease.Token)
		equal(s, "second", got[1].Token, tasks[2].Lease.Token)
		equal(s, "first of w2", s.heldBy("w2")[0].RunID, low[0].Run.ID)
		equal(s, "leases of nobody", len(s.heldBy("nobody")), 0)
	}},
}

// runsOfEveryStatus is one run for each status; w1 and w2 are registered, and hold nothing else.
func (s *stage) runsOfEveryStatus() map[engine.RunStatus]engine.ID {
	s.Helper()
	runs := s.endedRuns()
	sleeping := s.heldNext()
	s.sleep(sleeping, "nap", time.Hour)
	running := s.heldNext()
	s.complete(running, "pay", "paid")
	runs[engine.RunSleeping], runs[engine.RunRunning] = sleeping.RunID, running.RunID
	runs[engine.RunPending] = s.start()
	return runs
}
