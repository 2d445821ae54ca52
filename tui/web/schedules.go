package web

import (
	"net/http"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	shownTicks   = 10
	scheduleRuns = 50
)

// scheduleName returns the name of a schedule, or else its id.
func scheduleName(s *kagziv1.WorkflowSchedule) string {
	if s.GetName() != "" {
		return s.GetName()
	}
	return s.GetScheduleId()
}

// schedules lists the schedules of the namespace.
func (p *page) schedules() error {
	answer, err := p.API.ListWorkflowSchedules(p.ctx, &kagziv1.ListWorkflowSchedulesRequest{Namespace: p.ns,
		Page: p.pageRequest()})
	if err != nil {
		return err
	}
	list := answer.GetSchedules()
	t := table{caption: "Schedules", empty: "There are no schedules.", Table: render.Table{Columns: []render.Column{
		{Title: "NAME"}, {Title: "STATE"}, {Title: "TYPE"}, {Title: "WHEN"}, {Title: "ZONE"}, {Title: "NEXT",
			Right: true},
		{Title: "LAST", Right: true}, {Title: "RUNS", Right: true}, {Title: "FAILED", Right: true},
		{Title: "SKIPPED", Right: true}, {Title: "PROBLEM"}}},
		key: func(row int) string { return list[row].GetScheduleId() },
		link: func(row, column int) string {
			if column == 0 {
				return p.scheduleURL(list[row].GetScheduleId())
			}
			return ""
		}}
	for _, s := range list {
		failed := render.Cell{Text: format.Number(s.GetFailedRuns())}
		if s.GetFailedRuns() > 0 {
			failed.Style = render.Bad
		}
		t.Rows = append(t.Rows, []render.Cell{render.Text(scheduleName(s)), signCell(theme.OfSchedule(s)),
			render.Text(s.GetWorkflowType()), render.Text(s.GetCronExpr()), render.Text(s.GetTimeZone()),
			{Text: p.clock.Show(s.GetNextFireAt())}, {Text: p.clock.Show(s.GetLastFiredAt())},
			{Text: format.Number(s.GetTotalRuns())}, failed, {Text: format.Number(s.GetSkippedTicks())},
			{Text: render.Truncate(render.Safe(s.GetBroken()), 200), Style: render.Bad}})
	}
	return p.write(http.StatusOK, p.document("Schedules", "Schedules",
		h.Div(h.Class("head"), h.H1(h.Text("Schedules")), g.If(p.offers(operators), h.A(h.Class("button"),
			h.Href(p.at("act", "do", "create-schedule")), h.Text("New schedule")))),
		h.Div(h.ID("list"), h.Data("live", "schedules"), t.node(), p.pages(answer.GetPage(),
			func(token string) string { return p.at("schedules", "page", token) }))))
}

// schedule shows a schedule with its next ticks and its runs.
func (p *page) schedule() error {
	id := p.r.PathValue("schedule")
	answer, err := p.API.GetWorkflowSchedule(p.ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: p.ns,
		ScheduleId: id})
	if err != nil {
		return err
	}
	s := answer.GetSchedule()
	runs, err := p.API.ListScheduleRuns(p.ctx, &kagziv1.ListScheduleRunsRequest{Namespace: p.ns,
		ScheduleId: s.GetScheduleId(), Page: &kagziv1.PageRequest{PageSize: scheduleRuns}})
	if err != nil {
		return err
	}
	ticks := g.Node(h.P(h.Class("problem"), text(s.GetBroken())))
	if s.GetBroken() == "" {
		next, err := tui.NextTicks(p.ctx, p.API, s, shownTicks)
		if err != nil {
			return err
		}
		ticks = table{Table: render.TicksTable(next, s.GetTimeZone(), p.view()), caption: "Next ticks",
			empty: "It never fires again."}.node()
	}
	return p.write(http.StatusOK, p.document("Schedule "+scheduleName(s), "Schedules",
		h.P(h.Class("crumbs"), h.A(h.Href(p.at("schedules")), h.Data("up", ""), h.Text("Schedules"))),
		h.Div(h.ID("schedule"), h.Data("live", "schedules"),
			h.Div(h.Class("head"), h.H1(cut(scheduleName(s), 80), h.Text(" "), sign(theme.OfSchedule(s))),
				p.scheduleButtons(s)),
			facts(render.SchedulePairs(s, p.view()), nil),
			section("ticks", "Next ticks", g.If(!s.GetEnabled() && s.GetBroken() == "", h.P(h.Class("empty"),
				h.Text("It is paused. Without the pause it would fire:"))), ticks),
			section("input", "Input", p.payload(s.GetInput(), "Runs start without an input.", "")),
			section("runs", "Its latest runs", p.plainRuns(runs.GetRuns())))))
}

func (p *page) scheduleButtons(s *kagziv1.WorkflowSchedule) g.Node {
	if !p.offers(operators) {
		return nil
	}
	button := func(do, title string) g.Node {
		return h.A(h.Class("button"), h.Href(p.at("act", "do", do, "id", s.GetScheduleId())), h.Text(title))
	}
	return h.Div(h.Class("buttons"), button("trigger", "Trigger"),
		g.If(s.GetEnabled(), button("pause-schedule", "Pause")), g.If(!s.GetEnabled(), button("resume-schedule",
			"Resume")),
		button("backfill", "Backfill"), button("edit-schedule", "Edit"), button("delete-schedule", "Delete"))
}
