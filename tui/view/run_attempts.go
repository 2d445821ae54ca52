package view

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

const (
	attemptsMost = 100      // listed of one step
	payloadRows  = 12       // of a payload in the list
	payloadBytes = 16 << 10 // larger payloads show only their size
)

// attemptPanel lists all attempts of a step, latest first, and follows them.
type attemptPanel struct {
	*widget.Lines
	p    *runPage
	name string
}

// Draw lists the attempts as they are now.
func (a *attemptPanel) Draw(screen tcell.Screen) {
	a.SetLines(a.p.attemptLines(a.name))
	a.Lines.Draw(screen)
}

// showAttempts shows the attempts of a step over the page.
func (p *runPage) showAttempts(name string) {
	panel := &attemptPanel{Lines: widget.NewLines(p.app.theme), p: p, name: name}
	p.app.reader(name+"   o output  i input  / search  esc back", panel, func(key string) bool {
		switch key {
		case "/":
			p.app.done(p.app.searching(panel)(nil))
		case "o":
			p.app.done(p.readPayload(name, "output", (*kagziv1.Step).GetOutput))
		case "i":
			p.app.done(p.readPayload(name, "input", (*kagziv1.Step).GetInput))
		case "y":
			p.app.done(p.app.copy("attempts", panel.Text()))
		default:
			return false
		}
		return true
	})
}

// openStep shows the attempts of the step under the cursor.
func (p *runPage) openStep([]string) error {
	name, ok := p.SelectedStep()
	if !ok {
		return errNothingUnder
	}
	p.showAttempts(name)
	return nil
}

// readPayload shows a payload of the latest attempt that has one over the page.
func (p *runPage) readPayload(name, what string, of func(*kagziv1.Step) *kagziv1.Payload) error {
	for _, s := range slices.Backward(p.run.Attempts(name)) {
		if len(of(s).GetData()) > 0 {
			return p.app.readPayload(name+": "+what, of(s))
		}
	}
	return fmt.Errorf("no attempt of %q has an %s", name, what)
}

// readPayload shows a payload over the page.
func (a *App) readPayload(title string, payload *kagziv1.Payload) error {
	if len(payload.GetData()) == 0 {
		return errors.New("there is no payload")
	}
	d := widget.NewDocument(a.theme)
	d.SetPayload(format.PayloadKind(payload), payload.GetData(), payloadType(payload))
	a.readDocument(title, d)
	return nil
}

// attemptLines returns all attempts of a step as lines.
func (p *runPage) attemptLines(name string) []widget.Line {
	attempts := p.run.Attempts(name)
	if len(attempts) == 0 {
		return []widget.Line{widget.TextLine("This step no longer exists.", render.Dim)}
	}
	var lines []widget.Line
	for i, s := range slices.Backward(attempts) {
		if len(attempts)-i > attemptsMost {
			lines = append(lines, widget.Line{}, widget.TextLine(
				fmt.Sprintf("and %d earlier attempts", i+1), render.Dim))
			break
		}
		if len(lines) > 0 {
			lines = append(lines, widget.Line{})
		}
		var later *kagziv1.ErrorDetail
		if i+1 < len(attempts) {
			later = attempts[i+1].GetError()
		}
		lines = append(lines, p.attempt(s, later)...)
	}
	return lines
}

// attempt returns one attempt as lines: status, times, origin, error and output. later is the error
// shown above it.
func (p *runPage) attempt(s *kagziv1.Step, later *kagziv1.ErrorDetail) []widget.Line {
	head := p.app.look.Cell(theme.OfAttempt(s, !endOf(p.workflow()).IsZero()))
	lines := []widget.Line{{Cells: []render.Cell{
		{Text: "Attempt " + strconv.Itoa(int(s.GetAttemptNumber())) + "  ", Style: render.Strong},
		{Text: head.Text, Style: head.Style},
		{Text: "  " + strings.Join(p.attemptFacts(s), "  ")},
	}}}
	if s.GetOverriddenBy() != "" {
		lines = append(lines, format.Indented(widget.TextLine(
			"set by "+s.GetOverriddenBy()+": "+s.GetOverrideReason(), render.Strong)))
	}
	if s.GetError() != nil && sameError(s.GetError(), later) {
		lines = append(lines, format.Indented(widget.TextLine("the same error", render.Dim)))
	} else {
		for _, line := range format.ErrorLines(s.GetError()) {
			lines = append(lines, format.Indented(line))
		}
	}
	if s.GetRetryAt() != nil && s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING {
		lines = append(lines, format.Indented(widget.TextLine(
			"retried "+p.app.clock.Show(s.GetRetryAt()), render.Waiting)))
	}
	lines = append(lines, payloadLines("input", s.GetInput())...)
	return append(lines, payloadLines("output", s.GetOutput())...)
}

