//go:build linux

package installer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// analyze returns systemd-analyze, or skips the test without it; with CI set it fails.
func analyze(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatal("systemd-analyze is missing; install systemd")
	default:
		t.Skip("SKIPPED: systemd-analyze is missing, so nobody looked at the units; install systemd")
	}
	return ""
}

// unitFile writes the unit of a Spec whose paths exist, so that only problems of the unit are
// found.
func unitFile(t *testing.T, s Spec) string {
	t.Helper()
	text, err := unit(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kagzi-analyzed.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSystemdFindsNothingWrongWithTheUnits(t *testing.T) {
	tool := analyze(t)
	for name, s := range specs() {
		if s.System != "linux" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "100% $HOME & <ünï> {}")
			s.Binary = filepath.Join(home, "kagzi")
			if err := os.MkdirAll(home, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.Binary, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if s.Account != "" {
				s.Account, s.Group = "daemon", "daemon" // exists on every Linux
			}
			args := []string{"verify", "--recursive-errors=no", "--man=no", unitFile(t, s)}
			if s.User {
				args = append([]string{args[0], "--user"}, args[1:]...)
			}
			cmd := exec.Command(tool, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "kagzi-analyzed") {
				t.Errorf("systemd-analyze verify: %v\n%s", err, out)
			}
		})
	}
}

func TestTheUnitOfTheMachineIsExposedByAtMostTwo(t *testing.T) {
	tool := analyze(t)
	for _, name := range []string{"linux", "linux-nasty"} {
		out, err := exec.Command(tool, "security", "--offline=true", "--threshold=20", "--no-pager",
			unitFile(t, specs()[name])).CombinedOutput()
		if err != nil {
			t.Errorf("%s: systemd-analyze security: %v\n%s", name, err, out)
		}
	}
}
