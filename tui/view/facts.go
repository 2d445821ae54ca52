package view

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// errNotRead refuses what needs a thing that has not come yet.
var errNotRead = errors.New("it has not been read yet")

// fact is something worth knowing at a glance. A wide one takes half a line where there are many columns, else a line.
type fact struct {
	label string
	cell  render.Cell
	wide  bool
}

const (
	factWidth   = 26 // cells of a column of facts, at least
	factLabel   = 11 // of its label
	mostFacts   = 5  // columns
	wideColumns = 4  // from so many on a wide fact takes half of them
)

// drawFacts lays facts out in columns, line by line, and is how many rows that took. A wide one begins a line where not enough of it is left.
// What has no room is left out: it can be read in whole with describe.
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

// plainFacts leaves out what is not known.
func plainFacts(facts []fact) []fact {
	var list []fact
	for _, f := range facts {
		if f.cell.Text != "" {
			list = append(list, f)
		}
	}
	return list
}

// readPairs lays everything that is known of a thing over the page.
func (a *App) readPairs(title string, pairs []render.Pair) {
	wide := 0
	for _, p := range pairs {
		wide = max(wide, render.Width(p.Label))
	}
	var lines []widget.Line
	for _, p := range pairs {
		label := p.Label
		for _, text := range p.Lines {
			lines = append(lines, widget.Line{Cells: []render.Cell{{Text: " " + pad(label, wide+2), Style: render.Dim}, {Text: text, Style: p.Style}}})
			label = ""
		}
	}
	l := widget.NewLines(a.theme)
	l.SetLines(lines)
	a.reader(title, l, nil)
}

// runsFacet is a list of runs as a part of a page; enter opens one.
func (a *App) runsFacet(title, none string, columns []widget.Column, items *model.Collection[*kagziv1.Workflow], row func(*kagziv1.Workflow) widget.Row) *facet {
	t := widget.NewTable(a.theme, columns)
	t.SetRows(shelfRows[*kagziv1.Workflow]{a, items, row})
	t.Opened = func(id string) { a.done(a.pushView("run", id)) }
	return &facet{
		part: t, tab: t,
		title: func() string {
			switch {
			case !items.Loaded():
				return title
			case items.More():
				return fmt.Sprintf("%s (the latest %s)", title, number(int64(items.Len())))
			}
			return fmt.Sprintf("%s (%s)", title, number(int64(items.Len())))
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

// linesFacet is lines to read as a part of a page. They are made anew for each draw, because they tell times.
func (a *App) linesFacet(title func() string, lines func() []widget.Line) *facet {
	l := widget.NewLines(a.theme)
	l.SetWrap(false)
	return &facet{title: title, part: l, prepare: func() { l.SetLines(lines()) }, want: func() int { return len(lines()) }}
}

// until says how far off a moment is: to the second in the last minute, to the minute in the last hours, so that a screen on which nothing
// happens stays quiet.
func until(d time.Duration) string {
	rounded := d + time.Second - 1 // as render.Ago does
	if rounded < time.Minute || rounded >= 10*time.Hour {
		return render.Ago(-d)
	}
	return "in " + render.Days(rounded.Truncate(time.Minute))
}
