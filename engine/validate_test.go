package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// check compares an error with the field that it should name; empty: no error.
func check(t *testing.T, what string, err error, field string, kind Kind) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("%s is refused: %v", what, err)
		}
		return
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != kind || e.Field != field {
		t.Errorf("%s: error %v (%+v), want kind %d naming %q", what, err, e, kind, field)
	}
}

func labels(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("k%d", i)] = "v"
	}
	return m
}

func TestCheckName(t *testing.T) {
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"", false}, {"a", true}, {"A-z.0_9:x/y", true},
		{strings.Repeat("n", MaxName), true}, {strings.Repeat("n", MaxName+1), false},
		{"a b", false}, {"a\x00", false}, {"é", false}, {"a\xff", false}, {"a\n", false}, {"a;b", false}, {"a%", false},
		{"\u202ea", false},
	} {
		field := "f"
		if c.ok {
			field = ""
		}
		check(t, fmt.Sprintf("name %.20q", c.name), CheckName("f", c.name), field, KindInvalid)
	}
	check(t, "an absent name", CheckOptionalName("f", ""), "", 0)
}

func TestCheckNamespace(t *testing.T) {
	for name, ok := range map[string]bool{
		"": false, "a": true, "a-1": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
		"A": false, "a_b": false, "a.b": false, "a\x00": false, "é": false,
	} {
		field := "f"
		if ok {
			field = ""
		}
		check(t, fmt.Sprintf("namespace %.20q", name), CheckNamespace("f", name), field, KindInvalid)
	}
}

func TestCheckWorkerID(t *testing.T) {
	for id, ok := range map[string]bool{
		"": false, "w": true, "A-z_09": true, strings.Repeat("w", MaxWorkerID): true,
		strings.Repeat("w", MaxWorkerID+1): false,
		"a.b":                              false, "a:b": false, "a/b": false, "a b": false, "a\x00": false,
	} {
		err := CheckWorkerID("worker_id", id)
		if ok != (err == nil) {
			t.Errorf("worker id %.20q: %v, want accepted = %v", id, err, ok)
		}
		if err != nil && !strings.Contains(err.Error(), "Invalid worker_id") {
			t.Errorf("worker id %.20q: %q does not say Invalid worker_id", id, err)
		}
	}
}

func TestCheckText(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "12345678": true, "123456789": false, "1234567\x00": false, "\xff": false, "ключ": true,
		"\u202e\x1b[": true,
	} {
		field := "f"
		if ok {
			field = ""
		}
		check(t, fmt.Sprintf("text %q", text), CheckText("f", text, 8), field, KindInvalid)
	}
}

func TestCheckLabels(t *testing.T) {
	for _, c := range []struct {
		name   string
		labels map[string]string
		ok     bool
	}{
		{"none", nil, true},
		{"as many as allowed", labels(MaxLabels), true},
		{"one too many", labels(MaxLabels + 1), false},
		{"the longest key", map[string]string{strings.Repeat("k", MaxLabelKey): ""}, true},
		{"a longer key", map[string]string{strings.Repeat("k", MaxLabelKey+1): ""}, false},
		{"an empty key", map[string]string{"": "v"}, false},
		{"a key that is no name", map[string]string{"a b": "v"}, false},
		{"the longest value", map[string]string{"k": strings.Repeat("v", MaxLabelValue)}, true},
		{"a longer value", map[string]string{"k": strings.Repeat("v", MaxLabelValue+1)}, false},
		{"a value with a NUL", map[string]string{"k": "\x00"}, false},
		{"a value that is no text", map[string]string{"k": "\xff"}, false},
		{"a value in any script", map[string]string{"k": "день"}, true},
	} {
		field := "f"
		if c.ok {
			field = ""
		}
		check(t, c.name, CheckLabels("f", c.labels), field, KindInvalid)
	}
}

