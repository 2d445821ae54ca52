package theme

import (
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
)

// Glyph is a symbol that repeats what a colour says. Each has a form for ASCII-only terminals.
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
	Polling  // connected, but polling
	Up       // more above; ascending
	Down     // more below; descending
	Left     // more on the left
	Right    // more on the right; between crumbs
	Folded   // contains hidden rows
	Unfolded // rows are shown
	Ellipsis // text was cut
	Full     // full cell of a bar
	Empty    // empty cell of a bar
	Rest     // time in which a run slept
	Between  // time between two attempts
	Tip      // end of an open bar
	Break    // time that was left out
	Line     // horizontal line
	Bar      // vertical line
	Branch   // of a tree: more follow
	LastOne  // of a tree: the last
	Through  // of a tree: line of an ancestor
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

// Eighths returns a cell filled from the left by one to eight eighths; in ASCII only the full cell.
func (t *Theme) Eighths() []string {
	if t.ascii {
		return []string{"#"}
	}
	return []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}
}

// Levels returns a cell filled from below, lowest first, for sparklines.
func (t *Theme) Levels() []string {
	if t.ascii {
		return []string{"_", ".", "-", "=", "*", "#"}
	}
	return []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
}

// For returns the theme for a screen: without colours if it has none or noColour is set, and with
// glyphs that it can show.
func (t *Theme) For(screen tcell.Screen, noColour, ascii bool) *Theme {
	if noColour || screen.Colors() == 0 {
		t = Mono()
	}
	if ascii || strings.ToLower(strings.ReplaceAll(screen.CharacterSet(), "-", "")) != "utf8" {
		t = t.WithASCII()
	}
	return t
}

// Sign is a glyph with its word and style: a colour never stands alone.
type Sign struct {
	Glyph Glyph
	Word  string
	Style render.Style
}

// Cell returns the sign as a cell of a table.
func (t *Theme) Cell(s Sign) render.Cell {
	return render.Cell{Text: t.Glyph(s.Glyph) + " " + s.Word, Style: s.Style}
}
