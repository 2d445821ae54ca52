package installer

import (
	"fmt"
	"io/fs"
	"net"
	"slices"
)

// plan is everything that an installation will do. It depends on the Spec alone.
type plan struct {
	spec        Spec
	definition  string
	directories []directory
	files       []file
	next        []string // what to do afterwards, one command or hint each
}

// directory is created if missing, with its parents.
type directory struct {
	path           string
	mode           fs.FileMode
	account, group string // empty for the installing account
	sddl           string // on Windows, instead of mode and account
	own            bool   // used by this service only: sddl is set even if it exists
}

// file is written if missing. From then on it belongs to the user.
type file struct {
	path    string
	mode    fs.FileMode
	group   string
	content string
}

func planOf(s Spec) (plan, error) {
	p := plan{spec: s}
	var err error
	switch s.System {
	case "windows":
		err = p.windows()
	case "darwin":
		p.definition, err = plist(s)
		p.unix()
	default:
		p.definition, err = unit(s)
		p.unix()
	}
	if err != nil {
		return plan{}, err
	}
	p.next = nextOf(s)
	return p, nil
}

func (p *plan) windows() (err error) {
	if p.definition, err = winDefinition(p.spec); err != nil {
		return err
	}
	for _, d := range winServiceOf(p.spec).Directories {
		p.directories = append(p.directories, directory{path: d.Path, mode: 0o700, sddl: d.SDDL, own: d.Own})
	}
	for _, d := range []string{p.spec.DataDir, p.spec.LogDir} { // their contents inherit
		if !slices.ContainsFunc(p.directories, func(had directory) bool { return had.path == d }) {
			p.directories = append(p.directories, directory{path: d, mode: 0o700})
		}
	}
	p.files = append(p.files, file{path: p.spec.Config, mode: 0o600, content: configText(p.spec)})
	return nil
}

// unix plans the directories and files of Linux and macOS.
func (p *plan) unix() {
	s := p.spec
	config := directory{path: dir(s.System, s.Config), mode: 0o750, group: s.Group}
	configMode := fs.FileMode(0o640)
	switch {
	case s.User:
		config.mode, configMode = 0o700, 0o600
	case s.dynamic(): // its user is unknown before it runs, so everyone can read the settings; secrets go to kagzi.env
		config.mode, configMode = 0o755, 0o644
	}
	p.directories = append(p.directories, config)
	if !s.dynamic() { // else systemd creates it
		p.directories = append(p.directories, directory{
			path: s.DataDir, mode: 0o700, account: s.Account, group: s.Group})
	}
	if s.LogDir != "" {
		p.directories = append(p.directories, directory{
			path: s.LogDir, mode: 0o750, account: s.Account, group: s.Group})
	}
	p.files = append(p.files, file{path: s.Config, mode: configMode, group: config.group, content: configText(s)})
	if s.System == "linux" && !s.User {
		p.files = append(p.files, file{path: environmentFile(s), mode: 0o600, content: environmentText(s)})
	}
}

func environmentFile(s Spec) string { return joinOn(s.System, dir(s.System, s.Config), "kagzi.env") }

// configText returns the configuration file of a new service, without any settings.
func configText(s Spec) string {
	secrets := "Put a database URL with a password into a file: kagzi service reconfigure" +
		s.flags() + " --database-url-file FILE."
	if s.System == "linux" && !s.User {
		secrets = "Put secrets into " + plain(environmentFile(s)) +
			", which only root can read, or into a file:\n" +
			"# kagzi service reconfigure" + s.flags() + " --database-url-file FILE."
	}
	return fmt.Sprintf(
		`# Settings of the Kagzi service %[1]s. Each is a flag of "kagzi server", see: kagzi server --help
# Changes take effect after: kagzi service restart%[2]s
# The data directory cannot be set here: kagzi service reconfigure%[2]s --data-dir DIR.
# %[3]s

[server]
# listen = "127.0.0.1:50051"
# retention = "720h"
# log-level = "info"
`, s.Name, s.flags(), secrets)
}

// environmentText returns the environment file of a new service, without any variables.
func environmentText(s Spec) string {
	return `# Environment of the Kagzi service, read by systemd; only root can read this file.
# Changes take effect after: kagzi service restart` + s.flags() + `

# KAGZI_DB=postgres://kagzi:password@localhost/kagzi
`
}

// nextOf returns the hints printed after an installation.
func nextOf(s Spec) []string {
	next := []string{"kagzi service status" + s.flags(), "kagzi service logs" + s.flags()}
	if s.User && s.System == "linux" {
		next = append(next, "loginctl enable-linger   # to keep it running while you are logged out")
	}
	return append(next, "kagzi tui"+clientFlags(s))
}

// clientFlags returns the flags that a local client needs if the service does not listen on the
// default address.
func clientFlags(s Spec) string {
	text := ""
	if host, port, err := net.SplitHostPort(s.Listen); err == nil && port != "0" {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		text += " --address " + net.JoinHostPort(plain(host), port)
	}
	if s.TLSCert != "" {
		text += " --tls"
	}
	return text
}

// PackagedFile is a file that a package installs in addition to the program.
type PackagedFile struct {
	Path     string // absolute
	Mode     fs.FileMode
	Content  string
	Settings bool // the user may change it, and an upgrade keeps it
}

// PackagedFiles returns the unit and the settings of a Linux package whose program is at binary.
// They equal what `kagzi service install` would write, so that it accepts the package's service.
func PackagedFiles(binary string) ([]PackagedFile, error) {
	s := places{system: "linux"}.layout(Spec{System: "linux", Name: defaultName, Binary: binary})
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := planOf(s)
	if err != nil {
		return nil, err
	}
	files := []PackagedFile{{Path: "/usr/lib/systemd/system/" + s.Name + ".service", Mode: 0o644,
		Content: p.definition}}
	for _, f := range p.files {
		files = append(files, PackagedFile{Path: f.path, Mode: f.mode, Content: f.content, Settings: true})
	}
	return files, nil
}