func TestCheckCapabilities(t *testing.T) {
	all := ""
	for c := ' '; c <= '~'; c++ {
		if c != '=' && c != ',' {
			all += string(c)
		}
	}
	full := map[string]string{}
	for i := range MaxCapabilities {
		full[fmt.Sprintf("%0*d", MaxLabelKey, i)] = strings.Repeat("v", MaxLabelValue)
	}
	over := maps.Clone(full)
	over["one more"] = ""
	for _, c := range []struct {
		name string
		of   map[string]string
		ok   bool
	}{
		{"none", nil, true},
		{"as many as allowed, of full length", full, true},
		{"one too many", over, false},
		{"every character that is allowed", map[string]string{all[:MaxLabelKey]: "1", all[len(all)-30:]: "2"}, true},
		{"a longer key", map[string]string{strings.Repeat("k", MaxLabelKey+1): ""}, false},
		{"a longer value", map[string]string{"k": strings.Repeat("v", MaxLabelValue+1)}, false},
		{"an empty key", map[string]string{"": "v"}, false},
		{"an equals sign", map[string]string{"a=b": ""}, false},
		{"a comma", map[string]string{"a,b": ""}, false},
		{"a control character", map[string]string{"a\x1f": ""}, false},
		{"DEL", map[string]string{"a\x7f": ""}, false},
		{"a letter beyond ASCII", map[string]string{"é": ""}, false},
	} {
		field := "f"
		if c.ok {
			field = ""
		}
		check(t, c.name, CheckCapabilities("f", c.of), field, KindInvalid)
		if len(c.of) <= MaxLabels {
			check(t, c.name+", required", CheckRequirements("f", c.of), field, KindInvalid)
		}
	}
	check(t, "too many requirements", CheckRequirements("f", labels(MaxLabels+1)), "f", KindInvalid)
}

func TestCheckPayload(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload Payload
		field   string
		kind    Kind
	}{
		{"nothing", Payload{}, "", 0},
		{"the largest", Payload{Data: make([]byte, MaxPayload)}, "", 0},
		{"a byte more", Payload{Data: make([]byte, MaxPayload+1)}, "f", KindTooLarge},
		{"a byte more of metadata", Payload{Data: make([]byte, MaxPayload-1), Metadata: map[string]string{"k": "v"}},
			"f", KindTooLarge},
		{"any bytes", Payload{Data: []byte{0, 0xff, 0xfe}}, "", 0},
		{"as many entries as allowed", Payload{Metadata: labels(MaxLabels)}, "", 0},
		{"one too many", Payload{Metadata: labels(MaxLabels + 1)}, "f.metadata", KindInvalid},
		{"as much metadata as allowed", Payload{
			Metadata: map[string]string{"k": strings.Repeat("v", MaxMetadata-1)}}, "", 0},
		{"a byte more in one value", Payload{Metadata: map[string]string{"k": strings.Repeat("v", MaxMetadata)}},
			"f.metadata", KindInvalid},
		{"a byte more in two", Payload{Metadata: map[string]string{
			"a": strings.Repeat("v", MaxMetadata/2-1), "b": strings.Repeat("v", MaxMetadata/2)}}, "f.metadata",
			KindInvalid},
		{"a NUL in a key", Payload{Metadata: map[string]string{"\x00": ""}}, "f.metadata", KindInvalid},
		{"a NUL in a value", Payload{Metadata: map[string]string{"a": "\x00"}}, "f.metadata", KindInvalid},
		{"no text", Payload{Metadata: map[string]string{"a": "\xff"}}, "f.metadata", KindInvalid},
	} {
		check(t, c.name, CheckPayload("f", c.payload), c.field, c.kind)
	}
}

func TestCheckDelay(t *testing.T) {
	for d, ok := range map[time.Duration]bool{
		MinDelay: true, MinDelay - 1: false, 0: false, -time.Hour: false, MaxDelay: true, MaxDelay + 1: false,
		math.MaxInt64: false, math.MinInt64: false,
	} {
		if err := CheckDelay("f", d); (err == nil) != ok {
			t.Errorf("CheckDelay(%s) = %v, want accepted = %v", d, err, ok)
		}
	}
}

