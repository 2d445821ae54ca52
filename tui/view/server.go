package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/serverfacts"
	"github.com/kagzi/kagzi/tui/widget"
)

// serverPage shows what a server reports about itself: health, facts, settings and API calls.
type serverPage struct {
	app    *App
	server *model.Server
	parts  []*serverPart
	focus  int
	calls  methodList
}

// serverPart is one of the parts of the page.
type serverPart struct {
	title      string
	lines      *widget.Lines // nil: the table of calls
	made       func() []widget.Line
	x, y, w, h int // on the screen at the last draw; w is 0 if not drawn
}

func openServer(a *App, _ []string) (page, error) {
	p := &serverPage{app: a, server: model.NewServer(a.link)}
	text := func(title string, made func() []widget.Line) *serverPart {
		l := widget.NewLines(a.theme)
		l.SetWrap(false)
		return &serverPart{title: title, lines: l, made: made}
	}
	p.calls = newMethodList(a, p.server)
	if a.options.File { // a file has neither settings nor calls
		p.parts = []*serverPart{text("Database", func() []widget.Line { return serverfacts.Database(p.server.Info()) })}
		return p, nil
	}
	p.parts = []*serverPart{text("Server", p.facts),
		text("Settings", func() []widget.Line { return serverfacts.Settings(p.server.Info()) }), {title: "Calls"}}
	return p, nil
}

func (p *serverPage) facts() []widget.Line {
	info, options := p.server.Info(), p.app.options
	return serverfacts.Lines(info, serverfacts.Connection{Address: options.Address, Source: options.Source,
		Started: p.app.clock.Full(info.GetStartedAt()), Trip: p.app.link.RoundTrip(), Skew: p.app.link.Skew()})
}

func (p *serverPage) Name() string   { return "server" }
func (p *serverPage) Crumb() string  { return "server" }
func (p *serverPage) Show()          { p.server.Show() }
func (p *serverPage) Hide()          { p.server.Hide() }
func (p *serverPage) Close()         { p.server.Close() }
func (p *serverPage) Refresh()       { p.server.Refresh() }
func (p *serverPage) Failure() error { return p.server.Err() }

// Title shows the address.
func (p *serverPage) Title() string {
	if p.app.options.File {
		return "Database file " + p.app.options.Address
	}
	return "Server at " + p.app.options.Address
}

// Status shows how long the server has been up.
func (p *serverPage) Status() string {
	if at := p.server.Info().GetStartedAt(); at != nil {
		return "up " + format.Up(p.app.now().Sub(at.AsTime()))
	}
	return ""
}

// Banner says that the shown data is old.
func (p *serverPage) Banner() string {
	if err := p.server.Stale(); err != nil && p.server.Info() != nil {
		return "refresh failed: " + sentence(err)
	}
	return ""
}

// Draw draws the server's health and its parts: all of them on a wide screen, or else the selected
// one.
func (p *serverPage) Draw(c widget.Canvas) {
	for _, part := range p.parts {
		part.w = 0
	}
	if p.server.Info() == nil {
		widget.TextLine("Reading …", render.Dim).Draw(c.Part((c.W-9)/2, c.H/3, c.W, 1))
		return
	}
	c = c.Part(1, 0, c.W-2, c.H)
	top := 1
	p.healthLine().Draw(c.Part(0, 0, c.W, 1))
	for _, warning := range p.server.Info().GetWarnings() {
		widget.TextLine(p.app.look.Glyph(theme.Alert)+" "+warning, render.Bad).Draw(c.Part(0, top, c.W, 1))
		top++
	}
	body := c.Part(0, top, c.W, c.H-top)
	switch {
	case len(p.parts) == 1:
		p.drawPart(0, body.Part(0, 1, body.W, body.H-1))
	case c.W >= 160:
		third := c.W / 3
		p.drawPart(0, body.Part(0, 0, third-2, body.H))
		p.drawPart(1, body.Part(third, 0, third-2, body.H))
		p.drawPart(2, body.Part(2*third, 0, c.W-2*third, body.H))
	case c.W >= 100 && c.H >= 20:
		width := c.W * 48 / 100
		upper := body.H - min(len(serverfacts.Settings(p.server.Info()))+1, body.H/2)
		p.drawPart(0, body.Part(0, 0, width, upper-1))
		p.drawPart(1, body.Part(0, upper, width, body.H-upper))
		p.drawPart(2, body.Part(width+2, 0, c.W-width-2, body.H))
	default:
		x := 0
		for i, part := range p.parts {
			x += c.Text(x, 1, part.title, p.titleStyle(i)) + 3
		}
		p.drawBody(p.focus, body.Part(0, 1, body.W, body.H-1))
	}
}

