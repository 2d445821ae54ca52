package coordinator

import (
	"context"
	"time"
)

const (
	// callTimeout bounds what a duty asks of the store.
	callTimeout = 30 * time.Second
	// timerGap is the least time between two sweeps that notifications ask for: under load every other step notifies.
	timerGap = 250 * time.Millisecond
	// portion is how long a duty that finds much to do goes on until the others have their turn.
	portion = 100 * time.Millisecond
)

// duty is something that is done when it is due.
type duty struct {
	name string
	run  func(ctx context.Context, now time.Time) (next time.Time, err error)

	due     time.Time // by the store's clock; zero: nothing to wait for
	ran     time.Time // by the monotonic clock, as the next
	pause   time.Time // after a failure: not before
	failing bool
	halfway bool // what it did is a portion: whether it works shows at the end
}

// left is how long the duty has to wait, at most zero when it is due.
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

// hasten makes the duty due, but not sooner than gap after it was last done.
func (d *duty) hasten(now, mono time.Time, gap time.Duration) {
	wait := time.Duration(0)
	if !d.ran.IsZero() {
		wait = max(0, gap-mono.Sub(d.ran))
	}
	d.noLaterThan(now.Add(wait))
}

// do does a duty and plans when it is next due. After an error it stays due and is tried again after the interval.
func (c *Coordinator) do(ctx context.Context, d *duty) {
	begun := c.now()
	d.ran = begun
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	next, err := d.run(bounded, c.store.Now())
	deaf := err != nil && c.store.Health(bounded) != nil // neither could workers be heard
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		d.due, d.pause = next, time.Time{}
		if d.failing && !d.halfway {
			c.log.Info("upkeep works again", "duty", d.name)
			d.failing = false
		}
	} else {
		d.pause = c.now().Add(c.options.Interval)
		if !d.failing {
			c.log.Warn("upkeep does not work; trying again", "duty", d.name, "error", err)
		}
		d.failing = true
	}
	if deaf || c.now().Sub(begun) > tolerance {
		c.forgetSeen()
	}
}
