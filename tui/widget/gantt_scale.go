package widget

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kagzi/kagzi/tui/theme"
)

const (
	breakCells = 3     // cells of a collapsed gap
	gapShare   = 6     // a gap that takes less than 1/gapShare of the axis is not collapsed
	leastCell  = 1_000 // nanoseconds per cell at the highest zoom
)

// stretch is a period, relative to the begin.
type stretch struct{ from, to time.Duration }

// gap is a stretch that takes breakCells instead of its time.
type gap struct {
	stretch
	before time.Duration // time hidden by earlier gaps
}

// scale converts between times and cells.
type scale struct {
	perCell float64 // nanoseconds
	total   time.Duration
	gaps    []gap
}

// cell returns the position of a time, in cells from the start of the axis.
func (s scale) cell(at time.Duration) float64 {
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].from >= at }) // gaps that begin before it
	if i == 0 {
		return float64(at) / s.perCell
	}
	g := s.gaps[i-1]
	shown := float64(g.from-g.before)/s.perCell + float64((i-1)*breakCells)
	if at < g.to {
		return shown + breakCells*float64(at-g.from)/float64(g.to-g.from)
	}
	return shown + breakCells + float64(at-g.to)/s.perCell
}

// at returns the time at a cell.
func (s scale) at(cell float64) time.Duration {
	i := sort.Search(len(s.gaps), func(i int) bool { return s.cell(s.gaps[i].from) >= cell })
	if i == 0 {
		return time.Duration(cell * s.perCell)
	}
	g := s.gaps[i-1]
	over := cell - s.cell(g.from)
	if over < breakCells {
		return g.from + time.Duration(over/breakCells*float64(g.to-g.from))
	}
	return g.to + time.Duration((over-breakCells)*s.perCell)
}

// cells returns the length of the axis in cells.
func (s scale) cells() float64 { return s.cell(s.total) }

// gapAt returns the collapsed gap that contains a time, edges excluded.
func (s scale) gapAt(at time.Duration) (g gap, ok bool) {
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].from >= at })
	if i == 0 || at >= s.gaps[i-1].to {
		return gap{}, false
	}
	return s.gaps[i-1], true
}

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
	var busy []stretch
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
					busy = append(busy, stretch{from, max(from, to)})
				}
				g.last = max(g.last, from)
			}
		}
	}
	g.quiet = between(busy)
}

// between returns the periods that no stretch covers. The last one, after all of them, has no end.
func between(busy []stretch) []stretch {
	slices.SortFunc(busy, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var quiet []stretch
	end := time.Duration(0)
	for _, b := range busy {
		if b.from > end {
			quiet = append(quiet, stretch{end, b.from})
		}
		end = max(end, b.to)
	}
	if end < math.MaxInt64 {
		quiet = append(quiet, stretch{end, math.MaxInt64})
	}
	return quiet
}

// total returns the whole duration, up to now if a span is open.
func (g *Gantt) total() time.Duration {
	if g.open {
		return max(g.last, g.now.Sub(g.begin), 0)
	}
	return g.last
}

// scale returns the current scale of the axis.
func (g *Gantt) scale() scale {
	total := g.total()
	s := scale{perCell: g.perCell, total: total}
	if g.collapse {
		s.gaps = g.gaps(total)
	}
	if s.perCell == 0 {
		s.perCell = g.fitting(total, s.gaps)
	}
	return s
}

// fitting returns the scale at which everything fits, with a cell for the tip of the last bar.
func (g *Gantt) fitting(total time.Duration, gaps []gap) float64 {
	room := max(float64(g.area-len(gaps)*breakCells), 1)
	return max(float64(total-hidden(gaps))/room, leastCell)
}

// hidden returns how much time gaps hide.
func hidden(gaps []gap) time.Duration {
	if len(gaps) == 0 {
		return 0
	}
	g := gaps[len(gaps)-1]
	return g.before + g.to - g.from
}

// gaps returns the quiet periods to collapse: the longest ones, with at most a tenth of the cells,
// and only those that take a good part of the whole axis, independent of the zoom. It returns none
// if nothing would be left.
func (g *Gantt) gaps(total time.Duration) []gap {
	var list []stretch
	for _, q := range g.quiet {
		if q.to = min(q.to, total); q.to > q.from {
			list = append(list, q)
		}
	}
	slices.SortStableFunc(list, func(a, b stretch) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	list = list[:min(len(list), max(g.area/10, 1))]
	least := float64(max(2*breakCells, g.area/gapShare))
	for len(list) > 0 { // drop the shortest while collapsing it gains little
		shortest := list[len(list)-1]
		if float64(shortest.to-shortest.from)/g.fitting(total, chain(list)) > least {
			break
		}
		list = list[:len(list)-1]
	}
	if gaps := chain(list); hidden(gaps) < total {
		return gaps
	}
	return nil
}

// chain sorts gaps by time.
func chain(list []stretch) []gap {
	gaps := make([]gap, len(list))
	for i, q := range list {
		gaps[i].stretch = q
	}
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(a.from, b.from) })
	before := time.Duration(0)
	for i := range gaps {
		gaps[i].before = before
		before += gaps[i].to - gaps[i].from
	}
	return gaps
}

