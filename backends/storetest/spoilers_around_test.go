package storetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// aroundSabotages break promises about signals, children, schedules, imports and notifications.
var aroundSabotages = []sabotage{
	{"a signal id is delivered once", func(s engine.Store) engine.Store {
		return forgetsSignalIDs{s}
	}, []string{"signal"}},
	{"a wait for a signal has its limit", func(s engine.Store) engine.Store {
		return waitsForEver{s}
	}, []string{"signal"}},
	{"a held wait keeps the lease", func(s engine.Store) engine.Store {
		return holdsNothing{s}
	}, []string{"signal", "child"}},
	{"children end as their policy says", func(s engine.Store) engine.Store {
		return abandonsChildren{s}
	}, []string{"child"}},
	{"a selection of steps leaves others out", func(s engine.Store) engine.Store {
		return ignoresStatuses{s}
	}, []string{"list"}},
	{"a wait for all is no wait for any", func(s engine.Store) engine.Store {
		return wakesAtTheFirst{s}
	}, []string{"child"}},
	{"an output names the run of the child", func(s engine.Store) engine.Store { return namesTheFirstRun{s} },
		[]string{
			"child/the output of a continued child names the run it came from"}},
	{"a grace is no deadline", func(s engine.Store) engine.Store {
		return tellsNoGraceFromADeadline{s}
	}, []string{"deadline"}},
	{"a deadline ends a run", func(s engine.Store) engine.Store { return neverExpires{s} }, []string{"deadline"}},
	{"a grace is given", func(s engine.Store) engine.Store { return givesNoGrace{s} }, []string{"grace"}},
	{"a failure has its handler", func(s engine.Store) engine.Store { return forgetsHandlers{s} }, []string{"handler"}},
	{"a run can continue", func(s engine.Store) engine.Store { return endsLoops{s} }, []string{"continue"}},
	{"a key has its limit", func(s engine.Store) engine.Store { return forgetsKeys{s} }, []string{"key"}},
	{"a paused run rests", func(s engine.Store) engine.Store { return pausesInWords{s} }, []string{"pause"}},
	{"a retry keeps results", func(s engine.Store) engine.Store { return retriesFromScratch{s} }, []string{"repair"}},
	{"an override says why", func(s engine.Store) engine.Store { return overridesInSilence{s} }, []string{"repair"}},
	{"a pinned run is kept", func(s engine.Store) engine.Store { return pinsNothing{s} }, []string{"repair"}},
	{"an imported run is kept from its import", func(s engine.Store) engine.Store { return forgetsImports{s} },
		[]string{"repair/retention of an imported run counts from its import"}},
	{"a tick fires once", func(s engine.Store) engine.Store { return firesTwice{s} }, []string{"schedule"}},
	{"a change by a person makes older decisions stale", func(s engine.Store) engine.Store {
		return overwrites{s}
	}, []string{"schedule"}},
	{"skipped ticks are counted", func(s engine.Store) engine.Store { return countsNothing{s} }, []string{"schedule"}},
	{"ticks that a change gives up are counted", func(s engine.Store) engine.Store {
		return givesUpInSilence{s}
	}, []string{"schedule"}},
	{"a change of a schedule notifies it", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifySchedule}
	}, []string{"notification"}},
	{"a change of a namespace notifies it", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifyNamespace}
	}, []string{"notification"}},
	{"what was not asked for is told for counting", func(s engine.Store) engine.Store {
		return hidesSideEffects{s}
	}, []string{"notification"}},
	{"an update notifies the schedule", func(s engine.Store) engine.Store {
		return &notifiesAtBirth{Store: s}
	}, []string{"notification"}},
	{"runs got by ids are those of the namespace", func(s engine.Store) engine.Store {
		return knowsNoBorders{s}
	}, []string{"list"}},
	{"a run got by its id comes once", func(s engine.Store) engine.Store { return gotTwice{s} }, []string{"list"}},
	{"a disabled namespace rests", func(s engine.Store) engine.Store {
		return disablesInWords{s}
	}, []string{"namespace"}},
}

