package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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

var workerColumns = []widget.Column{
	{ID: "status", Title: "STATUS", Priority: 1, Min: 10},
	{ID: "name", Title: "NAME", Priority: 1, Flex: true, Min: 12, Max: 40},
	{ID: "queue", Title: "QUEUE", Priority: 1, Flex: true, Min: 8, Max: 30},
	{ID: "load", Title: "LOAD", Priority: 1, Min: 14},
	{ID: "heartbeat", Title: "HEARTBEAT", Priority: 2, Right: true},
	{ID: "done", Title: "DONE", Priority: 2, Right: true},
	{ID: "failed", Title: "FAILED", Priority: 2, Right: true},
	{ID: "types", Title: "TYPES", Priority: 3, Flex: true, Min: 10, Max: 50},
	{ID: "version", Title: "VERSION", Priority: 3, Max: 20},
	{ID: "since", Title: "SINCE", Priority: 3, Right: true},
	{ID: "host", Title: "HOST", Priority: 3, Max: 24},
	{ID: "pid", Title: "PID", Priority: 4, Right: true},
	{ID: "cpu", Title: "CPU", Priority: 4, Right: true},
	{ID: "memory", Title: "MEMORY", Priority: 4, Right: true},
	{ID: "platform", Title: "PLATFORM", Priority: 4},
	{ID: "labels", Title: "LABELS", Priority: 3, Max: 40},
}

// workerRow is a worker as a row of those columns.
func (a *App) workerRow(w *kagziv1.Worker) widget.Row {
	failed := render.Cell{Text: number(w.GetTotalFailed())}
	if w.GetTotalFailed() > 0 {
		failed.Style = render.Bad
	}
	cpu, memory := "-", "-"
	if s := w.GetStats(); s != nil {
		cpu, memory = fmt.Sprintf("%.0f%%", s.GetCpuPercent()), render.Bytes(s.GetMemoryBytes())
	}
	return widget.Row{ID: w.GetWorkerId(), Cells: []render.Cell{
		a.look.Cell(theme.OfWorker(w.GetStatus())), {Text: w.GetWorkerId()}, {Text: strings.Join(queuesOf(w), ",")},
		{Text: a.load(int(w.GetActiveWorkflowCount()), int(w.GetMaxConcurrent()))}, {Text: a.clock.show(w.GetLastHeartbeatAt())},
		{Text: number(w.GetTotalCompleted())}, failed, {Text: strings.Join(w.GetWorkflowTypes(), ",")}, {Text: w.GetVersion()},
		{Text: a.clock.show(w.GetRegisteredAt())}, {Text: w.GetHostname()}, {Text: strconv.Itoa(int(w.GetPid()))}, {Text: cpu}, {Text: memory},
		{Text: w.GetPlatform()}, {Text: tagText(w.GetLabels())},
	}}
}

// load is a bar of five cells with the figures: "██··· 2/5".
func (a *App) load(active, most int) string {
	const cells = 5
	if most <= 0 {
		return strconv.Itoa(active)
	}
	full := min((active*cells+most-1)/most, cells)
	return strings.Repeat(a.look.Glyph(theme.Full), full) + strings.Repeat(a.look.Glyph(theme.Empty), cells-full) + fmt.Sprintf(" %d/%d", active, most)
}

var scheduleColumns = []widget.Column{
	{ID: "state", Title: "STATE", Priority: 1, Min: 8},
	{ID: "name", Title: "NAME", Priority: 1, Flex: true, Min: 12, Max: 36},
	{ID: "next", Title: "NEXT", Priority: 1, Min: 8, Max: 30},
	{ID: "last", Title: "LAST", Priority: 1, Min: 9},
	{ID: "type", Title: "TYPE", Priority: 2, Flex: true, Min: 10, Max: 36},
	{ID: "cron", Title: "CRON", Priority: 2, Max: 32},
	{ID: "zone", Title: "ZONE", Priority: 3, Max: 24},
	{ID: "queue", Title: "QUEUE", Priority: 3, Flex: true, Min: 8, Max: 24},
	{ID: "runs", Title: "RUNS", Priority: 3, Right: true},
	{ID: "failed", Title: "FAILED", Priority: 3, Right: true},
	{ID: "skipped", Title: "SKIPPED", Priority: 3, Right: true},
	{ID: "ok", Title: "OK", Priority: 4, Right: true},
	{ID: "overlap", Title: "OVERLAP", Priority: 3},
	{ID: "catchup", Title: "CATCHUP", Priority: 3, Right: true},
	{ID: "created", Title: "CREATED", Priority: 3},
	{ID: "id", Title: "ID", Priority: 4},
}

