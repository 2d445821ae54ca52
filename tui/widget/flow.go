package widget

// place is a row of a line.
type place struct{ line, row int }

// before reports whether p is above q.
func (p place) before(q place) bool { return p.line < q.line || p.line == q.line && p.row < q.row }

// flow is a list of lines, each of one row or more.
type flow interface {
	rows(line int) int
	after(line int) (next int, ok bool)
	ahead(line int) (previous int, ok bool)
}

// step returns the row some rows below or above a row, limited by the ends.
func step(f flow, at place, rows int) place {
	for ; rows > 0; rows-- {
		next, ok := below(f, at)
		if !ok {
			break
		}
		at = next
	}
	for ; rows < 0; rows++ {
		if at.row > 0 {
			at.row--
			continue
		}
		line, ok := f.ahead(at.line)
		if !ok {
			break
		}
		at = place{line, f.rows(line) - 1}
	}
	return at
}

// below returns the row below a row.
func below(f flow, at place) (next place, ok bool) {
	if at.row+1 < f.rows(at.line) {
		return place{at.line, at.row + 1}, true
	}
	line, ok := f.after(at.line)
	return place{line, 0}, ok
}

// layout is a line prepared for drawing.
type layout struct {
	flat
	starts []int // start of each row
	hang   int   // indent in cells of the rows after the first
}

// keepLayouts limits the cache of layouts, which holds recently visible lines.
const keepLayouts = 256

// layouts caches layouts by line number.
type layouts map[int]layout

// of returns the layout of a line at a width; below 1 it has one row.
func (l layouts) of(number int, line func() Line, width int) layout {
	if laid, ok := l[number]; ok {
		return laid
	}
	if len(l) >= keepLayouts {
		clear(l)
	}
	laid := layOut(line(), width)
	l[number] = laid
	return laid
}

// layOut prepares a line for a width; below 1 it has one row.
func layOut(line Line, width int) layout {
	laid := layout{flat: line.flatten(), starts: oneRow, hang: hang}
	if line.Hang > 0 && line.Hang <= width/2 {
		laid.hang = line.Hang
	}
	if width > 0 {
		laid.starts = breaks(laid.text, width, laid.hang)
	}
	return laid
}

// hang is the default indent of a wrapped line's rows after the first.
const hang = 2

// oneRow is the layout of an unwrapped line.
var oneRow = []int{0}

// span returns the range of the text in a row.
func (l layout) span(row int) (from, to int) {
	if row+1 < len(l.starts) {
		return l.starts[row], l.starts[row+1]
	}
	return l.starts[row], len(l.text)
}