// titleStyle returns the style of a part's title: the selected part stands out.
func (p *serverPage) titleStyle(i int) tcell.Style {
	if i == p.focus {
		return p.app.look.Role(theme.Key).Underline(true)
	}
	return p.app.look.Role(theme.Faint)
}

// drawPart draws a part with its title.
func (p *serverPage) drawPart(i int, c widget.Canvas) {
	c.Cut(0, 0, c.W, p.parts[i].title, p.titleStyle(i))
	p.drawBody(i, c.Part(0, 1, c.W, c.H-1))
}

func (p *serverPage) drawBody(i int, c widget.Canvas) {
	part := p.parts[i]
	part.x, part.y, part.w, part.h = c.X, c.Y, c.W, c.H
	if part.lines == nil {
		p.calls.Draw(c)
		return
	}
	part.lines.SetLines(part.made())
	part.lines.SetRect(c.X, c.Y, c.W, c.H)
	part.lines.Draw(c.Screen)
}

// Key moves in the selected part.
func (p *serverPage) Key(event *tcell.EventKey) bool {
	if part := p.parts[p.focus]; part.lines != nil {
		return part.lines.Key(event)
	}
	return p.calls.Key(event)
}

// Mouse selects the part under it and scrolls in it.
func (p *serverPage) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	x, y := event.Position()
	for i, part := range p.parts {
		if x < part.x || x >= part.x+part.w || y < part.y || y >= part.y+part.h {
			continue
		}
		if action == tview.MouseLeftClick {
			p.focus = i
		}
		if part.lines == nil {
			return p.calls.Mouse(action, event)
		}
		consumed, _ := part.lines.MouseHandler()(action, event, func(tview.Primitive) {})
		return consumed
	}
	return false
}

// Actions switch parts, sort the calls and open the event log; a database file has none.
func (p *serverPage) Actions() []*Action {
	if p.app.options.File {
		return nil
	}
	turn := func(n int) func([]string) error {
		return func([]string) error { p.focus = (p.focus + n + len(p.parts)) % len(p.parts); return nil }
	}
	list := []*Action{
		{Name: "next", Keys: []string{"tab"}, Short: "next part",
			Help: "go to the next part: server, settings, calls", Group: GroupMove, Hint: 1, Run: turn(1)},
		{Name: "previous", Keys: []string{"shift-tab"}, Help: "go to the previous part",
			Group: GroupMove, Run: turn(-1)},
		{Name: "tail", Keys: []string{"l"}, Short: "log", Help: "open the event log", Group: GroupGo,
			Hint: 2, Run: func([]string) error { return p.app.pushView("events") }},
	}
	for _, action := range p.app.tableActions(&p.calls) {
		if slices.Contains([]string{"sort", "sort-left", "sort-right", "reverse"}, action.Name) {
			if action.Name == "sort-right" {
				action.Short, action.Hint = "sort", 3
			}
			list = append(list, action)
		}
	}
	return list
}

// CopyID returns the server's address.
func (p *serverPage) CopyID() string { return p.app.options.Address }

// CopyAll returns all that the server reports, as JSON.
func (p *serverPage) CopyAll() string { return document(p.server.Info()) }

// Rows returns the calls, or the facts of a database file.
func (p *serverPage) Rows() (titles []string, rows [][]string) {
	if !p.app.options.File {
		return p.calls.Rows()
	}
	for _, line := range serverfacts.Database(p.server.Info()) {
		rows = append(rows, []string{strings.TrimSpace(line.Cells[0].Text), line.Cells[1].Text})
	}
	return []string{"FACT", "VALUE"}, rows
}