// tickCells is the least distance of ticks, so that their labels do not touch.
const tickCells = 10

// day is a day of the axis, which ignores the calendar.
const day = 24 * time.Hour

// axis draws the times above the bars, relative to the begin.
type axis struct {
	Canvas
	scale scale
	left  float64
	taken []bool // written cells
}

func newAxis(c Canvas, s scale, left float64) *axis {
	return &axis{Canvas: c, scale: s, left: left, taken: make([]bool, c.W)}
}

// draw marks the gaps, writes the time after each, then adds ticks where they fit.
func (a *axis) draw() {
	for _, g := range a.scale.gaps {
		first, last := gapCells(a.scale, g, a.left)
		for x := max(first, 0); x <= min(last, a.W-1); x++ {
			a.Text(x, 0, a.Theme.Glyph(theme.Break), a.Theme.Role(theme.Faint))
			a.taken[x] = true
		}
	}
	for _, g := range a.scale.gaps {
		a.tick(g.to, tickLabel(rounded(g.to)))
	}
	step := tickStep(time.Duration(math.Min(a.scale.perCell*tickCells, math.MaxInt64/4)))
	last := min(a.scale.at(a.left+float64(a.W)), a.scale.total)
	for at := (a.scale.at(a.left) + step - 1) / step * step; at <= last; at += step {
		if g, ok := a.scale.gapAt(at); ok { // skip: a gap can contain very many ticks
			at = (g.to - 1) / step * step
			continue
		}
		a.tick(at, tickLabel(at))
	}
}

// tick writes a label at its mark, unless the cells are taken.
func (a *axis) tick(at time.Duration, label string) {
	text := a.Theme.Glyph(theme.Bar) + label
	cells := 1 + len(label)
	x := int(math.Floor(a.scale.cell(at) - a.left))
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

// tickSteps lists round steps above a second.
var tickSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// tickStep returns the smallest round step that is at least least: 1, 2 or 5 times a power of ten
// below a second and in days, and halves and quarters of common units in between.
func tickStep(least time.Duration) time.Duration {
	if least > tickSteps[len(tickSteps)-1] {
		return decimal(least, day)
	}
	if least <= time.Second/2 {
		return decimal(least, time.Nanosecond)
	}
	for _, step := range tickSteps {
		if step >= least {
			return step
		}
	}
	return day
}

func decimal(least, unit time.Duration) time.Duration {
	for {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit >= least {
				return n * unit
			}
		}
		unit *= 10
	}
}

// rounded keeps the two largest units of a duration.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= day:
		return d.Round(time.Hour)
	case d >= time.Hour:
		return d.Round(time.Minute)
	case d >= time.Minute:
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// tickLabel writes a duration in few characters: "0s", "1.5s", "2m30s", "3d12h".
func tickLabel(d time.Duration) string {
	if d < time.Minute {
		return strings.ReplaceAll(d.String(), "µ", "u") // one byte per cell
	}
	text := ""
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := d / unit.size; n > 0 {
			text += fmt.Sprintf("%d%s", n, unit.name)
			d -= n * unit.size
		}
	}
	if d > 0 {
		text += d.String()
	}
	return text
}
