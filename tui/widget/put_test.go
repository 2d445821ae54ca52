package widget_test

import (
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func TestWhatTviewDraws_ends_in_an_ellipsis_if_it_is_longer(t *testing.T) {
	const w, room = 30, 26 // cells inside a box of this width, after a blank
	picker := func(text string, look func() *theme.Theme) string {
		return widgettest.Draw(t, widget.NewPicker(look, "", []string{text}, ""), w, 5, nil)
	}
	for text, want := range map[string]string{
		strings.Repeat("x", room):                   strings.Repeat("x", room) + " │",
		strings.Repeat("x", room+1):                 strings.Repeat("x", room-1) + "… │",
		strings.Repeat("x", room) + " more":         strings.Repeat("x", room-1) + "… │",
		strings.Repeat("x", room) + "   more":       strings.Repeat("x", room-1) + "… │",
		strings.Repeat("x", room-1) + "語":           strings.Repeat("x", room-1) + "… │",
		strings.Repeat("x", room-2) + "語":           strings.Repeat("x", room-2) + "語 │",
		strings.Repeat("x", room-3) + "語語":          strings.Repeat("x", room-3) + "語… │",
		strings.Repeat("x", room-2) + "e\u0301e":    strings.Repeat("x", room-2) + "e\u0301e │",
		strings.Repeat("[", room+9):                 strings.Repeat("[", room-1) + "… │",
		"\x1b[31m" + strings.Repeat("\u202e", room): `\x1b[31m\u202e\u202e\u202` + "… │",
	} {
		if got := picker(text, plain); !strings.Contains(got, "│ "+want) {
			t.Errorf("%q is shown as\n%swant %q", text, got, want)
		}
	}
	if got := picker(strings.Repeat("x", w), ascii); !strings.Contains(got, strings.Repeat("x", room-1)+"~ |") {
		t.Errorf("in ASCII a long text is shown as\n%s", got)
	}
}

func TestWhatTviewDraws_looks_as_the_theme_says(t *testing.T) {
	dark, _ := theme.New("dark")
	look := dark
	tree := widget.NewTree(func() *theme.Theme { return look }).SetRoots(runTree())
	got := widgettest.DrawStyles(t, tree, 40, 8, nil)
	look = theme.Mono()
	widgettest.Golden(t, "put", got+widgettest.DrawStyles(t, tree, 40, 8, nil))
}
