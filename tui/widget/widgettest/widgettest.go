// Package widgettest draws widgets on a screen in memory and returns what is visible.
package widgettest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/gdamore/tcell/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// Draw draws a tview.Primitive or a func(widget.Canvas) on an empty screen of w by h cells, and
// returns its text without trailing blanks. The theme is for the function; a primitive has its own.
func Draw(t testing.TB, what any, w, h int, look *theme.Theme) string {
	t.Helper()
	return text(paint(t, what, w, h, look))
}

// DrawStyles is Draw with a second grid below that has a letter for each style, and a legend of the
// letters.
func DrawStyles(t testing.TB, what any, w, h int, look *theme.Theme) string {
	t.Helper()
	cells := paint(t, what, w, h, look)
	return text(cells) + styles(cells)
}

// Harmless draws and fails the test if a cell holds a character that a terminal might interpret,
// hide, or reorder others because of.
func Harmless(t testing.TB, what any, w, h int, look *theme.Theme) {
	t.Helper()
	for y, row := range paint(t, what, w, h, look) {
		for x, cell := range row {
			for _, r := range cell.Runes {
				if unicode.IsControl(r) || unicode.In(
					r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs, unicode.Co, unicode.Variation_Selector) {
					t.Fatalf("the cell at %d, %d holds %U", x, y, r)
				}
			}
		}
	}
}

// Golden compares what was drawn with testdata/name.golden of the package under test. With UPDATE=1
// in the environment it writes the file.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") == "1" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (UPDATE=1 writes it); got\n%s", err, got)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Fatalf("%s is not as it was (-want +got):\n%s\ngot\n%s", path, diff, got)
	}
}

// paint returns the cells of the screen, by rows.
func paint(t testing.TB, what any, w, h int, look *theme.Theme) [][]tcell.SimCell {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(w, h) // after Init, which sets its own size
	screen.Clear()
	switch what := what.(type) {
	case tview.Primitive:
		what.SetRect(0, 0, w, h)
		what.Draw(screen)
	case func(widget.Canvas):
		what(widget.On(screen, look, 0, 0, w, h))
	default:
		t.Fatalf("cannot draw a %T", what)
	}
	screen.Show()
	cells, width, _ := screen.GetContents()
	rows := make([][]tcell.SimCell, h)
	for y := range rows {
		rows[y] = cells[y*width : (y+1)*width]
	}
	return rows
}

// text returns the characters of the cells. The second cell of a wide character has none.
func text(cells [][]tcell.SimCell) string {
	return grid(cells, func(cell tcell.SimCell) string {
		if len(cell.Runes) == 0 {
			return " "
		}
		return string(cell.Runes)
	})
}

func grid(cells [][]tcell.SimCell, show func(tcell.SimCell) string) string {
	var b strings.Builder
	for _, row := range cells {
		line := ""
		for x := 0; x < len(row); x++ {
			line += show(row[x])
			x += max(uniseg.StringWidth(string(row[x].Runes)), 1) - 1
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// styles returns the grid of letters and its legend. The style of a blank, plain upper-left cell
// has no letter.
func styles(cells [][]tcell.SimCell) string {
	letters := map[tcell.Style]string{}
	legend := ""
	body := grid(cells, func(cell tcell.SimCell) string {
		if describe(cell.Style) == "plain" {
			return " "
		}
		letter, ok := letters[cell.Style]
		if !ok {
			letter = string(rune('a' + len(letters)))
			letters[cell.Style] = letter
			legend += letter + ": " + describe(cell.Style) + "\n"
		}
		return letter
	})
	return "--\n" + body + "--\n" + legend
}

// describe returns a description of a style: "red on white bold".
func describe(style tcell.Style) string {
	foreground, background, attributes := style.Decompose()
	var words []string
	if foreground != tcell.ColorDefault {
		words = append(words, foreground.String())
	}
	if background != tcell.ColorDefault {
		words = append(words, "on "+background.String())
	}
	for _, a := range []struct {
		mask tcell.AttrMask
		word string
	}{{tcell.AttrBold, "bold"}, {tcell.AttrDim, "dim"}, {tcell.AttrItalic, "italic"}, {tcell.AttrReverse, "reverse"},
		{tcell.AttrBlink, "blink"},
		{tcell.AttrStrikeThrough, "strike"}} {
		if attributes&a.mask != 0 {
			words = append(words, a.word)
		}
	}
	if style.GetUnderlineStyle() != tcell.UnderlineStyleNone {
		words = append(words, "underline")
	}
	if len(words) == 0 {
		return "plain"
	}
	return strings.Join(words, " ")
}

// named maps names to keys.
var named = map[string]tcell.Key{
	"enter": tcell.KeyEnter, "esc": tcell.KeyEscape, "tab": tcell.KeyTab, "shift-tab": tcell.KeyBacktab,
	"up": tcell.KeyUp, "down": tcell.KeyDown,
	"left": tcell.KeyLeft, "right": tcell.KeyRight, "home": tcell.KeyHome, "end": tcell.KeyEnd, "pgup": tcell.KeyPgUp,
	"pgdn":      tcell.KeyPgDn,
	"backspace": tcell.KeyBackspace2, "delete": tcell.KeyDelete, "ctrl-space": tcell.KeyCtrlSpace, "ctrl-_": tcell.KeyCtrlUnderscore,
}

// Key returns the event of a key named as by widget.KeyName: "j", "enter", "ctrl-d", "alt-b",
// "space".
func Key(t testing.TB, name string) *tcell.EventKey {
	t.Helper()
	if key, ok := named[name]; ok {
		return tcell.NewEventKey(key, 0, tcell.ModNone)
	}
	if letter, ok := strings.CutPrefix(name, "ctrl-"); ok && len(letter) == 1 {
		return tcell.NewEventKey(tcell.KeyCtrlA+tcell.Key(letter[0]-'a'), 0, tcell.ModCtrl)
	}
	modifiers := tcell.ModNone
	if letter, ok := strings.CutPrefix(name, "alt-"); ok {
		name, modifiers = letter, tcell.ModAlt
	}
	if name == "space" {
		name = " "
	}
	runes := []rune(name)
	if len(runes) != 1 {
		t.Fatalf("no key is called %q", name)
	}
	return tcell.NewEventKey(tcell.KeyRune, runes[0], modifiers)
}

// Press sends keys to a primitive as tview does.
func Press(t testing.TB, p tview.Primitive, names ...string) {
	t.Helper()
	for _, name := range names {
		p.InputHandler()(Key(t, name), func(tview.Primitive) {})
	}
}

// Type sends the characters of a text as keys.
func Type(t testing.TB, p tview.Primitive, text string) {
	t.Helper()
	for _, r := range text {
		p.InputHandler()(tcell.NewEventKey(tcell.KeyRune, r, tcell.ModNone), func(tview.Primitive) {})
	}
}

// Size is a screen size to test.
type Size struct{ W, H int }

// Sizes returns the sizes that every widget and view must support.
func Sizes() []Size { return []Size{{60, 15}, {80, 24}, {120, 40}, {200, 60}} }

// String returns "60x15".
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.W, s.H) }
