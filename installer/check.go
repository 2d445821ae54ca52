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

// check refuses a Spec that no service manager would run, or that would run and not work, and says what to do instead.
func (s Spec) check() error {
	if !slices.Contains([]string{"linux", "darwin", "windows"}, s.System) {
		return refuse(exitUsage, "there is no service for the operating system %q; there are linux, darwin and windows",
			s.System)
	}
	if !serviceName.MatchString(s.Name) {
		return refuse(exitUsage, "--name %q: want a letter, then at most 47 letters, digits, - and _", s.Name)
	}
	if s.System == "windows" && s.User {
		return refuse(exitUsage,
			"Windows has no services of users; leave --user out, or start a server when you log in: "+
				`schtasks /create /sc onlogon /tn kagzi /tr "%s server"`, s.Binary)
	}
	if s.User && s.Account != "" {
		return refuse(exitUsage, "--run-as goes with a service of the machine; leave --user or --run-as out")
	}
	if strings.ContainsFunc(s.Account, func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune(`:/%"'{}`, r)
	}) {
		return refuse(exitUsage, "--run-as %q: want the name of an account", s.Account)
	}
	if err := s.checkPaths(); err != nil {
		return err
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return refuse(exitUsage,
			"--tls-cert and --tls-key go together: a certificate is nothing without its key; kagzi tls init makes both")
	}
	if s.ClientCA != "" && s.TLSCert == "" {
		return refuse(exitUsage,
			"--client-ca says whose clients are known, which takes --tls-cert and --tls-key too; kagzi tls init makes all three")
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
			return refuse(exitUsage, "--listen %q: want host:port such as 127.0.0.1:50051", s.Listen)
		}
	}
	if err := s.checkArguments(); err != nil {
		return err
	}
	if s.System == "linux" && strings.ContainsAny(s.Binary, `"'\`) {
		return refuse(exitUsage,
			"the binary %q: systemd starts no program with quotes or \\ in its path; move it, or add --copy-binary",
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
				"%s %q: want an absolute path, because the service manager starts the service in a directory of its own", p.flag, p.path)
		}
		if err := checkText(p.flag, p.path); err != nil {
			return err
		}
		if strings.Contains(p.path, "{{") || strings.TrimSpace(p.path) != p.path || s.System != "windows" &&
			strings.HasSuffix(p.path, `\`) {
			return refuse(exitUsage,
				"%s %q: a definition cannot hold a path with {{ in it, with spaces around it or with \\ at its end",
				p.flag, p.path)
		}
	}
	return nil
}

// absolute is filepath.IsAbs for a system that this program may not run on.
func absolute(system, path string) bool {
	if system != "windows" {
		return strings.HasPrefix(path, "/")
	}
	return len(path) > 2 && path[1] == ':' && strings.ContainsRune(`\/`, rune(path[2])) &&
		unicode.IsLetter(rune(path[0]))
}

func checkText(flag, text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return refuse(exitUsage, "%s %q: control characters and invalid UTF-8 cannot be written down in a definition",
			flag, text)
	}
	return nil
}

// checkArguments keeps what is secret, and what the service's own flags say, off the server's command line.
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
					"say --database-url-file FILE instead of --db")
		case "--config", "--data-dir", "--listen", "--tls-cert", "--tls-key", "--client-ca":
			return refuse(exitUsage, "%s is a flag of this command too; say it before the --", name)
		}
	}
	return nil
}

// hidden are directories that the unit's sandbox replaces by empty ones.
var hidden = map[string]string{
	"/home": "ProtectHome", "/root": "ProtectHome", "/run/user": "ProtectHome", "/tmp": "PrivateTmp",
	"/var/tmp": "PrivateTmp",
	"/proc":    "ProtectProc", "/sys": "ProtectControlGroups", "/dev": "PrivateDevices",
}

// checkSandbox refuses paths that a system unit cannot see, and data that a dynamic user cannot own.
func (s Spec) checkSandbox() error {
	for _, p := range []struct{ flag, path, instead string }{
		{"the binary", s.Binary, "add --copy-binary, which puts it into /usr/local/bin"},
		{"--config", s.seenConfig(), "a place in /etc is usual"},
		{"--data-dir", s.DataDir, "a place in /var/lib or /srv is usual"},
	} {
		for directory, setting := range hidden {
			if within(s.System, directory, p.path) {
				return refuse(exitUsage, "%s %q: the service does not see %s (%s=), so it could not start; %s", p.flag,
					p.path, directory, setting, p.instead)
			}
		}
	}
	if own := joinOn(s.System, "/var/lib", s.Name); s.dynamic() && s.DataDir != own {
		return refuse(exitUsage,
			"--data-dir %q: a user that systemd makes up for the service owns %s only; leave --data-dir out, "+
				"or say with --run-as which account the service has", s.DataDir, own)
	}
	return nil
}

// seenConfig is the configuration file when the service reads it itself.
func (s Spec) seenConfig() string {
	if s.Private {
		return ""
	}
	return s.Config
}
