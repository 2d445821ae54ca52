package installer

import (
	"context"
	"io"
)

// manager is a service manager, for one service. A definition is a text: a unit, a property list, or a service as JSON. Calls are
// made one after another.
type manager interface {
	// available is nil when the manager can be used here, else it says why not and what to do.
	available(ctx context.Context) error
	// place says where the definition is kept.
	place() string
	// definition is what is registered; found is false when nothing is.
	definition(ctx context.Context) (text string, found bool, err error)
	// register puts a definition in the place of whatever is there, so that the service starts with the machine, or with the user's
	// session. A service that runs goes on as it was until it is restarted.
	register(ctx context.Context, definition string) error
	// unregister takes the definition away, whatever is left of it. The service must be stopped.
	unregister(ctx context.Context) error
	// start, stop and restart return once it is done; to start what runs and to stop what does not is nothing.
	start(ctx context.Context) error
	stop(ctx context.Context) error
	restart(ctx context.Context) error
	// state is what the manager knows of the registered service.
	state(ctx context.Context) (State, error)
	// logs writes the last lines, and with follow those to come until ctx ends.
	logs(ctx context.Context, w io.Writer, lines int, follow bool) error
}

// State is what a service manager knows of a service.
type State struct {
	Phase    string // running, starting, stopping, stopped or failed
	PID      int    // 0: none
	Restarts int    // by the manager, after failures; -1 where it does not count
	LastExit string // how the last process ended, in the manager's words; empty: not known
}

// Phases of a service.
const (
	running  = "running"
	starting = "starting"
	stopping = "stopping"
	stopped  = "stopped"
	failed   = "failed"
)
