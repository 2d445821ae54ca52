package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// workersPage shows the workers, online ones first.
type workersPage struct {
	listPage[*kagziv1.Worker]
	online bool // hide offline workers
}

func openWorkers(a *App, _ []string) (page, error) {
	p := &workersPage{listPage: newListPage(a, "workers", "Workers", tables.WorkerColumns, model.NewWorkers(a.link),
		a.tables.Worker)}
	p.order = workerOrder
	p.empty = func() []widget.Line {
		if n := len(p.items.All()); p.online && n > 0 {
			// offline workers are hidden, and there are no others
			return []widget.Line{widget.TextLine(several(n, "1 worker is", "workers are")+" offline.   a shows all",
				render.Dim)}
		}
		where := "KAGZI_ADDRESS=" + a.options.Address
		if ns := a.link.Namespace(); ns != "default" {
			where += " KAGZI_NAMESPACE=" + ns
		}
		return []widget.Line{
			widget.TextLine("No worker is connected.", render.Plain), {},
			widget.TextLine(where+" go run ./worker", render.Dim),
			widget.TextLine("A worker is your own program that uses an SDK of Kagzi.", render.Dim),
		}
	}
	p.tab.Opened = func(id string) { a.done(a.pushView("worker", id)) }
	return p, p.SortBy("status", false)
}

// workerOrder compares workers by columns that do not sort by their text.
var workerOrder = map[string]func(a, b *kagziv1.Worker) int{
	"status": func(a, b *kagziv1.Worker) int {
		return cmp.Or(cmp.Compare(a.GetStatus(), b.GetStatus()), cmp.Compare(a.GetWorkerId(), b.GetWorkerId()))
	},
	"load": func(a, b *kagziv1.Worker) int {
		return cmp.Compare(float64(a.GetActiveWorkflowCount())/float64(max(a.GetMaxConcurrent(), 1)),
			float64(b.GetActiveWorkflowCount())/float64(max(b.GetMaxConcurrent(), 1)))
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

// Title shows how many workers are listed, of how many.
func (p *workersPage) Title() string {
	if !p.online || !p.items.Loaded() || p.items.Filter() != "" {
		return p.listPage.Title()
	}
	return fmt.Sprintf("Workers (%s of %s)  not offline", format.Number(int64(p.items.Len())),
		format.Number(int64(len(p.items.All()))))
}

// Banner names a silent worker, or says that none is online.
func (p *workersPage) Banner() string {
	workers := p.items.All()
	if len(workers) > 0 && !slices.ContainsFunc(workers, func(w *kagziv1.Worker) bool {
		return w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_ONLINE
	}) {
		return "no worker is online: no run makes progress until one connects"
	}
	return p.app.silentWorker(workers)
}

// silentWorker says for how long the first silent worker has been silent. A frozen screen receives
// no heartbeats, so it names none.
func (a *App) silentWorker(workers []*kagziv1.Worker) string {
	if a.frozen {
		return ""
	}
	for _, w := range model.Warnings(model.Situation{Workers: workers, WorkersAsOf: a.now()}) {
		return w.Text + "; if it stays silent, other workers get its runs"
	}
	return ""
}

// Actions open a worker, and drain it or take it offline.
func (p *workersPage) Actions() []*Action {
	list := []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open the worker and its runs", Group: GroupMove,
			Hint: 1, Run: func([]string) error {
				w, ok := p.under()
				if !ok {
					return errNothingUnder
				}
				return p.app.pushView("worker", w.GetWorkerId())
			}},
		{Name: "all", Keys: []string{"a"}, Short: "all or online",
			Help: "show or hide offline workers", Group: GroupView, Hint: 10,
			Run: func([]string) error {
				p.online = !p.online
				if p.online {
					p.items.Only(isThere)
				} else {
					p.items.Only(nil)
				}
				return nil
			}},
	}
	return append(list, p.app.workerActions(func() []*kagziv1.Worker { return targetsOf(&p.listPage) })...)
}

func isThere(w *kagziv1.Worker) bool {
	return w.GetStatus() != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE
}

// workerPage shows one worker, the runs that it holds, and the last ones that ended on it.
type workerPage struct {
	about
	workerID    string
	item        *model.Item[*kagziv1.Worker]
	held, ended *model.Collection[*kagziv1.Workflow]
}

