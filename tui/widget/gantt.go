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
	"github.com/kagzi/kagzi/tui/timescale"
)

// SpanKind says what happened during a span.
type SpanKind uint8

const (
	Work    SpanKind = iota // something ran
	Rest                    // it slept or waited
	Between                 // it waited for the next attempt
)

// Span is a period in a lane.
type Span struct {
	From, To time.Time // To zero: still open
	Kind     SpanKind
	Style    render.Style
	// drawn in the last cell, such as theme.Failed; zero draws nothing
	End theme.Glyph
}

// Lane is one row of a Gantt.
type Lane struct {
	ID      string // the cursor follows it
	Label   string
	Indent  int // levels
	Sign    theme.Sign
	Spans   []Span
	Overlay []Span // earlier attempts, drawn below Spans if the overlay is on
	Note    string // further text in the line at the bottom
	Instead string // shown in place of spans if there are none
}

// failed reports whether something in the lane failed.
func (l *Lane) failed() bool {
	return l.Sign.Style == render.Bad || slices.ContainsFunc(l.Spans, func(s Span) bool {
		return s.End == theme.Failed || s.End == theme.TimedOut
	})
}

// Gantt shows lanes of spans over one time axis, in the given order. tview has no chart.
type Gantt struct {
	*tview.Box
	look  func() *theme.Theme
	lanes []Lane
	index map[string]int // of lanes by id
	label int            // cells of the widest label
	now   time.Time

	begin    time.Time           // of the earliest span
	last     time.Duration       // the latest end, relative to begin
	open     bool                // a span is open
	quiet    []timescale.Stretch // periods in which no lane works
	perCell  float64             // nanoseconds per cell; 0 fits everything
	left     float64             // cells scrolled out on the left
	collapse bool
	overlay  bool

	selected int
	offset   int // first visible lane
	height   int // visible lanes at the last draw
	area     int // cells for bars at the last draw

	// Clock writes a time in the line at the bottom; default UTC with milliseconds.
	Clock func(time.Time) string
	enter func(Lane)
}

// NewGantt returns an empty timeline.
func NewGantt(look func() *theme.Theme) *Gantt {
	return &Gantt{Box: tview.NewBox(), look: look, area: 1,
		Clock: func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") + "Z" }}
}

// SetLanes replaces the lanes; now is the current time. The cursor stays on its lane if it still
// exists.
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

// SetNow sets the current time, which open spans extend to.
func (g *Gantt) SetNow(now time.Time) { g.now = now }

// OnEnter sets the function called with the lane that is chosen.
func (g *Gantt) OnEnter(f func(Lane)) { g.enter = f }

// Selected returns the lane under the cursor; ok is false if there is none.
func (g *Gantt) Selected() (lane Lane, ok bool) {
	if g.selected >= len(g.lanes) {
		return Lane{}, false
	}
	return g.lanes[g.selected], true
}

// Select moves the cursor to a lane; false if there is none with that id.
func (g *Gantt) Select(id string) bool {
	i, ok := g.index[id]
	if ok {
		g.move(i)
	}
	return ok
}

// NextFailed moves the cursor to the next failed lane, and wraps around; false if there is none.
func (g *Gantt) NextFailed() bool { return g.seek(1) }

// PrevFailed moves the cursor to the previous failed lane.
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

// move moves the cursor to a lane, within the range.
func (g *Gantt) move(to int) {
	g.selected = to
	g.settle()
}

// settle keeps the cursor within the lanes and on the screen.
func (g *Gantt) settle() {
	g.selected, g.offset = inView(g.selected, g.offset, len(g.lanes), g.height)
}

// InputHandler moves, zooms and opens.
func (g *Gantt) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(g.Box, func(event *tcell.EventKey) { g.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
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

// timeKey handles keys that change the visible time.
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
func (g *Gantt) MouseHandler() mouseHandler {
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

// ZoomIn doubles the scale around the bar of the selected lane if it is visible, or else around the
// middle.
func (g *Gantt) ZoomIn() { g.zoom(0.5) }

// ZoomOut halves the scale, until everything fits.
func (g *Gantt) ZoomOut() { g.zoom(2) }

// Fit shows everything, and keeps doing so while it grows.
func (g *Gantt) Fit() { g.perCell, g.left = 0, 0 }

// Zoomed reports whether only a part of the time is visible.
func (g *Gantt) Zoomed() bool { return g.perCell != 0 }

func (g *Gantt) zoom(factor float64) {
	s := g.scale()
	anchor := g.anchor(s)
	cell := s.Cell(anchor) - g.left // keep it at the same cell
	wanted := max(s.PerCell*factor, timescale.LeastCell)
	if factor > 1 && (g.perCell == 0 || wanted >= g.fitting(s.Total, s.Gaps)) {
		g.Fit()
		return
	}
	g.perCell = wanted
	g.left = math.Round(g.scale().Cell(anchor) - cell)
	g.Pan(0)
}

// anchor returns the time that keeps its place when the scale changes.
func (g *Gantt) anchor(s timescale.Scale) time.Duration {
	if lane, ok := g.Selected(); ok {
		for _, span := range lane.Spans {
			if at := span.From.Sub(g.begin); s.Cell(at) >= g.left && s.Cell(at) < g.left+float64(g.area) {
				return at
			}
		}
	}
	return s.At(g.left + float64(g.area)/2)
}

// Pan scrolls along the axis by cells, to the left if negative.
func (g *Gantt) Pan(cells int) {
	if g.perCell == 0 {
		return
	}
	most := max(math.Ceil(g.scale().Cells())-float64(g.area), 0)
	g.left = min(max(g.left+float64(cells), 0), most)
}

// Collapse sets whether periods in which no lane works shrink to a mark.
func (g *Gantt) Collapse(on bool) {
	anchor := g.scale().At(g.left)
	g.collapse = on
	if g.perCell != 0 {
		g.left = math.Round(g.scale().Cell(anchor))
		g.Pan(0)
	}
}

// Collapsed reports whether they do.
func (g *Gantt) Collapsed() bool { return g.collapse }

// Overlay sets whether earlier attempts are drawn.
func (g *Gantt) Overlay(on bool) { g.overlay = on }

// Overlaid reports whether they are.
func (g *Gantt) Overlaid() bool { return g.overlay }

// State describes how the time is shown: "zoom 4x, gaps collapsed". It is empty if everything is
// shown.
func (g *Gantt) State() string {
	var words []string
	if g.perCell != 0 {
		s := g.scale()
		words = append(words, fmt.Sprintf("zoom %.3gx", g.fitting(s.Total, s.Gaps)/g.perCell))
	}
	if g.collapse {
		words = append(words, "gaps collapsed")
	}
	if g.overlay {
		words = append(words, "earlier attempts")
	}
	return strings.Join(words, ", ")
}
