package widget

import (
	"sort"

	"github.com/rivo/uniseg"
)

// Search marks every place that holds the text, shows the first from the top of the screen on, and is how many there are. Upper and lower
// case are the same unless the text has upper case. An empty text ends the search.
func (l *Lines) Search(text string) int {
	l.find, l.found = newFinder(text), 0
	l.research()
	if len(l.hits) == 0 {
		return 0
	}
	first := sort.Search(len(l.hits), func(i int) bool { return l.hits[i].line >= l.top.line })
	l.show(first % len(l.hits))
	return len(l.hits)
}

// Found is which hit is the current one, from 1, and how many there are.
func (l *Lines) Found() (current, of int) {
	if len(l.hits) == 0 {
		return 0, 0
	}
	return l.found + 1, len(l.hits)
}

// Next shows the next place that holds the text that was searched for, after the last the first.
func (l *Lines) Next() { l.show(around(l.found, 1, len(l.hits))) }

// Prev shows the one before.
func (l *Lines) Prev() { l.show(around(l.found, -1, len(l.hits))) }

// research searches all lines again.
func (l *Lines) research() {
	l.hits = nil
	l.searchFrom(0)
	l.found = max(min(l.found, len(l.hits)-1), 0)
}

// searchFrom searches the lines from one on.
func (l *Lines) searchFrom(line int) {
	if l.find == nil {
		return
	}
	for i := line; i < len(l.lines); i++ {
		for _, at := range l.find.all(l.lines[i].Text()) {
			l.hits = append(l.hits, lineHit{i, at.from, at.to})
		}
	}
}

// show makes a hit the current one and scrolls to it when it is not on the screen.
func (l *Lines) show(i int) {
	if i >= len(l.hits) {
		return
	}
	l.found, l.follow = i, false
	h := l.hits[i]
	if !l.wrap {
		l.reveal(h)
	}
	row := place{h.line, rowAt(l.layout(h.line).starts, h.from)}
	if row.before(l.top) || step(l, l.top, max(l.height, 1)-1).before(row) {
		l.top = step(l, row, -max(l.height, 1)/3)
		l.settle()
	}
}

// reveal scrolls sideways to a hit that is not between the edges.
func (l *Lines) reveal(h lineHit) {
	text := l.lines[h.line].Text()
	from := uniseg.StringWidth(text[:h.from])
	if to := from + uniseg.StringWidth(text[h.from:h.to]); from < l.left || to > l.left+l.width {
		l.left = max(from-l.width/3, 0)
	}
}
