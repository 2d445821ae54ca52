package view

import (
	"cmp"
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// queuesPage shows the backlog of each queue, its workers and their free slots.
type queuesPage struct {
	listPage[*kagziv1.QueueDepth]
	workers *model.Collection[*kagziv1.Worker]
}

func openQueues(a *App, _ []string) (page, error) {
	workers := model.NewWorkers(a.link)
	queues := model.NewQueues(a.link)
	row := func(q *kagziv1.QueueDepth) widget.Row {
		return a.tables.Queue(q, model.Oldest(q, queues.AsOf(), a.now()),
			tables.SlotsOf(q.GetTaskQueue(), workers.All()))
	}
	p := &queuesPage{listPage: newListPage(a, "queues", "Queues", tables.QueueColumns, queues, row), workers: workers}
	p.order = map[string]func(a, b *kagziv1.QueueDepth) int{
		"pending":  func(a, b *kagziv1.QueueDepth) int { return cmp.Compare(a.GetPending(), b.GetPending()) },
		"running":  func(a, b *kagziv1.QueueDepth) int { return cmp.Compare(a.GetRunning(), b.GetRunning()) },
		"sleeping": func(a, b *kagziv1.QueueDepth) int { return cmp.Compare(a.GetSleeping(), b.GetSleeping()) },
		"oldest": func(a, b *kagziv1.QueueDepth) int {
			return cmp.Compare(a.GetOldestPendingSeconds(), b.GetOldestPendingSeconds())
		},
		"workers": func(a, b *kagziv1.QueueDepth) int {
			return cmp.Compare(a.GetOnlineWorkers(), b.GetOnlineWorkers())
		},
		"slots": func(a, b *kagziv1.QueueDepth) int {
			return cmp.Compare(tables.SlotsOf(a.GetTaskQueue(), workers.All()).Free(),
				tables.SlotsOf(b.GetTaskQueue(), workers.All()).Free())
		},
	}
	p.empty = func() []widget.Line {
		return []widget.Line{
			widget.TextLine(fmt.Sprintf("No queue in %q has open runs or workers.", a.link.Namespace()), render.Plain),
			widget.TextLine("A queue appears when a run is started in it or a worker polls it.", render.Dim),
		}
	}
	p.tab.Opened = func(id string) { a.done(a.pushView("runs", "queue:"+id)) }
	return p, p.SortBy("queue", false)
}

func (p *queuesPage) Show() {
	p.workers.Show()
	p.listPage.Show()
}

func (p *queuesPage) Hide() {
	p.workers.Hide()
	p.listPage.Hide()
}

func (p *queuesPage) Close() {
	p.workers.Close()
	p.listPage.Close()
}

// Banner names a queue that no worker serves, in the words of the overview.
func (p *queuesPage) Banner() string {
	for _, w := range model.OfQueues(p.items.All()) {
		return w.Text
	}
	return ""
}

// Actions open the runs of a queue.
func (p *queuesPage) Actions() []*Action {
	return []*Action{{Name: "open", Keys: []string{"enter"}, Help: "open the runs of this queue",
		Group: GroupMove, Hint: 1,
		Run: func([]string) error {
			q, ok := p.under()
			if !ok {
				return errNothingUnder
			}
			return p.app.pushView("runs", "queue:"+q.GetTaskQueue())
		}}}
}
