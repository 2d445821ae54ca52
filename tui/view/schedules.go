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

// schedulesPage shows the schedules: broken ones first, then by next tick.
type schedulesPage struct {
	listPage[*kagziv1.WorkflowSchedule]
	latest *model.Latest
}

func openSchedules(a *App, _ []string) (page, error) {
	latest := model.NewLatest(a.link)
	row := func(s *kagziv1.WorkflowSchedule) widget.Row {
		return a.tables.Schedule(s, latest.Run(s.GetScheduleId()))
	}
	p := &schedulesPage{listPage: newListPage(
		a, "schedules", "Schedules", tables.ScheduleColumns, model.NewSchedules(a.link),
		row), latest: latest}
	p.order = scheduleOrder
	p.empty = func() []widget.Line {
		lines := []widget.Line{
			widget.TextLine("No schedules.", render.Plain), {},
			widget.TextLine("kagzi schedule create report --cron '0 2 * * *'"+a.scope().Reach(), render.Dim),
		}
		if !a.looksOnly() {
			lines = append(lines, widget.TextLine("n opens the form", render.Dim))
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

// scheduleOrder compares schedules by columns that do not sort by their text.
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

// urgency sorts broken schedules first and paused ones last.
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
	p.listPage.Close()
}

// Pace is one second while a tick is less than a minute away.
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

// repairHint says which key edits a broken schedule, unless the UI is read-only.
func (a *App) repairHint() string {
	if a.looksOnly() {
		return ""
	}
	return "; e edits it"
}

// Actions open, create, edit, trigger, pause and delete schedules.
func (p *schedulesPage) Actions() []*Action {
	list := []*Action{{Name: "open", Keys: []string{"enter"}, Help: "open the schedule, its ticks and its runs",
		Group: GroupMove, Hint: 1, Run: func([]string) error {
			s, ok := p.under()
			if !ok {
				return errNothingUnder
			}
			return p.app.pushView("schedule", s.GetScheduleId())
		}}}
	return append(list, p.app.scheduleActions(func() []*kagziv1.WorkflowSchedule { return targetsOf(&p.listPage) })...)
}

// scheduleActions returns the actions that create, edit, pause, trigger and delete schedules.
func (a *App) scheduleActions(targets func() []*kagziv1.WorkflowSchedule) []*Action {
	return []*Action{
		{Name: "new", Keys: []string{"n"}, Help: "create a schedule", Group: GroupAct, Changes: true, Hint: 2,
			Run: func([]string) error { a.newSchedule(); return nil }},
		{Name: "edit", Keys: []string{"e"}, Help: "edit the schedule", Group: GroupAct, Changes: true, Hint: 3,
			Run: func([]string) error {
				list := targets()
				switch {
				case len(list) == 0:
					return errNothingUnder
				case len(list) > 1:
					return errors.New("works on one schedule at a time; ctrl-\\ removes the marks")
				}
				return a.editSchedule(list[0].GetScheduleId())
			}},
		{Name: "trigger", Keys: []string{"t"}, Help: "start a run now, beside the ticks", Group: GroupAct,
			Changes: true, Hint: 4, Run: func([]string) error { return a.trigger(targets()) }},
		{Name: "toggle", Keys: []string{"P"}, Short: "pause or resume", Help: "pause or resume schedules",
			Group: GroupAct, Changes: true, Hint: 5,
			Run: func([]string) error { return a.pauseOrResume(targets()) }},
		{Name: "pause", Help: "pause schedules: they do not fire",
			Group: GroupAct, Changes: true, Run: func([]string) error {
				return a.pauseSchedules(targets())
			}},
		{Name: "resume", Help: "resume paused schedules", Group: GroupAct, Changes: true,
			Run: func([]string) error { return a.resumeSchedules(targets()) }},
		{Name: "delete", Keys: []string{"x"}, Help: "delete schedules; their runs are kept",
			Group: GroupAct, Changes: true, Hint: 6, Run: func([]string) error { return a.deleteSchedules(targets()) }},
	}
}

// scheduleDeed returns an action on schedules with the text of its question.
func scheduleDeed(list []*kagziv1.WorkflowSchedule, do func(ids []string) model.Action, lines ...string) deed {
	var ids, names []string
	byID := map[string]string{}
	for _, s := range list {
		ids, names = append(ids, s.GetScheduleId()), append(names, tables.ScheduleName(s))
		byID[s.GetScheduleId()] = tables.ScheduleName(s)
	}
	return deed{action: do(ids), what: naming(names), name: func(id string) string { return byID[id] }, lines: lines}
}

// trigger starts a run of one schedule at once and shows its id; for several it asks first.
func (a *App) trigger(list []*kagziv1.WorkflowSchedule) error {
	if len(list) == 0 {
		return errNothingUnder
	}
	d := scheduleDeed(list, func(ids []string) model.Action {
		return a.scope().TriggerSchedules(ids)
	}, model.TriggerText)
	if len(list) > 1 {
		a.confirm(d)
		return nil
	}
	a.carryOut(d)
	return nil
}

// pauseOrResume pauses the active schedules; if none is active, it resumes all.
func (a *App) pauseOrResume(list []*kagziv1.WorkflowSchedule) error {
	if slices.ContainsFunc(list, (*kagziv1.WorkflowSchedule).GetEnabled) {
		return a.pauseSchedules(list)
	}
	return a.resumeSchedules(list)
}

// pauseSchedules pauses active schedules. It asks only for several, because the same key resumes
// one.
func (a *App) pauseSchedules(list []*kagziv1.WorkflowSchedule) error {
	on := slices.DeleteFunc(slices.Clone(list), func(s *kagziv1.WorkflowSchedule) bool { return !s.GetEnabled() })
	switch {
	case len(list) == 0:
		return errNothingUnder
	case len(on) == 0:
		return errors.New("already paused")
	}
	d := scheduleDeed(on, func(ids []string) model.Action {
		return a.scope().PauseSchedules(ids, "")
	}, model.PauseScheduleText)
	if len(on) > 1 {
		a.confirm(d)
	} else {
		a.carryOut(d)
	}
	return nil
}

// resumeSchedules asks whether missed ticks are skipped or caught up, which may start many runs at once,
// then resumes the paused ones.
func (a *App) resumeSchedules(list []*kagziv1.WorkflowSchedule) error {
	off := slices.DeleteFunc(slices.Clone(list), (*kagziv1.WorkflowSchedule).GetEnabled)
	switch {
	case len(list) == 0:
		return errNothingUnder
	case len(off) == 0:
		return errors.New("not paused")
	}
	most := slices.MaxFunc(off, func(a, b *kagziv1.WorkflowSchedule) int {
		return cmp.Compare(a.GetMaxCatchup(), b.GetMaxCatchup())
	}).GetMaxCatchup()
	resume := func(catchup int32) deed {
		return scheduleDeed(off, func(ids []string) model.Action { return a.scope().ResumeSchedules(ids, catchup, "") },
			model.SkippedText)
	}
	d := resume(0)
	if most > 0 {
		d.lines = append(d.lines, fmt.Sprintf("Catch up fires the latest of them now, at most %d of each schedule.", most))
		d.other, d.otherName = resume(most).action, "Catch up"
	}
	a.confirm(d)
	return nil
}

// deleteSchedules asks, then deletes. It leaves the page of a deleted schedule.
func (a *App) deleteSchedules(list []*kagziv1.WorkflowSchedule) error {
	if len(list) == 0 {
		return errNothingUnder
	}
	d := scheduleDeed(list, func(ids []string) model.Action {
		return a.scope().DeleteSchedules(ids, "")
	}, model.DeleteScheduleText)
	if here, ok := a.trails.top().(*schedulePage); ok {
		d.done = func(*model.Job) {
			if a.trails.top() == page(here) { // the person may have moved on
				a.trails.pop()
			}
		}
	}
	a.confirm(d)
	return nil
}
