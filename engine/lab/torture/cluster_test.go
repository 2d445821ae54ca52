//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestAnEndedClusterLeavesNothing(t *testing.T) {
	for name, before := range map[string]func(c *cluster){
		"one that runs":               func(*cluster) {},
		"one that stands still":       func(c *cluster) { c.life.signal(syscall.SIGSTOP) },
		"one that was killed":         func(c *cluster) { c.kill() },
		"one that was ended":          func(c *cluster) { c.end() },
		"one that has never begun":    func(c *cluster) { c.life.kill(); c.life = nil },
		"one that was killed outside": func(c *cluster) { c.life.kill() },
	} {
		dir := t.TempDir()
		memory := filepath.Join(dir, "memory")
		cmd := exec.Command("sh", "-c", `trap "rm -f memory; exit 0" QUIT; echo up; while :; do sleep 0.01; done`)
		cmd.Dir = dir
		life, err := spawn(cmd, filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		<-life.out.bell
		if err := os.WriteFile(memory, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c := &cluster{dir: dir, life: life}
		before(c)
		killed := life.ended() && life.ending() == bySignal(syscall.SIGKILL)
		if killed {
			c.left = []leftover{{path: memory}}
		}
		begun := c.life != nil
		c.end()
		if !life.ended() {
			t.Errorf("%s is not ended", name)
		}
		if way := life.ending(); !killed && way != 0 {
			t.Errorf("%s ended with %d, want 0", name, way)
		}
		if _, err := os.Stat(memory); begun && err == nil {
			t.Errorf("%s has left something", name)
		}
	}
}

func TestSharedMemoryInTheMapsOfAProcess(t *testing.T) {
	for line, want := range map[string][]leftover{
		"7f9700000000-7f9700107000 rw-s 00000000 00:1c 77                         /dev/shm/PostgreSQL.1061173224\n":      {{path: "/dev/shm/PostgreSQL.1061173224"}},
		"7f9700a3e000-7f9700a3f000 rw-s 00000000 00:01 163873                     /SYSV009e02c3 (deleted)\n":             {{id: 163873}},
		"7f96f7600000-7f9700000000 rw-s 00000000 00:01 1051                       /dev/zero (deleted)\n":                 nil,
		"7f9701000000-7f9701021000 rw-p 00000000 00:00 0 \n":                                                             nil,
		"7f9701000000-7f9701021000 r-xp 00000000 fe:00 4660                       /usr/lib/postgresql/15/bin/postgres\n": nil,
		"7f9700000000-7f9700107000 rw-s 00000000 00:1c 78                         /dev/shm/of.somebody.else\n":           nil,
	} {
		if got := sharedIn(line); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
