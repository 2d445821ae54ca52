package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// runsPage shows the runs that match a filter, newest first, however many there are.
type runsPage struct {
	list
	runs    *model.Runs
	visible [2]int // rows on the screen, the last excluded
	before  string // the filter before f
	jump    jump   // where the cursor goes once the rows there are loaded

	// for the completion of filters
	types     *model.Collection[*kagziv1.WorkflowTypeInfo]
	schedules *model.Collection[*kagziv1.WorkflowSchedule]
	workers   *model.Collection[*kagziv1.Worker]
}

// jump is the target of a cursor that waits for rows to load.
type jump uint8

const (
	noJump jump = iota
	toTop
	toBottom
)

// arrive moves the cursor once the target rows are loaded. Until then the screen stays as it is and
// loads nothing else.
func (p *runsPage) arrive() {
	switch {
	case !p.runs.Loaded():
	case p.jump == toTop && p.runs.First() == 0:
		p.tab.Top()
		p.jump = noJump
	case p.jump == toBottom && !p.runs.More():
		p.tab.Go(p.runs.Len() - 1)
		p.jump = noJump
	}
}

// Key moves within the runs; any move cancels a jump.
func (p *runsPage) Key(event *tcell.EventKey) bool {
	p.jump = noJump
	return p.list.Key(event)
}

// runRows presents the runs as rows of a table.
type runRows struct{ p *runsPage }

func (r runRows) Len() int                   { return r.p.runs.Len() }
func (r runRows) Find(id string) (int, bool) { return r.p.runs.Find(id) }

func (r runRows) Row(i int) (widget.Row, bool) {
	run, ok := r.p.runs.Row(i)
	if !ok {
		return widget.Row{}, false
	}
	row := r.p.app.tables.Run(run)
	row.Fresh = r.p.runs.Fresh(run.GetRunId())
	row.Stale = r.p.app.link.State().Down()
	return row, true
}

func openRuns(a *App, args []string) (page, error) {
	runs, err := model.NewRuns(a.link, strings.Join(args, " "))
	if err != nil {
		return nil, err
	}
	p := &runsPage{list: newList(a, "runs", tables.RunColumns), runs: runs, types: model.NewTypes(a.link),
		schedules: model.NewSchedules(a.link), workers: model.NewWorkers(a.link)}
	p.tab.SetRows(runRows{p})
	p.tab.SetSort("created", true)
	p.tab.Opened = func(id string) { a.done(a.pushView("run", id)) }
	p.tab.Viewed = func(first, last int) {
		p.visible = [2]int{first, last}
		if p.jump != noJump {
			return
		}
		runs.View(first, last)
		runs.AtTop(first == 0)
	}
	p.messages = func() []proto.Message {
		var list []proto.Message
		for _, r := range runs.All() {
			list = append(list, r)
		}
		return list
	}
	p.message = func(id string) proto.Message {
		if r := runs.Get(id); r != nil {
			return r
		}
		return nil
	}
	return p, nil
}

// completeRuns completes a filter that is typed after the command.
func completeRuns(a *App, text string) []string {
	if p, ok := a.trails.top().(*runsPage); ok {
		return p.CompleteFilter(text)
	}
	return filter.Complete(text, filter.Known{})
}

func (p *runsPage) Show() {
	p.runs.Show()
	p.types.Show()
}

func (p *runsPage) Hide() {
	p.runs.Hide()
	p.types.Hide()
	p.typed()
}

// typed stops loading what only the completion of a filter needs.
func (p *runsPage) typed() {
	p.schedules.Hide()
	p.workers.Hide()
}

func (p *runsPage) Close() {
	p.runs.Close()
	p.types.Close()
	p.schedules.Close()
	p.workers.Close()
}

func (p *runsPage) Refresh()       { p.runs.Refresh() }
func (p *runsPage) Failure() error { return p.runs.Err() }

// Crumb shows the filter.
func (p *runsPage) Crumb() string {
	if f := p.runs.Filter(); f != "" {
		return "runs " + f
	}
	return "runs"
}

