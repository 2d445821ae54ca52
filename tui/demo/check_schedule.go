package demo

import (
	"fmt"
	"time"
)

// tickSlack is how late a tick may fire: a slow machine is not an error of the demo.
const tickSlack = 2 * time.Second

func checkSchedule(c *check) (note string) {
	s := c.schedule
	if !s.Paused {
		c.differ("the schedule is not paused")
	}
	if c.fired < tickCount {
		c.differ("%d runs were fired before the pause, want at least %d", c.fired, tickCount)
	}
	if len(c.runs) != c.fired {
		c.differ("%d runs were fired before the pause and %d in all", c.fired, len(c.runs))
	}
	if n := int64(len(c.runs)); s.TotalRuns != n || s.SuccessfulRuns != n || s.FailedRuns != 0 || s.SkippedTicks != 0 {
		c.differ("the schedule counts %d runs, %d successful, %d failed, and %d skipped ticks; want %d, all successful",
			s.TotalRuns, s.SuccessfulRuns, s.FailedRuns, s.SkippedTicks, n)
	}
	// Ticks are consecutive from the first whole second after the schedule's creation: none twice,
	// none missing.
	first := s.CreatedAt.Truncate(tickLength).Add(tickLength)
	var latest time.Duration
	c.each(func(i int) string { return fmt.Sprintf("run %d", i+1) }, func(i int, c *check) {
		tick := first.Add(time.Duration(i) * tickLength)
		if !c.tick.Equal(tick) {
			c.differ("its tick is %s, want %s", c.tick.Format(time.RFC3339Nano), tick.Format(time.RFC3339Nano))
		}
		ended(c, tick)
		c.attempts("record COMPLETED")
		c.ran("record")
		if want := "schedule:" + s.ScheduleID + ":" + tick.Format(time.RFC3339); c.externalID != want {
			c.differ("its external id is %q, want %q", c.externalID, want)
		}
		late := c.created.Sub(tick)
		if late < 0 || late > tickSlack {
			c.differ("it was fired %s after its tick, want 0s to %s", late, tickSlack)
		}
		latest = max(latest, late)
	})
	return fmt.Sprintf("%d ticks a second apart, one run each, at most %s late; none after the pause",
		len(c.runs), latest.Round(100*time.Microsecond))
}
