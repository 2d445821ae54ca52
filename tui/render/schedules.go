package render

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/zone"
)

// SchedulesTable lists schedules, one per row.
func SchedulesTable(schedules []*kagziv1.WorkflowSchedule, v View) Table {
	t := Table{Columns: []Column{
		{Title: "SCHEDULE ID"}, {Title: "NAME", Flex: true}, {Title: "TYPE", Flex: true}, {Title: "CRON", Flex: true},
		{Title: "ZONE", Flex: true, Spare: 3}, {Title: "STATE"},
		{Title: "NEXT"}, {Title: "LAST", Spare: 1}, {Title: "RUNS", Right: true}, {Title: "OK", Right: true, Spare: 5},
		{Title: "FAILED", Right: true, Spare: 2},
		{Title: "SKIPPED", Right: true, Spare: 4}, {Title: "NOTE", Flex: true},
	}}
	for _, s := range schedules {
		t.Rows = append(t.Rows, []Cell{
			Text(s.GetScheduleId()), Text(s.GetName()), Text(s.GetWorkflowType()), Text(s.GetCronExpr()),
			Text(zoneOf(s)), ScheduleState(s),
			{Text: nextFire(s, v)}, {Text: v.Time(s.GetLastFiredAt())}, count(s.GetTotalRuns()),
			count(s.GetSuccessfulRuns()), count(s.GetFailedRuns()),
			count(s.GetSkippedTicks()), Text(cmp.Or(s.GetBroken(), s.GetPauseReason())),
		})
	}
	return t
}

// ScheduleState returns "ENABLED", "PAUSED", or "BROKEN" for a schedule that cannot fire.
func ScheduleState(s *kagziv1.WorkflowSchedule) Cell {
	switch {
	case s.GetBroken() != "":
		return Cell{Text: "BROKEN", Style: Bad}
	case s.GetEnabled():
		return Cell{Text: "ENABLED", Style: Good}
	}
	return Cell{Text: "PAUSED", Style: Waiting}
}

func zoneOf(s *kagziv1.WorkflowSchedule) string {
	if s.GetTimeZone() == "" {
		return "UTC"
	}
	return s.GetTimeZone()
}

// nextFire returns the next tick, or nothing if it will not fire.
func nextFire(s *kagziv1.WorkflowSchedule, v View) string {
	if !s.GetEnabled() || s.GetBroken() != "" {
		return "-"
	}
	return v.Time(s.GetNextFireAt())
}

// SchedulePairs returns the set properties of a schedule, most wanted first.
func SchedulePairs(s *kagziv1.WorkflowSchedule, v View) []Pair {
	var p pairs
	p.text("Schedule", s.GetScheduleId())
	p.text("Name", s.GetName())
	p.cell("State", ScheduleState(s))
	p.cell("Broken", Cell{Text: Safe(s.GetBroken()), Style: Bad})
	p.text("Pause reason", s.GetPauseReason())
	p.text("Cron", s.GetCronExpr())
	p.text("Zone", zoneOf(s))
	p.text("Type", s.GetWorkflowType())
	p.text("Queue", s.GetTaskQueue())
	p.text("Namespace", s.GetNamespace())
	p.text("Version", s.GetVersion())
	p.text("Overlap", Overlap(s.GetOverlapPolicy()))
	p.text("Catch-up", strconv.Itoa(int(s.GetMaxCatchup()))+" ticks at most")
	p.text("Jitter", Jitter(s))
	p.text("Tags", KeyValues(s.GetTags()))
	p.text("Concurrency", Concurrency(s))
	p.text("Retry", retryLine(s.GetRetryPolicy()))
	p.text("Run retry", retryLine(s.GetRunRetryPolicy()))
	p.text("Timeouts", timeoutsLine(s.GetTimeouts()))
	p.text("On failure", handler(s.GetOnFailureWorkflow(), s.GetOnFailureTaskQueue()))
	p.text("Runs", strconv.FormatInt(s.GetTotalRuns(), 10)+" started, "+strconv.FormatInt(s.GetSuccessfulRuns(), 10)+
		" completed, "+strconv.FormatInt(s.GetFailedRuns(), 10)+" failed")
	p.number("Skipped ticks", s.GetSkippedTicks())
	p.time("Waiting tick", s.GetBufferedTick(), v)
	p.time("Last fired", s.GetLastFiredAt(), v)
	p.time("Created", s.GetCreatedAt(), v)
	p.time("Updated", s.GetUpdatedAt(), v)
	return p
}

