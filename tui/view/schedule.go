package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/zone"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// schedulePage shows one schedule: its next ticks, the runs that it started, their input, and who
// changed it.
type schedulePage struct {
	about
	ref  string // the id or name from the command
	item *model.Item[model.Schedule]
	runs *model.Collection[*kagziv1.Workflow]
}

func openSchedule(a *App, args []string) (page, error) {
	p := &schedulePage{ref: args[0], item: model.NewSchedule(a.link, args[0]),
		runs: model.NewScheduleRuns(a.link, args[0])}
	p.about = about{
		app: a, facts: p.scheduleFacts, id: func() string { return p.schedule().GetScheduleId() },
		whole: func() proto.Message {
			if s := p.schedule(); s != nil {
				return s
			}
			return nil
		},
		pairs: func() []render.Pair { return render.SchedulePairs(p.schedule(), a.clock.View()) },
		facets: []*facet{
			a.runsFacet("Runs", "No runs yet.", tables.TickColumns, p.runs, a.tables.Tick),
			a.linesFacet(func() string { return "Next ticks" }, p.tickLines),
			p.inputFacet(a),
			a.linesFacet(func() string {
				return fmt.Sprintf("Changes (%d)", len(p.item.Value().Changes))
			}, p.changeLines),
		},
	}
	return p, nil
}

// schedule returns the schedule as last loaded; nil before that.
func (p *schedulePage) schedule() *kagziv1.WorkflowSchedule { return p.item.Value().WorkflowSchedule }

// called returns the name of the schedule, or else its id.
func (p *schedulePage) called() string {
	if s := p.schedule(); s != nil {
		return tables.ScheduleName(s)
	}
	return format.ShortID(p.ref)
}

func (p *schedulePage) Name() string   { return "schedule" }
func (p *schedulePage) Crumb() string  { return "schedule " + p.called() }
func (p *schedulePage) Title() string  { return "Schedule " + p.called() }
func (p *schedulePage) Failure() error { return p.item.Err() }

// Status shows the state of the schedule.
func (p *schedulePage) Status() string {
	if p.schedule() == nil {
		return ""
	}
	return p.app.look.Cell(theme.OfSchedule(p.schedule())).Text
}

func (p *schedulePage) Show() {
	p.item.Show()
	p.runs.Show()
}

func (p *schedulePage) Hide() {
	p.item.Hide()
	p.runs.Hide()
}

func (p *schedulePage) Close() {
	p.item.Close()
	p.runs.Close()
}

func (p *schedulePage) Refresh() {
	p.item.Refresh()
	p.runs.Refresh()
}

// Pace is one second while a tick is less than a minute away.
func (p *schedulePage) Pace() time.Duration {
	s := p.schedule()
	if left := s.GetNextFireAt().AsTime().Sub(p.app.now()); s != nil && tables.Fires(s) && left > 0 &&
		left < time.Minute {
		return time.Second
	}
	return slowPace
}

// Banner says why the schedule does not fire.
func (p *schedulePage) Banner() string {
	switch s := p.schedule(); {
	case s.GetBroken() != "":
		return "it cannot fire: " + s.GetBroken() + p.app.repairHint()
	case !s.GetEnabled() && s.GetPauseReason() != "":
		return "paused: " + s.GetPauseReason()
	case s.GetBufferedTick() != nil:
		return fmt.Sprintf("the tick of %s waits until the active run ends", p.app.clock.Show(s.GetBufferedTick()))
	}
	return ""
}

// Actions open a run, switch facets and change the schedule.
func (p *schedulePage) Actions() []*Action {
	list := []*Action{{Name: "open", Keys: []string{"enter"}, Help: "open the run under the cursor", Group: GroupMove,
		Hint: 1, Run: func([]string) error {
			if id, ok := p.selected(); ok {
				return p.app.pushView("run", id)
			}
			if p.focused().tab == nil {
				p.focused().part.Key(enterKey)
				return nil
			}
			return errNothingUnder
		}}}
	list = append(list, p.moves("Schedule "+p.called())...)
	return append(list, p.app.scheduleActions(func() []*kagziv1.WorkflowSchedule {
		if s := p.schedule(); s != nil {
			return []*kagziv1.WorkflowSchedule{s}
		}
		return nil
	})...)
}

// enterKey is the enter key, for widgets that fold with it.
var enterKey = tcell.NewEventKey(tcell.KeyEnter, 0, tcell.ModNone)

