package view

import (
	"errors"
	"fmt"
	"strings"
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

// entry is a view that can be opened by its name or its digit.
type entry struct {
	name     string
	aliases  []string
	keys     []string
	args     string
	help     string
	open     func(a *App, args []string) (page, error)
	complete func(a *App, text string) []string // of its argument
}

// filterArgs is the argument of a view that takes a filter.
const filterArgs = "[FILTER]"

// views are all of them, in the order of their digits. It is filled by init because the pages open each other.
var views []*entry

func init() {
	views = []*entry{
		{name: "overview", aliases: []string{"o", "pulse"}, keys: []string{"1"}, help: "how everything is",
			open: openOverview},
		{name: "runs", aliases: []string{"r", "wf", "workflows"}, keys: []string{"2"}, args: filterArgs,
			help: "the runs, newest first", open: openRuns, complete: completeRuns},
		{name: "run", args: "ID", help: "one run", open: openRun},
		{name: "diff", args: "RUN RUN", help: "two runs side by side", open: openDiff},
		{name: "workers", aliases: []string{"w"}, keys: []string{"4"}, help: "who does the work", open: openWorkers},
		{name: "worker", args: "ID", help: "one worker and the runs that it holds", open: openWorker},
		{name: "schedules", aliases: []string{"s", "sched", "cron"}, keys: []string{"6"},
			help: "what starts by itself, and when next", open: openSchedules},
		{name: "schedule", args: "ID | NAME", help: "one schedule, its next ticks and its runs", open: openSchedule},
		{name: "queues", aliases: []string{"qu"}, keys: []string{"7"}, help: "what waits, and who polls",
			open: openQueues},
		{name: "namespaces", keys: []string{"8"}, help: "all namespaces", open: openNamespaces},
		{name: "ns", aliases: []string{"namespace"}, args: "NAME", help: "work in another namespace",
			open: useNamespace, complete: completeNamespace},
		{name: "server", aliases: []string{"health"}, keys: []string{"9"},
			help: "the server, its database and its calls", open: openServer},
		{name: "events", aliases: []string{"ev", "log"}, keys: []string{"0"}, args: filterArgs,
			help: "what the server noted", open: openEvents},
	}
}

// open opens a view in a trail of its own. A view that only does something opens none.
func (a *App) open(e *entry, args []string) error {
	if strings.HasPrefix(e.args, "ID") || strings.HasPrefix(e.args, "NAME") {
		if len(args) != 1 {
			return fmt.Errorf("%s takes one argument: %s", e.name, e.args)
		}
	}
	p, err := e.open(a, args)
	if err != nil || p == nil {
		return err
	}
	a.trails.open(p)
	return nil
}

// push opens a page from the one on the screen, to which esc comes back.
func (a *App) push(p page) { a.trails.push(p) }

// completeView is what a view's argument may become.
func (a *App) completeView(e *entry) func(string) []string {
	if e.complete == nil {
		return nil
	}
	return func(text string) []string { return e.complete(a, text) }
}

// errNothingUnder refuses an action for the row under the cursor when there is none.
var errNothingUnder = errors.New("there is nothing under the cursor")

// pushView opens a view from the page on the screen, to which esc comes back.
func (a *App) pushView(name string, args ...string) error {
	for _, e := range views {
		if e.name != name {
			continue
		}
		p, err := e.open(a, args)
		if err != nil || p == nil {
			return err
		}
		a.push(p)
		return nil
	}
	return fmt.Errorf("there is no view %q", name)
}

// A trail is a page that was opened by itself and the pages that were opened from it, the last on the screen.
type trail []page

// maxTrails is how many trails one can go back to.
const maxTrails = 20

// trails are where the person has been: the current trail and those before and after it.
type trails struct {
	list []trail
	at   int
	last int // the one before this, for "-"
}

// top is the page on the screen.
func (t *trails) top() page {
	if len(t.list) == 0 {
		return nil
	}
	now := t.list[t.at]
	return now[len(now)-1]
}

// pages are those of the current trail, the first opened first.
func (t *trails) pages() trail {
	if len(t.list) == 0 {
		return nil
	}
	return t.list[t.at]
}

// open begins a new trail. Those that one had gone back from are forgotten, and the oldest when there are too many.
func (t *trails) open(p page) {
	t.hide()
	if len(t.list) > 0 {
		for _, gone := range t.list[t.at+1:] {
			gone.close()
		}
		t.list = t.list[:t.at+1]
	}
	t.list = append(t.list, trail{p})
	if len(t.list) > maxTrails {
		t.list[0].close()
		t.list = t.list[1:]
	}
	t.last, t.at = max(len(t.list)-2, 0), len(t.list)-1
	p.Show()
}

// push opens a page from the one on the screen.
func (t *trails) push(p page) {
	if len(t.list) == 0 {
		t.open(p)
		return
	}
	t.hide()
	t.list[t.at] = append(t.list[t.at], p)
	p.Show()
}

// pop goes back to the page that this one was opened from; false when it was opened by itself.
func (t *trails) pop() bool {
	if len(t.list) == 0 || len(t.list[t.at]) < 2 {
		return false
	}
	now := t.list[t.at]
	now[len(now)-1].Hide()
	now[len(now)-1].Close()
	t.list[t.at] = now[:len(now)-1]
	t.top().Show()
	return true
}

// jump goes to a trail.
func (t *trails) jump(to int) bool {
	if to < 0 || to >= len(t.list) || to == t.at {
		return false
	}
	t.hide()
	t.last, t.at = t.at, to
	t.top().Show()
	return true
}

func (t *trails) back() bool    { return t.jump(t.at - 1) }
func (t *trails) forward() bool { return t.jump(t.at + 1) }
func (t *trails) toLast() bool  { return t.jump(t.last) }

func (t *trails) hide() {
	if p := t.top(); p != nil {
		p.Hide()
	}
}

// close lets go of everything.
func (t *trails) close() {
	t.hide()
	for _, trail := range t.list {
		trail.close()
	}
	t.list, t.at, t.last = nil, 0, 0
}

func (t trail) close() {
	for _, p := range t {
		p.Close()
	}
}
