package model

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// SpanKind says what happens in a part of a lane.
type SpanKind uint8

const (
	Work    SpanKind = iota // an attempt runs
	Rest                    // waits for a timer, a signal or a child run
	Between                 // between a failed attempt and the next one
)

// Span is a part of a lane.
type Span struct {
	Kind     SpanKind
	From, To time.Time     // To is zero while open
	Step     *kagziv1.Step // the attempt; for Between the failed one
	Failed   bool          // ends with a failure
}

// Lane is a row of the timeline: a step with all its attempts.
type Lane struct {
	Name   string        // of the step
	Step   *kagziv1.Step // its latest attempt
	Spans  []Span        // in order; spans of one lane do not overlap
	Failed bool          // the latest attempt failed
	Open   bool          // not ended
	Note   string        // one line of raw text: what it waits for, or its error
}

// Lanes returns the rows of the timeline for all attempts of a run, in the order in which the steps
// started.
func Lanes(steps []*kagziv1.Step) []Lane {
	var lanes []Lane
	index := make(map[string]int, len(steps))
	for _, s := range steps {
		i, ok := index[s.GetName()]
		if !ok {
			i = len(lanes)
			index[s.GetName()] = i
			lanes = append(lanes, Lane{Name: s.GetName()})
		}
		lanes[i].add(s)
	}
	return lanes
}

// add appends the next attempt of the lane.
func (l *Lane) add(s *kagziv1.Step) {
	from, to := begun(s), moment(s.GetFinishedAt())
	if n := len(l.Spans); n > 0 {
		// the delay before this attempt ends here, and so does an attempt that was lost without an
		// end
		last := &l.Spans[n-1]
		if last.To.IsZero() || last.Kind == Between {
			last.To = from
		}
	}
	failed := s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED ||
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING
	l.Spans = append(l.Spans, Span{Kind: kindOf(s), From: from, To: to, Step: s, Failed: failed})
	if failed && !to.IsZero() && (s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING || !s.GetIsLatest()) {
		l.Spans = append(l.Spans, Span{Kind: Between, From: to, Step: s})
	}
	l.Step, l.Failed = s, s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED
	l.Open = s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING ||
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING
	l.Note = note(s)
}

// Kept reports whether a run took over a step from the run that it retries. The times of the step are
// those of that run.
func Kept(r *kagziv1.Workflow, s *kagziv1.Step) bool {
	return r.GetRetriedFromRunId() != "" && s.GetFinishedAt() != nil && r.GetCreatedAt() != nil &&
		s.GetFinishedAt().AsTime().Before(r.GetCreatedAt().AsTime())
}

// begun returns when an attempt started.
func begun(s *kagziv1.Step) time.Time {
	if s.GetStartedAt() != nil {
		return s.GetStartedAt().AsTime()
	}
	return s.GetCreatedAt().AsTime()
}

