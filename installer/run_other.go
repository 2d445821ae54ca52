//go:build !windows

package installer

import (
	"context"

	"github.com/kardianos/service"
)

// underManager runs serve until it or ctx ends. systemd and launchd need nothing but a process that ends on SIGTERM, which ends ctx.
func underManager(ctx context.Context, name string, serve func(context.Context) error) error {
	p := newProgram(ctx, serve)
	s, err := service.ChosenSystem().New(p, &service.Config{Name: name, Option: service.KeyValue{"RunWait": p.wait}})
	if err != nil {
		return err
	}
	return s.Run()
}

// wait returns when there is nothing left to wait for but Stop: the server has ended, or is to.
func (p *program) wait() {
	select {
	case <-p.ended:
	case <-p.ctx.Done():
	}
}
