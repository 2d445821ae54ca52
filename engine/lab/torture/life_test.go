//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// actor is a server whose program is a script.
func actor(t *testing.T, script string) *server {
	t.Helper()
	dir := t.TempDir()
	r := &system{dir: dir, program: filepath.Join(dir, "program")}
	if err := os.WriteFile(r.program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	door, err := fixture.NewProxy("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	r.servers = []*server{{system: r, name: "s", program: r.program, door: door}}
	return r.servers[0]
}

const (
	serves  = "echo address 127.0.0.1:1; "
	lasts   = serves + "exec sleep 60"
	panics  = serves + "echo 'panic: x' >&2; exit 2"
	survive = `echo '{"level":"ERROR","msg":"internal error","error":"panic: x"}'; `
)

func TestAnUnexpectedEndIsReported(t *testing.T) {
	ends := func(s *server) { s.life.Exit() }
	kills := func(s *server) { s.kill() }
	late := func(s *server) { s.life.Exit(); s.kill() }
	stops := func(s *server) { _ = s.life.Stop(stopLimit) }
	for name, test := range map[string]struct {
		script string
		ways   []fixture.Ending
		then   func(s *server)
		want   []string
	}{
		"an exit code":                    {serves + "exit 70", nil, ends, []string{"exit status 70"}},
		"an exit code that is called for": {serves + "exit 70", []fixture.Ending{fixture.ExitDisk}, ends, nil},
		"another than the one called for": {
			serves + "exit 71", []fixture.Ending{fixture.ExitDisk}, ends, []string{"exit status 71"}},
		"a good end": {serves + "exit 0", nil, ends, []string{"exit status 0"}},
		"a signal":   {serves + "kill -9 $$", nil, ends, []string{"signal: killed"}},
		"a signal that is called for": {
			serves + "kill -9 $$", []fixture.Ending{fixture.BySignal(syscall.SIGKILL)}, ends, nil},
		"another signal than the one": {
			serves + "kill -6 $$", []fixture.Ending{fixture.BySignal(syscall.SIGKILL)}, ends,
			[]string{"signal: aborted"}},
		"a kill":                              {lasts, nil, kills, nil},
		"a kill of what has ended":            {serves + "exit 70", nil, late, []string{"exit status 70"}},
		"a kill of what has ended by a panic": {panics, nil, late, []string{"exit status 2", "panic: x"}},
		"a kill of what has survived a panic": {survive + lasts, nil, kills, []string{"panic: x"}},
		"a stop": {
			"trap 'exit 0' TERM; " + serves + "while :; do sleep 0.01; done", nil, stops, nil},
		"a stop that does not end well": {
			"trap 'exit 3' TERM; " + serves + "while :; do sleep 0.01; done", nil, stops, []string{"exit status 3"}},
		"a panic in an end that was called for": {panics, []fixture.Ending{2}, ends, []string{"panic: x"}},
	} {
		s := actor(t, test.script)
		s.ends = test.ways
		if err := s.start(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		test.then(s)
		got := s.system.deaths
		for i := range min(len(got), len(test.want)) {
			if !strings.Contains(got[i], test.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], test.want[i])
			}
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestAllowedEndsBelongToOneLife(t *testing.T) {
	s := actor(t, serves+"exit 70")
	for life, want := range []int{0, 1, 2} {
		if life == 0 {
			s.ends = []fixture.Ending{fixture.ExitDisk}
		}
		if err := s.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.life.Exit()
		if len(s.system.deaths) != want {
			t.Errorf("life %d: %q, want %d", life+1, s.system.deaths, want)
		}
	}
	s = actor(t, lasts)
	s.ends = []fixture.Ending{fixture.BySignal(syscall.SIGTERM)}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.life.MustLast()
	s.life.Signal(syscall.SIGTERM)
	if s.life.Exit(); len(s.system.deaths) != 1 {
		t.Errorf("%q, want the end that was called for no more", s.system.deaths)
	}
}

func TestADeathCountsInEveryScenario(t *testing.T) {
	for name, test := range map[string]struct {
		report  *report
		err     error
		trouble bool
		died    bool
		want    int
	}{
		"nothing":                        {&report{}, nil, false, false, exitHeld},
		"a death":                        {&report{}, nil, false, true, exitViolated},
		"trouble":                        {&report{}, nil, true, false, exitViolated},
		"did not run":                    {nil, errors.New("x"), false, false, exitVacuous},
		"did not run because of a death": {nil, errors.New("x"), false, true, exitViolated},
		"did not run, with trouble":      {nil, errors.New("x"), true, false, exitViolated},
		"not here, and a death before":   {nil, fixture.NotHere("x"), false, true, exitViolated},
	} {
		for _, control := range []bool{false, true} {
			s := scenario{id: "X", control: control, alone: func(_ context.Context, o options) (*report, error) {
				r := &system{}
				o.made(r)
				if test.trouble {
					r.report("x")
				}
				if test.died {
					r.died("x")
				}
				return test.report, test.err
			}}
			if got := tortureOne(t.Context(), attempt{s, dbSQLite}, options{dir: t.TempDir()}); got.code != test.want {
				t.Errorf("%s: exit code %d, want %d", name, got.code, test.want)
			}
			if test.report != nil {
				test.report.trouble = nil
			}
		}
	}
}

func TestAReportUnderLoadHasOnlyTheDeaths(t *testing.T) {
	r := &system{}
	r.report("trouble")
	r.died("death")
	if deaths, all := r.troubles(false), r.troubles(true); !slices.Equal(deaths, []string{"death"}) ||
		!slices.Equal(all, []string{"trouble", "death"}) {
		t.Errorf("deaths %q, all %q", deaths, all)
	}
}
