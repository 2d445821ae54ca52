package widget

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

const (
	breakCells = 3     // that a collapsed gap takes
	gapShare   = 6     // of the axis is what a gap must take to be collapsed
	leastCell  = 1_000 // nanoseconds that one cell can be zoomed to
)

// stretch is a time, counted from the begin.
type stretch struct{ from, to time.Duration }

// gap is a stretch that takes breakCells instead of its time.
type gap struct {
	stretch
	before time.Duration // how much time the gaps before it hide
}

// scale is how times and cells belong together.
type scale struct {
	perCell float64 // nanoseconds
	total   time.Duration
	gaps    []gap
}

// cell is where a time is, in cells from the begin of the axis.
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

// at is the time at a cell.
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

// cells is how many cells everything takes.
func (s scale) cells() float64 { return s.cell(s.total) }

// gapAt is the collapsed gap that a time is within, not at its edges.
func (s scale) gapAt(at time.Duration) (g gap, ok bool) {
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].from >= at })
	if i == 0 || at >= s.gaps[i-1].to {
		return gap{}, false
	}
	return s.gaps[i-1], true
}

// measure finds the begin, the end and the quiet times of the lanes.
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

// between are the times that none of the stretches covers, up to one without an end behind the last of them.
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

// total is how long everything took, up to now when something still goes on.
func (g *Gantt) total() time.Duration {
	if g.open {
		return max(g.last, g.now.Sub(g.begin), 0)
	}
	return g.last
}

// scale is the scale of the axis as it is shown.
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

// fitting is the scale at which everything fits in. A bar that ends at the end keeps a cell for its tip.
func (g *Gantt) fitting(total time.Duration, gaps []gap) float64 {
	room := max(float64(g.area-len(gaps)*breakCells), 1)
	return max(float64(total-hidden(gaps))/room, leastCell)
}

// hidden is how much time gaps hide.
func hidden(gaps []gap) time.Duration {
	if len(gaps) == 0 {
		return 0
	}
	g := gaps[len(gaps)-1]
	return g.before + g.to - g.from
}

// gaps are the quiet times that are worth leaving out: the longest, a tenth of the cells at most, and only those that would take a good
// part of the axis when everything is shown, whatever the zoom. Where nothing would be left there are none.
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
	for len(list) > 0 { // the shortest goes as long as leaving it out gains little
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

// chain puts gaps in the order of time.
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
