//go:build unix

package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// systemd is the service manager of Linux: the system's or the user's.
type systemd struct {
	name    string
	user    bool
	file    string   // path of the unit, as written by the library
	vendors []string // where a package puts the unit; file overrides it
	env     func(string) string
	run     runner
	library func(definition string) (library, error)
}

// leastSystemd is the first version that supports StateDirectory for dynamic users.
const leastSystemd = 235

func (m *systemd) unit() string  { return m.name + ".service" }
func (m *systemd) place() string { return m.file }

func (m *systemd) packaged() (place string, inEffect bool) {
	for _, path := range m.vendors {
		if exists(path) {
			return path, !exists(m.file)
		}
	}
	return "", false
}

// additions returns the drop-ins created by systemctl edit.
func (m *systemd) additions() []string {
	found, _ := filepath.Glob(m.file + ".d/*.conf") // fails only for an invalid pattern
	return found
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// systemctl runs a verb for the system or the user.
func (m *systemd) systemctl(ctx context.Context, verb string, args ...string) (string, error) {
	words := []string{verb}
	if m.user {
		words = append(words, "--user")
	}
	return m.run(ctx, "systemctl", append(words, args...)...)
}

func (m *systemd) available(ctx context.Context) error {
	if m.user && m.env("XDG_RUNTIME_DIR") == "" {
		return refuse(exitUnavailable,
			"this session has no user systemd (XDG_RUNTIME_DIR is not set), as after su and sudo; "+
				"log in as the user, or run: machinectl shell USER@")
	}
	version, err := m.systemctl(ctx, "show", "--property=Version", "--value")
	if err != nil {
		return refuse(exitUnavailable, "systemd does not answer, so it cannot run a service here: %w; "+
			"run the server by hand with kagzi server, or under this machine's supervisor", err)
	}
	rest := strings.TrimLeftFunc(version, func(r rune) bool { return r >= '0' && r <= '9' })
	if n, err := strconv.Atoi(version[:len(version)-len(rest)]); err == nil && n < leastSystemd {
		return refuse(exitUnavailable,
			"systemd %d is too old: the unit needs %d; run kagzi server with your own unit", n, leastSystemd)
	}
	return nil
}

func (m *systemd) definition(context.Context) (string, bool, error) {
	file := m.file
	if place, inEffect := m.packaged(); inEffect {
		file = place
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(text), err == nil, err
}

func (m *systemd) register(ctx context.Context, definition string) error {
	if err := m.unregister(ctx); err != nil {
		return err
	}
	if err := m.write(ctx, definition); err != nil {
		return fmt.Errorf("register %s: %w", m.unit(), errors.Join(err, m.unregister(ctx)))
	}
	if _, err := m.systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	loaded, err := m.systemctl(ctx, "show", "--property=LoadState", "--value", m.unit())
	if err == nil && strings.TrimSpace(loaded) != "loaded" {
		err = fmt.Errorf("systemd does not accept %s: it reports %s", m.file, strings.TrimSpace(loaded))
	}
	return err
}

// write writes a unit to the directory for local units and enables it. If a package's unit is
// identical, it enables that one.
func (m *systemd) write(ctx context.Context, definition string) error {
	if text, found, err := m.definition(ctx); err != nil {
		return err
	} else if found && text == definition { // the package's unit, because there is no other
		return m.enable(ctx)
	}
	lib, err := m.library(definition)
	if err != nil {
		return err
	}
	if err := lib.Install(); err != nil {
		return err
	}
	return os.Chmod(m.file, 0o644) // regardless of the umask
}

func (m *systemd) enable(ctx context.Context) error {
	_, err := m.systemctl(ctx, "enable", m.unit())
	return err
}

// unregister continues where the library stops: it also removes a unit that cannot be disabled.
func (m *systemd) unregister(ctx context.Context) error {
	if !exists(m.file) {
		return nil
	}
	lib, err := m.library("")
	if err != nil {
		return err
	}
	if err := lib.Uninstall(); err != nil {
		_, disabling := m.systemctl(ctx, "disable", m.unit())
		if err := os.Remove(m.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, disabling)
		}
		if _, err := m.systemctl(ctx, "daemon-reload"); err != nil {
			return errors.Join(err, disabling)
		}
	}
	return nil
}

// start also enables a package's unit, as register does for other units, so that it starts at boot.
func (m *systemd) start(ctx context.Context) error {
	if _, inEffect := m.packaged(); inEffect {
		if err := m.enable(ctx); err != nil {
			return err
		}
	}
	// failed starts from before would count towards the limit; errors of this do not matter
	_, _ = m.systemctl(ctx, "reset-failed", m.unit())
	_, err := m.systemctl(ctx, "start", m.unit())
	return err
}

func (m *systemd) stop(ctx context.Context) error {
	if _, err := m.systemctl(ctx, "stop", m.unit()); err != nil {
		// systemd fails to stop a unit that it cannot load because of an error in it, although it
		// does not run.
		if s, unknown := m.state(ctx); unknown != nil || s.Phase != stopped && s.Phase != failed {
			return err
		}
	}
	_, _ = m.systemctl(ctx, "reset-failed", m.unit()) // fails if it had not failed
	return nil
}

func (m *systemd) restart(ctx context.Context) error {
	_, _ = m.systemctl(ctx, "reset-failed", m.unit())
	_, err := m.systemctl(ctx, "restart", m.unit())
	return err
}

func (m *systemd) state(ctx context.Context) (State, error) {
	text, err := m.systemctl(ctx, "show",
		"--property=ActiveState,SubState,Result,MainPID,NRestarts,ExecMainCode,ExecMainStatus", m.unit())
	if err != nil {
		return State{}, err
	}
	return systemdState(text), nil
}

// systemdState parses the output of systemctl show.
func systemdState(text string) State {
	v := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		v[key] = value
	}
	s := State{Phase: stopped}
	switch v["ActiveState"] {
	case "active", "reloading":
		s.Phase = running
	case "activating":
		s.Phase = starting // also the pause before a restart
	case "deactivating":
		s.Phase = stopping
	case "failed":
		s.Phase = failed
	}
	s.PID, _ = strconv.Atoi(v["MainPID"])
	s.Restarts, _ = strconv.Atoi(v["NRestarts"])
	switch code := v["ExecMainStatus"]; v["ExecMainCode"] {
	case "1":
		s.LastExit = "exit code " + code
	case "2", "3":
		s.LastExit = "signal " + code
	}
	return s
}

func (m *systemd) logs(ctx context.Context, w io.Writer, lines int, follow bool) error {
	args := []string{"--no-pager", "--output=short-iso", "--lines=" + strconv.Itoa(lines)}
	if m.user {
		args = append(args, "--user-unit="+m.unit())
	} else {
		args = append(args, "--unit="+m.unit())
	}
	if follow {
		args = append(args, "--follow")
	}
	return stream(ctx, w, "journalctl", args...)
}
