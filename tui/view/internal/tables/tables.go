// Package tables holds the columns of the tables of runs, workers, schedules, ticks, queues and
// namespaces, and makes their rows.
package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// Rows makes the rows of tables.
type Rows struct {
	Clock *clock.Clock
	Look  func() *theme.Theme
}

// RunColumns lists the columns of every table of runs.
var RunColumns = []widget.Column{
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

// Run returns a run as a row of RunColumns.
func (t *Rows) Run(r *kagziv1.Workflow) widget.Row {
	view := t.Clock.View()
	id := t.shownID(r)
	note := render.Cell{Text: render.RunNote(r, view), Style: render.Dim}
	if r.GetError() != nil {
		note.Style = render.Bad
	}
	return widget.Row{ID: r.GetRunId(), Cells: []render.Cell{
		t.Look().Cell(theme.OfRun(r)), {Text: r.GetWorkflowType()}, {Text: id}, note,
		{Text: strconv.FormatInt(r.GetStepCount(), 10)}, {Text: strconv.Itoa(int(r.GetAttempts()))},
		{Text: t.Clock.Show(r.GetCreatedAt())}, {Text: t.Clock.Took(r.GetStartedAt(), r.GetFinishedAt())},
		{Text: r.GetTaskQueue()}, {Text: r.GetWorkerId()}, {Text: r.GetRunId(), Style: render.Dim},
		{Text: r.GetVersion()},
		{Text: strconv.Itoa(int(r.GetPriority()))}, {Text: r.GetParentRunId(), Style: render.Dim},
		{Text: r.GetScheduleId(), Style: render.Dim},
		{Text: r.GetConcurrencyKey()}, {Text: format.Tags(r.GetTags())},
		{Text: t.Clock.Full(r.GetCreatedAt()), Style: render.Dim}, {Text: t.due(r)},
	}}
}

// shownID returns the external id of a run, the tick that started it, or the short form of its run
// id.
func (t *Rows) shownID(r *kagziv1.Workflow) string {
	id := r.GetExternalId()
	rest, ticked := strings.CutPrefix(id, "schedule:"+r.GetScheduleId()+":")
	switch {
	case id == "":
		return format.ShortID(r.GetRunId())
	case !ticked || r.GetScheduleId() == "":
		return id
	case r.GetScheduledAt() != nil:
		return "tick " + r.GetScheduledAt().AsTime().In(t.Clock.Zone).Format("01-02 15:04:05")
	case strings.HasPrefix(rest, "trigger:"):
		return "trigger " + format.ShortID(r.GetRunId())
	}
	return id
}

// due returns when an open run next needs a worker.
func (t *Rows) due(r *kagziv1.Workflow) string {
	if render.Ended(r.GetStatus()) {
		return "-"
	}
	return t.Clock.Show(r.GetWakeUpAt())
}

// WorkerColumns lists the columns of the table of workers.
var WorkerColumns = []widget.Column{
	{ID: "status", Title: "STATUS", Priority: 1, Min: 10},
	{ID: "name", Title: "NAME", Priority: 1, Flex: true, Min: 12, Max: 40},
	{ID: "queue", Title: "QUEUE", Priority: 1, Flex: true, Min: 8, Max: 30},
	{ID: "load", Title: "LOAD", Priority: 1, Min: 14},
	{ID: "heartbeat", Title: "HEARTBEAT", Priority: 2, Right: true},
	{ID: "done", Title: "DONE", Priority: 2, Right: true},
	{ID: "failed", Title: "FAILED", Priority: 2, Right: true},
	{ID: "types", Title: "TYPES", Priority: 3, Flex: true, Min: 10, Max: 50},
	{ID: "version", Title: "VERSION", Priority: 3, Max: 20},
	{ID: "sdk", Title: "SDK", Priority: 4, Max: 24},
	{ID: "since", Title: "SINCE", Priority: 3, Right: true},
	{ID: "host", Title: "HOST", Priority: 3, Max: 24},
	{ID: "pid", Title: "PID", Priority: 4, Right: true},
	{ID: "cpu", Title: "CPU", Priority: 4, Right: true},
	{ID: "memory", Title: "MEMORY", Priority: 4, Right: true},
	{ID: "platform", Title: "PLATFORM", Priority: 4},
	{ID: "labels", Title: "LABELS", Priority: 3, Max: 40},
}

// Worker returns a worker as a row of WorkerColumns.
func (t *Rows) Worker(w *kagziv1.Worker) widget.Row {
	failed := render.Cell{Text: format.Number(w.GetTotalFailed())}
	if w.GetTotalFailed() > 0 {
		failed.Style = render.Bad
	}
	cpu, memory := "-", "-"
	if s := w.GetStats(); s != nil {
		cpu, memory = fmt.Sprintf("%.0f%%", s.GetCpuPercent()), render.Bytes(s.GetMemoryBytes())
	}
	return widget.Row{ID: w.GetWorkerId(), Cells: []render.Cell{
		t.Look().Cell(theme.OfWorker(w.GetStatus())), {Text: w.GetWorkerId()}, {Text: strings.Join(QueuesOf(w), ",")},
		{Text: t.Load(int(w.GetActiveWorkflowCount()), int(w.GetMaxConcurrent()))},
		{Text: t.Clock.Show(w.GetLastHeartbeatAt())},
		{Text: format.Number(w.GetTotalCompleted())}, failed, {Text: strings.Join(w.GetWorkflowTypes(), ",")},
		{Text: w.GetVersion()}, {Text: render.SDK(w)},
		{Text: t.Clock.Show(w.GetRegisteredAt())}, {Text: w.GetHostname()}, {Text: strconv.Itoa(int(w.GetPid()))},
		{Text: cpu}, {Text: memory},
		{Text: w.GetPlatform()}, {Text: format.Tags(w.GetLabels())},
	}}
}

// Load returns a bar of five cells with the numbers: "██··· 2/5".
func (t *Rows) Load(active, most int) string {
	const cells = 5
	if most <= 0 {
		return strconv.Itoa(active)
	}
	full := min((active*cells+most-1)/most, cells)
	return strings.Repeat(t.Look().Glyph(theme.Full), full) + strings.Repeat(t.Look().Glyph(theme.Empty), cells-full) +
		fmt.Sprintf(" %d/%d", active, most)
}

// ScheduleColumns lists the columns of the table of schedules.
var ScheduleColumns = []widget.Column{
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
	{ID: "note", Title: "NOTE", Priority: 3, Flex: true, Min: 12, Max: 60},
	{ID: "overlap", Title: "OVERLAP", Priority: 3},
	{ID: "catchup", Title: "CATCHUP", Priority: 3, Right: true},
	{ID: "created", Title: "CREATED", Priority: 3},
	{ID: "id", Title: "ID", Priority: 4},
}

// Schedule returns a schedule as a row of ScheduleColumns; latest is its latest run, nil if not
// known.
func (t *Rows) Schedule(s *kagziv1.WorkflowSchedule, latest *kagziv1.Workflow) widget.Row {
	failed := render.Cell{Text: format.Number(s.GetFailedRuns())}
	if s.GetFailedRuns() > 0 {
		failed.Style = render.Bad
	}
	return widget.Row{ID: s.GetScheduleId(), Cells: []render.Cell{
		t.Look().Cell(theme.OfSchedule(s)), {Text: ScheduleName(s)}, t.nextCell(s), t.LastCell(s, latest),
		{Text: s.GetWorkflowType()}, {Text: s.GetCronExpr()},
		{Text: ZoneOf(s)}, {Text: s.GetTaskQueue()}, {Text: format.Number(s.GetTotalRuns())}, failed,
		{Text: format.Number(s.GetSkippedTicks())},
		{Text: format.Number(s.GetSuccessfulRuns())},
		{Text: cmp.Or(s.GetBroken(), s.GetPauseReason()), Style: render.Dim},
		{Text: render.Overlap(s.GetOverlapPolicy())},
		{Text: strconv.Itoa(int(s.GetMaxCatchup()))},
		{Text: t.Clock.Show(s.GetCreatedAt())}, {Text: s.GetScheduleId(), Style: render.Dim},
	}}
}

// nextCell returns when a schedule fires next, relative and in local time; "-" if it does not.
func (t *Rows) nextCell(s *kagziv1.WorkflowSchedule) render.Cell {
	cell, wall := t.NextTick(s)
	if wall != "" {
		cell.Text = format.Pad(cell.Text, 9) + wall
	}
	return cell
}

// NextTick returns when a schedule fires next, and the local time if the cell is relative.
func (t *Rows) NextTick(s *kagziv1.WorkflowSchedule) (cell render.Cell, wall string) {
	switch {
	case s.GetBroken() != "":
		return render.Cell{Text: "never", Style: render.Bad}, ""
	case !Fires(s):
		return render.Cell{Text: "-", Style: render.Dim}, ""
	case t.Clock.Style != clock.Styles[0]:
		return render.Cell{Text: t.Clock.Show(s.GetNextFireAt())}, ""
	}
	at, now := s.GetNextFireAt().AsTime().In(t.Clock.Zone), t.Clock.Now().In(t.Clock.Zone)
	layout := "15:04"
	if at.Second() != 0 {
		layout = time.TimeOnly
	}
	if at.Year() != now.Year() || at.YearDay() != now.YearDay() {
		layout = "Jan _2 " + layout
	}
	return render.Cell{Text: format.Until(at.Sub(now))}, at.Format(layout)
}

// LastCell returns when a schedule fired last, with the result if it is known.
func (t *Rows) LastCell(s *kagziv1.WorkflowSchedule, latest *kagziv1.Workflow) render.Cell {
	if latest == nil {
		return render.Cell{Text: t.Clock.Show(s.GetLastFiredAt())}
	}
	sign := theme.OfRun(latest)
	return render.Cell{Text: t.Look().Glyph(sign.Glyph) + " " + t.Clock.Show(latest.GetCreatedAt()), Style: sign.Style}
}

// TickColumns lists the columns of the runs that a schedule started.
var TickColumns = []widget.Column{
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

// Tick returns a run as a row of TickColumns.
func (t *Rows) Tick(r *kagziv1.Workflow) widget.Row {
	note := render.Cell{Text: render.RunNote(r, t.Clock.View()), Style: render.Dim}
	if r.GetError() != nil {
		note.Style = render.Bad
	}
	tick, lag := render.Cell{Text: "by hand", Style: render.Dim}, "-"
	if at := r.GetScheduledAt(); at != nil {
		tick, lag = render.Cell{Text: at.AsTime().In(t.Clock.Zone).Format("Jan _2 15:04:05")},
			render.Duration(max(r.GetCreatedAt().AsTime().Sub(at.AsTime()), 0))
	}
	return widget.Row{ID: r.GetRunId(), Cells: []render.Cell{
		t.Look().Cell(theme.OfRun(r)), tick, {Text: t.Clock.Show(r.GetCreatedAt())},
		{Text: t.Clock.Took(r.GetStartedAt(), r.GetFinishedAt())}, note, {Text: lag},
		{Text: strconv.FormatInt(r.GetStepCount(), 10)}, {Text: strconv.Itoa(int(r.GetAttempts()))},
		{Text: r.GetWorkerId()}, {Text: r.GetRunId(), Style: render.Dim},
	}}
}

// QueueColumns lists the columns of the table of queues.
var QueueColumns = []widget.Column{
	{ID: "queue", Title: "QUEUE", Priority: 1, Flex: true, Min: 12, Max: 40},
	{ID: "pending", Title: "PENDING", Priority: 1, Right: true},
	{ID: "oldest", Title: "OLDEST", Priority: 1, Right: true},
	{ID: "running", Title: "RUNNING", Priority: 2, Right: true},
	{ID: "sleeping", Title: "SLEEPING", Priority: 2, Right: true},
	{ID: "workers", Title: "WORKERS", Priority: 2, Right: true},
	{ID: "slots", Title: "SLOTS", Priority: 3, Min: 12},
	{ID: "unserved", Title: "NO WORKER FOR", Priority: 2, Flex: true, Min: 14, Max: 60},
}

// Queue returns a queue as a row of QueueColumns; waits is how long its oldest due run has waited.
func (t *Rows) Queue(q *kagziv1.QueueDepth, waits time.Duration, s Slots) widget.Row {
	oldest := "-"
	if waits > time.Second && waits < time.Minute {
		waits = waits.Truncate(time.Second) // it grows while shown
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
		room = render.Cell{Text: t.Load(s.held, s.all)}
	}
	var unserved []string
	for _, name := range sortedKeys(q.GetUnservedByType()) {
		unserved = append(unserved, fmt.Sprintf("%s (%d)", name, q.GetUnservedByType()[name]))
	}
	return widget.Row{ID: q.GetTaskQueue(), Cells: []render.Cell{
		{Text: q.GetTaskQueue()}, {Text: format.Number(q.GetPending())}, {Text: oldest},
		{Text: format.Number(q.GetRunning())}, {Text: format.Number(q.GetSleeping())},
		workers, room, {Text: strings.Join(unserved, ", "), Style: render.Bad},
	}}
}

// NamespaceColumns lists the columns of the table of namespaces.
var NamespaceColumns = []widget.Column{
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

// Namespace returns a namespace as a row of NamespaceColumns; here is the current namespace, stats
// is nil if not known.
func (t *Rows) Namespace(n *kagziv1.Namespace, here string, stats *kagziv1.GetStatsResponse) widget.Row {
	state := theme.Sign{Glyph: theme.Online, Word: "enabled", Style: render.Good}
	if !n.GetEnabled() {
		state = theme.Sign{Glyph: theme.Paused, Word: "disabled", Style: render.Bad}
	}
	name := render.Cell{Text: n.GetNamespace()}
	if n.GetNamespace() == here {
		name = render.Cell{Text: n.GetNamespace() + " (here)", Style: render.Strong}
	}
	figure := func(count int64, unit string) render.Cell {
		if stats == nil {
			return render.Cell{Text: "-", Style: render.Dim}
		}
		return render.Cell{Text: format.Number(count) + unit}
	}
	return widget.Row{ID: n.GetNamespace(), Cells: []render.Cell{
		name, t.Look().Cell(state), figure(stats.GetRunningWorkflows(), ""), figure(stats.GetPendingWorkflows(), ""),
		figure(stats.GetOnlineWorkers(), "/"+format.Number(stats.GetTotalWorkers())),
		figure(stats.GetEnabledSchedules(), "/"+format.Number(stats.GetTotalSchedules())),
		{Text: render.Retention(n.GetRetention())}, {Text: cmp.Or(n.GetDescription(), n.GetDisplayName())},
		{Text: t.Clock.Show(n.GetCreatedAt())}, {Text: n.GetFailureTaskQueue()},
	}}
}

// KeyColumns lists the columns of the table of API keys.
var KeyColumns = []widget.Column{
	{ID: "key", Title: "KEY", Priority: 1, Flex: true, Min: 12, Max: 40},
	{ID: "role", Title: "ROLE", Priority: 1},
	{ID: "state", Title: "STATE", Priority: 1, Min: 9},
	{ID: "namespaces", Title: "NAMESPACES", Priority: 1, Flex: true, Min: 10, Max: 40},
	{ID: "used", Title: "LAST USED", Priority: 2, Right: true},
	{ID: "expires", Title: "EXPIRES", Priority: 2, Right: true},
	{ID: "queues", Title: "QUEUES", Priority: 3, Flex: true, Min: 8, Max: 30},
	{ID: "types", Title: "TYPES", Priority: 3, Flex: true, Min: 8, Max: 30},
	{ID: "workers", Title: "WORKER IDS", Priority: 4, Max: 30},
	{ID: "created", Title: "CREATED", Priority: 3, Right: true},
	{ID: "id", Title: "ID", Priority: 4},
}

// Key returns a key as a row of KeyColumns; mine is the id of the caller's key.
func (t *Rows) Key(k *kagziv1.Key, mine string) widget.Row {
	name := render.Cell{Text: k.GetName()}
	if k.GetKeyId() == mine {
		name = render.Cell{Text: k.GetName() + " (yours)", Style: render.Strong}
	}
	return widget.Row{ID: k.GetKeyId(), Cells: []render.Cell{
		name, {Text: render.KeyRole(k.GetRole())}, t.Look().Cell(theme.OfKey(k, t.Clock.Now())),
		{Text: cmp.Or(strings.Join(k.GetNamespaces(), ","), "all")}, {Text: t.Clock.Show(k.GetLastUsedAt())},
		{Text: t.Clock.Show(k.GetExpiresAt())}, {Text: strings.Join(k.GetTaskQueues(), ",")},
		{Text: strings.Join(k.GetWorkflowTypes(), ",")}, {Text: strings.Join(k.GetWorkerIds(), ",")},
		{Text: t.Clock.Show(k.GetCreatedAt())},
		{Text: k.GetKeyId(), Style: render.Dim},
	}}
}

// AuditColumns lists the columns of the audit log.
var AuditColumns = []widget.Column{
	{ID: "when", Title: "WHEN", Priority: 1, Min: 8},
	{ID: "who", Title: "WHO", Priority: 1, Flex: true, Min: 10, Max: 30},
	{ID: "what", Title: "WHAT", Priority: 1, Flex: true, Min: 10, Max: 30},
	{ID: "to", Title: "TO", Priority: 1, Flex: true, Min: 12, Max: 60},
	{ID: "outcome", Title: "OUTCOME", Priority: 1, Max: 20},
	{ID: "detail", Title: "DETAIL", Priority: 2, Flex: true, Min: 8, Max: 60},
	{ID: "reason", Title: "REASON", Priority: 3, Flex: true, Min: 8, Max: 60},
	{ID: "from", Title: "FROM", Priority: 4},
}

// Audit returns an audit event as a row of AuditColumns; id is that of the row.
func (t *Rows) Audit(e *kagziv1.AuditEvent, id string) widget.Row {
	outcome := render.Cell{Text: e.GetOutcome(), Style: render.Good}
	if e.GetOutcome() != "ok" {
		outcome.Style = render.Bad
	}
	return widget.Row{ID: id, Cells: []render.Cell{
		{Text: t.Clock.Show(e.GetAt())}, {Text: e.GetActor()}, {Text: e.GetMethod()},
		{Text: strings.TrimSpace(e.GetSubject() + " " + e.GetSubjectId())}, outcome, {Text: e.GetDetail()},
		{Text: e.GetReason()}, {Text: e.GetPeer(), Style: render.Dim},
	}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Slots counts held and all slots of the online workers of a queue. A worker of several queues
// counts in each.
type Slots struct{ held, all int }

// Free returns the number of free slots.
func (s Slots) Free() int { return s.all - s.held }

// SlotsOf counts the slots of the online workers of a queue.
func SlotsOf(queue string, workers []*kagziv1.Worker) Slots {
	var s Slots
	for _, w := range workers {
		if IsOnline(w) && slices.Contains(QueuesOf(w), queue) {
			s.held += int(w.GetActiveWorkflowCount())
			s.all += int(w.GetMaxConcurrent())
		}
	}
	return s
}

// IsOnline reports whether a worker is online.
func IsOnline(w *kagziv1.Worker) bool {
	return w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_ONLINE
}

// QueuesOf returns all queues of a worker, the preferred one first.
func QueuesOf(w *kagziv1.Worker) []string {
	if len(w.GetTaskQueues()) > 0 {
		return w.GetTaskQueues()
	}
	return []string{w.GetTaskQueue()}
}

// ScheduleName returns the name of a schedule, or else its id.
func ScheduleName(s *kagziv1.WorkflowSchedule) string {
	return cmp.Or(s.GetName(), s.GetScheduleId())
}

// Fires reports whether a schedule has a next tick that will fire.
func Fires(s *kagziv1.WorkflowSchedule) bool {
	return s.GetEnabled() && s.GetBroken() == "" && s.GetNextFireAt() != nil
}

// ZoneOf returns the name of the schedule's time zone.
func ZoneOf(s *kagziv1.WorkflowSchedule) string {
	if s.GetTimeZone() == "" {
		return "UTC"
	}
	return s.GetTimeZone()
}
