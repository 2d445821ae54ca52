// Package settings reads tui.toml, and stores what the program remembers: typed lines, saved
// filters and the theme.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/render"
)

// Config holds the settings of tui.toml. Every field is optional.
type Config struct {
	// the name of a theme, or of a file themes/NAME.toml beside tui.toml
	Theme   string `toml:"theme"`
	Time    string `toml:"time"`    // relative, local, utc or epoch
	Mouse   bool   `toml:"mouse"`   // handle the mouse instead of the terminal
	ASCII   bool   `toml:"ascii"`   // no glyphs beyond ASCII
	Refresh string `toml:"refresh"` // least time between two frames, such as "1s" on a slow connection
	// namespaces, as globs, in which every change asks to type the name
	Protected []string            `toml:"protected"`
	Columns   map[string][]string `toml:"columns"` // per page: the columns to show, in order
	Keys      map[string][]string `toml:"keys"`    // per action: its keys, replacing the default ones
	Filters   map[string]string   `toml:"filters"` // saved filters of runs, by name
}

// LoadConfig reads a settings file; a missing file is empty. Errors name the file and the line.
func LoadConfig(path string) (Config, error) {
	var c Config
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	decoder := toml.NewDecoder(bytes.NewReader(render.FileText(raw))).DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%s: %s", path, explain(err))
	}
	if c.Time != "" && !slices.Contains(clock.Styles, c.Time) {
		return Config{}, fmt.Errorf("%s: time = %q: want one of %s", path, c.Time, strings.Join(clock.Styles, ", "))
	}
	return c, nil
}

// explain returns where and why a file could not be read.
func explain(err error) string {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Sprintf(
			"line %d: unknown setting %s; want one of theme, time, mouse, ascii, refresh, protected, columns, keys, "+
				"filters",
			row, strings.Join(strict.Errors[0].Key(), "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		return fmt.Sprintf("line %d, column %d: %s", row, column, decode.Error())
	}
	return err.Error()
}

// State holds what the program remembers between runs.
type State struct {
	Commands []string          `toml:"commands"` // typed, oldest first
	Searches []string          `toml:"searches"` // filters typed, oldest first
	Filters  map[string]string `toml:"filters"`  // saved by `:filter save NAME`
	Theme    string            `toml:"theme"`    // chosen in the program
}

// MaxRemembered limits the lines of a history.
const MaxRemembered = 100

// LoadState reads the remembered state; a missing or damaged file counts as empty.
func LoadState(path string) State {
	var s State
	if raw, err := os.ReadFile(path); err == nil && toml.Unmarshal(raw, &s) != nil {
		s = State{}
	}
	return s
}

// Save writes the state atomically.
func (s State) Save(path string) error {
	raw, err := toml.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return WriteWhole(path, raw)
}

// WriteWhole replaces a file atomically.
func WriteWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".kagzi-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // otherwise the name may exist before the content after a crash
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Remember adds a line to a history: each line once, newest last.
func Remember(history []string, line string) []string {
	if line == "" {
		return history
	}
	history = slices.DeleteFunc(slices.Clone(history), func(old string) bool { return old == line })
	history = append(history, line)
	return history[max(len(history)-MaxRemembered, 0):]
}
