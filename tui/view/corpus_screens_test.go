package view

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	longtest "github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

var allHostile = flag.Bool("hostile.all", false, "every screen meets every hostile text (some, in turns)")

// TestHostileTextIsHarmlessOnEveryScreen tries each text on every other screen, and those that are
// little more than one character on every fourth, so that each screen meets about a hundred and
// forty with KAGZI_TEST_LONG, and a twentieth of them without; with -hostile.all each text on every
// screen.
func TestHostileTextIsHarmlessOnEveryScreen(t *testing.T) {
	useXterm(t)
	corpus := widgettest.Hostile()
	share := corpusShare
	if testing.Short() {
		share = max(share, 10)
	}
	try := func(number int, name string, width, height int) {
		t.Run(fmt.Sprintf("%s in %dx%d", name, width, height), func(t *testing.T) {
			t.Parallel()
			text, every := corpus[name], 2
			if strings.HasPrefix(name, "control ") || strings.HasPrefix(name, "unseen ") {
				every = 4
			}
			if *allHostile {
				every = 1
			}
			onTerminal(t, shopWithKeys, func(w *shop) tui.API {
				return tui.Over(widgettest.Spoil(w.line, text))
			}, "overview", width, height,
				func(r *fixture, w *shop, tty *memoryTty) { screens(r, w, tty, number, every, text) })
		})
	}
	names := slices.Sorted(maps.Keys(corpus))
	tried := longtest.Share(t, names, 20)
	for i, name := range names {
		if i%share == 0 && slices.Contains(tried, name) {
			try(i/share, name, 120, 32)
		}
		if i%(20*share) == 0 {
			try(i/(20*share), name, 60, 15)
			try(i/(20*share)+1, name, 200, 50)
		}
	}
}

// screens goes through one of so many views with its tabs, the others with later numbers, through
// the dialogs of one and the layers, and checks each screen.
func screens(r *fixture, w *shop, tty *memoryTty, number, every int, text string) {
	views := append(everyView(w), "run "+w.ID(scenario.Failed))
	for i, view := range views {
		if (i+number)%every != 0 {
			continue
		}
		if err := r.app.command(view); err != nil {
			r.t.Errorf(":%s: %v", view, err)
			continue
		}
		r.draw()
		r.settle()
		look(r, tty, ":"+view)
		keys := keysOf(r.app, view)
		if turns := (len(views) + every - 1) / every; i/every == number/every%turns {
			keys = append(dialogsOf(r.app), keys...)
		}
		for _, key := range keys {
			before := r.app.trails.top()
			r.press(key)
			look(r, tty, ":"+view+" "+key)
			for tries := 0; len(r.app.layers) > 0 && tries < 5; tries++ {
				r.press("esc")
			}
			if r.app.trails.top() != before {
				r.press("esc")
			}
		}
	}
	r.app.complain(errors.New(text))
	r.app.done(r.app.command("messages"))
	r.draw()
	look(r, tty, ":messages")
	r.press("esc", ":")
	r.app.layer().Paste(text)
	r.draw()
	look(r, tty, "a command")
	r.press("enter")
	look(r, tty, "a command that there is not")
}

// keysOf returns the keys that show more of a view: its tabs, parts and details.
func keysOf(a *App, view string) []string {
	switch {
	case strings.HasPrefix(view, "run "):
		return []string{"2", "3", "4", "5", "enter", "6", "7", "1", "enter", "y"}
	case view == "runs":
		return []string{"end", "ctrl-w", "Y", "y", "?"}
	case view == "overview" || view == "server":
		return []string{"tab", "enter", "tab", "enter", "tab", "enter"}
	}
	return []string{"y", "enter"}
}

// dialogsOf returns the keys that open dialogs and forms.
func dialogsOf(a *App) []string {
	var keys []string
	for _, action := range a.actions() {
		if action.Changes && len(action.Keys) > 0 {
			keys = append(keys, action.Keys[0])
		}
	}
	if _, ok := a.trails.top().(filtered); ok {
		keys = append(keys, "/")
	}
	return append(keys, "d", "?", "ctrl-w")
}

// look checks the screen and the bytes written to the terminal.
func look(r *fixture, tty *memoryTty, where string) {
	r.t.Helper()
	fault := faultOf(r)
	if _, err := harmless(tty.take()); err != nil {
		fault = errors.Join(fault, err)
	}
	if fault != nil {
		r.t.Fatalf("%s: %v\n%s", where, fault, r.draw())
	}
}

// faultOf finds cells that hold more than a printable character, and incomplete frames.
func faultOf(r *fixture) error {
	c := newFrameCheck(r.screen.(*mirror), r.app.look)
	if harm := r.screen.(*mirror).harm; harm != "" {
		return fmt.Errorf("a cell was given %q", harm)
	}
	if len(r.app.layers) > 0 {
		return c.wide()
	}
	top := 1
	if r.app.header && c.height >= 30 {
		top = 2
	}
	bottom := c.height - 2
	if r.app.banner() != "" {
		bottom--
	}
	return errors.Join(c.wide(), c.box(0, top, c.width-1, bottom))
}

// frameCheck checks the lines of frames.
type frameCheck struct {
	cells         []string
	width, height int
	look          *theme.Theme
	drawn         []int // when cells were drawn
}

func newFrameCheck(screen *mirror, look *theme.Theme) *frameCheck {
	w, h := screen.Size()
	c := &frameCheck{make([]string, w*h), w, h, look, screen.drawn}
	for i := range c.cells {
		c.cells[i], _, _ = screen.Get(i%w, i/w)
	}
	return c
}

func (c *frameCheck) at(x, y int) string { return c.cells[y*c.width+x] }

// box finds a fault unless there is a box with these corners. Its upper edge may be interrupted by
// a title.
func (c *frameCheck) box(left, top, right, bottom int) error {
	for _, corner := range []struct {
		x, y  int
		glyph theme.Glyph
	}{{left, top, theme.CornerTL}, {right, top, theme.CornerTR}, {left, bottom, theme.CornerBL},
		{right, bottom, theme.CornerBR}} {
		if got := c.at(corner.x, corner.y); got != c.look.Glyph(corner.glyph) {
			return fmt.Errorf("the corner at %d,%d is %q", corner.x, corner.y, got)
		}
	}
	for y := top + 1; y < bottom; y++ {
		for _, x := range []int{left, right} {
			if got := c.at(x, y); got != c.look.Glyph(theme.Bar) {
				return fmt.Errorf("the edge at %d,%d is %q", x, y, got)
			}
		}
	}
	for x := left + 1; x < right; x++ {
		if got := c.at(x, bottom); got != c.look.Glyph(theme.Line) {
			return fmt.Errorf("the lower edge at %d,%d is %q", x, bottom, got)
		}
	}
	return nil
}

// wide finds wide characters whose second cell was overwritten, or that leave the screen.
func (c *frameCheck) wide() error {
	for i, text := range c.cells {
		x, y := i%c.width, i/c.width
		switch {
		case len(text) == 1 || uniseg.StringWidth(text) < 2:
		case x+1 == c.width:
			return fmt.Errorf("%q leaves the screen at %d,%d", text, x, y)
		case c.drawn[i+1] > c.drawn[i]:
			return fmt.Errorf("%q covers %q at %d,%d, which was drawn later", text, c.at(x+1, y), x, y)
		}
	}
	return nil
}
