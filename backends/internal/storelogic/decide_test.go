package storelogic

import (
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestChildrenAreAwaitedAsAGroupOfTheirOwn(t *testing.T) {
	step := func(n byte, awaited int64, status engine.StepStatus) engine.Step {
		return engine.Step{ID: id(n), Awaited: awaited, Status: status}
	}
	running, completed := engine.StepRunning, engine.StepCompleted
	for name, c := range map[string]struct {
		waiting []engine.Step
		open    []engine.ID
		any     bool
		steps   []engine.ID
		group   int64
	}{
		"all of two": {[]engine.Step{step(1, 0, running), step(2, 0, running)},
			[]engine.ID{id(1), id(2)}, false, []engine.ID{id(1), id(2)}, 2},
		"any of two": {[]engine.Step{step(1, 0, running), step(2, 0, running)},
			[]engine.ID{id(1), id(2)}, true, []engine.ID{id(1), id(2)}, 1},
		"the only one": {[]engine.Step{step(1, 0, running), step(2, 0, running)}, []engine.ID{id(2)},
			false, []engine.ID{id(2)}, 1},
		"another group beside": {[]engine.Step{step(1, 2, running), step(2, 0, running), step(3, 0, running)},
			[]engine.ID{id(2), id(3)}, false, []engine.ID{id(2), id(3)}, 3},
		"a group whose steps have ended": {[]engine.Step{
			step(1, 4, completed), step(2, 0, running), step(3, 0, running)}, []engine.ID{id(2), id(3)}, false,
			[]engine.ID{id(2), id(3)}, 5},
		"the same group again": {[]engine.Step{step(1, 2, running), step(2, 2, running)},
			[]engine.ID{id(1), id(2)}, false, nil, 2},
		"part of a larger group": {[]engine.Step{step(1, 2, running), step(2, 2, running), step(3, 2, running)},
			[]engine.ID{id(1), id(2)}, false, []engine.ID{id(1), id(2)}, 3},
		"one that wakes by itself": {[]engine.Step{step(1, 1, running), step(2, 0, running)},
			[]engine.ID{id(1), id(2)}, false, []engine.ID{id(2)}, 2},
		"any of those that all wake": {[]engine.Step{step(1, 1, running), step(2, 1, running)},
			[]engine.ID{id(1), id(2)}, true, nil, 1},
	} {
		steps, group := groupOf(c.waiting, c.open, c.any)
		if !slices.Equal(steps, c.steps) || group != c.group {
			t.Errorf("%s: %v become %d, want %v and %d", name, steps, group, c.steps, c.group)
		}
	}
}

func TestATickMeetsAnOpenRunAsOverlapSays(t *testing.T) {
	for _, c := range []struct {
		overlap  engine.Overlap
		busy     bool
		buffered time.Time
		want     tickFate
	}{
		{engine.OverlapUnset, true, time.Time{}, tickFires},
		{engine.OverlapAllow, true, time.Time{}, tickFires},
		{engine.OverlapSkip, false, time.Time{}, tickFires},
		{engine.OverlapSkip, true, time.Time{}, tickSkipped},
		{engine.OverlapBufferOne, false, time.Time{}, tickFires},
		{engine.OverlapBufferOne, true, time.Time{}, tickBuffered},
		{engine.OverlapBufferOne, true, noon, tickSkipped},
	} {
		if got := decide(&engine.Schedule{Overlap: c.overlap, Buffered: c.buffered}, c.busy); got != c.want {
			t.Errorf("overlap %d, busy %t, buffered %t: %d, want %d", c.overlap, c.busy, !c.buffered.IsZero(),
				got, c.want)
		}
	}
}

func TestARunExpiresByWhatIsFirst(t *testing.T) {
	soon, late := noon.Add(time.Minute), noon.Add(time.Hour)
	for _, c := range []struct {
		deadline, grace time.Time
		want            engine.RunStatus
	}{
		{soon, time.Time{}, engine.RunTimedOut},
		{time.Time{}, soon, engine.RunCancelled},
		{soon, late, engine.RunTimedOut},
		{late, soon, engine.RunCancelled},
		{soon, soon, engine.RunCancelled},
	} {
		status, failure := expiry(&engine.Run{DeadlineAt: c.deadline, GraceUntil: c.grace, CancelReason: "why"})
		if status != c.want || (failure.Message == "why") != (status == engine.RunCancelled) {
			t.Errorf("deadline %s, grace %s: %s with %q, want %s", c.deadline, c.grace, status, failure.Message, c.want)
		}
	}
}

func TestOversizedChildResultFailsStep(t *testing.T) {
	output := engine.Payload{Data: make([]byte, 100)}
	for room, want := range map[int64]engine.StepStatus{100: engine.StepCompleted, 99: engine.StepFailed} {
		var step engine.Step
		parent := Run{Run: engine.Run{Bytes: engine.MaxRunBytes - room}}
		finishChild(&step, &Run{Run: engine.Run{Status: engine.RunCompleted}}, &parent, output)
		if step.Status != want || want == engine.StepFailed && step.Error.Type != "too_large" {
			t.Errorf("room for %d: %+v, want %s", room, step, want)
		}
	}
}

func TestCrashedChildDoesNotInterruptParentStep(t *testing.T) {
	crashed := engine.CrashedFailure()
	var step engine.Step
	finishChild(&step, &Run{Run: engine.Run{Status: engine.RunFailed, Error: &crashed}}, &Run{}, engine.Payload{})
	if step.Interrupted() {
		t.Error("the step counts as interrupted, and would start another child")
	}
}

func TestParkAfterCancelRequestMakesRunDue(t *testing.T) {
	asked := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		claimed time.Time
		asked   time.Time
		until   time.Time
		want    engine.RunStatus
	}{
		"not cancelled":              {noon, time.Time{}, time.Time{}, engine.RunSleeping},
		"claimed before it was":      {noon, asked, asked.Add(time.Minute), engine.RunPending},
		"claimed after, so it knows": {asked.Add(time.Second), asked, asked.Add(time.Minute), engine.RunSleeping},
	} {
		run := aHeldRun(1)
		run.ClaimedAt, run.CancelRequestedAt, run.GraceUntil = c.claimed, c.asked, c.until
		m := newMemory(t, run)
		p := engine.SleepParams{Lease: leaseOf(run), Step: engine.StepRef{Name: "nap"}, ID: id(100),
			Duration: time.Hour, Now: asked.Add(2 * time.Second)}
		if _, err := Sleep(m, p); err != nil {
			t.Fatal(err)
		}
		if got := m.runs[run.ID].Status; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestASignalMakesTheRunDueAndAClaimGivesItToTheOldestWait(t *testing.T) {
	run := aRun(1)
	run.Status, run.AvailableAt, run.Steps = engine.RunSleeping, noon.Add(-time.Minute), 3
	m := newMemory(t, run)
	for n, limit := range []time.Time{noon.Add(-time.Second), noon.Add(time.Hour), {}} {
		m.steps = append(m.steps, engine.Step{
			ID: id(byte(100 + n)), RunID: run.ID, Name: string(rune('a' + n)), Kind: engine.StepSignal,
			Status: engine.StepRunning, Latest: true,
			Sequence: int64(n + 1), SignalName: "s", WakeAt: limit, Awaited: 1, Token: engine.Token{1},
		})
	}
	if _, err := SignalRun(m, engine.SignalRunParams{
		RunID: run.ID, Name: "s", Payload: engine.Payload{Data: []byte("x")}, Now: noon}); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.steps {
		if s.Status != engine.StepRunning {
			t.Errorf("step %s after the signal: %s, want RUNNING", s.Name, s.Status)
		}
	}
	if got := m.runs[run.ID]; got.Status != engine.RunPending || !got.AvailableAt.Equal(noon.Add(-time.Minute)) ||
		got.Bytes != 1 || !got.TiedTo {
		t.Errorf("run = %+v, want it due since before, with 1 byte more", got.Run)
	}
	if _, err := SettleClaimed(m, run.ID, engine.Token{}, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if s := m.steps[0]; s.Status != engine.StepCompleted || !s.TimedOut || !s.FinishedAt.Equal(s.WakeAt) ||
		s.Settled != 1 {
		t.Errorf("the wait whose limit has passed: %+v, want it timed out first", s)
	}
	if s := m.steps[1]; s.Status != engine.StepCompleted || s.TimedOut || string(s.Output.Data) != "x" ||
		s.Token != (engine.Token{1}) || s.Settled != 2 {
		t.Errorf("the oldest that waits: %+v, want it completed with the payload, under its own token", s)
	}
	if s := m.steps[2]; s.Status != engine.StepRunning || s.Settled != 0 {
		t.Errorf("the next: %s, want RUNNING", s.Status)
	}
}
