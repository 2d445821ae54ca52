package installer

import (
	"path"
	"strings"
)

// places are the system's directories from which the paths of a service are built.
type places struct {
	system      string // linux, darwin or windows
	home        string // of the user; empty for a system service
	configHome  string // $XDG_CONFIG_HOME, empty if not set
	dataHome    string // $XDG_DATA_HOME, empty if not set
	programData string // %ProgramData%
	programs    string // %ProgramFiles%
}

// join joins a path by the rules of its system, which may not be this one.
func (p places) join(parts ...string) string { return joinOn(p.system, parts...) }

func joinOn(system string, parts ...string) string {
	if system == "windows" {
		return strings.Join(parts, `\`)
	}
	return path.Join(parts...)
}

// capital returns a name with an upper-case first letter, as some systems name directories.
func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// layout fills in the default directories and account of a Spec.
func (p places) layout(s Spec) Spec {
	config, data, logs := p.directories(s.Name, s.User)
	if s.Config == "" {
		s.Config = p.join(config, "kagzi.toml")
	}
	if s.DataDir == "" {
		s.DataDir = data
	}
	if s.LogDir == "" {
		s.LogDir = logs
	}
	if p.system == "darwin" && !s.User && s.Account == "" {
		s.Account = "daemon" // macOS has no dynamic accounts, and root has too many rights
	}
	return s
}

// directories returns the default directories; logs is empty if the system keeps the log.
func (p places) directories(name string, user bool) (config, data, logs string) {
	switch {
	case p.system == "windows":
		base := p.join(p.programData, capital(name))
		return base, p.join(base, "data"), p.join(base, "logs")
	case p.system == "darwin" && user:
		data = p.join(p.home, "Library/Application Support", capital(name))
		return data, p.join(data, "data"), p.join(p.home, "Library/Logs", capital(name))
	case p.system == "darwin":
		return p.join("/usr/local/etc", name), p.join("/Library/Application Support", capital(name)),
			p.join("/Library/Logs", capital(name))
	case user:
		return p.join(orElse(p.configHome, p.join(p.home, ".config")), name),
			p.join(orElse(p.dataHome, p.join(p.home, ".local/share")), name), ""
	}
	return p.join("/etc", name), p.join("/var/lib", name), ""
}

func orElse(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// binary is where --copy-binary puts the program.
func (p places) binary(user bool) string {
	switch {
	case p.system == "windows":
		return p.join(p.programs, "Kagzi", "kagzi.exe")
	case user:
		return p.join(p.home, ".local/bin/kagzi")
	}
	return "/usr/local/bin/kagzi"
}

// dir returns the directory of a path by the rules of a system.
func dir(system, name string) string {
	if system == "windows" {
		if i := strings.LastIndexAny(name, `\/`); i > 0 {
			return name[:i]
		}
		return name
	}
	return path.Dir(name)
}

// within reports whether a path is directory or inside it.
func within(system, directory, name string) bool {
	separator := "/"
	if system == "windows" {
		separator, directory, name = `\`, strings.ToLower(directory), strings.ToLower(name)
	}
	return name == directory || strings.HasPrefix(name, strings.TrimSuffix(directory, separator)+separator)
}
