package widget

import (
	"math"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/theme"
)

// Spark draws values as columns, newest at the right edge, scaled to the largest. If there are more
// values than cells, a column shows the largest of several, so that no spike is lost. Negative
// values and NaN count as zero. tview has no charts.
func Spark(c Canvas, values []float64, style tcell.Style) {
	if c.W <= 0 || c.H <= 0 {
		return
	}
	columns := gather(values, c.W)
	most := 0.0
	for _, v := range columns {
		most = max(most, v)
	}
	levels := c.Theme.Levels()
	x := c.W - len(columns)
	for i, v := range columns {
		if v == 0 {
			c.Text(x+i, c.H-1, levels[0], c.Theme.Role(theme.Faint))
			continue
		}
		height := max(int(math.Round(v/most*float64(c.H*len(levels)))), 1) // in levels
		for y := c.H - 1; y >= 0 && height > 0; y-- {
			c.Text(x+i, y, levels[min(height, len(levels))-1], style)
			height -= len(levels)
		}
	}
}

// gather groups values into at most n columns.
func gather(values []float64, n int) []float64 {
	per := max((len(values)+n-1)/n, 1)
	columns := make([]float64, (len(values)+per-1)/per)
	for i, v := range values {
		if !(v > 0) || math.IsInf(v, 1) {
			continue
		}
		back := (len(values) - 1 - i) / per // counted from the newest, so that full columns are on the right
		at := len(columns) - 1 - back
		columns[at] = max(columns[at], v)
	}
	return columns
}

// Share is a part of a SplitBar.
type Share struct {
	Value float64
	Style tcell.Style
}

// SplitBar fills the first row of a canvas with values that add up, one after the other in their
// styles, to an eighth of a cell of sum/most; the rest is drawn as empty. All but the last end at a
// whole cell; each positive one gets at least a part of a cell while there is space. If most is not
// positive, the bar is empty. tview has no bars.
func SplitBar(c Canvas, parts []Share, most float64) {
	c.Fill(0, 0, c.W, c.Theme.Glyph(theme.Empty), c.Theme.Role(theme.Faint))
	eighths := c.Theme.Eighths()
	n := len(eighths)
	x, sum := 0, 0.0
	for i, p := range parts {
		if !(p.Value > 0) || !(most > 0) {
			continue
		}
		sum += p.Value
		end := min(int(math.Round(min(sum/most, 1)*float64(c.W*n))), c.W*n) // in eighths
		if i < len(parts)-1 {
			end = (end + n/2) / n * n
		}
		if end <= x*n {
			end = x*n + 1
			if i < len(parts)-1 {
				end = (x + 1) * n
			}
		}
		for ; x < min(end/n, c.W); x++ {
			c.Text(x, 0, eighths[n-1], p.Style)
		}
		if rest := end - x*n; rest > 0 && x < c.W {
			c.Text(x, 0, eighths[min(rest, n)-1], p.Style)
			x++
		}
	}
}
