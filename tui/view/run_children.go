package view

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// childrenTab lists the runs that a run started.
type childrenTab struct {
	tabBase
	tab *widget.Table
}

// childRows are the children as rows.
type childRows struct{ p *runPage }

func (r childRows) Len() int                   { return r.p.run.Children().Len() }
func (r childRows) Find(id string) (int, bool) { return r.p.run.Children().Find(id) }

func (r childRows) Row(i int) (widget.Row, bool) {
	run, ok := r.p.run.Children().Row(i)
	if !ok {
		return widget.Row{}, false
	}
	row := r.p.app.runRow(run)
	row.Stale = r.p.app.link.State().Down()
	return row, true
}

func newChildrenTab(p *runPage) *childrenTab {
	t := &childrenTab{tabBase: newTabBase(p), tab: widget.NewTable(p.app.theme, runColumns)}
	t.tab.SetRows(childRows{p})
	t.tab.Opened = func(id string) { p.app.done(p.app.pushView("run", id)) }
	return t
}

func (t *childrenTab) Parts() model.Part { return model.Children }

func (t *childrenTab) Draw(c widget.Canvas) {
	text := "This run started no other runs."
	if !t.p.run.Children().Loaded() {
		text = "Reading …"
		if err := t.p.run.Children().Err(); err != nil {
			text = sentence(err)
		}
	}
	t.tab.SetEmpty([]widget.Line{widget.TextLine(text, render.Dim)})
	t.tab.SetRect(c.X, c.Y, c.W, c.H)
	t.tab.Draw(c.Screen)
}

func (t *childrenTab) Key(event *tcell.EventKey) bool { return t.tab.Key(event) }

func (t *childrenTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := t.tab.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// Status says how many there are.
func (t *childrenTab) Status() string {
	children := t.p.run.Children()
	switch {
	case !children.Loaded():
		return ""
	case children.Len() == 1:
		return "1 run"
	case children.More():
		return "the newest " + number(int64(children.Len())) + " runs"
	}
	return number(int64(children.Len())) + " runs"
}

// Actions open a child and copy its id.
func (t *childrenTab) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "the child run", Group: GroupMove, Hint: 1, Run: func([]string) error {
			id, ok := t.tab.Selected()
			if !ok {
				return errNothingUnder
			}
			return t.p.app.pushView("run", id)
		}},
		{Name: "wide", Keys: []string{"ctrl-w"}, Help: "show all columns, to be scrolled with h and l", Group: GroupView, Run: simply(func() { t.tab.SetWide(!t.tab.Wide()) })},
		{Name: "copy", Keys: []string{"Y"}, Help: "copy the id of the child run", Group: GroupView, Run: func([]string) error {
			id, _ := t.tab.Selected()
			return t.p.app.copy("id", id)
		}},
		t.p.copyJSONAction(), t.p.showJSONAction(),
	}
}
