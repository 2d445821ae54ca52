package view

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// runColumns are those of every table of runs.
var runColumns = []widget.Column{
	{ID: "status", Title: "STATUS", Priority: 1, Min: 11},
	{ID: "type", Title: "TYPE", Priority: 1, Flex: true, Min: 10, Max: 40},
	{ID: "id", Title: "ID", Priority: 1, Flex: true, Min: 12, Max: 36},
	{ID: "note", Title: "NOTE", Priority: 3, Flex: true, Min: 12, Max: 60, Comfort: 40},
	{ID: "step", Title: "STEPS", Priority: 3, Right: true},
	{ID: "attempts", Title: "ATT", Priority: 3, Right: true},
	{ID: "age", Title: "AGE", Priority: 2, Right: true, Min: 8},
	{ID: "duration", Title: "TOOK", Priority: 3, Right: true, Min: 6},
	{ID: "queue", Title: "QUEUE", Priority: 3, Flex: true, Min: 8, Max: 24},
	{ID: "worker", Title: "WORKER", Priority: 3, Flex: true, Min: 10, Max: 24},
	{ID: "run", Title: "RUN ID", Priority: 4},
	{ID: "version", Title: "VERSION", Priority: 4},
	{ID: "priority", Title: "PRIO", Priority: 4, Right: true},
	{ID: "parent", Title: "PARENT", Priority: 4},
	{ID: "schedule", Title: "SCHEDULE", Priority: 4},
	{ID: "key", Title: "KEY", Priority: 4, Max: 24},
	{ID: "tags", Title: "TAGS", Priority: 4, Max: 40},
	{ID: "created", Title: "CREATED", Priority: 4},
	{ID: "wake", Title: "DUE", Priority: 4},
}

// runRow is a run as a row of those columns.
func (a *App) runRow(r *kagziv1.Workflow) widget.Row {
	view := a.clock.view()
	id := a.shownID(r)
	note := render.Cell{Text: render.RunNote(r, view), Style: render.Dim}
	if r.GetError() != nil {
		note.Style = render.Bad
	}
	return widget.Row{ID: r.GetRunId(), Cells: []render.Cell{
		a.look.Cell(theme.OfRun(r)), {Text: r.GetWorkflowType()}, {Text: id}, note,
		{Text: strconv.FormatInt(r.GetStepCount(), 10)}, {Text: strconv.Itoa(int(r.GetAttempts()))},
		{Text: a.clock.show(r.GetCreatedAt())}, {Text: a.took(r.GetStartedAt(), r.GetFinishedAt())},
		{Text: r.GetTaskQueue()}, {Text: r.GetWorkerId()}, {Text: r.GetRunId(), Style: render.Dim}, {Text: r.GetVersion()},
		{Text: strconv.Itoa(int(r.GetPriority()))}, {Text: r.GetParentRunId(), Style: render.Dim}, {Text: r.GetScheduleId(), Style: render.Dim},
		{Text: r.GetConcurrencyKey()}, {Text: tagText(r.GetTags())}, {Text: a.clock.full(r.GetCreatedAt()), Style: render.Dim}, {Text: a.due(r)},
	}}
}

// shownID is what people know a run by: its external id, the tick that started it, or the short form of its run id.
func (a *App) shownID(r *kagziv1.Workflow) string {
	id := r.GetExternalId()
	rest, ticked := strings.CutPrefix(id, "schedule:"+r.GetScheduleId()+":")
	switch {
	case id == "":
		return shortID(r.GetRunId())
	case !ticked || r.GetScheduleId() == "":
		return id
	case r.GetScheduledAt() != nil:
		return "tick " + r.GetScheduledAt().AsTime().In(a.options.Zone).Format("01-02 15:04:05")
	case strings.HasPrefix(rest, "trigger:"):
		return "trigger " + shortID(r.GetRunId())
	}
	return id
}

// due is when a run that is not over next needs a worker.
func (a *App) due(r *kagziv1.Workflow) string {
	if render.Ended(r.GetStatus()) {
		return "-"
	}
	return a.clock.show(r.GetWakeUpAt())
}

// took is how long something ran, so far where it has no end; "-" where it has no beginning. What goes on is shown in whole seconds, and
// in whole minutes after the first, so that a screen on which nothing happens stays quiet.
func (a *App) took(from, to *timestamppb.Timestamp) string {
	if from == nil {
		return "-"
	}
	if to != nil {
		return render.Duration(max(to.AsTime().Sub(from.AsTime()), 0))
	}
	d := max(a.now().Sub(from.AsTime()), 0)
	if d < time.Minute {
		return render.Duration(d.Truncate(time.Second))
	}
	return strings.TrimSuffix(render.Duration(d.Truncate(time.Minute)), "0s")
}

// shortID is the end of a run's id, in which ids differ; the beginning is the time.
func shortID(id string) string {
	if len(id) != 36 {
		return id
	}
	return id[:8] + "…" + id[24:]
}

// tagText joins tags, sorted: "customer=x team=pay".
func tagText(tags map[string]string) string { return render.KeyValues(tags) }
