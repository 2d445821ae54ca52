package view

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/eventlist"
	"github.com/kagzi/kagzi/tui/widget"
)

// eventsPage shows the server's event log, newest at the bottom. It follows new events until the
// person moves up.
type eventsPage struct {
	app    *App
	log    *model.EventLog
	filter eventlist.Filter
	rows   eventlist.Rows
	list   eventlist.List
}

func openEvents(a *App, args []string) (page, error) {
	if a.options.File {
		return nil, errors.New("a database file has no events: only a server records them")
	}
	p := &eventsPage{app: a, log: model.NewEventLog(a.link), list: eventlist.List{Follow: true}}
	return p, p.SetFilter(strings.Join(args, " "))
}

func (p *eventsPage) Name() string   { return "events" }
func (p *eventsPage) Crumb() string  { return "events" }
func (p *eventsPage) Show()          { p.log.Show() }
func (p *eventsPage) Hide()          { p.log.Hide() }
func (p *eventsPage) Close()         { p.log.Close() }
func (p *eventsPage) Refresh()       { p.log.Refresh() }
func (p *eventsPage) Failure() error { return p.log.Err() }

// Title shows how many events are kept here and which filter applies.
func (p *eventsPage) Title() string {
	kept := len(p.log.Events())
	if kept == 0 {
		return "Events"
	}
	if p.filter.Text == "" {
		return fmt.Sprintf("Events (%s)", format.Number(int64(kept)))
	}
	return fmt.Sprintf("Events (%s of %s)  %s", format.Number(int64(p.rows.Count)), format.Number(int64(kept)),
		p.filter.Text)
}

// Status shows whether new events are followed, or how many arrived below.
func (p *eventsPage) Status() string {
	switch below := p.list.Below(&p.rows); {
	case p.list.Follow:
		return "following"
	case below > 0:
		return fmt.Sprintf("%s %s below, s follows", p.app.look.Glyph(theme.Down), format.Number(int64(below)))
	}
	return "not following"
}

// Banner shows how many events were lost.
func (p *eventsPage) Banner() string {
	if n := p.log.Missed(); n > 0 {
		return eventlist.Missed(n) + ": the server keeps only the last 2 000"
	}
	return ""
}

// Draw draws the events that fit.
func (p *eventsPage) Draw(c widget.Canvas) {
	p.refill()
	if p.rows.Count == 0 {
		text := "Reading …"
		switch {
		case p.filter.Text != "" && len(p.log.Events()) > 0:
			text = fmt.Sprintf("0 of %d events match  %s   esc clears", len(p.log.Events()), p.filter.Text)
		case p.log.State().Phase == model.Live:
			text = "The server has recorded no events yet."
		}
		line := widget.TextLine(text, render.Dim)
		line.Draw(c.Part(max((c.W-line.Width())/2, 0), c.H/3, c.W, 1))
		return
	}
	p.list.Draw(c, &p.rows, &p.app.clock, p.app.link.State().Down())
}

// refill makes the rows again if events or the filter changed.
func (p *eventsPage) refill() {
	p.rows.Fill(p.log.Events(), p.filter, p.app.link.Namespace(), p.log.State().Phase != model.Live)
}

// Key moves the cursor.
func (p *eventsPage) Key(event *tcell.EventKey) bool {
	p.refill()
	return p.list.Key(widget.KeyName(event), &p.rows)
}

// Mouse scrolls, and opens the event that is clicked.
func (p *eventsPage) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	switch action {
	case tview.MouseScrollUp:
		p.list.Move(-1, &p.rows)
	case tview.MouseScrollDown:
		p.list.Move(1, &p.rows)
	case tview.MouseLeftClick, tview.MouseLeftDoubleClick:
		if _, y := event.Position(); !p.list.Point(y, &p.rows) {
			return false
		}
		if action == tview.MouseLeftDoubleClick {
			p.app.done(p.describe())
		}
	default:
		return false
	}
	return true
}

// under returns the event under the cursor; nil if there is none.
func (p *eventsPage) under() *kagziv1.ServerEvent {
	p.refill()
	if i := p.list.Index(&p.rows); i >= 0 {
		return p.rows.List[i].Event
	}
	return nil
}

// describe shows all details of the event.
func (p *eventsPage) describe() error {
	e := p.under()
	if e == nil {
		return errNothingUnder
	}
	lines := []widget.Line{
		{Cells: []render.Cell{eventlist.LevelCell(p.app.look, e.GetLevel()),
			{Text: "  " + e.GetMessage(), Style: render.Strong}}}, {},
		pairLine("at", p.app.clock.Full(e.GetAt())), pairLine("number", format.Number(e.GetSequence())), {},
	}
	for _, at := range e.GetAttributes() {
		lines = append(lines, pairLine(at.GetKey(), at.GetValue()))
	}
	l := widget.NewLines(p.app.theme).SetLines(lines)
	p.app.reader("Event: "+e.GetMessage(), l, func(key string) bool {
		switch key {
		case "o":
			p.app.lift(p.app.layer())
			p.app.done(p.follow())
		case "Y":
			p.app.done(p.app.copy("event", l.Text()))
		default:
			return false
		}
		return true
	}, hint{"o", "open"}, hint{"Y", "copy"})
	return nil
}

