package view

import (
	"errors"
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
)

// scheduleActions make schedules, and change, stop, fire and delete the targets.
func (a *App) scheduleActions(targets func() []*kagziv1.WorkflowSchedule) []*Action {
	return []*Action{
		{Name: "new", Keys: []string{"n"}, Help: "make a schedule", Group: GroupAct, Changes: true, Hint: 2, Run: func([]string) error { a.newSchedule(); return nil }},
		{Name: "edit", Keys: []string{"e"}, Help: "change the schedule", Group: GroupAct, Changes: true, Hint: 3, Run: func([]string) error {
			list := targets()
			switch {
			case len(list) == 0:
				return errNothingUnder
			case len(list) > 1:
				return errors.New("one schedule can be changed at a time; ctrl-\\ takes the marks away")
			}
			return a.editSchedule(list[0].GetScheduleId())
		}},
		{Name: "trigger", Keys: []string{"t"}, Help: "start a run now, beside the ticks", Group: GroupAct, Changes: true, Hint: 4, Run: func([]string) error { return a.trigger(targets()) }},
		{Name: "toggle", Keys: []string{"P"}, Short: "pause or resume", Help: "let schedules fire no more, or again", Group: GroupAct, Changes: true, Hint: 5,
			Run: func([]string) error { return a.pauseOrResume(targets()) }},
		{Name: "pause", Help: "let schedules fire no more", Group: GroupAct, Changes: true, Run: func([]string) error { return a.pauseSchedules(targets()) }},
		{Name: "resume", Help: "let paused schedules fire again", Group: GroupAct, Changes: true, Run: func([]string) error { return a.resumeSchedules(targets()) }},
		{Name: "delete", Keys: []string{"x"}, Help: "delete schedules; the runs that they started stay", Group: GroupAct, Changes: true, Hint: 6, Run: func([]string) error { return a.deleteSchedules(targets()) }},
	}
}

// scheduleDeed is something done to schedules, by their ids and with their names.
func scheduleDeed(list []*kagziv1.WorkflowSchedule, do func(ids []string) model.Action, lines ...string) deed {
	var ids, names []string
	byID := map[string]string{}
	for _, s := range list {
		ids, names = append(ids, s.GetScheduleId()), append(names, scheduleName(s))
		byID[s.GetScheduleId()] = scheduleName(s)
	}
	return deed{action: do(ids), what: naming(names), name: func(id string) string { return byID[id] }, lines: lines}
}

// trigger starts a run of one schedule at once and says its id; of several it asks first.
func (a *App) trigger(list []*kagziv1.WorkflowSchedule) error {
	if len(list) == 0 {
		return errNothingUnder
	}
	d := scheduleDeed(list, func(ids []string) model.Action { return a.scope().TriggerSchedules(ids) }, "Each starts a run now; its ticks stay as they are.")
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
	d := scheduleDeed(on, func(ids []string) model.Action { return a.scope().PauseSchedules(ids, "") }, "Nothing fires before they are resumed; runs that are open go on.")
	if len(on) > 1 {
		a.confirm(d)
	} else {
		a.carryOut(d)
	}
	return nil
}

// resumeSchedules asks, because ticks that were missed may start many runs at once, and lets those that are paused fire again.
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
	d := scheduleDeed(list, func(ids []string) model.Action { return a.scope().DeleteSchedules(ids, "") }, "Nothing fires any more. The runs that were started stay.")
	if here, ok := a.trails.top().(*schedulePage); ok {
		d.done = func(*model.Job) {
			if a.trails.top() == page(here) { // whoever has gone on stays there
				a.trails.pop()
			}
		}
	}
	a.confirm(d)
	return nil
}
