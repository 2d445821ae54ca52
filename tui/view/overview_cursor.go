package view

import (
	"slices"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/widget"
)

// Key moves the cursor: within a block, and over its edge into the next.
func (p *overviewPage) Key(event *tcell.EventKey) bool {
	switch widget.KeyName(event) {
	case "j", "down":
		if p.at == tilesBlock {
			p.step(1)
		} else {
			p.move(1)
		}
	case "k", "up":
		p.move(-1)
	case "l", "right":
		if p.at == tilesBlock {
			p.put(p.on[p.at].index + 1)
		} else {
			p.step(1)
		}
	case "h", "left":
		if p.at == tilesBlock {
			p.put(p.on[p.at].index - 1)
		} else {
			p.step(-1)
		}
	case "g", "home":
		p.at = tilesBlock
		p.put(0)
	case "G", "end":
		if order := p.stops(); len(order) > 0 {
			p.at = order[len(order)-1]
			p.put(len(p.blocks()[p.at].items) - 1)
		}
	default:
		return false
	}
	return true
}

// stops are the blocks on the screen that the cursor can be in, in their order.
func (p *overviewPage) stops() []string {
	blocks := p.blocks()
	var ids []string
	for _, at := range p.drawn {
		if b := blocks[at.id]; b != nil && len(b.items) > 0 {
			ids = append(ids, at.id)
		}
	}
	return ids
}

// step goes to the next block or, below zero, to the one before, around the end.
func (p *overviewPage) step(n int) {
	if order := p.stops(); len(order) > 0 {
		p.at = order[(slices.Index(order, p.at)+n+len(order))%len(order)]
	}
}

// move goes to the next item or the one before; from the last of a block into the next block.
func (p *overviewPage) move(n int) {
	b := p.blocks()[p.at]
	if b == nil {
		return
	}
	to := p.on[p.at].index + n
	order := p.stops()
	i := slices.Index(order, p.at)
	switch {
	case to >= 0 && to < len(b.items):
		p.put(to)
	case to < 0 && i > 0:
		p.at = order[i-1]
		if p.at != tilesBlock {
			p.put(len(p.blocks()[p.at].items) - 1)
		}
	case to > 0 && i+1 < len(order):
		p.at = order[i+1]
		p.put(0)
	}
}

// put places the cursor on an item of its block.
func (p *overviewPage) put(index int) {
	items := p.blocks()[p.at].items
	if len(items) == 0 {
		return
	}
	c := p.on[p.at]
	c.index = min(max(index, 0), len(items)-1)
	c.id = items[c.index].id
	p.on[p.at] = c
}

// settle finds the things under the cursors again after they have moved, and leaves blocks that have become empty.
func (p *overviewPage) settle(blocks map[string]*block) {
	for id, b := range blocks {
		c := p.on[id]
		if at := slices.IndexFunc(b.items, func(i *item) bool { return i.id == c.id }); at >= 0 && c.id != "" {
			c.index = at
		}
		c.index = max(min(c.index, len(b.items)-1), 0)
		if len(b.items) > 0 && id != tilesBlock {
			c.id = b.items[c.index].id
		}
		p.on[id] = c
	}
	if order := p.stops(); !slices.Contains(order, p.at) {
		p.at = tilesBlock
	}
}

// point puts the cursor on what is at a place of the screen; false when nothing is.
func (p *overviewPage) point(x, y int) bool {
	for _, at := range p.drawn {
		if x < at.left || x >= at.left+at.w || y < at.top || y >= at.top+at.h || !slices.Contains(p.stops(), at.id) {
			continue
		}
		p.at = at.id
		if at.id == tilesBlock {
			p.put(tileAt(at, x-at.left, y-at.top))
		} else {
			p.put(p.on[at.id].first + y - at.top - 1)
		}
		return true
	}
	return false
}
