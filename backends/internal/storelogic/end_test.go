package storelogic

import (
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// family returns a held parent that waits for its child; the child is held too and has children of
// its own.
func family(t *testing.T) *memory {
	parent, child, cancelled, abandoned := aRun(1), aHeldRun(2), aHeldRun(3), aRun(4)
	parent.Status, parent.AvailableAt, parent.WaitingFor, parent.Steps = engine.RunSleeping, time.Time{},
		"child:"+id(2).String(), 1
	child.ParentRunID, child.ParentStepID, child.ParentClose = parent.ID, id(101), engine.CloseTerminate
	cancelled.ParentRunID, cancelled.ParentClose = child.ID, engine.CloseCancel
	abandoned.ParentRunID, abandoned.ParentClose = child.ID, engine.CloseAbandon
	m := newMemory(t, parent, child, cancelled, abandoned)
	m.steps = []engine.Step{{
		ID: id(101), RunID: parent.ID, Name: "ship", Kind: engine.StepChild, Status: engine.StepRunning, Latest: true,
		Sequence:   1,
		ChildRunID: child.ID, Awaited: 1,
	}}
	return m
}

func TestRunEndReachesParentAndChildren(t *testing.T) {
	m := family(t)
	if _, err := FailRun(m, engine.FailRunParams{
		Lease: leaseOf(m.runs[id(2)]), Failure: engine.Failure{Message: "no"},
		Now: noon.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if step := m.steps[0]; step.Status != engine.StepFailed || step.Error.Message != "no" ||
		step.Error.Metadata["child_run_id"] != id(2).String() {
		t.Errorf("step of the parent = %+v, want it failed with the child's error", step)
	}
	if parent := m.runs[id(1)]; parent.Status != engine.RunPending ||
		!parent.AvailableAt.Equal(noon.Add(time.Second)) || parent.WaitingFor != "" {
		t.Errorf("parent = %+v, want it due", parent.Run)
	}
	if child := m.runs[id(3)]; child.Status != engine.RunCancelled || !child.Token.IsZero() {
		t.Errorf("child's child = %s, want it cancelled", child.Status)
	}
	if child := m.runs[id(4)]; child.Status != engine.RunPending {
		t.Errorf("abandoned child = %s, want it as it was", child.Status)
	}
	for _, n := range []byte{1, 2, 3} {
		if got := m.saves(n); got != 1 {
			t.Errorf("run %d was written %d times, want once", n, got)
		}
	}
}

func TestRunDoesNotEndForeignStep(t *testing.T) {
	m := family(t)
	unrelated := aHeldRun(5)
	unrelated.ParentRunID, unrelated.ParentStepID = id(1), id(101)
	m.runs[unrelated.ID] = unrelated
	p := engine.CompleteRunParams{Lease: leaseOf(unrelated),
		ContinueAs: &engine.StartRun{Run: engine.Run{ID: id(9)}}, Now: noon}
	if _, err := CompleteRun(m, p); err != nil {
		t.Fatal(err)
	}
	if next := m.runs[id(9)]; !next.ParentStepID.IsZero() {
		t.Errorf("its continuation has the parent's step %s, want none", next.ParentStepID)
	}
	other := aHeldRun(6)
	other.ParentRunID, other.ParentStepID = id(1), id(101)
	m.runs[other.ID] = other
	if _, err := CompleteRun(m, engine.CompleteRunParams{Lease: leaseOf(other), Now: noon}); err != nil {
		t.Fatal(err)
	}
	if step := m.steps[0]; step.Status != engine.StepRunning {
		t.Errorf("step of the parent is %s, want it running until its own child ends", step.Status)
	}
}

func TestParentEndClosesChildren(t *testing.T) {
	m := family(t)
	end, err := TerminateRun(m, engine.EndRunParams{RunID: id(1), Now: noon})
	if err != nil || !end.Changed {
		t.Fatalf("TerminateRun = %+v, %v", end, err)
	}
	for n, want := range map[byte]engine.RunStatus{
		1: engine.RunTerminated, 2: engine.RunTerminated, 3: engine.RunCancelled, 4: engine.RunPending} {
		if got := m.runs[id(n)].Status; got != want {
			t.Errorf("run %d = %s, want %s", n, got, want)
		}
	}
	if got := m.steps[0].Error; got == nil || got.Type != "run_ended" {
		t.Errorf("step of the parent ended with %+v, want run_ended", got)
	}
}

func TestContinuationTakesFreedExternalID(t *testing.T) {
	run := aHeldRun(1)
	run.ExternalID = "order-1"
	m := newMemory(t, run)
	p := engine.CompleteRunParams{Lease: leaseOf(run),
		ContinueAs: &engine.StartRun{Run: engine.Run{ID: id(9)}}, Now: noon}
	done, err := CompleteRun(m, p)
	if err != nil || done.ContinuedAs != id(9) || done.Status != engine.RunCompleted {
		t.Fatalf("CompleteRun = %+v, %v", done, err)
	}
	if next := m.runs[id(9)]; next.ExternalID != "order-1" || next.ContinuedFrom != run.ID {
		t.Errorf("continuation = %+v", next.Run)
	}
}

func TestExpiringRunsStartBufferedTickOnce(t *testing.T) {
	schedule := engine.Schedule{ID: id(50), Namespace: "default", Type: "nightly", Queue: "q", Enabled: true,
		Overlap: engine.OverlapBufferOne, Buffered: noon}
	one, two := aHeldRun(1), aRun(2)
	one.ScheduleID, one.DeadlineAt = schedule.ID.String(), noon
	two.ScheduleID, two.DeadlineAt = schedule.ID.String(), noon
	m := newMemory(t, one, two)
	m.schedule = &schedule
	e, err := EndExpired(m, engine.EndExpiredParams{Now: noon, Limit: 10})
	if err != nil || e.Runs != 2 || !slices.Equal(e.TimedOut, []engine.ID{one.ID, two.ID}) || e.Cancelled != nil {
		t.Fatalf("EndExpired = %+v, %v, want 2", e, err)
	}
	if s := m.schedule; s.Failed != 2 || s.Fired != 1 || !s.Buffered.IsZero() {
		t.Errorf("schedule = %d failed, %d fired, buffered %s; want 2, 1 and none", s.Failed, s.Fired, s.Buffered)
	}
	if open, _ := m.OpenOf(schedule.ID, engine.ID{}); open != 1 {
		t.Errorf("%d runs of the schedule are open, want the buffered one", open)
	}
}

func TestARunThatExpiresWithItsParentEndsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		parent, child byte
		want          engine.RunStatus // of the child
		timedOut      int
	}{
		"the parent first": {1, 2, engine.RunTerminated, 1},
		"the child first":  {2, 1, engine.RunTimedOut, 2},
	} {
		parent, child := aRun(c.parent), aHeldRun(c.child)
		parent.DeadlineAt, child.DeadlineAt = noon, noon
		child.ParentRunID, child.ParentClose = parent.ID, engine.CloseTerminate
		m := newMemory(t, parent, child)
		e, err := EndExpired(m, engine.EndExpiredParams{Now: noon, Limit: 10})
		if err != nil || e.Runs != 2 || len(e.TimedOut) != c.timedOut || e.Cancelled != nil {
			t.Fatalf("%s: EndExpired = %+v, %v, want 2, of which %d timed out", name, e, err, c.timedOut)
		}
		if got := m.runs[child.ID].Status; got != c.want {
			t.Errorf("%s: the child is %s, want %s", name, got, c.want)
		}
	}
}

func TestEachLeaseOfAKeyThatEndsOpensOneGate(t *testing.T) {
	var runs []Run
	for n := byte(1); n <= 5; n++ {
		r := aHeldRun(n)
		if n > 2 {
			r = aRun(n)
			r.AvailableAt, r.HeldAt, r.Gated = time.Time{}, noon.Add(time.Duration(n)), true
		}
		r.ConcurrencyKey, r.ConcurrencyLimit = "customer", 2
		runs = append(runs, r)
	}
	m := newMemory(t, runs...)
	if err := FreeRuns(m, []engine.ID{id(1), id(2)}, noon); err != nil {
		t.Fatal(err)
	}
	for n, gated := range map[byte]bool{3: false, 4: false, 5: true} {
		r := m.runs[id(n)]
		if r.Gated != gated || r.HeldAt.IsZero() == gated || r.AvailableAt.IsZero() != gated {
			t.Errorf("run %d: gated %t, held at %s, available at %s; want gated %t", n, r.Gated, r.HeldAt,
				r.AvailableAt, gated)
		}
	}
}

func TestARefusedVerbHasWrittenNothing(t *testing.T) {
	ended, full, held := aRun(1), aRun(2), aHeldRun(3)
	ended.Status, ended.AvailableAt = engine.RunCompleted, time.Time{}
	full.Bytes = engine.MaxRunBytes
	held.Steps = engine.MaxSteps
	one := engine.Payload{Data: []byte("1")}
	for name, call := range map[string]func(tx Tx) error{
		"a signal to a run that has ended": func(tx Tx) error {
			_, err := SignalRun(tx, engine.SignalRunParams{RunID: ended.ID, Name: "s", Now: noon})
			return err
		},
		"a signal too many bytes": func(tx Tx) error {
			_, err := SignalRun(tx, engine.SignalRunParams{RunID: full.ID, Name: "s", Payload: one, Now: noon})
			return err
		},
		"a step too many": func(tx Tx) error {
			_, err := BeginStep(tx, engine.BeginStepParams{
				Lease: leaseOf(held), Name: "s", Kind: engine.StepFunction, ID: id(100), Now: noon})
			return err
		},
		"a child too many": func(tx Tx) error {
			_, err := StartChild(tx, engine.StartChildParams{Lease: leaseOf(held), Step: "s", ID: id(100), Now: noon})
			return err
		},
		"a pause of a run that has ended": func(tx Tx) error {
			_, err := PauseRun(tx, engine.PauseRunParams{SteerParams: engine.SteerParams{RunID: ended.ID, Now: noon}})
			return err
		},
		"an override while the run goes on": func(tx Tx) error {
			_, err := OverrideStep(tx, engine.OverrideStepParams{
				SteerParams: engine.SteerParams{RunID: full.ID, Now: noon}, Step: "s", Output: &one})
			return err
		},
		"a write under another's lease": func(tx Tx) error {
			return SetRunNote(tx, engine.SetNoteParams{
				Lease: engine.Lease{RunID: held.ID, Token: engine.Token{1}}, Note: "n", Now: noon})
		},
	} {
		m := newMemory(t, ended, full, held)
		if err := call(m); err == nil {
			t.Errorf("%s was not refused", name)
		}
		if len(m.log) > 0 {
			t.Errorf("%s wrote %q before it was refused", name, m.log)
		}
	}
}