// Jitter returns how much later than its ticks a schedule starts runs, and the next one; "" without
// jitter.
func Jitter(s *kagziv1.WorkflowSchedule) string {
	if s.GetJitterMs() == 0 {
		return ""
	}
	text := "up to " + milliseconds(s.GetJitterMs())
	if at := s.GetNextRunAt(); at != nil && s.GetEnabled() {
		text += "; " + Duration(at.AsTime().Sub(s.GetNextFireAt().AsTime())) + " after the next tick"
	}
	return text
}

// Overlap returns an overlap policy as the command line takes it: "allow", "skip", "buffer-one".
func Overlap(o kagziv1.OverlapPolicy) string {
	if o == kagziv1.OverlapPolicy_OVERLAP_POLICY_UNSPECIFIED {
		o = kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW
	}
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(o.String(), "OVERLAP_POLICY_")), "_", "-")
}

func handler(workflowType, queue string) string {
	if workflowType != "" && queue != "" {
		return workflowType + " in queue " + queue
	}
	return workflowType
}

func retryLine(p *kagziv1.RetryPolicy) string {
	if p == nil {
		return ""
	}
	var parts []string
	add := func(set bool, text string) {
		if set {
			parts = append(parts, text)
		}
	}
	add(p.GetMaximumAttempts() > 0, strconv.Itoa(int(p.GetMaximumAttempts()))+" attempts")
	add(p.GetMaximumAttempts() < 0, "unlimited attempts")
	add(p.GetInitialIntervalMs() != 0, "first after "+milliseconds(p.GetInitialIntervalMs()))
	add(p.GetBackoffCoefficient() != 0, "times "+strconv.FormatFloat(p.GetBackoffCoefficient(), 'g', -1, 64))
	add(p.GetMaximumIntervalMs() != 0, "at most "+milliseconds(p.GetMaximumIntervalMs()))
	add(p.GetJitter() != 0, "jitter "+strconv.FormatFloat(max(p.GetJitter(), 0), 'g', -1, 64))
	add(len(p.GetNonRetryableErrors()) > 0, "not retryable: "+strings.Join(p.GetNonRetryableErrors(), ", "))
	return strings.Join(parts, ", ")
}

func timeoutsLine(t *kagziv1.TimeoutConfig) string {
	var parts []string
	for _, one := range []struct {
		what string
		ms   int64
	}{{"step", t.GetStartToCloseTimeoutMs()}, {"heartbeat", t.GetHeartbeatTimeoutMs()},
		{"run", t.GetExecutionTimeoutMs()}} {
		if one.ms != 0 {
			parts = append(parts, one.what+" "+milliseconds(one.ms))
		}
	}
	return strings.Join(parts, ", ")
}

func milliseconds(n int64) string { return Duration(time.Duration(n) * time.Millisecond) }

// TickWords returns a tick in words, with its weekday: "Friday 20 November 2026, 09:00 CET".
func TickWords(at time.Time) string {
	layout := "Monday 2 January 2006, 15:04 MST"
	if at.Second() != 0 {
		layout = "Monday 2 January 2006, 15:04:05 MST"
	}
	return at.Format(layout)
}

// TicksTable lists the ticks of a schedule in words, in its time zone if this machine knows it, and
// in UTC.
func TicksTable(ticks []*timestamppb.Timestamp, name string, v View) Table {
	location, err := zone.Load(name)
	if err != nil || name == "" {
		location, name = time.UTC, "UTC"
	}
	t := Table{Columns: []Column{{Title: "FIRES (" + Safe(name) + ")"}, {Title: "UTC"}, {Title: "IN"}}}
	for _, tick := range ticks {
		t.Rows = append(t.Rows, []Cell{{Text: TickWords(tick.AsTime().In(location))},
			{Text: tick.AsTime().UTC().Format(time.RFC3339)},
			{Text: strings.TrimPrefix(Ago(v.Now.Sub(tick.AsTime())), "in ")}})
	}
	return t
}

// BackfillTable lists the ticks of a backfill with their runs.
func BackfillTable(ticks []*kagziv1.BackfilledTick) Table {
	t := Table{Columns: []Column{{Title: "TICK (UTC)"}, {Title: "RUN ID"}, {Title: "STARTED"}}}
	for _, tick := range ticks {
		started := Cell{Text: "now", Style: Good}
		if tick.GetExisted() {
			started = Cell{Text: "before", Style: Dim}
		}
		t.Rows = append(t.Rows, []Cell{{Text: tick.GetTick().AsTime().UTC().Format(time.RFC3339)},
			Text(tick.GetRunId()), started})
	}
	return t
}
