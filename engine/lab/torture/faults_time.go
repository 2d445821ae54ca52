//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// manySchedules creates a share of a thousand schedules that fire each second.
func manySchedules(ctx context.Context, t *torture) error {
	for i := range max(10, int(100*t.options.scale)) {
		s, err := kagzi.CreateSchedule(ctx, t.load.Clients[0].SDK, workload.TickType, "* * * * * *",
			workload.Job{Name: fmt.Sprint("tick ", i)}, kagzi.ScheduleOptions{MaxCatchup: 100_000})
		if err != nil {
			return err
		}
		t.ticks = append(t.ticks, s)
	}
	return nil
}

// sleepThrough is F-64: to the schedules it is as if all servers had been down for a time, whose
// ticks are owed and partly skipped.
func sleepThrough(ctx context.Context, t *torture) error {
	return t.rewrite(ctx, "an hour's downtime",
		"update schedules set created_at = created_at - 3600000000, next_fire_at = next_fire_at - 3600000000, last_fired_at = last_fired_at - 3600000000",
		"update fires set tick = tick - 3600000000, fired_at = fired_at - 3600000000")
}

// rewrite kills the servers, changes the database, and restarts them: a server treats an SQLite
// file that another process writes to as damaged.
func (t *torture) rewrite(ctx context.Context, fault string, statements ...string) error {
	ctx = context.WithoutCancel(ctx)
	for _, s := range t.system.servers {
		s.kill()
	}
	var err error
	t.system.fault(fault, func() bool {
		if err = t.execute(ctx, statements...); err == nil {
			err = acceptOurs(ctx, t.system.program, t.system.dir, t.system.url())
		}
		return err == nil
	})
	for _, s := range t.system.servers {
		if err == nil {
			err = s.start(ctx)
		}
	}
	return err
}

// execute changes the database directly.
func (t *torture) execute(ctx context.Context, statements ...string) error {
	db, err := openSQL(t.system.url(), "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// badSchedules is F-66: rows that no server would have written.
func badSchedules(ctx context.Context, t *torture) error {
	c := t.load.Clients[0].SDK
	names := []string{"bad-cron", "bad-zone", "bad-both"}
	for _, name := range names {
		if _, err := kagzi.CreateSchedule(ctx, c, workload.TickType, "*/2 * * * * *", workload.Job{Name: name},
			kagzi.ScheduleOptions{Name: name}); err != nil {
			return err
		}
	}
	if err := t.rewrite(ctx, "bad schedules",
		"update schedules set cron_expr = 'never was a cron' where name in ('bad-cron', 'bad-both')",
		"update schedules set time_zone = 'Nowhere/Nothing' where name in ('bad-zone', 'bad-both')"); err != nil {
		return err
	}
	<-ctx.Done()
	for _, name := range names {
		d, err := c.GetScheduleByName(context.WithoutCancel(ctx), name)
		if err != nil {
			return err
		}
		if d.Broken == "" {
			t.system.report("schedule %s is not said to be broken", name)
		}
	}
	return nil
}

// pausing is a period in which a schedule was surely paused: microseconds since 1970.
type pausing struct {
	schedule string
	from, to int64
}

// raced is the number of schedules that are paused, resumed and changed at the same time, beside
// those of the workload.
const raced = 16

// raceSchedules is F-67: schedules are paused and resumed as they fire, and changed at the same
// time, while others are created and deleted.
func raceSchedules(ctx context.Context, t *torture) error {
	var group sync.WaitGroup
	defer group.Wait()
	for _, s := range t.ticks {
		group.Go(func() { t.pauseAndResume(ctx, s) })
	}
	// The checker does not know when these fire, because they may be changed.
	for n := range raced {
		s, err := kagzi.CreateSchedule(ctx, t.load.Clients[n%clients].SDK, workload.TickType, racedCrons[0],
			workload.Job{Name: "raced"}, kagzi.ScheduleOptions{})
		if err != nil {
			return err
		}
		t.ticks = append(t.ticks, s)
		group.Go(func() { t.pauseAndResume(ctx, s) })
		group.Go(func() { t.change(ctx, s) })
	}
	for range 4 {
		group.Go(func() {
			for t.pause(ctx, 0, time.Second) {
				t.system.fault("create and delete", func() bool {
					s, err := kagzi.CreateSchedule(context.WithoutCancel(ctx), t.load.Clients[0].SDK, workload.TickType,
						"* * * * * *", workload.Job{Name: "brief"}, kagzi.ScheduleOptions{})
					if err != nil {
						return false
					}
					t.pause(ctx, 500*time.Millisecond, 2*time.Second)
					return s.Delete(context.WithoutCancel(ctx), "race") == nil
				})
			}
		})
	}
	return nil
}

// racedCrons are expressions that the checker does not know.
var racedCrons = []string{"*/2 * * * * *", "1-59/2 * * * * *", "*/3 * * * * *"}

// pauseAndResume pauses a schedule again and again, and notes when it surely was paused.
func (t *torture) pauseAndResume(ctx context.Context, s *kagzi.Schedule) {
	for t.pause(ctx, 200*time.Millisecond, time.Second) {
		p := pausing{schedule: s.ID()}
		t.system.fault("pause and resume", func() bool {
			if s.Pause(context.WithoutCancel(ctx), "race") != nil {
				return false
			}
			p.from = time.Now().UnixMicro()
			t.pause(ctx, 0, 1500*time.Millisecond)
			p.to = time.Now().UnixMicro()
			return s.ResumeCatchingUp(context.WithoutCancel(ctx), 100, "race") == nil
		})
		t.mu.Lock()
		t.pauses = append(t.pauses, p)
		t.mu.Unlock()
	}
}

// change gives a schedule another cron expression and input again and again. That does not end a
// pause.
func (t *torture) change(ctx context.Context, s *kagzi.Schedule) {
	for n := 1; t.pause(ctx, 50*time.Millisecond, 500*time.Millisecond); n++ {
		cron := racedCrons[n%len(racedCrons)]
		t.system.fault("change", func() bool {
			d, err := s.Update(context.WithoutCancel(ctx), kagzi.ScheduleUpdate{Cron: &cron})
			return err == nil && d.Cron == cron
		})
	}
}

// quietWhilePaused requires that no schedule fired while it was paused.
func quietWhilePaused(t *torture) figure {
	n := 0
	for _, p := range t.pauses {
		for _, f := range t.dump.Fires {
			if f.Schedule == p.schedule && f.FiredAt > p.from && f.FiredAt < p.to {
				n++
			}
		}
	}
	return figure{name: fmt.Sprintf("ticks fired in %d pauses", len(t.pauses)), got: fmt.Sprint(n), limit: "0",
		ok: n == 0, hard: true}
}

// skippedOnce requires an hour's ticks to be skipped except those that may be caught up.
func skippedOnce(t *torture) figure {
	f := figure{name: "ticks skipped of an hour", limit: "about 3600 / period − 100 for each schedule", ok: true,
		hard: true}
	for _, s := range t.dump.Schedules {
		if s.Every == 0 {
			continue
		}
		want := max(0, 3600/s.Every-caughtUp)
		f.got += fmt.Sprintf("%d of every %d s; ", s.Skipped, s.Every)
		if slack := 60/s.Every + 2; s.Skipped < want-slack || s.Skipped > want+slack {
			// for the time in which the servers came up and caught up
			f.ok = false
		}
	}
	return f
}

// caughtUp is the number of missed ticks that the schedules of F-64 catch up.
const caughtUp = 100
