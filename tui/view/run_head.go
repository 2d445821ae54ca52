package view

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// headFact is one fact in the header of a run.
type headFact struct {
	label, value string
}

// drawHead draws the status with its reason, then the facts, and returns the number of rows.
func (p *runPage) drawHead(c widget.Canvas) int {
	r := p.workflow()
	sign := headSign(r)
	word := c.Theme.Glyph(sign.Glyph) + " " + sign.Word
	said, style, details := p.why(r)
	hang := render.Width(word) + 3
	sentence := format.Wrapped(render.Safe(said), max(c.W-hang-1, 1))
	facts := placeHead(p.facts(r), c.W-1)
	most := headMost(c.H)
	first, more, grid := shareRows(most, len(sentence), len(details), facts.rows)

	c.Text(1, 0, word, c.Theme.Style(sign.Style).Bold(true))
	drawWrapped(c.Part(hang, 0, c.W-hang, first), sentence, c.Theme, style)
	for i, line := range details[:more] {
		c.Cut(hang, first+i, c.W-hang-1, line, c.Theme.Role(theme.Faint))
	}
	facts.draw(c.Part(1, first+more, c.W-1, grid))
	return first + more + grid
}

// headSign returns the sign of a run; a run with a pending cancellation has its own.
func headSign(r *kagziv1.Workflow) theme.Sign {
	if r.GetCancelRequestedAt() != nil && !render.Ended(r.GetStatus()) {
		return theme.Sign{Glyph: theme.Cancelled, Word: "cancelling", Style: render.Stopped}
	}
	return theme.OfRun(r)
}

// headMost limits the rows of the header on a page of h rows: the tab below matters more.
func headMost(h int) int {
	switch {
	case h < 14:
		return 3
	case h < 24:
		return 6
	}
	return 9
}

// shareRows divides rows among the sentence, its details and the facts, given what each needs. The
// sentence always gets one.
func shareRows(most, sentence, details, facts int) (first, more, grid int) {
	first = max(min(sentence, most/3), 1)
	more = min(details, most/4)
	grid = min(facts, most-first-more)
	if left := most - first - more - grid; left > 0 {
		n := min(left, max(sentence-first, 0))
		first, left = first+n, left-n
		more += min(left, details-more)
	}
	return first, more, grid
}

// why returns the text after the status: the error, what the run waits for, or its note; and
// further details.
func (p *runPage) why(r *kagziv1.Workflow) (sentence string, style render.Style, details []string) {
	e := p.run.Explanation()
	switch {
	case render.Ended(r.GetStatus()) && r.GetError().GetType() == theme.OfRun(r).Word:
		// a person ended it: show the reason
		return r.GetError().GetMessage(), theme.OfRun(r).Style, nil
	case render.Ended(r.GetStatus()) && r.GetError() != nil:
		return render.ErrorLine(r.GetError()), theme.OfRun(r).Style, nil
	case render.Ended(r.GetStatus()):
		return r.GetNote(), render.Plain, nil
	case e != nil && moves(e) && r.GetNote() != "":
		return r.GetNote(), render.Plain, []string{e.GetSummary()}
	case e != nil && moves(e):
		return e.GetSummary(), render.Plain, nil
	case e != nil:
		return e.GetSummary(), render.Waiting, e.GetDetails()
	}
	return r.GetNote(), render.Plain, nil
}

// moves reports whether nothing blocks the run.
func moves(e *kagziv1.ExplainWorkflowResponse) bool {
	switch e.GetBlocker() {
	case kagziv1.ExplainWorkflowResponse_BLOCKER_UNSPECIFIED, kagziv1.ExplainWorkflowResponse_BLOCKER_NONE:
		return true
	}
	return false
}

// drawWrapped draws rows; if they do not fit, the last one ends with an ellipsis.
func drawWrapped(c widget.Canvas, rows []string, look *theme.Theme, style render.Style) {
	for i, row := range rows[:min(len(rows), c.H)] {
		if i == c.H-1 && i < len(rows)-1 {
			row = strings.Join(rows[i:], "")
		}
		c.Cut(0, i, c.W, row, look.Style(style))
	}
}

