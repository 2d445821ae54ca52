package view

import (
	"errors"
	"fmt"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// about is the common part of pages about one thing: facts at the top, and facets below that tab
// switches between. If there is room, all facets are shown at once.
type about struct {
	app    *App
	facets []*facet
	focus  int
	facts  func() []fact        // most important first
	whole  func() proto.Message // the thing itself, nil until it is read
	pairs  func() []render.Pair // all details
	id     func() string        // of the thing
	places []place              // of the facets at the last draw, empty for those that were not drawn
}

// facet is one part of such a page.
type facet struct {
	title   func() string
	part    part
	prepare func()     // called before each draw
	want    func() int // rows that show all of it
	// For tables: what the rows stand for.
	tab      *widget.Table
	message  func(id string) proto.Message
	messages func() []proto.Message
}

// part is a widget that takes keys.
type part interface {
	tview.Primitive
	Key(event *tcell.EventKey) bool
}

// focused returns the facet that gets the keys.
func (p *about) focused() *facet { return p.facets[p.focus] }

// Draw draws the facts, and as many facets as fit.
func (p *about) Draw(c widget.Canvas) {
	if p.whole() == nil {
		c.Cut(2, c.H/3, c.W-4, "Reading …", c.Theme.Role(theme.Faint))
		return
	}
	top := drawFacts(c.Part(1, 0, c.W-2, max(3, c.H*2/5)), p.facts())
	rest := c.Part(0, top, c.W, c.H-top)
	p.places = make([]place, len(p.facets))
	if heights := p.share(rest.H); heights != nil {
		y := 0
		for i, h := range heights {
			p.drawRule(rest.Part(0, y, rest.W, 1), i)
			p.drawFacet(i, rest.Part(0, y+1, rest.W, h-1))
			y += h
		}
		return
	}
	p.drawTabs(rest.Part(0, 0, rest.W, 1))
	p.drawFacet(p.focus, rest.Part(0, 1, rest.W, rest.H-1))
}

// leastFacet is the fewest rows, rule included, at which a facet is useful beside others.
const leastFacet = 5

// share divides rows among the facets: the first gets twice as many as each other one, the last
// takes the rest. It returns nil if they do not fit beside each other.
func (p *about) share(rows int) []int {
	heights := make([]int, len(p.facets))
	wants := make([]int, len(p.facets))
	left := rows
	for i, f := range p.facets {
		wants[i] = f.want() + 1
		heights[i] = min(wants[i], leastFacet)
		left -= heights[i]
	}
	if left < 0 {
		return nil
	}
	for grown := true; left > 0 && grown; {
		grown = false
		for i := range heights {
			more := min(wants[i]-heights[i], left, 1)
			if i == 0 {
				more = min(wants[i]-heights[i], left, 2)
			}
			heights[i] += more
			left -= more
			grown = grown || more > 0
		}
	}
	heights[len(heights)-1] += left
	return heights
}

func (p *about) drawFacet(i int, c widget.Canvas) {
	p.places[i] = func(int, int) (int, int, int, int) { return c.X, c.Y, c.W, c.H }
	p.facets[i].prepare()
	p.facets[i].part.SetRect(c.X, c.Y, c.W, c.H)
	p.facets[i].part.Draw(c.Screen)
}

// drawRule draws the line above one of several facets.
func (p *about) drawRule(c widget.Canvas, i int) {
	look := c.Theme
	c.Fill(0, 0, c.W, look.Glyph(theme.Line), look.Role(theme.Border))
	p.drawTitle(c, 1, i)
}

// drawTabs draws the line above the only visible facet, with the titles of all.
func (p *about) drawTabs(c widget.Canvas) {
	look := c.Theme
	c.Fill(0, 0, c.W, look.Glyph(theme.Line), look.Role(theme.Border))
	x := 1
	for i := range p.facets {
		x += p.drawTitle(c, x, i) + 1
	}
}

// drawTitle draws a facet's title in a line and returns its width.
func (p *about) drawTitle(c widget.Canvas, x, i int) int {
	style := c.Theme.Role(theme.Faint)
	if i == p.focus {
		style = c.Theme.Role(theme.Title)
		if len(p.facets) > 1 {
			style = c.Theme.Role(theme.Selected)
		}
	}
	return c.Cut(x, 0, c.W-x-1, " "+p.facets[i].title()+" ", style)
}

func (p *about) Status() string                 { return "" }
func (p *about) Key(event *tcell.EventKey) bool { return p.focused().part.Key(event) }

// Mouse passes the event to the facet under the mouse.
func (p *about) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	x, y := event.Position()
	for i, at := range p.places {
		if at == nil {
			continue
		}
		if left, top, w, h := at(0, 0); x < left || x >= left+w || y < top || y >= top+h {
			continue
		}
		if action == tview.MouseLeftClick {
			p.focus = i
		}
		consumed, _ := p.facets[i].part.MouseHandler()(action, event, func(tview.Primitive) {})
		return consumed
	}
	return false
}

// selected returns the row under the cursor if the focused facet is a table.
func (p *about) selected() (id string, ok bool) {
	if p.focused().tab == nil {
		return "", false
	}
	return p.focused().tab.Selected()
}

// CopyID returns the id of the row under the cursor, or else of the thing.
func (p *about) CopyID() string {
	if id, ok := p.selected(); ok {
		return id
	}
	return p.id()
}

// CopyAll returns the row under the cursor as JSON, or else the thing.
func (p *about) CopyAll() string {
	if id, ok := p.selected(); ok && p.focused().message != nil {
		return document(p.focused().message(id))
	}
	return document(p.whole())
}

