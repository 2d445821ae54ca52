package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// parts are what runs side by side in a server process. They stop in the reverse order of their start.
type parts struct {
	running  []*part
	ended    chan struct{} // capacity one: a part ended without being asked to
	stopping atomic.Pointer[string]
}

type part struct {
	name   string
	cancel context.CancelFunc
	done   chan error // capacity one
}

func newParts() *parts { return &parts{ended: make(chan struct{}, 1)} }

// start begins a part. Its context ends when it is its turn to stop, not before.
func (p *parts) start(name string, run func(context.Context) error) {
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
		case p.ended <- struct{}{}:
		default: // known already
		}
	}()
}

// stop ends one part after the other, and waits for each. The error is of all that did not end well.
func (p *parts) stop() (err error) {
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

// waitingFor names the part that stop is at.
func (p *parts) waitingFor() string {
	if name := p.stopping.Load(); name != nil {
		return *name
	}
	return "nothing"
}
