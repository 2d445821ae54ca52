package widget

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kagzi/kagzi/tui/theme"
)

// tickCells is how far ticks are apart at least, so that their labels do not touch.
const tickCells = 10

// day is a day of the axis, which knows no calendar.
const day = 24 * time.Hour

// axis draws the times above the bars, counted from the begin.
type axis struct {
	Canvas
	scale scale
	left  float64
	taken []bool // cells that are written
}

func newAxis(c Canvas, s scale, left float64) *axis {
	return &axis{Canvas: c, scale: s, left: left, taken: make([]bool, c.W)}
}

// draw marks the gaps, then says what time it is after each, then puts ticks where there is room.
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
		if g, ok := a.scale.gapAt(at); ok { // there may be very many in a gap
			at = (g.to - 1) / step * step
			continue
		}
		a.tick(at, tickLabel(at))
	}
}

// tick writes a label beside its mark, unless something is there already.
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

// tickSteps are those that people count in above a second.
var tickSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// tickStep is the smallest nice step that is not below least: 1, 2 or 5 times a power of ten below a second and of days, halves and
// quarters that people know in between.
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

// tickLabel is a duration in the fewest characters: "0s", "1.5s", "2m30s", "3d12h".
func tickLabel(d time.Duration) string {
	if d < time.Minute {
		return strings.ReplaceAll(d.String(), "µ", "u") // one byte a cell
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
