package daemon

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"
)

// Serving is a server that runs beside something else in the process. Close it.
type Serving struct {
	Ready Ready

	cancel context.CancelFunc
	ended  chan error
}

// Start runs a server with the settings that `kagzi server` would have without flags, and comes back when it serves, or with an error, also
// when ctx ends before. It writes no log: the terminal belongs to somebody else.
func Start(ctx context.Context, version string, b Backends) (*Serving, error) {
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	register(flags, serverSettings)
	c, _, err := resolve(flags, serverSettings, system())
	if err != nil {
		return nil, err
	}
	c.Version, c.Log = version, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(ctx)
	s := &Serving{cancel: cancel, ended: make(chan error, 1)}
	ready := make(chan Ready, 1)
	go func() { s.ended <- Run(ctx, c, b, func(r Ready) { ready <- r }) }()
	select {
	case s.Ready = <-ready:
		return s, nil
	case err := <-s.ended:
		if err == nil { // it stopped in good order before it served
			err = ctx.Err()
		}
		cancel()
		return nil, err
	}
}

// Close stops the server in good order and waits for it.
func (s *Serving) Close() error {
	s.cancel()
	return <-s.ended
}
