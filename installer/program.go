package installer

import (
	"context"
	"errors"

	"github.com/kardianos/service"
)

// program is a server as github.com/kardianos/service runs it.
type program struct {
	ctx    context.Context
	cancel context.CancelFunc
	serve  func(context.Context) error
	failed func(error)   // called when serve ends with an error without having been stopped; may be nil
	ended  chan struct{} // closed when serve has ended
	err    error         // of serve; set before ended is closed
}

func newProgram(ctx context.Context, serve func(context.Context) error) *program {
	p := &program{serve: serve, ended: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Start returns at once, as service managers want it.
func (p *program) Start(service.Service) error {
	go func() {
		defer close(p.ended)
		p.err = p.serve(p.ctx)
		if p.ctx.Err() == nil && p.failed != nil {
			if p.err == nil {
				p.err = errors.New("the server ended by itself")
			}
			p.failed(p.err)
		}
	}()
	return nil
}

// Stop ends the server and returns how it ended, which is how the process is to end.
func (p *program) Stop(service.Service) error {
	p.cancel()
	<-p.ended
	return p.err
}

// codeOf is the exit code that an error asks for, 1 when it asks for none.
func codeOf(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return 1
}
