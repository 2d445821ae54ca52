package web

import (
	"net/http"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// listed is how many items a page of a short list has.
const listed = 200

// pageRequest asks for the page of a list that the address names.
func (p *page) pageRequest() *kagziv1.PageRequest {
	return &kagziv1.PageRequest{PageSize: listed, PageToken: p.r.URL.Query().Get("page")}
}

// pages links to the pages around one of a list at an address of the namespace.
func (p *page) pages(info *kagziv1.PageInfo, url func(token string) string) g.Node {
	link := func(token string) string {
		if token == "" {
			return ""
		}
		return url(token)
	}
	prev, next := link(info.GetPrevPageToken()), link(info.GetNextPageToken())
	if prev == "" && next == "" {
		return nil
	}
	return h.Nav(h.Class("pager"), h.Aria("label", "Pages of the list"),
		g.If(prev != "", h.A(h.Rel("prev"), h.Href(prev), h.Text("← Previous"))),
		g.If(next != "", h.A(h.Rel("next"), h.Href(next), h.Text("Next →"))))
}

// queueTable lists queues, each with a link to its open runs.
func (p *page) queueTable(queues []*kagziv1.QueueDepth) table {
	return table{Table: render.QueuesTable(queues), caption: "Queues",
		empty: "No queue has open runs or workers.",
		key:   func(row int) string { return queues[row].GetTaskQueue() },
		link: func(row, column int) string {
			if column == 0 {
				return p.at("runs", "q", "status:open "+only("queue", queues[row].GetTaskQueue()))
			}
			return ""
		}}
}

// queues lists the queues of the namespace.
func (p *page) queues() error {
	answer, err := p.API.GetQueueDepth(p.ctx, &kagziv1.GetQueueDepthRequest{Namespace: p.ns, Page: p.pageRequest()})
	if err != nil {
		return err
	}
	return p.write(http.StatusOK, p.document("Queues", "Queues", h.H1(h.Text("Queues")),
		h.Div(h.ID("list"), h.Data("live", "all"), p.queueTable(answer.GetQueues()).node(), p.pages(answer.GetPage(),
			func(token string) string { return p.at("queues", "page", token) }))))
}

// workers lists the workers of the namespace.
func (p *page) workers() error {
	answer, err := p.API.ListWorkers(p.ctx, &kagziv1.ListWorkersRequest{Namespace: p.ns, Page: p.pageRequest()})
	if err != nil {
		return err
	}
	workers := answer.GetWorkers()
	t := table{Table: render.WorkersTable(workers, p.view()), caption: "Workers", empty: "No worker has registered.",
		key: func(row int) string { return workers[row].GetWorkerId() },
		link: func(row, column int) string {
			if column == 0 {
				return p.workerURL(workers[row].GetWorkerId())
			}
			return ""
		}}
	return p.write(http.StatusOK, p.document("Workers", "Workers", h.H1(h.Text("Workers")),
		h.Div(h.ID("list"), h.Data("live", "workers"), t.node(), p.pages(answer.GetPage(),
			func(token string) string { return p.at("workers", "page", token) }))))
}

// worker shows one worker with the runs that it holds.
func (p *page) worker() error {
	id := p.r.PathValue("worker")
	answer, err := p.API.GetWorker(p.ctx, &kagziv1.GetWorkerRequest{WorkerId: id})
	if err != nil {
		return err
	}
	w := answer.GetWorker()
	runs, err := p.API.ListWorkflows(p.ctx, &kagziv1.ListWorkflowsRequest{Namespace: p.ns, WorkerId: &id,
		Page: &kagziv1.PageRequest{PageSize: pageSize}})
	if err != nil {
		return err
	}
	online := w.GetStatus() != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE
	return p.write(http.StatusOK, p.document("Worker "+id, "Workers",
		h.P(h.Class("crumbs"), h.A(h.Href(p.at("workers")), h.Data("up", ""), h.Text("Workers"))),
		h.Div(h.ID("worker"), h.Data("live", "workers"),
			h.Div(h.Class("head"), h.H1(cut(id, 80), h.Text(" "), sign(theme.OfWorker(w.GetStatus()))),
				g.If(p.offers(operators) && online, h.Div(h.Class("buttons"),
					h.A(h.Class("button"), h.Href(p.at("act", "do", "drain", "id", id)), h.Text("Drain")),
					h.A(h.Class("button"), h.Href(p.at("act", "do", "offline", "id", id)), h.Text("Force offline"))))),
			facts(render.WorkerPairs(w, p.view()), nil),
			section("runs", "Its latest runs", p.plainRuns(runs.GetWorkflows())))))
}

// plainRuns lists runs without boxes.
func (p *page) plainRuns(runs []*kagziv1.Workflow) g.Node {
	t := table{caption: "Runs", empty: "There are none.",
		Table: render.Table{Columns: []render.Column{{Title: "STATUS"},
			{Title: "TYPE"}, {Title: "ID"}, {Title: "NOTE"}, {Title: "CREATED", Right: true}, {Title: "TOOK",
				Right: true}}},
		key: func(row int) string { return runs[row].GetRunId() }}
	for _, r := range runs {
		t.Rows = append(t.Rows, []render.Cell{signCell(theme.OfRun(r)),
			render.Text(r.GetWorkflowType()), {Text: format.ShortID(r.GetRunId())},
			{Text: render.Truncate(render.Safe(render.RunNote(r, p.view())), 90), Style: render.Dim},
			{Text: p.clock.Show(r.GetCreatedAt())}, {Text: p.clock.Took(r.GetStartedAt(), r.GetFinishedAt())}})
	}
	t.link = func(row, column int) string {
		if column == 1 {
			return p.runURL(runs[row].GetRunId(), "")
		}
		return ""
	}
	return t.node()
}
