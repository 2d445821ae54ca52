package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAnImportedRunIsHeldToTheLimitsOfAStart(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Run)
		field  string
		kind   Kind
	}{
		{"a plain run", func(*Run) {}, "", 0},
		{"no status", func(r *Run) { r.Status = 0 }, "status", KindInvalid},
		{"a schedule's status", func(r *Run) { r.Status = 7 }, "status", KindInvalid},
		{"a status above all", func(r *Run) { r.Status = RunTerminated + 1 }, "status", KindInvalid},
		{"the last status", func(r *Run) { r.Status = RunTerminated }, "", 0},
		{"no creation", func(r *Run) { r.CreatedAt = time.Time{} }, "created_at", KindInvalid},
		{"a bad type", func(r *Run) { r.Type = "a b" }, "workflow_type", KindInvalid},
		{"a large input", func(r *Run) { r.Input.Data = make([]byte, MaxPayload+1) }, "input", KindTooLarge},
		{"a large output", func(r *Run) { r.Output.Data = make([]byte, MaxPayload+1) }, "output", KindTooLarge},
		{"the longest note", func(r *Run) { r.Note = strings.Repeat("n", MaxNote) }, "", 0},
		{"a longer note", func(r *Run) { r.Note = strings.Repeat("n", MaxNote+1) }, "note", KindInvalid},
		{"a bad worker", func(r *Run) { r.WorkerID = "a b" }, "worker_id", KindInvalid},
		{"no attempt", func(r *Run) { r.Attempts = 0 }, "attempts", KindInvalid},
		{"negative losses", func(r *Run) { r.LeaseLosses = -1 }, "lease_losses", KindInvalid},
		{"a bad priority", func(r *Run) { r.Priority = 101 }, "priority", KindInvalid},
	} {
		r := Run{Namespace: "default", Queue: "q", Type: "t", Status: RunCompleted, CreatedAt: someDay, Attempts: 1}
		c.change(&r)
		check(t, c.what, r.ValidateImport(), c.field, c.kind)
	}
}

func TestAnImportedStepIsHeldToItsLimits(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Step)
		field  string
		kind   Kind
	}{
		{"a plain step", func(*Step) {}, "", 0},
		{"no name", func(s *Step) { s.Name = "" }, "name", KindInvalid},
		{"an unknown kind", func(s *Step) { s.Kind = 9 }, "kind", KindInvalid},
		{"an unknown status", func(s *Step) { s.Status = 9 }, "status", KindInvalid},
		{"no creation", func(s *Step) { s.CreatedAt = time.Time{} }, "created_at", KindInvalid},
		{"no attempt", func(s *Step) { s.Attempt = 0 }, "attempt_number", KindInvalid},
		{"a wait for nothing", func(s *Step) { s.Kind = StepSignal }, "signal_name", KindInvalid},
		{"a large output", func(s *Step) { s.Output.Data = make([]byte, MaxPayload+1) }, "output", KindTooLarge},
		{"the largest output of a child, and whose it is", func(s *Step) {
			s.Kind, s.Output = StepChild, ChildOutput(Payload{Data: make([]byte, MaxPayload)}, ID{1}, ID{2})
		}, "", 0},
		{"a larger output of a child", func(s *Step) {
			s.Kind, s.Output = StepChild, ChildOutput(Payload{Data: make([]byte, MaxPayload+1)}, ID{1}, ID{2})
		}, "output", KindTooLarge},
		{"a large input", func(s *Step) { s.Input.Data = make([]byte, MaxPayload+1) }, "input", KindTooLarge},
		{"a long reason", func(s *Step) {
			s.OverrideReason = strings.Repeat("r", MaxReason+1)
		}, "override_reason", KindInvalid},
		{"a long name of who", func(s *Step) {
			s.OverriddenBy = strings.Repeat("r", MaxName+1)
		}, "overridden_by", KindInvalid},
		{"a bad worker", func(s *Step) { s.WorkerID = "a:b" }, "worker_id", KindInvalid},
	} {
		s := Step{Name: "s", Kind: StepFunction, Status: StepCompleted, Attempt: 1, CreatedAt: someDay}
		c.change(&s)
		check(t, c.what, s.ValidateImport(), c.field, c.kind)
	}
	signal := Signal{Name: "go"}
	check(t, "a signal that never came", signal.ValidateImport(), "received_at", KindInvalid)
	signal.ReceivedAt = someDay
	check(t, "a plain signal", signal.ValidateImport(), "", 0)
	signal.StepName = "a b"
	check(t, "a signal for no step", signal.ValidateImport(), "step_name", KindInvalid)
}

func TestAnImportedRunIsWithinTheLimitsOfARun(t *testing.T) {
	many := func(n int) []Step {
		steps := make([]Step, n)
		for i := range steps {
			steps[i].Name = fmt.Sprintf("s%d", i)
		}
		return steps
	}
	r := ImportedRun{Steps: append(many(MaxSteps), Step{Name: "s0"}), Run: Run{Input: Payload{Data: []byte("12")}}}
	r.Steps[0].Output.Data, r.Steps[1].Error = []byte("345"), &Failure{Message: "6"}
	r.Signals = []Signal{{Payload: Payload{Data: []byte("78")}},
		{Payload: Payload{Data: []byte("consumed")}, StepName: "s0"}}
	check(t, "as many steps as are allowed", r.Validate(), "", 0)
	if r.Run.Steps != MaxSteps || r.Run.Bytes != 8 {
		t.Errorf("counts %d steps of %d bytes, want %d of 8", r.Run.Steps, r.Run.Bytes, MaxSteps)
	}
	r.Steps = many(MaxSteps + 1)
	check(t, "one step more", r.Validate(), "steps", KindTooLarge)
	r = ImportedRun{Signals: make([]Signal, MaxSignals+1)}
	check(t, "too many signals", r.Validate(), "signals", KindTooLarge)
	r = ImportedRun{Signals: []Signal{{SignalID: "a"}, {SignalID: "a"}}}
	check(t, "one signal twice", r.Validate(), "signal_id", KindInvalid)
	r = ImportedRun{}
	for range MaxRunBytes / MaxPayload {
		r.Signals = append(r.Signals, Signal{Payload: Payload{Data: make([]byte, MaxPayload)}})
	}
	check(t, "all the bytes that are allowed", r.Validate(), "", 0)
	r.Run.Error = &Failure{Message: "x"}
	check(t, "one byte more", r.Validate(), "run", KindTooLarge)
}
