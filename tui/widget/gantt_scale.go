package widget

import (
	"math"
	"time"

	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/timescale"
)

// measure computes the begin, the end and the quiet periods of the lanes.
func (g *Gantt) measure() {
	g.begin, g.last, g.open, g.quiet = time.Time{}, 0, false, nil
	for i := range g.lanes {
		for _, spans := range [][]Span{g.lanes[i].Spans, g.lanes[i].Overlay} {
			for _, s := range spans {
				if g.begin.IsZero() || s.From.Before(g.begin) {
					g.begin = s.From
				}
			}
		}
	}
	var busy []timescale.Stretch
	for i := range g.lanes {
		for _, spans := range [][]Span{g.lanes[i].Spans, g.lanes[i].Overlay} {
			for _, s := range spans {
				from, to := s.From.Sub(g.begin), s.To.Sub(g.begin)
				if s.To.IsZero() {
					g.open, to = true, math.MaxInt64
				} else {
					g.last = max(g.last, from, to)
				}
				if s.Kind == Work {
					busy = append(busy, timescale.Stretch{From: from, To: max(from, to)})
				}
				g.last = max(g.last, from)
			}
		}
	}
	g.quiet = timescale.Quiet(busy)
}

// total returns the whole duration, up to now if a span is open.
func (g *Gantt) total() time.Duration {
	if g.open {
		return max(g.last, g.now.Sub(g.begin), 0)
	}
	return g.last
}

// scale returns the current scale of the axis.
func (g *Gantt) scale() timescale.Scale {
	total := g.total()
	s := timescale.Scale{PerCell: g.perCell, Total: total}
	if g.collapse {
		s.Gaps = timescale.Fold(g.quiet, total, g.area)
	}
	if s.PerCell == 0 {
		s.PerCell = g.fitting(total, s.Gaps)
	}
	return s
}

// fitting returns the scale at which everything fits.
func (g *Gantt) fitting(total time.Duration, gaps []timescale.Gap) float64 {
	return timescale.Fit(total, gaps, g.area)
}

// tickCells is the least distance of ticks, so that their labels do not touch.
const tickCells = 10

// axis draws the times above the bars, relative to the begin.
type axis struct {
	Canvas
	scale timescale.Scale
	left  float64
	taken []bool // written cells
}

func newAxis(c Canvas, s timescale.Scale, left float64) *axis {
	return &axis{Canvas: c, scale: s, left: left, taken: make([]bool, c.W)}
}

// draw marks the gaps, writes the time after each, then adds ticks where they fit.
func (a *axis) draw() {
	for _, g := range a.scale.Gaps {
		first, last := gapCells(a.scale, g, a.left)
		for x := max(first, 0); x <= min(last, a.W-1); x++ {
			a.Text(x, 0, a.Theme.Glyph(theme.Break), a.Theme.Role(theme.Faint))
			a.taken[x] = true
		}
	}
	for _, g := range a.scale.Gaps {
		a.tick(g.To, timescale.TickLabel(timescale.Rounded(g.To)))
	}
	step := timescale.TickStep(time.Duration(math.Min(a.scale.PerCell*tickCells, math.MaxInt64/4)))
	last := min(a.scale.At(a.left+float64(a.W)), a.scale.Total)
	for at := (a.scale.At(a.left) + step - 1) / step * step; at <= last; at += step {
		if g, ok := a.scale.GapAt(at); ok { // skip: a gap can contain very many ticks
			at = (g.To - 1) / step * step
			continue
		}
		a.tick(at, timescale.TickLabel(at))
	}
}

// tick writes a label at its mark, unless the cells are taken.
func (a *axis) tick(at time.Duration, label string) {
	text := a.Theme.Glyph(theme.Bar) + label
	cells := 1 + len(label)
	x := int(math.Floor(a.scale.Cell(at) - a.left))
	if x < 0 || x+cells > a.W {
		return
	}
	for i := x; i < min(x+cells+1, a.W); i++ {
		if a.taken[i] {
			return
		}
	}
	for i := x; i < min(x+cells+1, a.W); i++ {
		a.taken[i] = true
	}
	a.Text(x, 0, text, a.Theme.Role(theme.Faint))
}
