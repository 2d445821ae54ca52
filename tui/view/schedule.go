package view

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// schedulePage shows one schedule: when it fires next, the runs that it started, their input, and what people did to it.
type schedulePage struct {
	about
	ref  string // the id or name that it was opened by
	item *model.Item[model.Schedule]
	runs *model.Collection[*kagziv1.Workflow]
}

func openSchedule(a *App, args []string) (page, error) {
	p := &schedulePage{ref: args[0], item: model.NewSchedule(a.link, args[0]), runs: model.NewScheduleRuns(a.link, args[0])}
	p.about = about{
		app: a, facts: p.scheduleFacts, id: func() string { return p.schedule().GetScheduleId() },
		whole: func() proto.Message {
			if s := p.schedule(); s != nil {
				return s
			}
			return nil
		},
		pairs: func() []render.Pair { return render.SchedulePairs(p.schedule(), a.clock.view()) },
		facets: []*facet{
			a.runsFacet("Runs", "It has started no run yet.", tickColumns, p.runs, a.tickRow),
			a.linesFacet(func() string { return "Next ticks" }, p.tickLines),
			p.inputFacet(a),
			a.linesFacet(func() string { return fmt.Sprintf("Changes (%d)", len(p.item.Value().Changes)) }, p.changeLines),
		},
	}
	return p, nil
}

// schedule is the schedule as it was read last; nil before.
func (p *schedulePage) schedule() *kagziv1.WorkflowSchedule { return p.item.Value().WorkflowSchedule }

// called is what the schedule is called, as far as that is known.
func (p *schedulePage) called() string {
	if s := p.schedule(); s != nil {
		return scheduleName(s)
	}
	return shortID(p.ref)
}

func (p *schedulePage) Name() string   { return "schedule" }
func (p *schedulePage) Crumb() string  { return "schedule " + p.called() }
func (p *schedulePage) Title() string  { return "Schedule " + p.called() }
func (p *schedulePage) Failure() error { return p.item.Err() }

// Status is how the schedule stands.
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

// Pace counts down by the second to a tick that comes within a minute.
func (p *schedulePage) Pace() time.Duration {
	s := p.schedule()
	if left := s.GetNextFireAt().AsTime().Sub(p.app.now()); s != nil && fires(s) && left > 0 && left < time.Minute {
		return time.Second
	}
	return slowPace
}

// Banner says why nothing fires.
func (p *schedulePage) Banner() string {
	switch s := p.schedule(); {
	case s.GetBroken() != "":
		return "it cannot fire: " + s.GetBroken() + p.app.mend()
	case s.GetBufferedTick() != nil:
		return fmt.Sprintf("the tick of %s waits for the active run to end", p.app.clock.show(s.GetBufferedTick()))
	}
	return ""
}

// Actions are to open a run, to go through the page, and to change the schedule.
func (p *schedulePage) Actions() []*Action {
	list := []*Action{{Name: "open", Keys: []string{"enter"}, Help: "the run under the cursor", Group: GroupMove, Hint: 1, Run: func([]string) error {
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
