//go:build linux

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kagzi/kagzi/engine/lab/overlay"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// clockPatch gives a program a wall clock that can be set, as for the whole machine, while its monotonic clock goes on.
//
//go:embed clock.patch
var clockPatch string

// clockVariable names the file that says how far the clock is ahead.
const clockVariable = "KAGZI_TORTURE_CLOCK"

// wallClock is the wall clock of a process that was built with clockPatch. It can be set at any time, and at once.
type wallClock struct {
	path   string
	shared []byte
}

func newWallClock(path string) (*wallClock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := file.Truncate(int64(unsafe.Sizeof(int64(0)))); err != nil {
		return nil, err
	}
	c := &wallClock{path: path}
	c.shared, err = unix.Mmap(int(file.Fd()), 0, int(unsafe.Sizeof(int64(0))), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return c, err
}

// set makes the clock show the true time and ahead.
func (c *wallClock) set(ahead time.Duration) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&c.shared[0])), int64(ahead))
}

func (c *wallClock) close() { _ = unix.Munmap(c.shared) }

// withClock is the server's binary with a clock that can be set; it is built once. That takes some minutes, for everything is built with it.
func (o options) withClock(ctx context.Context) (string, error) {
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(o.base, "kagzi-clock")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", notHere("there is no Go to build a server with a clock that can be set: %v", err)
	}
	dir := filepath.Join(o.base, "clock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	_, edits, err := overlay.Parse(clockPatch)
	if err != nil {
		return "", fmt.Errorf("clock.patch: %w", err)
	}
	file, err := overlay.Write(dir, strings.TrimSpace(string(root)), edits)
	if err != nil {
		return "", fmt.Errorf("this version of Go is not the one that clock.patch was written for: %w", err)
	}
	return path, build(ctx, ".", path, "-overlay", file)
}

// setting is a moment from which on a clock was ahead by so much.
type setting struct {
	at    int64 // as of history.Now
	ahead time.Duration
}

// furthest is by how much the clock was ahead at most in the time before a moment in which somebody may have read what was then acted upon.
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

// ahead is how far the clock that the servers go by was left ahead.
func (t *torture) ahead() time.Duration {
	if len(t.settings) == 0 {
		return 0
	}
	return t.settings[len(t.settings)-1].ahead
}

// byTheirClock counts how early sleeps ended by the clock that was set, and not by that of the worker.
func (t *torture) byTheirClock(events []history.Event) {
	for i := range events {
		if events[i].Woken {
			events[i].Early -= int64(furthest(t.settings, events[i].Returned, t.scenario.readings))
		}
	}
}

// setClock sets a clock to one time after the other, each for the same share of the duration. What it is set to last is the furthest ahead, for what was
// due at a time that has not come yet would have to wait for it. It did hit when that is shown by what servers do.
func (t *torture) setClock(ctx context.Context, times []time.Duration, set func(ahead time.Duration) error, shown func(ahead time.Duration) bool) error {
	t.settings = []setting{{}}
	share := t.options.duration / time.Duration(len(times))
	for _, ahead := range times {
		next := time.Now().Add(share)
		var err error
		t.rig.fault(fmt.Sprintf("set the clock by %+.1f s", ahead.Seconds()), func() bool {
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
		for _, s := range t.rig.servers {
			s.clock.set(ahead)
		}
		return nil
	}, func(ahead time.Duration) bool {
		return t.stampsShow(ctx, t.load.clients[0].sdk, ahead, time.Millisecond, 40*time.Millisecond, 5*time.Second)
	})
}

// skewServerClocks is F-62: they are half a minute apart from the next, and set again and again. Each has to tell that its clock differs from that of
// Postgres, and to go by that one all the same.
func skewServerClocks(ctx context.Context, t *torture) error {
	const apart, slack = 30 * time.Second, 2 * time.Second
	n := 0
	return t.every(ctx, t.brief(2), t.brief(5), func() error {
		ctx := context.WithoutCancel(ctx)
		n++
		for i, s := range t.rig.servers {
			ahead := time.Duration((i+n)%len(t.rig.servers)-1) * apart
			c := t.load.clients[i].sdk // which there is one of for each server
			t.rig.fault(fmt.Sprintf("set the clock of %s by %s", s.name, ahead), func() bool {
				s.clock.set(ahead)
				return offsetShows(ctx, c, ahead, slack, 5*time.Second)
			})
			if stamp, err := t.stampAt(ctx, c); err == nil && !stamp.shows(0, slack, callLimit) {
				t.rig.report("%s, whose clock is ahead by %s, stamped a run by %s to %s ahead", s.name, ahead, stamp.from, stamp.to)
			}
		}
		return nil
	})
}

// databaseClock is how Postgres gets a clock that can be set. Where libfaketime is installed, Postgres reads from a file how far it is ahead. Else a
// function stands before the one that Kagzi asks for the time, which is all that it wants to know of that clock.
type databaseClock struct {
	library, path string // of libfaketime; library is empty where it is not installed
	cluster       *cluster
}

func newDatabaseClock(c *cluster, path string) (*databaseClock, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return &databaseClock{cluster: c}, nil
	}
	clock := &databaseClock{found[0], path, c}
	return clock, clock.set(0)
}

// install is called when Postgres has been started for the first time.
func (c *databaseClock) install(ctx context.Context) error {
	if c.library != "" {
		return nil
	}
	return c.cluster.ask(ctx,
		"create schema clock",
		"create table clock.ahead as select 0::bigint as seconds",
		"create function clock.clock_timestamp() returns timestamptz volatile language sql as "+
			"'select pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => seconds) from clock.ahead'",
		"alter database postgres set search_path = public, clock, pg_catalog") // else pg_catalog comes first
}

func (c *databaseClock) set(ahead time.Duration) error {
	if c.library == "" {
		return c.cluster.ask(context.Background(), fmt.Sprintf("update clock.ahead set seconds = %d", int64(ahead.Seconds())))
	}
	next := c.path + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int64(ahead.Seconds())), 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chmod(next, 0o644), os.Rename(next, c.path))
}

func (c *databaseClock) env() []string {
	if c.library == "" {
		return nil
	}
	return []string{"LD_PRELOAD=" + c.library, "FAKETIME_TIMESTAMP_FILE=" + c.path, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}
}

// setDatabaseClock is F-61. A server takes a new reading once a minute.
func setDatabaseClock(ctx context.Context, t *torture) error {
	return t.setClock(ctx, []time.Duration{-time.Hour, 0, time.Hour}, t.rig.cluster.clock.set, func(ahead time.Duration) bool {
		for i := range t.rig.servers {
			if !t.stampsShow(ctx, t.load.clients[i].sdk, ahead, 500*time.Millisecond, time.Second, 70*time.Second) {
				return false
			}
		}
		return true
	})
}
