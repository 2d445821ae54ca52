package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	topItems   = 8    // of a list of the overview
	wholeList  = 1000 // items of a list that is read whole
	onlyFailed = "status:failed,timed_out"
	barCells   = 60 // of a sparkline
)

// state is what the overview shows.
type state struct {
	model.Situation
	failures []*kagziv1.Workflow
	minutes  []*kagziv1.ActivityPoint // nil: the caller does not see the server's activity
}

// read makes a call that some roles may not make: then there is nothing to show.
func read[T any](answer T, err error) (T, error) {
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unimplemented:
		var none T
		return none, nil
	}
	return answer, err
}

func (p *page) state() (*state, error) {
	s := &state{Situation: model.Situation{Now: p.now, StatsAsOf: p.now, WorkersAsOf: p.now}}
	page := &kagziv1.PageRequest{PageSize: wholeList}
	var err error
	if s.Stats, err = p.API.GetStats(p.ctx, &kagziv1.GetStatsRequest{Namespace: &p.ns}); err != nil {
		return nil, err
	}
	if s.Info, err = p.API.GetServerInfo(p.ctx, &kagziv1.GetServerInfoRequest{}); err != nil {
		return nil, err
	}
	if s.Health, err = p.API.HealthCheck(p.ctx, &kagziv1.HealthCheckRequest{}); err != nil {
		return nil, err
	}
	queues, err := p.API.GetQueueDepth(p.ctx, &kagziv1.GetQueueDepthRequest{Namespace: p.ns, Page: page})
	if err != nil {
		return nil, err
	}
	schedules, err := p.API.ListWorkflowSchedules(p.ctx, &kagziv1.ListWorkflowSchedulesRequest{Namespace: p.ns,
		Page: page})
	if err != nil {
		return nil, err
	}
	workers, err := read(p.API.ListWorkers(p.ctx, &kagziv1.ListWorkersRequest{Namespace: p.ns, Page: page}))
	if err != nil {
		return nil, err
	}
	s.Queues, s.Schedules, s.Workers = queues.GetQueues(), schedules.GetSchedules(), workers.GetWorkers()
	failures, err := p.API.ListWorkflows(p.ctx, &kagziv1.ListWorkflowsRequest{Namespace: p.ns, Statuses: failedStatuses,
		Page: &kagziv1.PageRequest{PageSize: topItems}})
	if err != nil {
		return nil, err
	}
	s.failures = failures.GetWorkflows()
	activity, err := read(p.API.GetActivity(p.ctx, &kagziv1.GetActivityRequest{Step: durationpb.New(time.Minute)}))
	if err != nil {
		return nil, err
	}
	s.minutes = activity.GetPoints()
	s.minutes = s.minutes[max(len(s.minutes)-barCells, 0):]
	return s, nil
}

// overview shows what needs a look first, then what waits and what comes next.
func (p *page) overview() error {
	s, err := p.state()
	if err != nil {
		return err
	}
	return p.write(http.StatusOK, p.document("Overview of "+p.ns, "Overview",
		h.H1(h.Text("Overview of "), text(p.ns)),
		h.Div(h.ID("overview"), h.Data("live", "all"),
			h.Div(h.Class("tiles"), p.tiles(s)), p.warnings(s), p.charts(s.minutes),
			h.Div(h.Class("blocks"), p.deepest(s), p.failed(s), p.ticksAhead(s)), p.firstSteps(s))))
}

