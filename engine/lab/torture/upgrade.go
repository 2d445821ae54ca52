//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// upgradesKilled is how many upgrades of the same database H-01 kills.
const upgradesKilled = 20

// killUpgrades is H-01. Servers of the previous version are killed under load. Their database is
// upgraded again and again from the start, by all servers of the next version at once, which are
// killed at some moment of it. Another start must continue from there to a sound database. The load
// continues with the last of them.
func killUpgrades(ctx context.Context, t *torture) error {
	if !t.pause(ctx, t.brief(6), t.brief(8)) {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	for _, s := range t.system.servers {
		s.kill()
		s.program = t.system.program
	}
	left := filepath.Join(t.system.dir, "left")
	if err := t.system.keepDatabase(ctx, left); err != nil {
		return err
	}
	whole, err := t.upgrade(ctx) // how long it takes without a kill
	if err != nil {
		return err
	}
	for n := range upgradesKilled {
		if err := t.system.putDatabase(ctx, left); err != nil {
			return err
		}
		at := t.system.random.between(whole/10, whole)
		held, err := t.holdUpgrade(ctx, n)
		if err != nil {
			return err
		}
		t.system.fault(fmt.Sprintf("upgrade %d is killed after %s", n+1, at.Round(time.Millisecond)),
			func() (hit bool) {
				hit, err = t.killedUpgrade(at)
				return hit
			})
		held()
		if err == nil {
			err = t.countPending(ctx)
		}
		if err != nil {
			return err
		}
		if _, err := t.upgrade(ctx); err != nil {
			return err
		}
		if err := t.soundNow(ctx); err != nil {
			return err
		}
	}
	for _, s := range t.system.servers {
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// holdUpgrade keeps every second upgrade of Postgres from finishing a migration, which may take
// next to no time: the servers are killed within it. free ends that.
func (t *torture) holdUpgrade(ctx context.Context, n int) (free func(), err error) {
	if t.system.cluster == nil || n%2 == 0 {
		return func() {}, nil
	}
	conn, err := t.system.cluster.Connect(ctx)
	if err != nil {
		return nil, err
	}
	free = func() { conn.Close(ctx) }
	for _, s := range []string{"begin", "lock table schema_migrations in share mode"} {
		// others can read it, but not write to it
		if _, err := conn.Exec(ctx, s); err != nil {
			free()
			return nil, err
		}
	}
	return free, nil
}

// countPending counts the upgrade that was just killed if it left migrations to be applied.
func (t *torture) countPending(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, t.system.program, "db", "status", "--config", "off", "--data-dir",
		filepath.Join(t.system.dir, "status"), "--output", "json")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "KAGZI_DB_URL="+t.system.url())
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the state of the schema: %w: %s", err, out)
	}
	var status struct{ Pending []any }
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("the state of the schema: %w", err)
	}
	if len(status.Pending) > 0 {
		t.cutShort++
	}
	return nil
}

// upgradesCut reports in which part of the upgrades their servers were killed.
func upgradesCut(t *torture) figure {
	return figure{name: "killed upgrades", got: fmt.Sprintf(
		"%d before the new schema was there, %d after", t.cutShort, upgradesKilled-t.cutShort),
		limit: fmt.Sprintf("≥ %d before", leastCutShort), ok: t.cutShort >= leastCutShort}
}

// leastCutShort is how many upgrades must be killed before the new schema is complete.
const leastCutShort = 5

// upgrade starts the servers all at once, and kills them when they serve. No client reaches them,
// because what they acknowledge is thrown away.
func (t *torture) upgrade(ctx context.Context) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, fixture.StartLimit)
	defer cancel()
	lives, err := t.spawnServers()
	defer killAll(lives)
	begun := time.Now()
	for _, life := range lives {
		if err == nil {
			_, err = life.Await(ctx, listening)
		}
	}
	return time.Since(begun), err
}

