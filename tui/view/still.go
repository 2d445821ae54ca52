package view

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// stillScreen hands on to a screen only the cells that are not as they were in the frame before. Every frame is drawn anew over blanks,
// and tcell counts a cell that was blank in between as changed: without this each frame would cost as much as the whole screen.
type stillScreen struct {
	tcell.Screen  // initialised already
	width, height int
	cells         []stillCell // of the frame that is being drawn, row by row
	shown         []stillCell // of the frame before
	whole         bool        // nothing of the frame before is there any more
	cursor        [2]int
	moved         bool // the cursor is not where it was
}

type stillCell struct {
	letter rune
	marks  string
	style  tcell.Style
}

func newStillScreen(screen tcell.Screen) *stillScreen {
	s := &stillScreen{Screen: screen, cursor: [2]int{-1, -1}}
	s.Clear()
	return s
}

// Init does nothing: tview would initialise the screen again, and swallow the error.
func (s *stillScreen) Init() error { return nil }

// Clear begins a frame.
func (s *stillScreen) Clear() {
	if w, h := s.Size(); w != s.width || h != s.height {
		s.width, s.height, s.whole = w, h, true
		s.cells, s.shown = make([]stillCell, w*h), make([]stillCell, w*h)
	}
	for i := range s.cells {
		s.cells[i] = stillCell{letter: ' '}
	}
}

// SetContent draws a cell of the frame.
func (s *stillScreen) SetContent(x, y int, letter rune, marks []rune, style tcell.Style) {
	if x >= 0 && x < s.width && y >= 0 && y < s.height {
		s.cells[y*s.width+x] = stillCell{letter, string(marks), style}
	}
}

// Get is a cell of the frame: its character with its marks, its look and how many cells it takes.
func (s *stillScreen) Get(x, y int) (text string, style tcell.Style, width int) {
	if x < 0 || x >= s.width || y < 0 || y >= s.height {
		return " ", tcell.StyleDefault, 1
	}
	c := s.cells[y*s.width+x]
	if c.letter <= '~' && c.marks == "" {
		return string(c.letter), c.style, 1
	}
	text = string(c.letter) + c.marks
	return text, c.style, max(uniseg.StringWidth(text), 1)
}

// ShowCursor puts the cursor somewhere; off the screen it is hidden.
func (s *stillScreen) ShowCursor(x, y int) {
	if at := [2]int{x, y}; at != s.cursor {
		s.cursor, s.moved = at, true
	}
	s.Screen.ShowCursor(x, y)
}

// HideCursor takes the cursor away.
func (s *stillScreen) HideCursor() { s.ShowCursor(-1, -1) }

// Show ends a frame. One that is as the one before writes nothing.
func (s *stillScreen) Show() {
	changed := s.whole || s.moved
	for i, c := range s.cells {
		if !s.whole && c == s.shown[i] {
			continue
		}
		s.Screen.SetContent(i%s.width, i/s.width, c.letter, []rune(c.marks), c.style)
		s.shown[i], changed = c, true
	}
	s.whole, s.moved = false, false
	if changed {
		s.Screen.Show()
	}
}

// Resume takes the terminal back after it was lent to another program, which has left nothing of the frame before.
func (s *stillScreen) Resume() error {
	s.whole = true
	return s.Screen.Resume()
}
