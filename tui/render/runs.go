package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// RunsTable lists runs, one per row.
func RunsTable(runs []*kagziv1.Workflow, v View) Table {
	t := Table{Columns: []Column{
		{Title: "RUN ID"}, {Title: "TYPE", Flex: true}, {Title: "STATUS"}, {Title: "QUEUE", Flex: true, Spare: 3},
		{Title: "CREATED", Spare: 1},
		{Title: "TOOK", Right: true, Spare: 2}, {Title: "ATTEMPT", Right: true, Spare: 4},
		{Title: "EXTERNAL ID", Flex: true, Spare: 2}, {Title: "NOTE", Flex: true},
	}}
	for _, r := range runs {
		t.Rows = append(t.Rows, []Cell{
			Text(r.GetRunId()), Text(r.GetWorkflowType()), RunStatusCell(r), Text(r.GetTaskQueue()),
			{Text: v.Time(r.GetCreatedAt())}, {Text: v.Took(r.GetStartedAt(), r.GetFinishedAt())},
			{Text: strconv.Itoa(int(r.GetAttempts()))},
			Text(r.GetExternalId()), Text(RunNote(r, v)),
		})
	}
	return t
}

// RunStatusCell returns a run's status in its style.
func RunStatusCell(r *kagziv1.Workflow) Cell {
	text := RunStatus(r.GetStatus())
	switch {
	case Ended(r.GetStatus()):
	case r.GetPaused():
		text += " paused"
	case r.GetPausing():
		text += " pausing"
	}
	return Cell{Text: text, Style: RunStyle(r.GetStatus())}
}

// RunNote returns the most relevant text about a run beside its status, as raw text: its error,
// what it waits for, when it is due, or its note.
func RunNote(r *kagziv1.Workflow, v View) string {
	switch {
	case r.GetError() != nil && Ended(r.GetStatus()):
		return ErrorLine(r.GetError())
	case r.GetNote() != "":
		return r.GetNote()
	case r.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING && r.GetWaitingFor() != "":
		if r.GetWakeUpAt() == nil {
			return "waits for " + r.GetWaitingFor()
		}
		return "waits for " + r.GetWaitingFor() + ", due " + v.Time(r.GetWakeUpAt())
	case !Ended(r.GetStatus()) && r.GetWakeUpAt() != nil && r.GetWakeUpAt().AsTime().After(v.Now):
		return "due " + v.Time(r.GetWakeUpAt())
	}
	return ""
}

// ErrorLine returns an error as one line of raw text.
func ErrorLine(e *kagziv1.ErrorDetail) string {
	line := e.GetMessage()
	if line == "" {
		line = noMessage(e)
	}
	line = TypedMessage(e.GetType(), line)
	line, _, more := strings.Cut(line, "\n")
	if more {
		line += " …"
	}
	return line
}

// TypedMessage puts an error's type before its message, unless the message names it: at the start,
// as that of a panic does, or after the text of a wrapping error.
func TypedMessage(kind, message string) string {
	if kind == "" || strings.HasPrefix(message, kind+": ") || strings.Contains(message, ": "+kind+": ") {
		return message
	}
	return kind + ": " + message
}

// noMessage replaces an empty error message.
func noMessage(e *kagziv1.ErrorDetail) string {
	if e.GetCode() == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return "(error without a message)"
	}
	return enumText(e.GetCode())
}

func enumText(c kagziv1.ErrorCode) string { return strings.TrimPrefix(c.String(), "ERROR_CODE_") }

// Pair is one line of a detail view: a label with safe lines of text.
type Pair struct {
	Label string
	Lines []string
	Style Style
}

// parentText names a run's parent, and says if it does not wait for the run.
func parentText(r *kagziv1.Workflow) string {
	if r.GetParentRunId() == "" || !OnItsOwn(r) {
		return r.GetParentRunId()
	}
	return r.GetParentRunId() + " (which does not wait for this run)"
}

// OnItsOwn reports whether a run's parent is only where it comes from, and does not wait for it.
func OnItsOwn(r *kagziv1.Workflow) bool {
	return r.GetParentClosePolicy() == kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_UNSPECIFIED
}

