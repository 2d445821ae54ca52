package theme

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/pelletier/go-toml/v2"

	"github.com/kagzi/kagzi/proto/near"
	"github.com/kagzi/kagzi/tui/render"
)

// styleNames and roleNames are the names of styles and roles in a theme file.
var (
	styleNames = [styles]string{
		render.Plain: "plain", render.Dim: "dim", render.Good: "good", render.Bad: "bad", render.Busy: "busy",
		render.Waiting: "waiting",
		render.Stopped: "stopped", render.Asleep: "asleep", render.Paused: "paused", render.Strong: "strong",
	}
	roleNames = [roles]string{
		Text: "text", Faint: "faint", Border: "border", Title: "title", Head: "head", Crumb: "crumb", Key: "key",
		Selected: "selected", Marked: "marked",
		Fresh: "fresh", Stale: "stale", Field: "field", Ghost: "ghost", Warning: "warning", Danger: "danger",
		Success: "success",
	}
	attributes = map[string]func(tcell.Style) tcell.Style{
		"bold":      func(s tcell.Style) tcell.Style { return s.Bold(true) },
		"dim":       func(s tcell.Style) tcell.Style { return s.Dim(true) },
		"italic":    func(s tcell.Style) tcell.Style { return s.Italic(true) },
		"underline": func(s tcell.Style) tcell.Style { return s.Underline(true) },
		"reverse":   func(s tcell.Style) tcell.Style { return s.Reverse(true) },
		"strike":    func(s tcell.Style) tcell.Style { return s.StrikeThrough(true) },
	}
)

// Load reads a theme from a TOML file:
//
//	base = "dark"                  # a built-in theme; default "terminal"
//	[styles]                       # meanings of data
//	good = "#6cc07a bold"
//	[roles]                        # parts of the UI
//	selected = "white on blue"
//
// A look is a colour, "on" and a background colour, and attributes. A missing colour is taken from
// the base; attributes are not. Colours are "#rrggbb", HTML names, or "default" for the terminal's
// own. The theme's name is the file's without its extension. An unknown name or word is an error
// that proposes the nearest one.
func Load(path string) (*Theme, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read theme: %w", err)
	}
	t, err := parse(render.FileText(data))
	if err != nil {
		return nil, fmt.Errorf("theme %s: %w", path, err)
	}
	t.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return t, nil
}

func parse(data []byte) (*Theme, error) {
	var file map[string]any
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	t := *Default()
	if base, ok := file["base"]; ok {
		name := fmt.Sprint(base)
		found, ok := New(name)
		if !ok {
			return nil, unknown("base", name, Names())
		}
		t = *found
	}
	for _, key := range sorted(file) {
		var err error
		switch key {
		case "base":
		case "styles":
			err = t.fill(key, file[key], styleNames[:], t.styles[:])
		case "roles":
			err = t.fill(key, file[key], roleNames[:], t.roles[:])
		default:
			err = unknown("key", key, []string{"base", "styles", "roles"})
		}
		if err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// fill changes the looks that a table of the file names.
func (t *Theme) fill(table string, value any, names []string, looks []tcell.Style) error {
	entries, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s must be a table", table)
	}
	for _, name := range sorted(entries) {
		i := slices.Index(names, name)
		if i < 0 {
			return unknown(table+"."+name+": name", name, names)
		}
		text, ok := entries[name].(string)
		if !ok {
			return fmt.Errorf("%s.%s must be a text such as %q", table, name, "red bold")
		}
		look, err := parseLook(text, looks[i])
		if err != nil {
			return fmt.Errorf("%s.%s: %w", table, name, err)
		}
		looks[i] = look
	}
	return nil
}

// parseLook returns a style with the colours and attributes of a text.
func parseLook(text string, style tcell.Style) (tcell.Style, error) {
	style = style.Normal()
	background := false
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if word == "on" && !background {
			background = true
			continue
		}
		if add, ok := attributes[word]; ok && !background {
			style = add(style)
			continue
		}
		colour, err := parseColour(word)
		if err != nil {
			return style, err
		}
		if background {
			style, background = style.Background(colour), false
		} else {
			style = style.Foreground(colour)
		}
	}
	if background {
		return style, fmt.Errorf("a colour is missing after %q", "on")
	}
	return style, nil
}

// parseColour parses "#rrggbb", "default" or a name.
func parseColour(word string) (tcell.Color, error) {
	if word == "default" {
		return tcell.ColorDefault, nil
	}
	if digits, ok := strings.CutPrefix(word, "#"); ok {
		n, err := strconv.ParseUint(digits, 16, 24)
		if err != nil || len(digits) != 6 {
			return 0, fmt.Errorf("%q is not a colour: want six hexadecimal digits after #", word)
		}
		return tcell.NewHexColor(int32(n)), nil
	}
	if colour, ok := tcell.ColorNames[word]; ok {
		return colour, nil
	}
	known := []string{"default", "on"}
	for name := range tcell.ColorNames {
		known = append(known, name)
	}
	for name := range attributes {
		known = append(known, name)
	}
	return 0, unknown("word", word, known)
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// unknown returns the error about an unknown name, with the nearest known one.
func unknown(what, name string, known []string) error {
	known = slices.Clone(known)
	sort.Strings(known)
	nearest, least := "", len(name)
	for _, candidate := range known {
		if d := near.Distance(name, candidate); d < least {
			nearest, least = candidate, d
		}
	}
	if nearest == "" {
		return fmt.Errorf("%s %q is unknown", what, name)
	}
	return fmt.Errorf("%s %q is unknown; did you mean %q?", what, name, nearest)
}
