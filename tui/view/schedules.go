package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// schedulesPage shows what starts by itself: broken ones first, then by what fires next.
type schedulesPage struct {
	shelf[*kagziv1.WorkflowSchedule]
	latest *model.Latest
}

func openSchedules(a *App, _ []string) (page, error) {
	latest := model.NewLatest(a.link)
	row := func(s *kagziv1.WorkflowSchedule) widget.Row {
		return a.tables.Schedule(s, latest.Run(s.GetScheduleId()))
	}
	p := &schedulesPage{shelf: newShelf(a, "schedules", "Schedules", tables.ScheduleColumns, model.NewSchedules(a.link),
		row), latest: latest}
	p.order = scheduleOrder
	p.empty = func() []widget.Line {
		lines := []widget.Line{
			widget.TextLine("No schedules.", render.Plain), {},
			widget.TextLine("kagzi schedule create report --cron '0 2 * * *'"+a.scope().Reach(), render.Dim),
		}
		if !a.looksOnly() {
			lines = append(lines, widget.TextLine("n opens a form", render.Dim))
		}
		return lines
	}
	p.tab.Opened = func(id string) { a.done(a.pushView("schedule", id)) }
	p.tab.Viewed = func(first, last int) {
		list := make([]*kagziv1.WorkflowSchedule, 0, last-first)
		for i := first; i < last; i++ {
			if s, ok := p.items.Row(i); ok {
				list = append(list, s)
			}
		}
		latest.View(list)
	}
	return p, p.SortBy("next", false)
}

// scheduleOrder is how schedules compare where that is not by what the cells say.
var scheduleOrder = map[string]func(a, b *kagziv1.WorkflowSchedule) int{
	"next": func(a, b *kagziv1.WorkflowSchedule) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)),
			a.GetNextFireAt().AsTime().Compare(b.GetNextFireAt().AsTime()),
			cmp.Compare(tables.ScheduleName(a), tables.ScheduleName(b)))
	},
	"last": func(a, b *kagziv1.WorkflowSchedule) int {
		return b.GetLastFiredAt().AsTime().Compare(a.GetLastFiredAt().AsTime())
	},
	"created": func(a, b *kagziv1.WorkflowSchedule) int {
		return b.GetCreatedAt().AsTime().Compare(a.GetCreatedAt().AsTime())
	},
	"catchup": func(a, b *kagziv1.WorkflowSchedule) int { return cmp.Compare(a.GetMaxCatchup(), b.GetMaxCatchup()) },
	"skipped": func(a, b *kagziv1.WorkflowSchedule) int {
		return cmp.Compare(a.GetSkippedTicks(), b.GetSkippedTicks())
	},
	"runs": func(a, b *kagziv1.WorkflowSchedule) int { return cmp.Compare(a.GetTotalRuns(), b.GetTotalRuns()) },
	"ok": func(a, b *kagziv1.WorkflowSchedule) int {
		return cmp.Compare(a.GetSuccessfulRuns(), b.GetSuccessfulRuns())
	},
	"failed": func(a, b *kagziv1.WorkflowSchedule) int { return cmp.Compare(a.GetFailedRuns(), b.GetFailedRuns()) },
}

// urgency puts first what cannot fire, and last what is not to.
func urgency(s *kagziv1.WorkflowSchedule) int {
	switch {
	case s.GetBroken() != "":
		return 0
	case tables.Fires(s):
		return 1
	}
	return 2
}

func (p *schedulesPage) Close() {
	p.latest.Close()
	p.shelf.Close()
}

// Pace counts down by the second to what fires within a minute.
func (p *schedulesPage) Pace() time.Duration {
	for _, s := range p.items.All() {
		if left := s.GetNextFireAt().AsTime().Sub(p.app.now()); tables.Fires(s) && left > 0 && left < time.Minute {
			return time.Second
		}
	}
	return slowPace
}

