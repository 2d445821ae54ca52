package engine

import (
	"strings"
	"testing"
	"time"
)

var someDay = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestScheduleValidate(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Schedule)
		field  string
		kind   Kind
	}{
		{"a plain schedule", func(*Schedule) {}, "", 0},
		{"no namespace", func(s *Schedule) { s.Namespace = "" }, "namespace", KindInvalid},
		{"the longest name", func(s *Schedule) { s.Name = strings.Repeat("n", MaxName) }, "", 0},
		{"a longer name", func(s *Schedule) { s.Name = strings.Repeat("n", MaxName+1) }, "name", KindInvalid},
		{"a name like an id", func(s *Schedule) {
			s.Name = "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"
		}, "name", KindInvalid},
		{"a long request id", func(s *Schedule) {
			s.RequestID = strings.Repeat("n", MaxRequestID+1)
		}, "request_id", KindInvalid},
		{"no catch-up", func(s *Schedule) { s.MaxCatchup = 0 }, "", 0},
		{"the most catch-up", func(s *Schedule) { s.MaxCatchup = MaxCatchup }, "", 0},
		{"more catch-up", func(s *Schedule) { s.MaxCatchup = MaxCatchup + 1 }, "max_catchup", KindInvalid},
		{"less than no catch-up", func(s *Schedule) { s.MaxCatchup = -1 }, "max_catchup", KindInvalid},
		{"an unknown overlap", func(s *Schedule) { s.Overlap = OverlapBufferOne + 1 }, "overlap_policy", KindInvalid},
		{"no type", func(s *Schedule) { s.Type = "" }, "workflow_type", KindInvalid},
		{"no queue", func(s *Schedule) { s.Queue = "" }, "task_queue", KindInvalid},
		{"a bad version", func(s *Schedule) { s.Version = "a b" }, "version", KindInvalid},
		{"a large input", func(s *Schedule) { s.Input.Data = make([]byte, MaxPayload+1) }, "input", KindTooLarge},
		{"too many tags", func(s *Schedule) { s.Tags = labels(MaxLabels + 1) }, "tags", KindInvalid},
		{"a bad policy", func(s *Schedule) {
			s.RetryPolicy = &RetryPolicy{MaximumAttempts: -2}
		}, "retry_policy.maximum_attempts", KindInvalid},
		{"a timeout too long", func(s *Schedule) {
			s.Timeouts.Execution = MaxDelay + 1
		}, "timeouts.execution_timeout_ms", KindInvalid},
		{"a handler's queue alone", func(s *Schedule) { s.OnFailureQueue = "q" }, "on_failure_task_queue", KindInvalid},
	} {
		s := Schedule{ID: NewID(someDay), Namespace: "default", Queue: "q", Type: "t", CreatedAt: someDay,
			MaxCatchup: DefaultCatchup}
		c.change(&s)
		check(t, c.what, s.Validate(), c.field, c.kind)
	}
}

func TestNamespaceValidate(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Namespace)
		field  string
	}{
		{"a plain namespace", func(*Namespace) {}, ""},
		{"no name", func(n *Namespace) { n.Name = "" }, "namespace"},
		{"the longest texts", func(n *Namespace) {
			n.DisplayName, n.Description = strings.Repeat("n", MaxName), strings.Repeat("d", maxDescription)
		}, ""},
		{"a longer display name", func(n *Namespace) {
			n.DisplayName = strings.Repeat("n", MaxName+1)
		}, "display_name"},
		{"a NUL", func(n *Namespace) { n.DisplayName = "a\x00" }, "display_name"},
		{"a longer description", func(n *Namespace) {
			n.Description = strings.Repeat("d", maxDescription+1)
		}, "description"},
		{"a bad queue", func(n *Namespace) { n.FailureQueue = "a b" }, "failure_task_queue"},
		{"the shortest retention", func(n *Namespace) { n.Retention = time.Minute }, ""},
		{"the longest retention", func(n *Namespace) { n.Retention = MaxDelay }, ""},
		{"a shorter retention", func(n *Namespace) { n.Retention = time.Minute - 1 }, "retention"},
		{"a longer retention", func(n *Namespace) { n.Retention = MaxDelay + 1 }, "retention"},
		{"a negative retention", func(n *Namespace) { n.Retention = -time.Hour }, "retention"},
		{"all outcomes", func(n *Namespace) {
			n.Keep = map[RunStatus]time.Duration{RunCompleted: time.Minute, RunFailed: MaxDelay,
				RunCancelled: time.Hour, RunTimedOut: time.Hour, RunTerminated: time.Hour}
		}, ""},
		{"a status that is no outcome", func(n *Namespace) {
			n.Keep = map[RunStatus]time.Duration{RunRunning: time.Hour}
		}, "keep"},
		{"an outcome kept for no time", func(n *Namespace) {
			n.Keep = map[RunStatus]time.Duration{RunFailed: 0}
		}, "keep"},
	} {
		n := Namespace{Name: "team-a"}
		c.change(&n)
		check(t, c.what, n.Validate(), c.field, KindInvalid)
	}
}

func TestSignalValidate(t *testing.T) {
	for _, c := range []struct {
		what   string
		signal SignalRunParams
		field  string
		kind   Kind
	}{
		{"a plain signal", SignalRunParams{Name: "go"}, "", 0},
		{"the longest names", SignalRunParams{Name: strings.Repeat("n", MaxName),
			SignalID: strings.Repeat("i", MaxName)}, "", 0},
		{"no name", SignalRunParams{}, "name", KindInvalid},
		{"a longer name", SignalRunParams{Name: strings.Repeat("n", MaxName+1)}, "name", KindInvalid},
		{"a longer id", SignalRunParams{Name: "go", SignalID: strings.Repeat("i", MaxName+1)}, "signal_id",
			KindInvalid},
		{"a bad id", SignalRunParams{Name: "go", SignalID: "a b"}, "signal_id", KindInvalid},
		{"a large payload", SignalRunParams{Name: "go", Payload: Payload{Data: make([]byte, MaxPayload+1)}}, "payload",
			KindTooLarge},
	} {
		check(t, c.what, c.signal.Validate(), c.field, c.kind)
	}
}

func TestAReasonHasALimit(t *testing.T) {
	check(t, "no reason", CheckReason(""), "", 0)
	check(t, "the longest reason", CheckReason(strings.Repeat("r", MaxReason)), "", 0)
	check(t, "a longer reason", CheckReason(strings.Repeat("r", MaxReason+1)), "reason", KindInvalid)
}

func TestAContinuationMayLeaveItsQueueAndTypeToTheRun(t *testing.T) {
	s := StartRun{Run: Run{Namespace: "default", CreatedAt: someDay, AvailableAt: someDay}}
	check(t, "an empty continuation", s.ValidateContinuation(), "", 0)
	check(t, "an empty start", s.Validate(), "task_queue", KindInvalid)
	s.Type = "a b"
	check(t, "a bad type", s.ValidateContinuation(), "workflow_type", KindInvalid)
	s.Type, s.ParentClose = "t", CloseTerminate+1
	check(t, "an unknown policy", s.ValidateContinuation(), "parent_close_policy", KindInvalid)
}
