package view

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
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

// historyTab lists the events of a run, newest last.
type historyTab struct {
	tabBase
	tab    *widget.Table
	follow bool // keep the newest event under the cursor
	began  bool // follow was decided
}

// historyRows presents the events as rows; their ids are their numbers.
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
		{Text: strconv.Itoa(e.Sequence), Style: render.Dim}, {Text: r.t.p.app.clock.Exact(e.At)},
		{Text: since, Style: render.Dim},
		{Text: e.Kind, Style: e.Style}, {Text: e.Subject}, {Text: e.Detail, Style: detailStyle(e)},
	}}, true
}

// detailStyle highlights failures.
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

// Key moves the cursor. Moving up stops following, and moving to the end resumes it.
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

// Status shows whether new events are followed.
func (t *historyTab) Status() string {
	if t.follow {
		return "following"
	}
	return ""
}

// under returns the event under the cursor.
func (t *historyTab) under() (model.Event, bool) {
	events := t.p.run.Events()
	if i := t.tab.Index(); i < len(events) {
		return events[i], true
	}
	return model.Event{}, false
}

// Step returns the step of the event under the cursor.
func (t *historyTab) Step() (string, bool) {
	e, ok := t.under()
	if !ok || e.Step == nil {
		return "", false
	}
	return e.Step.GetName(), true
}

// open shows what belongs to the event under the cursor: a payload, the attempts of a step, or its
// full text.
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
	lines := []widget.Line{widget.TextLine(a.clock.Exact(e.At)+"  "+e.Kind+"  "+e.Subject, render.Strong), {}}
	if render.Ended(r.GetStatus()) && e.Sequence == len(t.p.run.Events()) && r.GetError() != nil {
		lines = append(lines, format.ErrorLines(r.GetError())...)
	} else {
		lines = append(lines, widget.TextLine(e.Detail, render.Plain))
	}
	a.reader(e.Kind, text.SetLines(lines), nil)
	return nil
}

// signal returns the signal that an event reports; nil for other events.
func (t *historyTab) signal(e model.Event) *kagziv1.Signal {
	for _, s := range t.p.run.Signals() {
		if e.Kind == "signal received" && s.GetName() == e.Subject && s.GetReceivedAt().AsTime().Equal(e.At) {
			return s
		}
	}
	return nil
}

// Actions open and follow events.
func (t *historyTab) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open the payload, error or attempts of the event",
			Group: GroupMove, Hint: 1, Run: t.open},
		{Name: "follow", Keys: []string{"f"}, Help: "follow new events on or off", Group: GroupView, Hint: 3,
			Off: t.unlessOpen, Run: simply(func() {
				t.follow = !t.follow
				if t.follow {
					t.tab.Go(len(t.p.run.Events()) - 1)
				}
			})},
		t.p.copyIDAction(), t.p.copyJSONAction(), t.p.showJSONAction(),
	}
}

// unlessOpen refuses to follow an ended run.
func (t *historyTab) unlessOpen() string {
	if !endOf(t.p.workflow()).IsZero() {
		return "the run has ended"
	}
	return ""
}

// events returns the titles and rows of the events, with full times.
func (p *runPage) events() (titles []string, rows [][]string) {
	titles = []string{"#", "TIME", "SINCE", "WHAT", "OF", "DETAIL"}
	for _, e := range p.run.Events() {
		rows = append(rows, []string{
			strconv.Itoa(e.Sequence), e.At.UTC().Format(time.RFC3339Nano), fmt.Sprintf("%.6f", e.Since.Seconds()),
			e.Kind, e.Subject, e.Detail,
		})
	}
	return titles, rows
}

// payloadType returns the content type that a document shows a payload as.
func payloadType(p *kagziv1.Payload) string {
	if p.GetMetadata()["encoding"] != "" {
		return "application/octet-stream"
	}
	return p.GetMetadata()["content-type"]
}

const (
	sideBySide = 116 // least cells for two payloads side by side
	bothRows   = 13  // least rows for two payloads one above the other
)

// payloadsTab shows the input and the output of a run.
type payloadsTab struct {
	tabBase
	documents [2]*widget.Document
	shown     [2]*kagziv1.Payload
	focus     int // 0: the input, 1: the output
	split     int // cells or rows of the first at the last draw; 0: one at a time
	beside    bool
}

func newPayloadsTab(p *runPage) *payloadsTab {
	return &payloadsTab{tabBase: newTabBase(p),
		documents: [2]*widget.Document{widget.NewDocument(p.app.theme), widget.NewDocument(p.app.theme)}}
}

func (t *payloadsTab) Draw(c widget.Canvas) {
	if t.refreshed() {
		t.load(0, t.p.workflow().GetInput())
		t.load(1, t.p.workflow().GetOutput())
	}
	t.split, t.beside = 0, c.W >= sideBySide
	switch {
	case t.beside:
		t.split = c.W / 2
		t.drawOne(c.Part(0, 0, t.split-1, c.H), 0)
		for y := range c.H {
			c.Text(t.split-1, y, c.Theme.Glyph(theme.Bar), c.Theme.Role(theme.Border))
		}
		t.drawOne(c.Part(t.split+1, 0, c.W-t.split-1, c.H), 1)
	case c.H >= bothRows:
		t.split = c.H / 2
		t.drawOne(c.Part(0, 0, c.W, t.split), 0)
		t.drawOne(c.Part(0, t.split, c.W, c.H-t.split), 1)
	default:
		t.drawOne(c, t.focus)
		other := 1 - t.focus
		c.Right(c.W/2, 0, c.W-c.W/2-1, [2]string{"i ", "o "}[other]+payloadNames[other]+"  "+
			render.Bytes(int64(len(t.shown[other].GetData()))), c.Theme.Role(theme.Faint))
	}
}

