package widget

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// CopyPath is the path of the cursor's row: "$.order.items[3].sku"; of data that is no JSON, "line 12" or the place of the bytes.
func (d *Document) CopyPath() string {
	if len(d.tokens) == 0 {
		return ""
	}
	return d.path(0)
}

// CopyValue is the value at the cursor: of a string what it says, of an object or array its JSON as it was sent.
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
		if end.kind == cutToken { // the rest has not been loaded
			return string(d.data[t.from:d.endOf(int(t.from))])
		}
		return string(d.data[t.from:end.to])
	case t.kind == cutToken:
		return ""
	}
	return string(d.data[t.from:t.to])
}

// endOf is the place behind the JSON value that begins at one.
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

// path is the path of the cursor's row; when cells is not 0, its end alone when it is clearly longer than that.
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

// simpleKey is a key that needs no quotes in a path.
var simpleKey = regexp.MustCompile(`^"[A-Za-z_][A-Za-z0-9_]*"$`)

// part is what a token adds to the path of what it is in.
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
