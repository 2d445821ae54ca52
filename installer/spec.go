package installer

import (
	"encoding/json"
	"errors"
	"strings"
)

// Spec is everything that a service's definition is rendered from. The definition carries it, so that `reconfigure` knows what
// was asked for before.
type Spec struct {
	System string `json:"system"`           // linux, darwin or windows
	User   bool   `json:"user,omitempty"`   // a service of the user, not of the machine
	Name   string `json:"name"`             // of the service, and of its directories
	Binary string `json:"binary"`           // absolute
	Copied bool   `json:"copied,omitempty"` // the binary was put there by the installation

	Config  string `json:"config"`            // the server's configuration file, absolute
	DataDir string `json:"data_dir"`          // absolute
	LogDir  string `json:"log_dir,omitempty"` // absolute; empty where the system keeps the log

	Listen          string   `json:"listen,omitempty"`            // host:port; empty leaves it to the configuration file
	DatabaseURLFile string   `json:"database_url_file,omitempty"` // holds the URL, which may hold a password
	Args            []string `json:"args,omitempty"`              // further arguments of the server

	// Account runs the service; empty means one that the system makes up: a dynamic user, or on Windows a virtual account.
	Account string `json:"account,omitempty"`
	Group   string `json:"group,omitempty"` // that of the account
}

// arguments are what the binary is called with.
func (s Spec) arguments() []string {
	args := []string{"service", "run", "--name", s.Name}
	if s.LogDir != "" {
		args = append(args, "--log-dir", s.LogDir)
	}
	switch {
	case s.DatabaseURLFile == "":
	case s.credential():
		args = append(args, "--database-url-credential", credentialName)
	default:
		args = append(args, "--database-url-file", s.DatabaseURLFile)
	}
	args = append(args, "--", "--config", s.Config, "--data-dir", s.DataDir)
	if s.Listen != "" {
		args = append(args, "--listen", s.Listen)
	}
	return append(args, s.Args...)
}

// credentialName is what systemd calls the database's URL.
const credentialName = "database-url"

// credential says whether systemd reads the database's URL for the service, which cannot read root's files itself.
func (s Spec) credential() bool { return s.System == "linux" && !s.User && s.DatabaseURLFile != "" }

// dynamic says whether systemd makes up the user that runs the service.
func (s Spec) dynamic() bool { return s.System == "linux" && !s.User && s.Account == "" }

// recordMark begins the record of a Spec in a definition.
const recordMark = "kagzi-spec: "

// record is the Spec as one line that stands in comments of units and of XML alike.
func (s Spec) record() (string, error) {
	b, err := json.Marshal(s) // which writes <, > and & as \u003c, \u003e and \u0026
	if err != nil {
		return "", err
	}
	// "--" would end a comment of XML, and "{{" begin an action of the library that writes the file. In JSON both are in strings only.
	return recordMark + strings.NewReplacer("-", `\u002d`, "{{", `{\u007b`).Replace(string(b)), nil
}

var errNoRecord = errors.New("it was not written by kagzi service install, or someone took the line with its record out")

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
