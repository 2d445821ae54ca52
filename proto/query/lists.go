package query

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func ofText[M any](name string, get func(M) string) Field[M] {
	return Field[M]{Name: name, texts: func(m M, _ string) []string { return []string{get(m)} }}
}

func ofTexts[M any](name string, get func(M) []string) Field[M] {
	return Field[M]{Name: name, texts: func(m M, _ string) []string { return get(m) }}
}

// ofMap is a field with a key: "tag.".
func ofMap[M any](name string, get func(M) map[string]string) Field[M] {
	return Field[M]{Name: name, texts: func(m M, key string) []string {
		if value, has := get(m)[key]; has {
			return []string{value}
		}
		return nil
	}}
}

// ofWords is a field whose values are names of the wire without their prefix.
func ofWords[M any](name, prefix string, all map[int32]string, get func(M) string) Field[M] {
	var words []string
	for n := range int32(200) {
		if value, known := all[n]; known && n > 0 {
			words = append(words, strings.TrimPrefix(value, prefix))
		}
	}
	return Field[M]{Name: name, Words: words, texts: func(m M, _ string) []string {
		return []string{strings.TrimPrefix(get(m), prefix)}
	}}
}

func ofNumber[M any, N int32 | int64 | float64](name string, get func(M) N) Field[M] {
	return Field[M]{Name: name, kind: number, number: func(m M) float64 { return float64(get(m)) }}
}

func ofTime[M any](name string, get func(M) *timestamppb.Timestamp) Field[M] {
	return Field[M]{Name: name, kind: moment, time: func(m M) time.Time {
		if t := get(m); t != nil {
			return t.AsTime()
		}
		return time.Time{}
	}}
}

func ofFlag[M any](name string, get func(M) bool) Field[M] {
	return Field[M]{Name: name, kind: flag, flag: get}
}

// Schedules are the fields of ListWorkflowSchedules.
var Schedules = List[*kagziv1.WorkflowSchedule]{Name: "schedules", Fields: []Field[*kagziv1.WorkflowSchedule]{
	ofText("id", (*kagziv1.WorkflowSchedule).GetScheduleId),
	ofText("name", (*kagziv1.WorkflowSchedule).GetName),
	ofText("type", (*kagziv1.WorkflowSchedule).GetWorkflowType),
	ofText("queue", (*kagziv1.WorkflowSchedule).GetTaskQueue),
	ofText("cron", (*kagziv1.WorkflowSchedule).GetCronExpr),
	ofText("time_zone", (*kagziv1.WorkflowSchedule).GetTimeZone),
	ofText("version", (*kagziv1.WorkflowSchedule).GetVersion),
	ofFlag("enabled", (*kagziv1.WorkflowSchedule).GetEnabled),
	ofFlag("broken", func(s *kagziv1.WorkflowSchedule) bool { return s.GetBroken() != "" }),
	ofTime("created", (*kagziv1.WorkflowSchedule).GetCreatedAt),
	ofTime("updated", (*kagziv1.WorkflowSchedule).GetUpdatedAt),
	ofTime("next", (*kagziv1.WorkflowSchedule).GetNextFireAt),
	ofTime("last", (*kagziv1.WorkflowSchedule).GetLastFiredAt),
	ofNumber("runs", (*kagziv1.WorkflowSchedule).GetTotalRuns),
	ofNumber("failed", (*kagziv1.WorkflowSchedule).GetFailedRuns),
	ofNumber("skipped", (*kagziv1.WorkflowSchedule).GetSkippedTicks),
	ofMap("tag.", (*kagziv1.WorkflowSchedule).GetTags),
}}

// Workers are the fields of ListWorkers.
var Workers = List[*kagziv1.Worker]{Name: "workers", Fields: []Field[*kagziv1.Worker]{
	ofText("id", (*kagziv1.Worker).GetWorkerId),
	ofWords("status", "WORKER_STATUS_", kagziv1.WorkerStatus_name,
		func(w *kagziv1.Worker) string { return w.GetStatus().String() }),
	ofText("namespace", (*kagziv1.Worker).GetNamespace),
	ofTexts("queue", func(w *kagziv1.Worker) []string {
		return append(slices.Clone(w.GetTaskQueues()), w.GetTaskQueue())
	}),
	ofTexts("type", (*kagziv1.Worker).GetWorkflowTypes),
	ofText("host", (*kagziv1.Worker).GetHostname),
	ofText("platform", (*kagziv1.Worker).GetPlatform),
	ofText("version", (*kagziv1.Worker).GetVersion),
	ofText("build", (*kagziv1.Worker).GetBuildId),
	ofNumber("active", (*kagziv1.Worker).GetActiveWorkflowCount),
	ofNumber("completed", (*kagziv1.Worker).GetTotalCompleted),
	ofNumber("failed", (*kagziv1.Worker).GetTotalFailed),
	ofTime("registered", (*kagziv1.Worker).GetRegisteredAt),
	ofTime("heartbeat", (*kagziv1.Worker).GetLastHeartbeatAt),
	ofMap("label.", (*kagziv1.Worker).GetLabels),
	ofMap("capability.", (*kagziv1.Worker).GetCapabilities),
}}