// RunPairs returns the set properties of a run, most wanted first.
func RunPairs(r *kagziv1.Workflow, v View) []Pair {
	var p pairs
	p.text("Run", r.GetRunId())
	p.text("Type", r.GetWorkflowType())
	p.cell("Status", RunStatusCell(r))
	p.text("Note", r.GetNote())
	p.text("Waits for", r.GetWaitingFor())
	p.text("Queue", r.GetTaskQueue())
	p.text("Namespace", r.GetNamespace())
	p.text("External id", r.GetExternalId())
	p.text("Version", r.GetVersion())
	p.text("Worker", r.GetWorkerId())
	p.text("Attempt", strconv.Itoa(int(r.GetAttempts())))
	p.number("Step retries", int64(r.GetStepRetries()))
	p.number("Priority", int64(r.GetPriority()))
	p.number("Workers lost", int64(r.GetLeaseLosses()))
	p.text("Tags", KeyValues(r.GetTags()))
	p.text("Requires", KeyValues(r.GetRequirements()))
	p.text("Concurrency", Concurrency(r))
	p.text("Parent", parentText(r))
	p.text("Schedule", r.GetScheduleId())
	p.text("Retried from", r.GetRetriedFromRunId())
	p.text("Handles", r.GetFailedRunId())
	if r.GetBelowHandler() {
		p.text("Below a handler", "its failure starts no global handler")
	}
	p.text("Paused because", pauseText(r))
	p.text("Not reached", strings.Join(r.GetUnreached(), ", "))
	p.number("Unread signals", int64(r.GetUnreadSignals()))
	p.text("Continued as", r.GetContinuedAsRunId())
	p.text("Continued from", r.GetContinuedFromRunId())
	p.text("On failure", handler(r.GetOnFailureWorkflow(), r.GetOnFailureTaskQueue()))
	p.text("Retry", retryLine(r.GetRetryPolicy()))
	p.text("Run retry", retryLine(r.GetRunRetryPolicy()))
	p.text("Timeouts", timeoutsLine(r.GetTimeouts()))
	if r.GetPinned() {
		p.text("Pinned", "kept beyond the retention")
	}
	p.time("Scheduled for", r.GetScheduledAt(), v)
	p.time("Created", r.GetCreatedAt(), v)
	p.time("Started", r.GetStartedAt(), v)
	p.time("Ended", r.GetFinishedAt(), v)
	if !Ended(r.GetStatus()) {
		p.time("Due", r.GetWakeUpAt(), v)
		p.time("Deadline", r.GetDeadlineAt(), v)
	}
	p.time("Paused", r.GetPausedAt(), v)
	p.time("Cancel requested", r.GetCancelRequestedAt(), v)
	if !Ended(r.GetStatus()) {
		p.time("Grace until", r.GetCancelGraceUntil(), v)
	}
	if r.GetStartedAt() != nil {
		p.text("Took", v.Took(r.GetStartedAt(), r.GetFinishedAt()))
	}
	return p
}

// pauseText says why the server has paused a run; "" if a person has.
func pauseText(r *kagziv1.Workflow) string {
	switch why := r.GetPauseReason(); why {
	case "diverged":
		return "its code has diverged from its history"
	default:
		return why
	}
}

// Concurrency returns the concurrency key of a run or a schedule with its limit and scope, as raw text.
func Concurrency(r interface {
	GetConcurrencyKey() string
	GetConcurrencyLimit() int32
	GetConcurrencyScope() kagziv1.ConcurrencyScope
}) string {
	limit := max(r.GetConcurrencyLimit(), 1)
	switch {
	case r.GetConcurrencyKey() == "":
		return ""
	case r.GetConcurrencyScope() == kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN:
		return r.GetConcurrencyKey() + ", at most " + strconv.Itoa(int(limit)) + " open at a time"
	}
	return r.GetConcurrencyKey() + ", at most " + strconv.Itoa(int(limit)) + " at a time"
}

// KeyValues joins a map as "a=1 b=2", sorted.
func KeyValues(m map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] == "" {
			parts = append(parts, k)
			continue
		}
		parts = append(parts, k+"="+m[k])
	}
	return strings.Join(parts, " ")
}
