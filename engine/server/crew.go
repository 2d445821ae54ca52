package server

import "sync"

// maxResting bounds the goroutines that wait for work, and with them the stacks that are kept: about 16 KiB each.
const maxResting = 256

// crew carries work out in goroutines that are used again. A new one begins with a small stack, and a call of some depth has that copied
// to a larger one twice, frame by frame: a tenth of the processor time of a busy server. The zero value is ready.
type crew struct {
	mu      sync.Mutex
	resting []chan func() // the work of each that waits; who came last is first, since its stack is still in the processor's caches
	over    bool
}

// do has the work carried out at once, and does not wait for it.
func (c *crew) do(work func()) {
	c.mu.Lock()
	if n := len(c.resting); n > 0 {
		next := c.resting[n-1]
		c.resting = c.resting[:n-1]
		c.mu.Unlock()
		next <- work
		return
	}
	c.mu.Unlock()
	go c.member(work)
}

func (c *crew) member(work func()) {
	next := make(chan func(), 1)
	for work != nil {
		work()
		if !c.rest(next) {
			return
		}
		work = <-next
	}
}

// rest says whether there is to be more work for who calls it.
func (c *crew) rest(next chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || len(c.resting) == maxResting {
		return false
	}
	c.resting = append(c.resting, next)
	return true
}

// dismiss ends those that wait, and has the others end with their work.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, next := range c.resting {
		close(next)
	}
	c.resting = nil
}
