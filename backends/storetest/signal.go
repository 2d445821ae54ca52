package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var signalCases = []testCase{
	{"a signal that came before is consumed at once and the lease goes on", func(s *stage) {
		l := s.held()
		s.signal(l.RunID, "approval", "yes")
		got := s.await(l, "approval", "approval")
		equal(s, "waiting", got.Waiting, false)
		equal(s, "status of the step", got.Step.Status, engine.StepCompleted)
		equal(s, "kind of the step", got.Step.Kind, engine.StepSignal)
		s.payload("output", got.Step.Output, text("yes"))
		equal(s, "consumed by", s.signals(l.RunID)[0].StepName, "approval")
		s.complete(l, "next", "x")
	}},
	{"a wait parks the run without a moment, and the signal makes it due", func(s *stage) {
		l := s.held()
		equal(s, "waiting", s.await(l, "approval", "approval").Waiting, true)
		s.parked(l.RunID, "signal:approval", time.Time{})
		s.claimNothing("w1")
		s.pass(time.Hour)
		s.signal(l.RunID, "approval", "yes")
		s.due(l.RunID)
		s.sameTime("available at", s.run(l.RunID).AvailableAt, s.now)
		task := s.claim("w1")
		equal(s, "steps in the history", len(task.History), 1)
		s.payload("output in the history", task.History[0].Output, text("yes"))
		equal(s, "signal name in the history", task.History[0].SignalName, "approval")
		equal(s, "attempts", task.Run.Attempts, 1)
	}},
	{"signals of a name are consumed in the order in which they came", func(s *stage) {
		l := s.held()
		for i := range 3 {
			s.signal(l.RunID, "item", fmt.Sprint(i))
			s.signal(l.RunID, "other", "x")
		}
		for i := range 3 {
			got := s.await(l, fmt.Sprintf("item:%d", i+1), "item")
			s.payload("output", got.Step.Output, text(fmt.Sprint(i)))
		}
		equal(s, "waiting for a fourth", s.await(l, "item:4", "item").Waiting, true)
		list := s.signals(l.RunID)
		equal(s, "signals", len(list), 6)
		for i, signal := range list {
			equal(s, "sequence", signal.Sequence, int64(i+1))
		}
	}},
	{"a signal id is delivered once, whatever becomes of the run", func(s *stage) {
		l := s.held()
		equal(s, "repeated", s.signal(l.RunID, "approval", "yes", signalID("a")).Repeated, false)
		equal(s, "repeated", s.signal(l.RunID, "approval", "no", signalID("a")).Repeated, true)
		s.payload("output", s.await(l, "approval", "approval").Step.Output, text("yes"))
		equal(s, "repeated after it was consumed", s.signal(l.RunID, "approval", "yes", signalID("a")).Repeated, true)
		equal(s, "signals", len(s.signals(l.RunID)), 1)
		s.finish(l, "done")
		equal(s, "repeated after the end", s.signal(l.RunID, "approval", "yes", signalID("a")).Repeated, true)
	}},
	{"without an id each delivery counts", func(s *stage) {
		l := s.held()
		s.signal(l.RunID, "item", "a")
		s.signal(l.RunID, "item", "a")
		equal(s, "signals", len(s.signals(l.RunID)), 2)
	}},
	{"an ended run takes no signal, and says so", func(s *stage) {
		l := s.held()
		s.finish(l, "done")
		_, err := s.trySignal(l.RunID, "approval", "yes")
		s.refused(err, engine.ErrPrecondition, "SignalRun")
		s.explained(err, engine.RunCompleted, "SignalRun")
		equal(s, "signals", len(s.signals(l.RunID)), 0)
		_, err = s.trySignal(s.id(), "approval", "yes")
		s.refused(err, engine.ErrNotFound, "SignalRun of a run that is not there")
	}},
	{"a wait has a limit, which the next claim finds passed", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval", atMost(time.Hour))
		s.parked(l.RunID, "signal:approval", s.now.Add(time.Hour))
		s.pass(time.Hour)
		task := s.claim("w1")
		equal(s, "status in the history", task.History[0].Status, engine.StepCompleted)
		equal(s, "timed out", task.History[0].TimedOut, true)
		s.sameTime("finished at", task.History[0].FinishedAt, s.now)
		s.signal(l.RunID, "approval", "late")
		equal(s, "the late signal waits", s.signals(l.RunID)[0].StepName, "")
		got := s.await(task.Lease, "approval", "approval")
		equal(s, "the step stands", got.Step.TimedOut, true)
	}},
	{"a signal after the limit does not reach the wait, though nobody has claimed the run yet", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval", atMost(time.Minute))
		s.pass(time.Minute)
		s.signal(l.RunID, "approval", "late")
		step := s.step(l.RunID, "approval")
		equal(s, "timed out", step.TimedOut, true)
		equal(s, "the signal waits", s.signals(l.RunID)[0].StepName, "")
		s.due(l.RunID)
	}},
	{"a repeated wait keeps its limit", func(s *stage) {
		l := s.held()
		begun := s.now
		s.await(l, "approval", "approval", atMost(time.Hour), holdingOn)
		s.pass(time.Minute)
		s.await(l, "approval", "approval", atMost(time.Hour))
		s.parked(l.RunID, "signal:approval", begun.Add(time.Hour))
	}},
	{"a wait repeated under the lease that it ended is answered alike", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval")
		equal(s, "waiting", s.await(l, "approval", "approval").Waiting, true)
		_, err := s.tryAwait(l, "approval", "refusal")
		s.refused(err, engine.ErrConflict, "AwaitSignal of another signal under that name")
		s.signal(l.RunID, "approval", "yes")
		equal(s, "waiting, the signal being there", s.await(l, "approval", "approval").Waiting, true)
		next := s.claim("w1").Lease
		got := s.await(next, "approval", "approval")
		equal(s, "waiting under the next lease", got.Waiting, false)
		s.payload("output", got.Step.Output, text("yes"))
		_, err = s.tryAwait(l, "other", "approval")
		s.lost(err, engine.RunRunning, "AwaitSignal of another step under the old lease")
	}},
	{"a held wait keeps the lease, and a signal that comes meanwhile makes the parked run due at once", func(s *stage) {
		l := s.held()
		equal(s, "waiting", s.await(l, "approval", "approval", holdingOn).Waiting, true)
		s.sleep(l, "nap", time.Hour, held)
		s.status(l.RunID, engine.RunRunning)
		s.signal(l.RunID, "approval", "yes")
		equal(s, "status of the step", s.step(l.RunID, "approval").Status, engine.StepCompleted)
		s.release(l, true)
		s.due(l.RunID)
		task := s.claim("w1")
		s.release(task.Lease, true)
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Hour))
	}},
	{"a wait that has been answered cuts no later park short", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval", holdingOn)
		s.signal(l.RunID, "approval", "yes")
		equal(s, "waiting", s.await(l, "approval", "approval").Waiting, false)
		s.sleep(l, "nap", time.Hour)
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Hour))
	}},
	{"a wait and a timer side by side end at whichever is first", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval", atMost(time.Hour), holdingOn)
		s.sleep(l, "nap", time.Minute, held)
		s.release(l, true)
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Minute))
		s.pass(time.Second)
		s.signal(l.RunID, "approval", "yes")
		s.due(l.RunID)
	}},
	{"a step of another kind or of another signal is a conflict", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "done")
		_, err := s.tryAwait(l, "pay", "approval")
		s.refused(err, engine.ErrConflict, "AwaitSignal")
		s.await(l, "approval", "approval", holdingOn)
		_, err = s.tryAwait(l, "approval", "refusal")
		s.refused(err, engine.ErrConflict, "AwaitSignal of another name")
		_, err = s.tryComplete(l, "approval", "x")
		if err == nil {
			s.Fatalf("CompleteStep of a wait succeeded, want it refused")
		}
	}},
	{"a signal is for its own run and name", func(s *stage) {
		l := s.held()
		other := s.start()
		s.await(l, "approval", "approval")
		s.signal(other, "approval", "yes")
		s.signal(l.RunID, "refusal", "yes")
		s.parked(l.RunID, "signal:approval", time.Time{})
	}},
	{"of two waits for one name the older one gets the signal", func(s *stage) {
		l := s.held()
		s.await(l, "item", "item", holdingOn)
		s.await(l, "item:2", "item", holdingOn)
		s.signal(l.RunID, "item", "first")
		equal(s, "older", s.step(l.RunID, "item").Status, engine.StepCompleted)
		equal(s, "younger", s.step(l.RunID, "item:2").Status, engine.StepRunning)
		s.signal(l.RunID, "item", "second")
		s.payload("younger", s.step(l.RunID, "item:2").Output, text("second"))
	}},
	{"signals count to what a run may record", func(s *stage) {
		l := s.held()
		before := s.run(l.RunID).Bytes
		s.signal(l.RunID, "a", "12345")
		equal(s, "bytes while RUNNING", s.run(l.RunID).Bytes, before+5)
		s.await(l, "b", "b")
		s.signal(l.RunID, "a", "12345")
		equal(s, "bytes while SLEEPING", s.run(l.RunID).Bytes, before+10)
		big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
		for range 31 {
			s.signal(l.RunID, "a", "", func(p *engine.SignalRunParams) { p.Payload = big })
		}
		_, err := s.trySignal(l.RunID, "a", "", func(p *engine.SignalRunParams) { p.Payload = big })
		s.refused(err, engine.ErrTooLarge, "SignalRun past the run's limit")
		equal(s, "signals", len(s.signals(l.RunID)), 33)
	}},
	{"a wait whose limit is over at the moment when the lease ends has timed out, and a timer has not", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approved", atMost(time.Minute), holdingOn)
		s.sleep(l, "nap", time.Minute, held)
		s.pass(time.Minute)
		s.release(l, false)
		for name, timedOut := range map[string]bool{"approval": true, "nap": false} {
			step := s.step(l.RunID, name)
			equal(s, "status of "+name, step.Status, engine.StepCompleted)
			equal(s, name+" timed out", step.TimedOut, timedOut)
			s.sameTime("end of "+name, step.FinishedAt, s.now)
		}
	}},
	{"a run has room for MaxSignals that nothing has consumed and no more", func(s *stage) {
		s.worker("w1")
		full := engine.ImportedRun{Run: s.newRun().Run}
		full.Run.Status, full.Run.Attempts = engine.RunPending, 1
		for i := range engine.MaxSignals {
			full.Signals = append(full.Signals, engine.Signal{RunID: full.Run.ID, Sequence: int64(i + 1), Name: "a", ReceivedAt: s.now})
		}
		_, err := s.store.ImportRuns(s.ctx, engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{full}})
		s.must(err, "ImportRuns")
		_, err = s.trySignal(full.Run.ID, "a", "")
		s.refused(err, engine.ErrTooLarge, "SignalRun of a run that is full")
		s.resume(full.Run.ID)
		s.await(s.claim("w1").Lease, "took", "a")
		s.signal(full.Run.ID, "a", "in the place of what was consumed")
		_, err = s.trySignal(full.Run.ID, "a", "")
		s.refused(err, engine.ErrTooLarge, "SignalRun of a run that is full again")
	}},
	{"a signal to a paused run makes it due when it is resumed", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval")
		s.pause(l.RunID)
		s.pass(time.Minute)
		s.signal(l.RunID, "approval", "yes")
		s.claimNothing("w1")
		s.pass(time.Minute)
		s.resume(l.RunID)
		s.due(l.RunID)
		s.payload("output in the history", s.claim("w1").History[0].Output, text("yes"))
	}},
	{"a run that waits for a signal can be cancelled, and ended steps with it", func(s *stage) {
		l := s.held()
		s.await(l, "approval", "approval")
		s.cancel(l.RunID)
		step := s.step(l.RunID, "approval")
		equal(s, "status of the step", step.Status, engine.StepFailed)
		s.failure("error of the step", step.Error, engine.RunEndedFailure())
	}},
	{"signals are listed by page in both directions", func(s *stage) {
		run := s.start()
		for i := range 5 {
			s.signal(run, "item", fmt.Sprint(i))
		}
		first, info, err := s.store.ListSignals(s.ctx, space, run, engine.Page{Limit: 2})
		s.must(err, "ListSignals")
		equal(s, "next", info.HasNext, true)
		second, info, err := s.store.ListSignals(s.ctx, space, run, engine.Page{Limit: 2, After: &engine.Cursor{Number: first[1].Sequence}})
		s.must(err, "ListSignals")
		equal(s, "previous", info.HasPrev, true)
		equal(s, "third", second[0].Sequence, 3)
		back, _, err := s.store.ListSignals(s.ctx, space, run, engine.Page{Limit: 2, Before: &engine.Cursor{Number: second[0].Sequence}})
		s.must(err, "ListSignals")
		equal(s, "back at", back[0].Sequence, 1)
		_, _, err = s.store.ListSignals(s.ctx, "elsewhere", run, engine.Page{Limit: 2})
		s.refused(err, engine.ErrNotFound, "ListSignals in another namespace")
	}},
	{"a signal that a wait was given reaches no other", func(s *stage) {
		l := s.held()
		equal(s, "the first waits", s.await(l, "first", "go").Waiting, true)
		s.signal(l.RunID, "go", "1")
		equal(s, "consumed by", s.signals(l.RunID)[0].StepName, "first")
		l = s.claim("w1").Lease
		s.payload("what the first was given", s.await(l, "first", "go").Step.Output, text("1"))
		equal(s, "the second waits", s.await(l, "second", "go").Waiting, true)
	}},
}
