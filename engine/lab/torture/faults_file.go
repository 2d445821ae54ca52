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

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// one is a system of one server without workers, on SQLite.
func one(ctx context.Context, o options, change func(s *shape)) (*system, error) {
	s := shape{Servers: 1, Lease: 2 * time.Second, Heartbeat: 500 * time.Millisecond}
	if change != nil {
		change(&s)
	}
	o.db = dbSQLite
	return newSystem(ctx, o, s)
}

// shareFile is F-47: a second server on the file of the first, under several names.
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
	holder := fmt.Sprint(r.servers[0].current().PID())
	for _, name := range []struct{ path, says string }{{file, holder}, {symbolic, holder}, {hard, "hard links"}} {
		f := figure{name: "a second server on " + filepath.Base(name.path),
			limit: "ends within 2 s, and says why: " + name.says, hard: true}
		second := &server{system: r, name: "second", program: r.program, door: r.servers[0].door}
		second.env, second.ends = []string{"KAGZI_DB_URL=sqlite:" + name.path}, []fixture.Ending{fixture.ExitRefused}
		begun := time.Now()
		life, err := second.spawn()
		if err != nil {
			return nil, err
		}
		select {
		case <-life.Done:
			f.got = fmt.Sprintf("ended with %s after %s", life.Cmd.ProcessState, round(time.Since(begun)))
			f.ok = life.Ending() == fixture.ExitRefused && time.Since(begun) < 2*time.Second &&
				strings.Contains(life.Out.Tail(), name.says)
			if !f.ok {
				f.got += ": " + life.Out.Tail()
			}
		case <-time.After(5 * time.Second):
			f.got = "it serves"
			life.Kill()
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

// loseFile is F-49: the file or its log is moved away from under a server.
func loseFile(ctx context.Context, o options) (*report, error) {
	deeds := []struct {
		name string
		do   func(file string) error
	}{
		{"the log is deleted", func(file string) error { return os.Remove(file + "-wal") }},
		{"the file is renamed", func(file string) error { return os.Rename(file, file+".away") }},
		{"another file is put in its place", func(file string) error {
			if err := fixture.CopyFile(file, file+".copy"); err != nil {
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
	f := figure{
		limit: fmt.Sprintf(
			"noticed within 30 s: the server stops with exit code %d, and nothing that was asked for after is acknowledged", fixture.ExitDisk), hard: true}
	r, err := one(ctx, o, nil)
	defer r.close()
	if err != nil {
		return f, err
	}
	l, err := workload.NewLoad(workload.Standard, o.seed, standardRate, r.doors(), 1)
	if err != nil {
		return f, err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := l.Clients[0]
	r.servers[0].current().MayEnd(fixture.ExitDisk)
	for n := range 20 {
		c.Start(ctx, l.Mix.Errand(o.seed, n))
	}
	if err := do(r.sqliteFile()); err != nil {
		return f, err
	}
	begun, since := time.Now(), history.Now()
	for n := 20; ctx.Err() == nil && !r.servers[0].current().Ended(); n++ {
		once, stop := context.WithTimeout(ctx, time.Second)
		c.Start(once, l.Mix.Errand(o.seed, n))
		stop()
	}
	life := r.servers[0].current()
	f.got, f.ok = lost(c.Log.Events(), since, life.Ended(), life.Ending)
	f.got += fmt.Sprintf(", after %s", round(time.Since(begun)))
	if !f.ok {
		f.got += ": " + life.Out.Tail()
	}
	return f, nil
}

// lost judges a server whose file was moved away: it must have ended by itself and acknowledged
// nothing since.
func lost(events []history.Event, since int64, over bool, exit func() fixture.Ending) (got string, ok bool) {
	before, after := 0, 0
	for _, e := range events {
		switch {
		case e.Op != history.Start || e.Outcome != history.OK:
		case e.Invoked < since:
			before++
		default:
			after++
		}
	}
	got = fmt.Sprintf("%d starts were acknowledged before and %d after, ", before, after)
	if !over {
		return got + "and the server still runs", false
	}
	return got + fmt.Sprintf("the server stopped with exit code %d", exit()), exit() == fixture.ExitDisk &&
		before > 0 && after == 0
}

// exitUnsafe is the exit code of a server with unsafe settings.
const exitUnsafe = 78

// permissions is F-53: files of a server belong to its owner alone, whatever the umask, and it does
// not serve files that others may change.
func permissions(ctx context.Context, o options) (*report, error) {
	r, err := one(ctx, o, func(s *shape) { s.Servers = 0 })
	defer r.close()
	if err != nil {
		return nil, err
	}
	result := &report{}
	for _, mask := range []int{0, 0o077} {
		dir := filepath.Join(o.dir, fmt.Sprintf("umask-%03o", mask), "data")
		if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
			return nil, err
		}
		r.shape.ServerFlags = []string{"--data-dir", dir}
		s, err := r.addServer(fmt.Sprintf("server-%03o", mask))
		if err != nil {
			return nil, err
		}
		s.env = []string{"KAGZI_DB_URL="}
		old := syscall.Umask(mask)
		err = s.start(ctx)
		syscall.Umask(old)
		if err != nil {
			return nil, err
		}
		f, err := private(dir)
		if err != nil {
			return nil, err
		}
		f.name = fmt.Sprintf("modes of what a server makes under umask %03o", mask)
		result.figures = append(result.figures, f)
		s.kill()
		if f, err = exposed(s, dir); err != nil {
			return nil, err
		}
		result.figures = append(result.figures, f)
	}
	return result, nil
}

// private requires a directory and its content to be accessible to the owner only.
func private(dir string) (figure, error) {
	f := figure{limit: "0700 and 0600", ok: true, hard: true}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return f, err
	}
	for _, path := range append([]string{dir}, found...) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return f, err
		}
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		f.got += fmt.Sprintf("%s %04o ", filepath.Base(path), info.Mode().Perm())
		f.ok = f.ok && info.Mode().Perm() == want
	}
	f.ok = f.ok && len(found) > 2 // the file, its log and the log's index
	return f, nil
}

// exposed requires a server to refuse a directory that others may write to with a database in it.
func exposed(s *server, dir string) (figure, error) {
	f := figure{name: "a server on a world-writable directory and file",
		limit: fmt.Sprintf("ends with exit code %d, and names the directory", exitUnsafe), hard: true}
	if err := errors.Join(os.Chmod(filepath.Join(dir, "kagzi.db"), 0o666), os.Chmod(dir, 0o777)); err != nil {
		return f, err
	}
	s.env = []string{"KAGZI_DB_URL="}
	life, err := fixture.Spawn(s.command(), filepath.Join(s.system.dir, s.name+".log"))
	if err != nil {
		return f, err
	}
	select {
	case <-life.Done:
		f.got = fmt.Sprintf("ended with %s", life.Cmd.ProcessState)
		f.ok = life.Exit() == exitUnsafe && strings.Contains(life.Out.Tail(), dir)
		if !f.ok {
			f.got += ": " + life.Out.Tail()
		}
	case <-time.After(5 * time.Second):
		f.got = "it serves"
		life.Kill()
	}
	return f, nil
}
