// Package timescale places times on an axis: periods in which nothing happens may be folded to a mark, and
// ticks fall on round times. The timelines of the terminal and of the page share it.
package timescale

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

const (
	// BreakCells is the length of a folded gap, in cells.
	BreakCells = 3
	// LeastCell is the shortest time of a cell, in nanoseconds.
	LeastCell = 1_000
	gapShare  = 6 // a gap that takes less than 1/gapShare of the axis is not folded
)

// Stretch is a period, relative to the begin of the axis.
type Stretch struct{ From, To time.Duration }

// Gap is a stretch that takes BreakCells instead of its time.
type Gap struct {
	Stretch
	before time.Duration // time hidden by earlier gaps
}

// Scale converts between times and cells.
type Scale struct {
	PerCell float64 // nanoseconds
	Total   time.Duration
	Gaps    []Gap
}

// Cell returns the position of a time, in cells from the start of the axis.
func (s Scale) Cell(at time.Duration) float64 {
	i := sort.Search(len(s.Gaps), func(i int) bool { return s.Gaps[i].From >= at }) // gaps that begin before it
	if i == 0 {
		return float64(at) / s.PerCell
	}
	g := s.Gaps[i-1]
	shown := float64(g.From-g.before)/s.PerCell + float64((i-1)*BreakCells)
	if at < g.To {
		return shown + BreakCells*float64(at-g.From)/float64(g.To-g.From)
	}
	return shown + BreakCells + float64(at-g.To)/s.PerCell
}

// At returns the time at a cell.
func (s Scale) At(cell float64) time.Duration {
	i := sort.Search(len(s.Gaps), func(i int) bool { return s.Cell(s.Gaps[i].From) >= cell })
	if i == 0 {
		return time.Duration(cell * s.PerCell)
	}
	g := s.Gaps[i-1]
	over := cell - s.Cell(g.From)
	if over < BreakCells {
		return g.From + time.Duration(over/BreakCells*float64(g.To-g.From))
	}
	return g.To + time.Duration((over-BreakCells)*s.PerCell)
}

// Cells returns the length of the axis in cells.
func (s Scale) Cells() float64 { return s.Cell(s.Total) }

// GapAt returns the folded gap that contains a time, edges excluded.
func (s Scale) GapAt(at time.Duration) (g Gap, ok bool) {
	i := sort.Search(len(s.Gaps), func(i int) bool { return s.Gaps[i].From >= at })
	if i == 0 || at >= s.Gaps[i-1].To {
		return Gap{}, false
	}
	return s.Gaps[i-1], true
}

// Quiet returns the periods that no stretch covers. The last one, after all of them, has no end.
func Quiet(busy []Stretch) []Stretch {
	slices.SortFunc(busy, func(a, b Stretch) int { return cmp.Compare(a.From, b.From) })
	var quiet []Stretch
	end := time.Duration(0)
	for _, b := range busy {
		if b.From > end {
			quiet = append(quiet, Stretch{end, b.From})
		}
		end = max(end, b.To)
	}
	if end < math.MaxInt64 {
		quiet = append(quiet, Stretch{end, math.MaxInt64})
	}
	return quiet
}

// Fit returns the time of a cell with which everything fits into an area, with a cell for the tip of the
// last bar.
func Fit(total time.Duration, gaps []Gap, area int) float64 {
	room := max(float64(area-len(gaps)*BreakCells), 1)
	return max(float64(total-hidden(gaps))/room, LeastCell)
}

// hidden returns how much time gaps hide.
func hidden(gaps []Gap) time.Duration {
	if len(gaps) == 0 {
		return 0
	}
	g := gaps[len(gaps)-1]
	return g.before + g.To - g.From
}

// Fold returns the quiet periods to fold: the longest ones, with at most a tenth of the cells of an area,
// and only those that take a good part of the whole axis. It returns none if nothing would be left.
func Fold(quiet []Stretch, total time.Duration, area int) []Gap {
	var list []Stretch
	for _, q := range quiet {
		if q.To = min(q.To, total); q.To > q.From {
			list = append(list, q)
		}
	}
	slices.SortStableFunc(list, func(a, b Stretch) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
	list = list[:min(len(list), max(area/10, 1))]
	least := float64(max(2*BreakCells, area/gapShare))
	for len(list) > 0 { // drop the shortest while folding it gains little
		shortest := list[len(list)-1]
		if float64(shortest.To-shortest.From)/Fit(total, chain(list), area) > least {
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
func chain(list []Stretch) []Gap {
	gaps := make([]Gap, len(list))
	for i, q := range list {
		gaps[i].Stretch = q
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
	before := time.Duration(0)
	for i := range gaps {
		gaps[i].before = before
		before += gaps[i].To - gaps[i].From
	}
	return gaps
}

// day is a day of the axis, which ignores the calendar.
const day = 24 * time.Hour

// tickSteps lists round steps above a second.
var tickSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// TickStep returns the smallest round step that is at least least: 1, 2 or 5 times a power of ten
// below a second and in days, and halves and quarters of common units in between.
func TickStep(least time.Duration) time.Duration {
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

// Rounded keeps the two largest units of a duration.
func Rounded(d time.Duration) time.Duration {
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

// TickLabel writes a duration in few characters: "0s", "1.5s", "2m30s", "3d12h".
func TickLabel(d time.Duration) string {
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
