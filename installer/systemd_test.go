//go:build linux

package installer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeCommand replaces a system command with a script that records its calls. The script's body may
// use $*.
func fakeCommand(t *testing.T, name, body string) (calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	journal := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$*\" >>'" + journal + "'\n" + body
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() []string {
		text, err := os.ReadFile(journal)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		_ = os.Remove(journal)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

const healthySystemd = `case "$*" in
*Version*) echo 252.38-1~deb12u1 ;;
*LoadState*) echo loaded ;;
*ActiveState*) printf 'ActiveState=active\nSubState=running\nMainPID=42\nNRestarts=3\nExecMainCode=0\nExecMainStatus=0\n' ;;
esac`

// userSystemd is the service manager of a user with a temporary home, with the real library.
func userSystemd(t *testing.T) *systemd {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", home)
	return &systemd{name: "kagzi", user: true, file: filepath.Join(home, ".config/systemd/user/kagzi.service"),
		env: os.Getenv, run: runCommand,
		library: definer("linux-systemd", "kagzi", true, "SystemdScript")}
}

func TestSystemdIsCalledInOrder(t *testing.T) {
	calls := fakeCommand(t, "systemctl", healthySystemd)
	m := userSystemd(t)
	text, err := unit(specs()["linux-user-nasty"])
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"available", func() error {
			return m.available(t.Context())
		}, []string{"show --user --property=Version --value"}},
		{"register", func() error { return m.register(t.Context(), text) }, []string{
			"enable --user kagzi.service", "daemon-reload --user", "daemon-reload --user",
			"show --user --property=LoadState --value kagzi.service",
		}},
		{"start", func() error {
			return m.start(t.Context())
		}, []string{"reset-failed --user kagzi.service", "start --user kagzi.service"}},
		{"restart", func() error {
			return m.restart(t.Context())
		}, []string{"reset-failed --user kagzi.service", "restart --user kagzi.service"}},
		{"stop", func() error {
			return m.stop(t.Context())
		}, []string{"stop --user kagzi.service", "reset-failed --user kagzi.service"}},
		{"unregister", func() error {
			return m.unregister(t.Context())
		}, []string{"disable --user kagzi.service", "daemon-reload --user"}},
	} {
		if err := try.do(); err != nil {
			t.Fatalf("%s: %v", try.name, err)
		}
		if diff := cmp.Diff(try.want, calls()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", try.name, diff)
		}
		got, found, err := m.definition(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if installed := !slices.Contains([]string{"available", "unregister"}, try.name); found != installed ||
			installed && got != text {
			t.Errorf("after %s the unit is there: %v, byte for byte: %v, want %v", try.name, found,
				got == text, installed)
		}
	}
}

func TestAUnitThatCannotBeEnabledIsTakenAway(t *testing.T) {
	fakeCommand(t, "systemctl", `case "$*" in enable*) echo "no, said \x1b it" >&2; exit 1 ;; esac; `+healthySystemd)
	m := userSystemd(t)
	if err := m.register(t.Context(), "[Unit]\n"); err == nil {
		t.Fatal("register = nil, want an error")
	}
	if _, found, _ := m.definition(t.Context()); found {
		t.Error("the unit is still there, want it taken away")
	}
}

func TestAUnitThatCannotBeDisabledIsTakenAwayAllTheSame(t *testing.T) {
	fakeCommand(t, "systemctl", `case "$*" in disable*) exit 1 ;; esac; `+healthySystemd)
	m := userSystemd(t)
	if err := m.register(t.Context(), "[Unit]\n"); err != nil {
		t.Fatal(err)
	}
	if err := m.unregister(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found, _ := m.definition(t.Context()); found {
		t.Error("the unit is still there, want it taken away")
	}
}

func TestAUnitThatSystemdCannotLoadIsStoppedWhenItDoesNotRun(t *testing.T) {
	for state, want := range map[string]string{
		"inactive": "", "failed": "", "active": "not loaded", "deactivating": "not loaded"} {
		fakeCommand(t, "systemctl", `case "$*" in
stop*) echo 'Failed to stop kagzi.service: Unit kagzi.service not loaded.' >&2; exit 5 ;;
*ActiveState*) echo ActiveState=`+state+` ;;
esac`)
		switch err := userSystemd(t).stop(t.Context()); {
		case want == "" && err != nil:
			t.Errorf("stop of what is %s = %v, want nil", state, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("stop of what is %s = %v, want what systemctl says", state, err)
		}
	}
}

func TestAUnitThatSystemdDoesNotTakeIsAnError(t *testing.T) {
	fakeCommand(t, "systemctl", `case "$*" in *LoadState*) echo bad-setting ;; esac`)
	if err := userSystemd(t).register(t.Context(), "[Unit]\n"); err == nil ||
		!strings.Contains(err.Error(), "bad-setting") {
		t.Errorf("register = %v, want bad-setting", err)
	}
}

func TestMissingSystemdIsReported(t *testing.T) {
	fakeCommand(t, "systemctl", `printf 'System has not been booted with systemd.\nNo bus.\n' >&2; exit 1`)
	m := userSystemd(t)
	wantCode(t, m.available(t.Context()), exitUnavailable, "has not been booted", "kagzi server")
	m.env = func(string) string { return "" }
	wantCode(t, m.available(t.Context()), exitUnavailable, "XDG_RUNTIME_DIR", "machinectl")
	fakeCommand(t, "systemctl", "echo 219")
	wantCode(t, userSystemd(t).available(t.Context()), exitUnavailable, "219", "235")
}

func TestSystemdsWordsForAStateAreUnderstood(t *testing.T) {
	for text, want := range map[string]State{
		"ActiveState=active\nMainPID=42\nNRestarts=3\nExecMainCode=0\nExecMainStatus=0\n": {
			Phase: running, PID: 42, Restarts: 3},
		"ActiveState=activating\nSubState=auto-restart\nExecMainCode=2\nExecMainStatus=9": {
			Phase: starting, LastExit: "signal 9"},
		"ActiveState=failed\nExecMainCode=1\nExecMainStatus=78\n": {
			Phase: failed, LastExit: "exit code 78"},
		"ActiveState=deactivating\nMainPID=1": {Phase: stopping, PID: 1},
		"ActiveState=inactive\n":              {Phase: stopped},
	} {
		if diff := cmp.Diff(want, systemdState(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// fileLibrary writes a definition to a file of the test, as the library does.
type fileLibrary struct{ file, text string }

func (l fileLibrary) Install() error   { return os.WriteFile(l.file, []byte(l.text), 0o600) }
func (l fileLibrary) Uninstall() error { return os.Remove(l.file) }

// fakeLaunchd is launchd on a temporary directory; loaded services are a file next to the property
// list.
func fakeLaunchd(t *testing.T, extra string) (*launchd, func() []string) {
	file := filepath.Join(t.TempDir(), "com.github.kagzi.kagzi.plist")
	calls := fakeCommand(t, "launchctl", extra+`
loaded='`+file+`.loaded'
case "$1" in
print) [ "$2" = system ] || [ -e "$loaded" ] || { echo "Could not find service" >&2; exit 113; } ;;
bootstrap|load) : >"$loaded" ;;
bootout) rm "$loaded" ;;
esac`)
	return &launchd{name: "kagzi", domain: "system", file: file, run: runCommand,
		library: func(text string) (library, error) { return fileLibrary{file, text}, nil }}, calls
}

func TestLaunchdIsCalledInOrder(t *testing.T) {
	m, calls := fakeLaunchd(t, "")
	const target = "system/com.github.kagzi.kagzi"
	for _, try := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"available", func() error { return m.available(t.Context()) }, []string{"print system"}},
		{"register", func() error { return m.register(t.Context(), "<plist/>") }, []string{"enable " + target}},
		{"start", func() error {
			return m.start(t.Context())
		}, []string{"print " + target, "bootstrap system " + m.file}},
		{"start again", func() error {
			return m.start(t.Context())
		}, []string{"print " + target, "kickstart " + target}},
		{"restart", func() error { return m.restart(t.Context()) }, []string{
			"print " + target, "bootout " + target, "print " + target, "bootstrap system " + m.file,
		}},
		{"unregister", func() error {
			return m.unregister(t.Context())
		}, []string{"print " + target, "bootout " + target, "print " + target}},
		{"stop", func() error { return m.stop(t.Context()) }, []string{"print " + target}},
	} {
		if err := try.do(); err != nil {
			t.Fatalf("%s: %v", try.name, err)
		}
		if diff := cmp.Diff(try.want, calls()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", try.name, diff)
		}
	}
	if _, found, _ := m.definition(t.Context()); found {
		t.Error("the property list is still there")
	}
}

// endingLaunchd is launchd with a running service that takes three seconds to stop; answer is what
// bootout returns.
func endingLaunchd(answer error) (m *launchd, calls *[]string) {
	loaded, calls := true, new([]string)
	var gone time.Time
	m = &launchd{name: "kagzi", domain: "system", file: "kagzi.plist"}
	m.run = func(_ context.Context, _ string, args ...string) (string, error) {
		if !gone.IsZero() && !time.Now().Before(gone) {
			loaded, gone = false, time.Time{}
		}
		if args[0] != "print" {
			*calls = append(*calls, args[0])
		}
		switch {
		case args[0] == "print" && !loaded:
			return "", errors.New("Could not find service")
		case args[0] == "bootout" && loaded:
			gone = time.Now().Add(3 * time.Second)
			return "", answer
		case args[0] == "bootstrap" && loaded:
			return "", errors.New("Bootstrap failed: 5: Input/output error")
		case args[0] == "bootstrap":
			loaded = true
		}
		return "", nil
	}
	return m, calls
}

func TestAServiceThatStillEndsIsWaitedForBeforeItIsStartedAgain(t *testing.T) {
	for name, answer := range map[string]error{
		"launchctl does not wait": nil,
		"launchctl gives up waiting": errors.New(
			"launchctl bootout: exit status 36: Boot-out failed: 36: Operation now in progress"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, calls := endingLaunchd(answer)
				if err := m.restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				if want := []string{"bootout", "bootstrap"}; !slices.Equal(*calls, want) {
					t.Errorf("calls = %q, want %q", *calls, want)
				}
				if err := m.stop(t.Context()); err != nil || m.loaded(t.Context()) {
					t.Errorf("stop = %v, and launchd knows the service: %v, want it gone", err, m.loaded(t.Context()))
				}
			})
		})
	}
	t.Run("fails if launchctl refuses the old way too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			m, _ := endingLaunchd(errors.New("Boot-out failed: 1: Operation not permitted"))
			if err := m.stop(t.Context()); err == nil || !strings.Contains(err.Error(), "not permitted") ||
				time.Since(begun) > 0 {
				t.Errorf("stop = %v after %v, want the refusal at once", err, time.Since(begun))
			}
		})
	})
}

