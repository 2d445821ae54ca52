//go:build unix

package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// launchdLimit limits a stop. The property list gives the server 60 s before it is killed.
const launchdLimit = 70 * time.Second

// launchd is the service manager of macOS.
type launchd struct {
	name    string
	domain  string // system, or gui/UID
	file    string // path of the property list, as written by the library
	logFile string
	run     runner
	library func(definition string) (library, error)
}

func (m *launchd) target() string { return m.domain + "/" + label(m.name) }
func (m *launchd) place() string  { return m.file }

func (m *launchd) packaged() (place string, inEffect bool) { return "", false }
func (m *launchd) additions() []string                     { return nil }

func (m *launchd) available(ctx context.Context) error {
	if _, err := m.run(ctx, "launchctl", "print", m.domain); err != nil {
		return refuse(exitUnavailable,
			"launchd has no domain %s for you: %w; log in at the screen, or install a system service: "+
				"sudo kagzi service install%s", m.domain, err, Spec{Name: m.name}.flags())
	}
	return nil
}

func (m *launchd) definition(context.Context) (string, bool, error) {
	text, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(text), err == nil, err
}

func (m *launchd) register(ctx context.Context, definition string) error {
	if err := m.removeFile(); err != nil {
		return err
	}
	lib, err := m.library(definition)
	if err != nil {
		return err
	}
	if err := lib.Install(); err != nil {
		return fmt.Errorf("register %s: %w", label(m.name), errors.Join(err, m.removeFile()))
	}
	if err := os.Chmod(m.file, 0o644); err != nil { // launchd refuses files that others can write to
		return err
	}
	_, err = m.run(ctx, "launchctl", "enable", m.target())
	return err
}

// removeFile does not touch a running service.
func (m *launchd) removeFile() error {
	if err := os.Remove(m.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (m *launchd) unregister(ctx context.Context) error {
	if err := m.stop(ctx); err != nil {
		return err
	}
	return m.removeFile()
}

// loaded reports whether the service is loaded in this session.
func (m *launchd) loaded(ctx context.Context) bool {
	_, err := m.run(ctx, "launchctl", "print", m.target())
	return err == nil
}

func (m *launchd) start(ctx context.Context) error {
	if m.loaded(ctx) {
		_, err := m.run(ctx, "launchctl", "kickstart", m.target())
		return err
	}
	return m.load(ctx)
}

// load loads and starts the service.
func (m *launchd) load(ctx context.Context) error {
	_, err := m.run(ctx, "launchctl", "bootstrap", m.domain, m.file)
	if err == nil {
		return nil
	}
	if _, old := m.run(ctx, "launchctl", "load", "-w", m.file); old != nil || !m.loaded(ctx) {
		// "Input/output error" on some systems
		return errors.Join(err, old)
	}
	return nil
}

// stop waits until the service is unloaded. bootout returns while the server is still shutting
// down, or fails with "Operation now in progress"; the service cannot be started again before it
// has ended.
func (m *launchd) stop(ctx context.Context) error {
	if !m.loaded(ctx) {
		return ctx.Err()
	}
	_, refused := m.run(ctx, "launchctl", "bootout", m.target())
	return await(ctx, launchdLimit, func() (bool, error) {
		if !m.loaded(ctx) {
			return true, ctx.Err()
		}
		if refused != nil && !strings.Contains(refused.Error(), "in progress") {
			return false, refused
		}
		return false, nil
	})
}

// restart reloads the property list, which kickstart would not do.
func (m *launchd) restart(ctx context.Context) error {
	if err := m.stop(ctx); err != nil {
		return err
	}
	return m.load(ctx)
}

func (m *launchd) state(ctx context.Context) (State, error) {
	text, err := m.run(ctx, "launchctl", "print", m.target())
	if err != nil {
		return State{Phase: stopped, Restarts: -1}, nil // not loaded
	}
	return launchdState(text), nil
}

// launchdState parses the output of launchctl print. Properties of the service itself are indented
// by one tab.
func launchdState(text string) State {
	s := State{Phase: stopped, Restarts: -1}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t\t") {
			continue // a nested property
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		switch key {
		case "state":
			switch value {
			case "running":
				s.Phase = running
			case "spawn scheduled", "spawning":
				s.Phase = starting
			}
		case "pid":
			s.PID, _ = strconv.Atoi(value)
		case "runs":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				s.Restarts = n - 1
			}
		case "last exit code":
			if value != "(never exited)" {
				s.LastExit = "exit code " + value
			}
		case "last terminating signal":
			s.LastExit = "signal " + value
		}
	}
	if s.Phase == stopped && s.LastExit != "" && s.LastExit != "exit code 0" {
		s.Phase = failed
	}
	return s
}

func (m *launchd) logs(ctx context.Context, w io.Writer, lines int, follow bool) error {
	return tail(ctx, w, m.logFile, lines, follow)
}