// Title shows which rows are on the screen, of how many, and the filter.
func (p *runsPage) Title() string {
	if !p.runs.Loaded() {
		return "Runs"
	}
	title := rangeTitle("Runs", p.visible[0], min(p.visible[1], p.runs.Len()), p.total())
	if f := p.runs.Filter(); f != "" {
		title += "  " + f
	}
	return title
}

// total returns how many runs there are, as far as that is known.
func (p *runsPage) total() string {
	total, about := p.runs.Total()
	switch {
	case about && total > 0:
		return "~" + format.Number(total)
	case total > 0:
		return format.Number(total)
	case p.runs.More():
		return format.Number(int64(p.runs.Len())) + " and more"
	}
	return format.Number(int64(p.runs.Len()))
}

// Status shows how many new runs arrived above, or the sort order.
func (p *runsPage) Status() string {
	if n, more := p.runs.NewAbove(); n > 0 || more {
		count := format.Number(int64(n))
		if more {
			count = "more than " + count
		}
		return fmt.Sprintf("%s %s new, g shows them", p.app.look.Glyph(theme.Up), count)
	}
	column, desc := p.tab.Sort()
	arrow := theme.Up
	if desc {
		arrow = theme.Down
	}
	status := "sort: " + column + " " + p.app.look.Glyph(arrow)
	if among := p.runs.Sorted(); among != "" {
		status += " " + among
	}
	return status
}

// Banner shows which part of the filter was matched locally, or else the most relevant warning.
func (p *runsPage) Banner() string {
	if local := p.runs.Local(); local != "" && p.runs.Loaded() && !p.runs.Whole() {
		return fmt.Sprintf("%s is matched on the %s runs loaded so far; type:, id: or ext: search all, m loads more",
			local, format.Number(int64(p.runs.Scanned())))
	}
	other := ""
	for _, w := range p.app.overview.Warnings() {
		switch {
		case w.Level < model.Warn:
		case w.View == "queues" || w.View == "runs":
			return w.Text
		case other == "":
			other = w.Text
		}
	}
	return other
}

func (p *runsPage) Draw(c widget.Canvas) {
	p.tab.SetEmpty(p.emptyLines())
	p.arrive()
	p.list.Draw(c)
}

// emptyLines returns why there are no rows, and what to do.
func (p *runsPage) emptyLines() []widget.Line {
	switch {
	case !p.runs.Loaded() || p.runs.Loading():
		return []widget.Line{widget.TextLine("Reading …", render.Dim)}
	case p.runs.Filter() != "":
		return []widget.Line{widget.TextLine("No run matches  "+p.runs.Filter()+"   esc clears", render.Dim)}
	}
	return []widget.Line{
		widget.TextLine(fmt.Sprintf("No runs in %q yet.", p.app.link.Namespace()), render.Plain), {},
		widget.TextLine(`Start one:  kagzi workflow start hello --input '{"name":"you"}'`+p.app.scope().Reach()+
			"   (n = form)", render.Dim),
	}
}

// SortBy sorts the runs: by age on the server, by any other column among the loaded runs.
func (p *runsPage) SortBy(column string, descending bool) error {
	if err := p.runs.SortBy(column, descending); err != nil {
		return err
	}
	p.tab.SetSort(column, descending)
	return nil
}

func (p *runsPage) Filter() string   { return p.runs.Filter() }
func (p *runsPage) TryFilter(string) {} // only a complete filter is sent to the server

func (p *runsPage) SetFilter(text string) error {
	p.typed()
	return p.runs.SetFilter(text)
}

// CompleteFilter completes keys, statuses, types, queues, workers and schedules, and the tags of
// the loaded runs. Workers and schedules are loaded when the filter first names one.
func (p *runsPage) CompleteFilter(text string) []string {
	switch filter.KeyOf(text) {
	case "schedule":
		p.schedules.Show()
	case "worker":
		p.workers.Show()
	}
	return filter.Complete(text, p.known())
}

