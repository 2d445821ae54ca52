package query

import (
	"maps"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// run is an item of ListWorkflows.
type run = *kagziv1.Workflow

// always is a field that every run has.
func always(name string, get func(run) string) Field[run] {
	f := ofText(name, get)
	f.full = true
	return f
}

// maybe is a field that a run may not have.
func maybe(name string, get func(run) string) Field[run] {
	f := always(name, get)
	f.none = true
	return f
}

// ofID is the id of another run, in either case.
func ofID(name string, get func(run) string) Field[run] {
	f := maybe(name, get)
	f.fold = true
	return f
}

// like is a field of text that is not compared as a whole.
func like(name string, is func(r run, p pattern) bool) Field[run] {
	return Field[run]{Name: name, full: true, like: is}
}

func ofSpan(name string, get func(r run, now time.Time) (time.Duration, bool)) Field[run] {
	return Field[run]{Name: name, kind: span, span: get}
}

const statusPrefix = "WORKFLOW_STATUS_"

// runStatuses returns the names of the statuses that a run can have; others are those of schedules.
func runStatuses() map[int32]string {
	names := maps.Clone(kagziv1.WorkflowStatus_name)
	delete(names, int32(kagziv1.WorkflowStatus_WORKFLOW_STATUS_SCHEDULED))
	delete(names, int32(kagziv1.WorkflowStatus_WORKFLOW_STATUS_PAUSED))
	return names
}

// took returns how long a run has been worked on: from its start to its end, or to now.
func took(r run, now time.Time) (time.Duration, bool) {
	if r.GetStartedAt() == nil {
		return 0, false
	}
	end := now
	if r.GetFinishedAt() != nil {
		end = r.GetFinishedAt().AsTime()
	}
	return end.Sub(r.GetStartedAt().AsTime()), true
}

// mentions says whether a run's type, ids, note or error contain a text, in either case.
func mentions(r run, p pattern) bool {
	p = p.lower().within()
	for _, s := range []string{r.GetWorkflowType(), r.GetRunId(), r.GetExternalId(), r.GetNote(),
		r.GetError().GetType(), r.GetError().GetMessage()} {
		if p.matches(strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// Runs are the fields of ListWorkflows. The id may be shortened to its beginning. A schedule is
// compared by its id, so that a caller has to resolve names first.
var Runs = List[run]{Name: "runs", Fields: runFields()}

func runFields() []Field[run] {
	return []Field[run]{
		like("id", func(r run, p pattern) bool { return p.lower().beginning().matches(r.GetRunId()) }),
		maybe("external_id", run.GetExternalId),
		like("search", func(r run, p pattern) bool {
			return p.lower().beginning().matches(r.GetRunId()) || p.beginning().matches(r.GetExternalId())
		}),
		like("text", mentions),
		ofWords("status", statusPrefix, runStatuses(), func(r run) string { return r.GetStatus().String() }),
		always("type", run.GetWorkflowType),
		always("queue", run.GetTaskQueue),
		maybe("version", run.GetVersion),
		maybe("worker", run.GetWorkerId),
		maybe("schedule", run.GetScheduleId),
		ofID("parent", run.GetParentRunId),
		ofID("first", run.GetFirstRunId),
		ofID("retry_of", run.GetRetriedFromRunId),
		ofID("failure_of", run.GetFailedRunId),
		maybe("key", run.GetConcurrencyKey),
		maybe("waiting_for", run.GetWaitingFor),
		maybe("note", run.GetNote),
		maybe("error", func(r run) string { return r.GetError().GetMessage() }),
		maybe("error_type", func(r run) string { return r.GetError().GetType() }),
		ofTime("created", run.GetCreatedAt),
		ofTime("started", run.GetStartedAt),
		ofTime("finished", run.GetFinishedAt),
		ofTime("wake_up", run.GetWakeUpAt),
		ofTime("deadline", run.GetDeadlineAt),
		ofTime("scheduled", run.GetScheduledAt),
		ofTime("cancel_requested", run.GetCancelRequestedAt),
		ofSpan("age", func(r run, now time.Time) (time.Duration, bool) { return now.Sub(r.GetCreatedAt().AsTime()), true }),
		ofSpan("duration", took),
		ofNumber("priority", run.GetPriority),
		ofNumber("attempts", run.GetAttempts),
		ofNumber("steps", run.GetStepCount),
		ofNumber("step_retries", run.GetStepRetries),
		ofNumber("lost_workers", run.GetLeaseLosses),
		ofFlag("paused", run.GetPaused),
		ofFlag("pinned", run.GetPinned),
		ofMap("tag.", run.GetTags),
		ofMap("requirement.", run.GetRequirements),
	}
}
