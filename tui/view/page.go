package view

import (
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/widget"
)

// page is one view. It belongs to the UI goroutine. A page that is hidden keeps its place and asks the server nothing.
type page interface {
	// Name is its command: "runs".
	Name() string
	// Crumb is what the way to it says: "runs", "run 0193…".
	Crumb() string
	// Title stands in the frame on the left, Status on the right.
	Title() string
	Status() string
	// Draw draws it into the frame.
	Draw(c widget.Canvas)
	// Key moves within it; false when the key means nothing here.
	Key(event *tcell.EventKey) bool
	// Actions are its own, beside those of the program.
	Actions() []*Action
	// Show begins to follow the server, Hide ends that; Close lets go of everything.
	Show()
	Hide()
	Close()
}

// What only some pages can.
type (
	// filtered pages have a filter, changed with "/".
	filtered interface {
		Filter() string
		SetFilter(text string) error
		CompleteFilter(text string) []string
		// TryFilter is the filter while it is being typed: what is loaded may be narrowed at once.
		TryFilter(text string)
	}
	// sortable pages have columns to sort by.
	sortable interface{ table() *widget.Table }
	// refreshable pages can be asked to read everything again.
	refreshable interface{ Refresh() }
	// clicked pages take the mouse.
	clicked interface {
		Mouse(action tview.MouseAction, event *tcell.EventMouse) bool
	}
	// paced pages are drawn again after a while although nothing happened, because they show what grows with time.
	paced interface{ Pace() time.Duration }
	// warned pages have a line below them about what is wrong.
	warned interface{ Banner() string }
	// failed pages could not be read; the frame says so in their place.
	failed interface{ Failure() error }
	// copied pages say what copying gives: the id of what is under the cursor, and all of it as JSON.
	copied interface {
		CopyID() string
		CopyAll() string
	}
	// saved pages can be written to a file: the titles and rows of what is loaded, and the same as JSON.
	saved interface {
		Rows() (titles []string, rows [][]string)
		JSON() ([]byte, error)
	}
	// escaped pages are asked first what esc does.
	escaped interface{ Escape() bool } // true: esc meant something here, such as clearing a filter
)