// pairLine returns a name and its value as a line.
func pairLine(name, value string) widget.Line {
	return widget.Line{Cells: []render.Cell{{Text: format.Pad(render.Safe(name), 16), Style: render.Dim},
		{Text: value}}}
}

// errNoSubject refuses to open the subject of an event that has none.
var errNoSubject = errors.New("this event is about no run, worker or schedule")

// follow opens the subject of the event under the cursor.
func (p *eventsPage) follow() error {
	e := p.under()
	if e == nil {
		return errNothingUnder
	}
	kind, id := eventlist.SubjectOf(e)
	switch kind {
	case "run", "worker", "schedule":
		return p.app.pushView(kind, id)
	}
	return errNoSubject
}

func (p *eventsPage) Filter() string        { return p.filter.Text }
func (p *eventsPage) TryFilter(text string) { p.app.done(p.SetFilter(text)) }

// SetFilter shows events whose text contains the filter; "level:warn" sets the lowest level.
func (p *eventsPage) SetFilter(text string) error {
	f, err := eventlist.ParseFilter(text)
	if err == nil {
		p.filter = f
	}
	return err
}

// CompleteFilter completes the levels.
func (p *eventsPage) CompleteFilter(text string) []string {
	i := strings.LastIndexByte(text, ' ') + 1
	var lines []string
	for _, candidate := range beginning([]string{"level:info", "level:warn", "level:error"}, text[i:]) {
		lines = append(lines, text[:i]+candidate)
	}
	return lines
}

// Escape clears the filter.
func (p *eventsPage) Escape() bool {
	if p.filter.Text == "" {
		return false
	}
	p.filter = eventlist.Filter{}
	return true
}

// onlyTrouble is the filter for warnings and errors.
const onlyTrouble = "level:warn"

// Actions open, follow and filter events.
func (p *eventsPage) Actions() []*Action {
	return []*Action{
		{Name: "show", Aliases: []string{"describe"}, Keys: []string{"enter"}, Help: "show all details of the event",
			Group: GroupMove, Hint: 1, Run: func([]string) error { return p.describe() }},
		{Name: "open", Keys: []string{"o"}, Help: "open the run, worker or schedule of the event",
			Group: GroupMove, Hint: 2, Run: func([]string) error { return p.follow() }},
		{Name: "follow", Keys: []string{"s"}, Help: "follow new events on or off", Group: GroupView, Hint: 3,
			Run: func([]string) error { p.list.Follow = !p.list.Follow; return nil }},
		{Name: "wrap", Keys: []string{"w"}, Help: "wrap long events on or off", Group: GroupView,
			Hint: 4, Run: func([]string) error { p.list.Wrap = !p.list.Wrap; return nil }},
		{Name: "failed", Keys: []string{"f"}, Help: "show only warnings and errors, or all", Group: GroupView,
			Run: func([]string) error {
				if p.filter.Text == onlyTrouble {
					return p.SetFilter("")
				}
				return p.SetFilter(onlyTrouble)
			}},
	}
}

// CopyID returns the id of the event's subject, or else its number.
func (p *eventsPage) CopyID() string {
	e := p.under()
	if e == nil {
		return ""
	}
	if _, id := eventlist.SubjectOf(e); id != "" {
		return id
	}
	return format.Number(e.GetSequence())
}

// CopyAll returns the event under the cursor as JSON.
func (p *eventsPage) CopyAll() string { return document(p.under()) }

// Rows returns the events that match the filter.
func (p *eventsPage) Rows() (titles []string, rows [][]string) {
	p.refill()
	for _, r := range p.rows.List {
		if e := r.Event; e != nil {
			rows = append(rows, []string{e.GetAt().AsTime().UTC().Format(time.RFC3339Nano), e.GetLevel(), r.Kind,
				r.Subject, r.Text})
		}
	}
	return []string{"TIME", "LEVEL", "KIND", "SUBJECT", "MESSAGE"}, rows
}

// JSON returns the events that match the filter.
func (p *eventsPage) JSON() ([]byte, error) {
	p.refill()
	var list []proto.Message
	for _, r := range p.rows.List {
		if r.Event != nil {
			list = append(list, r.Event)
		}
	}
	raw, err := render.JSON(render.Documents(list), "  ")
	return append(raw, '\n'), err
}
