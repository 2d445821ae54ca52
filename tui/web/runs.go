package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	pageSize   = 50
	scanSize   = 200   // of a page of the server, when the page matches runs itself
	scanMost   = 2000  // runs read for one page then
	countShown = 10000 // higher counts are shown as this and +
)

// runColumn is a column of the list of runs.
type runColumn struct {
	id, title string
	usual     bool // shown unless others are chosen
	right     bool
	cell      func(p *page, r *kagziv1.Workflow) g.Node
}

var runColumns = []runColumn{
	{"status", "Status", true, false, func(_ *page, r *kagziv1.Workflow) g.Node { return sign(theme.OfRun(r)) }},
	{"type", "Type", true, false, func(p *page, r *kagziv1.Workflow) g.Node {
		return h.A(h.Href(p.runURL(r.GetRunId(), "")), cut(r.GetWorkflowType(), 48))
	}},
	{"id", "Id", true, false, func(_ *page, r *kagziv1.Workflow) g.Node {
		if r.GetExternalId() != "" && r.GetScheduleId() == "" {
			return cut(r.GetExternalId(), 36)
		}
		return h.Span(h.Class("mono"), h.Title(r.GetRunId()), text(format.ShortID(r.GetRunId())))
	}},
	{"note", "Note", true, false, func(p *page, r *kagziv1.Workflow) g.Node {
		class := "dim"
		if r.GetError() != nil && render.Ended(r.GetStatus()) {
			class = classes[render.RunStyle(r.GetStatus())]
		}
		return h.Span(h.Class(class), cut(render.RunNote(r, p.view()), 80))
	}},
	{"steps", "Steps", true, true, func(_ *page, r *kagziv1.Workflow) g.Node { return number(r.GetStepCount()) }},
	{"attempts", "Attempt", false, true, func(_ *page,
		r *kagziv1.Workflow) g.Node {
		return number(int64(r.GetAttempts()))
	}},
	{"age", "Created", true, true, func(p *page, r *kagziv1.Workflow) g.Node { return p.ago(r.GetCreatedAt()) }},
	{"took", "Took", true, true, func(p *page, r *kagziv1.Workflow) g.Node {
		return h.Text(p.clock.Took(r.GetStartedAt(), r.GetFinishedAt()))
	}},
	{"queue", "Queue", true, false, func(_ *page, r *kagziv1.Workflow) g.Node { return cut(r.GetTaskQueue(), 24) }},
	{"worker", "Worker", false, false, func(_ *page, r *kagziv1.Workflow) g.Node { return cut(r.GetWorkerId(), 24) }},
	{"version", "Version", false, false, func(_ *page, r *kagziv1.Workflow) g.Node { return cut(r.GetVersion(), 24) }},
	{"priority", "Priority", false, true, func(_ *page,
		r *kagziv1.Workflow) g.Node {
		return number(int64(r.GetPriority()))
	}},
	{"tags", "Tags", false, false, func(_ *page, r *kagziv1.Workflow) g.Node {
		return cut(format.Tags(r.GetTags()),
			40)
	}},
	{"key", "Key", false, false, func(_ *page, r *kagziv1.Workflow) g.Node { return cut(r.GetConcurrencyKey(), 24) }},
	{"due", "Due", false, true, func(p *page, r *kagziv1.Workflow) g.Node {
		if render.Ended(r.GetStatus()) {
			return nil
		}
		return p.ago(r.GetWakeUpAt())
	}},
	{"run", "Run id", false, false, func(_ *page, r *kagziv1.Workflow) g.Node {
		return h.Span(h.Class("mono"), text(r.GetRunId()))
	}},
}

func number(n int64) g.Node { return h.Text(format.Number(n)) }

// runList is a page of a list of runs.
type runList struct {
	runs       []*kagziv1.Workflow
	prev, next string // tokens
	scanned    int    // runs that were read, if the page matched them itself
	total      int64  // -1: not asked
}

