package runs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var GraceCases = []fixture.Case{
	{Name: "a held run asked to stop keeps its lease until it returns", Run: func(s *fixture.F) {
		l := s.Held()
		end := s.CancelWithin(l.RunID, time.Minute)
		fixture.Equal(s, "changed", end.Changed, true)
		fixture.Equal(s, "status", end.Status, engine.RunRunning)
		s.SameTime("grace until", end.GraceUntil, s.Now.Add(time.Minute))
		run := s.Status(l.RunID, engine.RunRunning)
		s.SameTime("cancel requested at", run.CancelRequestedAt, s.Now)
		fixture.Equal(s, "reason", run.CancelReason, "please stop")
		held, err := s.Store.HeldBy(s.Ctx, "w1")
		s.Must(err, "HeldBy")
		s.SameTime("grace of the lease", held[0].GraceUntil, s.Now.Add(time.Minute))
		fixture.Equal(s, "reason of the lease", held[0].CancelReason, "please stop")
		beat := s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = []engine.Lease{l} })
		fixture.Equal(s, "cancelling", len(beat.Cancelling), 1)
		fixture.Equal(s, "lost", len(beat.Lost), 0)
		s.Complete(l, "clean up", "done")
		completed, err := s.Store.CompleteRun(s.Ctx,
			engine.CompleteRunParams{Lease: l, Output: fixture.Text("partial"), Now: s.Now})
		s.Must(err, "CompleteRun")
		fixture.Equal(s, "status", completed.Status, engine.RunCancelled)
		run = s.Status(l.RunID, engine.RunCancelled)
		s.Payload("output", run.Output, fixture.Text("partial"))
		s.Failure("error", run.Error, engine.EndedByFailure(engine.RunCancelled, "please stop"))
		again, err := s.Store.CompleteRun(s.Ctx,
			engine.CompleteRunParams{Lease: l, Output: fixture.Text("partial"), Now: s.Now})
		s.Must(err, "CompleteRun repeated")
		fixture.Equal(s, "status repeated", again.Status, engine.RunCancelled)
	}},
	{Name: "a run that fails after it was asked to stop is cancelled", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
		s.CancelWithin(l.RunID, time.Minute)
		v := s.FailRun(l, "no")
		fixture.Equal(s, "status", v.Status, engine.RunCancelled)
		fixture.Equal(s, "retry", v.Retry, false)
		s.Failure("error", s.Status(l.RunID, engine.RunCancelled).Error,
			engine.EndedByFailure(engine.RunCancelled, "please stop"))
		fixture.Equal(s, "status repeated", s.FailRun(l, "no").Status, engine.RunCancelled)
	}},
	{Name: "a waiting run that is asked to stop becomes due", Run: func(s *fixture.F) {
		for name, park := range map[string]func(l engine.Lease){
			"timer":  func(l engine.Lease) { s.Sleep(l, "nap", time.Hour) },
			"signal": func(l engine.Lease) { s.Await(l, "approval", "approval") },
			"child":  func(l engine.Lease) { s.AwaitChildren(l, s.Child(l, "ship")) },
			"retry":  func(l engine.Lease) { s.Fail(l, "pay", "no") },
			"pause":  func(l engine.Lease) { s.Pause(l.RunID) },
		} {
			s.Worker("w1")
			id := s.Start()
			task := s.Claim("w1")
			fixture.Equal(s, "claimed run", task.Run.ID, id)
			park(task.Lease)
			s.CancelWithin(id, time.Minute)
			s.Due(id)
			task = s.Claim("w1")
			fixture.Equal(s, "claimed run after "+name, task.Run.ID, id)
			s.SameTime("grace until", task.Run.GraceUntil, s.Now.Add(time.Minute))
			fixture.Equal(s, "paused", task.Run.Paused, false)
			s.Finish(task.Lease, "")
			s.Status(id, engine.RunCancelled)
		}
	}},
	{Name: "a run is cancelled when its grace has passed", Run: func(s *fixture.F) {
		l, waiting := s.Held(), s.Held()
		waits := waiting.RunID
		s.Await(waiting, "go", "go")
		s.CancelWithin(l.RunID, time.Minute)
		s.CancelWithin(waits, 2*time.Minute)
		s.Pass(time.Minute - time.Microsecond)
		e := s.Expire()
		fixture.Equal(s, "expired before", e.Runs, 0)
		s.SameTime("next", e.Next, s.Now.Add(time.Microsecond))
		s.Pass(time.Microsecond)
		e = s.Expire()
		fixture.Equal(s, "expired", e.Runs, 1)
		s.SameTime("next", e.Next, s.Now.Add(time.Minute))
		s.Failure("error", s.Status(l.RunID, engine.RunCancelled).Error,
			engine.EndedByFailure(engine.RunCancelled, "please stop"))
		s.Lost(s.TryFinish(l, "late"), engine.RunCancelled, "CompleteRun after the grace")
		s.Pass(time.Minute)
		s.Expire()
		s.Status(waits, engine.RunCancelled)
	}},
	{Name: "a second cancel request can only shorten the grace", Run: func(s *fixture.F) {
		l := s.Held()
		s.CancelWithin(l.RunID, time.Minute)
		later := s.CancelWithin(l.RunID, time.Hour)
		fixture.Equal(s, "changed by a later end", later.Changed, false)
		s.SameTime("grace until", later.GraceUntil, s.Now.Add(time.Minute))
		sooner := s.CancelWithin(l.RunID, time.Second)
		fixture.Equal(s, "changed by an earlier end", sooner.Changed, true)
		s.SameTime("grace until", s.Run(l.RunID).GraceUntil, s.Now.Add(time.Second))
		fixture.Equal(s, "status", s.Cancel(l.RunID).Status, engine.RunCancelled)
		fixture.Equal(s, "changed after the end", s.CancelWithin(l.RunID, time.Second).Changed, false)
	}},
	{Name: "the worker after a lost one sees the cancel request", Run: func(s *fixture.F) {
		l := s.Held()
		s.CancelWithin(l.RunID, time.Minute)
		s.Lose("w1")
		task := s.Claim("w1")
		s.SameTime("grace until", task.Run.GraceUntil, s.Now.Add(time.Minute))
		s.Finish(task.Lease, "")
		s.Status(l.RunID, engine.RunCancelled)
	}},
	{Name: "a cancelled run does not continue as new", Run: func(s *fixture.F) {
		l := s.Held()
		s.CancelWithin(l.RunID, time.Minute)
		next := s.NewRun()
		completed, err := s.Store.CompleteRun(s.Ctx, engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now})
		s.Must(err, "CompleteRun")
		fixture.Equal(s, "status", completed.Status, engine.RunCancelled)
		fixture.Equal(s, "continued as", completed.ContinuedAs, engine.ID{})
		_, err = s.Store.GetRun(s.Ctx, fixture.Space, next.ID)
		s.Refused(err, engine.ErrNotFound, "GetRun of the next")
	}},
	{Name: "a cancellation is audited", Run: func(s *fixture.F) {
		l := s.Held()
		s.CancelWithin(l.RunID, time.Minute)
		s.Cancel(l.RunID)
		s.Cancel(l.RunID)
		list := s.Audit(l.RunID.String())
		fixture.Equal(s, "audit events", len(list), 2)
		fixture.Equal(s, "method", list[0].Method, "CancelWorkflow")
		fixture.Equal(s, "actor", list[0].Actor, fixture.Somebody)
		fixture.Equal(s, "reason", list[1].Reason, "please stop")
		fixture.Equal(s, "subject", list[0].Subject, "run")
	}},
	{Name: "children that are cancelled with the run get its grace, and theirs", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		told := s.Child(l, "told", fixture.Closing(engine.CloseCancel))
		held := s.ClaimChild(told)
		grandchild := s.Child(held, "grandchild", fixture.Closing(engine.CloseCancel))
		s.ClaimChild(grandchild)
		idle := s.Child(held, "idle", fixture.Closing(engine.CloseCancel))
		left := []engine.ID{s.Child(l, "stay"), s.Child(l, "killed", fixture.Closing(engine.CloseTerminate))}
		over := s.Child(l, "over", fixture.Closing(engine.CloseCancel))
		s.Cancel(over)
		until := s.Now.Add(time.Minute)
		s.CancelWithin(l.RunID, time.Minute)
		for _, id := range []engine.ID{told, grandchild} {
			s.SameTime("grace until", s.Run(id).GraceUntil, until)
			s.SameTime("requested at", s.Run(id).CancelRequestedAt, s.Now)
		}
		s.Failure("error of a child that never ran", s.Status(idle, engine.RunCancelled).Error,
			engine.EndedByFailure(engine.RunCancelled, "the parent run "+told.String()+" is being cancelled"))
		fixture.Equal(s, "mark of its step", s.Step(
			told, "idle").Error.Metadata[engine.MetaCancelledWithParent], "true")
		fixture.Equal(s, "reason", s.Run(told).CancelReason, "the parent run "+l.RunID.String()+" is being cancelled")
		for _, id := range append(left, over) {
			s.SameTime("grace until", s.Run(id).GraceUntil, time.Time{})
		}
		s.Pass(time.Second)
		s.CancelWithin(l.RunID, time.Second)
		s.SameTime("grace until, shortened", s.Run(told).GraceUntil, s.Now.Add(time.Second))
		s.Finish(l, "cleaned up")
		s.Status(l.RunID, engine.RunCancelled)
		s.Status(told, engine.RunRunning)
		s.Status(left[1], engine.RunTerminated)
		s.Complete(held, "undo", "x")
		s.Finish(held, "cleaned up")
		s.Status(told, engine.RunCancelled)
		s.Status(grandchild, engine.RunRunning)
		s.Pass(time.Second)
		s.SameExpired(s.Expire(), engine.Expired{Runs: 1, Cancelled: []engine.ID{grandchild}})
	}},
	{Name: "children started within the grace get the rest of it at the end", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		until := s.Now.Add(time.Minute)
		s.CancelWithin(l.RunID, time.Minute)
		late := s.Child(l, "late", fixture.Closing(engine.CloseCancel))
		held := s.ClaimChild(late)
		s.SameTime("grace until", s.Run(late).GraceUntil, time.Time{})
		s.Pass(time.Second)
		s.Finish(l, "")
		s.SameTime("grace until", s.Run(late).GraceUntil, until)
		s.Finish(held, "cleaned up")
		s.Status(late, engine.RunCancelled)
	}},
	{Name: "the end of the grace, and an end at once, end the children too", Run: func(s *fixture.F) {
		s.ChildWorker()
		for what, end := range map[string]func(engine.ID){
			"expiry": func(engine.ID) { s.Pass(time.Minute); s.Expire() },
			"cancel": func(run engine.ID) { s.Cancel(run) },
			"terminate": func(run engine.ID) {
				_, err := s.Store.TerminateRun(s.Ctx, s.EndParams(run, "enough"))
				s.Must(err, "TerminateRun")
			},
		} {
			l := s.Held()
			child := s.Child(l, "told", fixture.Closing(engine.CloseCancel))
			s.ClaimChild(child)
			s.CancelWithin(l.RunID, time.Minute)
			end(l.RunID)
			fixture.Equal(s, "child after "+what, s.Run(child).Status, engine.RunCancelled)
		}
	}},
	{Name: "a retry does not take over a child that is being cancelled", Run: func(s *fixture.F) {
		s.ChildWorker()
		l := s.Held()
		child := s.Child(l, "ship", fixture.Closing(engine.CloseCancel))
		s.ClaimChild(child)
		s.CancelWithin(l.RunID, time.Minute)
		s.Finish(l, "")
		again := s.Retry(l.RunID).RunID
		fixture.Equal(s, "steps of the retry", len(s.Attempts(again, "")), 0)
		s.Status(child, engine.RunRunning)
	}},
	{Name: "a run whose code has never run is cancelled at once", Run: func(s *fixture.F) {
		due, later := s.Start(), s.Start(fixture.DueAt(s.Now.Add(time.Hour)))
		s.Pause(later)
		for _, id := range []engine.ID{due, later} {
			end := s.CancelWithin(id, time.Minute)
			fixture.Equal(s, "status", end.Status, engine.RunCancelled)
			fixture.Equal(s, "changed", end.Changed, true)
			s.Failure("error", s.Status(id, engine.RunCancelled).Error,
				engine.EndedByFailure(engine.RunCancelled, "please stop"))
			fixture.Equal(s, "events", len(s.Audit(id.String())) > 0, true)
		}
		l := s.Held()
		next := s.NewRun()
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		fixture.Equal(s, "status of a continuation", s.CancelWithin(next.ID, time.Minute).Status, engine.RunPending)
	}},
	{Name: "an ended run cannot be asked to stop", Run: func(s *fixture.F) {
		s.Worker("w1")
		for status, run := range s.EndedRuns() {
			before, audited := s.Run(run), len(s.Audit(run.String()))
			p := s.EndParams(run, "please stop")
			p.Grace = time.Minute
			end, err := s.Store.CancelRun(s.Ctx, p)
			if status == engine.RunCancelled {
				s.Must(err, "CancelRun with a grace of a run that is CANCELLED")
				fixture.Equal(s, "changed", end.Changed, false)
				fixture.Equal(s, "answered status", end.Status, engine.RunCancelled)
			} else {
				s.Refused(err, engine.ErrPrecondition, "CancelRun with a grace of a run that is "+status.String())
				s.Explained(err, status, "CancelRun with a grace")
			}
			s.SameRun(s.Run(run), before)
			fixture.Equal(s, "audit events", len(s.Audit(run.String())), audited)
		}
		s.ClaimNothing("w1")
	}},
}

