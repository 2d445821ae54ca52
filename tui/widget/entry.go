package widget

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// longestLine limits how many bytes an entry of one line can hold.
const longestLine = 64 << 10

// entry is an editable text. tview's TextArea edits it; an entry adds the keys of a shell's line,
// a completion behind the cursor, and drawing in the looks of a theme. It is not tview's
// InputField, which hides the cursor's position that all three need.
type entry struct {
	area     *tview.TextArea
	lines    bool                       // may have several
	complete func(text string) []string // texts that begin with the typed one; may be nil
	width    int                        // at the last draw
	changed  bool                       // since the last key
}

func newEntry(lines bool) *entry {
	e := &entry{area: tview.NewTextArea().SetWrap(lines), lines: lines}
	if !lines {
		e.area.SetMaxLength(longestLine)
	}
	e.area.SetSelectedStyle(tcell.StyleDefault.Reverse(true)).SetChangedFunc(func() { e.changed = true })
	e.area.SetRect(0, 0, 80, jsonMost)
	e.area.Draw(&shield{}) // it knows no rows, and takes no keys, before it is drawn
	return e
}

// text returns the whole text.
func (e *entry) text() string { return e.area.GetText() }

// set replaces the text. The cursor of a line goes to its end, that of several to their begin.
func (e *entry) set(text string) {
	e.area.SetText(text, !e.lines)
}

// insert inserts text at the cursor. Control characters are dropped, because no key can type them.
// In a single line, line ends and tabs become blanks, and what is too long is cut off.
func (e *entry) insert(text string) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case e.lines && (r == '\n' || r == '\t'):
			return r
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
	if room := longestLine - 1 - e.area.GetTextLength(); !e.lines && len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:max(room, 0)]
	}
	e.area.PasteHandler()(text, func(tview.Primitive) {})
}

// elsewhere lists the keys of a single line that its owner handles; several lines take the arrows
// and enter themselves.
var elsewhere = map[string]bool{"esc": true, "tab": true, "shift-tab": true, "enter": true, "up": true, "down": true,
	"pgup": true, "pgdn": true}

// key handles a key, and reports whether the text changed.
func (e *entry) key(event *tcell.EventKey) (changed bool) {
	e.changed = false
	name := KeyName(event)
	switch {
	case name == "esc" || name == "tab" || name == "shift-tab" || !e.lines && elsewhere[name]:
		return false
	case name == "ctrl-b":
		event = tcell.NewEventKey(tcell.KeyLeft, 0, tcell.ModNone)
	case name == "ctrl-f":
		event = tcell.NewEventKey(tcell.KeyRight, 0, tcell.ModNone)
	case name == "ctrl-_": // ctrl-z suspends
		event = tcell.NewEventKey(tcell.KeyCtrlZ, 0, tcell.ModNone)
	case name == "ctrl-u" && !e.lines:
		_, _, at := e.area.GetSelection()
		e.area.Replace(0, at, "")
		return e.changed
	}
	e.area.InputHandler()(event, func(tview.Primitive) {})
	return e.changed
}

// ghost returns what the first completion adds to the text. It is empty if there is none, if nothing
// was typed, or if the cursor is not at the end.
func (e *entry) ghost() string {
	text := e.text()
	if e.complete == nil || text == "" {
		return ""
	}
	if _, _, at := e.area.GetSelection(); at < len(text) {
		return ""
	}
	for _, candidate := range e.complete(text) {
		if rest, ok := strings.CutPrefix(candidate, text); ok && rest != "" {
			return rest
		}
	}
	return ""
}

// accept inserts the completion; false if there is none.
func (e *entry) accept() bool {
	ghost := e.ghost()
	if ghost != "" {
		e.set(e.text() + ghost)
	}
	return ghost != ""
}

// draw draws the text into a canvas, scrolled to show the cursor if it has the focus, followed by
// the completion.
func (e *entry) draw(c Canvas, focused bool) {
	style := c.Theme.Role(theme.Field)
	if !focused && !e.lines {
		c.Clear(style)
		c.Cut(0, 0, c.W, e.text(), style)
		return
	}
	e.area.Blur()
	if focused {
		e.area.Focus(nil)
	}
	if c.W != e.width && !e.lines { // the TextArea scrolls to the cursor with the next key only
		_, column, _, _ := e.area.GetCursor()
		e.area.SetOffset(0, max(column-c.W+1, 0))
	}
	e.width = c.W
	c.put(e.area, style, style.Reverse(true), c.W)
	if ghost := e.ghost(); focused && ghost != "" {
		_, left := e.area.GetOffset()
		at := uniseg.StringWidth(render.Safe(e.text())) - left
		c.Part(at, 0, c.W, 1).Cut(0, 0, c.W-at, ghost, c.Theme.Role(theme.Ghost).Underline(true))
	}
}
