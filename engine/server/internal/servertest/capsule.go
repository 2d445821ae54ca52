package servertest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var Began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func SomeID(n int) engine.ID { return engine.NewID(Began.Add(time.Duration(n) * time.Second)) }

func TextPayload(s string) engine.Payload {
	return engine.Payload{Data: []byte(s), Metadata: map[string]string{"content-type": "text/plain"}}
}

// Family returns a store with a completed run, its child, the open run that the child continued as,
// and an unrelated run.
func Family() *Books {
	root, first, second, other := SomeID(1), SomeID(2), SomeID(3), SomeID(4)
	start := SomeID(5)
	run := func(id engine.ID, status engine.RunStatus) engine.Run {
		r := engine.Run{
			ID: id, Namespace: "default", Queue: "q", Type: "t", Status: status, Attempts: 4, Failures: 1,
			CreatedAt: Began, StartedAt: Began.Add(time.Second),
			Input: TextPayload("in of " + id.String()), Tags: map[string]string{"k": "v"}, Note: "n",
			ScheduleID: "elsewhere", WorkerID: "w-1",
			RetryPolicy:    &engine.RetryPolicy{MaximumAttempts: 7},
			RunRetryPolicy: &engine.RetryPolicy{MaximumAttempts: 8},
			Timeouts:       engine.Timeouts{StartToClose: time.Minute},
			DeadlineAt:     Began.Add(time.Hour),
			ExternalID:     "x-" + id.String(), Version: "v3", Priority: -7, Requirements: map[string]string{"gpu": "yes"},
			Pinned: true, LeaseLosses: 3, Unreached: []string{"left", "right"},
			OnFailureWorkflow: "tidy", OnFailureQueue: "tidiers", ConcurrencyKey: "c", ConcurrencyLimit: 4,
			ConcurrencyScope: engine.ScopeOpen,
			ScheduledAt:      Began.Add(-time.Minute),
		}
		if status.Ended() {
			r.FinishedAt, r.Output = Began.Add(time.Minute), TextPayload("out")
		}
		return r
	}
	b := &Books{
		Steps: map[engine.ID][]engine.Step{}, Signals: map[engine.ID][]engine.Signal{},
		audit: map[string][]engine.AuditEvent{},
	}
	pins := make([]engine.AuditEvent, engine.MaxPage+1)
	for i := range pins {
		pins[i] = engine.AuditEvent{ID: SomeID(10_000 + i), At: Began, Method: "PinWorkflow", Reason: "why"}
	}
	slices.Reverse(pins)
	b.audit[root.String()] = pins
	runs := []engine.Run{run(root, engine.RunCompleted), run(first, engine.RunCompleted),
		run(second, engine.RunRunning), run(other, engine.RunFailed)}
	runs[0].BelowHandler, runs[1].BelowHandler, runs[2].BelowHandler = true, true, true
	runs[2].FirstRunID = first
	runs[1].ParentRunID, runs[1].ParentStepID, runs[1].ContinuedAs = root, start, second
	runs[2].ParentRunID, runs[2].ContinuedFrom, runs[2].RetriedFrom = root, first, other
	runs[2].CancelRequestedAt, runs[2].GraceUntil = Began, Began.Add(time.Minute)
	runs[0].CancelRequestedAt, runs[0].GraceUntil = Began.Add(time.Second), Began.Add(time.Hour)
	runs[0].NamedDeadlineAt, runs[0].UnreadSignals = Began.Add(2*time.Hour), 3
	b.Runs = slices.Clone(runs)
	slices.Reverse(b.Runs)
	for i := range 250 { // several pages
		b.Steps[root] = append(b.Steps[root], engine.Step{
			ID: SomeID(10 + i), RunID: root, Name: fmt.Sprintf("s%d", i), Kind: engine.StepFunction,
			Status: engine.StepCompleted, Attempt: 1, Latest: true,
			Sequence: int64(i + 1), Input: TextPayload("in of a step"), Output: TextPayload("in of the next"),
			CreatedAt: Began, StartedAt: Began.Add(time.Second), FinishedAt: Began.Add(time.Minute),
			WorkerID: "w-2", Settled: int64(i + 1), Branch: "2.1", BegunIn: 1,
		})
	}
	failed := &b.Steps[root][248]
	failed.Status, failed.Error, failed.Output, failed.Failures = engine.StepFailed,
		&engine.Failure{Code: engine.FailureCrashed, Message: "no"}, engine.Payload{}, 0
	failed.RetryAt, failed.OverriddenBy, failed.OverrideReason = Began.Add(time.Hour), "somebody", "because"
	waited := &b.Steps[root][249]
	waited.Kind, waited.SignalName, waited.TimedOut, waited.WakeAt = engine.StepSignal, "stop", true,
		Began.Add(time.Minute)
	b.Steps[root] = append(b.Steps[root], engine.Step{
		ID: start, RunID: root, Name: "child", Kind: engine.StepChild, Status: engine.StepCompleted, Attempt: 1,
		Latest: true, Sequence: 251, ChildType: "grinding", BegunIn: -1,
		ChildRunID: first, Output: TextPayload("out"), CreatedAt: Began, StartedAt: Began, FinishedAt: Began,
	})
	lost := engine.InterruptedFailure()
	b.Steps[second] = []engine.Step{
		{ID: SomeID(7), Name: "work", Kind: engine.StepFunction, Status: engine.StepFailed, Attempt: 1, Sequence: 1,
			Error: &lost, CreatedAt: Began, StartedAt: Began, FinishedAt: Began},
		{ID: SomeID(8), Name: "work", Kind: engine.StepFunction, Status: engine.StepRunning, Attempt: 2, Sequence: 1,
			Latest: true, CreatedAt: Began, StartedAt: Began},
		{ID: SomeID(9), Name: "nap", Kind: engine.StepSleep, Status: engine.StepRunning, Attempt: 1, Sequence: 2,
			Latest: true, CreatedAt: Began, StartedAt: Began, WakeAt: Began.Add(time.Hour)},
	}
	for i := range 250 {
		b.Signals[root] = append(b.Signals[root], engine.Signal{
			RunID: root, Sequence: int64(i + 1), Name: "go", SignalID: fmt.Sprintf("id-%d", i),
			Payload: TextPayload("signal"), ReceivedAt: Began, StepName: "s1",
		})
	}
	b.Signals[second] = []engine.Signal{{RunID: second, Sequence: 1, Name: "go", Payload: TextPayload("signal"),
		ReceivedAt: Began, StepName: "not-there"}}
	return b
}

// Files unpacks a zip file, in its order.
func Files(t *testing.T, file []byte) (names []string, content map[string][]byte) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	content = map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, content[f.Name] = append(names, f.Name), text
	}
	return names, content
}

func Packed(t *testing.T, content map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
