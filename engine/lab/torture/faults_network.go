//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// storms makes a fault that applies conditions to one proxy at a time, chosen from those that pick
// names.
func storms(name string, w fixture.Conditions, from, to float64,
	pick func(t *torture) *fixture.Proxy) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		return t.every(ctx, t.brief(1), t.brief(4), func() error {
			p := pick(t)
			t.system.fault(name, func() bool { return t.storm(ctx, p, w, t.brief(from), t.brief(to)) })
			return nil
		})
	}
}

const (
	// after this much silence a worker gives up its connection: keepalive pings after 30 s, and
	// waits for 10
	deadAfter = 40 * time.Second
	deadLimit = 45 * time.Second // to open another
)

// silenceWorkers is F-13: nothing passes between a worker and its server for a while, so that the
// server declares it lost. If there is time, every third silence is longer than a dead connection
// may stay unnoticed.
func silenceWorkers(ctx context.Context, t *torture) error {
	n := 0
	return t.every(ctx, t.brief(1), t.brief(4), func() error {
		w, from, to := t.worker(), t.brief(5), t.brief(20)
		if n++; n%3 == 1 && t.options.duration >= 2*deadAfter {
			from, to = deadAfter+8*time.Second, deadAfter+20*time.Second
		}
		before := w.door.Joins()
		stop := t.watchDoor(w.door, before, from > deadAfter)
		t.system.fault(faultOnWorker+w.alias(), func() bool {
			return t.storm(ctx, w.door, fixture.Conditions{Silent: true}, from, to)
		})
		stop()
		return nil
	})
}

// watchDoor measures, in a long silence, the time until a new connection is opened; -1 if none is
// before it ends.
func (t *torture) watchDoor(p *fixture.Proxy, before int, long bool) (stop func()) {
	if !long {
		return func() {}
	}
	began, over, done := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for p.Joins() == before {
			select {
			case <-over:
				t.deaths = append(t.deaths, -1)
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		t.deaths = append(t.deaths, time.Since(began))
	}()
	return func() {
		close(over)
		<-done
	}
}

// deadNoticed requires a worker to notice in time that its connection is dead.
func deadNoticed(t *torture) figure {
	f := figure{name: "from a silence until the worker opens another connection", limit: "≤ " + deadLimit.String()}
	if len(t.deaths) == 0 {
		f.got, f.ok = "no silence was so long", t.options.duration < 2*deadAfter
		return f
	}
	return f.within(t.deaths, deadLimit)
}

// storm applies conditions for its time; it did hit if something was connected through the proxy.
// Data lost in a deaf period stays lost: the connections are broken at its end.
func (t *torture) storm(ctx context.Context, p *fixture.Proxy, w fixture.Conditions, from, to time.Duration) bool {
	hit := p.Connected()
	p.Set(w)
	t.pause(context.WithoutCancel(ctx), from, to)
	if w.Deaf {
		p.Cut()
	}
	p.Set(fixture.Conditions{})
	return hit || p.Connected()
}

func serverDoor(t *torture) *fixture.Proxy { return t.server().door }

// databaseDoor is the proxy between a server and Postgres.
func databaseDoor(t *torture) *fixture.Proxy { return t.server().database }

// constantly makes a fault that applies conditions to all proxies of servers all the time.
func constantly(name string, w fixture.Conditions) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		t.system.fault(name, func() bool {
			for _, s := range t.system.servers {
				s.door.Set(w)
			}
			<-ctx.Done()
			return true
		})
		return nil
	}
}

// slower makes a fault that applies several conditions in turn to all proxies of servers, each for
// an equal share of the time; only the first if that is short.
func slower(name string, conditions ...fixture.Conditions) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		if t.options.duration < time.Minute {
			conditions = conditions[:1]
		}
		share := t.options.duration / time.Duration(len(conditions))
		for _, w := range conditions {
			stage, over := context.WithTimeout(ctx, share)
			err := constantly(fmt.Sprintf("%s: %s to %s, %.1f %% break", name, w.Delay, w.Delay+w.Jitter,
				100*w.Breaking), w)(stage, t)
			over()
			if err != nil || ctx.Err() != nil {
				return err
			}
		}
		return nil
	}
}
