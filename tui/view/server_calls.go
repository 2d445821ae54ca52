package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

var methodColumns = []widget.Column{
	{ID: "method", Title: "METHOD", Priority: 1, Flex: true, Min: 16, Max: 40},
	{ID: "service", Title: "SERVICE", Priority: 3},
	{ID: "calls", Title: "CALLS", Priority: 1, Right: true},
	{ID: "rate", Title: "PER S", Priority: 3, Right: true},
	{ID: "errors", Title: "ERRORS", Priority: 1, Right: true},
	{ID: "open", Title: "OPEN", Priority: 2, Right: true},
	{ID: "p50", Title: "P50", Priority: 2, Right: true},
	{ID: "p95", Title: "P95", Priority: 2, Right: true},
}

// methodOrders are how methods are compared by a column.
var methodOrders = map[string]func(s *model.Server, a, b *kagziv1.MethodStats) int{
	"method": func(_ *model.Server, a, b *kagziv1.MethodStats) int {
		return strings.Compare(methodName(a), methodName(b))
	},
	"service": func(_ *model.Server, a, b *kagziv1.MethodStats) int {
		return strings.Compare(a.GetMethod(), b.GetMethod())
	},
	"calls": func(_ *model.Server, a, b *kagziv1.MethodStats) int { return cmp.Compare(a.GetCalls(), b.GetCalls()) },
	"rate": func(s *model.Server, a, b *kagziv1.MethodStats) int {
		return cmp.Compare(s.Rate(a.GetMethod()), s.Rate(b.GetMethod()))
	},
	"errors": func(_ *model.Server, a, b *kagziv1.MethodStats) int { return cmp.Compare(a.GetErrors(), b.GetErrors()) },
	"open": func(_ *model.Server, a, b *kagziv1.MethodStats) int {
		return cmp.Compare(a.GetInFlight(), b.GetInFlight())
	},
	"p50": func(_ *model.Server, a, b *kagziv1.MethodStats) int { return cmp.Compare(a.GetP50Ms(), b.GetP50Ms()) },
	"p95": func(_ *model.Server, a, b *kagziv1.MethodStats) int { return cmp.Compare(a.GetP95Ms(), b.GetP95Ms()) },
}

// methodList is how the methods of the API were used.
type methodList struct {
	list
	server *model.Server
	of     *kagziv1.GetServerInfoResponse // that the rows were sorted of
	sorted []*kagziv1.MethodStats
}

func newMethodList(a *App, s *model.Server) methodList {
	m := methodList{list: newList(a, "calls", methodColumns), server: s}
	m.tab.SetSort("calls", true)
	return m
}

// Draw draws the calls as they stand.
func (m *methodList) Draw(c widget.Canvas) {
	m.sort()
	empty := "Nothing was called yet."
	if withheld(m.server.Info()) {
		empty = "The server does not tell its calls."
	}
	m.tab.SetEmpty([]widget.Line{widget.TextLine(empty, render.Dim)})
	m.tab.SetRows(methodRows{m})
	m.list.Draw(c)
}

// SortBy orders the calls by a column.
func (m *methodList) SortBy(column string, descending bool) error {
	if methodOrders[column] == nil {
		return fmt.Errorf("there is no column %q; there are %s", column, strings.Join(columnIDs(m.tab), ", "))
	}
	m.tab.SetSort(column, descending)
	m.of = nil
	m.sort()
	return nil
}

// sort orders the methods when there are others, or another order is wanted.
func (m *methodList) sort() {
	info := m.server.Info()
	if info == m.of {
		return
	}
	m.of, m.sorted = info, slices.Clone(info.GetMethods())
	column, descending := m.tab.Sort()
	order := methodOrders[column]
	slices.SortStableFunc(m.sorted, func(a, b *kagziv1.MethodStats) int {
		if descending {
			return order(m.server, b, a)
		}
		return order(m.server, a, b)
	})
}

// methodRows are the methods as rows of a table.
type methodRows struct{ *methodList }

func (r methodRows) Len() int { return len(r.sorted) }

func (r methodRows) Find(id string) (int, bool) {
	i := slices.IndexFunc(r.sorted, func(s *kagziv1.MethodStats) bool { return s.GetMethod() == id })
	return i, i >= 0
}

func (r methodRows) Row(i int) (widget.Row, bool) {
	if i < 0 || i >= len(r.sorted) {
		return widget.Row{}, false
	}
	s := r.sorted[i]
	errors := render.Cell{Text: number(s.GetErrors())}
	if s.GetErrors() > 0 {
		errors.Style = render.Bad
	}
	return widget.Row{ID: s.GetMethod(), Stale: r.app.link.State().Down(), Cells: []render.Cell{
		{Text: methodName(s)}, {Text: serviceName(s), Style: render.Dim}, {Text: number(s.GetCalls())}, {Text: rateText(r.server.Rate(s.GetMethod())), Style: render.Dim}, errors,
		{Text: number(int64(s.GetInFlight()))}, {Text: latency(s.GetP50Ms())}, {Text: latency(s.GetP95Ms())},
	}}, true
}

// methodName is a method without its service: "StartWorkflow".
func methodName(s *kagziv1.MethodStats) string {
	return s.GetMethod()[strings.LastIndexByte(s.GetMethod(), '/')+1:]
}

// serviceName is the service of a method, short: "Workflow".
func serviceName(s *kagziv1.MethodStats) string {
	service, _, _ := strings.Cut(s.GetMethod(), "/")
	return strings.TrimSuffix(service, "Service")
}

// latency is how long calls took; streams have none.
func latency(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return milliseconds(ms)
}
