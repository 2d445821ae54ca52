package widget

import (
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// longest limits how many bytes of one piece of a line are shown. It limits the cost of drawing a
// line.
const longest = 64 << 10

// shorten cuts a text after most bytes, at a character boundary, and returns the number of bytes
// cut.
func shorten(s string, most int) (head string, more int) {
	if len(s) <= most {
		return s, 0
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most], len(s) - most
}

// textWidth returns how many cells a text takes, counted up to most.
func textWidth(s string, most int) int {
	return min(uniseg.StringWidth(render.Safe(bounded(s, most))), most)
}

// styler returns the style of a meaning in one place.
type styler func(render.Style) tcell.Style

// flat is a line as one safe text, with the ranges of its styles.
type flat struct {
	text string
	runs []run
}

// run is a range of a flat up to end.
type run struct {
	end   int
	style render.Style
}

// hit is a range of a text that matches a search.
type hit struct {
	from, to int
	current  bool
}

// draw writes text[from:to] at x, y with highlighted hits, and returns the number of cells.
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

// cut writes the text into w cells, with an ellipsis if it is longer.
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

// breaks returns where the rows of a text begin at a width: after a blank if possible, or else
// within a word. Rows after the first are hang cells shorter. In tview's WordWrap all rows are as
// long, and one after a full row begins with the blank.
func breaks(text string, width, hang int) []int {
	room := max(width, 2)
	hang = min(max(hang, 0), room/2)
	starts := []int{0}
	cells, blank, blankCells := 0, -1, 0 // of this row; blank is the position after its last blank
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
			if cells+w > room { // the word began in the previous row and is longer than this one
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

// clusterAt returns the size in bytes and cells of the first character of a safe text, with its
// marks.
func clusterAt(s string) (size, cells int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1, 1
	}
	cluster, _, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	return len(cluster), max(width, 1)
}

// rowAt returns the row of a position in the text.
func rowAt(starts []int, place int) int {
	row := len(starts) - 1
	for row > 0 && starts[row] > place {
		row--
	}
	return row
}
