// Package limit refuses or delays calls above the limits of a server: runs and signals per
// namespace and second, and payload bytes in flight.
package limit

import (
	"context"
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	// MaxBytes limits the payload bytes of calls and operations in flight. If the database is slow,
	// these fill a server's memory.
	MaxBytes = 128 << 20
	// MinBytes is the size up to which payloads are not counted.
	MinBytes = 16 << 10
)

// InFlight limits the payload bytes of calls and session operations that are not yet written. Its
// zero value is empty.
type InFlight struct {
	mu      sync.Mutex
	bytes   int
	waiting int           // in Acquire
	less    chan struct{} // closed when bytes decreases; nil: nobody waits
}

// TryAcquire adds n bytes if they fit and no Acquire waits; otherwise it returns false. Sessions
// wait in Acquire with the results of runs, and new starts must not starve them. A single call
// always fits.
func (c *InFlight) TryAcquire(n int) bool {
	if n <= MinBytes {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.waiting == 0 || c.bytes == 0) && c.add(n)
}

func (c *InFlight) add(n int) bool {
	if c.bytes > 0 && c.bytes+n > MaxBytes {
		return false
	}
	c.bytes += n
	return true
}

// Acquire waits until n bytes fit and adds them. It returns false if ctx ends before.
func (c *InFlight) Acquire(ctx context.Context, n int) bool {
	if n <= MinBytes {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	defer func() { c.waiting-- }()
	for !c.add(n) {
		if c.less == nil {
			c.less = make(chan struct{})
		}
		less := c.less
		c.mu.Unlock()
		select {
		case <-less:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// Release removes n bytes that were added.
func (c *InFlight) Release(n int) {
	if n <= MinBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= n
	if c.less != nil {
		close(c.less)
		c.less = nil
	}
}

// ErrTooManyBytes refuses a call that has had no effect. Clients retry it with a backoff.
var ErrTooManyBytes = &engine.Error{Kind: engine.KindUnavailable,
	Message: "too many large payloads wait for the database; the server holds at most 128 MiB of them; try again"}

// PayloadBytes returns the payload bytes that a call has to write.
func PayloadBytes(request any) (n int) {
	switch r := request.(type) {
	case *kagziv1.StartWorkflowRequest:
		return len(r.GetInput().GetData())
	case *kagziv1.StartWorkflowsRequest:
		for _, one := range r.GetRequests() {
			n += len(one.GetInput().GetData())
		}
		return n
	case *kagziv1.SignalWorkflowRequest:
		return len(r.GetPayload().GetData())
	case *kagziv1.RetryWorkflowRequest:
		return len(r.GetInput().GetData())
	case *kagziv1.OverrideStepRequest:
		return len(r.GetOutput().GetData())
	case *kagziv1.CreateWorkflowScheduleRequest:
		return len(r.GetInput().GetData())
	case *kagziv1.UpdateWorkflowScheduleRequest:
		return len(r.GetInput().GetData())
	case *kagziv1.BeginStepRequest:
		return len(r.GetInput().GetData())
	case *kagziv1.CompleteStepRequest:
		return len(r.GetOutput().GetData())
	case *kagziv1.CompleteWorkflowRequest:
		return len(r.GetOutput().GetData()) + len(r.GetContinueAs().GetInput().GetData())
	case *kagziv1.StartChildRequest:
		return len(r.GetChild().GetInput().GetData())
	}
	return 0
}

// Held returns the bytes in flight.
func (c *InFlight) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
