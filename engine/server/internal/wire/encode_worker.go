package wire

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TaskTo returns the message of a task. lease is how long its worker keeps the run without a
// heartbeat.
func TaskTo(t *engine.Task, lease time.Duration) *kagziv1.Task {
	r := &t.Run
	task := &kagziv1.Task{
		Namespace: r.Namespace, RunId: r.ID.String(), WorkflowType: r.Type, TaskQueue: r.Queue, Version: r.Version,
		Input: PayloadTo(r.Input), LeaseToken: t.Lease.Token.Wire(), Attempt: int32(r.Attempt()),
		LeaseExpiresAt: TimeTo(t.ClaimedAt.Add(max(lease, r.Timeouts.Heartbeat))), DeadlineAt: TimeTo(r.DeadlineAt),
		RetryPolicy: retryPolicyTo(r.RetryPolicy), Timeouts: timeoutsTo(r.Timeouts),
		History: StepsTo(r.Namespace, t.History), NextHistoryToken: HistoryToken(t.NextSequence),
		ExternalId: r.ExternalID, ParentRunId: optional(r.ParentRunID.String()), Tags: r.Tags,
		Traceparent: r.Traceparent,
		ScheduleId:  optional(r.ScheduleID), ScheduledAt: TimeTo(r.ScheduledAt),
		FailedRunId: optional(r.FailedRunID.String()), OwedFrom: r.OwedFrom,
	}
	if !t.Base.IsZero() {
		task.Base = t.Base.Wire()
	}
	if !r.CancelRequestedAt.IsZero() {
		task.CancelRequested, task.CancelGraceUntil, task.CancelReason = true, TimeTo(r.GraceUntil),
			cancelReasonTo(r.CancelReason)
	}
	return task
}

// cancelReasonTo returns why a run's code has to stop, in the form of the run's later error.
func cancelReasonTo(reason string) *kagziv1.ErrorDetail {
	failure := engine.EndedByFailure(engine.RunCancelled, reason)
	return FailureTo(&failure)
}

// CancellingTo returns the message that the code of a held run has to stop.
func CancellingTo(h engine.Held) *kagziv1.CancelTask {
	return &kagziv1.CancelTask{
		RunId: h.Lease.RunID.String(), LeaseToken: h.Lease.Token.Wire(), Reason: cancelReasonTo(h.CancelReason),
		GraceUntil: TimeTo(h.GraceUntil),
	}
}

// WorkerTo returns the message of a worker.
func WorkerTo(w *engine.Worker) *kagziv1.Worker {
	worker := &kagziv1.Worker{
		WorkerId: w.ID, Namespace: w.Namespace, Status: kagziv1.WorkerStatus(w.Status), Version: w.Version,
		WorkflowTypes: w.Types,
		Hostname:      w.Hostname, Pid: int32(w.PID),
		RegisteredAt: TimeTo(w.RegisteredAt), LastHeartbeatAt: TimeTo(w.LastHeartbeatAt),
		DeregisteredAt: TimeTo(w.DeregisteredAt),
		Labels:         w.Labels, Capabilities: w.Capabilities, Platform: w.Platform,
		MaxConcurrent: int32(w.MaxConcurrent),
		PausesRuns:    w.PausesRuns, BuildId: w.BuildID,
		TotalCompleted: w.Completed, TotalFailed: w.Failed, TaskQueues: w.Queues,
	}
	measured := w.Stats
	measured.Blocked = nil // ExplainWorkflow shows it
	if !reflect.DeepEqual(measured, engine.WorkerStats{}) {
		worker.Stats = &kagziv1.WorkerStats{
			CpuPercent: w.Stats.CPUPercent, MemoryBytes: w.Stats.MemoryBytes,
			DiskAvailableBytes: w.Stats.DiskAvailableBytes,
			UptimeSeconds:      w.Stats.UptimeSeconds, AverageRunMs: w.Stats.AverageRunMS,
		}
	}
	if w.Status != engine.WorkerOffline { // an OFFLINE worker holds nothing, whatever it last reported
		worker.ActiveWorkflowCount = int32(w.Active)
	}
	if len(w.Queues) > 0 {
		worker.TaskQueue = w.Queues[0]
	}
	if w.Reason != 0 {
		worker.OfflineReason = kagziv1.WorkerOfflineReason(w.Reason).Enum()
	}
	if w.QueueLimit > 0 {
		worker.QueueConcurrencyLimit = proto.Int32(int32(w.QueueLimit))
	}
	for _, name := range sortedNames(w.TypeLimits) {
		worker.WorkflowTypeConcurrency = append(worker.WorkflowTypeConcurrency,
			&kagziv1.WorkflowTypeConcurrency{WorkflowType: name, MaxConcurrent: int32(w.TypeLimits[name])})
	}
	return worker
}

func sortedNames(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
