package widget

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/timescale"
)

// bars draws the spans of one lane.
type bars struct {
	Canvas
	gantt *Gantt
	scale timescale.Scale
}

// placed is a span in cells of the canvas. It takes at least a part of its first cell.
type placed struct {
	first, last int     // first may be left of the canvas, last right of it
	end         float64 // its exact end
	visible     bool
}

// lane draws the spans in layers, most important last: waiting, breaks, earlier attempts, work,
// ends.
func (b bars) lane(l *Lane) {
	var earlier []Span
	if b.gantt.overlay {
		earlier = l.Overlay
	}
	if len(l.Spans)+len(earlier) == 0 && l.Instead != "" {
		b.Cut(0, 0, b.W, l.Instead, b.Theme.Role(theme.Faint))
		return
	}
	b.waiting(earlier, true)
	b.waiting(l.Spans, false)
	b.breaks()
	b.working(earlier, true)
	b.working(l.Spans, false)
	b.ends(earlier, true)
	b.ends(l.Spans, false)
}

// place returns the cells of a span.
func (b bars) place(s *Span) placed {
	from := s.From.Sub(b.gantt.begin)
	to := b.gantt.now.Sub(b.gantt.begin)
	if !s.To.IsZero() {
		to = s.To.Sub(b.gantt.begin)
	}
	start, end := b.scale.Cell(from), b.scale.Cell(max(from, to))
	lastCell := max(math.Ceil(b.scale.Cells())-1, 0)
	start = min(math.Floor(start), lastCell) - b.gantt.left
	end -= b.gantt.left
	if start >= float64(b.W) || max(end, start+1) <= 0 {
		return placed{}
	}
	start, end = max(start, -1), min(end, float64(b.W+1)) // clamp to just outside the canvas
	first := int(start)
	return placed{first: first, last: max(int(math.Ceil(end))-1, first), end: end, visible: true}
}

func (b bars) style(s *Span, earlier bool) tcell.Style {
	style := b.Theme.Style(s.Style)
	if earlier {
		style = style.Dim(true)
	}
	return style
}

// waiting draws the spans in which nothing ran.
func (b bars) waiting(spans []Span, earlier bool) {
	for i := range spans {
		s := &spans[i]
		p := b.place(s)
		if s.Kind == Work || !p.visible {
			continue
		}
		glyph := theme.Rest
		if s.Kind == Between {
			glyph = theme.Between
		}
		b.fill(p.first, p.last, b.Theme.Glyph(glyph), b.style(s, earlier))
	}
}

// breaks marks the collapsed gaps.
func (b bars) breaks() {
	for _, g := range b.scale.Gaps {
		first, last := gapCells(b.scale, g, b.gantt.left)
		b.fill(first, last, b.Theme.Glyph(theme.Break), b.Theme.Role(theme.Faint))
	}
}

// gapCells returns the cells that lie entirely in a gap.
func gapCells(s timescale.Scale, g timescale.Gap, left float64) (first, last int) {
	return int(math.Ceil(s.Cell(g.From) - left)), int(math.Floor(s.Cell(g.To)-left)) - 1
}

// working draws the spans in which something ran. Of many equal ones in one cell, it draws one.
func (b bars) working(spans []Span, earlier bool) {
	drawn, look := -2, tcell.StyleDefault // cell and style of the last one-cell span
	for i := range spans {
		s := &spans[i]
		if s.Kind != Work {
			continue
		}
		p := b.place(s)
		style := b.style(s, earlier)
		if !p.visible || p.first == p.last && p.first == drawn && style == look {
			continue
		}
		if p.first == p.last {
			drawn, look = p.first, style
		}
		b.bar(p, style)
	}
}

// bar fills cells up to the exact end, as far as the glyphs allow.
func (b bars) bar(p placed, style tcell.Style) {
	parts := b.Theme.Eighths()
	b.fill(p.first, p.last-1, parts[len(parts)-1], style)
	n := int(math.Round((p.end - float64(p.last)) * float64(len(parts))))
	if p.first == p.last {
		n = max(n, 1)
	}
	if n = min(n, len(parts)); n > 0 && p.last >= 0 {
		b.Text(p.last, 0, parts[n-1], style)
	}
}

// ends draws how spans ended: the tip of an open one, and the glyph of a failure on top.
func (b bars) ends(spans []Span, earlier bool) {
	for i := range spans {
		if s := &spans[i]; s.To.IsZero() && s.Kind == Work {
			b.endWith(s, theme.Tip, earlier)
		}
	}
	for i := range spans {
		if s := &spans[i]; !s.To.IsZero() && s.End != theme.Pending {
			b.endWith(s, s.End, earlier)
		}
	}
}

