//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// server is a slot for server processes, one after the other, behind a proxy that stays.
type server struct {
	system   *system
	name     string
	program  string             // its binary
	door     *fixture.Proxy     // for clients and workers
	agq      *fixture.Proxy     // for those of AGQ; nil: there is none
	database *fixture.Proxy     // to Postgres; nil with SQLite
	clock    *fixture.WallClock // nil: that of the machine

	mu     sync.Mutex
	life   *fixture.Process
	direct string           // its address behind the proxy
	env    []string         // of the next life only
	ends   []fixture.Ending // of the next life: how it may end by itself
	wrap   []string
	starts []time.Duration // how long each life took until it served
}

func (r *system) addServer(name string) (*server, error) {
	s := &server{system: r, name: name, program: cmp.Or(r.previous, r.program), wrap: r.shape.Wrap}
	var err error
	if s.door, err = fixture.NewProxy("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if r.shape.AGQ {
		if s.agq, err = fixture.NewProxy("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	if r.shape.Clocks {
		if s.clock, err = fixture.NewWallClock(filepath.Join(r.dir, name+".clock")); err != nil {
			return nil, err
		}
	}
	if r.cluster != nil {
		if s.database, err = fixture.NewProxy("unix", cmp.Or(r.bounce, r.cluster.Socket())); err != nil {
			return nil, err
		}
	}
	r.servers = append(r.servers, s)
	return s, nil
}

func (s *server) url() string {
	if s.database != nil {
		return s.system.cluster.URL(s.database.Address())
	}
	return s.system.url()
}

// listening matches what a server prints when it serves.
var listening = regexp.MustCompile(`address +(127\.0\.0\.1:[1-9][0-9]*)`)

// listeningAGQ matches the line that says where it serves AGQ.
var listeningAGQ = regexp.MustCompile(`agq +(127\.0\.0\.1:[1-9][0-9]*)`)

// command returns the command line of a server on this slot's database.
func (s *server) command(flags ...string) *exec.Cmd {
	r := s.system
	args := slices.Concat(s.wrap, []string{s.program, "server", "--listen", "127.0.0.1:0", "--http", "off",
		"--config", "off",
		"--data-dir", filepath.Join(r.dir, s.name), "--worker-lease", r.shape.Lease.String(), "--heartbeat-interval",
		r.shape.Heartbeat.String(),
		"--coordinator-interval", "1s", "--drain-timeout", "10s", "--log-format", "json"}, r.shape.ServerFlags, flags)
	if s.agq != nil {
		args = append(args, "--agq", "127.0.0.1:0")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "KAGZI_DB_URL="+s.url())
	cmd.Env = append(append(cmd.Env, r.shape.ServerEnv...), s.env...)
	if s.clock != nil {
		cmd.Env = append(cmd.Env, fixture.ClockVariable+"="+s.clock.Path)
	}
	return cmd
}

func isSetting(pair string) bool { return len(pair) > 6 && pair[:6] == "KAGZI_" }

// start begins a life of the server and waits until it serves.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(filepath.Join(s.system.dir, s.name), 0o700); err != nil {
		return err
	}
	begun := time.Now()
	life, err := s.spawn()
	if err != nil {
		return err
	}
	s.life, s.env, s.ends = life, nil, nil
	ctx, cancel := context.WithTimeout(ctx, fixture.StartLimit)
	defer cancel()
	address, err := life.Await(ctx, listening)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if s.agq != nil {
		at, err := life.Await(ctx, listeningAGQ)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.agq.Aim(at)
	}
	s.direct = address
	s.door.Aim(address)
	s.starts = append(s.starts, time.Since(begun))
	return nil
}

// kill ends the server's life with SIGKILL.
func (s *server) kill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.Kill()
}

// current returns the server's life.
func (s *server) current() *fixture.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// spawn begins a life of the server. The proxy does not lead to it yet.
func (s *server) spawn() (*fixture.Process, error) {
	return fixture.SpawnFollowed(s.command(), filepath.Join(s.system.dir, s.name+".log"),
		slices.Concat(s.system.shape.Ends, s.ends), s.follow)
}

// follow checks a life that has ended. A kill does not hide an earlier end: how a process ended
// shows which of the two was first.
func (s *server) follow(life *fixture.Process) {
	if way := life.Ending(); !life.Called(way) {
		s.system.died("%s ended by itself with %s: %s", s.name, life.Cmd.ProcessState, life.Out.Tail())
	}
	if n, first := life.Out.Defects(); n > 0 {
		s.system.died("%s told of a defect in %d lines: %s", s.name, n, first)
	}
}