// scheduleRow is a schedule, with its latest run where that is known, as a row of those columns.
func (a *App) scheduleRow(s *kagziv1.WorkflowSchedule, latest *kagziv1.Workflow) widget.Row {
	failed := render.Cell{Text: number(s.GetFailedRuns())}
	if s.GetFailedRuns() > 0 {
		failed.Style = render.Bad
	}
	return widget.Row{ID: s.GetScheduleId(), Cells: []render.Cell{
		a.look.Cell(theme.OfSchedule(s)), {Text: scheduleName(s)}, a.nextCell(s), a.lastCell(s, latest), {Text: s.GetWorkflowType()}, {Text: s.GetCronExpr()},
		{Text: zoneOf(s)}, {Text: s.GetTaskQueue()}, {Text: number(s.GetTotalRuns())}, failed, {Text: number(s.GetSkippedTicks())},
		{Text: number(s.GetSuccessfulRuns())}, {Text: render.Overlap(s.GetOverlapPolicy())}, {Text: strconv.Itoa(int(s.GetMaxCatchup()))},
		{Text: a.clock.show(s.GetCreatedAt())}, {Text: s.GetScheduleId(), Style: render.Dim},
	}}
}

// nextCell is when a schedule fires next, how far off and on the clock here; "-" where it does not.
func (a *App) nextCell(s *kagziv1.WorkflowSchedule) render.Cell {
	cell, clock := a.nextTick(s)
	if clock != "" {
		cell.Text = pad(cell.Text, 9) + clock
	}
	return cell
}

// nextTick is when a schedule fires next, and where that says how far off it is, what the clock shows then.
func (a *App) nextTick(s *kagziv1.WorkflowSchedule) (cell render.Cell, clock string) {
	switch {
	case s.GetBroken() != "":
		return render.Cell{Text: "never", Style: render.Bad}, ""
	case !fires(s):
		return render.Cell{Text: "-", Style: render.Dim}, ""
	case a.clock.style != timeNames[0]:
		return render.Cell{Text: a.clock.show(s.GetNextFireAt())}, ""
	}
	at, now := s.GetNextFireAt().AsTime().In(a.clock.zone), a.now().In(a.clock.zone)
	format := "15:04"
	if at.Second() != 0 {
		format = time.TimeOnly
	}
	if at.Year() != now.Year() || at.YearDay() != now.YearDay() {
		format = "Jan _2 " + format
	}
	return render.Cell{Text: until(at.Sub(now))}, at.Format(format)
}

// lastCell is when a schedule fired last, and how that went where it is known.
func (a *App) lastCell(s *kagziv1.WorkflowSchedule, latest *kagziv1.Workflow) render.Cell {
	if latest == nil {
		return render.Cell{Text: a.clock.show(s.GetLastFiredAt())}
	}
	sign := theme.OfRun(latest)
	return render.Cell{Text: a.look.Glyph(sign.Glyph) + " " + a.clock.show(latest.GetCreatedAt()), Style: sign.Style}
}

// tickColumns are those of the runs that a schedule started.
var tickColumns = []widget.Column{
	{ID: "status", Title: "STATUS", Priority: 1, Min: 11},
	{ID: "tick", Title: "TICK", Priority: 1, Min: 14},
	{ID: "age", Title: "AGE", Priority: 1, Right: true, Min: 8},
	{ID: "duration", Title: "TOOK", Priority: 1, Right: true, Min: 6},
	{ID: "note", Title: "NOTE", Priority: 2, Flex: true, Min: 10, Max: 60},
	{ID: "lag", Title: "LATE BY", Priority: 3, Right: true},
	{ID: "step", Title: "STEPS", Priority: 3, Right: true},
	{ID: "attempts", Title: "ATT", Priority: 3, Right: true},
	{ID: "worker", Title: "WORKER", Priority: 3, Flex: true, Min: 10, Max: 24},
	{ID: "run", Title: "RUN ID", Priority: 3},
}

// tickRow is a run as a row of those columns.
func (a *App) tickRow(r *kagziv1.Workflow) widget.Row {
	note := render.Cell{Text: render.RunNote(r, a.clock.view()), Style: render.Dim}
	if r.GetError() != nil {
		note.Style = render.Bad
	}
	tick, lag := render.Cell{Text: "by hand", Style: render.Dim}, "-"
	if t := r.GetScheduledAt(); t != nil {
		tick, lag = render.Cell{Text: t.AsTime().In(a.clock.zone).Format("Jan _2 15:04:05")}, render.Duration(max(r.GetCreatedAt().AsTime().Sub(t.AsTime()), 0))
	}
	return widget.Row{ID: r.GetRunId(), Cells: []render.Cell{
		a.look.Cell(theme.OfRun(r)), tick, {Text: a.clock.show(r.GetCreatedAt())}, {Text: a.took(r.GetStartedAt(), r.GetFinishedAt())}, note, {Text: lag},
		{Text: strconv.FormatInt(r.GetStepCount(), 10)}, {Text: strconv.Itoa(int(r.GetAttempts()))}, {Text: r.GetWorkerId()}, {Text: r.GetRunId(), Style: render.Dim},
	}}
}