func (b bars) endWith(s *Span, glyph theme.Glyph, earlier bool) {
	if p := b.place(s); p.visible && p.last >= 0 && p.last < b.W {
		b.Text(p.last, 0, b.Theme.Glyph(glyph), b.style(s, earlier))
	}
}

// fill writes a glyph into the visible cells from first to last.
func (b bars) fill(first, last int, glyph string, style tcell.Style) {
	first, last = max(first, 0), min(last, b.W-1)
	b.Fill(first, 0, last-first+1, glyph, style)
}

const (
	leastLabel = 16 // least cells of the labels
	indent     = 2  // cells of a level
)

func labelWidth(l *Lane) int {
	return l.Indent*indent + 2 + textWidth(l.Label, widestCell)
}

// Draw draws the axis, the visible lanes, and the line about the selected lane.
func (g *Gantt) Draw(screen tcell.Screen) {
	x, y, w, h := g.GetInnerRect()
	look := g.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	label := min(max(g.label, w*24/100), w*32/100)
	label = min(max(label, leastLabel), w)
	g.area = max(w-label-1, 1)
	g.height = max(h-2, 0)
	g.settle()
	if len(g.lanes) == 0 {
		return
	}
	g.Pan(0) // the width may have changed
	s := g.scale()
	onRight := g.left+float64(g.area) < math.Floor(s.Cells())
	width := g.area
	if onRight {
		width -= edge
	}
	newAxis(c.Part(label+1, 0, width, 1), s, g.left).draw()
	c.Cut(0, 0, label, g.State(), look.Role(theme.Faint))
	last := min(g.offset+g.height, len(g.lanes))
	for i := g.offset; i < last; i++ {
		row := 1 + i - g.offset
		g.drawLabel(c.Part(0, row, label, 1), &g.lanes[i], i == g.selected)
		bars{Canvas: c.Part(label+1, row, g.area, 1), gantt: g, scale: s}.lane(&g.lanes[i])
	}
	g.drawEdges(c, label, last, onRight)
	if h > 2 {
		c.Cut(0, h-1, w, g.about(&g.lanes[g.selected]), look.Role(theme.Text))
	}
}

// drawEdges marks that there is more beyond the screen.
func (g *Gantt) drawEdges(c Canvas, label, last int, onRight bool) {
	style := c.Theme.Role(theme.Key)
	if g.left > 0 {
		c.Text(label, 0, c.Theme.Glyph(theme.Left), style)
	}
	if onRight {
		c.Text(c.W-1, 0, c.Theme.Glyph(theme.Right), style)
	}
	if g.offset > 0 {
		c.Text(label, 1, c.Theme.Glyph(theme.Up), style)
	}
	if last < len(g.lanes) && g.height > 0 {
		c.Text(label, g.height, c.Theme.Glyph(theme.Down), style)
	}
}

func (g *Gantt) drawLabel(c Canvas, l *Lane, selected bool) {
	sign, text := c.Theme.Style(l.Sign.Style), c.Theme.Role(theme.Text)
	if selected {
		text = c.Theme.Role(theme.Selected)
		sign = text
		c.Clear(text)
	}
	x := min(l.Indent*indent, c.W/2)
	x += c.Text(x, 0, c.Theme.Glyph(l.Sign.Glyph), sign) + 1
	c.Cut(x, 0, c.W-x, l.Label, text)
}

// about returns the exact times of a lane, and its note.
func (g *Gantt) about(l *Lane) string {
	var from, to time.Time
	open := false
	for _, s := range l.Spans {
		if from.IsZero() || s.From.Before(from) {
			from = s.From
		}
		if s.To.IsZero() {
			open = true
		} else if s.To.After(to) {
			to = s.To
		}
	}
	parts := []string{cmp.Or(l.Instead, "not started")}
	if !from.IsZero() {
		took := "took "
		if open {
			took, to = "so far ", g.now
		}
		parts = []string{g.Clock(from), "+" + exact(from.Sub(g.begin)), took + exact(max(to.Sub(from), 0))}
	}
	if l.Note != "" {
		parts = append(parts, l.Note)
	}
	return strings.Join(parts, "  ")
}

// exact writes a duration to the millisecond, or finer if it is shorter.
func exact(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
