package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var graceCases = []testCase{
	{"a held run is told and keeps its lease until its code returns", func(s *stage) {
		l := s.held()
		end := s.cancelWithin(l.RunID, time.Minute)
		equal(s, "changed", end.Changed, true)
		equal(s, "status", end.Status, engine.RunRunning)
		s.sameTime("grace until", end.GraceUntil, s.now.Add(time.Minute))
		run := s.status(l.RunID, engine.RunRunning)
		s.sameTime("cancel requested at", run.CancelRequestedAt, s.now)
		equal(s, "reason", run.CancelReason, "please stop")
		held, err := s.store.HeldBy(s.ctx, "w1")
		s.must(err, "HeldBy")
		s.sameTime("grace of the lease", held[0].GraceUntil, s.now.Add(time.Minute))
		equal(s, "reason of the lease", held[0].CancelReason, "please stop")
		beat := s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Held = []engine.Lease{l} })
		equal(s, "cancelling", len(beat.Cancelling), 1)
		equal(s, "lost", len(beat.Lost), 0)
		s.complete(l, "clean up", "done")
		completed, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Lease: l, Output: text("partial"), Now: s.now})
		s.must(err, "CompleteRun")
		equal(s, "status", completed.Status, engine.RunCancelled)
		run = s.status(l.RunID, engine.RunCancelled)
		s.payload("output", run.Output, text("partial"))
		s.failure("error", run.Error, engine.EndedByFailure(engine.RunCancelled, "please stop"))
		again, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Lease: l, Output: text("partial"), Now: s.now})
		s.must(err, "CompleteRun repeated")
		equal(s, "status repeated", again.Status, engine.RunCancelled)
	}},
	{"a code that fails while it cleans up is cancelled, and not tried again", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
		s.cancelWithin(l.RunID, time.Minute)
		v := s.failRun(l, "no")
		equal(s, "status", v.Status, engine.RunCancelled)
		equal(s, "retry", v.Retry, false)
		s.failure("error", s.status(l.RunID, engine.RunCancelled).Error, engine.EndedByFailure(engine.RunCancelled, "please stop"))
		equal(s, "status repeated", s.failRun(l, "no").Status, engine.RunCancelled)
	}},
	{"a run that nobody holds is woken for it", func(s *stage) {
		for name, park := range map[string]func(l engine.Lease){
			"timer":  func(l engine.Lease) { s.sleep(l, "nap", time.Hour) },
			"signal": func(l engine.Lease) { s.await(l, "approval", "approval") },
			"child":  func(l engine.Lease) { s.awaitChildren(l, s.child(l, "ship")) },
			"retry":  func(l engine.Lease) { s.fail(l, "pay", "no") },
			"pause":  func(l engine.Lease) { s.pause(l.RunID) },
		} {
			s.worker("w1")
			id := s.start()
			task := s.claim("w1")
			equal(s, "claimed run", task.Run.ID, id)
			park(task.Lease)
			s.cancelWithin(id, time.Minute)
			s.due(id)
			task = s.claim("w1")
			equal(s, "claimed run after "+name, task.Run.ID, id)
			s.sameTime("grace until", task.Run.GraceUntil, s.now.Add(time.Minute))
			equal(s, "paused", task.Run.Paused, false)
			s.finish(task.Lease, "")
			s.status(id, engine.RunCancelled)
		}
	}},
	{"when the grace is over the run is cancelled wherever it stands", func(s *stage) {
		l := s.held()
		waits := s.start(dueAt(s.now.Add(time.Hour)))
		s.cancelWithin(l.RunID, time.Minute)
		s.cancelWithin(waits, 2*time.Minute)
		s.pass(time.Minute - time.Microsecond)
		e := s.expire()
		equal(s, "expired before", e.Runs, 0)
		s.sameTime("next", e.Next, s.now.Add(time.Microsecond))
		s.pass(time.Microsecond)
		e = s.expire()
		equal(s, "expired", e.Runs, 1)
		s.sameTime("next", e.Next, s.now.Add(time.Minute))
		s.failure("error", s.status(l.RunID, engine.RunCancelled).Error, engine.EndedByFailure(engine.RunCancelled, "please stop"))
		s.lost(s.tryFinish(l, "late"), engine.RunCancelled, "CompleteRun after the grace")
		s.pass(time.Minute)
		s.expire()
		s.status(waits, engine.RunCancelled)
	}},
	{"asked again only an earlier end of the grace counts, and no grace ends it now", func(s *stage) {
		l := s.held()
		s.cancelWithin(l.RunID, time.Minute)
		later := s.cancelWithin(l.RunID, time.Hour)
		equal(s, "changed by a later end", later.Changed, false)
		s.sameTime("grace until", later.GraceUntil, s.now.Add(time.Minute))
		sooner := s.cancelWithin(l.RunID, time.Second)
		equal(s, "changed by an earlier end", sooner.Changed, true)
		s.sameTime("grace until", s.run(l.RunID).GraceUntil, s.now.Add(time.Second))
		equal(s, "status", s.cancel(l.RunID).Status, engine.RunCancelled)
		equal(s, "changed after the end", s.cancelWithin(l.RunID, time.Second).Changed, false)
	}},
	{"a lost worker hands the cancellation on", func(s *stage) {
		l := s.held()
		s.cancelWithin(l.RunID, time.Minute)
		s.lose("w1")
		task := s.claim("w1")
		s.sameTime("grace until", task.Run.GraceUntil, s.now.Add(time.Minute))
		s.finish(task.Lease, "")
		s.status(l.RunID, engine.RunCancelled)
	}},
	{"a cancelled run does not continue as new", func(s *stage) {
		l := s.held()
		s.cancelWithin(l.RunID, time.Minute)
		next := s.newRun()
		completed, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now})
		s.must(err, "CompleteRun")
		equal(s, "status", completed.Status, engine.RunCancelled)
		equal(s, "continued as", completed.ContinuedAs, engine.ID{})
		_, err = s.store.GetRun(s.ctx, space, next.ID)
		s.refused(err, engine.ErrNotFound, "GetRun of the next")
	}},
	{"cancellation leaves a trace of who asked", func(s *stage) {
		l := s.held()
		s.cancelWithin(l.RunID, time.Minute)
		s.cancel(l.RunID)
		s.cancel(l.RunID)
		list := s.audit(l.RunID.String())
		equal(s, "audit events", len(list), 2)
		equal(s, "method", list[0].Method, "CancelWorkflow")
		equal(s, "actor", list[0].Actor, somebody)
		equal(s, "reason", list[1].Reason, "please stop")
		equal(s, "subject", list[0].Subject, "run")
	}},
	{"a run that has ended is not told to stop, and stays as it is", func(s *stage) {
		s.worker("w1")
		for status, run := range s.endedRuns() {
			before, audited := s.run(run), len(s.audit(run.String()))
			p := s.endParams(run, "please stop")
			p.Grace = time.Minute
			end, err := s.store.CancelRun(s.ctx, p)
			if status == engine.RunCancelled {
				s.must(err, "CancelRun with a grace of a run that is CANCELLED")
				equal(s, "changed", end.Changed, false)
				equal(s, "answered status", end.Status, engine.RunCancelled)
			} else {
				s.refused(err, engine.ErrPrecondition, "CancelRun with a grace of a run that is "+status.String())
				s.explained(err, status, "CancelRun with a grace")
			}
			s.sameRun(s.run(run), before)
			equal(s, "audit events", len(s.audit(run.String())), audited)
		}
		s.claimNothing("w1")
	}},
}

