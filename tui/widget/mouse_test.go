package widget_test

import (
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

// at sends a mouse event to the position of a text and reports whether the widget handled it.
func at(t *testing.T, p tview.Primitive, text string, action tview.MouseAction) bool {
	t.Helper()
	for y, line := range strings.Split(widgettest.Draw(t, p, 80, 15, nil), "\n") {
		if before, _, ok := strings.Cut(line, text); ok {
			event := tcell.NewEventMouse(len([]rune(before)), y, tcell.Button1, 0)
			took, _ := p.MouseHandler()(action, event, func(tview.Primitive) {})
			return took
		}
	}
	t.Fatalf("%q is not on the screen", text)
	return false
}

const (
	click  = tview.MouseLeftClick
	double = tview.MouseLeftDoubleClick
	wheel  = tview.MouseScrollDown
)

func TestMouse_selects_and_opens(t *testing.T) {
	t.Run("gantt", func(t *testing.T) {
		g := orderGantt(plain)
		entered := ""
		g.OnEnter(func(l widget.Lane) { entered = l.ID })
		at(t, g, "cool-off", click)
		if lane, _ := g.Selected(); lane.ID != "cool-off" || entered != "" {
			t.Errorf("selected %q, entered %q", lane.ID, entered)
		}
		at(t, g, "charge-card", double)
		at(t, g, "2026-11-20", double) // the line at the bottom is no lane
		if entered != "charge" {
			t.Errorf("entered %q, want charge", entered)
		}
		at(t, g, "reserve", wheel)
		if lane, _ := g.Selected(); lane.ID != "ship/label" {
			t.Errorf("the wheel led to %q", lane.ID)
		}
	})
	t.Run("document", func(t *testing.T) {
		d := document(orderJSON, "")
		at(t, d, "items", click)
		if got := d.CopyPath(); got != "$.order.items" {
			t.Errorf("a click led to %s", got)
		}
		at(t, d, `"order"`, double)
		if got := widgettest.Draw(t, d, 80, 15, nil); !strings.Contains(got, "{...} 9 keys") {
			t.Errorf("two clicks did not fold:\n%s", got)
		}
	})
	t.Run("tree", func(t *testing.T) {
		tree := widget.NewTree(plain).SetRoots(runTree())
		at(t, tree, "charge", click)
		if got, _ := tree.Selected(); got.ID != "charge" {
			t.Errorf("a click led to %q", got.ID)
		}
		at(t, tree, "charge", double)
		if got := widgettest.Draw(t, tree, 80, 15, nil); strings.Contains(got, "attempt 1") {
			t.Errorf("two clicks did not fold:\n%s", got)
		}
	})
	t.Run("picker", func(t *testing.T) {
		p := themePicker(plain)
		done := ""
		p.Done = func(id string, _ bool) { done = id }
		at(t, p, "contrast look", click)
		if got, _ := p.Selected(); got != "contrast look" {
			t.Errorf("a click led to %q", got)
		}
		at(t, p, "dark look", click)
		if done != "dark look" {
			t.Errorf("a click chose %q", done)
		}
	})
	t.Run("form", func(t *testing.T) {
		f := startForm(plain)
		at(t, f, "Begin paused", click)
		widgettest.Press(t, f, "space")
		if got := f.Value("paused"); got != "true" {
			t.Errorf("the field that was clicked holds %q", got)
		}
		cancelled := false
		f.Cancel = func() { cancelled = true }
		at(t, f, "Cancel ]", click)
		if !cancelled {
			t.Error("the button that was clicked did nothing")
		}
	})
	t.Run("lines", func(t *testing.T) {
		l := widget.NewLines(plain).SetLines(numberedLines(50))
		at(t, l, "000", wheel)
		if got := firstLine(t, l, 80, 15); !strings.HasPrefix(got, "003") {
			t.Errorf("the wheel led to %q", got)
		}
		if at(t, l, "003", tview.MouseMove) {
			t.Error("moving the mouse meant something")
		}
	})
}

func TestMouse_outside_means_nothing(t *testing.T) {
	l := widget.NewLines(plain).SetLines([]widget.Line{widget.TextLine("text", render.Plain)})
	widgettest.Draw(t, l, 10, 2, nil)
	if took, _ := l.MouseHandler()(wheel, tcell.NewEventMouse(50, 50, 0, 0), nil); took {
		t.Error("the wheel outside was taken")
	}
}
