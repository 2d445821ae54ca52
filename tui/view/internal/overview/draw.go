package overview

import (
	"slices"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// drawTiles draws the four numbers: framed if there are enough lines, or else two per line.
func (p *Board) drawTiles(c widget.Canvas, items []*Item) {
	if c.H < boxedTile {
		for i, it := range items {
			w := c.W / 2
			part := c.Part(i%2*w, i/2, w, 1)
			p.drawCells(part.Part(1, 0, w-1, 1), it, p.selected(tilesBlock, i))
		}
		return
	}
	for i, it := range items {
		x, w := tilePlace(c.W, i)
		part := c.Part(x, 0, w, boxedTile)
		on := p.selected(tilesBlock, i)
		edge := p.Look().Role(theme.Border)
		if on {
			edge = p.Look().Role(theme.Key)
		}
		inner := part.Box("", edge)
		p.drawCells(inner.Part(1, 0, inner.W-2, 1), &Item{Cells: it.Cells[:2]}, on)
		inner.Cut(1, 1, inner.W-2, it.Cells[2].Text, p.style(it.Cells[2].Style))
	}
}

// tiles is the number of tiles.
const tiles = 4

// tilePlace returns the start and the width of a framed tile.
func tilePlace(width, i int) (x, w int) {
	x = i * (width + 1) / tiles
	return x, (i+1)*(width+1)/tiles - x - 1
}

// tileAt returns the tile at a position of its block.
func tileAt(at placed, x, y int) int {
	if at.h < boxedTile {
		return min(x/max(at.w/2, 1), 1) + 2*y
	}
	return min(x*tiles/max(at.w, 1), tiles-1)
}

// selected reports whether the cursor is on an item of a block.
func (p *Board) selected(id string, index int) bool {
	return p.At == id && p.On[id].Index == index
}

// drawCells draws the cells of a tile; the last one only if it fits.
func (p *Board) drawCells(c widget.Canvas, it *Item, selected bool) {
	if selected {
		c.Clear(p.Look().Role(theme.Selected))
	}
	x := 0
	for i, cell := range it.Cells {
		text := cell.Text
		if i == 2 {
			text = "(" + text + ")"
			if render.Width(text) > c.W-x {
				return
			}
		}
		x += c.Cut(x, 0, c.W-x, text, p.cellStyle(cell.Style, selected)) + 1
	}
}

// cellStyle returns the style of a meaning in a row.
func (p *Board) cellStyle(s render.Style, selected bool) tcell.Style {
	if selected {
		return p.Look().Role(theme.Selected)
	}
	return p.style(s)
}

// drawBlock draws the title of a block and as many items as fit, including the one under the
// cursor.
func (p *Board) drawBlock(c widget.Canvas, b *Block) {
	x := 0
	if b.title != "" {
		x = c.Cut(0, 0, c.W, b.title, p.Look().Role(theme.Title)) + 2
	}
	rows := c.Part(0, 1, c.W, c.H-1)
	at := p.On[b.id]
	at.first = max(min(at.first, at.Index, len(b.Items)-rows.H), at.Index-rows.H+1, 0)
	p.On[b.id] = at
	note := b.note
	if hidden := len(b.Items) - rows.H; hidden > 0 {
		if note = format.Number(int64(len(b.Items))) + " in all"; b.more {
			note = "more than " + format.Number(int64(len(b.Items)))
		}
	}
	c.Cut(x, 0, c.W-x, note, p.style(render.Dim))
	if len(b.Items) == 0 {
		b.empty.Draw(rows)
		return
	}
	shown := b.Items[at.first:min(at.first+rows.H, len(b.Items))]
	table := make([][]render.Cell, len(shown))
	for i, it := range shown {
		table[i] = b.cells(it, rows.W)
	}
	widths := cellWidths(table, rows.W)
	for i, it := range shown {
		p.drawRow(rows.Part(0, i, rows.W, 1), b, it.bar, table[i], widths, p.selected(b.id, at.first+i))
	}
}

// narrow is the width below which a block leaves out a cell.
const narrow = 48

// cells returns the cells of an item that are shown at a width.
func (b *Block) cells(it *Item, width int) []render.Cell {
	if b.spare > 0 && width < narrow {
		return slices.Delete(slices.Clone(it.Cells), b.spare, b.spare+1)
	}
	return it.Cells
}

// leftCells returns how many of the shown cells are on the left.
func (b *Block) leftCells(width int) int {
	if b.spare > 0 && b.spare < b.left && width < narrow {
		return b.left - 1
	}
	return b.left
}

// drawRow draws an item as a row of its block.
func (p *Board) drawRow(c widget.Canvas, b *Block, bar *queueBar, cells []render.Cell, widths []int, selected bool) {
	if selected {
		c.Clear(p.Look().Role(theme.Selected))
	}
	left := b.leftCells(c.W)
	x := 0
	for i, cell := range cells[:left] {
		c.Cut(x, 0, widths[i], cell.Text, p.cellStyle(cell.Style, selected))
		x += widths[i] + cellGap
	}
	end := c.W
	for i := len(cells) - 1; i >= left; i-- {
		end -= widths[i]
		c.Right(end, 0, widths[i], cells[i].Text, p.cellStyle(cells[i].Style, selected))
		if widths[i] > 0 {
			end -= cellGap
		}
	}
	if bar != nil && end-x >= leastBar {
		widget.SplitBar(c.Part(x, 0, end-x, 1), []widget.Share{
			{Value: bar.running, Style: p.style(render.Busy)}, {Value: bar.waiting, Style: p.style(render.Waiting)}},
			bar.most)
	}
}

const (
	cellGap   = 2
	leastCell = 6 // least useful cells of a text
	leastBar  = 4 // least useful cells of a bar
)

// cellWidths returns the width of each cell: what it needs, but the first at most a third of the
// row, and the widest less if space is short.
func cellWidths(rows [][]render.Cell, room int) []int {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], render.Width(render.Safe(cell.Text)))
		}
	}
	if len(widths) > 2 {
		widths[0] = min(widths[0], max(room/3, leastCell))
	}
	for {
		sum, widest := cellGap*(len(widths)-1), 0
		for i, w := range widths {
			sum += w
			if w > widths[widest] {
				widest = i
			}
		}
		if sum <= room || widths[widest] <= leastCell {
			return widths
		}
		widths[widest]--
	}
}

