package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// manager is a service manager, for one service. A definition is a text: a unit, a property list,
// or a service as JSON. Calls are made one after another.
type manager interface {
	// available is nil when the manager can be used here, else it says why not and what to do.
	available(ctx context.Context) error
	// place says where a definition that is registered is kept.
	place() string
	// packaged says where a package of the system keeps a definition of its own, empty when there
	// is none, and whether it is the one in effect, because none is registered. The package's is
	// never written to.
	packaged() (place string, inEffect bool)
	// additions are files made by hand that change the definition; they outlive it.
	additions() []string
	// definition is the one in effect; found is false when there is none.
	definition(ctx context.Context) (text string, found bool, err error)
	// register puts a definition in the place of whatever is there, so that the service starts with
	// the machine, or with the user's session. A service that runs goes on as it was until it is
	// restarted.
	register(ctx context.Context, definition string) error
	// unregister takes what was registered away, whatever is left of it. The service must be stopped.
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

// awaitInterval is the pause between checks of what a service manager does asynchronously.
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
