//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// upgradesKilled is how many upgrades of the same database H-01 kills.
const upgradesKilled = 20

// killUpgrades is H-01. Servers of the version before are killed under load. What they leave is upgraded again and again from the start, by all
// servers of the next version at once, which are killed at some moment of it; another start has to go on from there, to a sound database. The
// load goes on with the last of them.
func killUpgrades(ctx context.Context, t *torture) error {
	if !t.pause(ctx, t.brief(6), t.brief(8)) {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	for _, s := range t.rig.servers {
		s.kill()
		s.program = t.rig.program
	}
	left := filepath.Join(t.rig.dir, "left")
	if err := t.rig.keepDatabase(ctx, left); err != nil {
		return err
	}
	whole, err := t.upgrade(ctx) // how long it takes when nobody kills it
	if err != nil {
		return err
	}
	for n := range upgradesKilled {
		if err := t.rig.putDatabase(ctx, left); err != nil {
			return err
		}
		at := t.rig.luck.between(whole/10, whole)
		held, err := t.holdUpgrade(ctx, n)
		if err != nil {
			return err
		}
		t.rig.fault(fmt.Sprintf("upgrade %d is killed after %s", n+1, at.Round(time.Millisecond)), func() (hit bool) {
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
	for _, s := range t.rig.servers {
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// holdUpgrade keeps every second upgrade of Postgres from coming to the end of a migration, each of which may take next to no time: the servers
// are killed within it. free ends that.
func (t *torture) holdUpgrade(ctx context.Context, n int) (free func(), err error) {
	if t.rig.cluster == nil || n%2 == 0 {
		return func() {}, nil
	}
	conn, err := t.rig.cluster.connect(ctx)
	if err != nil {
		return nil, err
	}
	free = func() { conn.Close(ctx) }
	for _, s := range []string{"begin", "lock table schema_migrations in share mode"} { // others read it, and cannot write to it
		if _, err := conn.Exec(ctx, s); err != nil {
			free()
			return nil, err
		}
	}
	return free, nil
}

// countPending counts the upgrade that was just killed if it has left migrations to be applied.
func (t *torture) countPending(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, t.rig.program, "db", "status", "--config", "off", "--data-dir", filepath.Join(t.rig.dir, "status"), "--output", "json")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "KAGZI_DB_URL="+t.rig.url())
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

// upgradesCut tells in which part of the upgrades their servers were killed.
func upgradesCut(t *torture) figure {
	return figure{name: "killed upgrades", got: fmt.Sprintf("%d before the new schema was there, %d after", t.cutShort, upgradesKilled-t.cutShort),
		limit: fmt.Sprintf("≥ %d before", leastCutShort), ok: t.cutShort >= leastCutShort}
}

// leastCutShort is how many of the killed upgrades have to have been killed before the new schema was there.
const leastCutShort = 5

// upgrade starts the servers all at once, and kills them when they serve. Nobody reaches them, as what they would acknowledge is not to stay.
func (t *torture) upgrade(ctx context.Context) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	lives, err := t.spawnServers()
	defer killAll(lives)
	begun := time.Now()
	for _, life := range lives {
		if err == nil {
			_, err = life.await(ctx, listening)
		}
	}
	return time.Since(begun), err
}

// killedUpgrade starts the servers all at once and kills them after a time, whatever they have done.
func (t *torture) killedUpgrade(after time.Duration) (hit bool, err error) {
	lives, err := t.spawnServers()
	if err == nil {
		time.Sleep(after)
	}
	return killAll(lives), err
}

// spawnServers starts a process for each server, beside those that clients and workers know.
func (t *torture) spawnServers() (lives []*process, err error) {
	for _, s := range t.rig.servers {
		life, err := s.spawn()
		if err != nil {
			return lives, err
		}
		lives = append(lives, life)
	}
	return lives, nil
}

func killAll(lives []*process) (hit bool) {
	for _, life := range lives {
		hit = life.kill() || hit
	}
	return hit
}

// keepDatabase copies the database, which no server has, to another place.
func (r *rig) keepDatabase(ctx context.Context, to string) error {
	return r.whileShut(ctx, func() error { return copyTree(ctx, r.databaseDir(), to) })
}

// putDatabase puts a kept database in the place of the one that is there.
func (r *rig) putDatabase(ctx context.Context, from string) error {
	return r.whileShut(ctx, func() error {
		if err := os.RemoveAll(r.databaseDir()); err != nil {
			return err
		}
		return copyTree(ctx, from, r.databaseDir())
	})
}

// databaseDir is where the files of the database are.
func (r *rig) databaseDir() string {
	if r.cluster != nil {
		return r.cluster.data()
	}
	return r.shape.DataDir
}

// whileShut does something while no process has the files of the database.
func (r *rig) whileShut(ctx context.Context, do func() error) error {
	if r.cluster == nil {
		return do()
	}
	r.cluster.shut(syscall.SIGINT)
	if err := do(); err != nil {
		return err
	}
	return r.cluster.start(ctx)
}

func copyTree(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}