// attemptFacts returns when, how long and where an attempt ran, and what it waits for.
func (p *runPage) attemptFacts(s *kagziv1.Step) []string {
	began := s.GetStartedAt()
	if began == nil {
		began = s.GetCreatedAt()
	}
	facts := []string{p.app.clock.Exact(began.AsTime())}
	if s.GetFinishedAt() != nil || endOf(p.workflow()).IsZero() {
		facts = append(facts, "took "+p.app.clock.Took(began, s.GetFinishedAt()))
	}
	if s.GetKind() != kagziv1.StepKind_STEP_KIND_FUNCTION {
		facts = append(facts, render.StepKind(s.GetKind()))
	}
	if s.GetWorkerId() != "" {
		facts = append(facts, "on "+s.GetWorkerId())
	}
	if s.GetOutput() == nil && s.GetError() == nil {
		if result := render.StepResult(s, p.app.clock.View()); result != "" {
			facts = append(facts, result)
		}
	}
	if s.GetTimeoutAt() != nil && s.GetFinishedAt() == nil {
		facts = append(facts, "times out "+p.app.clock.Show(s.GetTimeoutAt()))
	}
	return facts
}

// payloadLines returns a payload's name and first rows; nothing if there is none.
func payloadLines(name string, payload *kagziv1.Payload) []widget.Line {
	if len(payload.GetData()) == 0 {
		return nil
	}
	title := format.Indented(widget.TextLine(name+"  "+render.Bytes(int64(len(payload.GetData()))), render.Dim))
	if len(payload.GetData()) > payloadBytes {
		return []widget.Line{title, format.Indented(format.Indented(widget.TextLine(name[:1]+" shows it", render.Dim)))}
	}
	rows := render.PayloadLines(payload, -1)
	lines := []widget.Line{title}
	for i, row := range rows {
		if i == payloadRows && len(rows) > payloadRows+1 {
			return append(lines, format.Indented(format.Indented(
				widget.TextLine(fmt.Sprintf("%d more lines; %s shows them", len(rows)-i, name[:1]), render.Dim))))
		}
		lines = append(lines, format.Indented(format.Indented(widget.TextLine(row, render.Plain))))
	}
	return lines
}

// textTab is a tab with lines of text to read.
type textTab struct {
	tabBase
	text *widget.Lines
	work func(width int) []widget.Line // makes the lines
	wide int                           // width the lines were made for
}

func newTextTab(p *runPage) textTab {
	return textTab{tabBase: newTabBase(p), text: widget.NewLines(p.app.theme)}
}

func (t *textTab) Draw(c widget.Canvas) {
	if t.outdated() || c.W != t.wide {
		t.wide = c.W
		t.text.SetLines(t.work(c.W - 2))
	}
	t.text.SetRect(c.X+1, c.Y, c.W-2, c.H)
	t.text.Draw(c.Screen)
}

func (t *textTab) Key(event *tcell.EventKey) bool { return t.text.Key(event) }

