package widget

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// SpanKind is what went on during a span.
type SpanKind uint8

const (
	Work    SpanKind = iota // something ran
	Rest                    // it slept or waited for somebody
	Between                 // it waited for the next attempt
)

// Span is a stretch of time in a lane.
type Span struct {
	From, To time.Time // To zero: it still goes on
	Kind     SpanKind
	Style    render.Style
	// drawn in its last cell: theme.Failed; nothing ends theme.Pending, which is zero and draws none
	End theme.Glyph
}

// Lane is one row of a Gantt.
type Lane struct {
	ID      string // the cursor stays with it
	Label   string
	Indent  int // levels
	Sign    theme.Sign
	Spans   []Span
	Overlay []Span // earlier attempts, drawn below Spans when the overlay is on
	Note    string // what else there is to say of it in the line at the bottom
}

// failed says whether something in the lane went wrong.
func (l *Lane) failed() bool {
	return l.Sign.Style == render.Bad || slices.ContainsFunc(l.Spans, func(s Span) bool {
		return s.End == theme.Failed || s.End == theme.TimedOut
	})
}

// Gantt shows lanes of spans over one axis of time. Lanes are drawn in the order that they are given in.
type Gantt struct {
	*tview.Box
	look  func() *theme.Theme
	lanes []Lane
	index map[string]int // of lanes by id
	label int            // cells that the widest label needs
	now   time.Time

	begin    time.Time     // of the earliest span
	last     time.Duration // the latest end, counted from begin
	open     bool          // something still goes on
	quiet    []stretch     // the times in which no lane works
	perCell  float64       // nanoseconds of a cell; 0 fits everything in
	left     float64       // cells of the axis scrolled out on the left
	collapse bool
	overlay  bool

	selected int
	offset   int // first lane on the screen
	height   int // lanes on the screen at the last draw
	area     int // cells for bars at the last draw

	// Clock writes a moment in the line at the bottom; default UTC with milliseconds.
	Clock func(time.Time) string
	enter func(Lane)
}

// NewGantt makes an empty one.
func NewGantt(look func() *theme.Theme) *Gantt {
	return &Gantt{Box: tview.NewBox(), look: look, area: 1,
		Clock: func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") + "Z" }}
}

// SetLanes shows other lanes as they are at now. The cursor stays on its lane if it is still there.
func (g *Gantt) SetLanes(lanes []Lane, now time.Time) {
	id := ""
	if lane, ok := g.Selected(); ok {
		id = lane.ID
	}
	g.lanes, g.now = lanes, now
	g.index = make(map[string]int, len(lanes))
	g.label = 0
	for i := range lanes {
		g.index[lanes[i].ID] = i
		g.label = max(g.label, labelWidth(&lanes[i]))
	}
	g.measure()
	if i, ok := g.index[id]; ok {
		g.selected = i
	}
	g.settle()
}

// SetNow lets what still goes on grow.
func (g *Gantt) SetNow(now time.Time) { g.now = now }

// OnEnter is called with the lane under the cursor when it is chosen.
func (g *Gantt) OnEnter(f func(Lane)) { g.enter = f }

// Selected is the lane under the cursor; ok is false when there is none.
func (g *Gantt) Selected() (lane Lane, ok bool) {
	if g.selected >= len(g.lanes) {
		return Lane{}, false
	}
	return g.lanes[g.selected], true
}

// Select puts the cursor on a lane; false when there is none with that id.
func (g *Gantt) Select(id string) bool {
	i, ok := g.index[id]
	if ok {
		g.move(i)
	}
	return ok
}

// NextFailed puts the cursor on the next lane in which something failed, after the last one on the
// first; false when there is none.
func (g *Gantt) NextFailed() bool { return g.seek(1) }

// PrevFailed does so upwards.
func (g *Gantt) PrevFailed() bool { return g.seek(-1) }

func (g *Gantt) seek(step int) bool {
	for i := range g.lanes {
		at := around(g.selected, step*(i+1), len(g.lanes))
		if g.lanes[at].failed() {
			g.move(at)
			return true
		}
	}
	return false
}

// move puts the cursor on a lane, or on the nearest there is.
func (g *Gantt) move(to int) {
	g.selected = to
	g.settle()
}

// settle keeps the cursor within the lanes and the screen around the cursor.
func (g *Gantt) settle() {
	g.selected, g.offset = inView(g.selected, g.offset, len(g.lanes), g.height)
}

// InputHandler moves, zooms and opens.
func (g *Gantt) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return g.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { g.Key(event) })
}