// Rows returns the rows of the focused facet, or else all details of the thing.
func (p *about) Rows() (titles []string, rows [][]string) {
	if p.focused().tab != nil {
		return p.focused().tab.Export()
	}
	for _, pair := range p.pairs() {
		for _, line := range pair.Lines {
			rows = append(rows, []string{pair.Label, line})
		}
	}
	return []string{"FACT", "VALUE"}, rows
}

// JSON returns the same as Rows, as JSON.
func (p *about) JSON() ([]byte, error) {
	if p.focused().messages != nil {
		raw, err := render.JSON(render.Documents(p.focused().messages()), "  ")
		return append(raw, '\n'), err
	}
	return []byte(document(p.whole()) + "\n"), nil
}

// describe shows all details of the thing over the page.
func (p *about) describe(title string) func([]string) error {
	return func([]string) error {
		if p.whole() == nil {
			return errNotRead
		}
		p.app.readPairs(title, p.pairs())
		return nil
	}
}

// moves returns the actions that switch facets and show all details.
func (p *about) moves(title string) []*Action {
	turn := func(step int) func([]string) error {
		return func([]string) error {
			p.focus = (p.focus + step + len(p.facets)) % len(p.facets)
			return nil
		}
	}
	return []*Action{
		{Name: "describe", Keys: []string{"d"}, Help: "show all details", Group: GroupView, Hint: 8,
			Run: p.describe(title)},
		{Name: "next-part", Keys: []string{"tab"}, Short: "next part", Help: "go to the next part",
			Group: GroupMove, Hint: 9, Run: turn(1)},
		{Name: "part-before", Keys: []string{"shift-tab"}, Help: "go to the previous part",
			Group: GroupMove, Run: turn(-1)},
	}
}

// errNotRead refuses actions that need data which has not arrived yet.
var errNotRead = errors.New("not loaded yet")

// fact is one of the facts at the top of a page. A wide one takes half a line if there are many
// columns, or else a whole line.
type fact struct {
	label string
	cell  render.Cell
	wide  bool
}

const (
	factWidth   = 26 // cells of a column of facts, at least
	factLabel   = 11 // cells of its label
	mostFacts   = 5  // columns at most
	wideColumns = 4  // from this many columns on, a wide fact takes half of them
)

// drawFacts lays facts out in columns, line by line, and returns the number of rows. A wide fact
// starts a new line if too little of the line is left. Facts that do not fit are left out: describe
// shows them all.
func drawFacts(c widget.Canvas, facts []fact) int {
	columns := min(max(c.W/factWidth, 1), mostFacts)
	width := c.W / columns
	y, x := 0, 0
	for _, f := range facts {
		span := 1
		if f.wide {
			span = columns
			if columns >= wideColumns {
				span = columns / 2
			}
		}
		if x > 0 && x+span > columns {
			y, x = y+1, 0
		}
		if y >= c.H {
			return c.H
		}
		room := span*width - 2
		part := c.Part(x*width, y, room, 1)
		part.Cut(0, 0, factLabel-1, f.label, c.Theme.Role(theme.Faint))
		part.Cut(factLabel, 0, room-factLabel, f.cell.Text, c.Theme.Style(f.cell.Style))
		x += span
	}
	return y + 1
}

// plainFacts leaves out facts without a value.
func plainFacts(facts []fact) []fact {
	var list []fact
	for _, f := range facts {
		if f.cell.Text != "" {
			list = append(list, f)
		}
	}
	return list
}

// readPairs shows all details of a thing over the page.
func (a *App) readPairs(title string, pairs []render.Pair) {
	wide := 0
	for _, p := range pairs {
		wide = max(wide, render.Width(p.Label))
	}
	var lines []widget.Line
	for _, p := range pairs {
		label := p.Label
		for _, text := range p.Lines {
			lines = append(lines, widget.Line{Cells: []render.Cell{
				{Text: " " + format.Pad(label, wide+2), Style: render.Dim}, {Text: text, Style: p.Style}}})
			label = ""
		}
	}
	l := widget.NewLines(a.theme)
	l.SetLines(lines)
	a.reader(title, l, nil)
}

// runsFacet returns a facet that lists runs; enter opens one.
func (a *App) runsFacet(title, none string, columns []widget.Column, items *model.Collection[*kagziv1.Workflow],
	row func(*kagziv1.Workflow) widget.Row) *facet {
	t := widget.NewTable(a.theme, columns)
	t.SetRows(listRows[*kagziv1.Workflow]{a, items, row})
	t.Opened = func(id string) { a.done(a.pushView("run", id)) }
	return &facet{
		part: t, tab: t,
		title: func() string {
			switch {
			case !items.Loaded():
				return title
			case items.More():
				return fmt.Sprintf("%s (latest %s)", title, format.Number(int64(items.Len())))
			}
			return fmt.Sprintf("%s (%s)", title, format.Number(int64(items.Len())))
		},
		prepare: func() {
			text := none
			if !items.Loaded() {
				text = "Reading …"
			}
			t.SetEmpty([]widget.Line{widget.TextLine(text, render.Dim)})
		},
		want: func() int { return max(items.Len(), 1) + 1 },
		message: func(id string) proto.Message {
			if r, ok := items.Get(id); ok {
				return r
			}
			return nil
		},
		messages: func() []proto.Message {
			list := make([]proto.Message, 0, items.Len())
			for _, r := range items.All() {
				list = append(list, r)
			}
			return list
		},
	}
}

// linesFacet returns a facet with lines to read. They are made again for each draw, because they
// show times.
func (a *App) linesFacet(title func() string, lines func() []widget.Line) *facet {
	l := widget.NewLines(a.theme)
	l.SetWrap(false)
	return &facet{title: title, part: l, prepare: func() { l.SetLines(lines()) }, want: func() int {
		return len(lines())
	}}
}