func TestWhereBootstrapFailsTheOldWayIsTried(t *testing.T) {
	m, calls := fakeLaunchd(
		t, `[ "$1" = bootstrap ] && { echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; }`)
	if err := m.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := calls(); !slices.Contains(got, "load -w "+m.file) {
		t.Errorf("calls = %q, want load -w", got)
	}
	m, _ = fakeLaunchd(t, `case "$1" in bootstrap|load) echo "Load failed: 5" >&2; exit 5 ;; esac`)
	if err := m.start(t.Context()); err == nil || !strings.Contains(err.Error(), "Load failed: 5") {
		t.Errorf("start = %v, want what launchctl says", err)
	}
}

func TestLaunchdsWordsForAStateAreUnderstood(t *testing.T) {
	for text, want := range map[string]State{
		"system/x = {\n\tstate = running\n\tpid = 42\n\truns = 3\n\tlast exit code = (never exited)\n\t\tstate = inner\n}\n": {Phase: running, PID: 42, Restarts: 2},
		"system/x = {\n\tstate = not running\n\truns = 1\n\tlast exit code = 78\n}\n":                                        {Phase: failed, LastExit: "exit code 78"},
		"system/x = {\n\tstate = not running\n\truns = 1\n\tlast exit code = 0\n}\n":                                         {Phase: stopped, LastExit: "exit code 0"},
		"system/x = {\n\tstate = spawn scheduled\n\tlast terminating signal = Killed: 9\n}\n":                                {Phase: starting, Restarts: -1, LastExit: "signal Killed: 9"},
	} {
		if diff := cmp.Diff(want, launchdState(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
