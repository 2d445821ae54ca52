package theme

import (
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
)

// Glyph is a sign that says something a second way beside its colour. Each has a form for terminals
// that show ASCII only.
type Glyph uint8

const (
	Pending Glyph = iota
	Running
	Sleeping
	Retrying
	Completed
	Failed
	Cancelled
	Terminated
	TimedOut
	Paused
	Scheduled
	Online
	Draining
	Offline
	Mark     // a marked row
	Alert    // something is wrong
	Broken   // not connected
	Polling  // connected, but asking instead of being told
	Up       // there is more above; ascending
	Down     // there is more below; descending
	Left     // there is more on the left
	Right    // there is more on the right; between crumbs
	Folded   // something is hidden in here
	Unfolded // it is open
	Ellipsis // something was cut
	Full     // a cell of a bar that is full
	Empty    // one that is not
	Rest     // time that a run slept
	Between  // time between two attempts
	Tip      // the end of a bar that still grows
	Break    // time that was left out
	Line     // horizontal line
	Bar      // vertical line
	Branch   // of a tree: more follow
	LastOne  // of a tree: the last
	Through  // of a tree: the line of an elder
	CornerTL
	CornerTR
	CornerBL
	CornerBR
	glyphs
)

var unicodeGlyphs = [glyphs]string{
	Pending: "○", Running: "●", Sleeping: "◔", Retrying: "↻", Completed: "✓", Failed: "✗", Cancelled: "⊘",
	Terminated: "■", TimedOut: "⧖",
	Paused: "‖", Scheduled: "◷", Online: "●", Draining: "◐", Offline: "○", Mark: "◆", Alert: "▲", Broken: "▲",
	Polling: "◌",
	Up:      "▲", Down: "▼", Left: "◂", Right: "›", Folded: "▸", Unfolded: "▾", Ellipsis: "…", Full: "█", Empty: "·",
	Rest: "░", Between: "┄", Tip: "▶", Break: "≈",
	Line: "─", Bar: "│", Branch: "├─ ", LastOne: "└─ ", Through: "│  ", CornerTL: "┌", CornerTR: "┐", CornerBL: "└",
	CornerBR: "┘",
}

var asciiGlyphs = [glyphs]string{
	Pending: ".", Running: ">", Sleeping: "z", Retrying: "r", Completed: "+", Failed: "x", Cancelled: "-",
	Terminated: "#", TimedOut: "t",
	Paused: "=", Scheduled: "@", Online: ">", Draining: "~", Offline: ".", Mark: "*", Alert: "!", Broken: "!",
	Polling: "o",
	Up:      "^", Down: "v", Left: "<", Right: ">", Folded: "+", Unfolded: "-", Ellipsis: "~", Full: "#", Empty: ".",
	Rest: ":", Between: "-", Tip: ">", Break: "~",
	Line: "-", Bar: "|", Branch: "|- ", LastOne: "`- ", Through: "|  ", CornerTL: "+", CornerTR: "+", CornerBL: "+",
	CornerBR: "+",
}

// Eighths are a cell filled from the left by one to eight eighths; only full cells in ASCII.
func (t *Theme) Eighths() []string {
	if t.ascii {
		return []string{"#"}
	}
	return []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}
}

// Levels are a cell filled from below, for sparklines, lowest first.
func (t *Theme) Levels() []string {
	if t.ascii {
		return []string{"_", ".", "-", "=", "*", "#"}
	}
	return []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
}

// For is the theme fit for a screen: without colours where there are none or they are not wanted,
// and with glyphs that it can show.
func (t *Theme) For(screen tcell.Screen, noColour, ascii bool) *Theme {
	if noColour || screen.Colors() == 0 {
		t = Mono()
	}
	if ascii || strings.ToLower(strings.ReplaceAll(screen.CharacterSet(), "-", "")) != "utf8" {
		t = t.WithASCII()
	}
	return t
}

// Sign is a glyph with its word and its look: never a colour alone.
type Sign struct {
	Glyph Glyph
	Word  string
	Style render.Style
}

// Cell is the sign as a cell of a table.
func (t *Theme) Cell(s Sign) render.Cell {
	return render.Cell{Text: t.Glyph(s.Glyph) + " " + s.Word, Style: s.Style}
}
