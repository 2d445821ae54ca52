package view

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/widget"
)

// followMost is how many child runs are followed at a time. Each is a stream of its own.
const followMost = 20

// treeTab shows steps, their attempts and the runs that they started below each other. The steps of a child run are read when its node is
// opened.
type treeTab struct {
	tabBase
	tree  *widget.Tree
	nodes map[string]treeNode
	kids  []string              // ids of the nodes of child runs, in their order
	below map[string]*model.Run // child runs that were opened, by run id
	live  map[string]bool       // those of them that are followed now

	placed bool // the cursor has been put where one looks first
}

// treeNode is what a node is about.
type treeNode struct {
	step  string // of the page's own run
	runID string // of a child run
}

func newTreeTab(p *runPage) *treeTab {
	t := &treeTab{tabBase: newTabBase(p), tree: widget.NewTree(p.app.theme), below: map[string]*model.Run{}, live: map[string]bool{}}
	t.tree.OnEnter(t.enter)
	return t
}

func (t *treeTab) Parts() model.Part { return model.Children }

// Hide follows no child run any more.
func (t *treeTab) Hide() {
	for id := range t.live {
		t.below[id].Hide()
	}
	clear(t.live)
}

func (t *treeTab) Close() {
	for _, run := range t.below {
		run.Close()
	}
}

func (t *treeTab) Draw(c widget.Canvas) {
	if t.outdated() {
		t.nodes, t.kids = map[string]treeNode{}, nil
		t.tree.SetRoots(t.ofRun(t.p.run, "", 0))
		if !t.placed && t.p.run.Loaded() {
			t.placed = true
			t.tree.Select("step:" + t.p.firstLook())
		}
	}
	t.follow()
	if len(t.nodes) == 0 {
		drawMiddle(c, t.p.noSteps()...)
		return
	}
	t.tree.SetRect(c.X, c.Y, c.W, c.H)
	t.tree.Draw(c.Screen)
}

// follow follows the child runs whose nodes are open, and no others.
func (t *treeTab) follow() {
	open := map[string]bool{}
	for _, node := range t.kids {
		if id := t.nodes[node].runID; t.tree.IsOpen(node) && len(open) < followMost {
			open[id] = true
		}
	}
	for id := range t.live {
		if !open[id] {
			t.below[id].Hide()
			delete(t.live, id)
		}
	}
	for id := range open {
		if t.live[id] {
			continue
		}
		if t.below[id] == nil {
			run := model.NewRun(t.p.app.link, id)
			run.Changed = t.Changed
			t.below[id] = run
		}
		t.live[id] = true
		t.below[id].SetParts(model.Children)
		t.below[id].Show()
	}
}

// enter opens a child run, shows the attempts of a step, and folds anything else.
func (t *treeTab) enter(n widget.Node) {
	switch node := t.nodes[n.ID]; {
	case node.runID != "":
		t.p.app.done(t.p.app.pushView("run", node.runID))
	case node.step != "":
		t.p.showAttempts(node.step)
	default:
		t.tree.Fold(t.tree.IsOpen(n.ID))
	}
}

func (t *treeTab) Key(event *tcell.EventKey) bool { return t.tree.Key(event) }

func (t *treeTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := t.tree.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// Step is that of the node under the cursor, when it is one of this run.
func (t *treeTab) Step() (string, bool) {
	n, ok := t.tree.Selected()
	if !ok || t.nodes[n.ID].step == "" {
		return "", false
	}
	return t.nodes[n.ID].step, true
}

// Actions open and fold.
func (t *treeTab) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "the attempts of a step, or a child run", Group: GroupMove, Hint: 1, Run: simply(func() {
			if n, ok := t.tree.Selected(); ok {
				t.enter(n)
			}
		})},
		{Name: "fold", Keys: []string{"space"}, Help: "fold what is under the cursor, or open it", Group: GroupMove, Hint: 3, Run: simply(func() {
			if n, ok := t.tree.Selected(); ok {
				t.tree.Fold(t.tree.IsOpen(n.ID))
			}
		})},
		{Name: "fold-all", Keys: []string{"["}, Help: "fold everything", Group: GroupView, Run: simply(func() { t.tree.FoldAll(true) })},
		{Name: "unfold-all", Keys: []string{"]"}, Help: "open everything that is loaded", Group: GroupView, Run: simply(func() { t.tree.FoldAll(false) })},
		t.p.copyIDAction(), t.p.copyJSONAction(), t.p.showJSONAction(),
	}
}
