package widget

import (
	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

const (
	gutter     = 2 // for the mark of a row
	columnGap  = 2
	flexMin    = 8  // of a column that may be cut and names no minimum
	widestCell = 60 // of a column that names no maximum
)

// shown is a column on the screen.
type shown struct {
	index, width int
}

// forget lets the widths of columns settle anew.
func (t *Table) forget() { clear(t.widths) }

// Draw draws the titles and the rows that are on the screen.
func (t *Table) Draw(screen tcell.Screen) {
	x, y, w, h := t.GetInnerRect()
	look := t.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	t.height = max(h-1, 0)
	t.settle()
	t.top = t.offset == 0
	n := t.rows.Len()
	if n == 0 {
		t.drawEmpty(c)
		return
	}
	last := min(t.offset+t.height, n)
	rows := make([]Row, 0, t.height)
	for i := t.offset; i < last; i++ {
		row, ok := t.rows.Row(i)
		if !ok {
			row = Row{Stale: true}
		}
		rows = append(rows, row)
	}
	columns := t.layout(rows, w)
	t.drawHead(c, columns)
	for i, row := range rows {
		t.drawRow(c.Part(0, i+1, w, 1), columns, row, t.offset+i == t.selected)
	}
	if t.offset > 0 {
		c.Text(w-1, 0, look.Glyph(theme.Up), look.Role(theme.Faint))
	}
	if last < n && h > 1 {
		c.Text(w-1, h-1, look.Glyph(theme.Down), look.Role(theme.Faint))
	}
	if t.Viewed != nil {
		t.Viewed(t.offset, last)
	}
}

// drawEmpty says why there is nothing, in the middle.
func (t *Table) drawEmpty(c Canvas) {
	top := max((c.H-len(t.empty))/3, 0)
	for i, line := range t.empty {
		width := line.Width()
		line.Draw(c.Part(max((c.W-width)/2, 0), top+i, c.W, 1))
	}
}

func (t *Table) drawHead(c Canvas, columns []shown) {
	style := c.Theme.Role(theme.Head)
	x := gutter
	for _, s := range columns {
		column := t.columns[s.index]
		title := column.Title
		if column.ID == t.sort && t.sort != "" {
			arrow := theme.Up
			if t.descending {
				arrow = theme.Down
			}
			title += c.Theme.Glyph(arrow)
		}
		cell(c, x, s.width, title, column.Right, style)
		x += s.width + columnGap
	}
}

func (t *Table) drawRow(c Canvas, columns []shown, row Row, selected bool) {
	look := c.Theme
	marked := t.marks[row.ID]
	if selected {
		c.Clear(look.Role(theme.Selected))
	}
	style := func(s render.Style) tcell.Style {
		switch {
		case selected && marked:
			return look.Role(theme.Selected).Bold(true)
		case selected:
			return look.Role(theme.Selected)
		case row.Stale:
			return look.Role(theme.Stale)
		case marked:
			return look.Role(theme.Marked)
		case row.Fresh:
			return look.Style(s).Bold(true)
		}
		return look.Style(s)
	}
	if marked {
		c.Text(0, 0, look.Glyph(theme.Mark), style(render.Plain))
	}
	x := gutter
	for _, s := range columns {
		if s.index < len(row.Cells) {
			cell(c, x, s.width, row.Cells[s.index].Text, t.columns[s.index].Right, style(row.Cells[s.index].Style))
		}
		x += s.width + columnGap
	}
}

func cell(c Canvas, x, w int, text string, right bool, style tcell.Style) {
	if right {
		c.Right(x, 0, w, text, style)
		return
	}
	c.Cut(x, 0, w, text, style)
}

// layout chooses the columns that fit and how wide they are. A column that has been wide stays so
// while rows scroll by, so that nothing jumps; another width of the whole lets it settle anew.
func (t *Table) layout(rows []Row, width int) []shown {
	if width != t.width {
		t.width = width
		t.forget()
	}
	for i, column := range t.columns {
		widest := max(render.Width(column.Title)+1, column.Min, t.widths[i])
		for _, row := range rows {
			if i < len(row.Cells) {
				widest = max(widest, min(render.Width(render.Safe(bounded(row.Cells[i].Text, widestCell+1))),
					widestCell))
			}
		}
		if column.Max > 0 {
			widest = min(widest, max(column.Max, column.Min))
		}
		t.widths[i] = widest
	}
	room := width - gutter
	if t.wide {
		return t.all(room)
	}
	chosen := t.choose(room)
	t.stretch(chosen, room)
	return chosen
}

// all is every column from the one that is scrolled to on.
func (t *Table) all(room int) []shown {
	var list []shown
	for i := t.left; i < len(t.columns) && room > 0; i++ {
		list = append(list, shown{i, min(t.widths[i], room)})
		room -= t.widths[i] + columnGap
	}
	return list
}

// choose takes the columns of the first priority, and of the next as long as they fit at their least width.
func (t *Table) choose(room int) []shown {
	take := make([]bool, len(t.columns))
	used := -columnGap
	for priority := 1; priority <= 3; priority++ {
		for i, column := range t.columns {
			if column.Priority != priority {
				continue
			}
			least, spare := t.least(i), room
			if priority == 3 { // what could be left out does not come before what is there can be read
				spare -= t.cramped(take)
			}
			if priority > 1 && used+columnGap+least > spare {
				continue
			}
			take[i] = true
			used += columnGap + least
		}
	}
	var list []shown
	if t.order != nil {
		for _, i := range t.order {
			list = append(list, shown{i, t.least(i)})
		}
		return list
	}
	for i := range t.columns {
		if take[i] {
			list = append(list, shown{i, t.least(i)})
		}
	}
	return list
}

// comfort is how wide a column that may be cut should be before one of the third priority is shown,
// when it does not say itself.
const comfort = 20

// ease is how wide the columns of the first priorities become before those of the third get more
// than their least: the short form of a run's id fits.
const ease = 21

// cramped is how many cells the columns that are taken lack to be read with comfort.
func (t *Table) cramped(take []bool) int {
	lack := 0
	for i := range t.columns {
		if take[i] && t.columns[i].Flex {
			wanted := t.columns[i].Comfort
			if wanted == 0 {
				wanted = comfort
			}
			lack += max(min(t.widths[i], wanted)-t.least(i), 0)
		}
	}
	return lack
}

// least is the width below which a column is of no use.
func (t *Table) least(i int) int {
	column := t.columns[i]
	if !column.Flex {
		return t.widths[i]
	}
	least := column.Min
	if least == 0 {
		least = flexMin
	}
	return min(least, t.widths[i])
}

// stretch gives columns that may be cut what is left of the room, the narrowest first, up to what
// they need; the last of them takes the rest. Those of the first priorities come before what could
// have been left out, until they can be read with ease. Where even the least widths do not fit,
// what may be cut is cut further.
func (t *Table) stretch(list []shown, room int) {
	left := room + columnGap
	for _, s := range list {
		left -= s.width + columnGap
	}
	left = t.widen(list, left, func(i int) int {
		if t.columns[i].Priority > 2 {
			return 0
		}
		return min(t.widths[i], ease)
	})
	left = t.widen(list, left, func(i int) int { return t.widths[i] })
	for left < 0 {
		widest := -1
		for i, s := range list {
			if s.width > 4 && (widest < 0 || s.width > list[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		list[widest].width--
		left++
	}
}

// widen gives cells to columns that may be cut, the narrowest first, until each is as wide as most
// says, and is what is left over.
func (t *Table) widen(list []shown, left int, most func(column int) int) int {
	for left > 0 {
		narrow := -1
		for i, s := range list {
			if t.columns[s.index].Flex && s.width < most(s.index) && (narrow < 0 || s.width < list[narrow].width) {
				narrow = i
			}
		}
		if narrow < 0 {
			break
		}
		list[narrow].width++
		left--
	}
	return left
}
