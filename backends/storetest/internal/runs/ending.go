package runs

import (
	"encoding/json"
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
