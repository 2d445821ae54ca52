// Package theme owns how the terminal UI looks: which colours and attributes a meaning has, and
// which glyphs the terminal can show. It draws nothing.
package theme

import (
	"slices"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
)

// Role is a part that the UI itself draws. What data means is a render.Style.
type Role uint8

const (
	Text     Role = iota
	Faint         // what matters less
	Border        // lines around and between
	Title         // of a view, a dialog, a section
	Head          // titles of columns
	Crumb         // the way to the view that is open
	Key           // a key in the hints and the help
	Selected      // the row under the cursor
	Marked        // a row that the next action is for
	Fresh         // a row that just changed
	Stale         // rows that may be out of date
	Field         // where something can be typed
	Ghost         // the completion that a key would accept
	Warning       // something is wrong and it is not this row
	Danger        // what cannot be taken back
	Success       // an action that worked
	roles
)

// Theme is one look. Make it with New; it is not changed after that.
type Theme struct {
	Name   string
	styles [styles]tcell.Style // by render.Style
	roles  [roles]tcell.Style
	glyphs *[glyphs]string
	ascii  bool
}

// styles is how many meanings there are.
const styles = int(render.Strong) + 1

// Style is how a meaning looks.
func (t *Theme) Style(s render.Style) tcell.Style {
	if int(s) >= len(t.styles) {
		return t.styles[render.Plain]
	}
	return t.styles[s]
}

// Role is how a part of the UI looks.
func (t *Theme) Role(r Role) tcell.Style { return t.roles[r] }

// Glyph is the text of a glyph in this theme's set.
func (t *Theme) Glyph(g Glyph) string { return t.glyphs[g] }

// ASCII says whether the glyphs are those of a terminal that has no others.
func (t *Theme) ASCII() bool { return t.ascii }

// WithASCII is the same theme with plain glyphs.
func (t *Theme) WithASCII() *Theme {
	plain := *t
	plain.glyphs, plain.ascii = &asciiGlyphs, true
	return &plain
}

// Names are the themes that come with the program, the default first.
func Names() []string {
	names := make([]string, len(builtin))
	for i, t := range builtin {
		names[i] = t.Name
	}
	return names
}

// New is the theme with that name; ok is false when there is none.
func New(name string) (t *Theme, ok bool) {
	i := slices.IndexFunc(builtin, func(t *Theme) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}
	return builtin[i], true
}

// Default uses the sixteen colours of the user's own palette on the terminal's own background.
func Default() *Theme { return builtin[0] }

// Mono tells everything by attributes and glyphs, for NO_COLOR and for terminals without colours.
func Mono() *Theme { return builtin[len(builtin)-1] }