func TestCheckRetryPolicy(t *testing.T) {
	long := MaxDelay.Milliseconds()
	for _, c := range []struct {
		name   string
		policy *RetryPolicy
		field  string
	}{
		{"none", nil, ""},
		{"the default", &RetryPolicy{}, ""},
		{"without end", &RetryPolicy{MaximumAttempts: -1}, ""},
		{"less than that", &RetryPolicy{MaximumAttempts: -2}, "f.maximum_attempts"},
		{"the most attempts", &RetryPolicy{MaximumAttempts: MaxRetryAttempts}, ""},
		{"one more", &RetryPolicy{MaximumAttempts: MaxRetryAttempts + 1}, "f.maximum_attempts"},
		{"a negative interval", &RetryPolicy{InitialIntervalMS: -1}, "f.initial_interval_ms"},
		{"ten years", &RetryPolicy{InitialIntervalMS: long}, ""},
		{"longer", &RetryPolicy{InitialIntervalMS: long + 1}, "f.initial_interval_ms"},
		{"a negative maximum", &RetryPolicy{MaximumIntervalMS: -1}, "f.maximum_interval_ms"},
		{"a maximum of ten years", &RetryPolicy{MaximumIntervalMS: long}, ""},
		{"a longer maximum", &RetryPolicy{MaximumIntervalMS: long + 1}, "f.maximum_interval_ms"},
		{"a coefficient of one", &RetryPolicy{Coefficient: 1}, ""},
		{"just below one", &RetryPolicy{Coefficient: math.Nextafter(1, 0)}, "f.backoff_coefficient"},
		{"negative", &RetryPolicy{Coefficient: -2}, "f.backoff_coefficient"},
		{"the largest", &RetryPolicy{Coefficient: 1e9}, ""},
		{"larger", &RetryPolicy{Coefficient: math.Nextafter(1e9, 2e9)}, "f.backoff_coefficient"},
		{"endless", &RetryPolicy{Coefficient: math.Inf(1)}, "f.backoff_coefficient"},
		{"no number", &RetryPolicy{Coefficient: math.NaN()}, "f.backoff_coefficient"},
		{"all jitter", &RetryPolicy{Jitter: 1}, ""},
		{"no jitter", &RetryPolicy{Jitter: -1}, ""},
		{"more than all", &RetryPolicy{Jitter: math.Nextafter(1, 2)}, "f.jitter"},
		{"less than none, which is none too", &RetryPolicy{Jitter: -1.5}, ""},
		{"endlessly less", &RetryPolicy{Jitter: math.Inf(-1)}, "f.jitter"},
		{"a jitter that is no number", &RetryPolicy{Jitter: math.NaN()}, "f.jitter"},
		{"as many entries as allowed", &RetryPolicy{NonRetryable: slices.Repeat([]string{"x"}, MaxNonRetryable)}, ""},
		{"one more entry", &RetryPolicy{NonRetryable: slices.Repeat([]string{"x"}, MaxNonRetryable+1)},
			"f.non_retryable_errors"},
		{"the longest entry", &RetryPolicy{NonRetryable: []string{strings.Repeat("x", MaxName)}}, ""},
		{"a longer entry", &RetryPolicy{NonRetryable: []string{strings.Repeat("x", MaxName+1)}},
			"f.non_retryable_errors"},
		{"a NUL", &RetryPolicy{NonRetryable: []string{"a\x00"}}, "f.non_retryable_errors"},
	} {
		check(t, c.name, CheckRetryPolicy("f", c.policy), c.field, KindInvalid)
	}
}

func validStart() *StartRun {
	return &StartRun{Run: Run{
		ID: NewID(noon), Namespace: "default", Queue: "q", Type: "t", Status: RunPending, Attempts: 1, CreatedAt: noon,
		AvailableAt: noon,
	}}
}

