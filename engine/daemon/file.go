package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kagzi/kagzi/engine/certs"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/proto/near"
)

// defaultFile returns the default settings file; empty if the system has no place for it.
func defaultFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kagzi", "kagzi.toml")
}

// file holds the settings of a file by name. A nil file has none.
type file map[string]fileValue

// fileValue is a setting in a file, in the form that parse takes.
type fileValue struct {
	text  string
	place string // "/etc/kagzi/kagzi.toml:3", safe for a terminal
}

// tables are the tables of a file. The client tables are parsed and checked by clients.
type tables struct {
	Server  struct{} `toml:"server"`
	Client  any      `toml:"client"`
	Profile any      `toml:"profile"`
}

var tableNames = []string{"server", "client", "profile"}

// readFile reads a settings file and validates table [server].
func readFile(path string) (file, error) {
	path, err := fileOf(path)
	if err != nil {
		return nil, usagef("--config %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("settings: %w", err)
	}
	said, err := parseFile(output.Plain(path), certs.FileText(data))
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return said, nil
}

// ListenIn returns the listen address in a settings file; empty if it has none or cannot be read.
func ListenIn(path string) string {
	said, err := readFile(path)
	if err != nil {
		return ""
	}
	return said["listen"].text
}

// isThere reports whether path exists, readable or not.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return path != "" && !errors.Is(err, fs.ErrNotExist)
}

// parseFile parses the values. It gets line numbers by decoding into a struct that has none of the
// keys.
func parseFile(path string, data []byte) (file, error) {
	var document map[string]any
	if err := toml.Unmarshal(data, &document); err != nil {
		return nil, atLine(path, err)
	}
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(new(tables))
	keys, found := errors.AsType[*toml.StrictMissingError](err)
	if err != nil && !found {
		return nil, atLine(path, err)
	}
	said := file{}
	if !found {
		return said, nil
	}
	for i := range keys.Errors {
		line, _ := keys.Errors[i].Position()
		place := path + ":" + strconv.Itoa(line)
		name, text, err := settingAt(keys.Errors[i].Key(), document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		said[name] = fileValue{text: text, place: place}
	}
	return said, nil
}

// atLine formats a TOML syntax error with its line.
func atLine(path string, err error) error {
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := bad.Position()
		return fmt.Errorf("%s:%d: %s", path, line, output.Plain(strings.TrimPrefix(bad.Error(), "toml: ")))
	}
	return fmt.Errorf("%s: %s", path, output.Plain(err.Error()))
}

// settingAt returns the setting for a key of the document, and its value in the form that parse
// takes.
func settingAt(key toml.Key, document map[string]any) (name, text string, err error) {
	if key[0] != "server" {
		if _, isTable := document[key[0]].(map[string]any); isTable {
			return "", "", fmt.Errorf("unknown table %q%s", key[0], instead(key[0], tableNames))
		}
		return "", "", fmt.Errorf("%q is outside table [server], which holds the server's settings", key[0])
	}
	name = strings.Join(key[1:], ".")
	known := fileSettings()
	at := slices.IndexFunc(known, func(s *setting) bool { return s.name == name })
	if at < 0 {
		names := make([]string, len(known))
		for i, s := range known {
			names[i] = s.name
		}
		return "", "", fmt.Errorf("unknown setting %q%s", name, instead(name, names))
	}
	table, _ := document["server"].(map[string]any)
	switch value := table[name].(type) {
	case string:
		text = value
	case int64:
		text = strconv.FormatInt(value, 10)
	case bool:
		text = strconv.FormatBool(value)
	default:
		return "", "", fmt.Errorf("%s: must be a quoted string, a whole number, true or false", name)
	}
	scratch := Defaults()
	if err := known[at].parse(&scratch, text); err != nil {
		return "", "", fmt.Errorf("%s %q: %w", name, known[at].open(text), err)
	}
	return name, text, nil
}

// fileSettings returns the settings that a file may contain.
func fileSettings() []*setting {
	var known []*setting
	for i := range serverSettings {
		if s := &serverSettings[i]; s.name != "config" {
			known = append(known, s)
		}
	}
	return known
}

// instead suggests the known name nearest to an unknown one, if near enough.
func instead(name string, known []string) string {
	nearest, least := "", max(len(name)/2, 2)+1
	for _, candidate := range known {
		if d := near.Distance(name, candidate); d < least {
			nearest, least = candidate, d
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", nearest)
}

// credentialMark is the prefix of a file passed by the service manager, which the service may not
// be able to read in its place: systemd's LoadCredential=NAME:PATH.
const credentialMark = "credential:"

// fileOf returns the path of a file in a setting, given as a path or as a credential.
func fileOf(text string) (path string, err error) {
	name, err := credentialOf(text)
	if name == "" || err != nil {
		return text, err
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return "", fmt.Errorf("%q: this process has no credentials (CREDENTIALS_DIRECTORY is not set); "+
			"give a file name, or start the server by systemd with LoadCredential=%s:FILE", text, name)
	}
	return filepath.Join(dir, name), nil
}

// credentialOf returns the credential's name in a setting; empty if it is a path.
func credentialOf(text string) (name string, err error) {
	name, is := strings.CutPrefix(text, credentialMark)
	if !is {
		return "", nil
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("%q: must be credential:NAME", text)
	}
	return name, nil
}
