package widget

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// wheelRows is how far one notch of the wheel scrolls.
const wheelRows = 3

type mouseHandler = func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive)

// mouse is the handler of a widget that scrolls by rows and takes clicks; x and y count from its upper left corner.
func mouse(box *tview.Box, scroll func(rows int), click func(x, y int, double bool)) mouseHandler {
	return box.WrapMouseHandler(func(action tview.MouseAction, event *tcell.EventMouse, _ func(tview.Primitive)) (bool, tview.Primitive) {
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
