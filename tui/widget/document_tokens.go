package widget

import "bytes"

// tokenKind says what a row of a document shows.
type tokenKind uint8

const (
	textToken   tokenKind = iota // a line of text
	bytesToken                   // bytes of binary data
	stringToken                  // a JSON value
	numberToken
	literalToken // true, false, null
	objectToken  // the opening bracket
	arrayToken
	emptyToken // an empty object or array
	closeToken // the closing bracket
	cutToken   // the end of the head of the data
)

// token is a row of a document. It holds the position of its text in the data, so that the data is
// shown as it was sent: order and repetition of keys, digits of numbers, escapes of strings.
type token struct {
	keyFrom, keyTo int32 // the key with its quotes; equal if there is none
	from, to       int32 // the value or bracket
	partner        int32 // row of the matching bracket
	parent         int32 // row of the enclosing object or array; -1: none
	index          int32 // position in parent
	count          int32 // entries of an object or array
	depth          int32
	kind           tokenKind
	comma          bool
	folded         bool
}

// opens reports whether the token contains rows.
func (t *token) opens() bool { return t.kind == objectToken || t.kind == arrayToken }

// start returns where the token's text begins.
func (t *token) start() int32 {
	if t.keyTo > t.keyFrom {
		return t.keyFrom
	}
	return t.from
}

// indexer makes the tokens of valid JSON.
type indexer struct {
	data   []byte
	tokens []token
	open   int32 // the innermost open object or array; -1: none
	key    [2]int32
}

// indexJSON makes the tokens of valid JSON, up to about limit bytes; whole reports whether that was
// all. It makes one pass, and the tokens are its only stack, so deep nesting costs nothing.
func indexJSON(data []byte, limit int) (tokens []token, whole bool) {
	x := indexer{data: data, open: -1, tokens: make([]token, 0, min(len(data), limit)/16+1)}
	for pos := 0; pos < len(data); {
		if pos >= limit && x.key[1] == 0 {
			if rest := bytes.TrimRight(data[pos:], " \t\r\n"); len(rest) > 0 {
				x.cut(pos)
				return x.tokens, false
			}
		}
		pos = x.step(pos)
	}
	return x.tokens, true
}

// step processes the text at pos and returns the position after it.
func (x *indexer) step(pos int) int {
	switch c := x.data[pos]; c {
	case ' ', '\t', '\r', '\n', ':':
		return pos + 1
	case ',':
		x.tokens[len(x.tokens)-1].comma = true
		return pos + 1
	case '"':
		end := stringEnd(x.data, pos)
		if x.open >= 0 && x.tokens[x.open].kind == objectToken && x.key[1] == 0 {
			x.key = [2]int32{int32(pos), int32(end)}
			return end
		}
		x.add(stringToken, pos, end)
		return end
	case '{', '[':
		kind := objectToken
		if c == '[' {
			kind = arrayToken
		}
		x.add(kind, pos, pos+1)
		x.open = int32(len(x.tokens) - 1)
		return pos + 1
	case '}', ']':
		x.close(pos)
		return pos + 1
	default:
		end := pos
		for end < len(x.data) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(x.data[end])) {
			end++
		}
		kind := numberToken
		if c == 't' || c == 'f' || c == 'n' {
			kind = literalToken
		}
		x.add(kind, pos, end)
		return end
	}
}

func (x *indexer) add(kind tokenKind, from, to int) {
	t := token{from: int32(from), to: int32(to), keyFrom: x.key[0], keyTo: x.key[1], partner: -1, parent: x.open,
		kind: kind}
	if x.open >= 0 {
		in := &x.tokens[x.open]
		t.index, t.depth = in.count, in.depth+1
		in.count++
	}
	x.key = [2]int32{}
	x.tokens = append(x.tokens, t)
}

func (x *indexer) close(pos int) {
	in := &x.tokens[x.open]
	up := in.parent
	if in.count == 0 {
		in.kind, in.to = emptyToken, int32(pos+1)
		x.open = up
		return
	}
	in.partner = int32(len(x.tokens))
	x.tokens = append(x.tokens, token{from: int32(pos), to: int32(pos + 1), partner: x.open, parent: up,
		index: in.index, depth: in.depth, kind: closeToken})
	x.open = up
}

// cut closes everything open with a row that marks the end of the head.
func (x *indexer) cut(pos int) {
	row := int32(len(x.tokens))
	for in := x.open; in >= 0; in = x.tokens[in].parent {
		x.tokens[in].partner = row
	}
	x.add(cutToken, pos, pos)
}

// stringEnd returns the position after the string that starts at pos.
func stringEnd(data []byte, pos int) int {
	for i := pos + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// indexText makes one token per line.
func indexText(data []byte) []token {
	var tokens []token
	for from := 0; from < len(data); {
		end, next := len(data), len(data)
		if i := bytes.IndexByte(data[from:], '\n'); i >= 0 {
			end, next = from+i, from+i+1
		}
		if end > from && data[end-1] == '\r' {
			end--
		}
		tokens = append(tokens, token{from: int32(from), to: int32(end), partner: -1, parent: -1,
			index: int32(len(tokens)), kind: textToken})
		from = next
	}
	return tokens
}

// dumpBytes is the number of bytes in a row of a dump.
const dumpBytes = 16

// indexBytes makes one token per row of a dump.
func indexBytes(data []byte) []token {
	tokens := make([]token, 0, len(data)/dumpBytes+1)
	for from := 0; from < len(data); from += dumpBytes {
		end := min(from+dumpBytes, len(data))
		tokens = append(tokens, token{from: int32(from), to: int32(end), partner: -1, parent: -1,
			index: int32(len(tokens)), kind: bytesToken})
	}
	return tokens
}
