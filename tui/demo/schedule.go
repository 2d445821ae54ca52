package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui/render"
)

const (
	scheduleName = "every-second"
	tickCron     = "* * * * * *" // seconds first
	tickLength   = time.Second
	tickCount    = 3
	tickCatchup  = 10 // ticks that may be made up under load or after a resume
	// tickQuiet is how long a paused schedule is watched: long enough for a tick.
	tickQuiet = tickLength + 200*time.Millisecond
)

// everySecond lets a schedule fire some ticks, pauses it, and checks that no more fire.
func everySecond(ctx context.Context, p *player) (f facts, err error) {
	s, err := kagzi.CreateSchedule(ctx, p.env.client, tickType, tickCron, struct{}{}, kagzi.ScheduleOptions{
		Name: scheduleName, Queue: queue, MaxCatchup: tickCatchup, Tags: demoTags(tickType),
	})
	if err != nil {
		return f, fmt.Errorf("create: %w", err)
	}
	if err := p.showSchedule(ctx, s); err != nil {
		return f, err
	}
	err = poll(ctx, askEvery, func() (bool, error) {
		runs, err := firedBy(ctx, s)
		return p.showTicks(runs) >= tickCount, err
	})
	if err != nil {
		return f, fmt.Errorf("wait for %d ticks: %w", tickCount, err)
	}
	if err := s.Pause(ctx, "the demo has seen enough"); err != nil {
		return f, fmt.Errorf("pause: %w", err)
	}
	if err := p.showSchedule(ctx, s); err != nil {
		return f, err
	}
	fired, err := firedBy(ctx, s)
	if err != nil {
		return f, err
	}
	f.fired = len(fired)
	if err := pause(ctx, tickQuiet); err != nil {
		return f, err
	}
	return f, collectSchedule(ctx, p.env, s, &f)
}

// collectSchedule gathers the facts about a paused schedule. The runs come first, so that the
// schedule has counted their ends.
func collectSchedule(ctx context.Context, s *environment, schedule *kagzi.Schedule, f *facts) error {
	runs, err := firedBy(ctx, schedule)
	if err != nil {
		return err
	}
	for _, r := range runs {
		var fired facts
		if err := collect(ctx, s, s.client.Run(r.RunID), &fired); err != nil {
			return err
		}
		f.runs = append(f.runs, fired)
	}
	if f.schedule, err = schedule.Describe(ctx); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}

// firedBy lists the runs of a schedule in the order of their ticks.
func firedBy(ctx context.Context, s *kagzi.Schedule) ([]*kagzi.RunDetails, error) {
	var runs []*kagzi.RunDetails
	for r, err := range s.Runs(ctx) {
		if err != nil {
			return nil, fmt.Errorf("runs of the schedule: %w", err)
		}
		runs = append(runs, r)
	}
	slices.SortStableFunc(runs, func(a, b *kagzi.RunDetails) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
	return runs, nil
}

// showSchedule shows whether the schedule is enabled.
func (p *player) showSchedule(ctx context.Context, s *kagzi.Schedule) error {
	answer, err := p.env.api.GetWorkflowSchedule(
		ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: namespace, ScheduleId: s.ID()})
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	state := render.ScheduleState(answer.GetSchedule())
	p.become(state.Text, state.Style)
	return nil
}

// showTicks shows which ticks' runs have ended, and returns how many have.
func (p *player) showTicks(runs []*kagzi.RunDetails) (ended int) {
	for _, r := range runs {
		if !r.Status.Ended() {
			continue
		}
		ended++
		if status := string(r.Status); p.seen[r.RunID] != status {
			p.seen[r.RunID] = status
			event := clock(r.ScheduledAt) + " " + status
			p.board.detail(p.index, fmt.Sprintf("%d of %d ticks, %s", ended, max(ended, p.total), event), event)
		}
	}
	return ended
}

// clock is the time of day of a tick.
func clock(tick time.Time) string { return tick.UTC().Format("15:04:05Z") }
