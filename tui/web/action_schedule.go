package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/internal/settings"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
)

var scheduleKinds = []*actionKind{
	{name: "trigger", title: "Trigger", noun: "schedule", least: operators,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.TriggerSchedules(ids) },
			model.TriggerText)},
	{name: "pause-schedule", title: "Pause", noun: "schedule", least: operators, fields: withReason,
		action: simple(model.Scope.PauseSchedules, model.PauseScheduleText)},
	{name: "resume-schedule", title: "Resume", noun: "schedule", least: operators,
		fields: func(*page, *question) []field {
			return []field{{name: "catchup", label: "Catch up", kind: "number",
				note: "most missed ticks to fire now, the latest ones; empty: none"}, reasonField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			n, err := int64(0), error(nil)
			if text := q.value("catchup"); text != "" {
				if n, err = strconv.ParseInt(text, 10, 32); err != nil || n < 0 {
					return model.Action{}, nil, invalid("Catch up: want a number of ticks")
				}
			}
			said := model.SkippedText
			if n > 0 {
				said = fmt.Sprintf("At most %d of the ticks that were missed fire now.", n)
			}
			return p.scope().ResumeSchedules(q.targets, int32(n), q.value("reason")), []string{said}, nil
		}},
	{name: "delete-schedule", title: "Delete", noun: "schedule", least: operators, danger: true, fields: withReason,
		action: simple(model.Scope.DeleteSchedules, model.DeleteScheduleText)},
	{name: "create-schedule", title: "Create a schedule", noun: "schedule", least: operators, makes: true,
		fields: scheduleFields, action: createSchedule},
	{name: "edit-schedule", title: "Change", noun: "schedule", least: operators, fields: editFields,
		current: currentSchedule, action: editSchedule},
	{name: "backfill", title: "Backfill", noun: "schedule", least: operators,
		fields: func(*page, *question) []field {
			return []field{{name: "from", label: "From", kind: "text", required: true,
				note: "first tick at or after this time: 2026-11-20T12:00:00Z, 2026-11-20 or -6h"},
				{name: "to", label: "To", kind: "text", note: "last tick at or before this time; empty means now"},
				reasonField}
		},
		action: backfill},
}

// editOnly are the fields that only a change has; they are not part of the schedule.
var editOnly = []field{
	{name: "next", label: "Not before", kind: "text", more: true,
		note: "the first tick at or after this time fires next: 2026-11-20T12:00:00Z or +2h; empty: no change"},
	reasonField,
}

func scheduleFields(*page, *question) []field {
	return append(fieldsOf(settings.ScheduleFields()), field{name: "paused", label: "Create it paused", kind: "check"})
}

func editFields(_ *page, q *question) []field {
	if len(q.targets) != 1 {
		return nil
	}
	return append(fieldsOf(settings.ScheduleFields()), editOnly...)
}

// next says when an expression fires next, or why it does not.
func (p *page) next(expr, zone string) ([]string, error) {
	if expr == "" {
		return nil, invalid("When: enter a cron expression")
	}
	answer, err := p.API.PreviewSchedule(p.ctx, &kagziv1.PreviewScheduleRequest{CronExpr: expr, TimeZone: zone,
		Count: 3})
	if err != nil {
		return nil, err
	}
	var said []string
	for _, cells := range render.TicksTable(answer.GetTicks(), zone, p.view()).Rows {
		said = append(said, "Fires "+cells[0].Text)
	}
	if len(said) == 0 {
		said = []string{"It never fires."}
	}
	return said, nil
}

