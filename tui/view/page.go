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

// page is one view. It belongs to the UI goroutine. A hidden page keeps its state and sends no
// requests.
type page interface {
	// Name is the command of the page: "runs".
	Name() string
	// Crumb is its part of the path in the header: "runs", "run 0193…".
	Crumb() string
	// Title is shown in the frame on the left, Status on the right.
	Title() string
	Status() string
	// Draw draws the page into the frame.
	Draw(c widget.Canvas)
	// Key moves within the page; false if the key has no meaning here.
	Key(event *tcell.EventKey) bool
	// Actions returns the page's own actions.
	Actions() []*Action
	// Show starts to follow the server, Hide stops that; Close releases everything.
	Show()
	Hide()
	Close()
}

// Optional abilities of pages.
type (
	// filtered pages have a filter, changed with "/".
	filtered interface {
		Filter() string
		SetFilter(text string) error
		CompleteFilter(text string) []string
		// TryFilter previews a filter while it is typed, by narrowing the loaded rows.
		TryFilter(text string)
	}
	// sortable pages have columns to sort by.
	sortable interface{ table() *widget.Table }
	// refreshable pages can reload everything.
	refreshable interface{ Refresh() }
	// clicked pages handle the mouse.
	clicked interface {
		Mouse(action tview.MouseAction, event *tcell.EventMouse) bool
	}
	// paced pages are redrawn periodically, because they show times.
	paced interface{ Pace() time.Duration }
	// warned pages have a line below them for a problem.
	warned interface{ Banner() string }
	// failed pages can fail to load; the frame shows the error in their place.
	failed interface{ Failure() error }
	// copied pages can be copied from: the id under the cursor, and the whole row as JSON.
	copied interface {
		CopyID() string
		CopyAll() string
	}
	// saved pages can be written to a file: titles and rows of what is loaded, and the same as
	// JSON.
	saved interface {
		Rows() (titles []string, rows [][]string)
		JSON() ([]byte, error)
	}
	// escaped pages handle esc first.
	escaped interface{ Escape() bool } // true: esc did something here, such as clearing a filter
)

// entry is a view that a command or a digit opens.
type entry struct {
	name     string
	aliases  []string
	keys     []string
	args     string
	help     string
	open     func(a *App, args []string) (page, error)
	complete func(a *App, text string) []string // completes its argument
}

// filterArgs is the argument of a view that takes a filter.
const filterArgs = "[FILTER]"

// views lists all views in the order of their digits. init fills it because the pages open each
// other.
var views []*entry

func init() {
	views = []*entry{
		{name: "overview", aliases: []string{"o", "pulse"}, keys: []string{"1"},
			help: "what is wrong, what waits and what comes next",
			open: openOverview},
		{name: "runs", aliases: []string{"r", "wf", "workflows"}, keys: []string{"2"}, args: filterArgs,
			help: "runs, newest first", open: openRuns, complete: completeRuns},
		{name: "run", args: "ID", help: "one run", open: openRun},
		{name: "diff", args: "RUN RUN", help: "two runs side by side", open: openDiff},
		{name: "workers", aliases: []string{"w"}, keys: []string{"4"}, help: "workers, online first",
			open: openWorkers},
		{name: "worker", args: "ID", help: "one worker and its runs", open: openWorker},
		{name: "schedules", aliases: []string{"s", "sched", "cron"}, keys: []string{"6"},
			help: "schedules and their next ticks", open: openSchedules},
		{name: "schedule", args: "ID | NAME", help: "one schedule, its ticks and its runs", open: openSchedule},
		{name: "queues", aliases: []string{"qu"}, keys: []string{"7"}, help: "queues, their backlog and workers",
			open: openQueues},
		{name: "namespaces", keys: []string{"8"}, help: "all namespaces", open: openNamespaces},
		{name: "ns", aliases: []string{"namespace"}, args: "NAME", help: "switch to another namespace",
			open: useNamespace, complete: completeNamespace},
		{name: "keys", aliases: []string{"key"}, help: "API keys: who may do what", open: openKeys},
		{name: "audit", args: "[TEXT]", help: "who changed what, and who was refused", open: openAudit},
		{name: "server", aliases: []string{"health"}, keys: []string{"9"},
			help: "the server, its database and its calls", open: openServer},
		{name: "events", aliases: []string{"ev", "log"}, keys: []string{"0"}, args: filterArgs,
			help: "the server's event log", open: openEvents},
	}
}

// open opens a view in a trail of its own. A view that is only a command opens none.
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

// push opens a page on top of the current one; esc returns.
func (a *App) push(p page) { a.trails.push(p) }

// completeView returns the completion of a view's argument.
func (a *App) completeView(e *entry) func(string) []string {
	if e.complete == nil {
		return nil
	}
	return func(text string) []string { return e.complete(a, text) }
}

// errNothingUnder refuses an action that needs a row under the cursor.
var errNothingUnder = errors.New("there is nothing under the cursor")

// pushView opens a view on top of the current page; esc returns.
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

// A trail is a page that was opened on its own and the pages opened from it; the last one is shown.
type trail []page

// maxTrails limits how many trails are kept to go back to.
const maxTrails = 20

// trails holds the history of pages: the current trail and those before and after it.
type trails struct {
	list []trail
	at   int
	last int // the trail shown before, for "-"
}

// top returns the page on the screen.
func (t *trails) top() page {
	if len(t.list) == 0 {
		return nil
	}
	now := t.list[t.at]
	return now[len(now)-1]
}

// pages returns the pages of the current trail, oldest first.
func (t *trails) pages() trail {
	if len(t.list) == 0 {
		return nil
	}
	return t.list[t.at]
}

// open starts a new trail. It drops the trails after the current one, and the oldest if there are
// too many.
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

// push opens a page on top of the current one.
func (t *trails) push(p page) {
	if len(t.list) == 0 {
		t.open(p)
		return
	}
	t.hide()
	t.list[t.at] = append(t.list[t.at], p)
	p.Show()
}

// pop returns to the page that this one was opened from; false if there is none.
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

// jump switches to a trail.
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

// close closes all pages.
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
