//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/torture/history"
)

// one is a rig of one server without workers, on SQLite.
func one(ctx context.Context, o options, change func(s *shape)) (*rig, error) {
	s := shape{Servers: 1, Lease: 2 * time.Second, Heartbeat: 500 * time.Millisecond}
	if change != nil {
		change(&s)
	}
	o.db = dbSQLite
	return newRig(ctx, o, s)
}

// shareFile is F-47: a second server on the file of the first, by several names of it.
func shareFile(ctx context.Context, o options) (*report, error) {
	r, err := one(ctx, o, nil)
	defer r.close()
	if err != nil {
		return nil, err
	}
	file, links := r.sqliteFile(), filepath.Join(o.dir, "links")
	symbolic, hard := filepath.Join(links, "symbolic.db"), filepath.Join(links, "hard.db")
	if err := errors.Join(os.Mkdir(links, 0o700), os.Symlink(file, symbolic), os.Link(file, hard)); err != nil {
		return nil, err
	}
	result := &report{}
	holder := fmt.Sprint(r.servers[0].current().pid())
	for _, name := range []struct{ path, says string }{{file, holder}, {symbolic, holder}, {hard, "hard links"}} {
		f := figure{name: "a second server on " + filepath.Base(name.path), limit: "ends within 2 s, and says why: " + name.says, hard: true}
		second := &server{rig: r, name: "second", program: r.program, door: r.servers[0].door}
		second.env, second.ends = []string{"KAGZI_DB_URL=sqlite:" + name.path}, []ending{exitUnserved}
		begun := time.Now()
		life, err := second.spawn()
		if err != nil {
			return nil, err
		}
		select {
		case <-life.done:
			f.got = fmt.Sprintf("ended with %s after %s", life.cmd.ProcessState, round(time.Since(begun)))
			f.ok = life.ending() == exitUnserved && time.Since(begun) < 2*time.Second && strings.Contains(life.out.tail(), name.says)
			if !f.ok {
				f.got += ": " + life.out.tail()
			}
		case <-time.After(5 * time.Second):
			f.got = "it serves"
			life.kill()
		}
		result.figures = append(result.figures, f)
	}
	if err := os.Remove(hard); err != nil {
		return nil, err
	}
	again := figure{name: "a server after the first was killed", limit: "serves", ok: true, hard: true}
	r.servers[0].kill()
	if err := r.servers[0].start(ctx); err != nil {
		again.ok, again.got = false, err.Error()
	} else {
		again.got = "serves after " + round(r.servers[0].starts[1]).String()
	}
	result.figures = append(result.figures, again)
	return result, nil
}

// loseFile is F-49: the file, or its log, is taken away from under a server.
func loseFile(ctx context.Context, o options) (*report, error) {
	deeds := []struct {
		name string
		do   func(file string) error
	}{
		{"the log is deleted", func(file string) error { return os.Remove(file + "-wal") }},
		{"the file is renamed", func(file string) error { return os.Rename(file, file+".away") }},
		{"another file is put in its place", func(file string) error {
			if err := copyFile(file, file+".copy"); err != nil {
				return err
			}
			return os.Rename(file+".copy", file)
		}},
	}
	result := &report{}
	for n, deed := range deeds {
		o := o
		o.dir = filepath.Join(o.dir, fmt.Sprint(n))
		if err := os.Mkdir(o.dir, 0o755); err != nil {
			return nil, err
		}
		f, err := loseOne(ctx, o, deed.do)
		if err != nil {
			return nil, err
		}
		f.name = deed.name
		result.figures = append(result.figures, f)
	}
	return result, nil
}

func loseOne(ctx context.Context, o options, do func(file string) error) (figure, error) {
	const limit = 30 * time.Second
	f := figure{limit: "noticed within 30 s: the server stops and nothing more is acknowledged", hard: true}
	r, err := one(ctx, o, nil)
	defer r.close()
	if err != nil {
		return f, err
	}
	l, err := newLoad(standard, o.seed, standardRate, r.servers, 1)
	if err != nil {
		return f, err
	}
	defer l.close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := l.clients[0]
	r.servers[0].current().mayEnd(exitDisk)
	for n := range 20 {
		c.start(ctx, l.mix.errand(o.seed, n))
	}
	if err := do(r.sqliteFile()); err != nil {
		return f, err
	}
	begun := time.Now()
	for n := 20; ctx.Err() == nil && !r.servers[0].current().ended(); n++ {
		once, stop := context.WithTimeout(ctx, time.Second)
		c.start(once, l.mix.errand(o.seed, n))
		stop()
	}
	after := 0
	for _, e := range c.log.Events() {
		if e.Op == history.Start && e.Outcome == history.OK {
			after++
		}
	}
	life := r.servers[0].current()
	if !life.ended() {
		f.got = fmt.Sprintf("it goes on, %d starts were acknowledged after", after-20)
		return f, nil
	}
	f.got = fmt.Sprintf("stopped after %s with exit code %d, %d starts acknowledged until then", round(time.Since(begun)), life.exit(), after-20)
	f.ok = life.ending() == exitDisk
	return f, nil
}

// permissions is F-53.
func permissions(ctx context.Context, o options) (*report, error) {
	old := syscall.Umask(0)
	r, err := one(ctx, o, func(s *shape) {
		s.ServerFlags = []string{"--db", "sqlite:" + filepath.Join(o.dir, "server-1", "kagzi.db")}
	})
	syscall.Umask(old)
	defer r.close()
	if err != nil {
		return nil, err
	}
	f := figure{name: "modes of the files that a server makes under umask 000", limit: "0600", ok: true, hard: true}
	found, err := filepath.Glob(filepath.Join(o.dir, "server-1", "*"))
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.got += fmt.Sprintf("%s %04o ", filepath.Base(path), info.Mode().Perm())
		f.ok = f.ok && info.Mode().Perm()&0o077 == 0
	}
	f.ok = f.ok && len(found) > 1
	return &report{figures: []figure{f}}, nil
}
