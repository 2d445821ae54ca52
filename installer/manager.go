package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// manager is a service manager, for one service. A definition is text: a unit, a property list, or
// a service as JSON. Calls are made one after another.
type manager interface {
	// available returns nil if the manager can be used here, else an error with what to do.
	available(ctx context.Context) error
	// place returns where a registered definition is stored.
	place() string
	// packaged returns where a system package keeps its own definition, or "", and whether it is in
	// effect because no other is registered. The package's definition is never written.
	packaged() (place string, inEffect bool)
	// additions are files created by hand that change the definition; they are kept on uninstall.
	additions() []string
	// definition returns the one in effect; found is false if there is none.
	definition(ctx context.Context) (text string, found bool, err error)
	// register registers a definition, replacing any other, so that the service starts at boot or
	// with the user's session. A running service keeps running unchanged until restarted.
	register(ctx context.Context, definition string) error
	// unregister removes the registration, even a partial one. The service must be stopped.
	unregister(ctx context.Context) error
	// start, stop and restart return when done. Starting a running service or stopping a stopped
	// one does nothing.
	start(ctx context.Context) error
	stop(ctx context.Context) error
	restart(ctx context.Context) error
	// state returns what the manager knows about the registered service.
	state(ctx context.Context) (State, error)
	// logs writes the last lines, and with follow new lines until ctx ends.
	logs(ctx context.Context, w io.Writer, lines int, follow bool) error
}

// State is what a service manager knows about a service.
type State struct {
	Phase    string // running, starting, stopping, stopped or failed
	PID      int    // 0: none
	Restarts int    // by the manager, after failures; -1 if it does not count them
	LastExit string // how the last process ended, in the manager's words; empty if unknown
}

// Phases of a service.
const (
	running  = "running"
	starting = "starting"
	stopping = "stopping"
	stopped  = "stopped"
	failed   = "failed"
)

// awaitInterval is the time between checks of asynchronous changes.
const awaitInterval = 250 * time.Millisecond

var errTooLong = errors.New("not done")

// await calls done until it returns true or an error. After limit it returns errTooLong.
func await(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	end, look := time.NewTimer(limit), time.NewTicker(awaitInterval)
	defer end.Stop()
	defer look.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-end.C:
			return fmt.Errorf("%w within %s", errTooLong, limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
