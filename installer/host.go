package installer

import (
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// host is what the commands need from the machine. Tests use their own.
type host struct {
	system     string
	places     places
	env        func(string) string
	mayInstall bool
	executable func() (string, error)
	groupOf    func(account string) (string, error)
	manager    func(Spec) (manager, error)
	disk       func() *disk
	out, err   io.Writer
}

// hostFunc returns the host that a command runs on.
type hostFunc func(*cobra.Command) *host

func newHost(cmd *cobra.Command) *host {
	home, _ := os.UserHomeDir() // needed only by user services, whose check reports it
	h := &host{
		system: runtime.GOOS, env: os.Getenv, mayInstall: mayInstall(), executable: executable, groupOf: groupOf,
		out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(),
		places: places{
			system: runtime.GOOS, home: home, configHome: absoluteOnly("XDG_CONFIG_HOME"),
			dataHome:    absoluteOnly("XDG_DATA_HOME"),
			programData: orElse(os.Getenv("ProgramData"), `C:\ProgramData`),
			programs:    orElse(os.Getenv("ProgramFiles"), `C:\Program Files`),
		},
	}
	h.manager = h.managerOf
	h.disk = func() *disk { return &disk{places: h.places, chown: chown, protect: protect} }
	return h
}

// absoluteOnly returns the directory in an environment variable, or "" if it is relative, as the
// XDG specification requires.
func absoluteOnly(name string) string {
	if dir := os.Getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// executable returns the path of this program. It keeps a Homebrew link, because its target changes
// with each upgrade.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if stable := stableLink(real); stable != "" {
		return stable, nil
	}
	return real, nil
}

// stableLink returns Homebrew's link to a program in its cellar, or "" if there is none:
// /opt/homebrew/bin/kagzi for /opt/homebrew/Cellar/kagzi/1.2/bin/kagzi.
func stableLink(real string) string {
	prefix, rest, found := strings.Cut(real, "/Cellar/")
	if !found {
		return ""
	}
	link := filepath.Join(prefix, "bin", filepath.Base(rest))
	if to, err := filepath.EvalSymlinks(link); err != nil || to != real {
		return ""
	}
	return link
}

func groupOf(account string) (string, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return "", err
	}
	g, err := user.LookupGroupId(u.Gid)
	if err != nil {
		return "", err
	}
	return g.Name, nil
}

// foreign returns the usual places of another operating system.
func foreign(system string) places {
	p := places{system: system, programData: `C:\ProgramData`, programs: `C:\Program Files`, home: "/home/you"}
	if system == "darwin" {
		p.home = "/Users/you"
	}
	return p
}
