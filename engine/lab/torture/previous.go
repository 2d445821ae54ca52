//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// previousCommit is the last version that landed before this one. The two share a database while servers are replaced one after the other;
	// whoever lands another version writes here which one is the last then.
	previousCommit = "86c33e940db601b8d14e7ab416e0530969187e2e"
	// olderCommit is the last landed version that had an older schema, so that there is an upgrade to be killed.
	olderCommit = "3ce01ebef3e00e879850aee3b2448e717121e6c2"
)

// built is the server's binary of a version before, from the history of this module; it is built once.
func (o options) built(ctx context.Context, commit string) (string, error) {
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(o.base, "kagzi-"+commit)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", notHere("there is no history to build the version before from: %v", err)
	}
	text, err := exec.CommandContext(ctx, "git", "-C", strings.TrimSpace(string(root)), "archive", "--format=tar", commit).Output()
	if err != nil {
		return "", notHere("the history does not go back to the version before, %s; if it is a shallow one: git fetch --unshallow", commit)
	}
	dir := filepath.Join(o.base, commit)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(text)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, build(ctx, dir, path)
}

// rollingUpgrade is H-02: one server after the other becomes one of the next version, by turns stopped in good order and killed; and, if the version
// before knows the schema, back again, in the other order, until all are of the next version in the end.
func rollingUpgrade(lastFirst bool) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		servers := slices.Clone(t.rig.servers)
		if lastFirst {
			slices.Reverse(servers)
		}
		next, previous := t.rig.program, servers[0].program
		t.pause(ctx, t.brief(3), t.brief(6))
		for {
			if err := t.replace(ctx, servers, next, "next"); err != nil || ctx.Err() != nil {
				return err
			}
			slices.Reverse(servers)
			switch err := t.replace(ctx, servers, previous, "previous"); {
			case err != nil && strings.Contains(err.Error(), schemaTooNew):
				s := servers[0] // the first that was to go back
				s.program = next
				err = s.start(context.WithoutCancel(ctx))
				<-ctx.Done()
				return err
			case err != nil:
				return err
			}
		}
	}
}

// schemaTooNew is in what a server says that finds a schema which it does not know.
const schemaTooNew = "a newer kagzi has used it"

// replace has servers become those of another version, with a pause after each.
func (t *torture) replace(ctx context.Context, servers []*server, program, name string) error {
	ctx = context.WithoutCancel(ctx)
	for n, s := range servers {
		var err error
		t.rig.fault(s.name+" becomes the "+name+" version", func() bool {
			if n%2 == 0 {
				t.ends(s.name, s.current())
			} else {
				s.kill()
			}
			s.program, s.ends = program, []ending{exitRefused, exitError} // unless it knows the schema
			if err = s.start(ctx); err == nil {
				s.current().mustLast()
			}
			return err == nil || strings.Contains(err.Error(), schemaTooNew)
		})
		if err != nil {
			return err
		}
		t.pause(ctx, t.brief(6), t.brief(9))
	}
	return nil
}
