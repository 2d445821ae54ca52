package widget

// place is a row of a line.
type place struct{ line, row int }

// before says whether a place is above another.
func (p place) before(q place) bool { return p.line < q.line || p.line == q.line && p.row < q.row }

// flow is lines one below the other, each of one row or more.
type flow interface {
	rows(line int) int
	after(line int) (next int, ok bool)
	ahead(line int) (previous int, ok bool)
}

// step is the row some rows below a row, or above it, as far as there are any.
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

// below is the row below a row.
func below(f flow, at place) (next place, ok bool) {
	if at.row+1 < f.rows(at.line) {
		return place{at.line, at.row + 1}, true
	}
	line, ok := f.after(at.line)
	return place{line, 0}, ok
}

// layout is a line made ready to be drawn.
type layout struct {
	flat
	starts []int // where its rows begin
	hang   int   // cells that its rows after the first are indented
}

// keepLayouts is how many are remembered. They are those of the lines that were on the screen lately.
const keepLayouts = 256

// layouts remembers the layouts of lines by their numbers.
type layouts map[int]layout

// of is the layout of a line of rows of width cells; below one it has one row.
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

// layOut makes a line ready to be drawn in rows of width cells; below one it has one row.
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

// hang is how far the rows of a wrapped line after its first are indented when it does not say itself.
const hang = 2

// oneRow is a line that is not wrapped.
var oneRow = []int{0}

// span is the piece of the text that stands in a row.
func (l layout) span(row int) (from, to int) {
	if row+1 < len(l.starts) {
		return l.starts[row], l.starts[row+1]
	}
	return l.starts[row], len(l.text)
}
