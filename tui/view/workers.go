package view

import (
	"cmp"
	"fmt"
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// workersPage shows who does the work, those that are online first.
type workersPage struct {
	shelf[*kagziv1.Worker]
	online bool // only those that are not offline
}

func openWorkers(a *App, _ []string) (page, error) {
	p := &workersPage{shelf: newShelf(a, "workers", "Workers", workerColumns, model.NewWorkers(a.link), a.workerRow)}
	p.order = workerOrder
	p.empty = func() []widget.Line {
		if n := len(p.items.All()); p.online && n > 0 { // only those that are not offline are wanted, and there are others
			return []widget.Line{widget.TextLine(several(n, "One worker is", "workers are")+" offline.   a shows all", render.Dim)}
		}
		where := "KAGZI_ADDRESS=" + a.options.Address
		if ns := a.link.Namespace(); ns != "default" {
			where += " KAGZI_NAMESPACE=" + ns
		}
		return []widget.Line{
			widget.TextLine("No worker is connected.", render.Plain), {},
			widget.TextLine(where+" go run ./worker", render.Dim),
			widget.TextLine("A worker is a program of your own with the Go SDK.", render.Dim),
		}
	}
	p.tab.Opened = func(id string) { a.done(a.pushView("worker", id)) }
	return p, p.SortBy("status", false)
}

// workerOrder is how workers compare where that is not by what the cells say.
var workerOrder = map[string]func(a, b *kagziv1.Worker) int{
	"status": func(a, b *kagziv1.Worker) int {
		return cmp.Or(cmp.Compare(a.GetStatus(), b.GetStatus()), cmp.Compare(a.GetWorkerId(), b.GetWorkerId()))
	},
	"load": func(a, b *kagziv1.Worker) int {
		return cmp.Compare(float64(a.GetActiveWorkflowCount())/float64(max(a.GetMaxConcurrent(), 1)), float64(b.GetActiveWorkflowCount())/float64(max(b.GetMaxConcurrent(), 1)))
	},
	"heartbeat": func(a, b *kagziv1.Worker) int {
		return b.GetLastHeartbeatAt().AsTime().Compare(a.GetLastHeartbeatAt().AsTime())
	},
	"since": func(a, b *kagziv1.Worker) int {
		return b.GetRegisteredAt().AsTime().Compare(a.GetRegisteredAt().AsTime())
	},
	"done":   func(a, b *kagziv1.Worker) int { return cmp.Compare(a.GetTotalCompleted(), b.GetTotalCompleted()) },
	"failed": func(a, b *kagziv1.Worker) int { return cmp.Compare(a.GetTotalFailed(), b.GetTotalFailed()) },
	"pid":    func(a, b *kagziv1.Worker) int { return cmp.Compare(a.GetPid(), b.GetPid()) },
	"cpu": func(a, b *kagziv1.Worker) int {
		return cmp.Compare(a.GetStats().GetCpuPercent(), b.GetStats().GetCpuPercent())
	},
	"memory": func(a, b *kagziv1.Worker) int {
		return cmp.Compare(a.GetStats().GetMemoryBytes(), b.GetStats().GetMemoryBytes())
	},
}

// Title says how many of how many.
func (p *workersPage) Title() string {
	if !p.online || !p.items.Loaded() || p.items.Filter() != "" {
		return p.shelf.Title()
	}
	return fmt.Sprintf("Workers (%s of %s)  not offline", number(int64(p.items.Len())), number(int64(len(p.items.All()))))
}

// Banner names a worker that is not heard from, or says that nobody works.
func (p *workersPage) Banner() string {
	workers := p.items.All()
	if len(workers) > 0 && !slices.ContainsFunc(workers, func(w *kagziv1.Worker) bool { return w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_ONLINE }) {
		return "no worker is online: nothing is done until one connects"
	}
	return p.app.silentWorker(workers)
}

// silentWorker says of the first worker that is not heard from for how long that is so. While the screen is frozen nobody is heard from.
func (a *App) silentWorker(workers []*kagziv1.Worker) string {
	if a.frozen {
		return ""
	}
	for _, w := range model.Warnings(model.Situation{Workers: workers, WorkersAsOf: a.now()}) {
		return w.Text + "; if it stays so, its runs are handed to others"
	}
	return ""
}

// Actions are to see one worker, and to take workers off.
func (p *workersPage) Actions() []*Action {
	list := []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "the worker and the runs that it holds", Group: GroupMove, Hint: 1, Run: func([]string) error {
			w, ok := p.under()
			if !ok {
				return errNothingUnder
			}
			return p.app.pushView("worker", w.GetWorkerId())
		}},
		{Name: "all", Keys: []string{"a"}, Short: "all or online", Help: "show all workers, or leave out those that are offline", Group: GroupView, Hint: 10, Run: func([]string) error {
			p.online = !p.online
			if p.online {
				p.items.Only(isThere)
			} else {
				p.items.Only(nil)
			}
			return nil
		}},
	}
	return append(list, p.app.workerActions(func() []*kagziv1.Worker { return targetsOf(&p.shelf) })...)
}

func isThere(w *kagziv1.Worker) bool {
	return w.GetStatus() != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE
}
