package widget

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// longestInput limits how many bytes a line of input can hold.
const longestInput = 64 << 10

// input is an editable line of text. The cursor is always before a whole character with its marks.
type input struct {
	text   string
	cursor int // byte offset
}

// set replaces the text and moves the cursor to its end.
func (e *input) set(text string) { e.text, e.cursor = text, len(text) }

// rest returns what the first completion adds to the text. It is empty if there is none, if
// complete is nil, or if the cursor is not at the end.
func (e *input) rest(complete func(text string) []string) string {
	if complete == nil || e.cursor < len(e.text) {
		return ""
	}
	for _, candidate := range complete(e.text) {
		if rest, ok := strings.CutPrefix(candidate, e.text); ok && rest != "" {
			return rest
		}
	}
	return ""
}

// insert inserts text at the cursor. Line ends and tabs become blanks; other control characters are
// dropped, because no key can type them.
func (e *input) insert(text string) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
	if room := longestInput - len(e.text); len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:max(room, 0)]
	}
	e.text = e.text[:e.cursor] + text + e.text[e.cursor:]
	e.cursor += len(text)
}

// key handles a key; changed reports whether the text changed, ok whether the key has a meaning.
func (e *input) key(event *tcell.EventKey) (changed, ok bool) {
	if event.Key() == tcell.KeyRune && event.Modifiers()&(tcell.ModAlt|tcell.ModCtrl) == 0 {
		e.insert(string(event.Rune()))
		return true, true
	}
	was := e.text
	switch KeyName(event) {
	case "left", "ctrl-b":
		e.cursor = e.previous()
	case "right", "ctrl-f":
		e.cursor = e.next()
	case "home", "ctrl-a":
		e.cursor = 0
	case "end", "ctrl-e":
		e.cursor = len(e.text)
	case "alt-b":
		e.cursor = e.wordBegin()
	case "backspace":
		e.erase(e.previous(), e.cursor)
	case "delete", "ctrl-d":
		e.erase(e.cursor, e.next())
	case "ctrl-u":
		e.erase(0, e.cursor)
	case "ctrl-k":
		e.erase(e.cursor, len(e.text))
	case "ctrl-w", "alt-backspace":
		e.erase(e.wordBegin(), e.cursor)
	default:
		return false, false
	}
	return e.text != was, true
}

func (e *input) erase(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.cursor = from
}

func (e *input) next() int {
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(e.text[e.cursor:], -1)
	return e.cursor + len(cluster)
}

func (e *input) previous() int {
	at := 0
	for state, rest := -1, e.text[:e.cursor]; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		at = e.cursor - len(rest) - len(cluster)
	}
	return at
}

func (e *input) wordBegin() int {
	before := strings.TrimRight(e.text[:e.cursor], " ")
	return strings.LastIndexByte(before, ' ') + 1
}

// draw draws the text into w cells from x on, scrolled to show the cursor, followed by ghost, the
// proposed completion.
func (e *input) draw(c Canvas, x, w int, ghost string, focused bool) {
	c = c.Part(x, 0, w, 1)
	style := c.Theme.Role(theme.Field)
	c.Clear(style)
	if !focused {
		c.Cut(0, 0, c.W, e.text, style)
		return
	}
	under, rest := " ", ""
	if e.cursor < len(e.text) {
		under, rest = e.text[e.cursor:e.next()], e.text[e.next():]
	} else if ghost != "" {
		cluster, after, _, _ := uniseg.FirstGraphemeClusterInString(ghost, -1)
		under, ghost = cluster, after
	}
	n := c.Text(0, 0, e.tail(c.W-uniseg.StringWidth(render.Safe(under))), style)
	n += c.Text(n, 0, under, style.Reverse(true))
	if rest != "" {
		c.Cut(n, 0, c.W-n, rest, style)
		return
	}
	c.Cut(n, 0, c.W-n, ghost, c.Theme.Role(theme.Ghost).Underline(true))
}

// tail returns as much of the text before the cursor as fits.
func (e *input) tail(cells int) string {
	cells = max(cells, 0)
	from := max(e.cursor-cells*maxBytesPerCell, 0)
	for from < e.cursor && !utf8.RuneStart(e.text[from]) {
		from++
	}
	text := render.Safe(e.text[from:e.cursor])
	for over := uniseg.StringWidth(text) - cells; over > 0 && text != ""; {
		size, width := clusterAt(text)
		text, over = text[size:], over-width
	}
	return text
}