// list reads a page of the runs that a filter selects. What the server cannot match is matched here,
// until the page is full, enough was read, or the time is over.
func (p *page) list(q filter.Query, token string, count bool) (runList, error) {
	list := runList{total: -1}
	request := proto.CloneOf(q.Request)
	request.Page = &kagziv1.PageRequest{PageSize: pageSize, PageToken: token, IncludeTotalCount: count && q.Keep == nil}
	if q.Keep != nil {
		request.Page.PageSize = scanSize
	}
	for {
		answer, err := p.API.ListWorkflows(p.ctx, request)
		if err != nil {
			if status.Code(err) == codes.DeadlineExceeded && list.scanned > 0 {
				return list, nil // the pager goes on from here
			}
			return list, err
		}
		if list.prev == "" && list.scanned == 0 {
			list.prev = answer.GetPage().GetPrevPageToken()
		}
		list.next = answer.GetPage().GetNextPageToken()
		if q.Keep == nil {
			list.runs = answer.GetWorkflows()
			if count {
				list.total = answer.GetPage().GetTotalCount()
			}
			return list, nil
		}
		list.scanned += len(answer.GetWorkflows())
		for _, r := range answer.GetWorkflows() {
			if q.Keep(r) {
				list.runs = append(list.runs, r)
			}
		}
		if len(list.runs) >= pageSize || list.next == "" || list.scanned >= scanMost {
			return list, nil
		}
		request.Page.PageToken = list.next
	}
}

// runs shows the runs that a filter selects, newest first.
func (p *page) runs() error {
	query := p.r.URL.Query()
	typed := query.Get("q")
	short, err := filter.ParseShort(typed)
	var q filter.Query
	at := momentOf(query.Get("at"), p.now)
	if err == nil {
		q, err = short.Compile(p.ns, at)
	}
	var list runList
	if err == nil {
		list, err = p.list(q, query.Get("page"), query.Get("count") != "")
	}
	code, problem := http.StatusOK, ""
	switch status.Code(err) {
	case codes.OK:
	case codes.InvalidArgument, codes.NotFound, codes.DeadlineExceeded, codes.Unknown: // about the filter
		code, problem = http.StatusBadRequest, sentence(err)
	default:
		return err
	}
	here := func(pairs ...string) string {
		usual := []string{"q", typed, "cols", query.Get("cols"), "count", query.Get("count")}
		return p.at("runs", append(pairs, usual...)...)
	}
	link := func(token string) string {
		if token == "" {
			return ""
		}
		stamp := "" // only where the time matters
		if other, err := short.Compile(p.ns, at.Add(-time.Hour)); err == nil && !proto.Equal(other.Request, q.Request) {
			stamp = strconv.FormatInt(at.UnixMilli(), 10)
		}
		return here("page", token, "at", stamp)
	}
	columns := chosenColumns(query.Get("cols"))
	return p.write(code, p.document("Runs", "Runs",
		h.Div(h.Class("head"), h.H1(h.Text("Runs")),
			g.If(p.offers(clients), h.A(h.Class("button"), h.Href(p.at("act", "do", "start")), h.Text("Start a run")))),
		p.filterBox(typed, query.Get("cols"), problem),
		h.Div(h.ID("saved"), h.Class("chips saved"), h.Is("hidden"),
			h.Button(h.ID("save"), h.Type("button"), h.Class("quiet"), h.Text("Save this filter")), h.Ul()),
		p.chips(short, query.Get("cols")),
		g.Iff(problem == "", func() g.Node {
			return h.Div(h.ID("list"), h.Data("live", "list"), h.Data("first",
				strconv.FormatBool(query.Get("page") == "")),
				p.runTable(list.runs, columns, q.Keep == nil, typed),
				h.Div(h.Class("under"), p.counted(list, here), p.columnsForm(typed, columns)),
				pager(link(list.prev), link(list.next)))
		}),
	))
}

