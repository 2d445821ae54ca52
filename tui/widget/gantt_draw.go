package widget

import (
	"math"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/theme"
)

const (
	leastLabel = 16 // cells of the labels, whatever the width
	indent     = 2  // cells of a level
)

func labelWidth(l *Lane) int {
	return l.Indent*indent + 2 + textWidth(l.Label, widestCell)
}

// Draw draws the axis, the lanes that are on the screen, and the line about the lane under the cursor.
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
	g.Pan(0) // the width may be another than it was
	s := g.scale()
	axis := newAxis(c.Part(label+1, 0, g.area, 1), s, g.left)
	axis.draw()
	c.Cut(0, 0, label, g.State(), look.Role(theme.Faint))
	last := min(g.offset+g.height, len(g.lanes))
	for i := g.offset; i < last; i++ {
		row := 1 + i - g.offset
		g.drawLabel(c.Part(0, row, label, 1), &g.lanes[i], i == g.selected)
		bars{Canvas: c.Part(label+1, row, g.area, 1), gantt: g, scale: s}.lane(&g.lanes[i])
	}
	g.drawEdges(c, label, last, s)
	if h > 2 {
		c.Cut(0, h-1, w, g.about(&g.lanes[g.selected]), look.Role(theme.Text))
	}
}

// drawEdges says that there is more beyond the screen.
func (g *Gantt) drawEdges(c Canvas, label, last int, s scale) {
	style := c.Theme.Role(theme.Key)
	if g.left > 0 {
		c.Text(label, 0, c.Theme.Glyph(theme.Left), style)
	}
	if g.left+float64(g.area) < math.Floor(s.cells()) {
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

// about is the exact times of a lane, and its note.
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
	parts := []string{"not begun"}
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

// exact is a duration to the millisecond, or finer when it is shorter than one.
func exact(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