type forgetsSignalIDs struct{ engine.Store }

func (d forgetsSignalIDs) SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	p.SignalID = ""
	return d.Store.SignalRun(ctx, p)
}

type waitsForEver struct{ engine.Store }

func (d waitsForEver) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	p.Timeout = 0
	return d.Store.AwaitSignal(ctx, p)
}

type holdsNothing struct{ engine.Store }

func (d holdsNothing) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	p.Hold = false
	return d.Store.AwaitSignal(ctx, p)
}

type abandonsChildren struct{ engine.Store }

func (d abandonsChildren) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	p.Child.ParentClose = engine.CloseAbandon
	return d.Store.StartChild(ctx, p)
}

type wakesAtTheFirst struct{ engine.Store }

func (d wakesAtTheFirst) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	p.Any = true
	return d.Store.AwaitChildren(ctx, p)
}

// namesTheFirstRun names the run that a step started instead of the run that its output came from.
type namesTheFirstRun struct{ engine.Store }

func (d namesTheFirstRun) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter,
	p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	steps, info, err := d.Store.ListSteps(ctx, namespace, run, f, p)
	for i := range steps {
		steps[i].Output = engine.ChildOutput(steps[i].Output, steps[i].ChildRunID, steps[i].ChildRunID)
	}
	return steps, info, err
}

// ignoresStatuses lists steps of all statuses.
type ignoresStatuses struct{ engine.Store }

func (d ignoresStatuses) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter,
	p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	f.Statuses = nil
	return d.Store.ListSteps(ctx, namespace, run, f, p)
}

type neverExpires struct{ engine.Store }

func (d neverExpires) EndExpired(context.Context, engine.EndExpiredParams) (engine.Expired, error) {
	return engine.Expired{}, nil
}

type tellsNoGraceFromADeadline struct{ engine.Store }

func (d tellsNoGraceFromADeadline) EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	e, err := d.Store.EndExpired(ctx, p)
	e.Cancelled, e.TimedOut = nil, append(e.Cancelled, e.TimedOut...)
	return e, err
}

type givesNoGrace struct{ engine.Store }

func (d givesNoGrace) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	p.Grace = 0
	return d.Store.CancelRun(ctx, p)
}

type forgetsHandlers struct{ engine.Store }

func (d forgetsHandlers) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	for i := range p.Runs {
		p.Runs[i].OnFailureWorkflow = ""
	}
	return d.Store.StartRuns(ctx, p)
}

type endsLoops struct{ engine.Store }

func (d endsLoops) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	p.ContinueAs = nil
	return d.Store.CompleteRun(ctx, p)
}

type forgetsKeys struct{ engine.Store }

func (d forgetsKeys) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	for i := range p.Runs {
		p.Runs[i].ConcurrencyKey = ""
	}
	return d.Store.StartRuns(ctx, p)
}

type pausesInWords struct{ engine.Store }

func (d pausesInWords) PauseRun(ctx context.Context, p engine.PauseRunParams) (engine.Run, error) {
	r, err := d.GetRun(ctx, p.Namespace, p.RunID)
	r.Paused = true
	return r, err
}

type retriesFromScratch struct{ engine.Store }

func (d retriesFromScratch) RetryRun(ctx context.Context, p engine.RetryRunParams) (engine.Started, error) {
	p.Restart, p.FromStep = true, ""
	return d.Store.RetryRun(ctx, p)
}

type overridesInSilence struct{ engine.Store }

func (d overridesInSilence) OverrideStep(ctx context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	p.Reason = ""
	return d.Store.OverrideStep(ctx, p)
}

type pinsNothing struct{ engine.Store }

func (d pinsNothing) PinRun(ctx context.Context, p engine.PinRunParams) (engine.Run, error) {
	r, err := d.GetRun(ctx, p.Namespace, p.RunID)
	r.Pinned = p.Pinned
	return r, err
}

