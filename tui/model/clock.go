package model

import "time"

// clockSamples is how many messages the offset of the server's clock is estimated from.
const clockSamples = 12

// clock estimates how far the server's clock is ahead. A server's time is older by the network
// delay when it arrives, so the largest of several estimates is the best; a measured round trip
// corrects it.
type clock struct {
	samples [clockSamples]time.Duration
	count   int           // number of samples
	trip    time.Duration // 0: not measured
}

// heard adds a sample: the server's time in a message, and when it arrived.
func (c *clock) heard(server, received time.Time) {
	c.samples[c.count%clockSamples] = server.Sub(received)
	c.count++
}

// measured adds the sample of a measured round trip.
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