// scheduleFacts returns the most wanted facts about a schedule.
func (p *schedulePage) scheduleFacts() []fact {
	a, s := p.app, p.schedule()
	text := func(label, text string) fact { return fact{label: label, cell: render.Cell{Text: text}} }
	wide := func(label, text string) fact { return fact{label: label, cell: render.Cell{Text: text}, wide: true} }
	failed, skipped := text("failed", format.Number(s.GetFailedRuns())),
		text("skipped", format.Number(s.GetSkippedTicks())+" ticks")
	if s.GetFailedRuns() > 0 {
		failed.cell = render.Cell{Text: fmt.Sprintf(
			"%s (%s)", format.Number(s.GetFailedRuns()), share(s.GetFailedRuns(), s.GetTotalRuns())), Style: render.Bad}
	}
	if s.GetSkippedTicks() > 0 {
		skipped.cell.Style = render.Waiting
	}
	return plainFacts([]fact{
		{label: "state", cell: a.look.Cell(theme.OfSchedule(s))},
		p.nextFact(),
		{label: "last", cell: p.lastFact()},
		text("runs", format.Number(s.GetTotalRuns())), text("completed", format.Number(s.GetSuccessfulRuns())), failed,
		{label: "cron", cell: render.Cell{Text: s.GetCronExpr() + "   " + tables.ZoneOf(s), Style: render.Strong},
			wide: true},
		wide("starts", s.GetWorkflowType()+" on queue "+s.GetTaskQueue()),
		text("overlap", render.Overlap(s.GetOverlapPolicy())),
		text("catch-up", strconv.Itoa(int(s.GetMaxCatchup()))+" ticks"), skipped,
		text("jitter", render.Jitter(s)),
		text("version", s.GetVersion()), text("created", a.clock.Show(s.GetCreatedAt())),
		text("changed", a.clock.Show(s.GetUpdatedAt())),
		wide("tags", render.KeyValues(s.GetTags())),
	})
}

// nextFact returns when the schedule fires next. With seconds or a date it takes two columns, so
// nothing is cut.
func (p *schedulePage) nextFact() fact {
	cell, clock := p.app.tables.NextTick(p.schedule())
	if clock != "" {
		cell.Text += ", " + clock
	}
	return fact{label: "next", cell: cell, wide: len(clock) > len("15:04")}
}

// lastFact returns when the schedule fired last, and the result.
func (p *schedulePage) lastFact() render.Cell {
	r := p.newest()
	if r == nil {
		return p.app.tables.LastCell(p.schedule(), nil)
	}
	cell := p.app.look.Cell(theme.OfRun(r))
	cell.Text += " " + p.app.clock.Show(r.GetCreatedAt())
	return cell
}

// newest returns the latest run, if runs are loaded.
func (p *schedulePage) newest() *kagziv1.Workflow {
	r, _ := p.runs.Row(0)
	return r
}

// tickLines returns the next ticks, in the schedule's time zone and in local time.
func (p *schedulePage) tickLines() []widget.Line {
	s := p.schedule()
	var lines []widget.Line
	switch {
	case s.GetBroken() != "":
		return []widget.Line{widget.TextLine("  None: "+s.GetBroken(), render.Bad)}
	case !s.GetEnabled():
		lines = append(lines, widget.TextLine("  Paused: nothing fires until it is resumed. These would be next:",
			render.Paused))
	}
	for _, t := range p.item.Value().Ticks {
		if t.AsTime().After(p.app.now()) {
			lines = append(lines, p.app.tickLine(t, s.GetTimeZone()))
		}
	}
	return lines
}

// tickLine returns a tick as a line: relative, in the zone, and in local time if that differs.
func (a *App) tickLine(t *timestamppb.Timestamp, name string) widget.Line {
	location, err := zone.Load(name)
	if err != nil {
		location = time.UTC // this machine does not know the zone; the server does
	}
	there, here := t.AsTime().In(location), t.AsTime().In(a.clock.Zone)
	cells := []render.Cell{
		{Text: "  " + format.Pad(format.Until(t.AsTime().Sub(a.now())), 10), Style: render.Dim},
		{Text: there.Format("Mon 2006-01-02 15:04:05 MST")},
	}
	if there.Format(time.DateTime) != here.Format(time.DateTime) {
		cells = append(cells, render.Cell{Text: "   " + here.Format("Mon 15:04:05 MST"), Style: render.Dim})
	}
	return widget.Line{Cells: cells}
}

// changeLines returns who changed the schedule and why, newest first.
func (p *schedulePage) changeLines() []widget.Line {
	var lines []widget.Line
	for _, e := range p.item.Value().Changes {
		style := render.Plain
		if e.GetOutcome() != "ok" {
			style = render.Bad
		}
		method := strings.TrimSuffix(e.GetMethod(), "WorkflowSchedule")
		cells := []render.Cell{
			{Text: "  " + format.Pad(p.app.clock.Show(e.GetAt()), 10), Style: render.Dim},
			{Text: format.Pad(method, 9), Style: style}, {Text: format.Pad("by "+e.GetActor(), 16)},
		}
		if e.GetOutcome() != "ok" {
			cells = append(cells, render.Cell{Text: e.GetOutcome() + "  ", Style: render.Bad})
		}
		for _, part := range []string{e.GetDetail(), e.GetReason()} {
			if part != "" {
				cells = append(cells, render.Cell{Text: part + "  "})
			}
		}
		lines = append(lines, widget.Line{Cells: cells})
	}
	if len(lines) == 0 {
		lines = append(lines, widget.TextLine("  No changes by people.", render.Dim))
	}
	return lines
}

// inputFacet shows the input of every run. Folding is kept as long as the input stays the same.
func (p *schedulePage) inputFacet(a *App) *facet {
	d := widget.NewDocument(a.theme)
	var shown *kagziv1.Payload
	return &facet{
		title: func() string { return "Input (" + render.Bytes(int64(len(p.schedule().GetInput().GetData()))) + ")" },
		part:  d,
		prepare: func() {
			if input := p.schedule().GetInput(); shown == nil || !proto.Equal(input, shown) {
				d.SetPayload("input", input.GetData(), input.GetMetadata()["content-type"])
				shown = proto.CloneOf(input)
			}
		},
		want: func() int { return 8 },
	}
}
