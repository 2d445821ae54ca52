//go:build unix

package installer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/kardianos/service"
)

// mayInstall reports whether this process may change system services.
func mayInstall() bool { return os.Geteuid() == 0 }

const howToBeRoot = "use sudo, or install a user service with --user"

// chown gives a path to an account, a group or both, by name.
func chown(path, account, group string) error {
	uid, gid := -1, -1
	if account != "" {
		u, err := user.Lookup(account)
		if err != nil {
			return err
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return err
		}
	}
	if group != "" {
		g, err := user.LookupGroup(group)
		if err != nil {
			return err
		}
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return err
		}
	}
	return os.Lchown(path, uid, gid)
}

// protect is for Windows only.
func protect(path, _ string) error { return fmt.Errorf("%s: no access lists here", path) }

func (h *host) managerOf(s Spec) (manager, error) {
	switch runtime.GOOS {
	case "linux":
		unit := s.Name + ".service"
		file, vendors := "/etc/systemd/system/"+unit,
			[]string{"/usr/lib/systemd/system/" + unit, "/lib/systemd/system/" + unit}
		if s.User {
			vendors = nil
			file = filepath.Join(h.places.home, ".config/systemd/user", unit)
		}
		return &systemd{name: s.Name, user: s.User, file: file, vendors: vendors, env: h.env, run: runCommand,
			library: definer("linux-systemd", s.Name, s.User, "SystemdScript")}, nil
	case "darwin":
		m := &launchd{name: s.Name, domain: "system", logFile: filepath.Join(s.LogDir, logName), run: runCommand,
			library: definer("darwin-launchd", label(s.Name), s.User, "LaunchdConfig")}
		m.file = "/Library/LaunchDaemons/" + label(s.Name) + ".plist"
		if s.User {
			m.domain = fmt.Sprintf("gui/%d", os.Getuid())
			m.file = filepath.Join(h.places.home, "Library/LaunchAgents", label(s.Name)+".plist")
		}
		return m, nil
	}
	return nil, refuse(exitUnavailable, "services are not supported on %s; run kagzi server under its supervisor",
		runtime.GOOS)
}

// underManager runs serve until it or ctx ends. systemd and launchd only need a process that ends
// on SIGTERM, which cancels ctx.
func underManager(ctx context.Context, name string, serve func(context.Context) error) error {
	p := newProgram(ctx, serve)
	s, err := service.ChosenSystem().New(p, &service.Config{Name: name, Option: service.KeyValue{"RunWait": p.wait}})
	if err != nil {
		return err
	}
	return s.Run()
}

// wait returns when the server has ended or should end; then only Stop remains.
func (p *program) wait() {
	select {
	case <-p.ended:
	case <-p.ctx.Done():
	}
}

// openFollowed opens a log that another process writes.
func openFollowed(path string) (*os.File, error) { return os.Open(path) }

// runner runs a command of the system and returns its output. The error holds what the command said.
type runner func(ctx context.Context, name string, args ...string) (string, error)

func runCommand(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w%s", name, strings.Join(args, " "), err, oneLine(stderr.String()))
	}
	return stdout.String(), nil
}

// stream runs a command and copies its output to w until it or ctx ends; the latter is no error.
func stream(ctx context.Context, w io.Writer, name string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w%s", name, err, oneLine(stderr.String()))
	}
	return nil
}

// oneLine returns the output of a command as the end of an error.
func oneLine(said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return ""
	}
	return ": " + strings.ReplaceAll(said, "\n", "; ")
}

// library is the part of github.com/kardianos/service that registers a service: it writes and
// enables a definition, or removes it. It is not used to start or stop services, because it drops
// the errors of systemctl, uses old launchctl commands, and waits forever on Windows.
type library interface {
	Install() error
	Uninstall() error
}

// systemOf returns a service manager of the library by name. The one that the library detects can
// be wrong in containers.
func systemOf(name string) (service.System, error) {
	for _, s := range service.AvailableSystems() {
		if s.String() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("this build does not support the service manager %s", name)
}

// definer returns a function that creates a library which writes a definition unchanged.
func definer(system, name string, user bool, option string) func(definition string) (library, error) {
	return func(definition string) (library, error) {
		s, err := systemOf(system)
		if err != nil {
			return nil, err
		}
		return s.New(nil, &service.Config{Name: name, Executable: "/",
			Option: service.KeyValue{"UserService": user, option: definition}})
	}
}
