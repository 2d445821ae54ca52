package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var upkeepCases = []testCase{
	{"an attempt past its limit is failed, retried later, and the lease is over", func(s *stage) {
		l := s.held()
		first := s.begin(l, "pay", startToClose(time.Second))
		out := s.timeOut(s.now.Add(time.Second - time.Microsecond))
		equal(s, "timed out too early", len(out.Attempts), 0)
		s.sameTime("next", out.Next, first.TimeoutAt)
		s.now = first.TimeoutAt
		want := engine.AfterStepFailed(nil, nil, 1, engine.StepTimedOutFailure(), s.now, 0.5)
		out = s.timeOut(s.now)
		equal(s, "timed out", timedOutText(out), timedOutText(timedOut(l.RunID, "pay", want)))
		equal(s, "its worker", out.Attempts[0].Worker, "w1")
		step := s.step(l.RunID, "pay")
		equal(s, "status", step.Status, engine.StepPending)
		equal(s, "failures", step.Failures, 1)
		s.failure("error", step.Error, engine.StepTimedOutFailure())
		s.sameTime("retry at", step.RetryAt, want.RetryAt)
		s.sameTime("timeout at", step.TimeoutAt, time.Time{})
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, want.RetryAt)
		equal(s, "attempts", run.Attempts, 2)
		equal(s, "losses", run.LeaseLosses, 0)
		equal(s, "leases", len(s.heldBy("w1")), 0)
		_, err := s.tryComplete(l, "pay", "late")
		s.lost(err, engine.RunPending, "CompleteStep of what timed out")
		equal(s, "timed out again", len(s.timeOut(s.now).Attempts), 0)
	}},
	{"an attempt that times out for the last time fails, and the run is due at once", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		s.begin(l, "pay", startToClose(time.Second))
		s.pass(time.Minute)
		equal(s, "timed out", timedOutText(s.timeOut(s.now)), timedOutText(timedOut(l.RunID, "pay", engine.Verdict{})))
		step := s.step(l.RunID, "pay")
		equal(s, "status", step.Status, engine.StepFailed)
		s.failure("error", step.Error, engine.StepTimedOutFailure())
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, s.now)
		equal(s, "attempts", run.Attempts, 1)
		begun, err := s.tryBegin(s.claim("w1").Lease, "pay")
		s.must(err, "BeginStep")
		equal(s, "execute", begun.Execute, false)
		s.failure("error for the code", begun.Step.Error, engine.StepTimedOutFailure())
	}},
	{"nobody is told that a late report counted, also when the run has ended since", func(s *stage) {
		l := s.held()
		s.begin(l, "pay", startToClose(time.Second))
		s.pass(time.Minute)
		s.timeOut(s.now)
		_, err := s.tryFail(l, "pay", "late")
		s.lost(err, engine.RunPending, "FailStep of what timed out")
		s.cancel(l.RunID)
		_, err = s.tryFail(l, "pay", "late")
		s.lost(err, engine.RunCancelled, "FailStep of what timed out before the end")
		_, err = s.tryComplete(l, "pay", "late")
		s.lost(err, engine.RunCancelled, "CompleteStep of what timed out before the end")
	}},
	{"a timeout interrupts the siblings and parks the run at the earliest", func(s *stage) {
		l := s.held()
		s.begin(l, "slow", startToClose(time.Second))
		s.begin(l, "other", startToClose(time.Hour))
		s.sleep(l, "nap", time.Second+time.Millisecond, held)
		wake := s.now.Add(time.Second + time.Millisecond)
		s.pass(time.Second)
		s.sameTime("next", s.timeOut(s.now).Next, time.Time{})
		s.failure("error of the sibling", s.step(l.RunID, "other").Error, engine.InterruptedFailure())
		run := s.status(l.RunID, engine.RunSleeping)
		s.sameTime("available at", run.AvailableAt, wake)
		equal(s, "waiting for", run.WaitingFor, "timer:nap")
	}},
	{"a timeout for good has the run due at once, whatever else it waits for", func(s *stage) {
		l := s.held()
		s.begin(l, "slow", startToClose(time.Second), stepPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		s.begin(l, "other", startToClose(time.Second+time.Millisecond), stepPolicy(engine.RetryPolicy{MaximumAttempts: 9, InitialIntervalMS: 60_000}))
		s.sleep(l, "nap", time.Hour, held)
		s.pass(time.Minute)
		s.timeOut(s.now)
		equal(s, "status of the one step", s.step(l.RunID, "slow").Status, engine.StepFailed)
		equal(s, "status of the other", s.step(l.RunID, "other").Status, engine.StepPending)
		s.sameTime("available at", s.status(l.RunID, engine.RunPending).AvailableAt, s.now)
	}},
	{"timeouts are swept oldest first, so many at a time, and the next is known", func(s *stage) {
		a, b, c := s.held(), s.heldNext(), s.heldNext()
		s.begin(b, "pay", startToClose(2*time.Second))
		s.begin(a, "pay", startToClose(time.Second))
		last := s.begin(c, "pay", startToClose(time.Hour))
		s.pass(time.Minute)
		out, err := s.store.TimeoutSteps(s.ctx, engine.TimeoutStepsParams{Now: s.now, Limit: 1})
		s.must(err, "TimeoutSteps")
		equal(s, "timed out", len(out.Attempts), 1)
		equal(s, "run that timed out", out.Attempts[0].RunID, a.RunID)
		s.sameTime("next", out.Next, s.now.Add(-time.Minute+2*time.Second))
		s.status(a.RunID, engine.RunPending)
		s.status(b.RunID, engine.RunRunning)
		out = s.timeOut(s.now)
		equal(s, "timed out", len(out.Attempts), 1)
		s.sameTime("next", out.Next, last.TimeoutAt)
		s.status(c.RunID, engine.RunRunning)
	}},
	{"a sweep of timeouts leaves the first alone that it is to skip", func(s *stage) {
		a, b := s.held(), s.heldNext()
		s.begin(a, "pay", startToClose(time.Second))
		s.begin(b, "pay", startToClose(2*time.Second))
		s.pass(time.Minute)
		for _, want := range []int{1, 0} {
			out, err := s.store.TimeoutSteps(s.ctx, engine.TimeoutStepsParams{Now: s.now, Limit: 10, Skip: 1})
			s.must(err, "TimeoutSteps")
			equal(s, "timed out", len(out.Attempts), want)
			s.sameTime("next", out.Next, time.Time{})
		}
		s.status(a.RunID, engine.RunRunning)
		s.status(b.RunID, engine.RunPending)
	}},
	{"a step that ended in time or was interrupted does not time out", func(s *stage) {
		l := s.held()
		s.begin(l, "done", startToClose(time.Second))
		s.complete(l, "done", "x")
		s.begin(l, "failed", startToClose(time.Second))
		s.fail(l, "failed", "no", holding)
		s.begin(l, "cut", startToClose(time.Second))
		s.release(l, false)
		s.begin(s.claim("w1").Lease, "cut", startToClose(time.Hour))
		s.pass(time.Minute)
		out := s.timeOut(s.now)
		equal(s, "timed out", len(out.Attempts), 0)
		s.sameTime("next", out.Next, s.now.Add(time.Hour-time.Minute))
		s.cancel(l.RunID)
		s.sameTime("next without an open step", s.timeOut(s.now).Next, time.Time{})
	}},
	{"prune deletes what ended before a moment, with everything of it", func(s *stage) {
		s.worker("w1")
		l := s.heldNext(withExternal("ext"), withRequest("req"), tagged("k", "v"))
		step := s.complete(l, "pay", "paid")
		s.started(s.newRun(withExternal("ext"), withRequest("second")))
		s.finish(l, "done")
		ended := s.now
		equal(s, "runs that ended at that very moment", s.prune(ended, 10), 0)
		equal(s, "runs that ended before it", s.prune(ended.Add(time.Microsecond), 10), 1)
		_, err := s.store.GetRun(s.ctx, space, l.RunID)
		s.refused(err, engine.ErrNotFound, "GetRun")
		_, err = s.store.GetStep(s.ctx, space, step.ID)
		s.refused(err, engine.ErrNotFound, "GetStep")
		_, _, err = s.store.ListSteps(s.ctx, space, l.RunID, "", engine.Page{Limit: 1})
		s.refused(err, engine.ErrNotFound, "ListSteps")
		_, err = s.store.GetRunByExternalID(s.ctx, space, "ext")
		s.refused(err, engine.ErrNotFound, "GetRunByExternalID")
		s.refused(s.tryFinish(l, "done"), engine.ErrNotFound, "CompleteRun repeated")
		s.sameIDs("runs with the tag", s.listed(engine.RunFilter{Namespace: space, Tags: map[string]string{"k": "v"}}), nil)
		for _, request := range []string{"req", "second"} {
			again := s.newRun(withRequest(request), ofType("other"))
			equal(s, "a start with a forgotten request", s.started(again), engine.Started{RunID: again.ID})
		}
	}},
	{"prune takes the oldest first and no more than it may", func(s *stage) {
		s.worker("w1")
		var leases []engine.Lease
		for range 5 {
			leases = append(leases, s.heldNext())
		}
		for _, i := range []int{3, 1, 4, 0, 2} {
			s.pass(time.Second)
			s.finish(leases[i], "done")
		}
		s.pass(time.Second)
		equal(s, "pruned", s.prune(s.now, 2), 2)
		for i, gone := range []bool{false, true, false, true, false} {
			_, err := s.store.GetRun(s.ctx, space, leases[i].RunID)
			equal(s, "gone", err != nil, gone)
		}
		equal(s, "pruned", s.prune(s.now, 10), 3)
		equal(s, "pruned", s.prune(s.now, 10), 0)
	}},
	{"prune never touches a run that has not ended, or another run's rows", func(s *stage) {
		running, sleeping := s.held(withExternal("ext"), tagged("k", "v")), s.heldNext()
		done := s.complete(running, "pay", "paid")
		s.sleep(sleeping, "nap", 1000*time.Hour)
		s.fail(s.heldNext(), "pay", "no")
		s.cancel(s.start(tagged("k", "v")))
		pending := s.start(withRequest("req"))
		s.pass(1000 * 24 * time.Hour)
		before := []engine.Run{s.run(running.RunID), s.run(sleeping.RunID), s.run(pending)}
		equal(s, "pruned", s.prune(s.now, 100), 1)
		for _, run := range before {
			s.sameRun(s.run(run.ID), run)
		}
		s.sameStep(s.step(running.RunID, "pay"), done)
		s.sameIDs("runs with the tag", s.listed(engine.RunFilter{Namespace: space, Tags: map[string]string{"k": "v"}}), []engine.ID{running.RunID})
		s.finish(running, "done")
	}},
	{"prune takes every kind of end", func(s *stage) {
		s.worker("w1")
		ended := s.endedRuns()
		s.pass(time.Second)
		equal(s, "pruned", s.prune(s.now, 100), len(ended))
		equal(s, "runs", s.countRuns(), 0)
	}},
	{"prune forgets workers that went OFFLINE before it, and no others", func(s *stage) {
		s.worker("gone")
		s.worker("online")
		s.worker("recent")
		s.offline("gone", engine.OfflineDeregistered)
		s.pass(time.Hour)
		s.offline("recent", engine.OfflineLost)
		s.prune(s.now, 10)
		_, err := s.store.GetWorker(s.ctx, "gone")
		s.refused(err, engine.ErrNotFound, "GetWorker")
		equal(s, "status", s.workerState("online").Status, engine.WorkerOnline)
		equal(s, "status", s.workerState("recent").Status, engine.WorkerOffline)
	}},
	{"audit events of long ago are forgotten, oldest first, so many at a time, in every namespace and in none", func(s *stage) {
		note := func(namespace, subject string) {
			s.Helper()
			e := engine.AuditEvent{ID: s.id(), At: s.now, Method: "CancelWorkflow", Namespace: namespace, Subject: "run", SubjectID: subject, Outcome: "PERMISSION_DENIED"}
			s.must(s.store.NoteRefusal(s.ctx, e), "NoteRefusal")
		}
		left := func(want ...string) {
			s.Helper()
			var got []string
			for _, namespace := range []string{space, "other", ""} {
				events, _, err := s.store.ListAuditEvents(s.ctx, engine.AuditFilter{Namespace: namespace}, engine.Page{Limit: 10})
				s.must(err, "ListAuditEvents")
				for _, e := range events {
					got = append(got, e.SubjectID)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				s.Fatalf("audit events = %q, want %q", got, want)
			}
		}
		s.now = s.now.Truncate(time.Millisecond)
		begun := s.now
		for i, namespace := range []string{"other", space, "", space, space} {
			note(namespace, fmt.Sprint(i))
			s.pass(time.Second)
		}
		equal(s, "more", s.pruneRecords(engine.PruneRecordsParams{Workers: s.now, Fires: s.now, Limit: 2}), false)
		left("0", "1", "2", "3", "4")
		before := engine.PruneRecordsParams{Audit: begun.Add(3 * time.Second), Limit: 2}
		equal(s, "more", s.pruneRecords(before), true)
		left("2", "3", "4")
		equal(s, "more", s.pruneRecords(before), false)
		left("3", "4")
		equal(s, "more", s.pruneRecords(before), false)
		left("3", "4")
		before.Audit = begun.Add(3*time.Second + time.Millisecond)
		equal(s, "more", s.pruneRecords(before), false)
		left("4")
	}},
	{"old workers are more than a sweep takes", func(s *stage) {
		for _, id := range []string{"a", "b", "c"} {
			s.worker(id)
			s.offline(id, engine.OfflineDeregistered)
		}
		s.pass(time.Hour)
		p := engine.PruneRecordsParams{Workers: s.now, Limit: 2}
		equal(s, "more", s.pruneRecords(p), true)
		equal(s, "more", s.pruneRecords(p), false)
		_, err := s.store.GetWorker(s.ctx, "c")
		s.refused(err, engine.ErrNotFound, "GetWorker")
	}},
	{"live workers are those that are not OFFLINE, of all namespaces", func(s *stage) {
		s.worker("a")
		s.pass(time.Second)
		s.worker("b")
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "b", Now: s.now}), "DrainWorker")
		other := s.newWorker("c")
		other.Namespace = "other"
		s.register(other, true)
		s.worker("d")
		s.offline("d", engine.OfflineForced)
		live, err := s.store.LiveWorkers(s.ctx)
		s.must(err, "LiveWorkers")
		heard := map[string]time.Time{}
		for _, w := range live {
			heard[w.ID] = w.HeardAt
		}
		equal(s, "live workers", len(live), 3)
		s.sameTime("a was heard", heard["a"], s.now.Add(-time.Second))
		s.sameTime("b was heard", heard["b"], s.now)
		s.sameTime("c was heard", heard["c"], s.now)
	}},
}

func (s *stage) pruneRecords(p engine.PruneRecordsParams) (more bool) {
	s.Helper()
	more, err := s.store.PruneRecords(s.ctx, p)
	s.must(err, "PruneRecords")
	return more
}

func (s *stage) prune(before time.Time, limit int) int {
	s.Helper()
	n, err := pruneAll(s.ctx, s.store, before, limit)
	s.must(err, "Prune")
	return n
}

// pruneAll prunes runs of every outcome, at most limit in all, and old workers.
func pruneAll(ctx context.Context, store engine.Store, before time.Time, limit int) (n int, err error) {
	for status := engine.RunCompleted; status <= engine.RunTerminated && err == nil; status++ {
		deleted := 0
		if status.String() != "UNKNOWN" && n < limit {
			deleted, err = store.Prune(ctx, engine.PruneParams{Namespace: space, Status: status, Before: before, Limit: limit - n})
		}
		n += deleted
	}
	if err == nil {
		_, err = store.PruneRecords(ctx, engine.PruneRecordsParams{Workers: before, Limit: limit})
	}
	return n, err
}
