package coordinator

import "time"

// Looks says when a coordinator was last active and will be again, for people.
type Looks struct {
	At       time.Time     // when it last ran a duty, by the store's clock; unset: not yet
	Took     time.Duration // how long that took
	Next     time.Time     // when a duty is next due, without a notification; unset: it waits for one
	Interval time.Duration // as in Options
}

// Looks returns when the coordinator was last active and will be again. It may be called from any
// goroutine.
func (c *Coordinator) Looks() Looks {
	c.mu.Lock()
	defer c.mu.Unlock()
	looks := c.looks
	looks.Interval = c.options.Interval
	return looks
}

func (c *Coordinator) looked(at time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks.At, c.looks.Took = at, took
}

func (c *Coordinator) planned(now time.Time, wait time.Duration, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks.Next = time.Time{}
	if found {
		c.looks.Next = now.Add(max(0, wait))
	}
}
