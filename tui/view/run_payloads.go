package view

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// payloadKind says how large a payload is and, where it is not plain JSON, what it is said to be.
func payloadKind(p *kagziv1.Payload) string {
	if label, ok := render.Encrypted(p); ok {
		return label
	}
	kind := render.Bytes(int64(len(p.GetData())))
	if t := p.GetMetadata()["content-type"]; t != "" && t != "application/json" {
		kind += ", " + t
	}
	if codec := p.GetMetadata()["encoding"]; codec != "" {
		kind += `, encoded by "` + codec + `": shown as it is stored`
	}
	return kind
}

// payloadType is what a document takes a payload for.
func payloadType(p *kagziv1.Payload) string {
	if p.GetMetadata()["encoding"] != "" {
		return "application/octet-stream"
	}
	return p.GetMetadata()["content-type"]
}

const (
	sideBySide = 116 // cells that two payloads beside each other need
	bothRows   = 13  // rows that two payloads below each other need
)

// payloadsTab shows what a run was given and what came of it.
type payloadsTab struct {
	tabBase
	documents [2]*widget.Document
	shown     [2]*kagziv1.Payload
	focus     int // 0: the input
	split     int // how they were drawn: cells or rows of the first; 0: one at a time
	beside    bool
}

func newPayloadsTab(p *runPage) *payloadsTab {
	return &payloadsTab{tabBase: newTabBase(p), documents: [2]*widget.Document{widget.NewDocument(p.app.theme), widget.NewDocument(p.app.theme)}}
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
		c.Right(c.W/2, 0, c.W-c.W/2-1, [2]string{"i ", "o "}[other]+payloadNames[other]+"  "+render.Bytes(int64(len(t.shown[other].GetData()))), c.Theme.Role(theme.Faint))
	}
}

var payloadNames = [2]string{"Input", "Output"}

// load shows a payload when it is not the same as before. The model makes new messages of what has not changed.
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
	c.Cut(0, 0, c.W, mark+name+"  "+payloadKind(payload), style)
	if _, hidden := render.Encrypted(payload); hidden {
		drawMiddle(c.Part(0, 1, c.W, c.H-1), widget.TextLine("Only workers and clients that have the key can read it.", render.Dim))
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
		return "It was started without an input."
	case !render.Ended(r.GetStatus()):
		return "No output yet: it has not ended."
	case r.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		return "It completed without an output."
	}
	return "No output: it " + runEnding(r) + "."
}

// runEnding is how a run ended that did not complete, as part of a sentence.
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

// Status says what has the keys.
func (t *payloadsTab) Status() string {
	if t.document().Wrap() {
		return "wrapped"
	}
	return ""
}

// Actions choose the payload, search and fold in it, and copy from it.
func (t *payloadsTab) Actions() []*Action {
	on := func(f func(*widget.Document)) func([]string) error {
		return func([]string) error { f(t.document()); return nil }
	}
	return []*Action{
		{Name: "input", Keys: []string{"i", "left"}, Help: "to the input", Group: GroupMove, Hint: 3, Run: simply(func() { t.focus = 0 })},
		{Name: "output", Keys: []string{"o", "right"}, Help: "to the output", Group: GroupMove, Hint: 4, Run: simply(func() { t.focus = 1 })},
		{Name: "search", Keys: []string{"/"}, Help: "find a text; n and N go on", Group: GroupMove, Hint: 5, Run: func([]string) error { return t.p.app.searching(t.document())(nil) }},
		{Name: "next-found", Keys: []string{"n"}, Help: "to the next place that was found", Group: GroupMove, Run: on((*widget.Document).Next)},
		{Name: "previous-found", Keys: []string{"N"}, Help: "to the place before", Group: GroupMove, Run: on((*widget.Document).Prev)},
		{Name: "fold", Keys: []string{"enter", "space"}, Help: "fold what is under the cursor, or open it", Group: GroupMove, Hint: 6, Run: on((*widget.Document).Toggle)},
		{Name: "fold-all", Keys: []string{"["}, Help: "fold everything", Group: GroupView, Run: on((*widget.Document).FoldAll)},
		{Name: "unfold-all", Keys: []string{"]"}, Help: "open everything", Group: GroupView, Run: on((*widget.Document).UnfoldAll)},
		{Name: "wrap", Keys: []string{"w"}, Help: "break long rows, or cut them", Group: GroupView, Run: on(func(d *widget.Document) { d.SetWrap(!d.Wrap()) })},
		{Name: "load-all", Keys: []string{"L"}, Help: "show all of a large payload", Group: GroupView, Run: on((*widget.Document).LoadAll)},
		{Name: "copy", Keys: []string{"y"}, Help: "copy the value under the cursor", Group: GroupView, Hint: 7, Run: func([]string) error { return t.p.app.copy("value", t.document().CopyValue()) }},
		{Name: "copy-path", Keys: []string{"Y"}, Help: "copy the path of what is under the cursor", Group: GroupView, Run: func([]string) error { return t.p.app.copy("path", t.document().CopyPath()) }},
	}
}
