package widget

import (
	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

const (
	gutter     = 2 // for the mark of a row
	columnGap  = 2
	flexMin    = 8  // least cells of a Flex column without Min
	widestCell = 60 // cells of a column without Max
)

// shown is a visible column.
type shown struct {
	index, width int
}

// forget resets the column widths.
func (t *Table) forget() { clear(t.widths) }

// Draw draws the titles and the visible rows.
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
	room := w
	if n > t.height {
		room -= edge
	}
	columns := t.layout(rows, room)
	t.drawHead(c, columns)
	for i, row := range rows {
		t.drawRow(c.Part(0, i+1, w, 1), columns, row, t.offset+i == t.selected)
	}
	c.marks(0, h-1, t.offset > 0, last < n)
	if t.Viewed != nil {
		t.Viewed(t.offset, last)
	}
}

// drawEmpty draws the lines for an empty table in the middle.
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

// layout chooses the columns that fit and their widths. A column never shrinks while rows scroll,
// so nothing jumps; a new table width resets this.
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

// all returns every column from the first visible one on.
func (t *Table) all(room int) []shown {
	var list []shown
	for i := t.left; i < len(t.columns) && room > 0; i++ {
		list = append(list, shown{i, min(t.widths[i], room)})
		room -= t.widths[i] + columnGap
	}
	return list
}

// choose returns the columns of priority 1, then those of lower priorities while they fit at their
// least width.
func (t *Table) choose(room int) []shown {
	take := make([]bool, len(t.columns))
	used := -columnGap
	for priority := 1; priority <= 3; priority++ {
		for i, column := range t.columns {
			if column.Priority != priority {
				continue
			}
			least, spare := t.least(i), room
			if priority == 3 { // readable columns come before optional ones
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

// comfort is the default width of a Flex column below which columns of priority 3 are not shown.
const comfort = 20

// ease is how wide columns of priority 1 and 2 become before those of priority 3 grow: the short
// form of a run's id fits.
const ease = 21

// cramped returns how many cells the chosen columns lack to be comfortable.
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

// least returns the smallest useful width of a column.
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

// stretch gives Flex columns the remaining space, narrowest first, up to what they need; the last
// one takes the rest. Columns of priority 1 and 2 come first, until they have ease cells. If even
// the least widths do not fit, Flex columns shrink further.
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

// widen gives cells to Flex columns, narrowest first, until each has the width that most returns.
// It returns the cells left over.
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
