package widget

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Toggle folds or unfolds the object or array at the cursor.
func (d *Document) Toggle() {
	if len(d.tokens) == 0 {
		return
	}
	at := d.cursor
	if d.tokens[at].kind == closeToken {
		at = int(d.tokens[at].partner)
	}
	if d.tokens[at].opens() {
		d.cursor = at
		d.fold(at, !d.tokens[at].folded)
	}
}

func (d *Document) fold(at int, folded bool) {
	d.tokens[at].folded = folded
	delete(d.laid, at)
	d.top = place{d.shown(d.top.line), 0}
	d.reveal()
}

// out folds the row under the cursor, or moves to its parent.
func (d *Document) out() {
	if len(d.tokens) == 0 {
		return
	}
	t := &d.tokens[d.cursor]
	switch {
	case t.opens() && !t.folded:
		d.fold(d.cursor, true)
	case t.kind == closeToken:
		d.cursor = int(t.partner)
	case t.parent >= 0:
		d.cursor = int(t.parent)
	}
	d.reveal()
}

// in unfolds the row under the cursor, or moves to its first entry.
func (d *Document) in() {
	if len(d.tokens) == 0 || !d.tokens[d.cursor].opens() {
		return
	}
	if d.tokens[d.cursor].folded {
		d.fold(d.cursor, false)
		return
	}
	d.move(1)
}

// FoldAll folds everything except the outermost object or array.
func (d *Document) FoldAll() { d.foldAll(true) }

// UnfoldAll unfolds everything.
func (d *Document) UnfoldAll() { d.foldAll(false) }

func (d *Document) foldAll(folded bool) {
	if len(d.tokens) == 0 {
		return
	}
	for i := range d.tokens {
		if t := &d.tokens[i]; t.opens() {
			t.folded = folded && t.parent >= 0
		}
	}
	clear(d.laid)
	d.cursor = d.shown(d.cursor)
	d.top = place{d.shown(d.top.line), 0}
	d.reveal()
}

// shown returns the visible row of a token: its own, or the outermost folded one around it.
func (d *Document) shown(at int) int {
	if at >= len(d.tokens) {
		return at
	}
	shown := at
	if t := &d.tokens[at]; t.kind == closeToken && d.tokens[t.partner].folded {
		shown = int(t.partner)
	}
	for up := d.tokens[at].parent; up >= 0; up = d.tokens[up].parent {
		if d.tokens[up].folded {
			shown = int(up)
		}
	}
	return shown
}

// open unfolds everything around a token.
func (d *Document) open(at int) {
	for up := d.tokens[at].parent; up >= 0; up = d.tokens[up].parent {
		if d.tokens[up].folded {
			d.tokens[up].folded = false
			delete(d.laid, int(up))
		}
	}
	if t := &d.tokens[at]; t.kind == closeToken && d.tokens[t.partner].folded {
		d.tokens[t.partner].folded = false
		delete(d.laid, int(t.partner))
	}
}

// rows, after and ahead implement flow for the visible rows.
func (d *Document) rows(at int) int { return len(d.layout(at).starts) }

func (d *Document) after(at int) (int, bool) {
	next := at + 1
	if t := &d.tokens[at]; t.folded {
		next = int(t.partner) + 1
	}
	return next, next < len(d.tokens)
}

func (d *Document) ahead(at int) (int, bool) {
	if at == 0 {
		return 0, false
	}
	// The row before a visible row is visible too, unless it closes something folded.
	if t := &d.tokens[at-1]; t.kind == closeToken && d.tokens[t.partner].folded {
		return int(t.partner), true
	}
	return at - 1, true
}

// move moves by rows of the document; it scrolls within a row that is taller than the screen first.
func (d *Document) move(rows int) {
	if len(d.tokens) == 0 {
		return
	}
	for ; rows > 0; rows-- {
		last := place{d.cursor, d.rows(d.cursor) - 1}
		if step(d, d.top, max(d.height, 1)-1).before(last) {
			d.top = step(d, d.top, 1)
			continue
		}
		next, ok := d.after(d.cursor)
		if !ok {
			return
		}
		d.cursor = next
		d.reveal()
	}
	for ; rows < 0; rows++ {
		if d.top.line == d.cursor && d.top.row > 0 {
			d.top.row--
			continue
		}
		previous, ok := d.ahead(d.cursor)
		if !ok {
			return
		}
		d.cursor = previous
		if d.top.line >= previous {
			d.top = place{previous, max(d.rows(previous)-max(d.height, 1), 0)}
		}
	}
}

