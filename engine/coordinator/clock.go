package coordinator

import "time"

// tolerance is how far the clocks may part, or a pass may be late, before what was seen is no longer trusted.
const tolerance = 5 * time.Second

// clock remembers when the coordinator was last awake by both clocks: the store's, which can be
// set, and the monotonic one, which cannot. The zero value remembers nothing.
type clock struct {
	wall, mono time.Time
	wake       time.Time // when it meant to be awake again, by the monotonic clock
}

// sleep notes that the coordinator lies down until a moment of the monotonic clock, or until it is
// notified when nothing is waited for.
func (k *clock) sleep(until time.Time, planned bool) {
	if !planned {
		*k = clock{} // nothing that a jump could make wrong; and over days two clocks part by themselves
		return
	}
	k.wake = until
}

// checkClock begins everything anew when the clock was set, the machine slept, or this process
// stood still for a while: then silence of a worker proves nothing, and moments may have been
// passed over.
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
		c.log.Warn("the clock has jumped", "by", jump)
	case late > tolerance:
		c.log.Warn("this process stood still", "late", late)
	default:
		return
	}
	c.forgetSeen()
	c.round = round{} // what was due by the clock before may not be by this one
	clear(c.backlogs) // more may have been missed meanwhile
	c.dueNow(now)
	// A clock that is wrong now may soon be right again, before it costs anybody's runs. One that
	// jumps every half an hour, as that of a machine which sleeps, must not put deletion off for
	// ever.
	wait := pruneEvery
	if mono.Sub(c.prune.ran) >= pruneEvery {
		wait = firstPrune
	}
	c.prune.due, c.deletion = now.Add(wait), deletion{}
	if c.options.Net > 0 {
		c.net.due = now.Add(c.options.Net)
	}
}