var payloadNames = [2]string{"Input", "Output"}

// load shows a payload if it changed. The model makes new messages even for unchanged payloads.
func (t *payloadsTab) load(i int, payload *kagziv1.Payload) {
	if t.shown[i] != nil && string(t.shown[i].GetData()) == string(payload.GetData()) {
		return
	}
	t.shown[i] = payload
	t.documents[i].SetPayload("", payload.GetData(), payloadType(payload))
}

// drawOne draws one payload below its name.
func (t *payloadsTab) drawOne(c widget.Canvas, i int) {
	name := payloadNames[i]
	style, mark := c.Theme.Role(theme.Faint), "  "
	if i == t.focus {
		style, mark = c.Theme.Role(theme.Title), c.Theme.Glyph(theme.Right)+" "
	}
	payload := t.shown[i]
	if len(payload.GetData()) == 0 {
		c.Cut(0, 0, c.W, mark+name, style)
		drawMiddle(c.Part(0, 1, c.W, c.H-1), widget.TextLine(t.missing(i), render.Dim))
		return
	}
	c.Cut(0, 0, c.W, mark+name+"  "+format.PayloadKind(payload), style)
	if _, hidden := render.Encrypted(payload); hidden {
		drawMiddle(c.Part(0, 1, c.W, c.H-1), widget.TextLine(
			"Only workers and clients that have the key can read it.", render.Dim))
		return
	}
	d := t.documents[i]
	d.SetRect(c.X+1, c.Y+1, c.W-1, c.H-1)
	d.Draw(c.Screen)
}

// missing says why there is no payload.
func (t *payloadsTab) missing(i int) string {
	r := t.p.workflow()
	switch {
	case i == 0:
		return "The run was started without an input."
	case !render.Ended(r.GetStatus()):
		return "No output yet: the run has not ended."
	case r.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		return "The run completed without an output."
	}
	return "No output: the run " + runEnding(r) + "."
}

// runEnding returns how a run that did not complete ended, as part of a sentence.
func runEnding(r *kagziv1.Workflow) string {
	switch r.GetStatus() {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED:
		return "was " + theme.OfStatus(r.GetStatus()).Word
	}
	return theme.OfStatus(r.GetStatus()).Word
}

func (t *payloadsTab) document() *widget.Document { return t.documents[t.focus] }

func (t *payloadsTab) Key(event *tcell.EventKey) bool { return t.document().Key(event) }

func (t *payloadsTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	for i, d := range t.documents {
		if !d.InRect(event.Position()) || t.split == 0 && i != t.focus {
			continue
		}
		if action == tview.MouseLeftClick {
			t.focus = i
		}
		consumed, _ := d.MouseHandler()(action, event, func(tview.Primitive) {})
		return consumed
	}
	return false
}

func (t *payloadsTab) Parts() model.Part { return 0 }

// Status shows which payload has the focus.
func (t *payloadsTab) Status() string {
	if t.document().Wrap() {
		return "wrapped"
	}
	return ""
}

// Actions select a payload, search and fold it, and copy from it.
func (t *payloadsTab) Actions() []*Action {
	on := func(f func(*widget.Document)) func([]string) error {
		return func([]string) error { f(t.document()); return nil }
	}
	return []*Action{
		{Name: "input", Keys: []string{"i", "left"}, Help: "select the input", Group: GroupMove, Hint: 3,
			Run: simply(func() { t.focus = 0 })},
		{Name: "output", Keys: []string{"o", "right"}, Help: "select the output", Group: GroupMove, Hint: 4,
			Run: simply(func() { t.focus = 1 })},
		{Name: "search", Keys: []string{"/"}, Help: "search; n and N go to the next and previous hit",
			Group: GroupMove, Hint: 5,
			Run: func([]string) error { return t.p.app.searching(t.document())(nil) }},
		{Name: "next-found", Keys: []string{"n"}, Help: "go to the next hit", Group: GroupMove,
			Run: on((*widget.Document).Next)},
		{Name: "previous-found", Keys: []string{"N"}, Help: "go to the previous hit", Group: GroupMove,
			Run: on((*widget.Document).Prev)},
		{Name: "fold", Keys: []string{"enter", "space"}, Help: "fold or unfold the entry under the cursor",
			Group: GroupMove, Hint: 6, Run: on((*widget.Document).Toggle)},
		{Name: "fold-all", Keys: []string{"["}, Help: "fold everything", Group: GroupView,
			Run: on((*widget.Document).FoldAll)},
		{Name: "unfold-all", Keys: []string{"]"}, Help: "unfold everything", Group: GroupView,
			Run: on((*widget.Document).UnfoldAll)},
		{Name: "wrap", Keys: []string{"w"}, Help: "wrap long rows on or off", Group: GroupView,
			Run: on(func(d *widget.Document) { d.SetWrap(!d.Wrap()) })},
		{Name: "load-all", Keys: []string{"L"}, Help: "show all of a large payload", Group: GroupView,
			Run: on((*widget.Document).LoadAll)},
		{Name: "copy", Keys: []string{"y"}, Help: "copy the value under the cursor", Group: GroupView, Hint: 7,
			Run: func([]string) error { return t.p.app.copy("value", t.document().CopyValue()) }},
		{Name: "copy-path", Keys: []string{"Y"}, Help: "copy the path under the cursor", Group: GroupView,
			Run: func([]string) error { return t.p.app.copy("path", t.document().CopyPath()) }},
	}
}