// killedUpgrade starts the servers all at once and kills them after a time, whatever they have
// done.
func (t *torture) killedUpgrade(after time.Duration) (hit bool, err error) {
	lives, err := t.spawnServers()
	if err == nil {
		time.Sleep(after)
	}
	return killAll(lives), err
}

// spawnServers starts a process for each server, apart from those that clients and workers know.
func (t *torture) spawnServers() (lives []*fixture.Process, err error) {
	for _, s := range t.system.servers {
		life, err := s.spawn()
		if err != nil {
			return lives, err
		}
		lives = append(lives, life)
	}
	return lives, nil
}

func killAll(lives []*fixture.Process) (hit bool) {
	for _, life := range lives {
		hit = life.Kill() || hit
	}
	return hit
}

// keepDatabase copies the database, which no server has open, to another place.
func (r *system) keepDatabase(ctx context.Context, to string) error {
	return r.whileShut(ctx, func() error { return copyTree(ctx, r.databaseDir(), to) })
}

// putDatabase replaces the database by a kept one.
func (r *system) putDatabase(ctx context.Context, from string) error {
	return r.whileShut(ctx, func() error {
		if err := os.RemoveAll(r.databaseDir()); err != nil {
			return err
		}
		return copyTree(ctx, from, r.databaseDir())
	})
}

// databaseDir returns the directory of the database's files.
func (r *system) databaseDir() string {
	if r.cluster != nil {
		return r.cluster.Data()
	}
	return r.shape.DataDir
}

// whileShut does something while no process has the database's files open.
func (r *system) whileShut(ctx context.Context, do func() error) error {
	if r.cluster == nil {
		return do()
	}
	r.cluster.Shut(syscall.SIGINT)
	if err := do(); err != nil {
		return err
	}
	return r.cluster.Start(ctx)
}

func copyTree(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

const (
	// previousCommit is the last version that landed before this one. The two share a database
	// during a rolling upgrade. Update it when you land another version.
	previousCommit = "86c33e940db601b8d14e7ab416e0530969187e2e"
	// olderCommit is the last landed version with an older schema, so that there is an upgrade to
	// kill.
	olderCommit = "3ce01ebef3e00e879850aee3b2448e717121e6c2"
)

// built builds the server's binary of an earlier version from the history of this module, once.
func (o options) built(ctx context.Context, commit string) (string, error) {
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(o.base, "kagzi-"+commit)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fixture.NotHere("there is no history to build the version before from: %v", err)
	}
	text, err := exec.CommandContext(ctx, "git", "-C", strings.TrimSpace(string(root)), "archive", "--format=tar",
		commit).Output()
	if err != nil {
		return "",
			fixture.NotHere(
				"the history does not go back to the version before, %s; if it is a shallow one: git fetch --unshallow",
				commit)
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

// rollingUpgrade is H-02: one server after the other is replaced by the next version, alternately
// stopped and killed. If the previous version knows the schema, they go back in the other order,
// and forward again at the end.
func rollingUpgrade(lastFirst bool) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		servers := slices.Clone(t.system.servers)
		if lastFirst {
			slices.Reverse(servers)
		}
		next, previous := t.system.program, servers[0].program
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

// schemaTooNew is in the message of a server that finds an unknown schema.
const schemaTooNew = "a newer kagzi has used it"

// replace replaces servers by another version, with a pause after each.
func (t *torture) replace(ctx context.Context, servers []*server, program, name string) error {
	ctx = context.WithoutCancel(ctx)
	for n, s := range servers {
		var err error
		t.system.fault(s.name+" becomes the "+name+" version", func() bool {
			if n%2 == 0 {
				t.ends(s.name, s.current())
			} else {
				s.kill()
			}
			// unless it knows the schema
			s.program, s.ends = program, []fixture.Ending{fixture.ExitRefused, fixture.ExitError}
			if err = s.start(ctx); err == nil {
				s.current().MustLast()
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
