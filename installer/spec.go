package installer

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Spec is everything that a service's definition is rendered from. The definition contains it, so
// that `reconfigure` knows the previous settings.
type Spec struct {
	System string `json:"system"`           // linux, darwin or windows
	User   bool   `json:"user,omitempty"`   // a user service
	Name   string `json:"name"`             // name of the service and its directories
	Binary string `json:"binary"`           // absolute
	Copied bool   `json:"copied,omitempty"` // the installation copied the binary there

	Config  string `json:"config"`            // the server's configuration file, absolute
	Private bool   `json:"private,omitempty"` // the service cannot read that file itself, so systemd passes it
	DataDir string `json:"data_dir"`          // absolute
	LogDir  string `json:"log_dir,omitempty"` // absolute; empty if the system keeps the log

	// host:port; empty: as in the configuration file
	Listen          string `json:"listen,omitempty"`
	DatabaseURLFile string `json:"database_url_file,omitempty"` // contains the URL, which may have a password
	// absolute paths: server certificate, its key, and the CA of client certificates
	TLSCert  string   `json:"tls_cert,omitempty"`
	TLSKey   string   `json:"tls_key,omitempty"`
	ClientCA string   `json:"client_ca,omitempty"`
	Args     []string `json:"args,omitempty"` // further arguments of the server

	// Account runs the service; empty: a dynamic user of systemd, or a virtual account on Windows.
	Account string `json:"account,omitempty"`
	Group   string `json:"group,omitempty"` // group of the account
}

// arguments returns the command line of the binary.
func (s Spec) arguments() []string {
	args := []string{"service", "run", "--name", s.Name}
	if s.LogDir != "" {
		args = append(args, "--log-dir", s.LogDir)
	}
	switch {
	case s.DatabaseURLFile == "":
	case s.sandboxed():
		args = append(args, "--database-url-credential", databaseURL)
	default:
		args = append(args, "--database-url-file", s.DatabaseURLFile)
	}
	config := s.Config
	if s.Private {
		config = handedOver + configFile
	}
	args = append(args, "--", "--config", config, "--data-dir", s.DataDir)
	if s.Listen != "" {
		args = append(args, "--listen", s.Listen)
	}
	for _, c := range s.certificates() {
		value := c.path
		if s.sandboxed() {
			value = handedOver + c.name
		}
		args = append(args, "--"+c.name, value)
	}
	return append(args, s.Args...)
}

// flags returns the flags that name the service in a command.
func (s Spec) flags() string {
	text := ""
	if s.User {
		text += " --user"
	}
	if s.Name != defaultName {
		text += " --name " + s.Name
	}
	return text
}

// sandboxed reports whether the service has a system unit, in which it cannot read root's files.
func (s Spec) sandboxed() bool { return s.System == "linux" && !s.User }

// Names of credentials, in addition to those of certificates, which are the server's flags.
const (
	databaseURL = "database-url"
	configFile  = "config"
)

// handedOver is the prefix of a setting that names a credential instead of a file.
const handedOver = "credential:"

// credential is a file that systemd reads for the service at each start.
type credential struct{ name, path string }

// certificates returns the TLS files, by the server's flags.
func (s Spec) certificates() []credential {
	return slices.DeleteFunc([]credential{{"tls-cert", s.TLSCert}, {"tls-key", s.TLSKey}, {"client-ca", s.ClientCA}},
		func(c credential) bool { return c.path == "" })
}

// credentials returns the files that systemd passes to the service.
func (s Spec) credentials() []credential {
	if !s.sandboxed() {
		return nil
	}
	var all []credential
	if s.DatabaseURLFile != "" {
		all = append(all, credential{databaseURL, s.DatabaseURLFile})
	}
	if s.Private {
		all = append(all, credential{configFile, s.Config})
	}
	return append(all, s.certificates()...)
}

// dynamic reports whether the service runs as a dynamic user of systemd.
func (s Spec) dynamic() bool { return s.System == "linux" && !s.User && s.Account == "" }

// recordMark begins the record of a Spec in a definition.
const recordMark = "kagzi-spec: "

// record returns the Spec as one line that is valid in comments of units and of XML.
func (s Spec) record() (string, error) {
	b, err := json.Marshal(s) // which writes <, > and & as \u003c, \u003e and \u0026
	if err != nil {
		return "", err
	}
	// "--" would end a comment of XML, and "{{" begin an action of the library that writes the
	// file. In JSON both are in strings only.
	return recordMark + strings.NewReplacer("-", `\u002d`, "{{", `{\u007b`).Replace(string(b)), nil
}

var errNoRecord = errors.New(
	"it was not written by kagzi service install, or someone took the line with its record out")

// specOf reads the Spec that a definition carries.
func specOf(definition string) (Spec, error) {
	if strings.HasPrefix(definition, "{") { // a service of Windows
		var w winService
		if err := json.Unmarshal([]byte(definition), &w); err != nil || w.Spec.Name == "" {
			return Spec{}, errNoRecord
		}
		return w.Spec, nil
	}
	_, rest, _ := strings.Cut(definition, recordMark)
	var s Spec
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&s); err != nil || s.Name == "" {
		return Spec{}, errNoRecord
	}
	return s, nil
}
