package installer

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

// which names a service. Every command has these flags.
type which struct {
	user bool
	name string
}

func (o *which) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.user, "user", false, "a user service instead of a system service")
	cmd.Flags().StringVar(&o.name, "name", defaultName, "name of the service, if there are several")
}

// flags returns the flags that name the service, for hints.
func (o *which) flags() string { return Spec{User: o.user, Name: o.name}.flags() }

// spec returns the service with its default paths, for commands that read the rest from its
// definition.
func (o *which) spec(h *host) (Spec, error) {
	s := h.places.layout(Spec{System: h.system, User: o.user, Name: o.name})
	if !serviceName.MatchString(o.name) {
		return s, refuse(exitUsage, "--name %q: must be a letter, then at most 47 letters, digits, - and _", o.name)
	}
	if o.user && h.system != "windows" && h.places.home == "" {
		return s, refuse(exitUsage, "HOME is not set, so a user service cannot be installed")
	}
	return s, nil
}

// settings are the flags of the commands that make a definition.
type settings struct {
	which
	config, dataDir, listen, urlFile, account string
	tlsCert, tlsKey, clientCA                 string
	copyBinary, now, dryRun                   bool
}

func (o *settings) register(cmd *cobra.Command) {
	o.which.register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&o.config, "config", "", "configuration file; an empty one is created if missing")
	fs.StringVar(&o.dataDir, "data-dir", "", "directory of the embedded database")
	fs.StringVar(&o.listen, "listen", "", "gRPC address, host:port (default: as in the configuration file)")
	fs.StringVar(&o.urlFile, "database-url-file", "",
		"file with the database URL, which keeps it off the command line")
	fs.StringVar(&o.tlsCert, "tls-cert", "",
		"server certificate; under systemd it may be readable by root only, like --tls-key and --client-ca")
	fs.StringVar(&o.tlsKey, "tls-key", "", "private key of the certificate, not readable by others")
	fs.StringVar(&o.clientCA, "client-ca", "", "CA of client certificates")
	fs.StringVar(&o.account, "run-as", "", "account that runs the service (default: a dynamic or virtual account)")
	fs.BoolVar(&o.copyBinary, "copy-binary", false,
		"copy this program to the system's directory for programs first, or upgrade the one there")
}

// registerDoing adds the flags of commands that change something; now is the default of --now.
func (o *settings) registerDoing(cmd *cobra.Command, now bool) {
	o.register(cmd)
	cmd.Flags().BoolVar(&o.now, "now", now, "also start the service if it is not running")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would be done, without changes")
}

// over writes the flags that were given into a Spec.
func (o *settings) over(s Spec, cmd *cobra.Command, args []string) Spec {
	for flag, field := range map[string]struct {
		to   *string
		said string
	}{
		"config": {&s.Config, o.config}, "data-dir": {&s.DataDir, o.dataDir}, "listen": {&s.Listen, o.listen},
		"database-url-file": {&s.DatabaseURLFile, o.urlFile}, "run-as": {&s.Account, o.account},
		"tls-cert": {&s.TLSCert, o.tlsCert}, "tls-key": {&s.TLSKey, o.tlsKey}, "client-ca": {&s.ClientCA, o.clientCA},
	} {
		if cmd.Flags().Changed(flag) {
			*field.to = field.said
		}
	}
	if cmd.ArgsLenAtDash() >= 0 {
		s.Args = args
	}
	return s
}

// complete fills in what depends on the host: the binary, and the group of the account.
func (o *settings) complete(h *host, s Spec) (complete Spec, copyFrom string, err error) {
	if h.places.home == "" && o.user && h.system != "windows" {
		return s, "", refuse(exitUsage, "HOME is not set, so a user service cannot be installed")
	}
	s = h.places.layout(s)
	this, err := h.executable()
	if err != nil {
		return s, "", fmt.Errorf("find this program: %h", err)
	}
	switch {
	case o.copyBinary:
		s.Binary, s.Copied, copyFrom = h.places.binary(s.User), true, this
	case s.Binary == "":
		s.Binary = this
	}
	s.Private = s.dynamic() && onlyRootReads(h.disk(), s.Config)
	if err := s.check(); err != nil {
		return s, "", err
	}
	if copyFrom == "" && strings.Contains(s.Binary, "/go-build") {
		return s, "",
			refuse(exitUsage, "%q was built by go run and is temporary; build kagzi first, or add --copy-binary",
				s.Binary)
	}
	s.Group = ""
	if s.Account != "" && s.System != "windows" {
		if s.Group, err = h.groupOf(s.Account); err != nil {
			return s, "", refuse(exitUsage, "--run-as %q: %h", s.Account, err)
		}
	}
	return s, copyFrom, nil
}

// allowed returns an error when the caller may not change the service.
func (o *which) allowed(h *host) error {
	switch {
	case o.user && h.system != "windows" && h.mayInstall && h.env("SUDO_USER") != "":
		return refuse(exitUsage, "with sudo, --user would install a service for root; omit sudo")
	case !o.user && !h.mayInstall:
		return refuse(exitPermission, "only an administrator may change system services; %s", howToBeRoot)
	}
	return nil
}

// checkFiles rejects missing files, and secrets that others can read.
func checkFiles(s Spec, d *disk, copyFrom string) error {
	if copyFrom == "" {
		if info, err := os.Stat(d.at(s.Binary)); err != nil || info.IsDir() {
			return refuse(exitUsage, "the program %q no longer exists; add --copy-binary", s.Binary)
		}
	}
	for _, f := range []struct {
		flag, path string
		not        fs.FileMode // mode bits it must not have; groups may often read a key
	}{
		{"--database-url-file", s.DatabaseURLFile, 0o044}, {"--tls-key", s.TLSKey, 0o004}, {"--tls-cert", s.TLSCert, 0},
		{"--client-ca", s.ClientCA, 0},
	} {
		if f.path == "" {
			continue
		}
		info, err := os.Stat(d.at(f.path))
		if err != nil {
			return refuse(exitUsage, "%s: %w", f.flag, err)
		}
		if s.System != "windows" && info.Mode().Perm()&f.not != 0 {
			return refuse(exitUsage, "%s %q: others may read it (mode %04o); run chmod 600", f.flag, f.path,
				info.Mode().Perm())
		}
	}
	return nil
}

// onlyRootReads reports whether a dynamic user could not read a file, because of its mode or of a
// directory above it: kagzi tls init creates a directory for root only. A missing path will be
// created readable by everyone.
func onlyRootReads(d *disk, name string) bool {
	lacks := func(name string, bit fs.FileMode) bool {
		info, err := os.Stat(d.at(name))
		return err == nil && info.Mode().Perm()&bit == 0
	}
	if lacks(name, 0o004) {
		return true
	}
	for above := path.Dir(name); above != path.Dir(above); above = path.Dir(above) {
		if lacks(above, 0o001) {
			return true
		}
	}
	return false
}