func moment(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func kindOf(s *kagziv1.Step) SpanKind {
	switch s.GetKind() {
	case kagziv1.StepKind_STEP_KIND_SLEEP, kagziv1.StepKind_STEP_KIND_SIGNAL, kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW:
		return Rest
	}
	return Work
}

// note returns what to show of an attempt beside its spans.
func note(s *kagziv1.Step) string {
	switch {
	case s.GetError() != nil:
		return render.ErrorLine(s.GetError())
	case s.GetOverriddenBy() != "":
		return "overridden by " + s.GetOverriddenBy() + ": " + s.GetOverrideReason()
	case s.GetSignalTimedOut():
		return "signal " + s.GetSignalName() + " timed out"
	case s.GetSignalName() != "":
		return "signal " + s.GetSignalName()
	case s.GetChildRunId() != "":
		return "run " + s.GetChildRunId()
	}
	return ""
}

// Event is something that happened to a run.
type Event struct {
	Sequence int // from 1
	At       time.Time
	Since    time.Duration // since the previous event
	Kind     string        // "run started", "step failed", "signal received", "cancel"
	Subject  string        // name of a step, signal or person; raw text
	Detail   string        // one line of raw text
	Style    render.Style
	Step     *kagziv1.Step // for an event of a step
}

// Events returns what happened to a run, oldest first. Any part may be missing.
func Events(run *kagziv1.Workflow, steps []*kagziv1.Step, signals []*kagziv1.Signal,
	audit []*kagziv1.AuditEvent) []Event {
	var l eventList
	l.addRun(run)
	for _, s := range steps {
		if Kept(run, s) {
			l.add(run.GetCreatedAt(), Event{Kind: "step kept", Subject: s.GetName(),
				Detail: "from run " + run.GetRetriedFromRunId(), Style: render.Dim, Step: s})
			continue
		}
		l.addStep(s)
	}
	for _, s := range signals {
		l.add(s.GetReceivedAt(), Event{Kind: "signal received", Subject: s.GetName(),
			Detail: render.PayloadLine(s.GetPayload(), payloadLine)})
	}
	for _, a := range audit {
		style, detail := render.Strong, joined(a.GetDetail(), a.GetReason())
		if a.GetOutcome() != "ok" {
			style, detail = render.Bad, joined(a.GetOutcome(), detail)
		}
		l.add(a.GetAt(), Event{Kind: "by hand: " + a.GetMethod(), Subject: a.GetActor(), Detail: detail, Style: style})
	}
	l.addEnd(run)
	slices.SortStableFunc(l.events, func(a, b Event) int { return a.At.Compare(b.At) })
	for i := range l.events {
		l.events[i].Sequence = i + 1
		if i > 0 {
			l.events[i].Since = l.events[i].At.Sub(l.events[i-1].At)
		}
	}
	return l.events
}

// payloadLine limits how many bytes of a payload are shown in a line.
const payloadLine = 200

type eventList struct{ events []Event }

func (l *eventList) add(at *timestamppb.Timestamp, e Event) {
	if at != nil {
		e.At = at.AsTime()
		l.events = append(l.events, e)
	}
}

func (l *eventList) addRun(r *kagziv1.Workflow) {
	how := ""
	switch {
	case r.GetScheduleId() != "":
		how = "by schedule " + r.GetScheduleId()
	case r.GetParentRunId() != "":
		how = "by run " + r.GetParentRunId()
	case r.GetRetriedFromRunId() != "":
		how = "as a retry of run " + r.GetRetriedFromRunId()
	case r.GetContinuedFromRunId() != "":
		how = "continued from run " + r.GetContinuedFromRunId()
	case r.GetFailedRunId() != "":
		how = "to handle the failure of run " + r.GetFailedRunId()
	}
	l.add(r.GetCreatedAt(), Event{Kind: "run created", Subject: r.GetWorkflowType(), Detail: how})
	l.add(r.GetStartedAt(), Event{Kind: "run started", Subject: r.GetWorkflowType(), Style: render.Busy})
	l.add(r.GetCancelRequestedAt(), Event{Kind: "cancel requested", Subject: r.GetWorkflowType(),
		Style: render.Stopped})
}

func (l *eventList) addEnd(r *kagziv1.Workflow) {
	if !render.Ended(r.GetStatus()) {
		return
	}
	detail := ""
	if r.GetError() != nil {
		detail = render.ErrorLine(r.GetError())
	}
	l.add(r.GetFinishedAt(), Event{Kind: "run " + runWords[r.GetStatus()], Subject: r.GetWorkflowType(), Detail: detail,
		Style: render.RunStyle(r.GetStatus())})
}

// runWords maps the final status of a run to a word.
var runWords = map[kagziv1.WorkflowStatus]string{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:  "completed",
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED:     "failed",
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED:  "cancelled",
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT:  "timed out",
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED: "terminated",
}

func (l *eventList) addStep(s *kagziv1.Step) {
	began := s.GetStartedAt()
	if began == nil {
		began = s.GetCreatedAt()
	}
	verb := map[SpanKind]string{Work: "step started", Rest: "wait started"}[kindOf(s)]
	l.add(began, Event{Kind: verb, Subject: s.GetName(), Detail: attempt(s), Style: render.Dim, Step: s})
	e := Event{Kind: "step completed", Subject: s.GetName(), Detail: joined(attempt(s), note(s)),
		Style: render.Good, Step: s}
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		if kindOf(s) == Rest {
			e.Kind = "wait ended"
		}
		if s.GetOverriddenBy() != "" {
			e.Kind = "step overridden"
		}
	case kagziv1.StepStatus_STEP_STATUS_FAILED, kagziv1.StepStatus_STEP_STATUS_PENDING:
		e.Kind, e.Style = "step failed", render.Bad
		if s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING {
			e.Kind, e.Style = "retry scheduled", render.Waiting
		}
	}
	l.add(s.GetFinishedAt(), e)
}

func attempt(s *kagziv1.Step) string {
	if s.GetAttemptNumber() <= 1 {
		return ""
	}
	return "attempt " + thousands(int64(s.GetAttemptNumber()))
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return a + ": " + b
}
