package coordinator

import "time"

// tolerance is how far the clocks may differ, or a pass may be late, before the observed liveness
// of workers is discarded.
const tolerance = 5 * time.Second

// clock holds when the coordinator was last awake, by the store's clock, which can be set, and by
// the monotonic clock, which cannot. The zero value holds nothing.
type clock struct {
	wall, mono time.Time
	wake       time.Time // when it planned to wake up, by the monotonic clock
}

// sleep records that the coordinator sleeps until a time of the monotonic clock or, if planned is
// false, until it is notified.
func (k *clock) sleep(until time.Time, planned bool) {
	if !planned {
		*k = clock{} // no plan depends on the clock, and over days two clocks drift apart
		return
	}
	k.wake = until
}

// checkClock starts all plans again if the clock was set, the machine slept, or this process was
// stopped for a while. Then the silence of a worker proves nothing, and due times may have been
// missed.
func (c *Coordinator) checkClock() {
	now, mono := c.store.Now(), c.now()
	last := c.clock
	c.clock.wall, c.clock.mono = now, mono
	if last.wall.IsZero() {
		return
	}
	jump, late := now.Sub(last.wall)-mono.Sub(last.mono), mono.Sub(last.wake)
	switch {
	case jump.Abs() > tolerance:
		c.log.Warn("the clock jumped; all plans start again", "by", jump)
	case late > tolerance:
		c.log.Warn("this process did not run for a while; all plans start again", "late", late)
	default:
		return
	}
	c.forgetSeen()
	c.round = round{} // what was due before may not be due now
	clear(c.backlogs) // more ticks may have been missed
	c.dueNow(now)
	// A wrong clock may soon be corrected, so wait before deleting runs. But a clock that jumps
	// every half an hour, as on a machine that sleeps, must not postpone deletion forever.
	wait := pruneEvery
	if mono.Sub(c.prune.ran) >= pruneEvery {
		wait = firstPrune
	}
	c.prune.due, c.deletion = now.Add(wait), deletion{}
	if c.options.Net > 0 {
		c.net.due = now.Add(c.options.Net)
	}
}
