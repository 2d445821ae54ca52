package demo

import (
	"encoding/json"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

func scheduleFacts() facts {
	f := facts{fired: 3, schedule: &kagzi.ScheduleDetails{
		ScheduleID: "s1", Paused: true, CreatedAt: epoch.Add(-400 * time.Millisecond), TotalRuns: 3, SuccessfulRuns: 3,
	}}
	for i := range f.fired {
		tick := epoch.Add(time.Duration(i) * time.Second)
		result, _ := json.Marshal(tick)
		f.runs = append(f.runs, facts{
			status: kagzi.StatusCompleted, output: result, externalID: "schedule:s1:" + tick.Format(time.RFC3339),
			tick:    tick,
			created: tick.Add(3 * time.Millisecond), steps: []attempt{did("record", i*1000, string(result))},
			ledger: ran("record"),
		})
	}
	return f
}

func scheduleTamperings() (all []tampering) {
	add := func(name string, tamper func(f *facts), says string) {
		all = append(all, tampering{"schedule: " + name, scheduleFacts(), checkSchedule, tamper, says})
	}
	add("it fires on", func(f *facts) { f.schedule.Paused = false }, "not paused")
	add("a tick too few", func(f *facts) {
		f.runs, f.fired, f.schedule.TotalRuns, f.schedule.SuccessfulRuns = f.runs[:2], 2, 2, 2
	}, "2 runs were fired before the pause")
	add("a tick came after the pause", func(f *facts) {
		f.fired = 2
	}, "2 runs were fired before the pause and 3 in all")
	add("a tick fired twice", func(f *facts) { f.runs[2] = f.runs[1] }, "run 3: its tick is 2026-11-20T12:00:01Z")
	add("a tick was left out", func(f *facts) {
		f.schedule.CreatedAt = epoch.Add(-1400 * time.Millisecond)
	}, "run 1: its tick is")
	add("it fired when it was created", func(f *facts) { f.schedule.CreatedAt = epoch }, "run 1: its tick is")
	add("a tick has a fraction of a second", func(f *facts) {
		f.runs[1].tick = f.runs[1].tick.Add(time.Microsecond)
	}, "run 2: its tick is")
	add("a run recorded another tick", func(f *facts) { f.runs[1].output = f.runs[0].output }, "run 2: result is")
	add("a run has the external id of another", func(f *facts) {
		f.runs[1].externalID = f.runs[0].externalID
	}, "run 2: its external id")
	add("a run failed", func(f *facts) {
		f.runs[0].status, f.runs[0].err = kagzi.StatusFailed, "boom"
	}, "run 1: status is FAILED (boom)")
	add("a run's step ran twice", func(f *facts) { f.runs[2].ledger = ran("record", "record") }, "run 3: the code")
	add("a tick fired early", func(f *facts) {
		f.runs[0].created = f.runs[0].tick.Add(-time.Millisecond)
	}, "after its tick")
	add("a tick fired late", func(f *facts) { f.runs[0].created = f.runs[0].tick.Add(time.Minute) }, "after its tick")
	add("a run was not counted", func(f *facts) { f.schedule.TotalRuns = 2 }, "counts 2 runs")
	add("a tick was skipped", func(f *facts) { f.schedule.SkippedTicks = 1 }, "1 skipped")
	return all
}
