package widget

import (
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// Node is a row of a Tree with its children.
type Node struct {
	ID       string // unique; the cursor and open nodes follow it
	Cells    []render.Cell
	Children []Node
	Open     bool // initial state, until the person folds or unfolds it
}

// Tree shows nodes in a hierarchy that can be folded.
type Tree struct {
	*tview.Box
	look   func() *theme.Theme
	roots  []Node
	open   map[string]bool // nodes that the person unfolded or folded
	flat   []branch        // the visible nodes, in order
	index  map[string]int  // of flat by id
	cursor int
	offset int
	height int
	enter  func(Node)
}

// branch is a node as a row.
type branch struct {
	node   *Node
	parent int // row; -1: a root
	depth  int
	last   bool // among its siblings
}

// NewTree returns an empty tree.
func NewTree(look func() *theme.Theme) *Tree {
	return &Tree{Box: tview.NewBox(), look: look, open: map[string]bool{}}
}

// SetRoots replaces the nodes. Open nodes and the cursor are kept by id.
func (t *Tree) SetRoots(roots []Node) *Tree {
	node, had := t.Selected()
	t.roots = roots
	t.flatten()
	if i, ok := t.index[node.ID]; ok && had {
		t.cursor = i
	}
	t.settle()
	return t
}

// OnEnter sets the function called with the node chosen by enter. Without it, enter folds as space
// does.
func (t *Tree) OnEnter(f func(Node)) { t.enter = f }

// Selected returns the node under the cursor; ok is false if there is none.
func (t *Tree) Selected() (node Node, ok bool) {
	if t.cursor >= len(t.flat) {
		return Node{}, false
	}
	return *t.flat[t.cursor].node, true
}

// Select moves the cursor to a visible node; false if there is none with that id.
func (t *Tree) Select(id string) bool {
	i, ok := t.index[id]
	if ok {
		t.move(i)
	}
	return ok
}

func (t *Tree) flatten() {
	t.flat, t.index = t.flat[:0], map[string]int{}
	t.grow(t.roots, -1, 0)
}

func (t *Tree) grow(nodes []Node, parent, depth int) {
	for i := range nodes {
		row := len(t.flat)
		t.index[nodes[i].ID] = row
		t.flat = append(t.flat, branch{&nodes[i], parent, depth, i == len(nodes)-1})
		if t.isOpen(&nodes[i]) {
			t.grow(nodes[i].Children, row, depth+1)
		}
	}
}

// IsOpen reports whether a node and its children are visible or can be scrolled to.
func (t *Tree) IsOpen(id string) bool {
	i, ok := t.index[id]
	return ok && len(t.flat[i].node.Children) > 0 && t.isOpen(t.flat[i].node)
}

func (t *Tree) isOpen(n *Node) bool {
	if open, ok := t.open[n.ID]; ok {
		return open
	}
	return n.Open
}

// Fold folds or unfolds the node under the cursor.
func (t *Tree) Fold(folded bool) {
	node, ok := t.Selected()
	if !ok || len(node.Children) == 0 {
		return
	}
	t.open[node.ID] = !folded
	t.flatten()
	t.settle()
}

// FoldAll folds or unfolds everything.
func (t *Tree) FoldAll(folded bool) {
	node, _ := t.Selected()
	var all func(nodes []Node)
	all = func(nodes []Node) {
		for i := range nodes {
			t.open[nodes[i].ID] = !folded
			all(nodes[i].Children)
		}
	}
	all(t.roots)
	t.flatten()
	if i, ok := t.index[node.ID]; ok {
		t.cursor = i
	}
	t.settle()
}

func (t *Tree) move(to int) {
	t.cursor = to
	t.settle()
}

// settle keeps the cursor within the rows and on the screen.
func (t *Tree) settle() {
	t.cursor, t.offset = inView(t.cursor, t.offset, len(t.flat), t.height)
}

// Draw draws the visible rows.
func (t *Tree) Draw(screen tcell.Screen) {
	x, y, w, h := t.GetInnerRect()
	look := t.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	t.height = h
	t.settle()
	last := min(t.offset+h, len(t.flat))
	for i := t.offset; i < last; i++ {
		t.drawRow(c.Part(0, i-t.offset, w, 1), &t.flat[i], i == t.cursor)
	}
	if t.offset > 0 {
		c.Text(w-1, 0, look.Glyph(theme.Up), look.Role(theme.Key))
	}
	if last < len(t.flat) {
		c.Text(w-1, h-1, look.Glyph(theme.Down), look.Role(theme.Key))
	}
}

func (t *Tree) drawRow(c Canvas, b *branch, selected bool) {
	style, lines := styler(c.Theme.Style), c.Theme.Role(theme.Border)
	if selected {
		lines = c.Theme.Role(theme.Selected)
		style = func(render.Style) tcell.Style { return lines }
		c.Clear(lines)
	}
	x := c.Text(0, 0, t.prefix(c.Theme, b, c.W/2), lines)
	switch {
	case len(b.node.Children) > 0 && t.isOpen(b.node):
		x += c.Text(x, 0, c.Theme.Glyph(theme.Unfolded)+" ", lines)
	case len(b.node.Children) > 0:
		x += c.Text(x, 0, c.Theme.Glyph(theme.Folded)+" ", lines)
	case b.parent < 0: // a root below other roots
		x += foldMark
	}
	for _, cell := range b.node.Cells {
		x += c.Cut(x, 0, c.W-x, cell.Text, style(cell.Style)) + columnGap
	}
}

// prefix returns the lines on the left of a row, for as many of the nearest ancestors as fit.
func (t *Tree) prefix(look *theme.Theme, b *branch, cells int) string {
	if b.parent < 0 {
		return ""
	}
	glyph := theme.Branch
	if b.last {
		glyph = theme.LastOne
	}
	text, width := look.Glyph(glyph), branchCells
	for up := b.parent; t.flat[up].parent >= 0 && width+branchCells <= cells; up = t.flat[up].parent {
		if t.flat[up].last {
			text = strings.Repeat(" ", branchCells) + text
		} else {
			text = look.Glyph(theme.Through) + text
		}
		width += branchCells
	}
	return text
}

// branchCells is the width of the lines of one level.
const branchCells = 3

// InputHandler moves, folds and opens.
func (t *Tree) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return t.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { t.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
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

// choose calls the OnEnter function with the node, or else folds it.
func (t *Tree) choose() {
	if node, ok := t.Selected(); ok && t.enter != nil {
		t.enter(node)
		return
	}
	t.toggle()
}

// out folds the node under the cursor, or moves to its parent.
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

// in unfolds the node under the cursor, or moves to its first child.
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

// MouseHandler moves with the wheel, selects with a click and chooses with a double click.
func (t *Tree) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
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