// Ids of the blocks.
const (
	tilesBlock    = "tiles"
	warningsBlock = "warnings"
	activityBlock = "activity"
	queuesBlock   = "queues"
	FailuresBlock = "failures"
	firesBlock    = "fires"
)

// BlockOrder lists the blocks with items, in cursor order.
var BlockOrder = []string{tilesBlock, warningsBlock, queuesBlock, FailuresBlock, firesBlock}

// placed is the area of a block on the page.
type placed struct {
	id         string
	x, y, w, h int
	left, top  int // screen position at the last frame
}

// Sizes of blocks.
const (
	boxedTile  = 4 // lines of a framed tile
	shortTiles = 2 // lines of all tiles without frames
	charts     = 5
	mostListed = 8 // most items of a block, except for warnings
)

// arrange places the blocks on a page of w by h cells: warnings first, the rest as it fits. count
// returns how many items a block has.
func arrange(w, h int, count func(id string) int) []placed {
	if w < 70 || h < 17 {
		return inStack(w, h, count)
	}
	return inColumns(w, h, count)
}

// inStack puts the blocks one below the other.
func inStack(w, h int, count func(id string) int) []placed {
	list := []placed{{id: tilesBlock, w: w, h: shortTiles}}
	y := shortTiles
	add := func(id string, want, least int) {
		if want = min(want, h-y); want >= least {
			list = append(list, placed{id: id, y: y, w: w, h: want})
			y += want
		}
	}
	add(warningsBlock, 1+min(count(warningsBlock), max(h/4, 1)), 1)
	add(FailuresBlock, 1+min(max(count(FailuresBlock), 1), mostListed), 2)
	add(queuesBlock, 1+min(max(count(queuesBlock), 1), mostListed), 2)
	add(activityBlock, 1+charts, 1+charts)
	add(firesBlock, 1+min(max(count(firesBlock), 1), mostListed), 2)
	return list
}

// inColumns puts the charts beside the queues, and the failures beside the next ticks.
func inColumns(w, h int, count func(id string) int) []placed {
	gap := 0
	if h >= 24 {
		gap = 1
	}
	warnings := 1 + min(count(warningsBlock), max(h/6, 3))
	y := boxedTile
	list := []placed{
		{id: tilesBlock, w: w, h: boxedTile},
		{id: warningsBlock, y: y, w: w, h: warnings},
	}
	y += warnings + gap
	low := 1 + min(max(count(FailuresBlock), count(firesBlock), 1), mostListed)
	high := 1 + max(charts, min(count(queuesBlock), mostListed))
	low = min(low, max(h-y-gap-(1+charts), 2))
	tall := min(max((h-y-gap-low-1)/charts, 1), 4) // rows of a chart
	high = min(max(high, 1+charts*tall), h-y-gap-low)
	left := w * 57 / 100
	right := w - left - 2
	return append(list,
		placed{id: activityBlock, y: y, w: left, h: high},
		placed{id: queuesBlock, x: left + 2, y: y, w: right, h: high},
		placed{id: FailuresBlock, y: y + high + gap, w: left, h: low},
		placed{id: firesBlock, x: left + 2, y: y + high + gap, w: right, h: low},
	)
}