func (p *runsPage) known() filter.Known {
	var known filter.Known
	queues, tags := map[string]bool{}, map[string]bool{}
	for _, t := range p.types.All() {
		known.Types = append(known.Types, t.GetWorkflowType())
		for _, q := range t.GetTaskQueues() {
			queues[q] = true
		}
	}
	for _, w := range p.workers.All() {
		known.Workers = append(known.Workers, w.GetWorkerId())
	}
	for _, s := range p.schedules.All() {
		known.Schedules = append(known.Schedules, cmp.Or(s.GetName(), s.GetScheduleId()))
	}
	for _, r := range p.runs.All() {
		for tag := range r.GetTags() {
			tags[tag] = true
		}
	}
	known.Queues, known.Tags = slices.Sorted(maps.Keys(queues)), slices.Sorted(maps.Keys(tags))
	return known
}

// Escape clears the filter.
func (p *runsPage) Escape() bool {
	if p.runs.Filter() == "" || len(p.app.trails.pages()) > 1 {
		return false
	}
	p.app.done(p.runs.SetFilter(""))
	return true
}

// onlyFailed is the filter for failed runs.
const onlyFailed = "status:failed,timed_out"

// toggleFailed switches between failed runs and the filter before.
func (p *runsPage) toggleFailed() error {
	if p.runs.Filter() != onlyFailed {
		p.before = p.runs.Filter()
		return p.runs.SetFilter(onlyFailed)
	}
	return p.runs.SetFilter(p.before)
}

// under returns the run under the cursor.
func (p *runsPage) under() *kagziv1.Workflow {
	id, _ := p.tab.Selected()
	return p.runs.Get(id)
}

// targets returns the runs that an action applies to: the marked ones, or the one under the cursor.
func (p *runsPage) targets() []*kagziv1.Workflow {
	var list []*kagziv1.Workflow
	for _, id := range p.tab.Targets() {
		if r := p.runs.Get(id); r != nil {
			list = append(list, r)
		}
	}
	return list
}

// notTwo refuses to compare unless exactly two runs are marked.
func (p *runsPage) notTwo() string {
	if len(p.targets()) != 2 {
		return "mark two runs with space to compare them"
	}
	return ""
}

// compare shows the two marked runs side by side.
func (p *runsPage) compare() error {
	runs := p.targets()
	return p.app.pushView("diff", runs[0].GetRunId(), runs[1].GetRunId())
}

// Actions open runs and act on them.
func (p *runsPage) Actions() []*Action {
	list := []*Action{
		{Name: "open", Aliases: []string{"show"}, Keys: []string{"enter"}, Help: "open the run",
			Group: GroupMove, Hint: 1, Run: func([]string) error {
				if r := p.under(); r != nil {
					return p.app.pushView("run", r.GetRunId())
				}
				return errNothingUnder
			}},
		{Name: "top", Keys: []string{"g"}, Help: "go to the newest run and show new ones", Group: GroupMove,
			Run: func([]string) error {
				p.runs.Head()
				p.jump = toTop
				return nil
			}},
		{Name: "bottom", Keys: []string{"G"}, Help: "go to the oldest run",
			Group: GroupMove, Run: func([]string) error {
				p.runs.End()
				p.jump = toBottom
				return nil
			}},
		{Name: "failed", Keys: []string{"f"}, Help: "show only failed runs, or all", Group: GroupView,
			Run: func([]string) error { return p.toggleFailed() }},
		{Name: "compare", Keys: []string{"D"}, Help: "show two marked runs side by side", Group: GroupView,
			Off: p.notTwo, Run: func([]string) error { return p.compare() }},
		{Name: "more", Keys: []string{"m"}, Help: "load more runs for a local filter",
			Group: GroupView,
			Off: func() string {
				switch {
				case p.runs.Local() == "":
					return "the server applies the whole filter"
				case p.runs.Whole():
					return "all runs are loaded"
				}
				return ""
			},
			Run: func([]string) error { p.runs.LoadMore(); return nil }},
	}
	list = append(list, &Action{Name: "start", Aliases: []string{"new"}, Keys: []string{"n"}, Help: "start a run",
		Group: GroupAct, Changes: true, Least: clients, Hint: 2, Run: func([]string) error {
			known := p.known()
			p.app.startForm(known.Types, known.Queues)
			return nil
		}})
	return append(list, p.app.runActions(p.targets, func() string { return "" })...)
}
