package view

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/view/internal/terminal"
)

// memoryTty is a terminal that records what is written to it and has no input.
type memoryTty struct {
	width, height int
	closed        chan struct{}
	once          sync.Once
	mu            sync.Mutex
	written       bytes.Buffer
}

func newMemoryTty(width, height int) *memoryTty {
	return &memoryTty{width: width, height: height, closed: make(chan struct{})}
}

func (m *memoryTty) Start() error        { return nil }
func (m *memoryTty) Stop() error         { return nil }
func (m *memoryTty) Drain() error        { m.once.Do(func() { close(m.closed) }); return nil }
func (m *memoryTty) Close() error        { return m.Drain() }
func (m *memoryTty) NotifyResize(func()) {}

func (m *memoryTty) WindowSize() (tcell.WindowSize, error) {
	return tcell.WindowSize{Width: m.width, Height: m.height}, nil
}

func (m *memoryTty) Read([]byte) (int, error) {
	<-m.closed
	return 0, io.EOF
}

func (m *memoryTty) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written.Write(p)
}

// take returns what was written since the last take.
func (m *memoryTty) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := bytes.Clone(m.written.Bytes())
	m.written.Reset()
	return taken
}

// newXterm returns an initialised terminal screen that writes the sequences of common terminals.
func newXterm(tb testing.TB, tty tcell.Tty) tcell.Screen {
	tb.Helper()
	info, err := tcell.LookupTerminfo("xterm-256color")
	if err != nil {
		tb.Fatal(err)
	}
	own := *info // tcell writes into it
	screen, err := tcell.NewTerminfoScreenFromTtyTerminfo(tty, &own)
	if err != nil {
		tb.Fatal(err)
	}
	if err := screen.Init(); err != nil {
		tb.Fatal(err)
	}
	return screen
}

// mirror is a screen in memory that shows the same as a terminal. It records the order in which
// cells were drawn, and invalid contents: tcell shows some of those as blanks, which terminals need
// not.
type mirror struct {
	tcell.SimulationScreen
	terminal tcell.Screen
	count    int
	drawn    []int // by cell, in rows
	harm     string
}

func newMirror(simulation tcell.SimulationScreen, terminal tcell.Screen, width, height int) *mirror {
	simulation.SetSize(width, height)
	return &mirror{SimulationScreen: simulation, terminal: terminal, drawn: make([]int, width*height)}
}

func (m *mirror) SetContent(x, y int, primary rune, combining []rune, style tcell.Style) {
	if primary < ' ' || primary > '~' || len(combining) > 0 {
		if text := string(append([]rune{primary}, combining...)); strings.ContainsFunc(text, forbidden) {
			m.harm = text
		}
	}
	if w, h := m.Size(); x >= 0 && x < w && y >= 0 && y < h {
		m.count++
		m.drawn[y*w+x] = m.count
	}
	m.SimulationScreen.SetContent(x, y, primary, combining, style)
	m.terminal.SetContent(x, y, primary, combining, style)
}

func (m *mirror) ShowCursor(x, y int) {
	m.SimulationScreen.ShowCursor(x, y)
	m.terminal.ShowCursor(x, y)
}

func (m *mirror) Clear() {
	clear(m.drawn)
	m.SimulationScreen.Clear()
	m.terminal.Clear()
}

func (m *mirror) Show() {
	m.SimulationScreen.Show()
	m.terminal.Show()
}

func (m *mirror) SetClipboard(data []byte) {
	m.SimulationScreen.SetClipboard(data)
	m.terminal.SetClipboard(data)
}

// useXterm isolates a test from the terminal settings of its environment.
func useXterm(tb testing.TB) {
	tb.Helper()
	tb.Setenv("LC_ALL", "en_US.UTF-8")
	tb.Setenv("COLUMNS", "")
	tb.Setenv("LINES", "")
	tb.Setenv("NO_COLOR", "")
}

// onTerminal runs body in a bubble, on a screen and a terminal beside it; call useXterm first. api
// is created from the shop in the bubble.
func onTerminal(t *testing.T, w func() *shop, api func(*shop) tui.API, open string, width, height int,
	body func(r *fixture, w *shop, tty *memoryTty)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tty, simulation := newMemoryTty(width, height), tcell.NewSimulationScreen("UTF-8")
		if err := simulation.Init(); err != nil {
			t.Fatal(err)
		}
		defer simulation.Fini()
		xterm := newXterm(t, tty)
		defer xterm.Fini()
		screen, made := newMirror(simulation, terminal.NewScreen(xterm), width, height), w()
		ctx, cancel := context.WithCancel(t.Context())
		r := &fixture{t: t, screen: screen, app: newApp(ctx, Options{
			API: api(made), Open: open, Screen: screen, Zone: time.UTC, Now: made.Now,
			Lookup: func(string) (string, bool) { return "", false },
		})}
		r.app.begin()
		r.settle()
		body(r, made, tty)
		cancel()
		r.app.end()
	})
}

// What tcell writes for screens of text.
var (
	known = []*regexp.Regexp{
		regexp.MustCompile(`^\x1b\[[0-9;:]*[mH]`), // looks, and places
		regexp.MustCompile(`^\x1b\(B`),
		regexp.MustCompile(`^\x08\x08`), // after two blanks, which a wide character then takes
		regexp.MustCompile(
			`^\x1b\[(?:\?(?:1049|1|7|12|25|12;25|2004|2026|9001|1004|100[0-6]|1015)[hl]|2[23];[02]?(?:;0)?t|>4;2m|>1u|2?J|K|0? q)`),
		regexp.MustCompile(`^\x1b[=>]`),
	}
	clipboard = regexp.MustCompile(`^\x1b\]52;c;[A-Za-z0-9+/=]*(?:\x1b\\|\x07)`)
)

// harmless fails unless only text and the sequences of text screens were written. It returns how
// often the clipboard was set.
func harmless(written []byte) (copies int, err error) {
	for rest := written; len(rest) > 0; {
		size := plainText(rest)
		for i := 0; size == 0 && i < len(known); i++ {
			size = len(known[i].Find(rest[:min(len(rest), longestKnown)]))
		}
		if size == 0 {
			if size = len(clipboard.Find(rest)); size > 0 {
				copies++
			}
		}
		if size == 0 {
			at := len(written) - len(rest)
			return copies, fmt.Errorf("%q was written, after %q", rest[:min(len(rest), 24)], written[max(at-24, 0):at])
		}
		rest = rest[size:]
	}
	return copies, nil
}

// longestKnown is the length of the longest allowed sequence, except for the clipboard.
const longestKnown = 64

// plainText returns how many bytes of text the output begins with.
func plainText(written []byte) int {
	n := 0
	for n < len(written) {
		r, size := utf8.DecodeRune(written[n:])
		if r == utf8.RuneError && size == 1 || forbidden(r) {
			break
		}
		n += size
	}
	return n
}

// forbidden reports whether a character must never reach a terminal: it is interpreted, invisible,
// or moves its neighbours.
func forbidden(r rune) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	return unicode.IsControl(r) || unicode.In(
		r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Variation_Selector)
}
