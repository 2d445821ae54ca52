//go:build unix

package installer

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
)

// mayInstall says whether this process may change services of the machine.
func mayInstall() bool { return os.Geteuid() == 0 }

const howToBeRoot = "say it with sudo, or install a service of your own with --user"

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

// protect is for Windows alone.
func protect(path, _ string) error { return fmt.Errorf("%s: no access lists here", path) }

func (w *world) managerOf(s Spec) (manager, error) {
	switch runtime.GOOS {
	case "linux":
		unit := s.Name + ".service"
		file, vendors := "/etc/systemd/system/"+unit, []string{"/usr/lib/systemd/system/" + unit, "/lib/systemd/system/" + unit}
		if s.User {
			vendors = nil
			file = filepath.Join(w.places.home, ".config/systemd/user", unit)
		}
		return &systemd{name: s.Name, user: s.User, file: file, vendors: vendors, env: w.env, run: runCommand,
			library: definer("linux-systemd", s.Name, s.User, "SystemdScript")}, nil
	case "darwin":
		m := &launchd{name: s.Name, domain: "system", logFile: filepath.Join(s.LogDir, logName), run: runCommand,
			library: definer("darwin-launchd", label(s.Name), s.User, "LaunchdConfig")}
		m.file = "/Library/LaunchDaemons/" + label(s.Name) + ".plist"
		if s.User {
			m.domain = fmt.Sprintf("gui/%d", os.Getuid())
			m.file = filepath.Join(w.places.home, "Library/LaunchAgents", label(s.Name)+".plist")
		}
		return m, nil
	}
	return nil, refuse(exitUnavailable, "there is no service for %s; run kagzi server under the supervisor that it has", runtime.GOOS)
}