// momentOf returns the time of a list's first page, from which its filter counts: a token is for one
// request, and "since:1h" would make another one of each page.
func momentOf(text string, now time.Time) time.Time {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 && ms <= now.UnixMilli() {
		return time.UnixMilli(ms).UTC()
	}
	return now.Truncate(time.Millisecond)
}

// filterBox is the field of the filter, with what is wrong with it.
func (p *page) filterBox(typed, cols, problem string) g.Node {
	return h.Form(h.Method("get"), h.Action(p.at("runs")), h.Class("filter"), h.Role("search"),
		g.If(cols != "", h.Input(h.Type("hidden"), h.Name("cols"), h.Value(cols))),
		h.Label(h.Class("sr"), h.For("q"), h.Text("Filter")),
		h.Input(h.ID("q"), h.Name("q"), h.Type("search"), h.Value(typed), h.AutoComplete("off"),
			h.Attr("spellcheck", "false"), h.Placeholder("status:failed since:24h type:order*"),
			g.If(problem != "", g.Group{h.Aria("invalid", "true"), h.Aria("describedby", "wrong")})),
		h.Button(h.Type("submit"), h.Text("Filter")),
		g.If(problem != "", h.P(h.ID("wrong"), h.Class("problem"), h.Role("alert"), text(problem))),
		h.Details(h.Class("hint"), h.Summary(h.Text("Filters")), h.P(
			h.Text("Terms are joined by blanks, alternatives by commas; "), h.Code(h.Text("!")),
			h.Text(" negates and "),
			h.Code(h.Text("*")),
			h.Text(" stands for any text. "), h.Code(h.Text("status = failed and not (type = x or attempts > 2)")),
			h.Text(" is the long form. Words without a key are searched in types, ids, notes and "+
				"errors. The address of this page holds the filter; saved filters stay in this browser."),
		), h.P(h.Code(h.Text("status: type: queue: id: ext: worker: parent: schedule: since: until: tag.KEY=")))))
}

// statusChips are filters of one click.
var statusChips = []struct{ name, value string }{
	{"All", ""}, {"Open", "open"}, {"Running", "running"}, {"Pending", "pending"}, {"Sleeping", "sleeping"},
	{"Failed", "failed,timed_out"}, {"Completed", "completed"}, {"Cancelled", "cancelled,terminated"},
}

// chips replace the status of the filter and keep the rest. The long form names its status itself.
func (p *page) chips(short filter.Short, cols string) g.Node {
	if short.Long != "" {
		return nil
	}
	now := ""
	if i := slices.IndexFunc(short.Terms, isStatus); i >= 0 {
		now = strings.Join(short.Terms[i].Values, ",")
	}
	rest := filter.Short{Terms: slices.DeleteFunc(slices.Clone(short.Terms), isStatus)}.String()
	return h.Nav(h.Class("chips"), h.Aria("label", "Status"), g.Map(statusChips,
		func(c struct{ name, value string }) g.Node {
			q := rest
			if c.value != "" {
				q = strings.TrimSpace("status:" + c.value + " " + rest)
			}
			return h.A(h.Href(p.at("runs", "q", q, "cols", cols)), g.If(c.value == now,
				h.Aria("current", "true")), h.Text(c.name))
		}))
}

func isStatus(t filter.Term) bool { return t.Key == "status" && !t.Not }

