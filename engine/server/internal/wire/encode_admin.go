package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// AuditTo returns the message of an audit event.
func AuditTo(e *engine.AuditEvent) *kagziv1.AuditEvent {
	return &kagziv1.AuditEvent{
		At: TimeTo(e.At), Actor: e.Actor.Name, Peer: e.Actor.Peer, Method: e.Method, Namespace: e.Namespace,
		Subject: e.Subject, SubjectId: e.SubjectID, Outcome: e.Outcome, Reason: e.Reason, Detail: e.Detail,
	}
}

// KeyTo returns the message of a key without its hash, which only the server needs.
func KeyTo(k *engine.APIKey) *kagziv1.Key {
	return &kagziv1.Key{
		KeyId: k.ID.String(), Name: k.Name, Role: kagziv1.KeyRole(k.Role), Namespaces: k.Namespaces,
		TaskQueues: k.Queues, WorkflowTypes: k.Types, WorkerIds: k.WorkerIDs, CreatedAt: TimeTo(k.CreatedAt),
		ExpiresAt:  TimeTo(k.ExpiresAt),
		LastUsedAt: TimeTo(k.LastUsedAt), RevokedAt: TimeTo(k.RevokedAt),
	}
}

// HookTo returns the message of a hook, without its secrets. now is the time for which it says that an
// earlier secret is still valid.
func HookTo(h *engine.Hook, now time.Time) *kagziv1.Hook {
	message := &kagziv1.Hook{HookId: h.ID.String(), Namespace: h.Namespace, Name: h.Name, TaskQueue: h.Queue,
		WorkflowType: h.Type, Signature: kagziv1.HookSignature(h.Scheme), Path: engine.HookPath + h.ID.String(),
		CreatedAt: TimeTo(h.CreatedAt), RotatedAt: TimeTo(h.RotatedAt)}
	if now.Before(h.OldUntil) {
		message.OldSecretUntil = TimeTo(h.OldUntil)
	}
	return message
}

// TypeTo returns the message of a workflow type.
func TypeTo(t *engine.TypeInfo) *kagziv1.WorkflowTypeInfo {
	return &kagziv1.WorkflowTypeInfo{WorkflowType: t.Type, TotalRuns: t.Total, ActiveRuns: t.Active,
		TaskQueues: t.Queues}
}

// Outcomes maps the names that retention uses to the statuses with which runs end.
var Outcomes = map[string]engine.RunStatus{
	"completed": engine.RunCompleted, "failed": engine.RunFailed, "cancelled": engine.RunCancelled,
	"timed_out": engine.RunTimedOut, "terminated": engine.RunTerminated,
}

// KeepOf reads the retention of runs by outcome.
func KeepOf(keep map[string]*durationpb.Duration) (map[engine.RunStatus]time.Duration, error) {
	if len(keep) == 0 {
		return nil, nil
	}
	read := map[engine.RunStatus]time.Duration{}
	for name, d := range keep {
		status, known := Outcomes[name]
		if !known {
			return nil,
				engine.Invalid("keep",
					"has the unknown outcome %q; completed, failed, cancelled, timed_out and terminated are known",
					Cut(name))
		}
		length, err := DurationOf("keep", d)
		if err != nil {
			return nil, err
		}
		read[status] = length
	}
	return read, nil
}

// ContentsTo returns the message of what was in a namespace.
func ContentsTo(c engine.Contents) *kagziv1.NamespaceContents {
	return &kagziv1.NamespaceContents{Runs: c.Runs, Schedules: c.Schedules, Hooks: c.Hooks,
		Workers: c.Workers, Keys: c.Keys}
}

// NamespaceTo returns the message of a namespace.
func NamespaceTo(n *engine.Namespace) *kagziv1.Namespace {
	message := &kagziv1.Namespace{
		Namespace: n.Name, DisplayName: n.DisplayName, Description: n.Description, Enabled: n.Enabled,
		CreatedAt: TimeTo(n.CreatedAt), UpdatedAt: TimeTo(n.UpdatedAt), FailureTaskQueue: n.FailureQueue,
	}
	if !n.ID.IsZero() {
		message.Id = n.ID.String()
	}
	if n.Retention > 0 {
		message.Retention = durationpb.New(n.Retention)
	}
	for name, status := range Outcomes {
		if d, kept := n.Keep[status]; kept {
			if message.Keep == nil {
				message.Keep = map[string]*durationpb.Duration{}
			}
			message.Keep[name] = durationpb.New(d)
		}
	}
	return message
}

// ScheduleTo returns the message of a schedule.
func ScheduleTo(s *engine.Schedule) *kagziv1.WorkflowSchedule {
	message := &kagziv1.WorkflowSchedule{
		Namespace: s.Namespace, ScheduleId: s.ID.String(), Name: s.Name, CronExpr: s.CronExpr, TimeZone: s.TimeZone,
		Enabled:   s.Enabled,
		TaskQueue: s.Queue, WorkflowType: s.Type, Version: s.Version, Input: PayloadTo(s.Input), Tags: s.Tags,
		RetryPolicy: retryPolicyTo(s.RetryPolicy), RunRetryPolicy: retryPolicyTo(s.RunRetryPolicy),
		Timeouts:          timeoutsTo(s.Timeouts),
		OnFailureWorkflow: s.OnFailureWorkflow, OnFailureTaskQueue: s.OnFailureQueue,
		MaxCatchup: int32(s.MaxCatchup), OverlapPolicy: kagziv1.OverlapPolicy(s.Overlap),
		TotalRuns: s.Fired, SuccessfulRuns: s.Completed, FailedRuns: s.Failed, SkippedTicks: s.Skipped,
		CreatedAt: TimeTo(s.CreatedAt), UpdatedAt: TimeTo(s.UpdatedAt),
		NextFireAt: TimeTo(s.NextFireAt), LastFiredAt: TimeTo(s.LastFiredAt), BufferedTick: TimeTo(s.Buffered),
		ConcurrencyKey: s.ConcurrencyKey, ConcurrencyLimit: int32(s.ConcurrencyLimit),
		ConcurrencyScope: scopeTo(s.ConcurrencyKey, s.ConcurrencyScope),
		Broken:           s.Broken, PauseReason: s.PauseReason, JitterMs: s.Jitter.Milliseconds(),
	}
	if s.Jitter > 0 {
		message.NextRunAt = TimeTo(s.FiresAt())
	}
	return message
}