// forgetsImports deletes imported runs by their end, like other runs.
type forgetsImports struct{ engine.Store }

func (d forgetsImports) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	runs, _, err := d.ListRuns(ctx, engine.RunFilter{Namespace: p.Namespace, Statuses: []engine.RunStatus{p.Status}},
		engine.Page{Limit: engine.MaxPage})
	if err != nil {
		return 0, err
	}
	for _, r := range runs {
		if r.Origin == engine.OriginImport && r.FinishedAt.Before(p.Before) {
			p.Before = p.Before.Add(time.Hour) // by its id, which is younger than its end
			break
		}
	}
	return d.Store.Prune(ctx, p)
}

// firesTwice starts each tick's run a second time, outside the schedule.
type firesTwice struct{ engine.Store }

func (d firesTwice) FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	fired, err := d.Store.FireSchedule(ctx, p)
	if err != nil || !fired.Stale || len(p.Ticks) == 0 {
		return fired, err
	}
	plans, _, err := d.ListSchedules(ctx, engine.ScheduleFilter{Namespace: "default"}, engine.Page{Limit: 1})
	if err != nil || len(plans) == 0 {
		return fired, err
	}
	_, err = d.StartRuns(ctx, engine.StartRunsParams{
		Runs: []engine.StartRun{plans[0].Start(p.Ticks[0].RunID, p.Ticks[0].At, p.Now)}})
	return engine.Fired{Runs: 1}, err
}

// overwrites ignores the revision: the last writer wins.
type overwrites struct{ engine.Store }

func (d overwrites) UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	now, err := d.GetSchedule(ctx, p.Schedule.Namespace, p.Schedule.ID.String())
	if err != nil {
		return engine.Schedule{}, err
	}
	p.Schedule.Revision = now.Revision
	return d.Store.UpdateSchedule(ctx, p)
}

// givesUpInSilence does not count the ticks that a change gives up.
type givesUpInSilence struct{ engine.Store }

func (d givesUpInSilence) UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	p.Skipped = 0
	return d.Store.UpdateSchedule(ctx, p)
}

type countsNothing struct{ engine.Store }

func (d countsNothing) FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	p.Skipped = 0
	return d.Store.FireSchedule(ctx, p)
}

type disablesInWords struct{ engine.Store }

func (d disablesInWords) UpdateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	p.Namespace.Enabled = true
	n, err := d.Store.UpdateNamespace(ctx, p)
	n.Enabled = false
	return n, err
}

// hidesSideEffects does not report side effects.
type hidesSideEffects struct{ engine.Store }

func (d hidesSideEffects) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	return d.Store.Listen(ctx, notify, endingsAlone{o})
}

type endingsAlone struct{ engine.Outcomes }

func (endingsAlone) SideEffects(*engine.SideEffects) {}

// notifiesAtBirth notifies a schedule when it is made, and never again.
type notifiesAtBirth struct {
	engine.Store
	notified sync.Map
}

func (d *notifiesAtBirth) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	return d.Store.Listen(ctx, func(r engine.Notification) {
		if r.Kind == engine.NotifySchedule {
			if _, again := d.notified.LoadOrStore(r, true); again {
				return
			}
		}
		notify(r)
	}, o)
}

// knowsNoBorders finds a run in any namespace by its id.
type knowsNoBorders struct{ engine.Store }

func (d knowsNoBorders) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	here, err := d.Store.GetRuns(ctx, namespace, ids)
	if err != nil {
		return nil, err
	}
	elsewhere, err := d.Store.GetRuns(ctx, "other", ids)
	return append(here, elsewhere...), err
}

// gotTwice answers a repeated id twice.
type gotTwice struct{ engine.Store }

func (d gotTwice) GetRuns(ctx context.Context, namespace string, ids []engine.ID) (all []engine.Run, err error) {
	for _, id := range ids {
		one, err := d.Store.GetRuns(ctx, namespace, []engine.ID{id})
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}
