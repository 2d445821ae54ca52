package widget

import (
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// special names the keys that type nothing. Enter, tab, esc and backspace come before the control
// keys with the same code.
var special = map[tcell.Key]string{
	tcell.KeyEnter: "enter", tcell.KeyTab: "tab", tcell.KeyBacktab: "shift-tab", tcell.KeyEscape: "esc",
	tcell.KeyBackspace:  "backspace",
	tcell.KeyBackspace2: "backspace", tcell.KeyDelete: "delete", tcell.KeyInsert: "insert", tcell.KeyUp: "up",
	tcell.KeyDown: "down", tcell.KeyLeft: "left",
	tcell.KeyRight: "right", tcell.KeyHome: "home", tcell.KeyEnd: "end", tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdn",
	tcell.KeyCtrlSpace:     "ctrl-space",
	tcell.KeyCtrlBackslash: `ctrl-\`, tcell.KeyCtrlUnderscore: "ctrl-_", tcell.KeyCtrlRightSq: "ctrl-]",
	tcell.KeyCtrlCarat: "ctrl-^",
}

// KeyName returns the name of a key in help and settings: "x", "X", "space", "ctrl-d", "alt-x",
// "enter", "f5".
func KeyName(event *tcell.EventKey) string {
	name := ""
	switch key := event.Key(); {
	case key == tcell.KeyRune && event.Rune() == ' ':
		name = "space"
		if event.Modifiers()&tcell.ModCtrl != 0 {
			name = "ctrl-space"
		}
	case key == tcell.KeyRune:
		name = string(event.Rune())
	case special[key] != "":
		name = special[key]
	case key >= tcell.KeyCtrlA && key <= tcell.KeyCtrlZ:
		name = "ctrl-" + string(rune('a'+key-tcell.KeyCtrlA))
	default:
		name = strings.ToLower(tcell.KeyNames[key])
	}
	if event.Modifiers()&tcell.ModAlt != 0 {
		name = "alt-" + name
	}
	return name
}

// wheelRows is how many rows one step of the wheel scrolls.
const wheelRows = 3

type mouseHandler = func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive)

// mouse returns the mouse handler of a widget that scrolls by rows and takes clicks; x and y are
// relative to the widget.
func mouse(box *tview.Box, scroll func(rows int), click func(x, y int, double bool)) mouseHandler {
	return box.WrapMouseHandler(func(action tview.MouseAction, event *tcell.EventMouse, _ func(tview.Primitive)) (bool,
		tview.Primitive) {
		x, y := event.Position()
		if !box.InRect(x, y) {
			return false, nil
		}
		left, top, _, _ := box.GetInnerRect()
		switch action {
		case tview.MouseScrollUp:
			scroll(-wheelRows)
		case tview.MouseScrollDown:
			scroll(wheelRows)
		case tview.MouseLeftClick, tview.MouseLeftDoubleClick:
			click(x-left, y-top, action == tview.MouseLeftDoubleClick)
		default:
			return false, nil
		}
		return true, nil
	})
}
