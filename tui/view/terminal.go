package view

import (
	"errors"
	"fmt"
	"os"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// The program has the terminal's own background, and draws its frames itself.
func init() {
	d := tcell.ColorDefault
	tview.Styles = tview.Theme{
		PrimitiveBackgroundColor: d, ContrastBackgroundColor: d, MoreContrastBackgroundColor: d, BorderColor: d, TitleColor: d, GraphicsColor: d,
		PrimaryTextColor: d, SecondaryTextColor: d, TertiaryTextColor: d, InverseTextColor: d, ContrastSecondaryTextColor: d,
	}
}

// errNoTerminal says what to do without one.
var errNoTerminal = errors.New("kagzi tui needs a terminal; try: kagzi workflow list")

// terminal is the screen of this process, ready to be drawn on.
func terminal(lookup func(string) (string, bool)) (tcell.Screen, error) {
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

// crashed turns a panic into an error and writes its stack where it can be read later.
func crashed(v any, stack []byte, file string) error {
	report := fmt.Appendf(nil, "panic: %v\n\n%s", v, stack)
	if file == "" || writeWhole(file, report) != nil {
		os.Stderr.Write(report)
		return fmt.Errorf("the terminal UI failed: %v", v)
	}
	return fmt.Errorf("the terminal UI failed: %v; what happened is in %s", v, file)
}
