package daemon

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// resolve makes a Config of the flags that were given, else of the environment, else of the defaults. The warnings name
// variables that should be called otherwise or that are not heeded.
func resolve(fs *pflag.FlagSet, settings []setting, lookup func(string) (string, bool)) (c Config, warnings []string, err error) {
	c = Defaults()
	for i := range settings {
		s := &settings[i]
		if f := fs.Lookup(s.name); f.Changed {
			if err := s.parse(&c, f.Value.String()); err != nil {
				return c, nil, usagef("--%s %q: %w", s.name, f.Value, err)
			}
			continue
		}
		more, err := s.fromEnvironment(&c, lookup)
		if err != nil {
			return c, nil, err
		}
		warnings = append(warnings, more...)
	}
	return c, warnings, nil
}

// fromEnvironment takes the setting from the first of its variables that is set; an empty one counts as not set.
func (s *setting) fromEnvironment(c *Config, lookup func(string) (string, bool)) (warnings []string, err error) {
	from := ""
	for _, v := range append([]variable{{name: s.variable()}}, s.older...) {
		text, _ := lookup(v.name)
		if text == "" {
			continue
		}
		said := *c
		if err := s.read(&said, v, text); err != nil {
			return nil, usagef("%s=%q: %w", v.name, text, err)
		}
		switch {
		case from == "":
			*c, from = said, v.name
			if v.deprecated {
				warnings = append(warnings, fmt.Sprintf("%s is an old name, use %s", v.name, s.variable()))
			}
		case s.show(&said) != s.show(c):
			warnings = append(warnings, fmt.Sprintf("%s is not heeded, because %s is set", v.name, from))
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
		return errors.New("want whole seconds, such as 10")
	}
	return s.parse(c, (time.Duration(n) * time.Second).String())
}
