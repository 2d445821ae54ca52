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

	"github.com/kagzi/kagzi/engine/simulate/overlay"
	"github.com/kagzi/kagzi/engine/torture/history"
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
// due at a time that has not come yet would have to wait for it.
func (t *torture) setClock(ctx context.Context, times []time.Duration, set func(ahead time.Duration) error) error {
	t.settings = []setting{{}}
	share := t.options.duration / time.Duration(len(times))
	for _, ahead := range times {
		var err error
		t.rig.fault(fmt.Sprintf("set the clock by %+.1f s", ahead.Seconds()), func() bool {
			t.settings = append(t.settings, setting{history.Now(), ahead})
			err = set(ahead)
			return err == nil
		})
		if err != nil {
			return err
		}
		t.pause(ctx, share, share)
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
	})
}

// skewServerClocks is F-62: they are half a minute apart from the next, and set again and again.
func skewServerClocks(ctx context.Context, t *torture) error {
	const apart = 30 * time.Second
	n := 0
	return t.every(ctx, t.brief(2), t.brief(5), func() error {
		n++
		for i, s := range t.rig.servers {
			ahead := time.Duration((i+n)%len(t.rig.servers)-1) * apart
			t.rig.fault(fmt.Sprintf("set the clock of %s by %s", s.name, ahead), func() bool { s.clock.set(ahead); return true })
		}
		return nil
	})
}

// databaseClock is how Postgres gets a clock that can be set: a library that reads how far it is ahead from a file.
type databaseClock struct{ library, path string }

func newDatabaseClock(path string) (*databaseClock, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		return nil, notHere("libfaketime is not installed (%v)", errors.Join(err, os.ErrNotExist))
	}
	c := &databaseClock{found[0], path}
	return c, c.set(0)
}

func (c *databaseClock) set(ahead time.Duration) error {
	next := c.path + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int64(ahead.Seconds())), 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chmod(next, 0o644), os.Rename(next, c.path))
}

func (c *databaseClock) env() []string {
	return []string{"LD_PRELOAD=" + c.library, "FAKETIME_TIMESTAMP_FILE=" + c.path, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}
}

// setDatabaseClock is F-61.
func setDatabaseClock(ctx context.Context, t *torture) error {
	return t.setClock(ctx, []time.Duration{-time.Hour, 0, time.Hour}, t.rig.cluster.clock.set)
}