// JSON returns all that the server reports.
func (p *serverPage) JSON() ([]byte, error) {
	raw, err := render.JSON(render.Documents([]proto.Message{p.server.Info()}), "  ")
	return append(raw, '\n'), err
}

// healthLine shows whether the server is healthy; red if it is not.
func (p *serverPage) healthLine() widget.Line {
	if p.app.options.File {
		return widget.TextLine("Opened read-only. A server may have it open too.", render.Dim)
	}
	health := p.server.Health()
	if p.app.link.State().Down() {
		return widget.TextLine(p.app.look.Glyph(theme.Broken)+" not connected; this is its last report", render.Bad)
	}
	sign, more := theme.Sign{Glyph: theme.Failed, Word: "NOT SERVING", Style: render.Bad}, health.GetMessage()
	if health.GetStatus() == kagziv1.ServingStatus_SERVING_STATUS_SERVING {
		sign = theme.Sign{Glyph: theme.Running, Word: "serving", Style: render.Good}
		if more == "ok" {
			more = ""
		}
	}
	line := widget.Line{Cells: []render.Cell{p.app.look.Cell(sign)}}
	if more != "" {
		line.Cells = append(line.Cells, render.Cell{Text: ": " + more, Style: sign.Style})
	}
	return line
}

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

// methodOrders compares methods by a column.
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

// methodList shows how the methods of the API were called.
type methodList struct {
	list
	server *model.Server
	of     *kagziv1.GetServerInfoResponse // what the rows were sorted from
	sorted []*kagziv1.MethodStats
}

func newMethodList(a *App, s *model.Server) methodList {
	m := methodList{list: newList(a, "calls", methodColumns), server: s}
	m.tab.SetSort("calls", true)
	return m
}

// Draw draws the current calls.
func (m *methodList) Draw(c widget.Canvas) {
	m.sort()
	empty := "No calls yet."
	if serverfacts.Withheld(m.server.Info()) {
		empty = "The server does not report its calls."
	}
	m.tab.SetEmpty([]widget.Line{widget.TextLine(empty, render.Dim)})
	m.tab.SetRows(methodRows{m})
	m.list.Draw(c)
}

// SortBy sorts the calls by a column.
func (m *methodList) SortBy(column string, descending bool) error {
	if methodOrders[column] == nil {
		return fmt.Errorf("there is no column %q; there are %s", column, strings.Join(columnIDs(m.tab), ", "))
	}
	m.tab.SetSort(column, descending)
	m.of = nil
	m.sort()
	return nil
}

// sort sorts the methods again if they or the order changed.
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

// methodRows presents the methods as rows of a table.
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
	errors := render.Cell{Text: format.Number(s.GetErrors())}
	if s.GetErrors() > 0 {
		errors.Style = render.Bad
	}
	return widget.Row{ID: s.GetMethod(), Stale: r.app.link.State().Down(), Cells: []render.Cell{
		{Text: methodName(s)}, {Text: serviceName(s), Style: render.Dim}, {Text: format.Number(s.GetCalls())},
		{Text: format.Rate(r.server.Rate(s.GetMethod())), Style: render.Dim}, errors,
		{Text: format.Number(int64(s.GetInFlight()))}, {Text: latency(s.GetP50Ms())}, {Text: latency(s.GetP95Ms())},
	}}, true
}

// methodName returns a method without its service: "StartWorkflow".
func methodName(s *kagziv1.MethodStats) string {
	return s.GetMethod()[strings.LastIndexByte(s.GetMethod(), '/')+1:]
}

// serviceName returns the short name of a method's service: "Workflow".
func serviceName(s *kagziv1.MethodStats) string {
	service, _, _ := strings.Cut(s.GetMethod(), "/")
	return strings.TrimSuffix(service, "Service")
}

// latency writes a call's latency; streams have none.
func latency(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return format.Milliseconds(ms)
}
