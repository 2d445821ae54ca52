package installer

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const defaultName = "kagzi"

var serviceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,47}$`)

// check rejects a Spec that no service manager would run, or that would run and not work, and tells
// what to do instead.
func (s Spec) check() error {
	if !slices.Contains([]string{"linux", "darwin", "windows"}, s.System) {
		return refuse(exitUsage, "unsupported operating system %q; supported are linux, darwin and windows",
			s.System)
	}
	if !serviceName.MatchString(s.Name) {
		return refuse(exitUsage, "--name %q: must be a letter, then at most 47 letters, digits, - and _", s.Name)
	}
	if s.System == "windows" && s.User {
		return refuse(exitUsage,
			"Windows has no user services; omit --user, or start a server at login: "+
				`schtasks /create /sc onlogon /tn kagzi /tr "%s server"`, s.Binary)
	}
	if s.User && s.Account != "" {
		return refuse(exitUsage, "--run-as is for system services; omit --user or --run-as")
	}
	if strings.ContainsFunc(s.Account, func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune(`:/%"'{}`, r)
	}) {
		return refuse(exitUsage, "--run-as %q: must be the name of an account", s.Account)
	}
	if err := s.checkPaths(); err != nil {
		return err
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return refuse(exitUsage,
			"--tls-cert and --tls-key must be given together; kagzi tls init creates both")
	}
	if s.ClientCA != "" && s.TLSCert == "" {
		return refuse(exitUsage,
			"--client-ca needs --tls-cert and --tls-key; kagzi tls init creates all three")
	}
	if err := checkText("--listen", s.Listen); err != nil {
		return err
	}
	if s.Listen != "" {
		_, port, err := net.SplitHostPort(s.Listen)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return refuse(exitUsage, "--listen %q: must be host:port such as 127.0.0.1:50051", s.Listen)
		}
	}
	if err := s.checkArguments(); err != nil {
		return err
	}
	if s.System == "linux" && strings.ContainsAny(s.Binary, `"'\`) {
		return refuse(exitUsage,
			"the binary %q: systemd cannot start a program with quotes or \\ in its path; move it, or add --copy-binary",
			s.Binary)
	}
	if s.System == "linux" && !s.User {
		return s.checkSandbox()
	}
	return nil
}

func (s Spec) checkPaths() error {
	for _, p := range []struct{ flag, path string }{
		{"the binary", s.Binary}, {"--config", s.Config}, {"--data-dir", s.DataDir},
		{"--database-url-file", s.DatabaseURLFile}, {"--log-dir", s.LogDir},
		{"--tls-cert", s.TLSCert}, {"--tls-key", s.TLSKey}, {"--client-ca", s.ClientCA},
	} {
		if p.path == "" {
			continue
		}
		if !absolute(s.System, p.path) {
			return refuse(exitUsage,
				"%s %q: must be an absolute path, because the service runs in another directory", p.flag, p.path)
		}
		if err := checkText(p.flag, p.path); err != nil {
			return err
		}
		if strings.Contains(p.path, "{{") || strings.TrimSpace(p.path) != p.path || s.System != "windows" &&
			strings.HasSuffix(p.path, `\`) {
			return refuse(exitUsage,
				"%s %q: a path must not contain {{, begin or end with a space, or end with \\",
				p.flag, p.path)
		}
	}
	return nil
}

// absolute is filepath.IsAbs for another operating system.
func absolute(system, path string) bool {
	if system != "windows" {
		return strings.HasPrefix(path, "/")
	}
	return len(path) > 2 && path[1] == ':' && strings.ContainsRune(`\/`, rune(path[2])) &&
		unicode.IsLetter(rune(path[0]))
}

func checkText(flag, text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return refuse(exitUsage, "%s %q: control characters and invalid UTF-8 are not allowed",
			flag, text)
	}
	return nil
}

// checkArguments keeps secrets, and settings with their own flags, off the server's command line.
func (s Spec) checkArguments() error {
	for _, arg := range s.Args {
		if err := checkText("argument", arg); err != nil {
			return err
		}
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "--db":
			return refuse(exitUsage,
				"everyone on the machine can read a service's command line; put the database's URL into a file and "+
					"use --database-url-file FILE instead of --db")
		case "--config", "--data-dir", "--listen", "--tls-cert", "--tls-key", "--client-ca":
			return refuse(exitUsage, "%s is also a flag of this command; put it before the --", name)
		}
	}
	return nil
}

// hidden are directories that the unit's sandbox replaces with empty ones.
var hidden = map[string]string{
	"/home": "ProtectHome", "/root": "ProtectHome", "/run/user": "ProtectHome", "/tmp": "PrivateTmp",
	"/var/tmp": "PrivateTmp",
	"/proc":    "ProtectProc", "/sys": "ProtectControlGroups", "/dev": "PrivateDevices",
}

// checkSandbox rejects paths that a system unit cannot see, and data that a dynamic user cannot
// own.
func (s Spec) checkSandbox() error {
	for _, p := range []struct{ flag, path, instead string }{
		{"the binary", s.Binary, "add --copy-binary, which copies it to /usr/local/bin"},
		{"--config", s.seenConfig(), "use a path in /etc"},
		{"--data-dir", s.DataDir, "use a path in /var/lib or /srv"},
	} {
		for directory, setting := range hidden {
			if within(s.System, directory, p.path) {
				return refuse(exitUsage, "%s %q: the service cannot see %s (%s=) and would not start; %s", p.flag,
					p.path, directory, setting, p.instead)
			}
		}
	}
	if own := joinOn(s.System, "/var/lib", s.Name); s.dynamic() && s.DataDir != own {
		return refuse(exitUsage,
			"--data-dir %q: the service's dynamic user owns %s only; omit --data-dir, "+
				"or choose the service's account with --run-as", s.DataDir, own)
	}
	return nil
}

// seenConfig is the configuration file if the service reads it itself.
func (s Spec) seenConfig() string {
	if s.Private {
		return ""
	}
	return s.Config
}