func openWorker(a *App, args []string) (page, error) {
	id := args[0]
	p := &workerPage{workerID: id, item: model.NewWorker(a.link, id), held: model.NewHeldRuns(a.link, id),
		ended: model.NewFinishedBy(a.link, id)}
	columns := slices.Clone(tables.RunColumns)
	for i, c := range columns {
		if c.ID == "worker" {
			columns[i].Priority = 4 // each row has this worker
		}
	}
	p.about = about{
		app: a, facts: p.workerFacts, id: func() string { return id },
		whole: func() proto.Message {
			if !p.item.Loaded() {
				return nil
			}
			return p.item.Value()
		},
		pairs: func() []render.Pair { return render.WorkerPairs(p.item.Value(), a.clock.View()) },
		facets: []*facet{
			a.runsFacet("Holds now", "No runs held.", columns, p.held, a.tables.Run),
			a.runsFacet("Ended here", "No runs ended here.", columns, p.ended, a.tables.Run),
		},
	}
	return p, nil
}

func (p *workerPage) Name() string   { return "worker" }
func (p *workerPage) Crumb() string  { return "worker " + p.workerID }
func (p *workerPage) Title() string  { return "Worker " + p.workerID }
func (p *workerPage) Failure() error { return p.item.Err() }

// Status shows the state of the worker.
func (p *workerPage) Status() string {
	if !p.item.Loaded() {
		return ""
	}
	return p.app.look.Cell(theme.OfWorker(p.item.Value().GetStatus())).Text
}

func (p *workerPage) Show() {
	p.item.Show()
	p.held.Show()
	p.ended.Show()
}

func (p *workerPage) Hide() {
	p.item.Hide()
	p.held.Hide()
	p.ended.Hide()
}

func (p *workerPage) Close() {
	p.item.Close()
	p.held.Close()
	p.ended.Close()
}

func (p *workerPage) Refresh() {
	p.item.Refresh()
	p.held.Refresh()
	p.ended.Refresh()
}

// Pace is one second while a run is in its first minute.
func (p *workerPage) Pace() time.Duration {
	for _, r := range p.held.All() {
		if r.GetStartedAt() != nil && p.app.now().Sub(r.GetStartedAt().AsTime()) < time.Minute {
			return time.Second
		}
	}
	return slowPace
}

// Banner says that the worker is silent, or that it drains.
func (p *workerPage) Banner() string {
	w := p.item.Value()
	if w == nil {
		return ""
	}
	if w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_DRAINING {
		return fmt.Sprintf("draining: %s, and it gets no new ones",
			several(p.held.Len(), "1 run is left", "runs are left"))
	}
	return p.app.silentWorker([]*kagziv1.Worker{w})
}

// workerFacts returns the most wanted facts about a worker.
func (p *workerPage) workerFacts() []fact {
	a, w := p.app, p.item.Value()
	text := func(label, text string) fact { return fact{label: label, cell: render.Cell{Text: text}} }
	wide := func(label, text string) fact { return fact{label: label, cell: render.Cell{Text: text}, wide: true} }
	failed := fact{label: "failed", cell: render.Cell{Text: format.Number(w.GetTotalFailed())}}
	if w.GetTotalFailed() > 0 {
		failed.cell = render.Cell{Text: fmt.Sprintf(
			"%s (%s)", format.Number(w.GetTotalFailed()),
			share(w.GetTotalFailed(), w.GetTotalCompleted()+w.GetTotalFailed())), Style: render.Bad}
	}
	facts := []fact{
		{label: "status", cell: a.look.Cell(theme.OfWorker(w.GetStatus()))},
		text("load", a.tables.Load(int(w.GetActiveWorkflowCount()), int(w.GetMaxConcurrent()))),
		text("heartbeat", a.clock.Show(w.GetLastHeartbeatAt())),
		text("completed", format.Number(w.GetTotalCompleted())), failed,
		text("since", a.clock.Show(w.GetRegisteredAt())),
		text("version", w.GetVersion()), text("host", w.GetHostname()), text("process", strconv.Itoa(int(w.GetPid()))),
		text("platform", w.GetPlatform()), text("sdk", render.SDK(w)), text("build", w.GetBuildId()),
	}
	if s := w.GetStats(); s != nil {
		facts = append(facts, text("cpu", fmt.Sprintf("%.0f%%", s.GetCpuPercent())),
			text("memory", render.MeasuredBytes(s.GetMemoryBytes())),
			text("disk free", render.MeasuredBytes(s.GetDiskAvailableBytes())),
			text("mean run", render.MeasuredTime(time.Duration(s.GetAverageRunMs()*float64(time.Millisecond)))))
	}
	if w.GetDeregisteredAt() != nil {
		facts = append(facts, text(strings.ToLower(render.Gone(w)), a.clock.Show(w.GetDeregisteredAt())))
	}
	return plainFacts(append(facts,
		wide("queues", strings.Join(tables.QueuesOf(w), ", ")), wide("types", strings.Join(w.GetWorkflowTypes(), ", ")),
		wide("limits", limits(w)),
		wide("labels", render.KeyValues(w.GetLabels())), wide("can", render.KeyValues(w.GetCapabilities())),
	))
}

