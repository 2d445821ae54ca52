package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var SignalCases = []fixture.Case{
	{Name: "a signal received before the wait is consumed at once", Run: func(s *fixture.F) {
		l := s.Held()
		s.Signal(l.RunID, "approval", "yes")
		got := s.Await(l, "approval", "approval")
		fixture.Equal(s, "waiting", got.Waiting, false)
		fixture.Equal(s, "status of the step", got.Step.Status, engine.StepCompleted)
		fixture.Equal(s, "kind of the step", got.Step.Kind, engine.StepSignal)
		s.Payload("output", got.Step.Output, fixture.Text("yes"))
		fixture.Equal(s, "consumed by", s.Signals(l.RunID)[0].StepName, "approval")
		s.Complete(l, "next", "x")
	}},
	{Name: "a wait parks the run without a time until the signal", Run: func(s *fixture.F) {
		l := s.Held()
		fixture.Equal(s, "waiting", s.Await(l, "approval", "approval").Waiting, true)
		s.Parked(l.RunID, "signal:approval", time.Time{})
		s.ClaimNothing("w1")
		s.Pass(time.Hour)
		s.Signal(l.RunID, "approval", "yes")
		s.Due(l.RunID)
		s.SameTime("available at", s.Run(l.RunID).AvailableAt, s.Now)
		task := s.Claim("w1")
		fixture.Equal(s, "steps in the history", len(task.History), 1)
		s.Payload("output in the history", task.History[0].Output, fixture.Text("yes"))
		fixture.Equal(s, "signal name in the history", task.History[0].SignalName, "approval")
		fixture.Equal(s, "attempts", task.Run.Attempts, 1)
	}},
	{Name: "signals of a name are consumed in order of arrival", Run: func(s *fixture.F) {
		l := s.Held()
		for i := range 3 {
			s.Signal(l.RunID, "item", fmt.Sprint(i))
			s.Signal(l.RunID, "other", "x")
		}
		for i := range 3 {
			got := s.Await(l, fmt.Sprintf("item:%d", i+1), "item")
			s.Payload("output", got.Step.Output, fixture.Text(fmt.Sprint(i)))
		}
		fixture.Equal(s, "waiting for a fourth", s.Await(l, "item:4", "item").Waiting, true)
		list := s.Signals(l.RunID)
		fixture.Equal(s, "signals", len(list), 6)
		for i, signal := range list {
			fixture.Equal(s, "sequence", signal.Sequence, int64(i+1))
		}
	}},
	{Name: "a signal id is delivered only once", Run: func(s *fixture.F) {
		l := s.Held()
		fixture.Equal(s, "repeated", s.Signal(l.RunID, "approval", "yes", fixture.SignalID("a")).Repeated, false)
		fixture.Equal(s, "repeated", s.Signal(l.RunID, "approval", "no", fixture.SignalID("a")).Repeated, true)
		s.Payload("output", s.Await(l, "approval", "approval").Step.Output, fixture.Text("yes"))
		fixture.Equal(s, "repeated after it was consumed",
			s.Signal(l.RunID, "approval", "yes", fixture.SignalID("a")).Repeated, true)
		fixture.Equal(s, "signals", len(s.Signals(l.RunID)), 1)
		s.Finish(l, "done")
		fixture.Equal(s, "repeated after the end",
			s.Signal(l.RunID, "approval", "yes", fixture.SignalID("a")).Repeated, true)
	}},
	{Name: "signals without an id are delivered each time", Run: func(s *fixture.F) {
		l := s.Held()
		s.Signal(l.RunID, "item", "a")
		s.Signal(l.RunID, "item", "a")
		fixture.Equal(s, "signals", len(s.Signals(l.RunID)), 2)
	}},
	{Name: "an ended run refuses signals", Run: func(s *fixture.F) {
		l := s.Held()
		s.Finish(l, "done")
		_, err := s.TrySignal(l.RunID, "approval", "yes")
		s.Refused(err, engine.ErrPrecondition, "SignalRun")
		s.Explained(err, engine.RunCompleted, "SignalRun")
		fixture.Equal(s, "signals", len(s.Signals(l.RunID)), 0)
		_, err = s.TrySignal(s.ID(), "approval", "yes")
		s.Refused(err, engine.ErrNotFound, "SignalRun of a run that is not there")
	}},
	{Name: "a wait with a timeout ends at the next claim", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval", fixture.AtMost(time.Hour))
		s.Parked(l.RunID, "signal:approval", s.Now.Add(time.Hour))
		s.Pass(time.Hour)
		task := s.Claim("w1")
		fixture.Equal(s, "status in the history", task.History[0].Status, engine.StepCompleted)
		fixture.Equal(s, "timed out", task.History[0].TimedOut, true)
		s.SameTime("finished at", task.History[0].FinishedAt, s.Now)
		s.Signal(l.RunID, "approval", "late")
		fixture.Equal(s, "the late signal waits", s.Signals(l.RunID)[0].StepName, "")
		got := s.Await(task.Lease, "approval", "approval")
		fixture.Equal(s, "the step stands", got.Step.TimedOut, true)
	}},
	{Name: "a signal after the timeout does not reach the wait",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Await(l, "approval", "approval", fixture.AtMost(time.Minute))
			s.Pass(time.Minute + time.Microsecond)
			s.Signal(l.RunID, "approval", "late")
			fixture.Equal(s, "the wait is open", s.Step(l.RunID, "approval").Status, engine.StepRunning)
			s.Due(l.RunID)
			step := s.Claim("w1").History[0]
			fixture.Equal(s, "timed out", step.TimedOut, true)
			fixture.Equal(s, "the signal waits", s.Signals(l.RunID)[0].StepName, "")
		}},
	{Name: "a signal before the limit is received after it", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval", fixture.AtMost(time.Minute), fixture.HoldingOn)
		s.Pass(time.Minute)
		s.Signal(l.RunID, "approval", "in time")
		s.Pass(time.Hour)
		got := s.Await(l, "approval", "approval")
		fixture.Equal(s, "timed out", got.Step.TimedOut, false)
		s.Payload("output", got.Step.Output, fixture.Text("in time"))

		s.Await(l, "approval:2", "approval", fixture.AtMost(time.Minute))
		s.Pass(time.Second)
		s.Signal(l.RunID, "approval", "in time, too")
		s.Pass(time.Hour)
		s.Payload("output at the claim", s.Claim("w1").History[1].Output, fixture.Text("in time, too"))
	}},
	{Name: "a signal after the limit waits for the next wait", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval", fixture.AtMost(time.Minute), fixture.HoldingOn)
		s.Pass(time.Minute + time.Microsecond)
		s.Signal(l.RunID, "approval", "late")
		got := s.Await(l, "approval", "approval")
		fixture.Equal(s, "timed out", got.Step.TimedOut, true)
		s.SameTime("finished at", got.Step.FinishedAt, s.Now.Add(-time.Microsecond))
		s.Payload("output of the next", s.Await(l, "approval:2", "approval").Step.Output, fixture.Text("late"))
	}},
	{Name: "a repeated wait keeps its timeout", Run: func(s *fixture.F) {
		l := s.Held()
		begun := s.Now
		s.Await(l, "approval", "approval", fixture.AtMost(time.Hour), fixture.HoldingOn)
		s.Pass(time.Minute)
		s.Await(l, "approval", "approval", fixture.AtMost(time.Hour))
		s.Parked(l.RunID, "signal:approval", begun.Add(time.Hour))
	}},
	{Name: "a wait repeated after its lease gets the same answer", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval")
		fixture.Equal(s, "waiting", s.Await(l, "approval", "approval").Waiting, true)
		_, err := s.TryAwait(l, "approval", "refusal")
		s.Refused(err, engine.ErrConflict, "AwaitSignal of another signal under that name")
		s.Signal(l.RunID, "approval", "yes")
		fixture.Equal(s, "waiting, the signal being there", s.Await(l, "approval", "approval").Waiting, true)
		next := s.Claim("w1").Lease
		got := s.Await(next, "approval", "approval")
		fixture.Equal(s, "waiting under the next lease", got.Waiting, false)
		s.Payload("output", got.Step.Output, fixture.Text("yes"))
		_, err = s.TryAwait(l, "other", "approval")
		s.Lost(err, engine.RunRunning, "AwaitSignal of another step under the old lease")
	}},
	{Name: "a signal during a held wait makes the parked run due",
		Run: func(s *fixture.F) {
			l := s.Held()
			fixture.Equal(s, "waiting", s.Await(l, "approval", "approval", fixture.HoldingOn).Waiting, true)
			s.Sleep(l, "nap", time.Hour, fixture.Held)
			s.Status(l.RunID, engine.RunRunning)
			s.Signal(l.RunID, "approval", "yes")
			fixture.Equal(s, "status of the step", s.Step(l.RunID, "approval").Status, engine.StepRunning)
			s.Release(l, true)
			s.Due(l.RunID)
			task := s.Claim("w1")
			s.Release(task.Lease, true)
			s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Hour))
		}},
	{Name: "an answered wait does not cut a later park short", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval", fixture.HoldingOn)
		s.Signal(l.RunID, "approval", "yes")
		fixture.Equal(s, "waiting", s.Await(l, "approval", "approval").Waiting, false)
		s.Sleep(l, "nap", time.Hour)
		s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Hour))
	}},
	{Name: "a parallel wait and timer end at whichever is first", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval", fixture.AtMost(time.Hour), fixture.HoldingOn)
		s.Sleep(l, "nap", time.Minute, fixture.Held)
		s.Release(l, true)
		s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Minute))
		s.Pass(time.Second)
		s.Signal(l.RunID, "approval", "yes")
		s.Due(l.RunID)
	}},
	{Name: "a wait under another step's name is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "done")
		_, err := s.TryAwait(l, "pay", "approval")
		s.Refused(err, engine.ErrConflict, "AwaitSignal")
		s.Await(l, "approval", "approval", fixture.HoldingOn)
		_, err = s.TryAwait(l, "approval", "refusal")
		s.Refused(err, engine.ErrConflict, "AwaitSignal of another name")
		_, err = s.TryComplete(l, "approval", "x")
		if err == nil {
			s.Fatalf("CompleteStep of a wait succeeded, want it refused")
		}
	}},
	{Name: "a signal reaches only its own run and name", Run: func(s *fixture.F) {
		l := s.Held()
		other := s.Start()
		s.Await(l, "approval", "approval")
		s.Signal(other, "approval", "yes")
		s.Signal(l.RunID, "refusal", "yes")
		s.Parked(l.RunID, "signal:approval", time.Time{})
	}},
	{Name: "the older of two waits for a name gets the signal", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "item", "item", fixture.HoldingOn)
		s.Await(l, "item:2", "item", fixture.HoldingOn)
		s.Release(l, true)
		s.Signal(l.RunID, "item", "first")
		task := s.Claim("w1")
		s.Payload("older", task.History[0].Output, fixture.Text("first"))
		fixture.Equal(s, "younger", task.History[1].Status, engine.StepRunning)
		s.Signal(l.RunID, "item", "second")
		s.Payload("younger", s.Await(task.Lease, "item:2", "item").Step.Output, fixture.Text("second"))
	}},
	{Name: "signals count toward the run's bytes", Run: func(s *fixture.F) {
		l := s.Held()
		before := s.Run(l.RunID).Bytes
		s.Signal(l.RunID, "a", "12345")
		fixture.Equal(s, "bytes while RUNNING", s.Run(l.RunID).Bytes, before+5)
		s.Await(l, "b", "b")
		s.Signal(l.RunID, "a", "12345")
		fixture.Equal(s, "bytes while SLEEPING", s.Run(l.RunID).Bytes, before+10)
		big := engine.Payload{Data: make([]byte, engine.MaxPayload)}
		for range 31 {
			s.Signal(l.RunID, "a", "", func(p *engine.SignalRunParams) { p.Payload = big })
		}
		_, err := s.TrySignal(l.RunID, "a", "", func(p *engine.SignalRunParams) { p.Payload = big })
		s.Refused(err, engine.ErrTooLarge, "SignalRun past the run's limit")
		fixture.Equal(s, "signals", len(s.Signals(l.RunID)), 33)
	}},
	{Name: "a wait whose timeout passes times out at the claim after its lease",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Await(l, "approval", "approved", fixture.AtMost(time.Minute), fixture.HoldingOn)
			s.Sleep(l, "nap", time.Minute, fixture.Held)
			s.Pass(time.Minute)
			s.Release(l, false)
			for _, step := range s.Claim("w1").History {
				fixture.Equal(s, "status of "+step.Name, step.Status, engine.StepCompleted)
				fixture.Equal(s, step.Name+" timed out", step.TimedOut, step.Name == "approval")
				s.SameTime("end of "+step.Name, step.FinishedAt, s.Now)
			}
		}},
	{Name: "a run stores at most MaxSignals unconsumed signals", Run: func(s *fixture.F) {
		s.Worker("w1")
		full := engine.ImportedRun{Run: s.NewRun().Run}
		full.Run.Status, full.Run.Attempts = engine.RunPending, 1
		for i := range engine.MaxSignals {
			full.Signals = append(full.Signals, engine.Signal{
				RunID: full.Run.ID, Sequence: int64(i + 1), Name: "a", ReceivedAt: s.Now})
		}
		_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{
			Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
			Runs: []engine.ImportedRun{full}})
		s.Must(err, "ImportRuns")
		_, err = s.TrySignal(full.Run.ID, "a", "")
		s.Refused(err, engine.ErrTooLarge, "SignalRun of a run that is full")
		s.Resume(full.Run.ID)
		l := s.Claim("w1").Lease
		s.Await(l, "took", "a")
		s.Release(l, false)
		s.Signal(full.Run.ID, "a", "in the place of what was consumed")
		_, err = s.TrySignal(full.Run.ID, "a", "")
		s.Refused(err, engine.ErrTooLarge, "SignalRun of a run that is full again")
		s.Await(s.Claim("w1").Lease, "wanted", "b")
		s.Signal(full.Run.ID, "b", "what the run waits for")
		_, err = s.TrySignal(full.Run.ID, "b", "")
		s.Refused(err, engine.ErrTooLarge, "SignalRun of a run that waits for one signal and has it")
	}},
	{Name: "a signaled paused run is due when it is resumed", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval")
		s.Pause(l.RunID)
		s.Pass(time.Minute)
		s.Signal(l.RunID, "approval", "yes")
		s.ClaimNothing("w1")
		s.Pass(time.Minute)
		s.Resume(l.RunID)
		s.Due(l.RunID)
		s.Payload("output in the history", s.Claim("w1").History[0].Output, fixture.Text("yes"))
	}},
	{Name: "cancelling a run ends its wait for a signal", Run: func(s *fixture.F) {
		l := s.Held()
		s.Await(l, "approval", "approval")
		s.Cancel(l.RunID)
		step := s.Step(l.RunID, "approval")
		fixture.Equal(s, "status of the step", step.Status, engine.StepFailed)
		s.Failure("error of the step", step.Error, engine.RunEndedFailure())
	}},
	{Name: "signals are listed by page in both directions", Run: func(s *fixture.F) {
		run := s.Start()
		for i := range 5 {
			s.Signal(run, "item", fmt.Sprint(i))
		}
		first, info, err := s.Store.ListSignals(s.Ctx, fixture.Space, run, engine.Page{Limit: 2})
		s.Must(err, "ListSignals")
		fixture.Equal(s, "next", info.HasNext, true)
		second, info, err := s.Store.ListSignals(
			s.Ctx, fixture.Space, run, engine.Page{Limit: 2, After: &engine.Cursor{Number: first[1].Sequence}})
		s.Must(err, "ListSignals")
		fixture.Equal(s, "previous", info.HasPrev, true)
		fixture.Equal(s, "third", second[0].Sequence, 3)
		back, _, err := s.Store.ListSignals(s.Ctx, fixture.Space, run,
			engine.Page{Limit: 2, Before: &engine.Cursor{Number: second[0].Sequence}})
		s.Must(err, "ListSignals")
		fixture.Equal(s, "back at", back[0].Sequence, 1)
		_, _, err = s.Store.ListSignals(s.Ctx, "elsewhere", run, engine.Page{Limit: 2})
		s.Refused(err, engine.ErrNotFound, "ListSignals in another namespace")
	}},
	{Name: "a claimed signal reaches no other wait", Run: func(s *fixture.F) {
		l := s.Held()
		fixture.Equal(s, "the first waits", s.Await(l, "first", "go").Waiting, true)
		s.Signal(l.RunID, "go", "1")
		fixture.Equal(s, "consumed by", s.Signals(l.RunID)[0].StepName, "")
		l = s.Claim("w1").Lease
		fixture.Equal(s, "consumed by", s.Signals(l.RunID)[0].StepName, "first")
		s.Payload("what the first was given", s.Await(l, "first", "go").Step.Output, fixture.Text("1"))
		fixture.Equal(s, "the second waits", s.Await(l, "second", "go").Waiting, true)
	}},
}