// page scrolls by rows, and the cursor with the screen.
func (d *Document) page(rows int) {
	if len(d.tokens) == 0 {
		return
	}
	was := d.top
	d.top = step(d, d.top, rows)
	d.settle()
	if d.top == was { // at an end: the cursor moves there
		d.cursor = step(d, place{d.cursor, 0}, rows).line
		return
	}
	last := step(d, d.top, max(d.height, 1)-1)
	d.cursor = min(max(d.cursor, d.top.line), last.line)
}

// settle leaves no empty space below the last row.
func (d *Document) settle() {
	end := d.shown(len(d.tokens) - 1)
	if most := step(d, place{end, d.rows(end) - 1}, 1-max(d.height, 1)); most.before(d.top) {
		d.top = most
	}
}

// reveal scrolls until the cursor's row is on the screen, whole if it fits. Within a row that does
// not fit, it does not scroll.
func (d *Document) reveal() {
	if len(d.tokens) == 0 || d.top.line == d.cursor && d.rows(d.cursor) > d.height {
		return
	}
	first := place{d.cursor, 0}
	if first.before(d.top) {
		d.top = first
		return
	}
	last := place{d.cursor, d.rows(d.cursor) - 1}
	least := step(d, last, 1-max(d.height, 1))
	if first.before(least) {
		least = first
	}
	if d.top.before(least) {
		d.top = least
	}
}

// CopyPath returns the path of the cursor's row: "$.order.items[3].sku". For other data it is "line
// 12" or the offset of the bytes.
func (d *Document) CopyPath() string {
	if len(d.tokens) == 0 {
		return ""
	}
	return d.path(0)
}

// CopyValue returns the value at the cursor: the content of a string, or an object or array as JSON
// as it was sent.
func (d *Document) CopyValue() string {
	if len(d.tokens) == 0 {
		return ""
	}
	t := &d.tokens[d.cursor]
	if t.kind == closeToken {
		t = &d.tokens[t.partner]
	}
	switch {
	case t.kind == stringToken:
		var s string
		if json.Unmarshal(d.data[t.from:t.to], &s) == nil {
			return s
		}
	case t.opens():
		end := &d.tokens[t.partner]
		if end.kind == cutToken { // the rest is not loaded
			return string(d.data[t.from:d.endOf(int(t.from))])
		}
		return string(d.data[t.from:end.to])
	case t.kind == cutToken:
		return ""
	}
	return string(d.data[t.from:t.to])
}

// endOf returns the position after the JSON value that starts at from.
func (d *Document) endOf(from int) int {
	depth := 0
	for pos := from; pos < len(d.data); pos++ {
		switch d.data[pos] {
		case '"':
			pos = stringEnd(d.data, pos) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
	}
	return len(d.data)
}

// path returns the path of the cursor's row. If cells is not 0 and the path is clearly longer, it
// returns only the end.
func (d *Document) path(cells int) string {
	t := &d.tokens[d.cursor]
	switch t.kind {
	case textToken:
		return fmt.Sprintf("line %d", d.cursor+1)
	case bytesToken:
		return fmt.Sprintf("byte 0x%x", t.from)
	case closeToken:
		t = &d.tokens[t.partner]
	}
	var parts []string
	for length := 0; t.parent >= 0; t = &d.tokens[t.parent] {
		part := d.part(t)
		parts = append(parts, part)
		if length += len(part); cells > 0 && length > cells {
			parts = append(parts, "...")
			break
		}
	}
	if len(parts) == 0 || parts[len(parts)-1] != "..." {
		parts = append(parts, "$")
	}
	slices.Reverse(parts)
	for cells > 0 && len(parts) > 2 && parts[0] == "..." && len(strings.Join(parts, "")) > cells {
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, "")
}

// simpleKey matches keys that need no quotes in a path.
var simpleKey = regexp.MustCompile(`^"[A-Za-z_][A-Za-z0-9_]*"$`)

// part returns what a token adds to the path of its parent.
func (d *Document) part(t *token) string {
	if t.keyTo == t.keyFrom {
		return fmt.Sprintf("[%d]", t.index)
	}
	key := d.data[t.keyFrom:t.keyTo]
	if simpleKey.Match(key) {
		return "." + string(key[1:len(key)-1])
	}
	return "[" + string(key) + "]"
}
