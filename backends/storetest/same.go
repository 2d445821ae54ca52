package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// sameRun fails the case unless got is want in every field.
func (s *stage) sameRun(got, want engine.Run) {
	s.Helper()
	s.sameText("run", runText(got), runText(want))
}

// sameStep fails the case unless got is want in every field.
func (s *stage) sameStep(got, want engine.Step) {
	s.Helper()
	s.sameText("step", stepText(got), stepText(want))
}

// sameText names the first line in which two descriptions differ.
func (s *stage) sameText(what, got, want string) {
	s.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range w {
		if i >= len(g) || g[i] != w[i] {
			s.Fatalf("%s differs: got %s, want %s", what, strings.Join(g[min(i, len(g)):min(i+1, len(g))], ""), w[i])
		}
	}
	if len(g) > len(w) {
		s.Fatalf("%s differs: got more: %s", what, g[len(w)])
	}
}

// lines writes one line a field: name and value in turn.
func lines(pairs ...any) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "%v: %v\n", pairs[i], pairs[i+1])
	}
	return b.String()
}

func runText(r engine.Run) string {
	return lines(
		"id", r.ID, "namespace", r.Namespace, "external id", r.ExternalID, "request id", r.RequestID, "queue", r.Queue,
		"type", r.Type, "version", r.Version, "status", r.Status, "priority", r.Priority, "attempts", r.Attempts,
		"failures", r.Failures, "lease losses", r.LeaseLosses, "steps", r.Steps, "bytes", r.Bytes,
		"input", payloadText(r.Input), "output", payloadText(r.Output), "error", failureText(r.Error),
		"created at", clock(r.CreatedAt), "available at", clock(r.AvailableAt), "started at", clock(r.StartedAt),
		"finished at", clock(r.FinishedAt), "deadline at", clock(r.DeadlineAt), "named deadline at", clock(r.NamedDeadlineAt), "worker", r.WorkerID, "waiting for", r.WaitingFor,
		"policy", policyText(r.RetryPolicy), "timeouts", r.Timeouts, "tags", mapText(r.Tags), "requirements", mapText(r.Requirements),
		"on failure", r.OnFailureWorkflow+" in "+r.OnFailureQueue, "concurrency", fmt.Sprint(r.ConcurrencyKey, r.ConcurrencyLimit),
		"parent", r.ParentRunID.String()+" "+r.ParentStepID.String(), "traceparent", r.Traceparent,
	)
}

func stepText(t engine.Step) string {
	return lines(
		"id", t.ID, "run", t.RunID, "name", t.Name, "kind", t.Kind, "status", t.Status, "attempt", t.Attempt,
		"failures", t.Failures, "latest", t.Latest, "sequence", t.Sequence,
		"input", payloadText(t.Input), "output", payloadText(t.Output), "error", failureText(t.Error),
		"token", t.Token.Wire(), "worker", t.WorkerID, "created at", clock(t.CreatedAt), "started at", clock(t.StartedAt),
		"finished at", clock(t.FinishedAt), "timeout at", clock(t.TimeoutAt), "retry at", clock(t.RetryAt), "wake at", clock(t.WakeAt),
		"duration", t.Duration, "policy", policyText(t.RetryPolicy),
	)
}

func workerText(w engine.Worker) string {
	return lines(
		"id", w.ID, "namespace", w.Namespace, "instance", w.InstanceID, "status", w.Status, "reason", w.Reason,
		"queues", w.Queues, "types", w.Types, "labels", mapText(w.Labels), "capabilities", mapText(w.Capabilities),
		"host", fmt.Sprint(w.Hostname, w.PID, w.Version, w.Platform), "max concurrent", w.MaxConcurrent, "queue limit", w.QueueLimit,
		"type limits", fmt.Sprint(w.TypeLimits), "active", w.Active, "completed", w.Completed, "failed", w.Failed,
		"stats", fmt.Sprintf("%+v", w.Stats), "registered at", clock(w.RegisteredAt),
		"heartbeat at", clock(w.LastHeartbeatAt), "deregistered at", clock(w.DeregisteredAt),
	)
}

func payloadText(p engine.Payload) string {
	if p.Size() == 0 && len(p.Metadata) == 0 {
		return "none"
	}
	if len(p.Data) > 64 {
		return fmt.Sprintf("%d bytes %s", len(p.Data), mapText(p.Metadata))
	}
	return fmt.Sprintf("%q %s", p.Data, mapText(p.Metadata))
}

func failureText(f *engine.Failure) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%d %q %q %q %t %d %q %q %s", f.Code, f.Type, f.Message, f.Stack, f.NonRetryable, f.RetryAfterMS, f.Subject, f.SubjectID, mapText(f.Metadata))
}

func policyText(p *engine.RetryPolicy) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%+v", *p)
}

func mapText(m map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%q=%q ", key, m[key])
	}
	return b.String()
}