// Key does what a key means to the timeline; ok is false when it means nothing.
func (g *Gantt) Key(event *tcell.EventKey) (ok bool) {
	key := KeyName(event)
	if rows, ok := MovesBy(key, len(g.lanes), g.height); ok {
		g.move(g.selected + rows)
		return true
	}
	if key != "enter" {
		return g.timeKey(key)
	}
	if lane, ok := g.Selected(); ok && g.enter != nil {
		g.enter(lane)
	}
	return true
}

// timeKey is Key for what changes the time that is shown.
func (g *Gantt) timeKey(key string) bool {
	switch key {
	case "h", "left":
		g.Pan(-max(g.area/8, 1))
	case "l", "right":
		g.Pan(max(g.area/8, 1))
	case "+", "=":
		g.ZoomIn()
	case "-":
		g.ZoomOut()
	case "0":
		g.Fit()
	case "z":
		g.Collapse(!g.collapse)
	case "o":
		g.Overlay(!g.overlay)
	case "f":
		g.NextFailed()
	case "F":
		g.PrevFailed()
	default:
		return false
	}
	return true
}

// MouseHandler moves with the wheel, and selects and opens with clicks.
func (g *Gantt) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
	return mouse(g.Box, func(rows int) { g.move(g.selected + rows) }, func(_, y int, double bool) {
		lane := g.offset + y - 1
		if y < 1 || y > g.height || lane >= len(g.lanes) {
			return
		}
		g.move(lane)
		if double && g.enter != nil {
			g.enter(g.lanes[lane])
		}
	})
}

// ZoomIn shows half of the time in the same cells, around the bar of the lane under the cursor when
// it is in view, else around the middle.
func (g *Gantt) ZoomIn() { g.zoom(0.5) }

// ZoomOut shows twice the time, at most everything.
func (g *Gantt) ZoomOut() { g.zoom(2) }

// Fit shows everything, and goes on to do so while it grows.
func (g *Gantt) Fit() { g.perCell, g.left = 0, 0 }

// Zoomed says whether a part of the time is shown only.
func (g *Gantt) Zoomed() bool { return g.perCell != 0 }

func (g *Gantt) zoom(factor float64) {
	s := g.scale()
	anchor := g.anchor(s)
	cell := s.cell(anchor) - g.left // stays there
	wanted := max(s.perCell*factor, leastCell)
	if factor > 1 && (g.perCell == 0 || wanted >= g.fitting(s.total, s.gaps)) {
		g.Fit()
		return
	}
	g.perCell = wanted
	g.left = math.Round(g.scale().cell(anchor) - cell)
	g.Pan(0)
}

// anchor is the time that stays in its place when the scale changes.
func (g *Gantt) anchor(s scale) time.Duration {
	if lane, ok := g.Selected(); ok {
		for _, span := range lane.Spans {
			if at := span.From.Sub(g.begin); s.cell(at) >= g.left && s.cell(at) < g.left+float64(g.area) {
				return at
			}
		}
	}
	return s.at(g.left + float64(g.area)/2)
}

// Pan moves along the axis by cells, to the left below zero.
func (g *Gantt) Pan(cells int) {
	if g.perCell == 0 {
		return
	}
	most := max(math.Ceil(g.scale().cells())-float64(g.area), 0)
	g.left = min(max(g.left+float64(cells), 0), most)
}

// Collapse says whether the times in which no lane works shrink to a mark.
func (g *Gantt) Collapse(on bool) {
	anchor := g.scale().at(g.left)
	g.collapse = on
	if g.perCell != 0 {
		g.left = math.Round(g.scale().cell(anchor))
		g.Pan(0)
	}
}

// Collapsed says whether they do.
func (g *Gantt) Collapsed() bool { return g.collapse }

// Overlay says whether earlier attempts are drawn too.
func (g *Gantt) Overlay(on bool) { g.overlay = on }

// Overlaid says whether they are.
func (g *Gantt) Overlaid() bool { return g.overlay }

// State says in a few words how the time is shown: "zoom 4x, gaps collapsed"; empty when everything is.
func (g *Gantt) State() string {
	var words []string
	if g.perCell != 0 {
		s := g.scale()
		words = append(words, fmt.Sprintf("zoom %.3gx", g.fitting(s.total, s.gaps)/g.perCell))
	}
	if g.collapse {
		words = append(words, "gaps collapsed")
	}
	if g.overlay {
		words = append(words, "earlier attempts")
	}
	return strings.Join(words, ", ")
}