var ContinueCases = []fixture.Case{
	{Name: "a run and its continuation change in one commit",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.WithExternal("loop"), fixture.WithPriority(7), fixture.Tagged("customer", "x"),
				fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 4}),
				fixture.WithOwnPolicy(engine.RetryPolicy{MaximumAttempts: 6}))
			s.Complete(l, "pay", "x")
			s.Pass(time.Minute)
			next := engine.StartRun{Run: engine.Run{ID: s.ID(), Input: fixture.Text("next input")}}
			completed, err := s.Store.CompleteRun(s.Ctx,
				engine.CompleteRunParams{Lease: l, Output: fixture.Text("so far"), ContinueAs: &next, Now: s.Now})
			s.Must(err, "CompleteRun")
			fixture.Equal(s, "status", completed.Status, engine.RunCompleted)
			fixture.Equal(s, "continued as", completed.ContinuedAs, next.ID)
			old, run := s.Run(l.RunID), s.Run(next.ID)
			fixture.Equal(s, "old continued as", old.ContinuedAs, next.ID)
			fixture.Equal(s, "new continued from", run.ContinuedFrom, l.RunID)
			fixture.Equal(s, "external id", run.ExternalID, "loop")
			fixture.Equal(s, "priority", run.Priority, 7)
			fixture.Equal(s, "tag", run.Tags["customer"], "x")
			fixture.Equal(s, "policies", [2]int{run.RetryPolicy.MaximumAttempts, run.RunRetryPolicy.MaximumAttempts},
				[2]int{4, 6})
			fixture.Equal(s, "queue", run.Queue, fixture.Queue)
			s.Payload("input", run.Input, fixture.Text("next input"))
			s.SameTime("created at", run.CreatedAt, s.Now)
			task := s.Claim("w1")
			fixture.Equal(s, "claimed run", task.Run.ID, next.ID)
			fixture.Equal(s, "history", len(task.History), 0)
			found, err := s.Store.GetRunByExternalID(s.Ctx, fixture.Space, "loop")
			s.Must(err, "GetRunByExternalID")
			fixture.Equal(s, "run of the external id", found.ID, next.ID)
		}},
	{Name: "calls about a continued run name the run it continued as", Run: func(s *fixture.F) {
		l := s.Held()
		next := s.NewRun()
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		for verb, refused := range map[string]func() error{
			"SignalRun": func() error { _, err := s.TrySignal(l.RunID, "stop", "now"); return err },
			"CancelRun": func() error { _, err := s.Store.CancelRun(s.Ctx, s.EndParams(l.RunID, "why")); return err },
			"PauseRun": func() error {
				_, err := s.Store.PauseRun(s.Ctx, engine.PauseRunParams{SteerParams: s.Steer(l.RunID, "why")})
				return err
			},
		} {
			err := refused()
			s.Refused(err, engine.ErrPrecondition, verb)
			s.Explained(err, engine.RunCompleted, verb)
			if e, ok := errors.AsType[*engine.Error](err); ok {
				fixture.Equal(s, verb+": continued as", e.ContinuedAs, next.ID)
			}
		}
	}},
	{Name: "fields set for the next run replace the inherited ones", Run: func(s *fixture.F) {
		l := s.Held(fixture.Tagged("customer", "x"), fixture.WithPriority(7),
			fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 4}))
		next := engine.StartRun{Run: engine.Run{
			ID: s.ID(), ExternalID: "other", Queue: "bulk", Type: "loop", Version: "v2", Priority: 9,
			RetryPolicy:    &engine.RetryPolicy{MaximumAttempts: 5},
			RunRetryPolicy: &engine.RetryPolicy{MaximumAttempts: 6}, Tags: map[string]string{"round": "2"},
			Requirements: map[string]string{"gpu": "yes"},
			Timeouts:     engine.Timeouts{StartToClose: time.Minute}, OnFailureWorkflow: "mourn",
			OnFailureQueue: "graves",
			ConcurrencyKey: "k", ConcurrencyLimit: 3}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		run := s.Run(next.ID)
		fixture.Equal(s, "names", strings.Join([]string{
			run.ExternalID, run.Queue, run.Type, run.Version, run.OnFailureWorkflow, run.OnFailureQueue,
			run.ConcurrencyKey}, " "),
			"other bulk loop v2 mourn graves k")
		fixture.Equal(s, "numbers", [4]int{run.Priority, run.RetryPolicy.MaximumAttempts,
			run.RunRetryPolicy.MaximumAttempts, run.ConcurrencyLimit}, [4]int{9, 5, 6, 3})
		fixture.Equal(s, "tags and requirements", fmt.Sprint(run.Tags, run.Requirements), "map[round:2] map[gpu:yes]")
		fixture.Equal(s, "timeouts", run.Timeouts, next.Timeouts)
	}},
	{Name: "a repeated continue returns the same next run", Run: func(s *fixture.F) {
		l := s.Held()
		next := s.NewRun()
		p := engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}
		s.Must(s.TryEnd(p), "CompleteRun")
		other := s.NewRun()
		p.ContinueAs = &other
		completed, err := s.Store.CompleteRun(s.Ctx, p)
		s.Must(err, "CompleteRun repeated")
		fixture.Equal(s, "continued as", completed.ContinuedAs, next.ID)
		_, err = s.Store.GetRun(s.Ctx, fixture.Space, other.ID)
		s.Refused(err, engine.ErrNotFound, "GetRun of another next")
	}},
	{Name: "a repeat with another next run is a conflict", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithExternal("loop"))
		next := engine.StartRun{Run: engine.Run{ID: s.ID(), Input: fixture.Text("next")}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		for what, change := range map[string]func(*engine.StartRun){
			"input":       func(r *engine.StartRun) { r.Input = fixture.Text("other") },
			"type":        fixture.OfType("other"),
			"queue":       fixture.InQueue("other"),
			"external id": fixture.WithExternal("other"),
		} {
			other := engine.StartRun{Run: engine.Run{ID: s.ID(), Input: fixture.Text("next")}}
			change(&other)
			s.Refused(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &other, Now: s.Now}), engine.ErrConflict,
				"CompleteRun with another "+what)
		}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun repeated")
	}},
	{Name: "a continue under a lost lease changes nothing", Run: func(s *fixture.F) {
		l := s.Held()
		s.Lose("w1")
		next := s.NewRun()
		s.Lost(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), engine.RunPending,
			"CompleteRun")
		_, err := s.Store.GetRun(s.Ctx, fixture.Space, next.ID)
		s.Refused(err, engine.ErrNotFound, "GetRun of the next")
	}},
	{Name: "a continue with an external id in use is refused", Run: func(s *fixture.F) {
		s.Start(fixture.WithExternal("taken"), fixture.OfType("other"))
		l := s.Held()
		next := s.NewRun(fixture.WithExternal("taken"))
		s.Refused(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), engine.ErrExists,
			"CompleteRun")
		s.Finish(l, "done")
	}},
	{Name: "unconsumed signals pass on in order", Run: func(s *fixture.F) {
		l := s.Held()
		for _, item := range []string{"a", "b", "c"} {
			s.Signal(l.RunID, "item", item, fixture.SignalID(item))
		}
		s.Await(l, "item", "item")
		next := engine.StartRun{Run: engine.Run{ID: s.ID(), Input: fixture.Text("in")}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		l = s.Claim("w1").Lease
		fixture.Equal(s, "bytes", s.Run(next.ID).Bytes, 4)
		s.Payload("first", s.Await(l, "item", "item").Step.Output, fixture.Text("b"))
		s.Payload("second", s.Await(l, "item:2", "item").Step.Output, fixture.Text("c"))
		fixture.Equal(s, "repeated", s.Signal(next.ID, "item", "c", fixture.SignalID("c")).Repeated, true)
		fixture.Equal(s, "signals of the next run", len(s.Signals(next.ID)), 2)
	}},
	{Name: "unread signals move with their bytes and keep their sequences", Run: func(s *fixture.F) {
		l := s.Held()
		for _, item := range []string{"a", "bb", "ccc"} {
			_, err := s.Store.SignalRun(s.Ctx, engine.SignalRunParams{Namespace: fixture.Space, RunID: l.RunID,
				Name: "item", Payload: engine.Payload{Data: []byte(item), Metadata: map[string]string{"k": item}},
				Now: s.Now})
			s.Must(err, "SignalRun")
		}
		before := s.Run(l.RunID).Bytes
		s.Await(l, "item", "item")
		next := engine.StartRun{Run: engine.Run{ID: s.ID(), Input: fixture.Text("in")}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		const moved = 2*2 + 1 + 2*3 + 1 // data and metadata
		fixture.Equal(s, "bytes of the old run", s.Run(l.RunID).Bytes, before-moved)
		fixture.Equal(s, "bytes of the next run", s.Run(next.ID).Bytes, 2+moved)
		fixture.Equal(s, "signals of the old run", len(s.Signals(l.RunID)), 1)
		list := s.Signals(next.ID)
		fixture.Equal(s, "signals of the next run", len(list), 2)
		for i, signal := range list {
			fixture.Equal(s, "sequence", signal.Sequence, int64(i+2))
			fixture.Equal(s, "run", signal.RunID, next.ID)
		}
		s.Signal(next.ID, "item", "d")
		fixture.Equal(s, "sequence of the next signal", s.Signals(next.ID)[2].Sequence, 4)
	}},
	{Name: "the latest run of a chain is found by its first", Run: func(s *fixture.F) {
		latest := func(first engine.ID) engine.ID {
			s.Helper()
			id, err := s.Store.LatestOfChain(s.Ctx, fixture.Space, first)
			s.Must(err, "LatestOfChain")
			return id
		}
		l := s.Held()
		first := l.RunID
		fixture.Equal(s, "of a run that did not continue", latest(first), engine.ID{})
		for range 3 {
			next := engine.StartRun{Run: engine.Run{ID: s.ID()}}
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
			fixture.Equal(s, "latest", latest(first), next.ID)
			fixture.Equal(s, "of one in the middle", latest(next.ID), engine.ID{})
			l = s.Claim("w1").Lease
		}
		id, err := s.Store.LatestOfChain(s.Ctx, "other", first)
		s.Must(err, "LatestOfChain")
		fixture.Equal(s, "in another namespace", id, engine.ID{})
	}},
	{Name: "a repeated signal is found in the run that it moved to", Run: func(s *fixture.F) {
		l := s.Held()
		first := l.RunID
		s.Signal(first, "item", "a", fixture.SignalID("a"))
		for i := range 2 {
			next := engine.StartRun{Run: engine.Run{ID: s.ID()}}
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
			l = s.Claim("w1").Lease
			fixture.Equal(s, "repeated", s.Signal(first, "item", "a", fixture.SignalID("a")).Repeated, true)
			if i == 0 {
				s.Await(l, "item", "item")
			}
		}
		_, err := s.Store.SignalRun(s.Ctx, engine.SignalRunParams{Namespace: fixture.Space, RunID: first, Name: "item",
			SignalID: "b", Now: s.Now})
		s.Refused(err, engine.ErrPrecondition, "SignalRun of an ended run")
	}},
	{Name: "a continuation restarts the execution timeout", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithTimeouts(engine.Timeouts{Execution: time.Hour}), func(r *engine.StartRun) {
			r.DeadlineAt = s.Now.Add(time.Hour)
		})
		s.Pass(30 * time.Minute)
		next := engine.StartRun{Run: engine.Run{ID: s.ID()}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
		s.SameTime("deadline", s.Run(next.ID).DeadlineAt, s.Now.Add(time.Hour))

		later := s.Now.Add(3 * time.Hour)
		delayed := engine.StartRun{Run: engine.Run{ID: s.ID(), AvailableAt: later}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: s.Claim("w1").Lease, ContinueAs: &delayed, Now: s.Now}),
			"CompleteRun")
		s.SameTime("deadline of one that starts later", s.Run(delayed.ID).DeadlineAt, later.Add(time.Hour))
	}},
	{Name: "a named deadline ends a chain despite a shorter timeout",
		Run: func(s *fixture.F) {
			named := s.Now.Add(3 * time.Hour)
			l := s.Held(fixture.WithTimeouts(engine.Timeouts{Execution: 2 * time.Hour}), func(r *engine.StartRun) {
				r.DeadlineAt = named
				r.SettleDeadline()
			})
			s.SameTime("deadline", s.Run(l.RunID).DeadlineAt, s.Now.Add(2*time.Hour))
			s.Pass(30 * time.Minute)
			next := engine.StartRun{Run: engine.Run{ID: s.ID()}}
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.Now}), "CompleteRun")
			s.SameTime("deadline of the second", s.Run(next.ID).DeadlineAt, s.Now.Add(2*time.Hour))
			s.Pass(time.Hour)
			last := engine.StartRun{Run: engine.Run{ID: s.ID()}}
			s.Must(s.TryEnd(engine.CompleteRunParams{Lease: s.Claim("w1").Lease, ContinueAs: &last, Now: s.Now}),
				"CompleteRun")
			s.SameTime("deadline of the third", s.Run(last.ID).DeadlineAt, named)
			s.FailRun(s.Claim("w1").Lease, "no")
			again := s.Retry(last.ID).RunID
			s.SameTime("deadline of the run that was tried again", s.Run(again).DeadlineAt, named)
			for _, id := range []engine.ID{l.RunID, next.ID, last.ID, again} {
				s.SameTime("named deadline", s.Run(id).NamedDeadlineAt, named)
			}
		}},
}
