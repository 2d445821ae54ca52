package view

import (
	"errors"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// runTab is one tab of the run page.
type runTab interface {
	Draw(c widget.Canvas)
	Key(event *tcell.EventKey) bool
	Mouse(action tview.MouseAction, event *tcell.EventMouse) bool
	Actions() []*Action
	// Status is shown in the frame on the right.
	Status() string
	// Parts are the parts of the model that the tab needs beside the run and its steps.
	Parts() model.Part
	// Changed marks derived data as stale.
	Changed()
	// Step returns the step under the cursor.
	Step() (name string, ok bool)
	Show()
	Hide()
	Close()
}

// tabBase holds the defaults of a tab.
type tabBase struct {
	p     *runPage
	stale bool        // derived data must be computed again
	made  clock.Stamp // when it was, if it shows times
}

func newTabBase(p *runPage) tabBase { return tabBase{p: p, stale: true} }

func (t *tabBase) Changed()             { t.stale = true }
func (t *tabBase) Status() string       { return "" }
func (t *tabBase) Parts() model.Part    { return 0 }
func (t *tabBase) Step() (string, bool) { return "", false }
func (t *tabBase) Show()                {}
func (t *tabBase) Hide()                {}
func (t *tabBase) Close()               {}

// refreshed reports whether derived data must be computed again, and clears the mark.
func (t *tabBase) refreshed() bool {
	stale := t.stale
	t.stale = false
	return stale
}

// outdated is refreshed for data that shows times: it is also stale when time passed or the time
// style changed.
func (t *tabBase) outdated() bool {
	was := t.made
	t.made = t.p.app.clock.Stamp()
	return t.refreshed() || was != t.made
}

// tabNames lists the tabs in the order of their digits: long name, short name, command and help.
var tabNames = []struct{ long, short, command, help string }{
	{"Timeline", "Timeline", "timeline", "show the steps and attempts over time"},
	{"Tree", "Tree", "tree", "show steps, attempts and child runs as a tree"},
	{"Input/Output", "I/O", "payloads", "show the input and output"},
	{"Error", "Error", "error", "show errors with their stacks"},
	{"Events", "Events", "history", "show events in order"},
	{"Children", "Children", "children", "show the child runs"},
	{"Meta", "Meta", "facts", "show all details, signals and actions by people"},
}

const errorTabIndex = 3

func newRunTabs(p *runPage) []runTab {
	return []runTab{newTimelineTab(p), newTreeTab(p), newPayloadsTab(p), newErrorTab(p), newHistoryTab(p),
		newChildrenTab(p), newFactsTab(p)}
}

// choose shows another tab. Each tab keeps its state.
func (p *runPage) choose(tab int) {
	if p.run == nil || tab == p.tab {
		return
	}
	p.tabs[p.tab].Hide()
	p.tab = (tab + len(p.tabs)) % len(p.tabs)
	if p.shown {
		p.run.SetParts(p.tabs[p.tab].Parts())
		p.tabs[p.tab].Show()
	}
}

// tabPlace is where a tab's name is, relative to the upper left corner of the page.
type tabPlace struct{ row, from, to int }

// drawBar draws the names of the tabs on a line.
func (p *runPage) drawBar(c widget.Canvas, row int) {
	c.Fill(0, 0, c.W, c.Theme.Glyph(theme.Line), c.Theme.Role(theme.Border))
	room := 0
	for _, name := range tabNames {
		room += len(name.long) + 4
	}
	short := room > c.W
	p.bar = p.bar[:0]
	x := 0
	for i, name := range tabNames {
		text, style := string(rune('1'+i))+" "+name.short, c.Theme.Role(theme.Faint)
		if !short {
			text = " " + string(rune('1'+i)) + " " + name.long + " "
		}
		if i == errorTabIndex && p.troubled() {
			style = c.Theme.Style(render.Bad)
		}
		if i == p.tab {
			style = c.Theme.Role(theme.Selected)
		}
		n := c.Text(x, 0, text, style)
		p.bar = append(p.bar, tabPlace{row, x, x + n})
		x += n
		if short {
			x += c.Text(x, 0, " ", c.Theme.Role(theme.Text))
		}
	}
}

// troubled reports whether the error tab has something to show.
func (p *runPage) troubled() bool {
	if p.workflow().GetError() != nil {
		return true
	}
	for _, l := range p.run.Lanes() {
		if l.Failed {
			return true
		}
	}
	return false
}

// Actions switch tabs, act on the run, and include those of the tab.
func (p *runPage) Actions() []*Action {
	list := []*Action{
		{Name: "next-tab", Keys: []string{"tab"}, Short: "tabs", Help: "go to the next tab", Group: GroupMove, Hint: 2,
			Run: p.toTab(func() int { return p.tab + 1 })},
		{Name: "previous-tab", Keys: []string{"shift-tab"}, Help: "go to the previous tab", Group: GroupMove,
			Run: p.toTab(func() int { return p.tab - 1 })},
	}
	for i, name := range tabNames {
		action := &Action{Name: name.command, Keys: []string{string(rune('1' + i))}, Help: name.help, Group: GroupMove,
			Run: p.toTab(func() int { return i })}
		if i == len(tabNames)-1 { // as on other pages
			action.Aliases, action.Keys = []string{"describe"}, append(action.Keys, "d")
		}
		list = append(list, action)
	}
	if p.workflow() != nil {
		list = append(list, p.tabs[p.tab].Actions()...)
	}
	list = append(list, p.goActions()...)
	return append(list, p.app.runActions(p.targets, p.fromStep)...)
}

func (p *runPage) toTab(tab func() int) func([]string) error {
	return func([]string) error {
		if p.run == nil {
			return errNotRead
		}
		p.choose(tab())
		return nil
	}
}

// goActions open related runs.
func (p *runPage) goActions() []*Action {
	return []*Action{{
		Name: "parent", Keys: []string{"U"}, Help: "open the run that started or preceded this one",
		Group: GroupMove,
		Off: func() string {
			if p.origin() == "" {
				return "no other run started or preceded this one"
			}
			return ""
		},
		Run: func([]string) error { return p.app.pushView("run", p.origin()) },
	}}
}

// origin returns the run that this one came from, or an empty string.
func (p *runPage) origin() string {
	r := p.workflow()
	for _, id := range []string{r.GetParentRunId(), r.GetRetriedFromRunId(), r.GetContinuedFromRunId(),
		r.GetFailedRunId()} {
		if id != "" {
			return id
		}
	}
	return ""
}

// searching returns the action that prompts for a text and searches in a tab.
func (a *App) searching(in interface{ Search(text string) int }) func([]string) error {
	return func([]string) error {
		a.ask("search: ", "", nil, func(text string) error {
			if in.Search(text) == 0 && text != "" {
				return errors.New("not found")
			}
			return nil
		})
		return nil
	}
}

// simply returns an action that only changes the screen.
func simply(f func()) func([]string) error {
	return func([]string) error { f(); return nil }
}

// childrenTab lists the runs that a run started.
type childrenTab struct {
	tabBase
	tab *widget.Table
}

// childRows presents the children as rows.
type childRows struct{ p *runPage }

func (r childRows) Len() int                   { return r.p.run.Children().Len() }
func (r childRows) Find(id string) (int, bool) { return r.p.run.Children().Find(id) }

func (r childRows) Row(i int) (widget.Row, bool) {
	run, ok := r.p.run.Children().Row(i)
	if !ok {
		return widget.Row{}, false
	}
	row := r.p.app.tables.Run(run)
	row.Stale = r.p.app.link.State().Down()
	return row, true
}

func newChildrenTab(p *runPage) *childrenTab {
	t := &childrenTab{tabBase: newTabBase(p), tab: widget.NewTable(p.app.theme, tables.RunColumns)}
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

// Status shows how many children there are.
func (t *childrenTab) Status() string {
	children := t.p.run.Children()
	switch {
	case !children.Loaded():
		return ""
	case children.Len() == 1:
		return "1 run"
	case children.More():
		return "newest " + format.Number(int64(children.Len())) + " runs"
	}
	return format.Number(int64(children.Len())) + " runs"
}

// Actions open a child and copy its id.
func (t *childrenTab) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open the child run", Group: GroupMove, Hint: 1,
			Run: func([]string) error {
				id, ok := t.tab.Selected()
				if !ok {
					return errNothingUnder
				}
				return t.p.app.pushView("run", id)
			}},
		{Name: "wide", Keys: []string{"ctrl-w"}, Help: "show all columns; scroll with h and l",
			Group: GroupView, Run: simply(func() { t.tab.SetWide(!t.tab.Wide()) })},
		{Name: "copy", Keys: []string{"Y"}, Help: "copy the id of the child run", Group: GroupView,
			Run: func([]string) error {
				id, _ := t.tab.Selected()
				return t.p.app.copy("id", id)
			}},
		t.p.copyJSONAction(), t.p.showJSONAction(),
	}
}
