package theme

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
)

func load(t *testing.T, text string) (*Theme, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestLoad_changes_what_the_file_names_and_nothing_else(t *testing.T) {
	got, err := load(t, `
base = "dark"
[styles]
good = "#6cc07a bold"
bad = "Red underline"
dim = ""
[roles]
selected = "white on blue"
border = "default on #102030 dim italic"
`)
	if err != nil {
		t.Fatal(err)
	}
	dark, _ := New("dark")
	base := dark.Role(Text)
	if got.Name != "mine" || got.ASCII() {
		t.Errorf("the theme is called %q, ASCII %v", got.Name, got.ASCII())
	}
	for name, look := range map[string][2]tcell.Style{
		"good":     {got.Style(render.Good), base.Foreground(tcell.NewHexColor(0x6cc07a)).Bold(true)},
		"bad":      {got.Style(render.Bad), base.Foreground(tcell.ColorRed).Underline(true)},
		"dim":      {got.Style(render.Dim), dark.Style(render.Dim).Normal()},
		"selected": {got.Role(Selected), plain.Foreground(tcell.ColorWhite).Background(tcell.ColorBlue)},
		"border": {got.Role(Border), plain.Foreground(tcell.ColorDefault).Background(tcell.NewHexColor(0x102030)).Dim(
			true).Italic(true)},
		"busy":  {got.Style(render.Busy), dark.Style(render.Busy)},
		"title": {got.Role(Title), dark.Role(Title)},
	} {
		if look[0] != look[1] {
			t.Errorf("%s looks like %+v, want %+v", name, look[0], look[1])
		}
	}
	if again, _ := New("dark"); again.Style(render.Good) == got.Style(render.Good) {
		t.Error("the base itself was changed")
	}
}

func TestLoad_says_what_was_probably_meant(t *testing.T) {
	for text, want := range map[string]string{
		`base = "drak"`:                   `base "drak" is unknown; did you mean "dark"?`,
		"[style]\ngood = \"red\"":         `key "style" is unknown; did you mean "styles"?`,
		"[styles]\ngoood = \"red\"":       `name "goood" is unknown; did you mean "good"?`,
		"[roles]\nselect = \"red\"":       `name "select" is unknown; did you mean "selected"?`,
		"[roles]\nhead = \"redd\"":        `word "redd" is unknown; did you mean "red"?`,
		"[roles]\nhead = \"red blod\"":    `word "blod" is unknown; did you mean "bold"?`,
		"[roles]\nhead = \"#12345\"":      "six hexadecimal digits",
		"[roles]\nhead = \"#+12345\"":     "six hexadecimal digits",
		"[roles]\nhead = \"red on\"":      "a colour is missing",
		"[roles]\nhead = \"red on bold\"": `word "bold" is unknown`,
		"[roles]\nhead = 7":               "roles.head must be a text",
		"roles = 7":                       "roles must be a table",
		"zzzzzzzzzz = 1":                  `key "zzzzzzzzzz" is unknown`,
		"base = ":                         "mine.toml",
	} {
		got, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error with %q", text, got, err, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.toml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file is %v", err)
	}
}

func TestGlyphs_exist_in_both_sets_and_are_as_wide(t *testing.T) {
	for g := range glyphs {
		nice, ascii := unicodeGlyphs[g], asciiGlyphs[g]
		if nice == "" || ascii == "" {
			t.Errorf("glyph %d is %q and %q", g, nice, ascii)
		}
		if uniseg.StringWidth(nice) != len(ascii) {
			t.Errorf("%q takes %d cells and %q %d", nice, uniseg.StringWidth(nice), ascii, len(ascii))
		}
		if render.Safe(nice) != nice {
			t.Errorf("%q does not pass for harmless", nice)
		}
	}
}

func TestThemes_name_every_part(t *testing.T) {
	for i, name := range styleNames {
		if name == "" {
			t.Errorf("style %d has no name", i)
		}
	}
	for i, name := range roleNames {
		if name == "" {
			t.Errorf("role %d has no name", i)
		}
	}
	for _, name := range Names() {
		if got, ok := New(name); !ok || got.Name != name {
			t.Errorf("New(%q) = %v, %v", name, got, ok)
		}
	}
	if _, ok := New("no such"); ok {
		t.Error("there is a theme that there is not")
	}
}

// TestMono_names_no_colour protects terminals without colours: tcell would turn every coloured cell
// into reverse video there.
func TestMono_names_no_colour(t *testing.T) {
	m := Mono()
	for _, style := range append(m.styles[:], m.roles[:]...) {
		if foreground, background, _ := style.Decompose(); foreground != tcell.ColorDefault ||
			background != tcell.ColorDefault {
			t.Errorf("%+v names a colour", style)
		}
	}
	for r := range roles {
		if _, _, attributes := m.Role(r).Decompose(); attributes&tcell.AttrReverse != 0 && r != Selected {
			t.Errorf("role %s is in reverse video, which is left to the cursor", roleNames[r])
		}
	}
}

func TestFor_fits_the_screen(t *testing.T) {
	for _, test := range []struct {
		charset         string
		noColour, ascii bool
		name            string
		wantASCII       bool
	}{
		{"UTF-8", false, false, "dark", false},
		{"UTF-8", true, false, "mono", false},
		{"UTF-8", false, true, "dark", true},
		{"US-ASCII", false, false, "dark", true},
		{"US-ASCII", true, false, "mono", true},
	} {
		screen := tcell.NewSimulationScreen(test.charset)
		if err := screen.Init(); err != nil {
			t.Fatal(err)
		}
		dark, _ := New("dark")
		got := dark.For(screen, test.noColour, test.ascii)
		if got.Name != test.name || got.ASCII() != test.wantASCII {
			t.Errorf("%+v: got %s, ASCII %v", test, got.Name, got.ASCII())
		}
		screen.Fini()
	}
}
