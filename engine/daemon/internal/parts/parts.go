// Package parts runs the parts of a server process, and stops them in the reverse order of their start.
package parts

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Parts are what runs side by side in a server process. They stop in the reverse order of their start.
type Parts struct {
	running  []*part
	Ended    chan struct{} // capacity one: a part ended without being asked to
	stopping atomic.Pointer[string]
}

type part struct {
	name   string
	cancel context.CancelFunc
	done   chan error // capacity one
}

// New returns a set without parts.
func New() *Parts { return &Parts{Ended: make(chan struct{}, 1)} }

// Start begins a part. Its context ends when it is its turn to stop, not before.
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
		default: // known already
		}
	}()
}

// Stop ends one part after the other, and waits for each. The error is of all that did not end well.
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

// WaitingFor names the part that stop is at.
func (p *Parts) WaitingFor() string {
	if name := p.stopping.Load(); name != nil {
		return *name
	}
	return "nothing"
}
