package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// ImportedCases are about imported runs, and about how long runs are kept.
var ImportedCases = []fixture.Case{
	{Name: "imported runs keep their fields, open ones are paused", Run: func(s *fixture.F) {
		parent, child := s.ID(), s.ID()
		stepID := s.ID()
		ended := engine.Run{
			ID: child, Namespace: fixture.Space, ExternalID: "taken", Queue: fixture.Queue, Type: fixture.Kind,
			Status: engine.RunFailed, Attempts: 5, Failures: 2, Bytes: 5,
			Input: fixture.Text("in"), Output: fixture.Text("out"), Error: &engine.Failure{Message: "no"},
			CreatedAt: s.Now.Add(-time.Hour), StartedAt: s.Now.Add(-time.Hour),
			FinishedAt: s.Now.Add(-time.Minute), ParentRunID: parent, ParentStepID: stepID, Origin: engine.OriginImport,
			Unreached: []string{"left"},
		}
		open := engine.Run{ID: parent, Namespace: fixture.Space, ExternalID: "taken", Queue: fixture.Queue,
			Type: fixture.Kind, Status: engine.RunSleeping, Attempts: 1, Steps: 1,
			Input: fixture.Text("in"), CreatedAt: s.Now.Add(-time.Hour), StartedAt: s.Now.Add(-time.Hour),
			Origin: engine.OriginImport}
		step := engine.Step{ID: stepID, RunID: parent, Name: "ship", Kind: engine.StepFunction,
			Status: engine.StepCompleted, Attempt: 1, Latest: true,
			Sequence: 1, Output: fixture.Text("x"), CreatedAt: s.Now, StartedAt: s.Now, FinishedAt: s.Now,
			Settled: 4, Branch: "2.1", BegunIn: 2}
		s.Start(fixture.WithExternal("taken"), fixture.OfType("other"))
		p := engine.ImportRunsParams{Namespace: fixture.Space, RequestID: "import", By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now, Runs: []engine.ImportedRun{
				{Run: open, Steps: []engine.Step{step},
					Signals: []engine.Signal{{RunID: parent, Sequence: 1, Name: "go", Payload: fixture.Text("!"),
						ReceivedAt: s.Now}}},
				{Run: ended},
			}}
		for i := range p.Runs {
			s.Must(p.Runs[i].Validate(), "Validate")
		}
		answer, err := s.Store.ImportRuns(s.Ctx, p)
		s.Must(err, "ImportRuns")
		fixture.Equal(s, "run", answer.RunID, parent)
		got := s.Run(parent)
		fixture.Equal(s, "paused", got.Paused, true)
		fixture.Equal(s, "status", got.Status, engine.RunPending)
		kept := s.Step(parent, "ship")
		place := fmt.Sprintf("%d %s %d", kept.Settled, kept.Branch, kept.BegunIn)
		fixture.Equal(s, "place, branch and epoch", place, "4 2.1 2")
		fixture.Equal(s, "owed from", got.OwedFrom, 3)
		got = s.Status(child, engine.RunFailed)
		s.Tried(child, 3, 2)
		fixture.Equal(s, "unreached", fmt.Sprint(got.Unreached), "[left]")
		s.Payload("output", got.Output, fixture.Text("out"))
		s.SameTime("finished at", got.FinishedAt, ended.FinishedAt)
		again, err := s.Store.ImportRuns(s.Ctx, p)
		s.Must(err, "ImportRuns repeated")
		fixture.Equal(s, "repeated", again.Repeated, true)
		p.Runs[0].Run.Input = fixture.Text("other")
		_, err = s.Store.ImportRuns(s.Ctx, p)
		s.Refused(err, engine.ErrConflict, "ImportRuns repeated with another run")
		p.RequestID = ""
		_, err = s.Store.ImportRuns(s.Ctx, p)
		s.Refused(err, engine.ErrExists, "ImportRuns under ids that are taken")
		s.Worker("w1")
		s.Resume(parent)
		task := s.Claim("w1")
		s.Payload("history", task.History[0].Output, fixture.Text("x"))
		fixture.Equal(s, "signals", s.Await(task.Lease, "go", "go").Waiting, false)
	}},
	{Name: "an imported run that waits for its retry continues", Run: func(s *fixture.F) {
		s.Worker("w1")
		policy := engine.RetryPolicy{MaximumAttempts: 3}
		imported := func() engine.Lease {
			s.Helper()
			run := engine.Run{ID: s.ID(), Namespace: fixture.Space, Queue: fixture.Queue, Type: fixture.Kind,
				Status: engine.RunPending, Attempts: 2, RetryPolicy: &policy,
				Input: fixture.Text("in"), Error: &engine.Failure{Message: "no"}, CreatedAt: s.Now.Add(-time.Hour),
				Origin: engine.OriginImport}
			step := engine.Step{ID: s.ID(), RunID: run.ID, Name: "ship", Kind: engine.StepFunction,
				Status: engine.StepFailed, Attempt: 1, Latest: true,
				// the exported run does not hold its error
				Sequence: 1, CreatedAt: s.Now, StartedAt: s.Now, FinishedAt: s.Now}
			p := engine.ImportRunsParams{Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
				Runs: []engine.ImportedRun{{Run: run, Steps: []engine.Step{step}}}}
			s.Must(p.Runs[0].Validate(), "Validate")
			_, err := s.Store.ImportRuns(s.Ctx, p)
			s.Must(err, "ImportRuns")
			s.Resume(run.ID)
			return s.Claim("w1").Lease
		}
		l := imported()
		s.Failure("error", s.Run(l.RunID).Error, engine.Failure{Message: "no"})
		s.Finish(l, "done")
		if run := s.Status(l.RunID, engine.RunCompleted); run.Error != nil {
			s.Fatalf("a COMPLETED run has the error %v, want none", run.Error)
		}
		l = imported()
		v := s.FailRun(l, "no again")
		fixture.Equal(s, "retry", v.Retry, true)
		fixture.Equal(s, "status of the step", s.Step(l.RunID, "ship").Status, engine.StepPending)
	}},
	{Name: "an imported run that ends closes its imported children", Run: func(s *fixture.F) {
		s.Worker("w1")
		run := func(parent engine.ID) engine.ImportedRun {
			return engine.ImportedRun{Run: engine.Run{
				ID: s.ID(), Namespace: fixture.Space, Queue: fixture.Queue, Type: fixture.Kind,
				Status: engine.RunPending, Attempts: 1, Input: fixture.Text("in"),
				CreatedAt: s.Now, Origin: engine.OriginImport, ParentRunID: parent, ParentClose: engine.CloseCancel}}
		}
		parent := run(engine.ID{})
		child := run(parent.Run.ID)
		_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{
			Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
			Runs: []engine.ImportedRun{parent, child}})
		s.Must(err, "ImportRuns")
		s.Resume(parent.Run.ID)
		s.Finish(s.Claim("w1").Lease, "done")
		s.Status(child.Run.ID, engine.RunCancelled)
	}},
	{Name: "an imported open run loses any end that it names", Run: func(s *fixture.F) {
		s.Worker("w1")
		run := engine.Run{ID: s.ID(), Namespace: fixture.Space, Queue: fixture.Queue, Type: fixture.Kind,
			Status: engine.RunPending, Attempts: 1, Input: fixture.Text("in"),
			Output: fixture.Text("out"), CreatedAt: s.Now.Add(-time.Hour), FinishedAt: s.Now.Add(-time.Minute),
			ContinuedAs: s.ID(), Origin: engine.OriginImport,
			OnFailureWorkflow: "mourn"}
		_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{
			Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
			Runs: []engine.ImportedRun{{Run: run}}})
		s.Must(err, "ImportRuns")
		open := []engine.RunStatus{engine.RunPending, engine.RunRunning, engine.RunSleeping}
		list, _, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space, Statuses: open},
			engine.Page{Limit: 10})
		s.Must(err, "ListRuns")
		fixture.Equal(s, "open runs", len(list), 1)
		s.Resume(run.ID)
		s.FailRun(s.Claim("w1").Lease, "no")
		got := s.Status(run.ID, engine.RunFailed)
		s.Payload("output", got.Output, engine.Payload{})
		handlers, err := s.Store.ListHandlers(s.Ctx, fixture.Space, run.ID)
		s.Must(err, "ListHandlers")
		fixture.Equal(s, "handlers", len(handlers), 1)
	}},
	{Name: "a pinned run is not pruned until it is unpinned", Run: func(s *fixture.F) {
		run := s.Failed()
		pin := func(pinned bool) {
			s.Helper()
			r, err := s.Store.PinRun(s.Ctx, engine.PinRunParams{SteerParams: s.Steer(run, ""), Pinned: pinned})
			s.Must(err, "PinRun")
			fixture.Equal(s, "pinned", r.Pinned, pinned)
		}
		pin(true)
		pin(true)
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 0)
		pin(false)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 1)
	}},
	{Name: "retention of an imported run counts from its import",
		Run: func(s *fixture.F) {
			ago := s.Now.Add(-24 * time.Hour)
			run := func(id engine.ID) engine.ImportedRun {
				return engine.ImportedRun{Run: engine.Run{
					ID: id, Namespace: fixture.Space, Queue: fixture.Queue, Type: fixture.Kind,
					Status: engine.RunFailed, Attempts: 1,
					Input: fixture.Text("in"), CreatedAt: ago, FinishedAt: ago, Origin: engine.OriginImport}}
			}
			first := engine.FirstID(s.Now)
			other := engine.DerivedID(s.Now, first, "other")
			for _, id := range []engine.ID{first, other} {
				_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{
					Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
					Runs: []engine.ImportedRun{run(id)},
				})
				s.Must(err, "ImportRuns")
			}
			fixture.Equal(s, "pruned with the runs that ended before the import", s.Prune(s.Now, 10), 0)
			fixture.Equal(s, "pruned when it was imported so long ago itself",
				s.Prune(s.Now.Add(time.Millisecond), 10), 2)
		}},
	{Name: "a run is kept while an open run refers to it", Run: func(s *fixture.F) {
		s.ChildWorker()
		old := s.Failed("a")
		retried := s.Retry(old).RunID
		l := s.Held(fixture.OfType(fixture.Kind), func(r *engine.StartRun) { r.Priority = 9 })
		child := s.Child(l, "ship")
		s.Finish(s.ClaimChild(child), "")
		abandoned := s.Held(fixture.WithPriority(9))
		grown := s.Child(abandoned, "ship", fixture.Closing(engine.CloseAbandon))
		s.Finish(abandoned, "")
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 0)
		s.Cancel(retried)
		s.Finish(l, "done")
		s.Cancel(grown)
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 6)
		for _, id := range []engine.ID{old, retried, l.RunID, child, abandoned.RunID, grown} {
			_, err := s.Store.GetRun(s.Ctx, fixture.Space, id)
			s.Refused(err, engine.ErrNotFound, fmt.Sprint("GetRun of ", id))
		}
	}},
	{Name: "a run is kept while its handler or continuation is open", Run: func(s *fixture.F) {
		l := s.Held(onFailure)
		s.FailRun(l, "no")
		handler := s.Handler(l.RunID).ID
		going := s.Held(fixture.WithPriority(9))
		next := s.NewRun()
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: going, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned", s.Prune(s.Now, 10), 0)
		s.Cancel(handler)
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned when the handler has ended", s.Prune(s.Now, 10), 2)
		s.Cancel(next.ID)
		s.Pass(time.Hour)
		fixture.Equal(s, "pruned when the next has ended", s.Prune(s.Now, 10), 2)
		for _, id := range []engine.ID{l.RunID, handler, going.RunID, next.ID} {
			_, err := s.Store.GetRun(s.Ctx, fixture.Space, id)
			s.Refused(err, engine.ErrNotFound, fmt.Sprint("GetRun of ", id))
		}
	}},
	{Name: "a kept run does not keep runs that ended after it", Run: func(s *fixture.F) {
		old := s.Failed()
		s.Pass(time.Minute)
		next := s.Failed()
		open := s.Retry(old).RunID
		s.Pass(time.Hour)
		prune := func(what string, want int) {
			s.Helper()
			n, err := s.Store.Prune(s.Ctx, engine.PruneParams{
				Namespace: fixture.Space, Status: engine.RunFailed, Before: s.Now, Limit: 1})
			s.Must(err, "Prune")
			fixture.Equal(s, what, n, want)
		}
		prune("pruned behind the one that stays", 1)
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, next)
		s.Refused(err, engine.ErrNotFound, "GetRun")
		prune("pruned while only that one is left", 0)
		s.Cancel(open)
		prune("pruned when it need not stay", 1)
	}},
	{Name: "retention is by namespace and status", Run: func(s *fixture.F) {
		s.Failed()
		l := s.Held()
		s.Finish(l, "done")
		elsewhere := s.Start(fixture.InSpace("elsewhere"))
		_, err := s.Store.CancelRun(s.Ctx, engine.EndRunParams{
			Namespace: "elsewhere", RunID: elsewhere, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "CancelRun")
		s.Pass(time.Hour)
		prune := func(namespace string, status engine.RunStatus, before time.Time) int {
			s.Helper()
			n, err := s.Store.Prune(s.Ctx, engine.PruneParams{
				Namespace: namespace, Status: status, Before: before, Limit: 10})
			s.Must(err, "Prune")
			return n
		}
		fixture.Equal(s, "of another outcome", prune(fixture.Space, engine.RunCancelled, s.Now), 0)
		fixture.Equal(s, "of another namespace", prune("elsewhere", engine.RunFailed, s.Now), 0)
		fixture.Equal(s, "before it ended", prune(fixture.Space, engine.RunFailed, s.Now.Add(-time.Hour)), 0)
		fixture.Equal(s, "failed", prune(fixture.Space, engine.RunFailed, s.Now), 1)
		fixture.Equal(s, "completed", prune(fixture.Space, engine.RunCompleted, s.Now), 1)
		fixture.Equal(s, "elsewhere", prune("elsewhere", engine.RunCancelled, s.Now), 1)
	}},
}
