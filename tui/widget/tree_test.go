package widget_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func node(id string, open bool, children ...widget.Node) widget.Node {
	return widget.Node{ID: id, Open: open, Children: children,
		Cells: []render.Cell{{Text: id}, {Text: "✓ completed", Style: render.Good}, {Text: "1.2s", Style: render.Dim}}}
}

func runTree() []widget.Node {
	return []widget.Node{
		node("order", true,
			node("reserve", false),
			node("charge", true, node("attempt 1", false), node("attempt 2", false)),
			node("ship", false, node("label", false),
				node("a step with a name that is longer than most screens are wide, for which it must be cut", false))),
		node("mail", false),
	}
}

func TestTree(t *testing.T) {
	for _, size := range widgettest.Sizes() {
		t.Run(size.String(), func(t *testing.T) {
			tree := widget.NewTree(plain).SetRoots(runTree())
			got := widgettest.Draw(t, tree, size.W, 9, nil)
			widgettest.Press(t, tree, "]")
			got += widgettest.Draw(t, tree, size.W, 9, nil)
			widgettest.Golden(t, "tree_"+size.String(), got)
		})
	}
	tree := widget.NewTree(ascii).SetRoots(runTree())
	got := widgettest.Draw(t, tree, 60, 9, nil)
	tree = widget.NewTree(mono).SetRoots(runTree())
	widgettest.Press(t, tree, "j", "j")
	widgettest.Golden(t, "tree_plain", got+widgettest.DrawStyles(t, tree, 60, 9, nil))
}

func TestTree_keys(t *testing.T) {
	tree := widget.NewTree(plain).SetRoots(runTree())
	widgettest.Draw(t, tree, 60, 20, nil)
	for _, step := range []struct{ key, want string }{
		{"j", "reserve"}, {"j", "charge"}, {"right", "attempt 1"}, {"left", "charge"}, {"left", "charge"},
		{"j", "ship"}, {"l", "ship"}, {"l", "label"}, {"h", "ship"},
		{"G", "mail"}, {"j", "mail"}, {"g", "order"}, {"k", "order"}, {"[", "order"}, {"j", "mail"}, {"]", "mail"},
		{"k", "a step with a name that is longer than most screens are wide, for which it must be cut"},
	} {
		widgettest.Press(t, tree, step.key)
		if got, _ := tree.Selected(); got.ID != step.want {
			t.Fatalf("after %q the cursor is on %q, want %q", step.key, got.ID, step.want)
		}
	}
	var entered string
	tree.OnEnter(func(n widget.Node) { entered = n.ID })
	tree.Select("charge")
	widgettest.Press(t, tree, "enter")
	if entered != "charge" {
		t.Errorf("entered %q, want charge", entered)
	}
}

func TestTree_keeps_what_is_open_and_the_cursor(t *testing.T) {
	tree := widget.NewTree(plain).SetRoots(runTree())
	tree.Select("charge")
	widgettest.Press(t, tree, "space")
	tree.Select("ship")
	widgettest.Press(t, tree, "space", "j")
	roots := append([]widget.Node{node("new", true, node("below", false))}, runTree()...)
	tree.SetRoots(roots)
	if got, _ := tree.Selected(); got.ID != "label" {
		t.Errorf("the cursor is on %q, want label", got.ID)
	}
	got := widgettest.Draw(t, tree, 60, 20, nil)
	if strings.Contains(got, "attempt 1") || !strings.Contains(got, "label") || !strings.Contains(got, "below") {
		t.Errorf("what is open has changed:\n%s", got)
	}
	tree.SetRoots([]widget.Node{node("mail", false), node("ship", true, node("sent", false))})
	if got, _ := tree.Selected(); got.ID != "ship" {
		t.Errorf("the cursor is on %q, want ship, which label was below", got.ID)
	}
	tree.SetRoots(nil)
	widgettest.Draw(t, tree, 60, 20, nil)
	widgettest.Press(t, tree, "j", "enter", "space", "left", "right", "[", "]", "G")
	if _, ok := tree.Selected(); ok {
		t.Error("a node is selected where there is none")
	}
}

func TestTree_nested_deeply(t *testing.T) {
	deep := node("bottom", true)
	for i := range 5000 {
		deep = node(fmt.Sprint(i), true, deep)
	}
	tree := widget.NewTree(plain).SetRoots([]widget.Node{deep})
	widgettest.Press(t, tree, "G")
	if got := widgettest.Draw(t, tree, 60, 5, nil); !strings.Contains(got, "bottom") {
		t.Errorf("the bottom is not on the screen:\n%s", got)
	}
}

func BenchmarkTree(b *testing.B) {
	var steps []widget.Node
	for i := range 10_000 {
		steps = append(steps, node(fmt.Sprint("step ", i), true, node(fmt.Sprint("attempt ", i), false)))
	}
	tree := widget.NewTree(plain)
	b.Run("replace", func(b *testing.B) {
		for b.Loop() {
			tree.SetRoots(steps)
			widgettest.Draw(b, tree, 200, 60, nil)
		}
	})
	b.Run("draw", func(b *testing.B) { benchmarkDraw(b, tree) })
}
