// Package limit holds calls to what a server can take: runs and signals per namespace, and payload
// bytes that are not written yet.
package limit

import (
	"context"
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	// MaxBytes limits the payloads of the calls and operations in flight: as long as the database
	// takes what comes they are few, and when it does not, they are what fills the memory of a
	// server.
	MaxBytes = 128 << 20
	// MinBytes is the size up to which a call is not counted.
	MinBytes = 16 << 10
)

// InFlight limits the bytes of payloads that calls and operations of sessions have brought and that
// are not written yet. Its zero value is empty.
type InFlight struct {
	mu      sync.Mutex
	bytes   int
	waiting int           // in Acquire
	less    chan struct{} // closed when it gets less, or nil: nobody waits for that
}

// TryAcquire counts n bytes in if there is room for them, and nobody waits for room: what a session
// brings is the results of what was started before, and must not stand back for ever behind ever
// new starts. One call alone always has room.
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

// Acquire counts n bytes in as soon as there is room for them; false when ctx ends before.
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

// Release counts n bytes out that were counted in.
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

// ErrTooManyBytes refuses a call that nothing has been done for. Clients try again, after pauses.
var ErrTooManyBytes = &engine.Error{Kind: engine.KindUnavailable,
	Message: "too many large payloads wait for the database: the server holds no more than 128 MiB of them; try again"}

// PayloadBytes is the bytes of the payloads that a call brings to be written.
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

// Held returns the bytes that are counted in.
func (c *InFlight) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