// tiles are the four key numbers.
func (p *page) tiles(s *state) g.Node {
	tile := func(url string, of theme.Sign, n, what, more string) g.Node {
		return h.A(h.Class("tile"), h.Href(url), h.B(h.Class(classes[of.Style]), h.Span(h.Aria("hidden", "true"),
			h.Text(theme.Mono().Glyph(of.Glyph)+" ")), h.Text(n)), h.Text(what), h.Small(text(more)))
	}
	oldest := "nothing waits"
	if wait := time.Duration(s.Stats.GetOldestPendingSeconds() * float64(time.Second)); wait >= time.Second {
		oldest = "oldest " + format.Waited(wait)
	} else if s.Stats.GetPendingWorkflows() > 0 {
		oldest = "none overdue"
	}
	failed, since, filter := s.Stats.GetWorkflowsByStatus()["FAILED"]+s.Stats.GetWorkflowsByStatus()["TIMED_OUT"],
		"kept in the database", onlyFailed
	bad := theme.Sign{Glyph: theme.Failed}
	if failed > 0 {
		bad.Style = render.Bad
	}
	var active, slots int64
	for _, w := range s.Workers {
		if w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_ONLINE {
			active, slots = active+int64(w.GetActiveWorkflowCount()), slots+int64(w.GetMaxConcurrent())
		}
	}
	up := theme.Sign{Glyph: theme.Online, Style: render.Good}
	if s.Stats.GetOnlineWorkers() == 0 {
		up = theme.Sign{Glyph: theme.Offline, Style: render.Bad}
	}
	workers, load := p.at("workers"), fmt.Sprintf("%s of %s slots", format.Number(active), format.Number(slots))
	if !p.monitors() {
		workers, load = p.at("queues"), ""
	}
	return g.Group{
		tile(p.at("runs", "q", "status:running"), theme.OfStatus(kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING),
			format.Number(s.Stats.GetRunningWorkflows()), "running",
			format.Number(s.Stats.GetWorkflowsByStatus()["SLEEPING"])+" sleeping"),
		tile(p.at("runs", "q", "status:pending"), theme.OfStatus(kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING),
			format.Number(s.Stats.GetPendingWorkflows()), "pending", oldest),
		tile(p.at("runs", "q", filter), bad, format.Number(failed), "failed", since),
		tile(workers, up, fmt.Sprintf("%d/%d", s.Stats.GetOnlineWorkers(), s.Stats.GetTotalWorkers()), "workers", load),
	}
}

// warnings are what a person should look at.
func (p *page) warnings(s *state) g.Node {
	list := model.Warnings(s.Situation)
	if len(list) == 0 {
		return h.P(h.Class("empty"), h.Span(h.Class("good"), h.Aria("hidden", "true"), h.Text("✓ ")),
			h.Text("No warnings."))
	}
	return section("warnings", "Warnings", h.Ul(h.Class("warnings"), g.Map(list, func(w model.Warning) g.Node {
		of := theme.Sign{Glyph: theme.Alert, Word: "warning", Style: render.Waiting}
		switch w.Level {
		case model.Critical:
			of = theme.Sign{Glyph: theme.Failed, Word: "critical", Style: render.Bad}
		case model.Notice:
			of = theme.Sign{Glyph: theme.Paused, Word: "notice", Style: render.Dim}
		}
		return h.Li(sign(of), h.A(h.Href(p.warningURL(w)), cut(w.Text, 300)))
	})))
}

// warningURL returns the page with more about a warning.
func (p *page) warningURL(w model.Warning) string {
	switch w.View {
	case "runs":
		return p.at("runs", "q", w.Filter)
	case "workers":
		return p.workerURL(w.Filter)
	case "schedules":
		return p.at("schedules")
	case "queues":
		return p.at("queues")
	}
	return p.admin("server")
}

// charts show the server's activity by the minute, oldest first.
func (p *page) charts(points []*kagziv1.ActivityPoint) g.Node {
	if len(points) == 0 {
		return nil
	}
	chart := func(title, class string, of func(*kagziv1.ActivityPoint) int64) g.Node {
		most, sum := int64(1), int64(0)
		for _, point := range points {
			most, sum = max(most, of(point)), sum+of(point)
		}
		bars := g.Group{}
		for i, point := range points {
			if n := of(point); n > 0 {
				height := max(float64(n)/float64(most)*42, 1.5)
				bars = append(bars, h.El("rect", g.If(class != "", h.Class(class)), h.Attr("x", strconv.Itoa(i)),
					h.Attr("y", fmt.Sprintf("%.1f", 44-height)), h.Attr("width", "0.8"), h.Attr("height",
						fmt.Sprintf("%.1f", height)),
					h.El("title", h.Text(format.Number(n)))))
			}
		}
		return h.Div(h.P(h.Text(title+": "+format.Number(sum))), h.El("svg", h.Class("spark"), h.Attr("viewBox",
			fmt.Sprintf("0 0 %d 44", barCells)), h.Attr("preserveAspectRatio", "none"), h.Attr("role", "img"),
			h.Aria("label", fmt.Sprintf("%s by the minute, at most %d", title, most)), bars))
	}
	return section("activity", "Activity of the server in the last hour", h.Div(h.Class("charts"),
		chart("Runs started", "", (*kagziv1.ActivityPoint).GetRunsStarted),
		chart("Runs completed", "", (*kagziv1.ActivityPoint).GetRunsCompleted),
		chart("Runs failed", "bad", (*kagziv1.ActivityPoint).GetRunsFailed),
		chart("Steps completed", "", (*kagziv1.ActivityPoint).GetStepsCompleted)))
}