var continueCases = []testCase{
	{"the run ends and the next begins in one commit, with its external id and all that was chosen for it", func(s *stage) {
		l := s.held(withExternal("loop"), withPriority(7), tagged("customer", "x"), withPolicy(engine.RetryPolicy{MaximumAttempts: 4}))
		s.complete(l, "pay", "x")
		s.pass(time.Minute)
		next := engine.StartRun{Run: engine.Run{ID: s.id(), Input: text("next input")}}
		completed, err := s.store.CompleteRun(s.ctx, engine.CompleteRunParams{Lease: l, Output: text("so far"), ContinueAs: &next, Now: s.now})
		s.must(err, "CompleteRun")
		equal(s, "status", completed.Status, engine.RunCompleted)
		equal(s, "continued as", completed.ContinuedAs, next.ID)
		old, run := s.run(l.RunID), s.run(next.ID)
		equal(s, "old continued as", old.ContinuedAs, next.ID)
		equal(s, "new continued from", run.ContinuedFrom, l.RunID)
		equal(s, "external id", run.ExternalID, "loop")
		equal(s, "priority", run.Priority, 7)
		equal(s, "tag", run.Tags["customer"], "x")
		equal(s, "policy", run.RetryPolicy.MaximumAttempts, 4)
		equal(s, "queue", run.Queue, queue)
		s.payload("input", run.Input, text("next input"))
		s.sameTime("created at", run.CreatedAt, s.now)
		task := s.claim("w1")
		equal(s, "claimed run", task.Run.ID, next.ID)
		equal(s, "history", len(task.History), 0)
		found, err := s.store.GetRunByExternalID(s.ctx, space, "loop")
		s.must(err, "GetRunByExternalID")
		equal(s, "run of the external id", found.ID, next.ID)
	}},
	{"whoever signals or steers the run that has ended is told which one goes on", func(s *stage) {
		l := s.held()
		next := s.newRun()
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
		for verb, refused := range map[string]func() error{
			"SignalRun": func() error { _, err := s.trySignal(l.RunID, "stop", "now"); return err },
			"CancelRun": func() error { _, err := s.store.CancelRun(s.ctx, s.endParams(l.RunID, "why")); return err },
			"PauseRun":  func() error { _, err := s.store.PauseRun(s.ctx, s.steer(l.RunID, "why")); return err },
		} {
			err := refused()
			s.refused(err, engine.ErrPrecondition, verb)
			s.explained(err, engine.RunCompleted, verb)
			if e, ok := errors.AsType[*engine.Error](err); ok {
				equal(s, verb+": continued as", e.ContinuedAs, next.ID)
			}
		}
	}},
	{"what the next run names of its own holds for it", func(s *stage) {
		l := s.held(tagged("customer", "x"), withPriority(7), withPolicy(engine.RetryPolicy{MaximumAttempts: 4}))
		next := engine.StartRun{Run: engine.Run{ID: s.id(), ExternalID: "other", Queue: "bulk", Type: "loop", Version: "v2", Priority: 9,
			RetryPolicy: &engine.RetryPolicy{MaximumAttempts: 5}, Tags: map[string]string{"round": "2"}, Requirements: map[string]string{"gpu": "yes"},
			Timeouts: engine.Timeouts{StartToClose: time.Minute}, OnFailureWorkflow: "mourn", OnFailureQueue: "graves",
			ConcurrencyKey: "k", ConcurrencyLimit: 3}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
		run := s.run(next.ID)
		equal(s, "names", strings.Join([]string{run.ExternalID, run.Queue, run.Type, run.Version, run.OnFailureWorkflow, run.OnFailureQueue, run.ConcurrencyKey}, " "),
			"other bulk loop v2 mourn graves k")
		equal(s, "numbers", [3]int{run.Priority, run.RetryPolicy.MaximumAttempts, run.ConcurrencyLimit}, [3]int{9, 5, 3})
		equal(s, "tags and requirements", fmt.Sprint(run.Tags, run.Requirements), "map[round:2] map[gpu:yes]")
		equal(s, "timeouts", run.Timeouts, next.Timeouts)
	}},
	{"repeated it is answered with the same next run", func(s *stage) {
		l := s.held()
		next := s.newRun()
		p := engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}
		s.must(s.tryEnd(p), "CompleteRun")
		other := s.newRun()
		p.ContinueAs = &other
		completed, err := s.store.CompleteRun(s.ctx, p)
		s.must(err, "CompleteRun repeated")
		equal(s, "continued as", completed.ContinuedAs, next.ID)
		_, err = s.store.GetRun(s.ctx, space, other.ID)
		s.refused(err, engine.ErrNotFound, "GetRun of another next")
	}},
	{"repeated with another next run it is a conflict", func(s *stage) {
		l := s.held(withExternal("loop"))
		next := engine.StartRun{Run: engine.Run{ID: s.id(), Input: text("next")}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
		for what, change := range map[string]func(*engine.StartRun){
			"input":       func(r *engine.StartRun) { r.Input = text("other") },
			"type":        ofType("other"),
			"queue":       inQueue("other"),
			"external id": withExternal("other"),
		} {
			other := engine.StartRun{Run: engine.Run{ID: s.id(), Input: text("next")}}
			change(&other)
			s.refused(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &other, Now: s.now}), engine.ErrConflict, "CompleteRun with another "+what)
		}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun repeated")
	}},
	{"under a lost lease neither happens", func(s *stage) {
		l := s.held()
		s.lose("w1")
		next := s.newRun()
		s.lost(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), engine.RunPending, "CompleteRun")
		_, err := s.store.GetRun(s.ctx, space, next.ID)
		s.refused(err, engine.ErrNotFound, "GetRun of the next")
	}},
	{"an external id of its own that is taken refuses it, and the lease goes on", func(s *stage) {
		s.start(withExternal("taken"), ofType("other"))
		l := s.held()
		next := s.newRun(withExternal("taken"))
		s.refused(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), engine.ErrExists, "CompleteRun")
		s.finish(l, "done")
	}},
	{"signals that nothing has consumed pass on, in their order", func(s *stage) {
		l := s.held()
		for _, item := range []string{"a", "b", "c"} {
			s.signal(l.RunID, "item", item, signalID(item))
		}
		s.await(l, "item", "item")
		next := engine.StartRun{Run: engine.Run{ID: s.id(), Input: text("in")}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
		l = s.claim("w1").Lease
		equal(s, "bytes", s.run(next.ID).Bytes, 4)
		s.payload("first", s.await(l, "item", "item").Step.Output, text("b"))
		s.payload("second", s.await(l, "item:2", "item").Step.Output, text("c"))
		equal(s, "repeated", s.signal(next.ID, "item", "c", signalID("c")).Repeated, true)
		equal(s, "signals of the next run", len(s.signals(next.ID)), 2)
	}},
	{"a limit on the whole run counts anew", func(s *stage) {
		l := s.held(withTimeouts(engine.Timeouts{Execution: time.Hour}), func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Hour) })
		s.pass(30 * time.Minute)
		next := engine.StartRun{Run: engine.Run{ID: s.id()}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
		s.sameTime("deadline", s.run(next.ID).DeadlineAt, s.now.Add(time.Hour))

		later := s.now.Add(3 * time.Hour)
		delayed := engine.StartRun{Run: engine.Run{ID: s.id(), AvailableAt: later}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.claim("w1").Lease, ContinueAs: &delayed, Now: s.now}), "CompleteRun")
		s.sameTime("deadline of one that starts later", s.run(delayed.ID).DeadlineAt, later.Add(time.Hour))
	}},
	{"a deadline that was named beside a shorter limit ends all that goes on for the run", func(s *stage) {
		named := s.now.Add(3 * time.Hour)
		l := s.held(withTimeouts(engine.Timeouts{Execution: 2 * time.Hour}), func(r *engine.StartRun) {
			r.DeadlineAt = named
			r.SettleDeadline()
		})
		s.sameTime("deadline", s.run(l.RunID).DeadlineAt, s.now.Add(2*time.Hour))
		s.pass(30 * time.Minute)
		next := engine.StartRun{Run: engine.Run{ID: s.id()}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: l, ContinueAs: &next, Now: s.now}), "CompleteRun")
		s.sameTime("deadline of the second", s.run(next.ID).DeadlineAt, s.now.Add(2*time.Hour))
		s.pass(time.Hour)
		last := engine.StartRun{Run: engine.Run{ID: s.id()}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.claim("w1").Lease, ContinueAs: &last, Now: s.now}), "CompleteRun")
		s.sameTime("deadline of the third", s.run(last.ID).DeadlineAt, named)
		s.failRun(s.claim("w1").Lease, "no")
		again := s.retry(last.ID).RunID
		s.sameTime("deadline of the run that was tried again", s.run(again).DeadlineAt, named)
		for _, id := range []engine.ID{l.RunID, next.ID, last.ID, again} {
			s.sameTime("named deadline", s.run(id).NamedDeadlineAt, named)
		}
	}},
}