// runTable lists runs, with a box to mark each if there are actions. whole reports that the server can
// select the same runs by the filter.
func (p *page) runTable(runs []*kagziv1.Workflow, columns []runColumn, whole bool, typed string) g.Node {
	if len(runs) == 0 {
		return h.P(h.Class("empty"), h.Text("No runs match."))
	}
	acts := p.offers(clients)
	head := g.Group{}
	if acts {
		head = append(head, h.Th(h.Scope("col"), h.Class("mark"), h.Span(h.Class("sr"), h.Text("Mark")),
			h.Input(h.ID("all"), h.Type("checkbox"),
				h.Is("hidden"), h.Aria("label", "Mark all on this page"))))
	}
	for _, c := range columns {
		head = append(head, h.Th(h.Scope("col"), h.Class(columnClass(c)), h.Text(c.title)))
	}
	body := g.Map(runs, func(r *kagziv1.Workflow) g.Node {
		cells := g.Group{h.Data("key", r.GetRunId())}
		if acts {
			cells = append(cells, h.Td(h.Class("mark"), h.Input(h.Type("checkbox"), h.Name("id"), h.Value(r.GetRunId()),
				h.Aria("label", "Mark "+format.ShortID(r.GetRunId())))))
		}
		for _, c := range columns {
			cells = append(cells, h.Td(h.Class(columnClass(c)), c.cell(p, r)))
		}
		return h.Tr(cells)
	})
	list := h.Div(h.Class("scroll"), h.TabIndex("0"), h.Role("region"), h.Aria("label", "Runs"),
		h.Table(h.Class("rows runs"), h.Caption(h.Class("sr"), h.Text("Runs, newest first")), h.THead(h.Tr(head)),
			h.TBody(body)))
	if !acts {
		return list
	}
	return h.Form(h.Method("get"), h.Action(p.at("act")), list, h.Div(h.Class("bulk"),
		h.Label(h.For("do"), h.Text("With marked runs:")),
		h.Select(h.ID("do"), h.Name("do"), g.Map(p.runActions(), func(a *actionKind) g.Node {
			return h.Option(h.Value(a.name), h.Text(a.title))
		})),
		h.Button(h.Type("submit"), h.Text("Continue…")),
		g.If(whole && p.offers(operators), h.A(h.Href(p.at("bulk", "q", typed)), h.Text("All that match…")))))
}

// columnClass lets narrow windows leave columns out.
func columnClass(c runColumn) string {
	class := "c-" + c.id
	if c.right {
		class += " right"
	}
	return class
}

// counted says how many runs there are, if that was asked.
func (p *page) counted(list runList, here func(...string) string) g.Node {
	switch {
	case list.scanned > 0:
		return h.Span(h.Text("Matched " + format.Number(int64(len(list.runs))) + " of " +
			format.Number(int64(list.scanned)) + " runs that were read."))
	case list.total > countShown:
		return h.Span(h.Text(format.Number(countShown) + "+ runs"))
	case list.total >= 0:
		return h.Span(h.Text(format.Number(list.total) + " runs"))
	}
	return h.A(h.Href(here("count", "1")), h.Text("Count"))
}

// chosenColumns returns the columns of a list of ids; none: the usual ones.
func chosenColumns(ids string) []runColumn {
	chosen := strings.Split(ids, ",")
	var list []runColumn
	for _, c := range runColumns {
		if slices.Contains(chosen, c.id) {
			list = append(list, c)
		}
	}
	if len(list) > 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(runColumns), func(c runColumn) bool { return !c.usual })
}

// columnsForm chooses columns. Its boxes become one parameter on the way.
func (p *page) columnsForm(typed string, shown []runColumn) g.Node {
	return h.Details(h.Class("columns"), h.Summary(h.Text("Columns")),
		h.Ul(g.Map(runColumns, func(c runColumn) g.Node {
			var ids []string
			on := slices.ContainsFunc(shown, func(s runColumn) bool { return s.id == c.id })
			for _, each := range runColumns {
				visible := slices.ContainsFunc(shown, func(s runColumn) bool { return s.id == each.id })
				if visible != (each.id == c.id) {
					ids = append(ids, each.id)
				}
			}
			mark := "Show "
			if on {
				mark = "Hide "
			}
			return h.Li(h.A(h.Href(p.at("runs", "q", typed, "cols", strings.Join(ids, ","))), h.Text(mark+c.title)))
		})))
}

// only returns the filter that selects one value of a key.
func only(key, value string) string { return filter.Term{Key: key, Values: []string{value}}.String() }

// workflow reads the run of the path.
func (p *page) workflow(ctx context.Context, id string) (*kagziv1.Workflow, error) {
	answer, err := p.API.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: p.ns, RunId: id})
	return answer.GetWorkflow(), err
}
