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

// Tree is tview's TreeView, with a cursor and open nodes that follow ids when the nodes are replaced.
// The lines on the left are part of its texts: those of tview have no ASCII form, and a TreeView whose
// lines are wider than itself never ends drawing.
type Tree struct {
	*tview.TreeView
	look  func() *theme.Theme
	open  map[string]bool // nodes that the person unfolded or folded
	nodes map[string]*tview.TreeNode
	enter func(Node)
}

// branch is what a node of the TreeView refers to. The root, which is not shown, has no id.
type branch struct {
	Node
	parent *tview.TreeNode
}

// NewTree returns an empty tree.
func NewTree(look func() *theme.Theme) *Tree {
	t := &Tree{TreeView: tview.NewTreeView(), look: look, open: map[string]bool{}}
	t.SetTopLevel(1).SetGraphics(false).SetAlign(true)
	return t.SetRoots(nil)
}

// SetRoots replaces the nodes. Open nodes and the cursor are kept by id. If the node under the cursor
// is gone, the cursor moves to its parent.
func (t *Tree) SetRoots(roots []Node) *Tree {
	at := t.GetCurrentNode()
	t.nodes = map[string]*tview.TreeNode{}
	t.SetRoot(tview.NewTreeNode("").SetReference(&branch{}))
	t.grow(t.GetRoot(), roots)
	for at != nil && t.nodes[of(at).ID] == nil {
		at = of(at).parent
	}
	if at != nil {
		at = t.nodes[of(at).ID]
	} else if len(roots) > 0 {
		at = t.nodes[roots[0].ID]
	}
	t.show(at)
	return t
}

func (t *Tree) grow(parent *tview.TreeNode, nodes []Node) {
	for i := range nodes {
		node := tview.NewTreeNode("").SetReference(&branch{nodes[i], parent}).
			SetSelectedTextStyle(tcell.StyleDefault.Reverse(true))
		open, chosen := t.open[nodes[i].ID]
		node.SetExpanded(open || !chosen && nodes[i].Open)
		t.nodes[nodes[i].ID] = node
		parent.AddChild(node)
		t.grow(node, nodes[i].Children)
	}
}

func of(node *tview.TreeNode) *branch { return node.GetReference().(*branch) }

// show moves the cursor to a node, or to the outermost folded one around it.
func (t *Tree) show(node *tview.TreeNode) {
	for up := node; up != nil; up = of(up).parent {
		if up != node && !up.IsExpanded() {
			node = up
		}
	}
	t.SetCurrentNode(node)
}

// OnEnter sets the function called with the node chosen by enter. Without it, enter folds as space
// does.
func (t *Tree) OnEnter(f func(Node)) { t.enter = f }

// Selected returns the node under the cursor; ok is false if there is none.
func (t *Tree) Selected() (node Node, ok bool) {
	at := t.GetCurrentNode()
	if at == nil {
		return Node{}, false
	}
	return of(at).Node, true
}

// Select moves the cursor to a node, if there is one with that id.
func (t *Tree) Select(id string) {
	if node := t.nodes[id]; node != nil {
		t.show(node)
	}
}

// IsOpen reports whether the children of a node are visible or can be scrolled to.
func (t *Tree) IsOpen(id string) bool {
	node := t.nodes[id]
	open := node != nil && len(node.GetChildren()) > 0
	for ; open && node != nil; node = of(node).parent {
		open = node.IsExpanded()
	}
	return open
}

// Toggle folds or unfolds the node under the cursor.
func (t *Tree) Toggle() {
	if at := t.GetCurrentNode(); at != nil {
		t.fold(at, at.IsExpanded())
	}
}

func (t *Tree) fold(node *tview.TreeNode, folded bool) {
	if len(node.GetChildren()) > 0 {
		t.open[of(node).ID] = !folded
		node.SetExpanded(!folded)
	}
}

// FoldAll folds or unfolds everything.
func (t *Tree) FoldAll(folded bool) {
	for _, node := range t.nodes {
		t.fold(node, folded)
	}
	t.show(t.GetCurrentNode())
}