// share returns a part of a whole in percent.
func share(part, whole int64) string {
	percent := float64(part) * 100 / float64(max(whole, 1))
	if percent > 0 && percent < 10 {
		return fmt.Sprintf("%.1f%%", percent)
	}
	return fmt.Sprintf("%.0f%%", percent)
}

// limits returns the concurrency limits of the worker and of its queue.
func limits(w *kagziv1.Worker) string {
	parts := []string{several(int(w.GetMaxConcurrent()), "1 run here", "runs here")}
	if w.QueueConcurrencyLimit != nil {
		parts = append(parts, fmt.Sprintf("%d in the queue", w.GetQueueConcurrencyLimit()))
	}
	for _, c := range w.GetWorkflowTypeConcurrency() {
		parts = append(parts, fmt.Sprintf("%d of type %s", c.GetMaxConcurrent(), c.GetWorkflowType()))
	}
	return strings.Join(parts, ", ")
}

// Actions open a run, switch facets, and drain the worker or take it offline.
func (p *workerPage) Actions() []*Action {
	list := []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open the run under the cursor", Group: GroupMove, Hint: 1,
			Run: func([]string) error {
				id, ok := p.selected()
				if !ok {
					return errNothingUnder
				}
				return p.app.pushView("run", id)
			}},
	}
	list = append(list, p.moves("Worker "+p.workerID)...)
	return append(list, p.app.workerActions(func() []*kagziv1.Worker {
		if !p.item.Loaded() {
			return nil
		}
		return []*kagziv1.Worker{p.item.Value()}
	})...)
}

// targetsOf returns the items that an action applies to: the marked ones, or the one under the
// cursor.
func targetsOf[T proto.Message](s *listPage[T]) []T {
	var list []T
	for _, id := range s.tab.Targets() {
		if item, ok := s.items.Get(id); ok {
			list = append(list, item)
		}
	}
	return list
}

// naming joins names in a sentence: "a", "a and b", "a, b and 4 more".
func naming(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n <= most:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), n-most+1)
	}
}

// workerActions returns the actions that drain workers or take them offline.
func (a *App) workerActions(targets func() []*kagziv1.Worker) []*Action {
	// act asks about the targets that match holds; none is the error if there are none.
	act := func(holds func(*kagziv1.Worker) bool, none string, do func(ids []string) model.Action,
		lines ...string) func([]string) error {
		return func([]string) error {
			var ids []string
			held := 0
			all := targets()
			for _, w := range all {
				if holds(w) {
					ids = append(ids, w.GetWorkerId())
					held += int(w.GetActiveWorkflowCount())
				}
			}
			switch {
			case len(all) == 0:
				return errNothingUnder
			case len(ids) == 0:
				return errors.New(none)
			}
			what := several(len(ids), "worker ", "workers: ") + naming(ids)
			holding := several(held, "1 run is held now.", "runs are held now.")
			if held == 0 {
				holding = "No runs are held now."
			}
			a.confirm(deed{action: do(ids), what: what, lines: append([]string{holding}, lines...)})
			return nil
		}
	}
	return []*Action{
		{Name: "drain", Keys: []string{"x"}, Help: "drain workers: finish held runs, then exit",
			Group: GroupAct, Changes: true, Hint: 3,
			Run: act(tables.IsOnline, "it is not online", func(ids []string) model.Action {
				return a.scope().Drain(ids)
			},
				model.DrainText)},
		{Name: "offline", Keys: []string{"X"}, Help: "take workers offline; others get their runs",
			Group: GroupAct, Changes: true, Hint: 4,
			Run: act(isThere, "it is offline already", func(ids []string) model.Action {
				return a.scope().ForceOffline(ids)
			},
				"Leases end at once, and other workers get the runs.",
				model.OfflineText)},
	}
}