var deadlineCases = []testCase{
	{"a deadline ends a run wherever it stands", func(s *stage) {
		at := s.now.Add(time.Minute)
		by := func(r *engine.StartRun) { r.DeadlineAt = at }
		s.worker("w1")
		l := s.held(by)
		sleeping := s.held(by)
		s.sleep(sleeping, "nap", time.Hour)
		waiting := s.held(by)
		s.await(waiting, "approval", "approval")
		pending, delayed, free := s.start(by), s.start(by, dueAt(s.now.Add(time.Hour))), s.start()
		paused := s.start(by)
		s.pause(paused)
		s.begin(l, "pay")
		s.pass(time.Minute - time.Microsecond)
		e := s.expire()
		equal(s, "expired before", e.Runs, 0)
		s.sameTime("next", e.Next, at)
		s.pass(time.Microsecond)
		e = s.expire()
		equal(s, "expired", e.Runs, 6)
		s.sameTime("next", e.Next, time.Time{})
		for _, id := range []engine.ID{l.RunID, sleeping.RunID, waiting.RunID, pending, delayed, paused} {
			run := s.status(id, engine.RunTimedOut)
			s.failure("error", run.Error, engine.DeadlineFailure(at))
			s.sameTime("finished at", run.FinishedAt, s.now)
		}
		s.status(free, engine.RunPending)
		s.lost(s.tryFinish(l, "late"), engine.RunTimedOut, "CompleteRun after the deadline")
		s.failure("error of the step", s.step(l.RunID, "pay").Error, engine.RunEndedFailure())
		equal(s, "leases", len(s.heldBy("w1")), 0)
	}},
	{"the sweep takes the earliest first, at most its limit", func(s *stage) {
		var ids []engine.ID
		for i := range 5 {
			ids = append(ids, s.start(func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Duration(5-i) * time.Second) }))
		}
		s.pass(time.Minute)
		e, err := s.store.EndExpired(s.ctx, engine.EndExpiredParams{Now: s.now, Limit: 2})
		s.must(err, "EndExpired")
		equal(s, "expired", e.Runs, 2)
		s.sameTime("next", e.Next, s.run(ids[2]).DeadlineAt)
		s.status(ids[4], engine.RunTimedOut)
		s.status(ids[3], engine.RunTimedOut)
		s.status(ids[2], engine.RunPending)
	}},
	{"the sweep leaves the first alone that it is to skip", func(s *stage) {
		var ids []engine.ID
		for i := range 4 {
			ids = append(ids, s.start(func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Duration(i+1) * time.Second) }))
		}
		s.pass(3 * time.Second)
		for _, want := range []struct {
			n    int
			next engine.ID
		}{{1, ids[2]}, {1, ids[3]}, {0, ids[3]}} {
			e, err := s.store.EndExpired(s.ctx, engine.EndExpiredParams{Now: s.now, Limit: 1, Skip: 1})
			s.must(err, "EndExpired")
			equal(s, "expired", e.Runs, want.n)
			s.sameTime("next", e.Next, s.run(want.next).DeadlineAt)
		}
		s.status(ids[0], engine.RunPending)
		s.status(ids[1], engine.RunTimedOut)
		s.status(ids[2], engine.RunTimedOut)
	}},
	{"an ended run does not expire", func(s *stage) {
		l := s.held(func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Second) })
		s.finish(l, "done")
		s.pass(time.Minute)
		e := s.expire()
		equal(s, "expired", e.Runs, 0)
		s.sameTime("next", e.Next, time.Time{})
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"of a deadline and a grace the earlier one ends it, each in its way", func(s *stage) {
		by := func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Minute) }
		a, b := s.start(by), s.start(by)
		s.cancelWithin(a, time.Second)
		s.cancelWithin(b, time.Hour)
		s.pass(time.Minute)
		s.sameExpired(s.expire(), engine.Expired{Runs: 2, Cancelled: []engine.ID{a}, TimedOut: []engine.ID{b}})
		s.status(a, engine.RunCancelled)
		s.status(b, engine.RunTimedOut)
	}},
	{"a child whose time is over before its parent's ends as itself, though one sweep finds both", func(s *stage) {
		at := s.now
		l := s.held(func(r *engine.StartRun) { r.DeadlineAt = at.Add(2 * time.Minute) })
		child := s.child(l, "ship", closing(engine.CloseTerminate), func(r *engine.StartRun) { r.DeadlineAt = at.Add(time.Minute) })
		s.pass(time.Hour)
		s.sameExpired(s.expire(), engine.Expired{Runs: 2, TimedOut: []engine.ID{child, l.RunID}})
		s.failure("error of the child", s.status(child, engine.RunTimedOut).Error, engine.DeadlineFailure(at.Add(time.Minute)))
		s.status(l.RunID, engine.RunTimedOut)
	}},
}

