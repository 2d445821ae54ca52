package coordinator

import (
	"context"
	"time"
)

const (
	// callTimeout limits the time of one duty.
	callTimeout = 30 * time.Second
	// timerGap is the shortest time between two sweeps caused by notifications: under load every
	// other step notifies.
	timerGap = 250 * time.Millisecond
	// portion is how long a duty with much to do runs before the others get their turn.
	portion = 100 * time.Millisecond
)

// duty is a periodic task.
type duty struct {
	name string
	run  func(ctx context.Context, now time.Time) (next time.Time, err error)

	due     time.Time // by the store's clock; zero: not planned
	ran     time.Time // by the monotonic clock
	pause   time.Time // after a failure: not before this time of the monotonic clock
	failing bool
	halfway bool // it did only a portion; success is known at the end
}

// left returns how long until the duty is due; zero or less if it is due.
func (d *duty) left(now, mono time.Time) time.Duration {
	return max(d.due.Sub(now), d.pause.Sub(mono))
}

func (d *duty) isDue(now, mono time.Time) bool {
	return !d.due.IsZero() && d.left(now, mono) <= 0
}

func (d *duty) noLaterThan(t time.Time) {
	if d.due.IsZero() || t.Before(d.due) {
		d.due = t
	}
}

// hasten makes the duty due, but not earlier than gap after it last ran.
func (d *duty) hasten(now, mono time.Time, gap time.Duration) {
	wait := time.Duration(0)
	if !d.ran.IsZero() {
		wait = max(0, gap-mono.Sub(d.ran))
	}
	d.noLaterThan(now.Add(wait))
}

// do runs a duty and plans when it is next due. After an error it stays due and is tried again
// after Options.Interval.
func (c *Coordinator) do(ctx context.Context, d *duty) {
	begun := c.now()
	d.ran = begun
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	next, err := d.run(bounded, c.store.Now())
	deaf := err != nil && c.store.Health(bounded) != nil // heartbeats could not be recorded either
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		d.due, d.pause = next, time.Time{}
		if d.failing && !d.halfway {
			c.log.Info("upkeep task works again", "duty", d.name)
			d.failing = false
		}
	} else {
		d.pause = c.now().Add(c.options.Interval)
		if !d.failing {
			c.log.Warn("upkeep task failed; trying again", "duty", d.name, "error", err)
		}
		d.failing = true
	}
	if deaf || c.now().Sub(begun) > tolerance {
		c.forgetSeen()
	}
}
