package runs

import (
	"encoding/json"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var DeadlineCases = []fixture.Case{
	{Name: "a deadline ends a run in any open status", Run: func(s *fixture.F) {
		at := s.Now.Add(time.Minute)
		by := func(r *engine.StartRun) { r.DeadlineAt = at }
		s.Worker("w1")
		l := s.Held(by)
		sleeping := s.Held(by)
		s.Sleep(sleeping, "nap", time.Hour)
		waiting := s.Held(by)
		s.Await(waiting, "approval", "approval")
		pending, delayed, free := s.Start(by), s.Start(by, fixture.DueAt(s.Now.Add(time.Hour))), s.Start()
		paused := s.Start(by)
		s.Pause(paused)
		s.Begin(l, "pay")
		s.Pass(time.Minute - time.Microsecond)
		e := s.Expire()
		fixture.Equal(s, "expired before", e.Runs, 0)
		s.SameTime("next", e.Next, at)
		s.Pass(time.Microsecond)
		e = s.Expire()
		fixture.Equal(s, "expired", e.Runs, 5)
		s.SameTime("next", e.Next, time.Time{})
		for _, id := range []engine.ID{l.RunID, sleeping.RunID, waiting.RunID, pending, delayed} {
			run := s.Status(id, engine.RunTimedOut)
			s.Failure("error", run.Error, engine.DeadlineFailure(at))
			s.SameTime("finished at", run.FinishedAt, s.Now)
		}
		s.Status(free, engine.RunPending)
		s.Status(paused, engine.RunPending)
		s.Lost(s.TryFinish(l, "late"), engine.RunTimedOut, "CompleteRun after the deadline")
		s.Failure("error of the step", s.Step(l.RunID, "pay").Error, engine.RunEndedFailure())
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
	}},
	{Name: "EndExpired takes the earliest first, at most its limit", Run: func(s *fixture.F) {
		var ids []engine.ID
		for i := range 5 {
			ids = append(ids, s.Start(func(r *engine.StartRun) {
				r.DeadlineAt = s.Now.Add(time.Duration(5-i) * time.Second)
			}))
		}
		s.Pass(time.Minute)
		e, err := s.Store.EndExpired(s.Ctx, engine.EndExpiredParams{Now: s.Now, Limit: 2})
		s.Must(err, "EndExpired")
		fixture.Equal(s, "expired", e.Runs, 2)
		s.SameTime("next", e.Next, s.Run(ids[2]).DeadlineAt)
		s.Status(ids[4], engine.RunTimedOut)
		s.Status(ids[3], engine.RunTimedOut)
		s.Status(ids[2], engine.RunPending)
	}},
	{Name: "EndExpired skips the first runs as asked", Run: func(s *fixture.F) {
		var ids []engine.ID
		for i := range 4 {
			ids = append(ids, s.Start(func(r *engine.StartRun) {
				r.DeadlineAt = s.Now.Add(time.Duration(i+1) * time.Second)
			}))
		}
		s.Pass(3 * time.Second)
		for _, want := range []struct {
			n    int
			next engine.ID
		}{{1, ids[2]}, {1, ids[3]}, {0, ids[3]}} {
			e, err := s.Store.EndExpired(s.Ctx, engine.EndExpiredParams{Now: s.Now, Limit: 1, Skip: 1})
			s.Must(err, "EndExpired")
			fixture.Equal(s, "expired", e.Runs, want.n)
			s.SameTime("next", e.Next, s.Run(want.next).DeadlineAt)
		}
		s.Status(ids[0], engine.RunPending)
		s.Status(ids[1], engine.RunTimedOut)
		s.Status(ids[2], engine.RunTimedOut)
	}},
	{Name: "an ended run does not expire", Run: func(s *fixture.F) {
		l := s.Held(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Second) })
		s.Finish(l, "done")
		s.Pass(time.Minute)
		e := s.Expire()
		fixture.Equal(s, "expired", e.Runs, 0)
		s.SameTime("next", e.Next, time.Time{})
		s.Status(l.RunID, engine.RunCompleted)
	}},
	{Name: "the earlier of deadline and grace ends the run", Run: func(s *fixture.F) {
		by := func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Minute) }
		a, b := s.Held(by).RunID, s.Held(by).RunID
		s.CancelWithin(a, time.Second)
		s.CancelWithin(b, time.Hour)
		s.Pass(time.Minute)
		s.SameExpired(s.Expire(), engine.Expired{Runs: 2, Cancelled: []engine.ID{a}, TimedOut: []engine.ID{b}})
		s.Status(a, engine.RunCancelled)
		s.Status(b, engine.RunTimedOut)
	}},
	{Name: "a child that expires before its parent ends as itself",
		Run: func(s *fixture.F) {
			at := s.Now
			l := s.Held(func(r *engine.StartRun) { r.DeadlineAt = at.Add(2 * time.Minute) })
			child := s.Child(l, "ship", fixture.Closing(engine.CloseTerminate), func(r *engine.StartRun) {
				r.DeadlineAt = at.Add(time.Minute)
			})
			s.Pass(time.Hour)
			s.SameExpired(s.Expire(), engine.Expired{Runs: 2, TimedOut: []engine.ID{child, l.RunID}})
			s.Failure("error of the child", s.Status(child, engine.RunTimedOut).Error,
				engine.DeadlineFailure(at.Add(time.Minute)))
			s.Status(l.RunID, engine.RunTimedOut)
		}},
}

