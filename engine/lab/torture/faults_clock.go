//go:build linux

package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/overlay"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// withClock builds the server's binary with a settable clock, once. It takes minutes because
// everything is rebuilt.
func (o options) withClock(ctx context.Context) (string, error) {
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(o.base, "kagzi-clock")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fixture.NotHere("there is no Go to build a server with a clock that can be set: %v", err)
	}
	dir := filepath.Join(o.base, "clock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	_, edits, err := overlay.Parse(fixture.ClockPatch)
	if err != nil {
		return "", fmt.Errorf("clock.patch: %w", err)
	}
	file, err := overlay.Write(dir, strings.TrimSpace(string(root)), edits)
	if err != nil {
		return "", fmt.Errorf("this version of Go is not the one that clock.patch was written for: %w", err)
	}
	return path, build(ctx, ".", path, "-overlay", file)
}

// setting is a moment from which on a clock was ahead by this much.
type setting struct {
	at    int64 // of history.Now
	ahead time.Duration
}

// furthest returns how far the clock was ahead at most in the period before a moment in which a
// reading may have been taken that was used then.
func furthest(settings []setting, at int64, before time.Duration) time.Duration {
	most, known := time.Duration(0), false
	for i, s := range settings {
		over := i+1 < len(settings) && settings[i+1].at < at-int64(before)
		if s.at <= at && !over && (!known || s.ahead > most) {
			most, known = s.ahead, true
		}
	}
	return most
}

// ahead returns how far the servers' clock was left ahead.
func (t *torture) ahead() time.Duration {
	if len(t.settings) == 0 {
		return 0
	}
	return t.settings[len(t.settings)-1].ahead
}

// byTheirClock counts how early sleeps ended by the clock that was set, not by the worker's.
func (t *torture) byTheirClock(events []history.Event) {
	for i := range events {
		if events[i].Woken {
			events[i].Early -= int64(furthest(t.settings, events[i].Returned, t.scenario.readings))
		}
	}
}

// setClock sets a clock to one time after the other, each for the same share of the duration. The
// last time is the furthest ahead, because anything due later would have to wait. The fault did hit
// when the servers' behaviour shows it.
func (t *torture) setClock(ctx context.Context, times []time.Duration, set func(ahead time.Duration) error,
	shown func(ahead time.Duration) bool) error {
	t.settings = []setting{{}}
	share := t.options.duration / time.Duration(len(times))
	for _, ahead := range times {
		next := time.Now().Add(share)
		var err error
		t.system.fault(fmt.Sprintf("set the clock by %+.1f s", ahead.Seconds()), func() bool {
			t.settings = append(t.settings, setting{history.Now(), ahead})
			err = set(ahead)
			return err == nil && shown(ahead)
		})
		if err != nil {
			return err
		}
		rest := time.Until(next)
		t.pause(ctx, rest, rest)
	}
	return nil
}

// setServerClock is F-60.
func setServerClock(ctx context.Context, t *torture) error {
	const day = 24 * time.Hour
	times := []time.Duration{-100 * time.Millisecond, 100 * time.Millisecond, 0, -time.Hour, 0, -day, 0, time.Hour, day}
	return t.setClock(ctx, times, func(ahead time.Duration) error {
		for _, s := range t.system.servers {
			s.clock.Set(ahead)
		}
		return nil
	}, func(ahead time.Duration) bool {
		return t.stampsShow(ctx, t.load.Clients[0].SDK, ahead, time.Millisecond, 40*time.Millisecond, 5*time.Second)
	})
}

// skewServerClocks is F-62: the servers' clocks are half a minute apart, and set again and again.
// Each server must report that its clock differs from that of Postgres, and must still go by that
// of Postgres.
func skewServerClocks(ctx context.Context, t *torture) error {
	const apart, slack = 30 * time.Second, 2 * time.Second
	n := 0
	return t.every(ctx, t.brief(2), t.brief(5), func() error {
		ctx := context.WithoutCancel(ctx)
		n++
		for i, s := range t.system.servers {
			ahead := time.Duration((i+n)%len(t.system.servers)-1) * apart
			c := t.load.Clients[i].SDK // one per server
			t.system.fault(fmt.Sprintf("set the clock of %s by %s", s.name, ahead), func() bool {
				s.clock.Set(ahead)
				return offsetShows(ctx, c, ahead, slack, 5*time.Second)
			})
			if stamp, err := t.stampAt(ctx, c); err == nil && !stamp.shows(0, slack, workload.CallLimit) {
				t.system.report("%s, whose clock is ahead by %s, stamped a run by %s to %s ahead", s.name, ahead,
					stamp.from, stamp.to)
			}
		}
		return nil
	})
}

// setDatabaseClock is F-61. A server takes a new reading once a minute.
func setDatabaseClock(ctx context.Context, t *torture) error {
	return t.setClock(ctx, []time.Duration{-time.Hour, 0, time.Hour}, t.system.cluster.Clock.Set,
		func(ahead time.Duration) bool {
			for i := range t.system.servers {
				if !t.stampsShow(ctx, t.load.Clients[i].SDK, ahead, 500*time.Millisecond, time.Second, 70*time.Second) {
					return false
				}
			}
			return true
		})
}