// facts returns the facts of a run, most wanted first.
func (p *runPage) facts(r *kagziv1.Workflow) []headFact {
	a, list := p.app, []headFact(nil)
	add := func(label, value string) {
		if value != "" {
			list = append(list, headFact{label, value})
		}
	}
	add("queue", r.GetTaskQueue())
	add("worker", r.GetWorkerId())
	switch {
	case r.GetStartedAt() != nil:
		add("started", a.clock.Show(r.GetStartedAt()))
		add("took", a.clock.Took(r.GetStartedAt(), r.GetFinishedAt()))
	default:
		add("created", a.clock.Show(r.GetCreatedAt()))
	}
	add("attempt", strconv.Itoa(int(r.GetAttempts())))
	if n := r.GetStepRetries(); n > 0 {
		add("retries", fmt.Sprintf("%d of steps", n))
	}
	add("steps", p.stepCount(r))
	if r.GetWakeUpAt() != nil && !render.Ended(r.GetStatus()) {
		add("due", a.clock.Show(r.GetWakeUpAt()))
	}
	if r.GetCancelRequestedAt() != nil && !render.Ended(r.GetStatus()) {
		add("cancel", "asked "+a.clock.Show(r.GetCancelRequestedAt())+", ends at the latest "+
			a.clock.Show(r.GetCancelGraceUntil()))
	}
	add("ext id", r.GetExternalId())
	add("run id", r.GetRunId())
	parent := format.ShortID(r.GetParentRunId())
	if parent != "" && render.OnItsOwn(r) {
		parent += ", which does not wait"
	}
	add("parent", parent)
	add("retry of", format.ShortID(r.GetRetriedFromRunId()))
	add("continued from", format.ShortID(r.GetContinuedFromRunId()))
	add("continued as", format.ShortID(r.GetContinuedAsRunId()))
	add("handles", format.ShortID(r.GetFailedRunId()))
	add("schedule", format.ShortID(r.GetScheduleId()))
	add("tags", format.Tags(r.GetTags()))
	if render.Ended(r.GetStatus()) && r.GetError() != nil {
		add("note", r.GetNote())
	}
	if !render.Ended(r.GetStatus()) && r.GetDeadlineAt() != nil {
		add("deadline", a.clock.Show(r.GetDeadlineAt()))
	}
	if r.GetPinned() {
		add("kept", "pinned")
	}
	add("version", r.GetVersion())
	if r.GetPriority() != 0 {
		add("priority", strconv.Itoa(int(r.GetPriority())))
	}
	if r.GetConcurrencyScope() == kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN {
		add("key", render.Concurrency(r))
	} else {
		add("key", r.GetConcurrencyKey())
	}
	return list
}

// stepCount returns the number of steps, and how many are open or failed.
func (p *runPage) stepCount(r *kagziv1.Workflow) string {
	lanes := p.run.Lanes()
	if len(lanes) == 0 {
		return format.Number(r.GetStepCount())
	}
	return format.Number(int64(len(lanes))) + laneCounts(lanes, render.Ended(r.GetStatus()))
}

