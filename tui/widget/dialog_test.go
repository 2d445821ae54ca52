package widget_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func terminate(want string) widget.Question {
	return widget.Question{
		Title: "Terminate 37 runs",
		Lines: []widget.Line{
			{Cells: []render.Cell{{Text: "37 runs", Style: render.Strong},
				{Text: " of type order in namespace default stop at once."}}},
			widget.TextLine("Their code gets no chance to clean up, and they cannot be resumed.", render.Bad),
		},
		Command: `kagzi workflow terminate -q 'type = "order"' -y`, Buttons: []string{"Cancel", "Terminate"},
		Danger: true, Want: want,
	}
}

func TestDialog(t *testing.T) {
	for _, size := range widgettest.Sizes() {
		t.Run(size.String(), func(t *testing.T) {
			d := widget.NewDialog(plain, terminate(""))
			got := widgettest.Draw(t, d, size.W, 15, nil)
			d = widget.NewDialog(plain, terminate("37"))
			widgettest.Golden(t, "dialog_"+size.String(), got+widgettest.Draw(t, d, size.W, 15, nil))
		})
	}
	d := widget.NewDialog(ascii, terminate("37"))
	got := widgettest.Draw(t, d, 60, 15, nil)
	d = widget.NewDialog(mono, terminate("37"))
	widgettest.Golden(t, "dialog_plain", got+widgettest.DrawStyles(t, d, 80, 15, nil))
}

// chosen presses keys in a dialog and returns the chosen buttons.
func chosen(t *testing.T, ask widget.Question, keys ...string) []int {
	t.Helper()
	d := widget.NewDialog(plain, ask)
	var list []int
	d.Choose = func(i int) { list = append(list, i) }
	widgettest.Draw(t, d, 80, 24, nil)
	widgettest.Press(t, d, keys...)
	return list
}

func TestDialog_keys(t *testing.T) {
	for _, test := range []struct {
		name, want string
		keys       []string
		chosen     string
	}{
		{"enter alone does nothing dangerous", "", []string{"enter"}, "[0]"},
		{"esc leaves", "", []string{"tab", "esc"}, "[0]"},
		{"tab goes to the next button", "", []string{"tab", "enter"}, "[1]"},
		{"tab goes round", "", []string{"tab", "tab", "enter"}, "[0]"},
		{"left goes round", "", []string{"left", "enter"}, "[1]"},
		{"right and left", "", []string{"right", "left", "enter"}, "[0]"},
		{"what is not typed cannot be chosen", "37", []string{"tab", "enter"}, "[0]"},
		{"what is typed wrong cannot be chosen", "37", []string{"3", "8", "tab", "enter"}, "[0]"},
		{"what is typed can be chosen", "37", []string{"3", "7", "tab", "enter"}, "[1]"},
		{"what was typed and changed cannot be chosen", "37", []string{"3", "7", "tab", "0", "enter"}, "[0]"},
		{"typing alone chooses nothing", "37", []string{"3", "7"}, "[]"},
		{"typing leaves the focus on the first", "37", []string{"3", "7", "enter"}, "[0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := fmt.Sprint(chosen(t, terminate(test.want), test.keys...)); got != test.chosen {
				t.Errorf("chosen %s, want %s", got, test.chosen)
			}
		})
	}
	if got := fmt.Sprint(chosen(t, widget.Question{Title: "Done"}, "tab", "enter")); got != "[0]" {
		t.Errorf("a dialog without buttons chose %s, want its OK", got)
	}
}

func TestDialog_scrolls_what_does_not_fit(t *testing.T) {
	ask := terminate("37")
	for i := range 100 {
		ask.Lines = append(ask.Lines, widget.TextLine(fmt.Sprintf("run %d", i), render.Plain))
	}
	d := widget.NewDialog(plain, ask)
	got := widgettest.Draw(t, d, 60, 15, nil)
	if !strings.Contains(got, "[ Cancel ]") || !strings.Contains(got, "type 37") || strings.Contains(got, "run 99") {
		t.Errorf("the buttons or the field are missing:\n%s", got)
	}
	for range 12 {
		widgettest.Press(t, d, "pgdn")
	}
	if got := widgettest.Draw(t, d, 60, 15, nil); !strings.Contains(got, "run 99") ||
		!strings.Contains(got, "kagzi workflow") {
		t.Errorf("the end is not on the screen:\n%s", got)
	}
}

func TestDialog_leaves_what_is_around_it(t *testing.T) {
	d := widget.NewDialog(plain, terminate(""))
	got := widgettest.Draw(t, func(c widget.Canvas) {
		for y := range c.H {
			c.Fill(0, y, c.W, "#", c.Theme.Role(theme.Text))
		}
		d.SetRect(c.X, c.Y, c.W, c.H)
		d.Draw(c.Screen)
	}, 120, 20, plain())
	if lines := strings.Split(got, "\n"); lines[0] != strings.Repeat("#", 120) || !strings.HasPrefix(lines[9], "####") {
		t.Errorf("what is around the dialog is gone:\n%s", got)
	}
}

func TestDialog_mouse_chooses_the_button_that_is_clicked(t *testing.T) {
	d := widget.NewDialog(plain, terminate(""))
	got := -1
	d.Choose = func(i int) { got = i }
	lines := strings.Split(widgettest.Draw(t, d, 80, 24, nil), "\n")
	for y, line := range lines {
		if x := strings.Index(line, "[ Terminate"); x >= 0 {
			x = len([]rune(line[:x])) + 3
			d.MouseHandler()(tview.MouseLeftClick, tcell.NewEventMouse(x, y, tcell.Button1, 0),
				func(tview.Primitive) {})
		}
	}
	if got != 1 {
		t.Errorf("chosen = %d, want 1", got)
	}
}