func createSchedule(p *page, q *question) (model.Action, []string, error) {
	s := &kagziv1.WorkflowSchedule{MaxCatchup: settings.UsualCatchup}
	if err := settings.SetSchedule(s, q.texts()); err != nil {
		return model.Action{}, nil, invalid("%s", err)
	}
	if s.GetWorkflowType() == "" {
		return model.Action{}, nil, invalid("Type: enter the type of the workflow")
	}
	said, err := p.next(s.GetCronExpr(), s.GetTimeZone())
	if err != nil {
		return model.Action{}, nil, err
	}
	r := &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: s.GetWorkflowType(), TaskQueue: s.GetTaskQueue(),
		CronExpr: s.GetCronExpr(), TimeZone: s.GetTimeZone(), Name: s.GetName(), OverlapPolicy: s.GetOverlapPolicy(),
		Input: s.GetInput(), Tags: s.GetTags(), JitterMs: s.GetJitterMs(), RetryPolicy: s.GetRetryPolicy(),
		RunRetryPolicy: s.GetRunRetryPolicy(), Timeouts: s.GetTimeouts(), OnFailureWorkflow: s.GetOnFailureWorkflow(),
		OnFailureTaskQueue: s.GetOnFailureTaskQueue(), ConcurrencyKey: s.GetConcurrencyKey(),
		ConcurrencyLimit: s.GetConcurrencyLimit(), ConcurrencyScope: s.GetConcurrencyScope()}
	if q.value("catchup") != "" {
		r.MaxCatchup = new(s.GetMaxCatchup())
	}
	if s.GetVersion() != "" {
		r.Version = new(s.GetVersion())
	}
	if q.value("paused") != "" {
		r.Enabled = new(false)
		said = append([]string{"It does not fire until it is resumed. Without the pause:"}, said...)
	}
	return p.scope().CreateSchedule(r), said, nil
}

func (p *page) oldSchedule(q *question) (*kagziv1.WorkflowSchedule, error) {
	if len(q.targets) != 1 {
		return nil, invalid("works on one schedule at a time")
	}
	answer, err := p.API.GetWorkflowSchedule(p.ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: p.ns,
		ScheduleId: q.targets[0]})
	return answer.GetSchedule(), err
}

// currentSchedule returns the values of the fields as the schedule has them now.
func currentSchedule(p *page, q *question) (map[string]string, error) {
	s, err := p.oldSchedule(q)
	return settings.OfSchedule(s), err
}

// editSchedule changes only what differs.
func editSchedule(p *page, q *question) (model.Action, []string, error) {
	old, err := p.oldSchedule(q)
	if err != nil {
		return model.Action{}, nil, err
	}
	is := proto.CloneOf(old)
	if err := settings.SetSchedule(is, q.texts()); err != nil {
		return model.Action{}, nil, invalid("%s", err)
	}
	r, changed := settings.Changes(old, is)
	r.Reason = q.value("reason")
	if text := q.value("next"); text != "" {
		at, err := ahead(text, p.now)
		if err != nil {
			return model.Action{}, nil, invalid("Not before: want a time ahead, such as 2026-11-20T12:00:00Z or +2h")
		}
		r.NextFireAt, changed = timestamppb.New(at), true
	}
	if !changed {
		return model.Action{}, nil, invalid("change a field first")
	}
	var said []string
	if r.CronExpr != nil || r.TimeZone != nil {
		if said, err = p.next(is.GetCronExpr(), is.GetTimeZone()); err != nil {
			return model.Action{}, nil, err
		}
	}
	return p.scope().UpdateSchedule(old, r), append(said, "Runs that it has started are not changed."), nil
}

func backfill(p *page, q *question) (model.Action, []string, error) {
	if len(q.targets) != 1 {
		return model.Action{}, nil, invalid("works on one schedule at a time")
	}
	from, err := query.ParseTime(q.value("from"), p.now)
	if err != nil || !from.Before(p.now) {
		return model.Action{}, nil, invalid("From: want a time that is over, such as 2026-11-20 or -6h")
	}
	var to *timestamppb.Timestamp
	until := "now"
	if text := q.value("to"); text != "" {
		at, err := query.ParseTime(text, p.now)
		if err != nil || at.Before(from) || at.After(p.now) {
			return model.Action{}, nil, invalid("To: want a time from %s to now", from.Format(time.RFC3339))
		}
		to, until = timestamppb.New(at), at.Format(time.RFC3339)
	}
	return p.scope().BackfillSchedule(q.targets[0], timestamppb.New(from), to, q.value("reason")), []string{
		fmt.Sprintf("A run starts for each tick from %s to %s that has none, at most 1,000.",
			from.Format(time.RFC3339), until), model.BackfillText}, nil
}

// ahead reads a time that is ahead: 90d, +2h, 2027-01-31 or with a time.
func ahead(text string, now time.Time) (time.Time, error) {
	at, err := query.ParseTime(text, now)
	if d, wrong := query.ParseDuration(strings.TrimPrefix(text, "+")); wrong == nil && d > 0 {
		at, err = now.Add(d), nil
	}
	if err == nil && !at.After(now) {
		err = invalid("%s is over", strconv.Quote(text))
	}
	return at, err
}
