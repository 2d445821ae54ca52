package view

import (
	"errors"
	"slices"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// overviewPage says at a glance how everything is: what is wrong first, then how much there is to do and what comes next. A cursor goes
// through its blocks, and enter opens what it is on.
type overviewPage struct {
	app   *App
	span  model.Range       // of the charts
	at    string            // the block under the cursor, by its id
	on    map[string]cursor // where the cursor is in each block
	drawn []placed          // the blocks of the last frame, in the order in which the cursor goes through them
}

// cursor is a place in a block: it stays with its thing by id, and near where it was when the thing is gone.
type cursor struct {
	id    string
	index int
	first int // the first item on the screen
}

func openOverview(a *App, _ []string) (page, error) {
	return &overviewPage{app: a, at: tilesBlock, on: map[string]cursor{}}, nil
}

func (p *overviewPage) Name() string   { return "overview" }
func (p *overviewPage) Crumb() string  { return "overview" }
func (p *overviewPage) Title() string  { return "Overview of " + p.app.link.Namespace() }
func (p *overviewPage) Show()          { p.app.overview.Show() }
func (p *overviewPage) Hide()          { p.app.overview.Hide() }
func (p *overviewPage) Close()         {} // the counters and warnings go on
func (p *overviewPage) Refresh()       { p.app.overview.Refresh() }
func (p *overviewPage) Failure() error { return p.app.overview.Err() }

// Status is how long the server has been up.
func (p *overviewPage) Status() string {
	info := p.app.overview.Info()
	if info.GetStartedAt() == nil {
		return ""
	}
	return "up " + p.app.uptime(info.GetStartedAt().AsTime())
}

// Pace is quicker while the next tick is near, so that its countdown is true.
func (p *overviewPage) Pace() time.Duration {
	if fires := p.app.overview.Fires(); len(fires) > 0 {
		if left := fires[0].GetNextFireAt().AsTime().Sub(p.app.now()); left > 0 && left < time.Minute {
			return time.Second
		}
	}
	return slowPace
}

// Draw draws the blocks that there is room for.
func (p *overviewPage) Draw(c widget.Canvas) {
	stats := p.app.overview.Stats()
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
	blocks := p.blocks()
	p.drawn = arrange(c.W, c.H, func(id string) int { return len(blocks[id].items) })
	p.settle(blocks)
	for i, at := range p.drawn {
		part := c.Part(at.x, at.y, at.w, at.h)
		p.drawn[i].left, p.drawn[i].top = part.X, part.Y
		switch at.id {
		case tilesBlock:
			p.drawTiles(part, blocks[at.id].items)
		case activityBlock:
			p.drawActivity(part)
		default:
			p.drawBlock(part, blocks[at.id])
		}
	}
}

// style is how a meaning looks on this page: pale when it may be out of date.
func (p *overviewPage) style(s render.Style) tcell.Style {
	if p.app.link.State().Down() {
		return p.app.look.Role(theme.Stale)
	}
	return p.app.look.Style(s)
}

// under is the item under the cursor; nil when there is none.
func (p *overviewPage) under() *item {
	b := p.blocks()[p.at]
	if b == nil || len(b.items) == 0 {
		return nil
	}
	return b.items[min(p.on[p.at].index, len(b.items)-1)]
}

// Actions are to go through the page, to open what is on it, and to choose how far back the charts go.
func (p *overviewPage) Actions() []*Action {
	do := func(f func()) func([]string) error {
		return func([]string) error { f(); return nil }
	}
	list := []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "what is under the cursor: runs, a run, a schedule, a queue, the workers", Group: GroupMove, Hint: 1,
			Run: func([]string) error {
				i := p.under()
				if i == nil {
					return errNothingUnder
				}
				return i.open()
			}},
		{Name: "next", Keys: []string{"tab"}, Short: "next part", Help: "to the next part of the page", Group: GroupMove, Hint: 2, Run: do(func() { p.step(1) })},
		{Name: "previous", Keys: []string{"shift-tab"}, Help: "to the part before", Group: GroupMove, Run: do(func() { p.step(-1) })},
	}
	if p.app.options.File { // there are no charts
		return list
	}
	return append(list,
		&Action{Name: "range", Args: "5m|1h|24h", Help: "how far back the charts go", Group: GroupView, Run: p.setRange,
			Complete: func(text string) []string { return beginning(rangeNames, text) }},
		&Action{Name: "longer", Keys: []string{"}"}, Short: "longer", Help: "charts that go further back", Group: GroupView, Hint: 3, Run: do(func() { p.span = min(p.span+1, model.Day) })},
		&Action{Name: "shorter", Keys: []string{"{"}, Help: "charts of a shorter time", Group: GroupView, Run: do(func() { p.span = max(p.span, 1) - 1 })},
	)
}

// rangeNames are how the ranges are typed, in their order.
var rangeNames = []string{"5m", "1h", "24h"}

func (p *overviewPage) setRange(args []string) error {
	for i, name := range rangeNames {
		if len(args) == 1 && args[0] == name {
			p.span = model.Range(i)
			return nil
		}
	}
	return errors.New("range 5m, 1h or 24h?")
}

// CopyID is the id of what is under the cursor.
func (p *overviewPage) CopyID() string {
	if i := p.under(); i != nil {
		return i.id
	}
	return ""
}

// CopyAll is what is under the cursor as JSON.
func (p *overviewPage) CopyAll() string {
	i := p.under()
	if i == nil {
		return ""
	}
	return document(i.message)
}

// Rows are all that the blocks list, one after the other.
func (p *overviewPage) Rows() (titles []string, rows [][]string) {
	blocks := p.blocks()
	for _, id := range blockOrder {
		for _, i := range blocks[id].items {
			row := []string{id}
			for _, cell := range i.cells {
				row = append(row, cell.Text)
			}
			rows = append(rows, append(row, make([]string, 1+mostCells-len(row))...))
		}
	}
	return []string{"PART", "WHAT", "VALUE", "MORE"}, rows
}

// JSON is the counts of the namespace.
func (p *overviewPage) JSON() ([]byte, error) {
	raw, err := render.JSON(render.Documents([]proto.Message{p.app.overview.Stats()}), "  ")
	return append(raw, '\n'), err
}

// Mouse puts the cursor where a click is, and opens with a second one.
func (p *overviewPage) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	switch action {
	case tview.MouseScrollDown:
		p.move(1)
	case tview.MouseScrollUp:
		p.move(-1)
	case tview.MouseLeftClick, tview.MouseLeftDoubleClick:
		if x, y := event.Position(); !p.point(x, y) {
			return false
		}
		if i := p.under(); i != nil && action == tview.MouseLeftDoubleClick {
			p.app.done(i.open())
		}
	default:
		return false
	}
	return true
}

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
