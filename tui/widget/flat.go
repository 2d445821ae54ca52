package widget

import (
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// longest is how many bytes of one piece of a line are shown. It bounds what drawing a line can cost.
const longest = 64 << 10

// shorten cuts off what is beyond some bytes, at a character's edge, and is how many bytes that were.
func shorten(s string, most int) (head string, more int) {
	if len(s) <= most {
		return s, 0
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most], len(s) - most
}

// textWidth is how many cells a text takes, counted up to most.
func textWidth(s string, most int) int {
	return min(uniseg.StringWidth(render.Safe(bounded(s, most))), most)
}

// styler is how a meaning looks in a place.
type styler func(render.Style) tcell.Style

// flat is a line as one harmless text, and where in it the look changes.
type flat struct {
	text string
	runs []run
}

// run is a piece of a flat up to end.
type run struct {
	end   int
	style render.Style
}

// hit is a piece of a text that was searched for.
type hit struct {
	from, to int
	current  bool
}

// draw writes text[from:to] at x, y, with the hits standing out, and is how many cells that took.
func (f flat) draw(c Canvas, x, y, from, to int, hits []hit, style styler) int {
	begin := x
	for _, r := range f.runs {
		for from < min(r.end, to) {
			end, look := min(r.end, to), style(r.style)
			for len(hits) > 0 && hits[0].to <= from {
				hits = hits[1:]
			}
			if len(hits) > 0 && hits[0].from < end {
				if hits[0].from > from {
					end = hits[0].from
				} else {
					end, look = min(end, hits[0].to), hitStyle(c.Theme, hits[0])
				}
			}
			x += c.Text(x, y, f.text[from:end], look)
			from = end
			if x >= c.W {
				return x - begin
			}
		}
	}
	return x - begin
}

func hitStyle(look *theme.Theme, h hit) tcell.Style {
	if h.current {
		return look.Role(theme.Selected).Bold(true)
	}
	return look.Role(theme.Marked).Underline(true)
}

// cut writes the text into w cells and ends it with an ellipsis where it is longer.
func (f flat) cut(c Canvas, x, y, w int, style styler) {
	w = min(w, c.W-x)
	if w <= 0 {
		return
	}
	if len(f.text) <= w || uniseg.StringWidth(bounded(f.text, w+1)) <= w {
		f.draw(c, x, y, 0, len(f.text), nil, style)
		return
	}
	n := f.draw(c.Part(x, y, w-1, 1), 0, 0, 0, len(f.text), nil, style)
	c.Text(x+n, y, c.Theme.Glyph(theme.Ellipsis), style(render.Dim))
}

// breaks are the places where rows of a text begin when a row has width cells: after a blank where
// there is one, else within a word. Rows after the first have hang cells less.
func breaks(text string, width, hang int) []int {
	room := max(width, 2)
	hang = min(max(hang, 0), room/2)
	starts := []int{0}
	cells, blank, blankCells := 0, -1, 0 // of this row; blank is the place behind its last one
	for pos := 0; pos < len(text); {
		size, w := clusterAt(text[pos:])
		isBlank := text[pos] == ' '
		if cells+w > room && !isBlank {
			start, used := pos, 0
			if blank > starts[len(starts)-1] {
				start, used = blank, cells-blankCells
			}
			if len(starts) == 1 {
				room -= hang
			}
			starts = append(starts, start)
			cells, blank = used, -1
			if cells+w > room { // the word began in the row before and is longer than this one
				starts = append(starts, pos)
				cells = 0
			}
		}
		cells += w
		pos += size
		if isBlank {
			blank, blankCells = pos, cells
		}
	}
	return starts
}

// clusterAt is the first character of a harmless text with its marks: how many bytes and how many cells.
func clusterAt(s string) (size, cells int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1, 1
	}
	cluster, _, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	return len(cluster), max(width, 1)
}

// row is the index of the row that a place in the text is in.
func rowAt(starts []int, place int) int {
	row := len(starts) - 1
	for row > 0 && starts[row] > place {
		row--
	}
	return row
}