// deepest lists the queues with the largest backlog.
func (p *page) deepest(s *state) g.Node {
	queues := slices.SortedStableFunc(slices.Values(s.Queues), func(a, b *kagziv1.QueueDepth) int {
		return cmp.Compare(b.GetPending(), a.GetPending())
	})
	queues = queues[:min(len(queues), topItems)]
	t := table{caption: "Queues", empty: "No queue has open runs or workers.",
		Table: render.Table{Columns: []render.Column{
			{Title: "QUEUE"}, {Title: "PENDING", Right: true}, {Title: "RUNNING", Right: true}, {Title: "OLDEST",
				Right: true},
			{Title: "WORKERS", Right: true}}}}
	for _, q := range queues {
		oldest := "-"
		if wait := time.Duration(q.GetOldestPendingSeconds() * float64(time.Second)); wait >= time.Second {
			oldest = format.Waited(wait)
		}
		t.Rows = append(t.Rows, []render.Cell{render.Text(q.GetTaskQueue()), {Text: format.Number(q.GetPending())},
			{Text: format.Number(q.GetRunning())}, {Text: oldest}, {Text: format.Number(int64(q.GetOnlineWorkers()))}})
	}
	t.link = func(row, column int) string {
		if column == 0 {
			return p.at("runs", "q", "status:open "+only("queue", queues[row].GetTaskQueue()))
		}
		return ""
	}
	return section("queues", "Queues", t.node())
}

// failed lists the failed runs that were created last.
func (p *page) failed(s *state) g.Node {
	t := table{caption: "Recent failures", empty: "No failed runs.", Table: render.Table{Columns: []render.Column{
		{Title: "TYPE"}, {Title: "ERROR"}, {Title: "ENDED", Right: true}}}}
	for _, r := range s.failures {
		t.Rows = append(t.Rows, []render.Cell{render.Text(r.GetWorkflowType()), {Text: render.Truncate(render.Safe(
			render.ErrorLine(r.GetError())), 90), Style: render.Bad}, {Text: p.clock.Show(r.GetFinishedAt()),
			Style: render.Dim}})
	}
	t.link = func(row, column int) string {
		if column == 0 {
			return p.runURL(s.failures[row].GetRunId(), "")
		}
		return ""
	}
	return section("failures", "Recent failures", t.node())
}

// ticksAhead lists the schedules that fire next.
func (p *page) ticksAhead(s *state) g.Node {
	due := slices.DeleteFunc(slices.Clone(s.Schedules), func(w *kagziv1.WorkflowSchedule) bool {
		return !w.GetEnabled() || w.GetBroken() != "" || w.GetNextFireAt() == nil
	})
	slices.SortStableFunc(due, func(a, b *kagziv1.WorkflowSchedule) int {
		return a.GetNextFireAt().AsTime().Compare(b.GetNextFireAt().AsTime())
	})
	due = due[:min(len(due), topItems)]
	t := table{caption: "Next ticks", empty: "No ticks ahead.", Table: render.Table{Columns: []render.Column{
		{Title: "SCHEDULE"}, {Title: "TYPE"}, {Title: "NEXT", Right: true}}}}
	for _, w := range due {
		t.Rows = append(t.Rows, []render.Cell{render.Text(scheduleName(w)), render.Text(w.GetWorkflowType()),
			{Text: p.clock.Show(w.GetNextFireAt())}})
	}
	t.link = func(row, column int) string {
		if column == 0 {
			return p.scheduleURL(due[row].GetScheduleId())
		}
		return ""
	}
	return section("ticks", "Next ticks", t.node())
}

// firstSteps says how to begin in a namespace in which nothing has happened.
func (p *page) firstSteps(s *state) g.Node {
	for _, n := range s.Stats.GetWorkflowsByStatus() {
		if n > 0 {
			return nil
		}
	}
	if p.ReadOnly {
		return nil
	}
	where := p.scope().Reach()
	return section("begin", "Nothing has happened here yet", h.P(h.Text("Commands to begin with:")),
		h.Pre(h.Class("command"), h.TabIndex("0"),
			h.Text("kagzi demo\nkagzi workflow start hello --input '{\"name\":\"you\"}'"+where+
				"\nkagzi schedule create hello --cron '0 2 * * *'"+where)))
}
