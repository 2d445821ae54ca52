package widget_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func themePicker(look func() *theme.Theme) *widget.Picker {
	var choices []string
	for _, name := range theme.Names() {
		choices = append(choices, name+" look")
	}
	return widget.NewPicker(look, "Theme", choices, "light look")
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
	if got := strings.Join(moves, " "); got != "contrast look light look dark look mono look dark look" ||
		done != "dark look chosen" {
		t.Errorf("moved over %q and ended with %q", got, done)
	}
	widgettest.Type(t, p, "xyz")
	done = ""
	widgettest.Press(t, p, "enter")
	if _, ok := p.Selected(); ok || done != "" {
		t.Errorf("chose %q where nothing is left", done)
	}
	widgettest.Press(t, p, "ctrl-u", "esc")
	if done != "dark look left" {
		t.Errorf("ended with %q, want dark look left", done)
	}
}

func TestPicker_shows_that_there_are_more(t *testing.T) {
	var choices []string
	for i := range 50 {
		choices = append(choices, fmt.Sprintf("choice %02d", i))
	}
	p := widget.NewPicker(plain, "Many", choices, "")
	for _, step := range []struct {
		key          string
		above, below bool
	}{{"up", false, true}, {"pgdn", true, true}, {"pgdn", true, true}, {"pgdn", true, true}, {"pgdn", true, true},
		{"pgdn", true, false}} {
		widgettest.Press(t, p, step.key)
		got := widgettest.Draw(t, p, 40, 15, nil)
		if strings.Contains(got, "▲│") != step.above || strings.Contains(got, "▼│") != step.below {
			t.Errorf("after %s it shows\n%s", step.key, got)
		}
	}
}
