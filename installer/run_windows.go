package installer

import (
	"context"
	"errors"
	"os"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// Event ids are from 1 to 1000, as the standard message file has them.
const eventFailed = 3

// underManager runs serve until it or ctx ends, or the service manager says stop. The library tells the manager that the service
// runs as soon as serve has begun, because a long migration would be taken for a failed start.
func underManager(ctx context.Context, name string, serve func(context.Context) error) error {
	managed, err := svc.IsWindowsService()
	if err != nil || !managed {
		return errors.Join(err, serve(ctx)) // called by hand, to see what it says
	}
	p := newProgram(ctx, serve)
	// The manager starts again what ends without saying so, and the library would wait for the manager to say stop.
	p.failed = func(err error) {
		report(name, err)
		os.Exit(codeOf(err))
	}
	s, err := service.ChosenSystem().New(p, &service.Config{Name: name})
	if err != nil {
		return err
	}
	return s.Run()
}

// report writes an error where administrators look first.
func report(name string, err error) {
	log, opening := eventlog.Open(name)
	if opening != nil {
		return
	}
	defer log.Close()
	_ = log.Error(eventFailed, plain(err.Error()))
}
