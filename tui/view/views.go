package view

import (
	"errors"
	"fmt"
	"strings"
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
		{name: "overview", aliases: []string{"o", "pulse"}, keys: []string{"1"}, help: "how everything is", open: openOverview},
		{name: "runs", aliases: []string{"r", "wf", "workflows"}, keys: []string{"2"}, args: filterArgs, help: "the runs, newest first", open: openRuns, complete: completeRuns},
		{name: "run", args: "ID", help: "one run", open: openRun},
		{name: "diff", args: "RUN RUN", help: "two runs side by side", open: openDiff},
		{name: "workers", aliases: []string{"w"}, keys: []string{"4"}, help: "who does the work", open: openWorkers},
		{name: "worker", args: "ID", help: "one worker and the runs that it holds", open: openWorker},
		{name: "schedules", aliases: []string{"s", "sched", "cron"}, keys: []string{"6"}, help: "what starts by itself, and when next", open: openSchedules},
		{name: "schedule", args: "ID | NAME", help: "one schedule, its next ticks and its runs", open: openSchedule},
		{name: "queues", aliases: []string{"qu"}, keys: []string{"7"}, help: "what waits, and who polls", open: openQueues},
		{name: "namespaces", keys: []string{"8"}, help: "all namespaces", open: openNamespaces},
		{name: "ns", aliases: []string{"namespace"}, args: "NAME", help: "work in another namespace", open: useNamespace, complete: completeNamespace},
		{name: "server", aliases: []string{"health"}, keys: []string{"9"}, help: "the server, its database and its calls", open: openServer},
		{name: "events", aliases: []string{"ev", "log"}, keys: []string{"0"}, args: filterArgs, help: "what the server noted", open: openEvents},
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
