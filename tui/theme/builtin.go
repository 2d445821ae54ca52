package theme

import (
	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
)

// plain is the terminal's default text and background.
var plain = tcell.StyleDefault

// palette holds the few colours in which themes differ.
type palette struct {
	background                                         tcell.Color // of everything
	text, faint, good, bad, busy, wait, asleep, paused tcell.Color
	accent                                             tcell.Color // titles and keys
	selected, onSelected                               tcell.Color // default: reverse video
}

// builtin lists the built-in themes: the default first, the one without colours last.
var builtin = []*Theme{
	coloured("terminal", palette{
		background: tcell.ColorDefault, text: tcell.ColorDefault, faint: tcell.ColorDefault,
		good: tcell.ColorGreen, bad: tcell.ColorRed, busy: tcell.ColorBlue, wait: tcell.ColorOlive,
		asleep: tcell.ColorTeal,
		paused: tcell.ColorPurple, accent: tcell.ColorTeal,
	}),
	coloured("dark", palette{
		background: tcell.NewHexColor(0x16181d), text: tcell.NewHexColor(0xd7dae0), faint: tcell.NewHexColor(0x7d8590),
		good: tcell.NewHexColor(0x6cc07a), bad: tcell.NewHexColor(0xf47067), busy: tcell.NewHexColor(0x6cb6ff),
		wait:   tcell.NewHexColor(0xdaaa3f),
		asleep: tcell.NewHexColor(0x5bc8c8), paused: tcell.NewHexColor(0xdcbdfb), accent: tcell.NewHexColor(0x76e3ea),
		selected: tcell.NewHexColor(0x2f3b52), onSelected: tcell.NewHexColor(0xffffff),
	}),
	coloured("light", palette{
		background: tcell.NewHexColor(0xffffff), text: tcell.NewHexColor(0x1f2328), faint: tcell.NewHexColor(0x656d76),
		good: tcell.NewHexColor(0x1a7f37), bad: tcell.NewHexColor(0xcf222e), busy: tcell.NewHexColor(0x0969da),
		wait:   tcell.NewHexColor(0x9a6700),
		asleep: tcell.NewHexColor(0x0e7490), paused: tcell.NewHexColor(0x8250df), accent: tcell.NewHexColor(0x0550ae),
		selected: tcell.NewHexColor(0xd0e4ff), onSelected: tcell.NewHexColor(0x0b1f33),
	}),
	coloured("contrast", palette{
		background: tcell.NewHexColor(0x000000), text: tcell.NewHexColor(0xffffff), faint: tcell.NewHexColor(0xc8c8c8),
		good: tcell.NewHexColor(0x00ff5f), bad: tcell.NewHexColor(0xff5f5f), busy: tcell.NewHexColor(0x5fd7ff),
		wait:   tcell.NewHexColor(0xffd700),
		asleep: tcell.NewHexColor(0x00ffff), paused: tcell.NewHexColor(0xff87ff), accent: tcell.NewHexColor(0xffff00),
		selected: tcell.NewHexColor(0xffff00), onSelected: tcell.NewHexColor(0x000000),
	}),
	mono(),
}

// coloured returns a theme with a palette.
func coloured(name string, p palette) *Theme {
	base := plain.Background(p.background).Foreground(p.text)
	faint := base.Foreground(p.faint)
	if p.faint == tcell.ColorDefault {
		faint = base.Dim(true)
	}
	selected := base.Reverse(true)
	if p.selected != 0 {
		selected = plain.Background(p.selected).Foreground(p.onSelected)
	}
	t := &Theme{Name: name, glyphs: &unicodeGlyphs}
	t.styles = [styles]tcell.Style{
		render.Plain: base, render.Dim: faint, render.Good: base.Foreground(p.good),
		render.Bad:  base.Foreground(p.bad).Bold(true),
		render.Busy: base.Foreground(p.busy), render.Waiting: base.Foreground(p.wait),
		render.Stopped: base.Foreground(p.paused),
		render.Asleep:  base.Foreground(p.asleep), render.Paused: base.Foreground(p.paused).Bold(true),
		render.Strong: base.Bold(true),
	}
	t.roles = [roles]tcell.Style{
		Text: base, Faint: faint, Border: faint, Title: base.Foreground(p.accent).Bold(true), Head: base.Bold(true),
		Crumb: base.Foreground(p.accent), Key: base.Foreground(p.accent).Bold(true), Selected: selected,
		Marked: base.Foreground(p.wait).Bold(true),
		Fresh:  base.Bold(true), Stale: faint, Field: base.Underline(true), Ghost: faint,
		Warning: base.Foreground(p.wait).Bold(true),
		Danger:  base.Foreground(p.bad).Bold(true), Success: base.Foreground(p.good),
	}
	return t
}

// mono returns a theme without colours. Only the cursor uses reverse video, so that it stands out.
func mono() *Theme {
	t := &Theme{Name: "mono", glyphs: &unicodeGlyphs}
	t.styles = [styles]tcell.Style{
		render.Plain: plain, render.Dim: plain.Dim(true), render.Good: plain, render.Bad: plain.Bold(true),
		render.Busy:    plain,
		render.Waiting: plain, render.Stopped: plain.Dim(true), render.Asleep: plain, render.Paused: plain.Bold(true),
		render.Strong: plain.Bold(true),
	}
	t.roles = [roles]tcell.Style{
		Text: plain, Faint: plain.Dim(true), Border: plain.Dim(true), Title: plain.Bold(true), Head: plain.Bold(true),
		Crumb: plain,
		Key:   plain.Bold(true), Selected: plain.Reverse(true), Marked: plain.Bold(true).Underline(true),
		Fresh: plain.Bold(true),
		Stale: plain.Dim(true), Field: plain.Underline(true), Ghost: plain.Dim(true), Warning: plain.Bold(true),
		Danger:  plain.Bold(true).Underline(true),
		Success: plain,
	}
	return t
}
