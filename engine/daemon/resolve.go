package daemon

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/proto/near"
)

// surroundings are the sources of settings other than flags.
type surroundings struct {
	lookup  func(name string) (string, bool) // the environment
	environ func() []string                  // all variables as NAME=value; nil: unknown
	file    string                           // default settings file, read if it exists
}

// system returns the surroundings of this process.
func system() surroundings {
	return surroundings{lookup: os.LookupEnv, environ: os.Environ, file: defaultFile()}
}

// resolve builds a Config from flags, then the environment, then the file, then defaults. Warnings
// name variables with an old name or without effect.
func resolve(fs *pflag.FlagSet, settings []setting, from surroundings) (c Config, warnings []string, err error) {
	c = Defaults()
	c.Sources = map[string]string{}
	var said file
	for i := range settings {
		s := &settings[i]
		more, err := s.settle(&c, fs, from, said)
		if err != nil {
			return c, nil, err
		}
		warnings = append(warnings, more...)
		if s.name != "config" {
			continue
		}
		switch _, named := c.Sources[s.name]; {
		case c.File == off:
			c.File = ""
		case c.File == "" && !named && isThere(from.file):
			c.File, c.Sources[s.name] = from.file, "default"
		}
		if c.File != "" {
			if said, err = readFile(c.File); err != nil {
				return c, nil, err
			}
		}
	}
	return c, append(warnings, from.misspelt()...), nil
}

// misspelt warns about variables that nearly match a server setting. Other KAGZI_ variables are
// legitimate: those of clients and workers, and those that Kubernetes sets for a service named
// kagzi.
func (from surroundings) misspelt() (warnings []string) {
	if from.environ == nil {
		return nil
	}
	known := slices.Clone(otherVariables)
	for i := range serverSettings {
		known = append(known, serverSettings[i].variable())
		for _, v := range serverSettings[i].older {
			known = append(known, v.name)
		}
	}
	for _, variable := range from.environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "KAGZI_") || slices.Contains(known, name) {
			continue
		}
		for _, meant := range known {
			if near.Distance(name, meant) <= 2 && !slices.Contains(otherVariables, meant) {
				warnings = append(warnings, fmt.Sprintf(
					"ignoring %s: unknown setting; did you mean %s?", output.Plain(name), meant))
				break
			}
		}
	}
	return warnings
}

// otherVariables are those of clients, workers and databases.
var otherVariables = []string{
	"KAGZI_ADDRESS", "KAGZI_API_KEY", "KAGZI_API_KEY_FILE", "KAGZI_NAMESPACE", "KAGZI_NO_COLOR", "KAGZI_OUTPUT",
	"KAGZI_PROFILE", "KAGZI_TIME",
	"KAGZI_TIMEOUT", "KAGZI_TLS", "KAGZI_TLS_CA", "KAGZI_TLS_CLIENT_CERT", "KAGZI_TLS_CLIENT_KEY",
	"KAGZI_TLS_SERVER_NAME",
	"KAGZI_ALLOW_NETWORK_FS", "KAGZI_ALLOW_UNSAFE_DB", "KAGZI_CHECK", "KAGZI_FAILPOINT", "KAGZI_UNSAFE_SYNCHRONOUS",
	testClockVariable,
}

// settle sets the setting from the first source that has it.
func (s *setting) settle(c *Config, fs *pflag.FlagSet, from surroundings, said file) (warnings []string, err error) {
	if f := fs.Lookup(s.name); f.Changed {
		if err := s.parse(c, f.Value.String()); err != nil {
			return nil, usagef("--%s %q: %w", s.name, s.open(f.Value.String()), err)
		}
		c.Sources[s.name] = "flag"
		return nil, nil
	}
	warnings, err = s.fromEnvironment(c, from.lookup)
	if _, found := c.Sources[s.name]; err != nil || found {
		return warnings, err
	}
	if v, found := said[s.name]; found {
		c.Sources[s.name] = "file " + v.place
		return warnings, s.parse(c, v.text) // it was parsed before
	}
	return warnings, nil
}

// fromEnvironment sets the setting from the first of its variables that is set; an empty one counts
// as unset.
func (s *setting) fromEnvironment(c *Config, lookup func(string) (string, bool)) (warnings []string, err error) {
	from := ""
	for _, v := range append([]variable{{name: s.variable()}}, s.older...) {
		text, _ := lookup(v.name)
		if text == "" {
			continue
		}
		said := *c
		if err := s.read(&said, v, text); err != nil {
			return nil, usagef("%s=%q: %w", v.name, s.open(text), err)
		}
		switch {
		case from == "":
			*c, from = said, v.name
			c.Sources[s.name] = "environment " + v.name
			if v.deprecated {
				warnings = append(warnings, fmt.Sprintf("%s is an old name; use %s", v.name, s.variable()))
			}
		case s.show(&said) != s.show(c):
			warnings = append(warnings, fmt.Sprintf("ignoring %s, because %s is set", v.name, from))
		}
	}
	return warnings, nil
}

func (s *setting) read(c *Config, v variable, text string) error {
	if !v.seconds {
		return s.parse(c, text)
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("must be whole seconds, such as 10")
	}
	return s.parse(c, (time.Duration(n) * time.Second).String())
}