func (t *textTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := t.text.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// Status shows the position among the search results.
func (t *textTab) Status() string {
	if current, of := t.text.Found(); of > 0 {
		return fmt.Sprintf("%d of %d found", current, of)
	}
	return ""
}

func (t *textTab) Actions() []*Action {
	return []*Action{
		{Name: "search", Keys: []string{"/"}, Help: "search; n and N go to the next and previous hit",
			Group: GroupMove, Hint: 3,
			Run: t.p.app.searching(t.text)},
		{Name: "next-found", Keys: []string{"n"}, Help: "go to the next hit", Group: GroupMove,
			Run: simply(t.text.Next)},
		{Name: "previous-found", Keys: []string{"N"}, Help: "go to the previous hit", Group: GroupMove,
			Run: simply(t.text.Prev)},
		{Name: "wrap", Keys: []string{"w"}, Help: "wrap long lines on or off", Group: GroupView,
			Hint: 4, Run: simply(func() { t.text.SetWrap(!t.text.Wrap()) })},
		{Name: "copy-text", Keys: []string{"y"}, Short: "copy", Help: "copy all of this text", Group: GroupView,
			Hint: 5, Run: func([]string) error { return t.p.app.copy("text", t.text.Text()) }},
		t.p.copyIDAction(), t.p.copyJSONAction(),
	}
}

// errorsMost limits how many failed attempts are shown.
const errorsMost = 20

// errorTab shows the errors of the run and of the attempts of its steps.
type errorTab struct{ textTab }

func newErrorTab(p *runPage) *errorTab {
	t := &errorTab{newTextTab(p)}
	t.work = t.lines
	return t
}

func (t *errorTab) lines(int) []widget.Line {
	r := t.p.workflow()
	var lines []widget.Line
	if r.GetError() != nil {
		lines = append(lines, widget.TextLine("The run "+runEnding(r)+" "+t.p.app.clock.Show(r.GetFinishedAt()),
			render.Strong), widget.Line{})
		if !render.Ended(r.GetStatus()) {
			lines[0] = widget.TextLine("The last attempt of the run failed", render.Strong)
		}
		lines = append(lines, format.ErrorLines(r.GetError())...)
	}
	failures := failedAttempts(t.p.run.Steps())
	for i, s := range failures {
		if i == errorsMost {
			lines = append(lines, widget.Line{}, widget.TextLine(
				fmt.Sprintf("and %d failed attempts before these", len(failures)-i), render.Dim))
			break
		}
		if len(lines) > 0 {
			lines = append(lines, widget.Line{})
		}
		lines = append(lines, t.attemptHead(s))
		above := r.GetError()
		if i > 0 {
			above = failures[i-1].GetError()
		}
		if sameError(s.GetError(), above) {
			lines = append(lines, format.Indented(widget.TextLine("the same error", render.Dim)))
			continue
		}
		for _, line := range format.ErrorLines(s.GetError()) {
			lines = append(lines, format.Indented(line))
		}
	}
	if lines == nil {
		return t.nothing(r)
	}
	return lines
}

// attemptHead returns which attempt failed, when and where.
func (t *errorTab) attemptHead(s *kagziv1.Step) widget.Line {
	what := fmt.Sprintf("attempt %d failed", s.GetAttemptNumber())
	if !s.GetIsLatest() || s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING {
		what += " and was retried"
		if s.GetIsLatest() {
			what = fmt.Sprintf("attempt %d failed and is retried %s", s.GetAttemptNumber(),
				t.p.app.clock.Show(s.GetRetryAt()))
		}
	}
	when := "  "
	if s.GetFinishedAt() != nil {
		when += t.p.app.clock.Exact(s.GetFinishedAt().AsTime())
	}
	if s.GetWorkerId() != "" {
		when += "  on " + s.GetWorkerId()
	}
	return widget.Line{Cells: []render.Cell{{Text: s.GetName(), Style: render.Strong}, {Text: "  " + what},
		{Text: when, Style: render.Dim}}}
}

// failedAttempts returns the failed attempts, latest first.
func failedAttempts(steps []*kagziv1.Step) []*kagziv1.Step {
	var failed []*kagziv1.Step
	for _, s := range steps {
		if s.GetError() != nil {
			failed = append(failed, s)
		}
	}
	slices.SortStableFunc(failed, func(a, b *kagziv1.Step) int {
		return b.GetFinishedAt().AsTime().Compare(a.GetFinishedAt().AsTime())
	})
	return failed
}

func sameError(a, b *kagziv1.ErrorDetail) bool {
	return b != nil && a.GetType() == b.GetType() && a.GetMessage() == b.GetMessage() && a.GetStack() == b.GetStack()
}

// nothing returns the text for a run without errors.
func (t *errorTab) nothing(r *kagziv1.Workflow) []widget.Line {
	text := "Nothing has gone wrong so far."
	if render.Ended(r.GetStatus()) {
		text = "Nothing went wrong, and no step was retried."
	}
	return []widget.Line{{}, widget.TextLine(text, render.Good)}
}
