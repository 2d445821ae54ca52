// Package parts runs the parts of a server process and stops them in reverse order.
package parts

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Parts run side by side in a server process. They stop in reverse order of their start.
type Parts struct {
	running  []*part
	Ended    chan struct{} // capacity 1: receives when a part ended without being asked to
	stopping atomic.Pointer[string]
}

type part struct {
	name   string
	cancel context.CancelFunc
	done   chan error // capacity 1
}

// New returns an empty set of parts.
func New() *Parts { return &Parts{Ended: make(chan struct{}, 1)} }

// Start starts a part. Its context ends when it is the part's turn to stop.
func (p *Parts) Start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := &part{name: name, cancel: cancel, done: make(chan error, 1)}
	p.running = append(p.running, begun)
	go func() {
		err := run(ctx)
		if ctx.Err() != nil {
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			begun.done <- err
			return
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		begun.done <- err
		select {
		case p.Ended <- struct{}{}:
		default: // already signalled
		}
	}()
}

// Stop stops the parts one by one and waits for each. It joins their errors.
func (p *Parts) Stop() (err error) {
	for i := len(p.running) - 1; i >= 0; i-- {
		part := p.running[i]
		p.stopping.Store(&part.name)
		part.cancel()
		if failure := <-part.done; failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", part.name, failure))
		}
	}
	return err
}

// WaitingFor names the part that Stop waits for.
func (p *Parts) WaitingFor() string {
	if name := p.stopping.Load(); name != nil {
		return *name
	}
	return "nothing"
}
