package model

import "time"

// clockSamples is how many signs of life the offset of the server's clock is taken from.
const clockSamples = 12

// clock estimates how far the server's clock is ahead. What the server says of its time is older by
// the way here, so of several estimates the largest is the best; a measured round trip corrects it.
type clock struct {
	samples [clockSamples]time.Duration
	count   int           // of the samples that were taken
	trip    time.Duration // 0: not measured
}

// heard notes what time it was on the server when it said something, and when that arrived.
func (c *clock) heard(server, received time.Time) {
	c.samples[c.count%clockSamples] = server.Sub(received)
	c.count++
}

// measured notes a question and its answer.
func (c *clock) measured(p ping) {
	c.trip = max(p.received.Sub(p.sent), time.Microsecond)
	if !p.server.IsZero() && c.count == 0 {
		c.heard(p.server, p.received)
	}
}

func (c *clock) offset() time.Duration {
	n := min(c.count, clockSamples)
	if n == 0 {
		return 0
	}
	best := c.samples[0]
	for _, s := range c.samples[1:n] {
		best = max(best, s)
	}
	return best + c.trip/2
}
