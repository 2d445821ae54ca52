package widget_test

import (
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func themePicker(look func() *theme.Theme) *widget.Picker {
	var choices []widget.Choice
	for _, name := range theme.Names() {
		choices = append(choices, widget.Choice{ID: name, Line: widget.TextLine(name+" look", render.Plain)})
	}
	return widget.NewPicker(look, "Theme", choices, "light")
}

func TestPicker(t *testing.T) {
	p := themePicker(plain)
	got := widgettest.Draw(t, p, 60, 15, nil)
	widgettest.Type(t, p, "o look")
	got += widgettest.Draw(t, p, 60, 5, nil)
	widgettest.Type(t, p, "!")
	got += widgettest.Draw(t, p, 60, 5, nil)
	widgettest.Golden(t, "picker", got+widgettest.DrawStyles(t, themePicker(mono), 80, 10, nil)+
		widgettest.Draw(t, themePicker(ascii), 60, 8, nil))
}

func TestPicker_keys(t *testing.T) {
	p := themePicker(plain)
	var moves []string
	done := ""
	p.OnMove = func(id string) { moves = append(moves, id) }
	p.Done = func(id string, ok bool) { done = id + map[bool]string{true: " chosen", false: " left"}[ok] }
	widgettest.Draw(t, p, 60, 15, nil)
	widgettest.Press(t, p, "l", "backspace") // the choice under the cursor holds it
	widgettest.Press(t, p, "down", "up", "up", "pgdn", "down")
	widgettest.Type(t, p, "dark")
	widgettest.Press(t, p, "enter")
	if got := strings.Join(moves, " "); got != "contrast light dark mono dark" || done != "dark chosen" {
		t.Errorf("moved over %q and ended with %q", got, done)
	}
	widgettest.Type(t, p, "xyz")
	done = ""
	widgettest.Press(t, p, "enter")
	if _, ok := p.Selected(); ok || done != "" {
		t.Errorf("chose %q where nothing is left", done)
	}
	widgettest.Press(t, p, "ctrl-u", "esc")
	if done != "terminal left" {
		t.Errorf("ended with %q, want terminal left", done)
	}
}
