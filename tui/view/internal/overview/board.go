// Package overview draws the blocks of the overview: tiles, warnings, charts, queues, failures and
// next ticks, with a cursor that moves through them.
package overview

import (
	"slices"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// Source provides the data of a board, and what it needs from the program.
type Source struct {
	Overview *model.Overview
	Link     *model.Link
	Clock    *clock.Clock
	Look     func() *theme.Theme
	// a database file is shown: there is no server
	File bool
	// Failed returns how many runs failed lately, with two labels for since when
	Failed       func(*kagziv1.GetStatsResponse) (n int64, since, short string)
	FailedFilter string // selects failed runs
	// Reach returns the command-line flags that lead to the server
	Reach func() string
	Open  func(view string, args ...string) error // opens another page
}

// Board holds the blocks of the overview and the cursor.
type Board struct {
	Source
	Span  model.Range       // range of the charts
	At    string            // id of the block under the cursor
	On    map[string]cursor // cursor within each block
	drawn []placed          // blocks of the last frame, in cursor order
}

// New returns a board with the cursor on the tiles.
func New(s Source) *Board {
	return &Board{Source: s, At: tilesBlock, On: map[string]cursor{}}
}

// cursor is a place in a block. It follows its item by id, and stays near its place when the item
// is gone.
type cursor struct {
	id    string
	Index int
	first int // first visible item
}

// Draw draws the blocks that fit.
func (p *Board) Draw(c widget.Canvas) {
	stats := p.Overview.Stats()
	if stats == nil {
		p.drawn = nil
		widget.TextLine("Reading …", render.Dim).Draw(c.Part((c.W-9)/2, c.H/3, c.W, 1))
		return
	}
	if stats.GetTotalWorkflows() == 0 && stats.GetTotalWorkers() == 0 && stats.GetTotalSchedules() == 0 {
		p.drawn = nil
		p.drawStart(c)
		return
	}
	c = c.Part(1, 0, c.W-2, c.H)
	blocks := p.Blocks()
	p.drawn = arrange(c.W, c.H, func(id string) int { return len(blocks[id].Items) })
	p.settle(blocks)
	for i, at := range p.drawn {
		part := c.Part(at.x, at.y, at.w, at.h)
		p.drawn[i].left, p.drawn[i].top = part.X, part.Y
		switch at.id {
		case tilesBlock:
			p.drawTiles(part, blocks[at.id].Items)
		case activityBlock:
			p.drawActivity(part)
		default:
			p.drawBlock(part, blocks[at.id])
		}
	}
}

// style returns the style of a meaning on this page: pale if the data may be old.
func (p *Board) style(s render.Style) tcell.Style {
	if p.Link.State().Down() {
		return p.Look().Role(theme.Stale)
	}
	return p.Look().Style(s)
}

// Under returns the item under the cursor; nil if there is none.
func (p *Board) Under() *Item {
	b := p.Blocks()[p.At]
	if b == nil || len(b.Items) == 0 {
		return nil
	}
	return b.Items[min(p.On[p.At].Index, len(b.Items)-1)]
}

// Key moves the cursor within a block, and past its edge into the next.
func (p *Board) Key(event *tcell.EventKey) bool {
	switch widget.KeyName(event) {
	case "j", "down":
		if p.At == tilesBlock {
			p.Step(1)
		} else {
			p.Move(1)
		}
	case "k", "up":
		p.Move(-1)
	case "l", "right":
		if p.At == tilesBlock {
			p.put(p.On[p.At].Index + 1)
		} else {
			p.Step(1)
		}
	case "h", "left":
		if p.At == tilesBlock {
			p.put(p.On[p.At].Index - 1)
		} else {
			p.Step(-1)
		}
	case "g", "home":
		p.At = tilesBlock
		p.put(0)
	case "G", "end":
		if order := p.stops(); len(order) > 0 {
			p.At = order[len(order)-1]
			p.put(len(p.Blocks()[p.At].Items) - 1)
		}
	default:
		return false
	}
	return true
}

// stops returns the visible blocks that the cursor can enter, in order.
func (p *Board) stops() []string {
	blocks := p.Blocks()
	var ids []string
	for _, at := range p.drawn {
		if b := blocks[at.id]; b != nil && len(b.Items) > 0 {
			ids = append(ids, at.id)
		}
	}
	return ids
}

// Step moves by n blocks and wraps around.
func (p *Board) Step(n int) {
	if order := p.stops(); len(order) > 0 {
		p.At = order[(slices.Index(order, p.At)+n+len(order))%len(order)]
	}
}

// Move moves to the next or previous item, and from the last one into the next block.
func (p *Board) Move(n int) {
	b := p.Blocks()[p.At]
	if b == nil {
		return
	}
	to := p.On[p.At].Index + n
	order := p.stops()
	i := slices.Index(order, p.At)
	switch {
	case to >= 0 && to < len(b.Items):
		p.put(to)
	case to < 0 && i > 0:
		p.At = order[i-1]
		if p.At != tilesBlock {
			p.put(len(p.Blocks()[p.At].Items) - 1)
		}
	case to > 0 && i+1 < len(order):
		p.At = order[i+1]
		p.put(0)
	}
}

// put puts the cursor on an item of its block.
func (p *Board) put(index int) {
	items := p.Blocks()[p.At].Items
	if len(items) == 0 {
		return
	}
	c := p.On[p.At]
	c.Index = min(max(index, 0), len(items)-1)
	c.id = items[c.Index].ID
	p.On[p.At] = c
}

// settle finds the items of the cursors again after they moved, and leaves blocks that became
// empty.
func (p *Board) settle(blocks map[string]*Block) {
	for id, b := range blocks {
		c := p.On[id]
		if at := slices.IndexFunc(b.Items, func(i *Item) bool { return i.ID == c.id }); at >= 0 && c.id != "" {
			c.Index = at
		}
		c.Index = max(min(c.Index, len(b.Items)-1), 0)
		if len(b.Items) > 0 && id != tilesBlock {
			c.id = b.Items[c.Index].ID
		}
		p.On[id] = c
	}
	if order := p.stops(); !slices.Contains(order, p.At) {
		p.At = tilesBlock
	}
}

// Point puts the cursor on the item at a screen position; false if there is none.
func (p *Board) Point(x, y int) bool {
	for _, at := range p.drawn {
		if x < at.left || x >= at.left+at.w || y < at.top || y >= at.top+at.h || !slices.Contains(p.stops(), at.id) {
			continue
		}
		p.At = at.id
		if at.id == tilesBlock {
			p.put(tileAt(at, x-at.left, y-at.top))
		} else {
			p.put(p.On[at.id].first + y - at.top - 1)
		}
		return true
	}
	return false
}
