package coordinator

import "time"

// Looks is what a coordinator says of its work, for people.
type Looks struct {
	At       time.Time     // when it last did something, by the store's clock; unset: it has not yet
	Took     time.Duration // how long that took
	Next     time.Time     // when something is due again, if nobody notifies; unset: it waits for a notification
	Interval time.Duration // as in Options
}

// Looks says when the coordinator last looked and when it will. It may be asked from any goroutine.
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
