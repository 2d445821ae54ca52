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

// The program has the terminal's own background, and draws its frames itself.
func init() {
	d := tcell.ColorDefault
	tview.Styles = tview.Theme{
		PrimitiveBackgroundColor: d, ContrastBackgroundColor: d, MoreContrastBackgroundColor: d, BorderColor: d,
		TitleColor: d, GraphicsColor: d,
		PrimaryTextColor: d, SecondaryTextColor: d, TertiaryTextColor: d, InverseTextColor: d,
		ContrastSecondaryTextColor: d,
	}
}

// errNoTerminal says what to do without one.
var errNoTerminal = errors.New("kagzi tui needs a terminal; try: kagzi workflow list")

// Open returns the screen of this process, ready to be drawn on.
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

// Screen writes to a screen only the cells that differ from the frame before. Every frame is drawn
// again over blanks, and tcell counts a cell that was blank in between as changed: without this
// each frame would cost as much as the whole screen.
type Screen struct {
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

// NewScreen returns a screen over one that is initialised already.
func NewScreen(screen tcell.Screen) *Screen {
	s := &Screen{Screen: screen, cursor: [2]int{-1, -1}}
	s.Clear()
	return s
}

// Init does nothing: tview would initialise the screen again, and swallow the error.
func (s *Screen) Init() error { return nil }

// Clear begins a frame.
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

// Get returns a cell of the frame: its character with its marks, its look and how many cells it takes.
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

// ShowCursor puts the cursor somewhere; off the screen it is hidden.
func (s *Screen) ShowCursor(x, y int) {
	if at := [2]int{x, y}; at != s.cursor {
		s.cursor, s.moved = at, true
	}
	s.Screen.ShowCursor(x, y)
}

// HideCursor takes the cursor away.
func (s *Screen) HideCursor() { s.ShowCursor(-1, -1) }

// Show ends a frame. One that is as the one before writes nothing.
func (s *Screen) Show() {
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
func (s *Screen) Resume() error {
	s.whole = true
	return s.Screen.Resume()
}

// FrameEvery is the least time between two frames that nobody pressed a key for: 15 a second.
const FrameEvery = time.Second / 15

// WakeKey is a key that no keyboard has. Queueing it makes the event loop run what was posted and
// draw a frame, without waiting for it: QueueUpdateDraw waits, which hangs for good when the loop
// has ended meanwhile (tview #1163).
const WakeKey = tcell.KeyF64

// Posts holds what other goroutines want the UI goroutine to do. Whatever comes within a frame is
// done together before it is drawn.
type Posts struct {
	mu    sync.Mutex
	list  []func()
	woken time.Time     // when the loop was last woken and has not run yet
	Kick  chan struct{} // of capacity one
}

// NewPosts returns an empty list.
func NewPosts() *Posts { return &Posts{Kick: make(chan struct{}, 1)} }

// Add never blocks and may be called from any goroutine. After the program has ended it does nothing.
func (p *Posts) Add(f func()) {
	p.mu.Lock()
	p.list = append(p.list, f)
	p.mu.Unlock()
	select {
	case p.Kick <- struct{}{}:
	default:
	}
}

// Run does what was posted, on the UI goroutine, in the order in which it came.
func (p *Posts) Run() {
	p.mu.Lock()
	list := p.list
	p.list, p.woken = nil, time.Time{}
	p.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// wakeAgain is after how long a wake-up counts as lost; the loop drops keys while text is being pasted.
const wakeAgain = time.Second

// Pump wakes the loop when something was posted, at most once a frame, until stop is closed. A loop
// that is held up, as while an editor runs, is not woken twice, so that nothing piles up.
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

// Waiting says whether something was posted that was not run yet.
func (p *Posts) Waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list) > 0
}

// rekick looks again at what is still waiting, so that a wake-up that was lost is repeated.
func (p *Posts) rekick() {
	if !p.Waiting() {
		return
	}
	select {
	case p.Kick <- struct{}{}:
	default:
	}
}
