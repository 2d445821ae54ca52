// Package terminal opens the terminal, writes only the cells that a frame changed, wakes the event
// loop when other goroutines post to it, and suspends the program.
package terminal

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"
)

// The program keeps the terminal's background and draws its own frames. A terminal with a character
// set that tcell does not know, such as ISO-8859-1, gets ASCII instead of an error.
func init() {
	tcell.SetEncodingFallback(tcell.EncodingFallbackASCII)
	d := tcell.ColorDefault
	tview.Styles = tview.Theme{
		PrimitiveBackgroundColor: d, ContrastBackgroundColor: d, MoreContrastBackgroundColor: d, BorderColor: d,
		TitleColor: d, GraphicsColor: d,
		PrimaryTextColor: d, SecondaryTextColor: d, TertiaryTextColor: d, InverseTextColor: d,
		ContrastSecondaryTextColor: d,
	}
}

// errNoTerminal says what to use without a terminal.
var errNoTerminal = errors.New("kagzi tui needs a terminal; try: kagzi workflow list")

// Open returns the screen of this process, initialised.
func Open(lookup func(string) (string, bool)) (tcell.Screen, error) {
	if name, _ := lookup("TERM"); name == "dumb" {
		return nil, errNoTerminal
	}
	screen, err := tcell.NewScreen()
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoTerminal, err)
	}
	if err := screen.Init(); err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoTerminal, err)
	}
	return screen, nil
}

// Screen writes only the cells that differ from the previous frame. Every frame starts from blanks,
// and tcell counts a cell that was blanked and drawn again as changed: without Screen each frame
// would write the whole screen.
type Screen struct {
	tcell.Screen  // initialised
	width, height int
	cells         []stillCell // of the current frame, row by row
	shown         []stillCell // of the previous frame
	whole         bool        // write all cells: the terminal lost the previous frame
	cursor        [2]int      // of the current frame; off the screen: hidden
	had           [2]int      // of the previous frame
}

type stillCell struct {
	letter rune
	marks  string
	style  tcell.Style
}

var hidden = [2]int{-1, -1}

// NewScreen wraps an initialised screen.
func NewScreen(screen tcell.Screen) *Screen {
	s := &Screen{Screen: screen, cursor: hidden, had: hidden}
	s.Clear()
	return s
}

// Init does nothing: tview would initialise the screen again and ignore the error.
func (s *Screen) Init() error { return nil }

// Clear starts a frame.
func (s *Screen) Clear() {
	if w, h := s.Size(); w != s.width || h != s.height {
		s.width, s.height, s.whole = w, h, true
		s.cells, s.shown = make([]stillCell, w*h), make([]stillCell, w*h)
	}
	for i := range s.cells {
		s.cells[i] = stillCell{letter: ' '}
	}
}

// SetContent draws a cell of the frame.
func (s *Screen) SetContent(x, y int, letter rune, marks []rune, style tcell.Style) {
	if x >= 0 && x < s.width && y >= 0 && y < s.height {
		s.cells[y*s.width+x] = stillCell{letter, string(marks), style}
	}
}

// Get returns a cell of the frame: its character with combining marks, its style and its width.
func (s *Screen) Get(x, y int) (text string, style tcell.Style, width int) {
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

// ShowCursor moves the cursor; a position off the screen hides it.
func (s *Screen) ShowCursor(x, y int) { s.cursor = [2]int{x, y} }

// HideCursor hides the cursor.
func (s *Screen) HideCursor() { s.cursor = hidden }

// Show ends a frame. An unchanged frame writes nothing.
func (s *Screen) Show() {
	changed := s.whole || s.cursor != s.had
	s.Screen.ShowCursor(s.cursor[0], s.cursor[1])
	for i, c := range s.cells {
		if !s.whole && c == s.shown[i] {
			continue
		}
		s.Screen.SetContent(i%s.width, i/s.width, c.letter, []rune(c.marks), c.style)
		s.shown[i], changed = c, true
	}
	s.whole, s.had = false, s.cursor
	if changed {
		s.Screen.Show()
	}
}

// Resume takes the terminal back from another program. The previous frame is lost then.
func (s *Screen) Resume() error {
	s.whole = true
	return s.Screen.Resume()
}

// FrameEvery is the least time between two frames without a key press: 15 a second.
const FrameEvery = time.Second / 15

// WakeKey is a key that no keyboard has. Queueing it makes the event loop run posted functions and
// draw a frame, without waiting. QueueUpdateDraw waits, and hangs forever if the loop has ended
// meanwhile (tview #1163).
const WakeKey = tcell.KeyF64

// Posts holds functions that other goroutines want the UI goroutine to run. All functions posted
// within a frame run before it is drawn.
type Posts struct {
	mu    sync.Mutex
	list  []func()
	woken time.Time     // when the loop was last woken without having run
	Kick  chan struct{} // capacity one
}

// NewPosts returns an empty list.
func NewPosts() *Posts { return &Posts{Kick: make(chan struct{}, 1)} }

// Add never blocks and may be called from any goroutine. After the program has ended it does
// nothing.
func (p *Posts) Add(f func()) {
	p.mu.Lock()
	p.list = append(p.list, f)
	p.mu.Unlock()
	select {
	case p.Kick <- struct{}{}:
	default:
	}
}

// Run runs the posted functions in order, on the UI goroutine.
func (p *Posts) Run() {
	p.mu.Lock()
	list := p.list
	p.list, p.woken = nil, time.Time{}
	p.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// wakeAgain is how long a wake-up may take before it counts as lost: the loop drops keys while text
// is pasted.
const wakeAgain = time.Second

// Pump wakes the loop after posts, at most once a frame, until stop is closed. It does not wake a
// blocked loop twice, such as while an editor runs.
func (p *Posts) Pump(stop <-chan struct{}, every time.Duration, wake func()) {
	pause := time.NewTimer(every)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-p.Kick:
		}
		p.mu.Lock()
		now := time.Now()
		due := len(p.list) > 0 && now.Sub(p.woken) > wakeAgain
		if due {
			p.woken = now
		}
		p.mu.Unlock()
		if due {
			wake()
		}
		pause.Reset(every)
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		p.rekick()
	}
}

// Waiting reports whether posted functions have not run yet.
func (p *Posts) Waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list) > 0
}

// rekick checks waiting posts again, so that a lost wake-up is repeated.
func (p *Posts) rekick() {
	if !p.Waiting() {
		return
	}
	select {
	case p.Kick <- struct{}{}:
	default:
	}
}
