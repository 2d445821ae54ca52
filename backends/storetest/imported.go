package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// importedCases are the runs that come from elsewhere, and how long runs are kept.
var importedCases = []testCase{
	{"imported runs stand as they are given, open ones paused", func(s *stage) {
		parent, child := s.id(), s.id()
		stepID := s.id()
		ended := engine.Run{
			ID: child, Namespace: space, ExternalID: "taken", Queue: queue, Type: kind, Status: engine.RunFailed, Attempts: 3, Bytes: 5,
			Input: text("in"), Output: text("out"), Error: &engine.Failure{Message: "no"}, CreatedAt: s.now.Add(-time.Hour), StartedAt: s.now.Add(-time.Hour),
			FinishedAt: s.now.Add(-time.Minute), ParentRunID: parent, ParentStepID: stepID, Origin: engine.OriginImport,
		}
		open := engine.Run{ID: parent, Namespace: space, ExternalID: "taken", Queue: queue, Type: kind, Status: engine.RunSleeping, Attempts: 1, Steps: 1,
			Input: text("in"), CreatedAt: s.now.Add(-time.Hour), StartedAt: s.now.Add(-time.Hour), Origin: engine.OriginImport}
		step := engine.Step{ID: stepID, RunID: parent, Name: "ship", Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
			Sequence: 1, Output: text("x"), CreatedAt: s.now, StartedAt: s.now, FinishedAt: s.now}
		s.start(withExternal("taken"), ofType("other"))
		p := engine.ImportRunsParams{Namespace: space, RequestID: "import", By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{
			{Run: open, Steps: []engine.Step{step}, Signals: []engine.Signal{{RunID: parent, Sequence: 1, Name: "go", Payload: text("!"), ReceivedAt: s.now}}},
			{Run: ended},
		}}
		for i := range p.Runs {
			s.must(p.Runs[i].Validate(), "Validate")
		}
		answer, err := s.store.ImportRuns(s.ctx, p)
		s.must(err, "ImportRuns")
		equal(s, "run", answer.RunID, parent)
		got := s.run(parent)
		equal(s, "paused", got.Paused, true)
		equal(s, "status", got.Status, engine.RunPending)
		got = s.status(child, engine.RunFailed)
		equal(s, "attempts", got.Attempts, 3)
		s.payload("output", got.Output, text("out"))
		s.sameTime("finished at", got.FinishedAt, ended.FinishedAt)
		again, err := s.store.ImportRuns(s.ctx, p)
		s.must(err, "ImportRuns repeated")
		equal(s, "repeated", again.Repeated, true)
		p.Runs[0].Run.Input = text("other")
		_, err = s.store.ImportRuns(s.ctx, p)
		s.refused(err, engine.ErrConflict, "ImportRuns repeated with another run")
		p.RequestID = ""
		_, err = s.store.ImportRuns(s.ctx, p)
		s.refused(err, engine.ErrExists, "ImportRuns under ids that are taken")
		s.worker("w1")
		s.resume(parent)
		task := s.claim("w1")
		s.payload("history", task.History[0].Output, text("x"))
		equal(s, "signals", s.await(task.Lease, "go", "go").Waiting, false)
	}},
	{"an imported run that waits to be tried again goes on as any other", func(s *stage) {
		s.worker("w1")
		policy := engine.RetryPolicy{MaximumAttempts: 3}
		imported := func() engine.Lease {
			s.Helper()
			run := engine.Run{ID: s.id(), Namespace: space, Queue: queue, Type: kind, Status: engine.RunPending, Attempts: 2, RetryPolicy: &policy,
				Input: text("in"), Error: &engine.Failure{Message: "no"}, CreatedAt: s.now.Add(-time.Hour), Origin: engine.OriginImport}
			step := engine.Step{ID: s.id(), RunID: run.ID, Name: "ship", Kind: engine.StepFunction, Status: engine.StepFailed, Attempt: 1, Latest: true,
				Sequence: 1, CreatedAt: s.now, StartedAt: s.now, FinishedAt: s.now} // what its error was the capsule does not tell
			p := engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{{Run: run, Steps: []engine.Step{step}}}}
			s.must(p.Runs[0].Validate(), "Validate")
			_, err := s.store.ImportRuns(s.ctx, p)
			s.must(err, "ImportRuns")
			s.resume(run.ID)
			return s.claim("w1").Lease
		}
		l := imported()
		s.failure("error", s.run(l.RunID).Error, engine.Failure{Message: "no"})
		s.finish(l, "done")
		if run := s.status(l.RunID, engine.RunCompleted); run.Error != nil {
			s.Fatalf("a COMPLETED run has the error %v, want none", run.Error)
		}
		l = imported()
		v := s.failRun(l, "no again")
		equal(s, "retry", v.Retry, true)
		equal(s, "status of the step", s.step(l.RunID, "ship").Status, engine.StepPending)
	}},
	{"an imported run that ends takes its imported children along", func(s *stage) {
		s.worker("w1")
		run := func(parent engine.ID) engine.ImportedRun {
			return engine.ImportedRun{Run: engine.Run{ID: s.id(), Namespace: space, Queue: queue, Type: kind, Status: engine.RunPending, Attempts: 1, Input: text("in"),
				CreatedAt: s.now, Origin: engine.OriginImport, ParentRunID: parent, ParentClose: engine.CloseCancel}}
		}
		parent := run(engine.ID{})
		child := run(parent.Run.ID)
		_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{parent, child}})
		s.must(err, "ImportRuns")
		s.resume(parent.Run.ID)
		s.finish(s.claim("w1").Lease, "done")
		s.status(child.Run.ID, engine.RunCancelled)
	}},
	{"an imported run that is open has come to no end, whatever it says", func(s *stage) {
		s.worker("w1")
		run := engine.Run{ID: s.id(), Namespace: space, Queue: queue, Type: kind, Status: engine.RunPending, Attempts: 1, Input: text("in"),
			Output: text("out"), CreatedAt: s.now.Add(-time.Hour), FinishedAt: s.now.Add(-time.Minute), ContinuedAs: s.id(), Origin: engine.OriginImport,
			OnFailureWorkflow: "mourn"}
		_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{{Run: run}}})
		s.must(err, "ImportRuns")
		open := []engine.RunStatus{engine.RunPending, engine.RunRunning, engine.RunSleeping}
		list, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space, Statuses: open}, engine.Page{Limit: 10})
		s.must(err, "ListRuns")
		equal(s, "open runs", len(list), 1)
		s.resume(run.ID)
		s.failRun(s.claim("w1").Lease, "no")
		got := s.status(run.ID, engine.RunFailed)
		s.payload("output", got.Output, engine.Payload{})
		handlers, err := s.store.ListHandlers(s.ctx, space, run.ID)
		s.must(err, "ListHandlers")
		equal(s, "handlers", len(handlers), 1)
	}},
	{"a pinned run is kept, and let go", func(s *stage) {
		run := s.failed()
		pin := func(pinned bool) {
			s.Helper()
			r, err := s.store.PinRun(s.ctx, engine.PinRunParams{SteerParams: s.steer(run, ""), Pinned: pinned})
			s.must(err, "PinRun")
			equal(s, "pinned", r.Pinned, pinned)
		}
		pin(true)
		pin(true)
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 0)
		pin(false)
		equal(s, "pruned", s.prune(s.now, 10), 1)
	}},
	{"an imported run is kept from when it was imported, however long ago it ended elsewhere", func(s *stage) {
		ago := s.now.Add(-24 * time.Hour)
		run := func(id engine.ID) engine.ImportedRun {
			return engine.ImportedRun{Run: engine.Run{ID: id, Namespace: space, Queue: queue, Type: kind, Status: engine.RunFailed, Attempts: 1,
				Input: text("in"), CreatedAt: ago, FinishedAt: ago, Origin: engine.OriginImport}}
		}
		first := engine.FirstID(s.now)
		other := engine.DerivedID(s.now, first, "other")
		for _, id := range []engine.ID{first, other} {
			_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{
				Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{run(id)},
			})
			s.must(err, "ImportRuns")
		}
		equal(s, "pruned with the runs that ended before the import", s.prune(s.now, 10), 0)
		equal(s, "pruned when it was imported so long ago itself", s.prune(s.now.Add(time.Millisecond), 10), 2)
	}},
	{"a run stays as long as an open one refers to it", func(s *stage) {
		s.childWorker()
		old := s.failed("a")
		retried := s.retry(old).RunID
		l := s.held(ofType(kind), func(r *engine.StartRun) { r.Priority = 9 })
		child := s.child(l, "ship")
		s.finish(s.claimChild(child), "")
		abandoned := s.held(withPriority(9))
		grown := s.child(abandoned, "ship", closing(engine.CloseAbandon))
		s.finish(abandoned, "")
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 0)
		s.cancel(retried)
		s.finish(l, "done")
		s.cancel(grown)
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 6)
		for _, id := range []engine.ID{old, retried, l.RunID, child, abandoned.RunID, grown} {
			_, err := s.store.GetRun(s.ctx, space, id)
			s.refused(err, engine.ErrNotFound, fmt.Sprint("GetRun of ", id))
		}
	}},
	{"a run stays as long as what handles its failure, or goes on for it, is open", func(s *stage) {
		l := s.held(onFailure)
		s.failRun(l, "no")
		handler := s.handler(l.RunID).ID
		going := s.held(withPriority(9))
		next := s.newRun()
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: going, ContinueAs: &next, Now: s.now}), "CompleteRun")
		s.pass(time.Hour)
		equal(s, "pruned", s.prune(s.now, 10), 0)
		s.cancel(handler)
		s.pass(time.Hour)
		equal(s, "pruned when the handler has ended", s.prune(s.now, 10), 2)
		s.cancel(next.ID)
		s.pass(time.Hour)
		equal(s, "pruned when the next has ended", s.prune(s.now, 10), 2)
		for _, id := range []engine.ID{l.RunID, handler, going.RunID, next.ID} {
			_, err := s.store.GetRun(s.ctx, space, id)
			s.refused(err, engine.ErrNotFound, fmt.Sprint("GetRun of ", id))
		}
	}},
	{"a run that stays keeps none that ended after it", func(s *stage) {
		old := s.failed()
		s.pass(time.Minute)
		next := s.failed()
		open := s.retry(old).RunID
		s.pass(time.Hour)
		prune := func(what string, want int) {
			s.Helper()
			n, err := s.store.Prune(s.ctx, engine.PruneParams{Namespace: space, Status: engine.RunFailed, Before: s.now, Limit: 1})
			s.must(err, "Prune")
			equal(s, what, n, want)
		}
		prune("pruned behind the one that stays", 1)
		_, err := s.store.GetRun(s.ctx, space, next)
		s.refused(err, engine.ErrNotFound, "GetRun")
		prune("pruned while only that one is left", 0)
		s.cancel(open)
		prune("pruned when it need not stay", 1)
	}},
	{"retention is by namespace and outcome", func(s *stage) {
		s.failed()
		l := s.held()
		s.finish(l, "done")
		elsewhere := s.start(inSpace("elsewhere"))
		_, err := s.store.CancelRun(s.ctx, engine.EndRunParams{Namespace: "elsewhere", RunID: elsewhere, By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "CancelRun")
		s.pass(time.Hour)
		prune := func(namespace string, status engine.RunStatus, before time.Time) int {
			s.Helper()
			n, err := s.store.Prune(s.ctx, engine.PruneParams{Namespace: namespace, Status: status, Before: before, Limit: 10})
			s.must(err, "Prune")
			return n
		}
		equal(s, "of another outcome", prune(space, engine.RunCancelled, s.now), 0)
		equal(s, "of another namespace", prune("elsewhere", engine.RunFailed, s.now), 0)
		equal(s, "before it ended", prune(space, engine.RunFailed, s.now.Add(-time.Hour)), 0)
		equal(s, "failed", prune(space, engine.RunFailed, s.now), 1)
		equal(s, "completed", prune(space, engine.RunCompleted, s.now), 1)
		equal(s, "elsewhere", prune("elsewhere", engine.RunCancelled, s.now), 1)
	}},
}