var handlerCases = []testCase{
	{"a failure starts the run's handler in the same commit, with the event as its input", func(s *stage) {
		l := s.held(withExternal("order-1"), func(r *engine.StartRun) { r.OnFailureWorkflow, r.OnFailureQueue = "mourn", "graves" })
		s.pass(time.Minute)
		s.failRun(l, "card declined")
		handler := s.handler(l.RunID)
		equal(s, "type", handler.Type, "mourn")
		equal(s, "queue", handler.Queue, "graves")
		equal(s, "external id", handler.ExternalID, "failure-"+l.RunID.String())
		equal(s, "failed run", handler.FailedRunID, l.RunID)
		equal(s, "status", handler.Status, engine.RunPending)
		s.sameTime("available at", handler.AvailableAt, s.now)
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
		s.must(json.Unmarshal(s.run(handler.ID).Input.Data, &event), "the event")
		equal(s, "event", event.Event, "kagzi/workflow.failed")
		equal(s, "failed_run_id", event.FailedRunID, l.RunID.String())
		equal(s, "namespace_id", event.NamespaceID, space)
		equal(s, "workflow_type", event.WorkflowType, kind)
		equal(s, "task_queue", event.TaskQueue, queue)
		equal(s, "status", event.Status, "FAILED")
		equal(s, "attempts", event.Attempts, 1)
		equal(s, "original_input", string(event.OriginalInput), "input")
		equal(s, "error", event.Error.Message+event.Error.Type, "card declinedboom")
		equal(s, "failed_at", event.FailedAt, s.now.Format(time.RFC3339Nano))
		equal(s, "started_at", event.StartedAt, s.run(l.RunID).StartedAt.Format(time.RFC3339Nano))
	}},
	{"a handler that is retried stays one", func(s *stage) {
		l := s.held(func(r *engine.StartRun) { r.OnFailureWorkflow = "mourn" })
		s.failRun(l, "no")
		handler := s.handler(l.RunID)
		s.cancel(handler.ID)
		retried := s.run(s.retry(handler.ID).RunID)
		equal(s, "failed run", retried.FailedRunID, l.RunID)
		s.payload("input", retried.Input, s.run(handler.ID).Input)
	}},
	{"without a queue of its own the handler goes to the run's", func(s *stage) {
		l := s.held(onFailure)
		s.failRun(l, "no")
		equal(s, "queue", s.handler(l.RunID).Queue, queue)
	}},
	{"a deadline and too many lost workers are failures too, whoever ends the run is none", func(s *stage) {
		late := s.start(onFailure, func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Second) })
		s.pass(time.Second)
		s.expire()
		s.handler(late)
		l := s.held(onFailure)
		for i := 0; i < engine.MaxLeaseLosses; i++ {
			s.lose("w1")
			if i < engine.MaxLeaseLosses-1 {
				s.now = s.run(l.RunID).AvailableAt
				s.claim("w1")
			}
		}
		s.status(l.RunID, engine.RunFailed)
		s.handler(l.RunID)
		for _, end := range []func(engine.ID){
			func(id engine.ID) { s.cancel(id) },
			func(id engine.ID) {
				_, err := s.store.TerminateRun(s.ctx, s.endParams(id, ""))
				s.must(err, "TerminateRun")
			},
		} {
			id := s.start(onFailure)
			end(id)
			equal(s, "handlers", len(s.handlers(id)), 0)
		}
	}},
	{"a run that is tried again has not failed yet", func(s *stage) {
		l := s.held(onFailure, withPolicy(engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 1000, Jitter: -1}))
		s.failRun(l, "no")
		equal(s, "handlers", len(s.handlers(l.RunID)), 0)
		s.pass(time.Second)
		s.failRun(s.claim("w1").Lease, "no")
		s.handler(l.RunID)
		equal(s, "handlers after a repetition", len(s.handlers(l.RunID)), 1)
	}},
	{"a handler that fails has no handler", func(s *stage) {
		w := s.newWorker("undertaker")
		w.Types = []string{engine.GlobalHandler, "mourn"}
		s.register(w, true)
		l := s.held(onFailure)
		s.failRun(l, "no")
		handlers := s.handlers(l.RunID)
		equal(s, "handlers", len(handlers), 2)
		for range handlers {
			p := s.claimParams("undertaker")
			p.Types = []string{engine.GlobalHandler, "mourn"}
			task := s.claimWith(p).Tasks[0]
			v, err := s.store.FailRun(s.ctx, engine.FailRunParams{Lease: task.Lease, Failure: boom("no"), Now: s.now})
			s.must(err, "FailRun")
			equal(s, "handler", v.Handler, true)
			equal(s, "handlers of the handler", len(s.handlers(task.Run.ID)), 0)
		}
		runs, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, engine.Page{Limit: 100})
		s.must(err, "ListRuns")
		equal(s, "runs", len(runs), 3)
	}},
	{"an external id that looks like a handler's stands in nobody's way, and loses no handler", func(s *stage) {
		l := s.held(onFailure)
		squatter := s.start(withExternal("failure-"+l.RunID.String()), ofType("other"), onFailure)
		s.failRun(l, "no")
		s.handler(l.RunID)
		s.status(squatter, engine.RunPending)
		again := s.started(s.newRun(withExternal("failure-"+l.RunID.String()), ofType("other")))
		equal(s, "run of the user's id", again.RunID, squatter)
		w := s.newWorker("w2")
		w.Types = []string{"other"}
		s.register(w, true)
		p := s.claimParams("w2")
		p.Types = []string{"other"}
		_, err := s.store.FailRun(s.ctx, engine.FailRunParams{Lease: s.claimWith(p).Tasks[0].Lease, Failure: boom("no"), Now: s.now})
		s.must(err, "FailRun")
		s.handler(squatter)
	}},
	{"the global handler runs where an online worker serves it", func(s *stage) {
		w := s.newWorker("undertaker")
		w.Types, w.Queues = []string{engine.GlobalHandler}, []string{"graves", "more"}
		s.register(w, true)
		for _, other := range []struct{ id, space string }{{"away", "elsewhere"}, {"busy", space}, {"vicar", space}} {
			w := s.newWorker(other.id)
			w.Namespace, w.Types, w.Queues = other.space, []string{engine.GlobalHandler}, []string{"yards"}
			s.register(w, true)
		}
		s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "busy", Now: s.now}), "DrainWorker")
		l := s.held()
		s.failRun(l, "no")
		handler := s.handler(l.RunID)
		equal(s, "type", handler.Type, engine.GlobalHandler)
		equal(s, "queue", handler.Queue, "graves")
		equal(s, "external id", handler.ExternalID, "system-failure-"+l.RunID.String())
		s.offline("undertaker", engine.OfflineDeregistered)
		s.offline("vicar", engine.OfflineDeregistered)
		l = s.held()
		s.failRun(l, "no")
		equal(s, "handlers, nobody serving it", len(s.handlers(l.RunID)), 0)
	}},
	{"the global handler runs in the queue that the namespace names, when no worker serves it", func(s *stage) {
		l := s.held()
		n, err := s.store.GetNamespace(s.ctx, space)
		s.must(err, "GetNamespace")
		n.FailureQueue = "night"
		_, err = s.store.UpdateNamespace(s.ctx, engine.NamespaceParams{Namespace: n, Method: "UpdateNamespace", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateNamespace")
		s.failRun(l, "no")
		equal(s, "queue", s.handler(l.RunID).Queue, "night")
	}},
	{"an input that is too large for the event is left out", func(s *stage) {
		big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
		l := s.held(onFailure, func(r *engine.StartRun) { r.Input = big })
		s.failRun(l, "no")
		var event struct {
			Input   []byte `json:"original_input"`
			Omitted bool   `json:"original_input_omitted"`
		}
		s.must(json.Unmarshal(s.run(s.handler(l.RunID).ID).Input.Data, &event), "the event")
		equal(s, "omitted", event.Omitted, true)
		equal(s, "bytes", len(event.Input), 0)
	}},
}

func onFailure(r *engine.StartRun) { r.OnFailureWorkflow = "mourn" }

func (s *stage) handlers(run engine.ID) []engine.Run {
	s.Helper()
	list, err := s.store.ListHandlers(s.ctx, space, run)
	s.must(err, "ListHandlers")
	return list
}

// handler is the only one of a run.
func (s *stage) handler(run engine.ID) engine.Run {
	s.Helper()
	list := s.handlers(run)
	equal(s, "handlers", len(list), 1)
	return list[0]
}
