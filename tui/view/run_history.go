package view

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

var historyColumns = []widget.Column{
	{ID: "number", Title: "#", Priority: 2, Right: true},
	{ID: "time", Title: "TIME", Priority: 1},
	{ID: "since", Title: "Δ", Priority: 2, Right: true, Min: 6},
	{ID: "kind", Title: "WHAT", Priority: 1, Min: 14, Max: 26},
	{ID: "subject", Title: "OF", Priority: 1, Flex: true, Min: 10, Max: 40},
	{ID: "detail", Title: "DETAIL", Priority: 2, Flex: true, Min: 14, Max: 120},
}

// historyTab lists what happened to a run, the newest last.
type historyTab struct {
	tabBase
	tab    *widget.Table
	follow bool // the newest is kept under the cursor
	began  bool // it was decided whether to follow
}

// historyRows are the events as rows; their ids are their numbers.
type historyRows struct{ t *historyTab }

func (r historyRows) Len() int { return len(r.t.p.run.Events()) }

func (r historyRows) Find(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n - 1, err == nil && n >= 1 && n <= r.Len()
}

func (r historyRows) Row(i int) (widget.Row, bool) {
	e := r.t.p.run.Events()[i]
	since := ""
	if i > 0 {
		since = "+" + render.Duration(e.Since)
	}
	return widget.Row{ID: strconv.Itoa(e.Sequence), Stale: r.t.p.app.link.State().Down(), Cells: []render.Cell{
		{Text: strconv.Itoa(e.Sequence), Style: render.Dim}, {Text: r.t.p.app.clock.exact(e.At)}, {Text: since, Style: render.Dim},
		{Text: e.Kind, Style: e.Style}, {Text: e.Subject}, {Text: e.Detail, Style: detailStyle(e)},
	}}, true
}

// detailStyle makes what went wrong stand out.
func detailStyle(e model.Event) render.Style {
	if e.Style == render.Bad {
		return render.Bad
	}
	return render.Dim
}

func newHistoryTab(p *runPage) *historyTab {
	t := &historyTab{tabBase: newTabBase(p), tab: widget.NewTable(p.app.theme, historyColumns)}
	t.tab.SetRows(historyRows{t})
	t.tab.SetEmpty([]widget.Line{widget.TextLine("Nothing has happened yet.", render.Dim)})
	t.tab.Opened = func(string) { p.app.done(t.open(nil)) }
	return t
}

func (t *historyTab) Parts() model.Part { return model.Signals | model.Audit }

func (t *historyTab) Draw(c widget.Canvas) {
	if !t.began && t.p.run.Loaded() {
		t.began, t.follow = true, t.unlessOpen() == ""
	}
	if t.refreshed() && t.follow {
		t.tab.Go(len(t.p.run.Events()) - 1)
	}
	t.tab.SetRect(c.X, c.Y, c.W, c.H)
	t.tab.Draw(c.Screen)
}

// Key moves; who goes up does not want to follow any more, and who goes to the end does.
func (t *historyTab) Key(event *tcell.EventKey) bool {
	before := t.tab.Index()
	ok := t.tab.Key(event)
	switch now := t.tab.Index(); {
	case now < before:
		t.follow = false
	case ok && widget.KeyName(event) == "G" || widget.KeyName(event) == "end":
		t.follow = t.unlessOpen() == ""
	}
	return ok
}

func (t *historyTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	before := t.tab.Index()
	consumed, _ := t.tab.MouseHandler()(action, event, func(tview.Primitive) {})
	if t.tab.Index() < before {
		t.follow = false
	}
	return consumed
}

// Status says whether the newest is followed.
func (t *historyTab) Status() string {
	if t.follow {
		return "following"
	}
	return ""
}

// under is the event under the cursor.
func (t *historyTab) under() (model.Event, bool) {
	events := t.p.run.Events()
	if i := t.tab.Index(); i < len(events) {
		return events[i], true
	}
	return model.Event{}, false
}

// Step is that of the event under the cursor.
func (t *historyTab) Step() (string, bool) {
	e, ok := t.under()
	if !ok || e.Step == nil {
		return "", false
	}
	return e.Step.GetName(), true
}

// open shows what came with the event under the cursor: a payload, the attempts of a step, or all of its text.
func (t *historyTab) open([]string) error {
	e, ok := t.under()
	if !ok {
		return errNothingUnder
	}
	a, r := t.p.app, t.p.workflow()
	if e.Step != nil {
		t.p.showAttempts(e.Step.GetName())
		return nil
	}
	if s := t.signal(e); s != nil && len(s.GetPayload().GetData()) > 0 {
		return a.readPayload("signal "+s.GetName(), s.GetPayload())
	}
	switch {
	case e.Kind == "run created" && len(r.GetInput().GetData()) > 0:
		return a.readPayload("input", r.GetInput())
	case e.Kind == "run completed" && len(r.GetOutput().GetData()) > 0:
		return a.readPayload("output", r.GetOutput())
	}
	text := widget.NewLines(a.theme)
	lines := []widget.Line{widget.TextLine(a.clock.exact(e.At)+"  "+e.Kind+"  "+e.Subject, render.Strong), {}}
	if render.Ended(r.GetStatus()) && e.Sequence == len(t.p.run.Events()) && r.GetError() != nil {
		lines = append(lines, errorLines(r.GetError())...)
	} else {
		lines = append(lines, widget.TextLine(e.Detail, render.Plain))
	}
	a.reader(e.Kind, text.SetLines(lines), nil)
	return nil
}

// signal is the signal whose arrival an event is; nil when it is another event.
func (t *historyTab) signal(e model.Event) *kagziv1.Signal {
	for _, s := range t.p.run.Signals() {
		if e.Kind == "signal received" && s.GetName() == e.Subject && s.GetReceivedAt().AsTime().Equal(e.At) {
			return s
		}
	}
	return nil
}

// Actions open events and follow them.
func (t *historyTab) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "what came with this event: a payload, an error, the attempts of a step", Group: GroupMove, Hint: 1, Run: t.open},
		{Name: "follow", Keys: []string{"f"}, Help: "stay with the newest event, or not", Group: GroupView, Hint: 3, Off: t.unlessOpen, Run: simply(func() {
			t.follow = !t.follow
			if t.follow {
				t.tab.Go(len(t.p.run.Events()) - 1)
			}
		})},
		t.p.copyIDAction(), t.p.copyJSONAction(), t.p.showJSONAction(),
	}
}

// unlessOpen refuses to follow what cannot go on.
func (t *historyTab) unlessOpen() string {
	if !endOf(t.p.workflow()).IsZero() {
		return "the run has ended"
	}
	return ""
}

// events are the titles and rows of what happened, with whole times.
func (p *runPage) events() (titles []string, rows [][]string) {
	titles = []string{"#", "TIME", "SINCE", "WHAT", "OF", "DETAIL"}
	for _, e := range p.run.Events() {
		rows = append(rows, []string{
			strconv.Itoa(e.Sequence), e.At.UTC().Format(time.RFC3339Nano), fmt.Sprintf("%.6f", e.Since.Seconds()), e.Kind, e.Subject, e.Detail,
		})
	}
	return titles, rows
}