func laneCounts(lanes []model.Lane, ended bool) string {
	open, failed, cut := 0, 0, 0
	for i := range lanes {
		if lanes[i].Open && !ended {
			open++
		}
		switch {
		case render.CutShort(lanes[i].Step):
			cut++
		case lanes[i].Failed:
			failed++
		}
	}
	text := ""
	if open > 0 {
		text += fmt.Sprintf(", %d open", open)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	if cut > 0 {
		text += fmt.Sprintf(", %d stopped", cut)
	}
	return text
}

// headGrid lays facts out in columns of one width, so nothing moves when a value changes.
type headGrid struct {
	places []headPlace
	rows   int
	label  int // cells of the labels
}

type headPlace struct {
	headFact
	row, x, w int
}

const (
	headCells    = 26 // least cells of a column if three fit
	headLabel    = 8  // cells of a label in such columns
	leastColumns = 3  // columns
)

// placeHead assigns facts to columns in order. A fact that is wider than its column takes the next
// ones too.
func placeHead(facts []headFact, width int) headGrid {
	columns := max(width/headCells, leastColumns)
	each := width / columns
	g := headGrid{rows: 1}
	if each >= headCells-1 {
		g.label = headLabel
	}
	row, column := 0, 0
	for _, f := range facts {
		need := max(g.label, len(f.label)) + 1 + render.Width(render.Safe(f.value)) + 2
		span := min(max((need+each-1)/each, 1), columns)
		if column+span > columns {
			row, column = row+1, 0
		}
		g.places = append(g.places, headPlace{headFact: f, row: row, x: column * each, w: span * each})
		if column += span; column == columns {
			row, column = row+1, 0
		}
	}
	if n := len(g.places); n > 0 {
		g.rows = g.places[n-1].row + 1
	}
	return g
}

func (g headGrid) draw(c widget.Canvas) {
	for _, f := range g.places {
		if f.row >= c.H {
			return
		}
		c.Text(f.x, f.row, f.label, c.Theme.Role(theme.Faint))
		x := f.x + max(g.label, len(f.label)) + 1
		c.Cut(x, f.row, f.x+f.w-x-2, f.value, c.Theme.Role(theme.Text))
	}
}

// factsTab shows all details of a run.
type factsTab struct{ textTab }

func newFactsTab(p *runPage) *factsTab {
	t := &factsTab{newTextTab(p)}
	t.work = t.lines
	return t
}

func (t *factsTab) Parts() model.Part { return model.Signals | model.Audit }

// lines returns the run's properties, then one section per kind of detail.
func (t *factsTab) lines(width int) []widget.Line {
	view := t.p.app.clock.View()
	lines := pairLines(render.RunPairs(t.p.workflow(), view))
	section := func(title string, body []widget.Line) {
		if len(body) > 0 {
			lines = append(append(lines, widget.Line{}, widget.TextLine(title, render.Strong)), body...)
		}
	}
	if e := t.p.run.Explanation(); e != nil {
		body := []widget.Line{widget.TextLine("  "+e.GetSummary(), render.Plain)}
		for _, detail := range e.GetDetails() {
			body = append(body, widget.TextLine("  "+detail, render.Dim))
		}
		for _, line := range pairLines(render.ExplainPairs(e, view)) {
			body = append(body, format.Indented(line))
		}
		for _, line := range render.StackLines(e) {
			body = append(body, widget.TextLine("  "+line, render.Dim))
		}
		section("Explanation", body)
	}
	section("Actions by people", tableLines(render.AuditTable(t.p.run.Audit(), view), width))
	section("Overridden steps", tableLines(render.OverridesTable(t.p.run.Steps(), view), width))
	section("Signals", tableLines(render.SignalsTable(t.p.run.Signals(), view), width))
	return lines
}

// pairLines lays pairs out in two columns.
func pairLines(pairs []render.Pair) []widget.Line {
	wide := 0
	for _, p := range pairs {
		wide = max(wide, render.Width(p.Label))
	}
	var lines []widget.Line
	for _, p := range pairs {
		label := format.Pad(p.Label, wide+2)
		for i, text := range p.Lines {
			if i > 0 {
				label = strings.Repeat(" ", wide+2)
			}
			lines = append(lines, widget.Line{Cells: []render.Cell{
				{Text: label, Style: render.Dim}, {Text: text, Style: p.Style}}})
		}
	}
	return lines
}

// tableLines draws a table as indented lines of a width; nothing if it has no rows.
func tableLines(t render.Table, width int) []widget.Line {
	if len(t.Rows) == 0 {
		return nil
	}
	var lines []widget.Line
	for i, text := range t.Lines(render.Layout{Width: max(width-2, 1)}) {
		style := render.Plain
		if i == 0 {
			style = render.Dim
		}
		lines = append(lines, format.Indented(widget.TextLine(text, style)))
	}
	return lines
}

// document returns all that was loaded of the run, in the shape that the command line prints.
func (p *runPage) document() render.Object {
	return render.Object{
		{Name: "workflow", Value: render.Document(p.workflow())},
		{Name: "steps", Value: render.Documents(p.run.Steps())},
		{Name: "signals", Value: render.Documents(p.run.Signals())},
		{Name: "audit_events", Value: render.Documents(p.run.Audit())},
	}
}

// Rows returns the events of the run, for a file.
func (p *runPage) Rows() (titles []string, rows [][]string) {
	if p.workflow() == nil {
		return nil, nil
	}
	return p.events()
}

// JSON returns the run with its steps, for a file.
func (p *runPage) JSON() ([]byte, error) {
	if p.workflow() == nil {
		return nil, errNotRead
	}
	raw, err := render.JSON(p.document(), "  ")
	return append(raw, '\n'), err
}

// selected returns what to copy: the latest attempt of the step under the cursor, or the run.
func (p *runPage) selected() (id string, m proto.Message) {
	if name, ok := p.SelectedStep(); ok {
		if attempts := p.run.Attempts(name); len(attempts) > 0 {
			last := attempts[len(attempts)-1]
			return last.GetStepId(), last
		}
	}
	return p.run.ID(), p.workflow()
}

func (p *runPage) copyIDAction() *Action {
	return &Action{Name: "copy", Keys: []string{"Y"}, Help: "copy the id of the run", Group: GroupView,
		Run: func([]string) error { return p.app.copy("run id", p.run.ID()) }}
}

func (p *runPage) copyJSONAction() *Action {
	return &Action{Name: "copy-json", Keys: []string{"ctrl-y"},
		Help: "copy the selected step or the run as JSON", Group: GroupView, Run: func([]string) error {
			_, m := p.selected()
			return p.app.copy("JSON", document(m))
		}}
}

func (p *runPage) showJSONAction() *Action {
	return &Action{Name: "json", Keys: []string{"y"}, Help: "show the selected step or the run as JSON",
		Group: GroupView, Run: func([]string) error {
			id, m := p.selected()
			text := document(m)
			if text == "" {
				return fmt.Errorf("%s cannot be shown as JSON", id)
			}
			d := widget.NewDocument(p.app.theme)
			d.SetPayload(id, []byte(text), "application/json")
			p.app.readDocument(id, d)
			return nil
		}}
}