func TestStartRunValidate(t *testing.T) {
	name := strings.Repeat("n", MaxName)
	for _, c := range []struct {
		field  string
		within func(*StartRun) // at the limit
		beyond func(*StartRun) // one past it
	}{
		{"namespace", func(s *StartRun) { s.Namespace = strings.Repeat("n", 63) }, func(s *StartRun) {
			s.Namespace += strings.Repeat("n", 64)
		}},
		{"external_id", func(s *StartRun) { s.ExternalID = name }, func(s *StartRun) { s.ExternalID = name + "n" }},
		{"task_queue", func(s *StartRun) { s.Queue = name }, func(s *StartRun) { s.Queue = "" }},
		{"task_queue", func(s *StartRun) { s.Queue = "a" }, func(s *StartRun) { s.Queue = name + "n" }},
		{"workflow_type", func(s *StartRun) { s.Type = name }, func(s *StartRun) { s.Type = "" }},
		{"workflow_type", func(s *StartRun) { s.Type = "a" }, func(s *StartRun) { s.Type = name + "n" }},
		{"version", func(s *StartRun) { s.Version = name }, func(s *StartRun) { s.Version = name + "n" }},
		{"request_id", func(s *StartRun) { s.RequestID = name[:MaxRequestID] }, func(s *StartRun) {
			s.RequestID = name[:MaxRequestID+1]
		}},
		{"traceparent", func(s *StartRun) { s.Traceparent = name }, func(s *StartRun) { s.Traceparent = name + "n" }},
		{"concurrency_key", func(s *StartRun) { s.ConcurrencyKey = name }, func(s *StartRun) {
			s.ConcurrencyKey = name + "n"
		}},
		{"on_failure_workflow", func(s *StartRun) { s.OnFailureWorkflow = name }, func(s *StartRun) {
			s.OnFailureWorkflow = name + "n"
		}},
		{"on_failure_task_queue", func(s *StartRun) {
			s.OnFailureWorkflow, s.OnFailureQueue = "w", name
		}, func(s *StartRun) { s.OnFailureWorkflow, s.OnFailureQueue = "w", name+"n" }},
		{"on_failure_task_queue", func(s *StartRun) {}, func(s *StartRun) { s.OnFailureQueue = "q" }},
		{"tags", func(s *StartRun) { s.Tags = labels(MaxLabels) }, func(s *StartRun) {
			s.Tags = labels(MaxLabels + 1)
		}},
		{"requirements", func(s *StartRun) { s.Requirements = labels(MaxLabels) }, func(s *StartRun) {
			s.Requirements = labels(MaxLabels + 1)
		}},
		{"priority", func(s *StartRun) { s.Priority = MaxPriority }, func(s *StartRun) {
			s.Priority = MaxPriority + 1
		}},
		{"priority", func(s *StartRun) { s.Priority = -MaxPriority }, func(s *StartRun) {
			s.Priority = -MaxPriority - 1
		}},
		{"concurrency_limit", func(s *StartRun) {
			s.ConcurrencyKey, s.ConcurrencyLimit = "k", MaxConcurrencyLimit
		}, func(s *StartRun) { s.ConcurrencyKey, s.ConcurrencyLimit = "k", MaxConcurrencyLimit+1 }},
		{"concurrency_limit", func(s *StartRun) { s.ConcurrencyKey, s.ConcurrencyLimit = "k", 0 }, func(s *StartRun) {
			s.ConcurrencyKey, s.ConcurrencyLimit = "k", -1
		}},
		{"concurrency_limit", func(s *StartRun) {}, func(s *StartRun) { s.ConcurrencyLimit = 1 }},
		{"concurrency_scope", func(s *StartRun) {}, func(s *StartRun) { s.ConcurrencyScope = ScopeOpen }},
		{"concurrency_scope", func(s *StartRun) { s.ConcurrencyKey, s.ConcurrencyScope = "k", ScopeOpen },
			func(s *StartRun) { s.ConcurrencyKey, s.ConcurrencyScope = "k", ScopeOpen+1 }},
		{"external_id_reuse", func(s *StartRun) { s.Reuse = ReuseReject }, func(s *StartRun) {
			s.Reuse = ReuseReject + 1
		}},
		{"start_at", func(s *StartRun) { s.AvailableAt = noon.Add(MaxDelay) }, func(s *StartRun) {
			s.AvailableAt = noon.Add(MaxDelay + 1)
		}},
		{"deadline_at", func(s *StartRun) { s.DeadlineAt = noon }, func(s *StartRun) { s.DeadlineAt = noon.Add(-1) }},
		{"deadline_at", func(s *StartRun) { s.DeadlineAt = noon.Add(MaxDelay) }, func(s *StartRun) {
			s.DeadlineAt = noon.Add(MaxDelay + 1)
		}},
		{"run_retry_policy.maximum_attempts", func(s *StartRun) {
			s.RunRetryPolicy = &RetryPolicy{MaximumAttempts: MaxRetryAttempts}
		}, func(s *StartRun) { s.RunRetryPolicy = &RetryPolicy{MaximumAttempts: MaxRetryAttempts + 1} }},
		{"retry_policy.jitter", func(s *StartRun) { s.RetryPolicy = &RetryPolicy{Jitter: 1} }, func(s *StartRun) {
			s.RetryPolicy = &RetryPolicy{Jitter: 2}
		}},
		{"timeouts.start_to_close_timeout_ms", func(s *StartRun) {
			s.Timeouts.StartToClose = MinDelay
		}, func(s *StartRun) { s.Timeouts.StartToClose = -1 }},
		{"timeouts.heartbeat_timeout_ms", func(s *StartRun) { s.Timeouts.Heartbeat = MaxDelay }, func(s *StartRun) {
			s.Timeouts.Heartbeat = MaxDelay + 1
		}},
		{"timeouts.execution_timeout_ms", func(s *StartRun) { s.Timeouts.Execution = MaxDelay }, func(s *StartRun) {
			s.Timeouts.Execution = MaxDelay + 1
		}},
	} {
		within, beyond := validStart(), validStart()
		c.within(within)
		check(t, c.field+" at its limit", within.Validate(), "", 0)
		c.beyond(beyond)
		check(t, c.field+" past its limit", beyond.Validate(), c.field, KindInvalid)
	}
	large := validStart()
	large.Input.Data = make([]byte, MaxPayload+1)
	check(t, "a large input", large.Validate(), "input", KindTooLarge)
}