var queueColumns = []widget.Column{
	{ID: "queue", Title: "QUEUE", Priority: 1, Flex: true, Min: 12, Max: 40},
	{ID: "pending", Title: "PENDING", Priority: 1, Right: true},
	{ID: "oldest", Title: "OLDEST", Priority: 1, Right: true},
	{ID: "running", Title: "RUNNING", Priority: 2, Right: true},
	{ID: "sleeping", Title: "SLEEPING", Priority: 2, Right: true},
	{ID: "workers", Title: "WORKERS", Priority: 2, Right: true},
	{ID: "slots", Title: "SLOTS", Priority: 3, Min: 12},
	{ID: "unserved", Title: "NO WORKER FOR", Priority: 2, Flex: true, Min: 14, Max: 60},
}

// queueRow is a queue, with how long its oldest run has waited and the room that its workers have, as a row of those columns.
func (a *App) queueRow(q *kagziv1.QueueDepth, waits time.Duration, s slots) widget.Row {
	oldest := "-"
	if waits > time.Second && waits < time.Minute {
		waits = waits.Truncate(time.Second) // it grows while it is looked at
	}
	if waits > 0 {
		oldest = render.Duration(waits)
	}
	workers := render.Cell{Text: strconv.Itoa(int(q.GetOnlineWorkers()))}
	if q.GetOnlineWorkers() == 0 && q.GetPending() > 0 {
		workers.Style = render.Bad
	}
	room := render.Cell{Text: "-", Style: render.Dim}
	if s.all > 0 {
		room = render.Cell{Text: a.load(s.held, s.all)}
	}
	var unserved []string
	for _, name := range sortedKeys(q.GetUnservedByType()) {
		unserved = append(unserved, fmt.Sprintf("%s (%d)", name, q.GetUnservedByType()[name]))
	}
	return widget.Row{ID: q.GetTaskQueue(), Cells: []render.Cell{
		{Text: q.GetTaskQueue()}, {Text: number(q.GetPending())}, {Text: oldest}, {Text: number(q.GetRunning())}, {Text: number(q.GetSleeping())},
		workers, room, {Text: strings.Join(unserved, ", "), Style: render.Bad},
	}}
}

var namespaceColumns = []widget.Column{
	{ID: "name", Title: "NAME", Priority: 1, Flex: true, Min: 12, Max: 40},
	{ID: "state", Title: "STATE", Priority: 1},
	{ID: "running", Title: "RUNNING", Priority: 1, Right: true},
	{ID: "pending", Title: "PENDING", Priority: 1, Right: true},
	{ID: "workers", Title: "WORKERS", Priority: 2, Right: true},
	{ID: "schedules", Title: "SCHEDULES", Priority: 2, Right: true},
	{ID: "retention", Title: "RETENTION", Priority: 3},
	{ID: "description", Title: "DESCRIPTION", Priority: 3, Flex: true, Min: 16, Max: 80},
	{ID: "created", Title: "CREATED", Priority: 3},
	{ID: "failures", Title: "FAILURES TO", Priority: 4},
}

// namespaceRow is a namespace, with its figures where they are known, as a row of those columns.
func (a *App) namespaceRow(n *kagziv1.Namespace, stats *kagziv1.GetStatsResponse) widget.Row {
	state := theme.Sign{Glyph: theme.Online, Word: "enabled", Style: render.Good}
	if !n.GetEnabled() {
		state = theme.Sign{Glyph: theme.Paused, Word: "disabled", Style: render.Bad}
	}
	name := render.Cell{Text: n.GetNamespace()}
	if n.GetNamespace() == a.link.Namespace() {
		name = render.Cell{Text: n.GetNamespace() + " (here)", Style: render.Strong}
	}
	figure := func(count int64, unit string) render.Cell {
		if stats == nil {
			return render.Cell{Text: "-", Style: render.Dim}
		}
		return render.Cell{Text: number(count) + unit}
	}
	return widget.Row{ID: n.GetNamespace(), Cells: []render.Cell{
		name, a.look.Cell(state), figure(stats.GetRunningWorkflows(), ""), figure(stats.GetPendingWorkflows(), ""),
		figure(stats.GetOnlineWorkers(), "/"+number(stats.GetTotalWorkers())), figure(stats.GetEnabledSchedules(), "/"+number(stats.GetTotalSchedules())),
		{Text: render.Retention(n.GetRetention())}, {Text: cmp.Or(n.GetDescription(), n.GetDisplayName())}, {Text: a.clock.show(n.GetCreatedAt())}, {Text: n.GetFailureTaskQueue()},
	}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
