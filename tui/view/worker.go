package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// workerPage shows one worker: what it is, the runs that it holds now, and the last ones that ended on it.
type workerPage struct {
	about
	workerID    string
	item        *model.Item[*kagziv1.Worker]
	held, ended *model.Collection[*kagziv1.Workflow]
}

func openWorker(a *App, args []string) (page, error) {
	id := args[0]
	p := &workerPage{workerID: id, item: model.NewWorker(a.link, id), held: model.NewHeldRuns(a.link, id), ended: model.NewFinishedBy(a.link, id)}
	columns := slices.Clone(runColumns)
	for i, c := range columns {
		if c.ID == "worker" {
			columns[i].Priority = 4 // it is this one in each row
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
		pairs: func() []render.Pair { return render.WorkerPairs(p.item.Value(), a.clock.view()) },
		facets: []*facet{
			a.runsFacet("Holds now", "It holds no run.", columns, p.held, a.runRow),
			a.runsFacet("Ended here", "No run has ended here.", columns, p.ended, a.runRow),
		},
	}
	return p, nil
}

func (p *workerPage) Name() string   { return "worker" }
func (p *workerPage) Crumb() string  { return "worker " + p.workerID }
func (p *workerPage) Title() string  { return "Worker " + p.workerID }
func (p *workerPage) Failure() error { return p.item.Err() }

// Status is how the worker stands.
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

// Pace follows runs in their first minute by the second.
func (p *workerPage) Pace() time.Duration {
	for _, r := range p.held.All() {
		if r.GetStartedAt() != nil && p.app.now().Sub(r.GetStartedAt().AsTime()) < time.Minute {
			return time.Second
		}
	}
	return slowPace
}

// Banner says that the worker is not heard from, or why it holds what it holds.
func (p *workerPage) Banner() string {
	w := p.item.Value()
	if w == nil {
		return ""
	}
	if w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_DRAINING {
		return fmt.Sprintf("it drains: %s, and nothing new is handed to it", several(p.held.Len(), "one run is left", "runs are left"))
	}
	return p.app.silentWorker([]*kagziv1.Worker{w})
}

// workerFacts are what one wants to know of a worker first.
func (p *workerPage) workerFacts() []fact {
	a, w := p.app, p.item.Value()
	text := func(label, text string) fact { return fact{label: label, cell: render.Cell{Text: text}} }
	wide := func(label, text string) fact { return fact{label: label, cell: render.Cell{Text: text}, wide: true} }
	failed := fact{label: "failed", cell: render.Cell{Text: number(w.GetTotalFailed())}}
	if w.GetTotalFailed() > 0 {
		failed.cell = render.Cell{Text: fmt.Sprintf("%s (%s)", number(w.GetTotalFailed()), share(w.GetTotalFailed(), w.GetTotalCompleted()+w.GetTotalFailed())), Style: render.Bad}
	}
	facts := []fact{
		{label: "status", cell: a.look.Cell(theme.OfWorker(w.GetStatus()))},
		text("load", a.load(int(w.GetActiveWorkflowCount()), int(w.GetMaxConcurrent()))),
		text("heartbeat", a.clock.show(w.GetLastHeartbeatAt())),
		text("completed", number(w.GetTotalCompleted())), failed,
		text("since", a.clock.show(w.GetRegisteredAt())),
		text("version", w.GetVersion()), text("host", w.GetHostname()), text("process", strconv.Itoa(int(w.GetPid()))), text("platform", w.GetPlatform()),
	}
	if s := w.GetStats(); s != nil {
		facts = append(facts, text("cpu", fmt.Sprintf("%.0f%%", s.GetCpuPercent())), text("memory", render.MeasuredBytes(s.GetMemoryBytes())),
			text("disk free", render.MeasuredBytes(s.GetDiskAvailableBytes())),
			text("mean run", render.MeasuredTime(time.Duration(s.GetAverageRunMs()*float64(time.Millisecond)))))
	}
	if w.GetDeregisteredAt() != nil {
		facts = append(facts, text(strings.ToLower(render.Gone(w)), a.clock.show(w.GetDeregisteredAt())))
	}
	return plainFacts(append(facts,
		wide("queues", strings.Join(queuesOf(w), ", ")), wide("types", strings.Join(w.GetWorkflowTypes(), ", ")), wide("limits", limits(w)),
		wide("labels", render.KeyValues(w.GetLabels())), wide("can", render.KeyValues(w.GetCapabilities())),
	))
}

// share is a part of a whole in percent.
func share(part, whole int64) string {
	percent := float64(part) * 100 / float64(max(whole, 1))
	if percent > 0 && percent < 10 {
		return fmt.Sprintf("%.1f%%", percent)
	}
	return fmt.Sprintf("%.0f%%", percent)
}

// limits are how many runs may be worked on at a time: by this worker, and by all workers of its queue.
func limits(w *kagziv1.Worker) string {
	parts := []string{several(int(w.GetMaxConcurrent()), "one run here", "runs here")}
	if w.QueueConcurrencyLimit != nil {
		parts = append(parts, fmt.Sprintf("%d in the queue", w.GetQueueConcurrencyLimit()))
	}
	for _, c := range w.GetWorkflowTypeConcurrency() {
		parts = append(parts, fmt.Sprintf("%d of type %s", c.GetMaxConcurrent(), c.GetWorkflowType()))
	}
	return strings.Join(parts, ", ")
}

// queuesOf are all queues of a worker, the first the one that it prefers.
func queuesOf(w *kagziv1.Worker) []string {
	if len(w.GetTaskQueues()) > 0 {
		return w.GetTaskQueues()
	}
	return []string{w.GetTaskQueue()}
}

// Actions are to open a run, to go through the page, and to take the worker off.
func (p *workerPage) Actions() []*Action {
	list := []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "the run under the cursor", Group: GroupMove, Hint: 1, Run: func([]string) error {
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