var HandlerCases = []fixture.Case{
	{Name: "a failed run starts its handler with the event as input",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.WithExternal("order-1"), func(r *engine.StartRun) {
				r.OnFailureWorkflow, r.OnFailureQueue = "mourn", "graves"
			})
			s.Pass(time.Minute)
			s.FailRun(l, "card declined")
			handler := s.Handler(l.RunID)
			fixture.Equal(s, "type", handler.Type, "mourn")
			fixture.Equal(s, "queue", handler.Queue, "graves")
			fixture.Equal(s, "external id", handler.ExternalID, "failure-"+l.RunID.String())
			fixture.Equal(s, "failed run", handler.FailedRunID, l.RunID)
			fixture.Equal(s, "status", handler.Status, engine.RunPending)
			s.SameTime("available at", handler.AvailableAt, s.Now)
			var event struct {
				Event         string `json:"event"`
				FailedRunID   string `json:"failed_run_id"`
				NamespaceID   string `json:"namespace_id"`
				WorkflowType  string `json:"workflow_type"`
				TaskQueue     string `json:"task_queue"`
				Status        string `json:"status"`
				Attempts      int    `json:"attempts"`
				OriginalInput []byte `json:"original_input"`
				StartedAt     string `json:"started_at"`
				FailedAt      string `json:"failed_at"`
				Error         struct{ Message, Type string }
			}
			s.Must(json.Unmarshal(s.Run(handler.ID).Input.Data, &event), "the event")
			fixture.Equal(s, "event", event.Event, "kagzi/workflow.failed")
			fixture.Equal(s, "failed_run_id", event.FailedRunID, l.RunID.String())
			fixture.Equal(s, "namespace_id", event.NamespaceID, fixture.Space)
			fixture.Equal(s, "workflow_type", event.WorkflowType, fixture.Kind)
			fixture.Equal(s, "task_queue", event.TaskQueue, fixture.Queue)
			fixture.Equal(s, "status", event.Status, "FAILED")
			fixture.Equal(s, "attempts", event.Attempts, 1)
			fixture.Equal(s, "original_input", string(event.OriginalInput), "input")
			fixture.Equal(s, "error", event.Error.Message+event.Error.Type, "card declinedboom")
			fixture.Equal(s, "failed_at", event.FailedAt, s.Now.Format(time.RFC3339Nano))
			fixture.Equal(s, "started_at", event.StartedAt, s.Run(l.RunID).StartedAt.Format(time.RFC3339Nano))
		}},
	{Name: "a retried handler is still a handler", Run: func(s *fixture.F) {
		l := s.Held(func(r *engine.StartRun) { r.OnFailureWorkflow = "mourn" })
		s.FailRun(l, "no")
		handler := s.Handler(l.RunID)
		s.Cancel(handler.ID)
		retried := s.Run(s.Retry(handler.ID).RunID)
		fixture.Equal(s, "failed run", retried.FailedRunID, l.RunID)
		s.Payload("input", retried.Input, s.Run(handler.ID).Input)
	}},
	{Name: "a handler without a queue runs in the failed run's queue", Run: func(s *fixture.F) {
		l := s.Held(onFailure)
		s.FailRun(l, "no")
		fixture.Equal(s, "queue", s.Handler(l.RunID).Queue, fixture.Queue)
	}},
	{Name: "deadlines and lost workers start handlers, people do not",
		Run: func(s *fixture.F) {
			late := s.Start(onFailure, func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Second) })
			s.Pass(time.Second)
			s.Expire()
			s.Handler(late)
			l := s.Held(onFailure)
			for i := 0; i < engine.MaxLeaseLosses; i++ {
				s.Lose("w1")
				if i < engine.MaxLeaseLosses-1 {
					s.Now = s.Run(l.RunID).AvailableAt
					s.Claim("w1")
				}
			}
			s.Status(l.RunID, engine.RunFailed)
			s.Handler(l.RunID)
			for _, end := range []func(engine.ID){
				func(id engine.ID) { s.Cancel(id) },
				func(id engine.ID) {
					_, err := s.Store.TerminateRun(s.Ctx, s.EndParams(id, ""))
					s.Must(err, "TerminateRun")
				},
			} {
				id := s.Start(onFailure)
				end(id)
				fixture.Equal(s, "handlers", len(s.Handlers(id)), 0)
			}
		}},
	{Name: "a run that is tried again starts no handler", Run: func(s *fixture.F) {
		l := s.Held(onFailure, fixture.WithPolicy(
			engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 1000, Jitter: -1}))
		s.FailRun(l, "no")
		fixture.Equal(s, "handlers", len(s.Handlers(l.RunID)), 0)
		s.Pass(time.Second)
		s.FailRun(s.Claim("w1").Lease, "no")
		s.Handler(l.RunID)
		fixture.Equal(s, "handlers after a repetition", len(s.Handlers(l.RunID)), 1)
	}},
	{Name: "a failed handler has no handler", Run: func(s *fixture.F) {
		w := s.NewWorker("undertaker")
		w.Types = []string{engine.GlobalHandler, "mourn"}
		s.Register(w, true)
		l := s.Held(onFailure)
		s.FailRun(l, "no")
		handlers := s.Handlers(l.RunID)
		fixture.Equal(s, "handlers", len(handlers), 2)
		for range handlers {
			p := s.ClaimParams("undertaker")
			p.Types = []string{engine.GlobalHandler, "mourn"}
			task := s.ClaimWith(p).Tasks[0]
			v, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{
				Lease: task.Lease, Failure: fixture.Boom("no"), Now: s.Now})
			s.Must(err, "FailRun")
			fixture.Equal(s, "handler", v.Handler, true)
			fixture.Equal(s, "handlers of the handler", len(s.Handlers(task.Run.ID)), 0)
		}
		runs, _, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space}, engine.Page{Limit: 100})
		s.Must(err, "ListRuns")
		fixture.Equal(s, "runs", len(runs), 3)
	}},
	{Name: "a run below a handler has no global handler", Run: func(s *fixture.F) {
		types := []string{engine.GlobalHandler, "mourn"}
		w := s.NewWorker("undertaker")
		w.Types = types
		s.Register(w, true)
		claim := func() engine.Task {
			s.Helper()
			p := s.ClaimParams("undertaker")
			p.Types = types
			return s.ClaimWith(p).Tasks[0]
		}
		fail := func(l engine.Lease) {
			s.Helper()
			_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{Lease: l, Failure: fixture.Boom("no"), Now: s.Now})
			s.Must(err, "FailRun")
		}
		l := s.Held()
		s.FailRun(l, "no")
		s.ChildWorker()
		child := s.Child(claim().Lease, "ask", onFailure)
		fixture.Equal(s, "the child is below a handler", s.Run(child).BelowHandler, true)
		held := s.ClaimChild(child)
		grandchild := s.Child(held, "again")
		fixture.Equal(s, "the grandchild is below a handler", s.Run(grandchild).BelowHandler, true)
		fail(held)
		handlers := s.Handlers(child)
		fixture.Equal(s, "handlers of the child", len(handlers), 1)
		fixture.Equal(s, "its own handler", handlers[0].Type, "mourn")
		fail(s.ClaimChild(grandchild))
		fixture.Equal(s, "handlers of the grandchild", len(s.Handlers(grandchild)), 0)
		again := s.Retry(grandchild).RunID
		fail(s.ClaimChild(again))
		fixture.Equal(s, "handlers of the grandchild's retry", len(s.Handlers(again)), 0)
	}},
	{Name: "a user's external id does not block a handler",
		Run: func(s *fixture.F) {
			l := s.Held(onFailure)
			squatter := s.Start(fixture.WithExternal("failure-"+l.RunID.String()), fixture.OfType("other"), onFailure)
			s.FailRun(l, "no")
			s.Handler(l.RunID)
			s.Status(squatter, engine.RunPending)
			again := s.Started(s.NewRun(fixture.WithExternal("failure-"+l.RunID.String()), fixture.OfType("other")))
			fixture.Equal(s, "run of the user's id", again.RunID, squatter)
			w := s.NewWorker("w2")
			w.Types = []string{"other"}
			s.Register(w, true)
			p := s.ClaimParams("w2")
			p.Types = []string{"other"}
			_, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{
				Lease: s.ClaimWith(p).Tasks[0].Lease, Failure: fixture.Boom("no"), Now: s.Now})
			s.Must(err, "FailRun")
			s.Handler(squatter)
		}},
	{Name: "the global handler runs where an ONLINE worker serves it", Run: func(s *fixture.F) {
		w := s.NewWorker("undertaker")
		w.Types, w.Queues = []string{engine.GlobalHandler}, []string{"graves", "more"}
		s.Register(w, true)
		for _, other := range []struct{ id, space string }{
			{"away", "elsewhere"}, {"busy", fixture.Space}, {"vicar", fixture.Space}} {
			w := s.NewWorker(other.id)
			w.Namespace, w.Types, w.Queues = other.space, []string{engine.GlobalHandler}, []string{"yards"}
			s.Register(w, true)
		}
		s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "busy", Now: s.Now}), "DrainWorker")
		l := s.Held()
		s.FailRun(l, "no")
		handler := s.Handler(l.RunID)
		fixture.Equal(s, "type", handler.Type, engine.GlobalHandler)
		fixture.Equal(s, "queue", handler.Queue, "graves")
		fixture.Equal(s, "external id", handler.ExternalID, "system-failure-"+l.RunID.String())
		s.Offline("undertaker", engine.OfflineDeregistered)
		s.Offline("vicar", engine.OfflineDeregistered)
		l = s.Held()
		s.FailRun(l, "no")
		fixture.Equal(s, "handlers, nobody serving it", len(s.Handlers(l.RunID)), 0)
	}},
	{Name: "the global handler falls back to the namespace's queue",
		Run: func(s *fixture.F) {
			l := s.Held()
			n, err := s.Store.GetNamespace(s.Ctx, fixture.Space)
			s.Must(err, "GetNamespace")
			n.FailureQueue = "night"
			_, err = s.Store.UpdateNamespace(s.Ctx, engine.NamespaceParams{
				Namespace: n, Method: "UpdateNamespace", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
			s.Must(err, "UpdateNamespace")
			s.FailRun(l, "no")
			fixture.Equal(s, "queue", s.Handler(l.RunID).Queue, "night")
		}},
	{Name: "an input too large for the failure event is left out", Run: func(s *fixture.F) {
		big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
		l := s.Held(onFailure, func(r *engine.StartRun) { r.Input = big })
		s.FailRun(l, "no")
		var event struct {
			Input   []byte `json:"original_input"`
			Omitted bool   `json:"original_input_omitted"`
		}
		s.Must(json.Unmarshal(s.Run(s.Handler(l.RunID).ID).Input.Data, &event), "the event")
		fixture.Equal(s, "omitted", event.Omitted, true)
		fixture.Equal(s, "bytes", len(event.Input), 0)
	}},
}

func onFailure(r *engine.StartRun) { r.OnFailureWorkflow = "mourn" }
