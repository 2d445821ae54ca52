package widget

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// InputHandler moves, folds and opens.
func (t *Tree) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return t.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { t.Key(event) })
}

// Key does what a key means to the tree; ok is false when it means nothing.
func (t *Tree) Key(event *tcell.EventKey) (ok bool) {
	key := KeyName(event)
	switch key {
	case "[":
		t.FoldAll(true)
	case "]":
		t.FoldAll(false)
	case "space":
		t.toggle()
	case "enter":
		t.choose()
	case "h", "left":
		t.out()
	case "l", "right":
		t.in()
	default:
		rows, ok := MovesBy(key, len(t.flat), t.height)
		if ok {
			t.move(t.cursor + rows)
		}
		return ok
	}
	return true
}

func (t *Tree) toggle() {
	if node, ok := t.Selected(); ok {
		t.Fold(t.isOpen(&node))
	}
}

// choose hands the node to who wants to know, and folds it when nobody does.
func (t *Tree) choose() {
	if node, ok := t.Selected(); ok && t.enter != nil {
		t.enter(node)
		return
	}
	t.toggle()
}

// out folds the node under the cursor, or goes to the one that it is below.
func (t *Tree) out() {
	node, ok := t.Selected()
	if !ok {
		return
	}
	if len(node.Children) > 0 && t.isOpen(&node) {
		t.Fold(true)
	} else if up := t.flat[t.cursor].parent; up >= 0 {
		t.move(up)
	}
}

// in opens the node under the cursor, or goes to the first below it.
func (t *Tree) in() {
	node, ok := t.Selected()
	if !ok || len(node.Children) == 0 {
		return
	}
	if t.isOpen(&node) {
		t.move(t.cursor + 1)
	} else {
		t.Fold(false)
	}
}

// MouseHandler moves with the wheel, selects with a click and chooses with two.
func (t *Tree) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive) {
	return mouse(t.Box, func(rows int) { t.move(t.cursor + rows) }, func(_, y int, double bool) {
		if t.offset+y >= len(t.flat) {
			return
		}
		t.move(t.offset + y)
		if double {
			t.choose()
		}
	})
}
