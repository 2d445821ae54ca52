//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// cluster is a private Postgres on a socket in its own directory.
type cluster struct {
	bin, dir string
	owner    *syscall.Credential
}

func newCluster(ctx context.Context, dir string) (*cluster, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errors.New("no PostgreSQL server is installed"), err)
	}
	c := &cluster{bin: found[len(found)-1], dir: dir}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // Postgres refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		c.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := c.tool(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		_ = c.stop(context.WithoutCancel(ctx), "immediate") // if it came up after all
		return nil, err
	}
	return c, nil
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) url() string { return "postgres://postgres@/postgres?host=" + c.dir }

func (c *cluster) tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: c.owner}
	if err := cmd.Run(); err != nil { // its output stays unread: the server that pg_ctl starts would keep the pipe open
		return fmt.Errorf("%s %v: %w", name, args, err)
	}
	return nil
}

func (c *cluster) start(ctx context.Context) error {
	return c.tool(ctx, "pg_ctl", "start", "-w", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-o", "-k "+c.dir+" -c listen_addresses=")
}

// stop ends it in a mode of pg_ctl: fast, or immediate, which is a crash.
func (c *cluster) stop(ctx context.Context, mode string) error {
	return c.tool(ctx, "pg_ctl", "stop", "-w", "-m", mode, "-D", c.data())
}