// Draw draws the visible rows.
func (t *Tree) Draw(screen tcell.Screen) {
	x, y, w, h := t.GetInnerRect()
	look := t.look()
	c := On(screen, look, x, y, w, h)
	t.TreeView.Draw(&shield{}) // it finds out which rows are visible; only those need a text
	first, row := t.GetScrollOffset(), -1
	t.GetRoot().Walk(func(node, _ *tview.TreeNode) bool {
		if row >= first && row < first+h {
			node.SetText(t.text(look, node, w))
		}
		row++
		return node.IsExpanded()
	})
	c.put(t.TreeView, look.Role(theme.Text), look.Role(theme.Selected), c.W-edge)
	c.marks(0, h-1, first > 0, first+h < t.GetRowCount())
}

// text returns the text of a row. Blanks carry the look of the cursor to the edge.
func (t *Tree) text(look *theme.Theme, node *tview.TreeNode, width int) string {
	lines := t.lines(look, node, width/2)
	switch {
	case len(node.GetChildren()) > 0 && node.IsExpanded():
		lines += look.Glyph(theme.Unfolded) + " "
	case len(node.GetChildren()) > 0:
		lines += look.Glyph(theme.Folded) + " "
	case of(node).parent == t.GetRoot(): // a root below other roots
		lines = strings.Repeat(" ", foldMark)
	}
	plain := tagged(int(render.Plain), strings.Repeat(" ", columnGap))
	text := tagged(roleTags+int(theme.Border), lines)
	for _, cell := range of(node).Cells {
		text += tagged(int(cell.Style), bounded(cell.Text, width)) + plain
	}
	if node == t.GetCurrentNode() {
		text += strings.Repeat(" ", width)
	}
	return text
}

// lines returns the lines on the left of a row, for as many of the nearest ancestors as fit.
func (t *Tree) lines(look *theme.Theme, node *tview.TreeNode, cells int) (lines string) {
	glyph, last := look.Glyph(theme.Branch), look.Glyph(theme.LastOne)
	for up := of(node).parent; up != t.GetRoot() && (lines == "" || cells >= branchCells); up = of(node).parent {
		if siblings := up.GetChildren(); siblings[len(siblings)-1] == node {
			glyph = last
		}
		lines = glyph + lines
		glyph, last = look.Glyph(theme.Through), strings.Repeat(" ", branchCells)
		cells -= branchCells
		node = up
	}
	return lines
}

// branchCells is the width of the lines of one level.
const branchCells = 3

// InputHandler moves, folds and opens.
func (t *Tree) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(t.Box, func(event *tcell.EventKey) { t.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
func (t *Tree) Key(event *tcell.EventKey) (ok bool) {
	key, at := KeyName(event), t.GetCurrentNode()
	switch {
	case key == "[":
		t.FoldAll(true)
	case key == "]":
		t.FoldAll(false)
	case key == "space":
		t.Toggle()
	case key == "enter":
		t.choose()
	case key == "h" || key == "left":
		if at != nil && len(at.GetChildren()) > 0 && at.IsExpanded() {
			t.Toggle()
		} else if at != nil && of(at).parent != t.GetRoot() {
			t.SetCurrentNode(of(at).parent)
		}
	case key == "l" || key == "right":
		if at != nil && at.IsExpanded() && len(at.GetChildren()) > 0 {
			t.Move(1)
		} else {
			t.Toggle()
		}
	default:
		_, _, _, height := t.GetInnerRect()
		rows, ok := MovesBy(key, len(t.nodes), height)
		t.Move(rows)
		return ok
	}
	return true
}

// choose calls the OnEnter function with the node under the cursor, or else folds it.
func (t *Tree) choose() {
	if node, ok := t.Selected(); ok && t.enter != nil {
		t.enter(node)
		return
	}
	t.Toggle()
}

// MouseHandler moves with the wheel, selects with a click and chooses with a double click.
func (t *Tree) MouseHandler() mouseHandler {
	return mouse(t.Box, func(rows int) { t.Move(rows) }, func(x, y int, double bool) {
		if t.GetScrollOffset()+y >= t.GetRowCount() {
			return
		}
		left, top, _, _ := t.GetInnerRect()
		t.TreeView.MouseHandler()(tview.MouseLeftClick, tcell.NewEventMouse(x+left, y+top, tcell.Button1, 0),
			func(tview.Primitive) {})
		if double {
			t.choose()
		}
	})
}
