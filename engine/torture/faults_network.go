//go:build linux

package main

import (
	"context"
	"time"
)

// storms makes a nemesis that gives one proxy at a time, of those that pick names, a weather for a while.
func storms(name string, w weather, from, to float64, pick func(t *torture) *proxy) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		return t.every(ctx, t.brief(1), t.brief(4), func() error {
			p := pick(t)
			t.rig.fault(name, func() bool { return t.storm(ctx, p, w, t.brief(from), t.brief(to)) })
			return nil
		})
	}
}

// silenceWorkers is F-13: nothing passes between a worker and its server for a while, so that the server takes it for lost.
func silenceWorkers(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(1), t.brief(4), func() error {
		w := t.worker()
		t.rig.fault(faultOnWorker+w.alias(), func() bool { return t.storm(ctx, w.door, weather{silent: true}, t.brief(5), t.brief(20)) })
		return nil
	})
}

// storm lasts for its time; it did hit when something was connected through the proxy. What is lost in a deaf time stays lost: the
// connections are broken at its end.
func (t *torture) storm(ctx context.Context, p *proxy, w weather, from, to time.Duration) bool {
	hit := p.connected()
	p.set(w)
	t.pause(context.WithoutCancel(ctx), from, to)
	if w.deaf {
		p.cut()
	}
	p.set(weather{})
	return hit || p.connected()
}

func (p *proxy) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}

func serverDoor(t *torture) *proxy { return t.server().door }

// databaseDoor is between a server and Postgres.
func databaseDoor(t *torture) *proxy { return t.server().database }

// constantly makes a nemesis that gives all proxies of servers a weather for the whole time.
func constantly(name string, w weather) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		t.rig.fault(name, func() bool {
			for _, s := range t.rig.servers {
				s.door.set(w)
			}
			<-ctx.Done()
			return true
		})
		return nil
	}
}

// starve notes that the workers spin for the whole time.
func starve(ctx context.Context, t *torture) error {
	t.rig.fault("workers spin", func() bool { <-ctx.Done(); return true })
	return nil
}
