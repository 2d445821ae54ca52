// Package theme defines how the terminal UI looks: the colours and attributes of each meaning, and
// the glyphs that the terminal can show. It draws nothing.
package theme

import (
	"slices"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
)

// Role is a part that the UI itself draws. The meaning of data is a render.Style.
type Role uint8

const (
	Text     Role = iota
	Faint         // less important text
	Border        // lines around and between
	Title         // of a view, a dialog, a section
	Head          // titles of columns
	Crumb         // the path to the open view
	Key           // a key in the hints and the help
	Selected      // the row under the cursor
	Marked        // rows that the next action applies to
	Fresh         // a row that just changed
	Stale         // rows that may be out of date
	Field         // an input
	Ghost         // a completion that a key accepts
	Warning       // a problem outside of this row
	Danger        // an action that cannot be undone
	Success       // an action that worked
	roles
)

// Theme is one look. Create it with New; it is immutable.
type Theme struct {
	Name   string
	styles [styles]tcell.Style // by render.Style
	roles  [roles]tcell.Style
	glyphs *[glyphs]string
	ascii  bool
}

// styles is the number of styles.
const styles = int(render.Strong) + 1

// Style returns the look of a meaning.
func (t *Theme) Style(s render.Style) tcell.Style {
	if int(s) >= len(t.styles) {
		return t.styles[render.Plain]
	}
	return t.styles[s]
}

// Role returns the look of a part of the UI.
func (t *Theme) Role(r Role) tcell.Style { return t.roles[r] }

// Glyph returns the text of a glyph in this theme's set.
func (t *Theme) Glyph(g Glyph) string { return t.glyphs[g] }

// ASCII reports whether the glyphs are limited to ASCII.
func (t *Theme) ASCII() bool { return t.ascii }

// WithASCII returns the same theme with ASCII glyphs.
func (t *Theme) WithASCII() *Theme {
	plain := *t
	plain.glyphs, plain.ascii = &asciiGlyphs, true
	return &plain
}

// Names returns the names of the built-in themes, the default first.
func Names() []string {
	names := make([]string, len(builtin))
	for i, t := range builtin {
		names[i] = t.Name
	}
	return names
}

// New returns the theme with a name; ok is false if there is none.
func New(name string) (t *Theme, ok bool) {
	i := slices.IndexFunc(builtin, func(t *Theme) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}
	return builtin[i], true
}

// Default uses the sixteen colours of the terminal's palette on its own background.
func Default() *Theme { return builtin[0] }

// Mono uses only attributes and glyphs, for NO_COLOR and for terminals without colours.
func Mono() *Theme { return builtin[len(builtin)-1] }
