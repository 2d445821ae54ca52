package render

import (
	"strconv"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// StepsTable lists every attempt of a run's steps, in the given order.
func StepsTable(steps []*kagziv1.Step, v View) Table {
	t := Table{Columns: []Column{
		{Title: "#", Right: true}, {Title: "STEP", Flex: true}, {Title: "KIND", Spare: 2},
		{Title: "ATTEMPT", Right: true}, {Title: "STATUS"},
		{Title: "STARTED", Spare: 1}, {Title: "TOOK", Right: true}, {Title: "RESULT", Flex: true},
	}}
	for _, s := range steps {
		t.Rows = append(t.Rows, []Cell{
			{Text: strconv.FormatInt(s.GetSequence(), 10)}, Text(s.GetName()), {Text: StepKind(s.GetKind())},
			{Text: strconv.Itoa(int(s.GetAttemptNumber()))},
			{Text: StepStatus(s.GetStatus()), Style: StepStyle(s.GetStatus())},
			{Text: v.Time(s.GetStartedAt())}, {Text: v.Took(s.GetStartedAt(), s.GetFinishedAt())},
			Text(StepResult(s, v)),
		})
	}
	return t
}

// StepResult returns the result of a step's attempt as one line of raw text.
func StepResult(s *kagziv1.Step, v View) string {
	switch {
	case s.GetError() != nil && s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING &&
		s.GetRetryAt().AsTime().After(v.Now):
		return ErrorLine(s.GetError()) + ", again " + v.Time(s.GetRetryAt())
	case s.GetError() != nil:
		return ErrorLine(s.GetError())
	case s.GetSignalTimedOut():
		return "signal " + s.GetSignalName() + " timed out"
	case s.GetOutput() != nil:
		return PayloadLine(s.GetOutput(), v.Payloads)
	case s.GetChildRunId() != "":
		return "run " + s.GetChildRunId()
	case s.GetSignalName() != "" && s.GetFinishedAt() == nil && s.GetWakeUpAt() == nil:
		return "waits for signal " + s.GetSignalName()
	case s.GetSignalName() != "" && s.GetFinishedAt() == nil:
		return "waits for signal " + s.GetSignalName() + ", times out " + v.Time(s.GetWakeUpAt())
	case s.GetWakeUpAt() != nil && s.GetFinishedAt() == nil:
		return "due " + v.Time(s.GetWakeUpAt())
	}
	return ""
}

// CutShort reports whether an attempt ended because its run ended or moved to another worker.
func CutShort(s *kagziv1.Step) bool {
	switch s.GetError().GetType() {
	case "run_ended", "interrupted":
		return true
	}
	return false
}