// Banner names the schedules that cannot fire.
func (p *schedulesPage) Banner() string {
	var names []string
	var why string
	for _, s := range p.items.All() {
		if s.GetBroken() != "" {
			names, why = append(names, tables.ScheduleName(s)), s.GetBroken()
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%q cannot fire: %s", names[0], why) + p.app.repairHint()
	}
	return fmt.Sprintf("%d schedules cannot fire: %s", len(names), strings.Join(names, ", ")) + p.app.repairHint()
}

// repairHint says how a schedule that cannot fire is put right, where anything can be changed.
func (a *App) repairHint() string {
	if a.looksOnly() {
		return ""
	}
	return "; e mends it"
}

// Actions are to see, make, change and fire schedules.
func (p *schedulesPage) Actions() []*Action {
	list := []*Action{{Name: "open", Keys: []string{"enter"}, Help: "the schedule, its next ticks and its runs",
		Group: GroupMove, Hint: 1, Run: func([]string) error {
			s, ok := p.under()
			if !ok {
				return errNothingUnder
			}
			return p.app.pushView("schedule", s.GetScheduleId())
		}}}
	return append(list, p.app.scheduleActions(func() []*kagziv1.WorkflowSchedule { return targetsOf(&p.shelf) })...)
}

// scheduleActions make schedules, and change, stop, fire and delete the targets.
func (a *App) scheduleActions(targets func() []*kagziv1.WorkflowSchedule) []*Action {
	return []*Action{
		{Name: "new", Keys: []string{"n"}, Help: "make a schedule", Group: GroupAct, Changes: true, Hint: 2,
			Run: func([]string) error { a.newSchedule(); return nil }},
		{Name: "edit", Keys: []string{"e"}, Help: "change the schedule", Group: GroupAct, Changes: true, Hint: 3,
			Run: func([]string) error {
				list := targets()
				switch {
				case len(list) == 0:
					return errNothingUnder
				case len(list) > 1:
					return errors.New("one schedule can be changed at a time; ctrl-\\ takes the marks away")
				}
				return a.editSchedule(list[0].GetScheduleId())
			}},
		{Name: "trigger", Keys: []string{"t"}, Help: "start a run now, beside the ticks", Group: GroupAct,
			Changes: true, Hint: 4, Run: func([]string) error { return a.trigger(targets()) }},
		{Name: "toggle", Keys: []string{"P"}, Short: "pause or resume", Help: "let schedules fire no more, or again",
			Group: GroupAct, Changes: true, Hint: 5,
			Run: func([]string) error { return a.pauseOrResume(targets()) }},
		{Name: "pause", Help: "let schedules fire no more", Group: GroupAct, Changes: true, Run: func([]string) error {
			return a.pauseSchedules(targets())
		}},
		{Name: "resume", Help: "let paused schedules fire again", Group: GroupAct, Changes: true,
			Run: func([]string) error { return a.resumeSchedules(targets()) }},
		{Name: "delete", Keys: []string{"x"}, Help: "delete schedules; the runs that they started stay",
			Group: GroupAct, Changes: true, Hint: 6, Run: func([]string) error { return a.deleteSchedules(targets()) }},
	}
}

// scheduleDeed is something done to schedules, by their ids and with their names.
func scheduleDeed(list []*kagziv1.WorkflowSchedule, do func(ids []string) model.Action, lines ...string) deed {
	var ids, names []string
	byID := map[string]string{}
	for _, s := range list {
		ids, names = append(ids, s.GetScheduleId()), append(names, tables.ScheduleName(s))
		byID[s.GetScheduleId()] = tables.ScheduleName(s)
	}
	return deed{action: do(ids), what: naming(names), name: func(id string) string { return byID[id] }, lines: lines}
}

// trigger starts a run of one schedule at once and says its id; of several it asks first.
func (a *App) trigger(list []*kagziv1.WorkflowSchedule) error {
	if len(list) == 0 {
		return errNothingUnder
	}
	d := scheduleDeed(list, func(ids []string) model.Action {
		return a.scope().TriggerSchedules(ids)
	}, "Each starts a run now; its ticks stay as they are.")
	if len(list) > 1 {
		a.confirm(d)
		return nil
	}
	a.carryOut(d)
	return nil
}

// pauseOrResume pauses those that fire; where none does it lets all fire again.
func (a *App) pauseOrResume(list []*kagziv1.WorkflowSchedule) error {
	if slices.ContainsFunc(list, (*kagziv1.WorkflowSchedule).GetEnabled) {
		return a.pauseSchedules(list)
	}
	return a.resumeSchedules(list)
}

// pauseSchedules pauses those that fire. One can be let go on with the same key, so that only for several it is asked.
func (a *App) pauseSchedules(list []*kagziv1.WorkflowSchedule) error {
	on := slices.DeleteFunc(slices.Clone(list), func(s *kagziv1.WorkflowSchedule) bool { return !s.GetEnabled() })
	switch {
	case len(list) == 0:
		return errNothingUnder
	case len(on) == 0:
		return errors.New("it is paused already")
	}
	d := scheduleDeed(on, func(ids []string) model.Action {
		return a.scope().PauseSchedules(ids, "")
	}, "Nothing fires before they are resumed; runs that are open go on.")
	if len(on) > 1 {
		a.confirm(d)
	} else {
		a.carryOut(d)
	}
	return nil
}

// resumeSchedules asks, because ticks that were missed may start many runs at once, and lets those
// that are paused fire again.
func (a *App) resumeSchedules(list []*kagziv1.WorkflowSchedule) error {
	off := slices.DeleteFunc(slices.Clone(list), (*kagziv1.WorkflowSchedule).GetEnabled)
	switch {
	case len(list) == 0:
		return errNothingUnder
	case len(off) == 0:
		return errors.New("it is not paused")
	}
	a.confirm(scheduleDeed(off, func(ids []string) model.Action { return a.scope().ResumeSchedules(ids, "") },
		"Ticks that came meanwhile are made up for, as many as each catches up at most."))
	return nil
}

// deleteSchedules asks, and deletes. The page of one that is gone is left.
func (a *App) deleteSchedules(list []*kagziv1.WorkflowSchedule) error {
	if len(list) == 0 {
		return errNothingUnder
	}
	d := scheduleDeed(list, func(ids []string) model.Action {
		return a.scope().DeleteSchedules(ids, "")
	}, "Nothing fires any more. The runs that were started stay.")
	if here, ok := a.trails.top().(*schedulePage); ok {
		d.done = func(*model.Job) {
			if a.trails.top() == page(here) { // a person who has gone on stays there
				a.trails.pop()
			}
		}
	}
	a.confirm(d)
	return nil
}