// Queues are the fields of GetQueueDepth.
var Queues = List[*kagziv1.QueueDepth]{Name: "queues", Fields: []Field[*kagziv1.QueueDepth]{
	ofText("queue", (*kagziv1.QueueDepth).GetTaskQueue),
	ofNumber("pending", (*kagziv1.QueueDepth).GetPending),
	ofNumber("running", (*kagziv1.QueueDepth).GetRunning),
	ofNumber("sleeping", (*kagziv1.QueueDepth).GetSleeping),
	ofNumber("workers", (*kagziv1.QueueDepth).GetOnlineWorkers),
	ofNumber("oldest", (*kagziv1.QueueDepth).GetOldestPendingSeconds),
	ofNumber("unserved", func(q *kagziv1.QueueDepth) (n int64) {
		for _, of := range q.GetUnservedByType() {
			n += of
		}
		return n
	}),
}}

// Types are the fields of ListWorkflowTypes.
var Types = List[*kagziv1.WorkflowTypeInfo]{Name: "types", Fields: []Field[*kagziv1.WorkflowTypeInfo]{
	ofText("type", (*kagziv1.WorkflowTypeInfo).GetWorkflowType),
	ofTexts("queue", (*kagziv1.WorkflowTypeInfo).GetTaskQueues),
	ofNumber("runs", (*kagziv1.WorkflowTypeInfo).GetTotalRuns),
	ofNumber("active", (*kagziv1.WorkflowTypeInfo).GetActiveRuns),
}}

// Audit are the fields of ListAuditEvents.
var Audit = List[*kagziv1.AuditEvent]{Name: "audit", Fields: []Field[*kagziv1.AuditEvent]{
	ofTime("at", (*kagziv1.AuditEvent).GetAt),
	ofText("actor", (*kagziv1.AuditEvent).GetActor),
	ofText("peer", (*kagziv1.AuditEvent).GetPeer),
	ofText("method", (*kagziv1.AuditEvent).GetMethod),
	ofText("subject", (*kagziv1.AuditEvent).GetSubject),
	ofText("subject_id", (*kagziv1.AuditEvent).GetSubjectId),
	ofText("outcome", (*kagziv1.AuditEvent).GetOutcome),
	ofText("reason", (*kagziv1.AuditEvent).GetReason),
	ofText("detail", (*kagziv1.AuditEvent).GetDetail),
}}

// Keys are the fields of ListKeys.
var Keys = List[*kagziv1.Key]{Name: "keys", Fields: []Field[*kagziv1.Key]{
	ofText("id", (*kagziv1.Key).GetKeyId),
	ofText("name", (*kagziv1.Key).GetName),
	ofWords("role", "KEY_ROLE_", kagziv1.KeyRole_name, func(k *kagziv1.Key) string { return k.GetRole().String() }),
	ofTexts("namespace", (*kagziv1.Key).GetNamespaces),
	ofTexts("queue", (*kagziv1.Key).GetTaskQueues),
	ofTexts("type", (*kagziv1.Key).GetWorkflowTypes),
	ofTexts("worker", (*kagziv1.Key).GetWorkerIds),
	ofTime("created", (*kagziv1.Key).GetCreatedAt),
	ofTime("expires", (*kagziv1.Key).GetExpiresAt),
	ofTime("used", (*kagziv1.Key).GetLastUsedAt),
	ofTime("revoked", (*kagziv1.Key).GetRevokedAt),
}}

// Namespaces are the fields of ListNamespaces.
var Namespaces = List[*kagziv1.Namespace]{Name: "namespaces", Fields: []Field[*kagziv1.Namespace]{
	ofText("namespace", (*kagziv1.Namespace).GetNamespace),
	ofText("name", (*kagziv1.Namespace).GetDisplayName),
	ofText("description", (*kagziv1.Namespace).GetDescription),
	ofText("failure_queue", (*kagziv1.Namespace).GetFailureTaskQueue),
	ofFlag("enabled", (*kagziv1.Namespace).GetEnabled),
	ofTime("created", (*kagziv1.Namespace).GetCreatedAt),
	ofTime("updated", (*kagziv1.Namespace).GetUpdatedAt),
}}

// Described is a list for help texts.
type Described struct {
	Name   string
	Fields [][2]string // name, and what it can be compared with
}

// All describes all lists.
func All() []Described {
	return []Described{describe(&Runs), describe(&Schedules), describe(&Workers), describe(&Queues), describe(&Types),
		describe(&Audit), describe(&Keys), describe(&Namespaces)}
}

func describe[M any](l *List[M]) Described {
	d := Described{Name: l.Name}
	for i := range l.Fields {
		d.Fields = append(d.Fields, [2]string{l.Fields[i].Shown(), l.Fields[i].Takes()})
	}
	return d
}
