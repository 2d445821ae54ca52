package view

import (
	"fmt"
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// textTab is a tab that is lines of text to read.
type textTab struct {
	tabBase
	text *widget.Lines
	work func(width int) []widget.Line // makes the lines
	wide int                           // for which they were made
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

// Status says where among what was found one is.
func (t *textTab) Status() string {
	if current, of := t.text.Found(); of > 0 {
		return fmt.Sprintf("%d of %d found", current, of)
	}
	return ""
}

func (t *textTab) Actions() []*Action {
	return []*Action{
		{Name: "search", Keys: []string{"/"}, Help: "find a text; n and N go on", Group: GroupMove, Hint: 3, Run: t.p.app.searching(t.text)},
		{Name: "next-found", Keys: []string{"n"}, Help: "to the next place that was found", Group: GroupMove, Run: simply(t.text.Next)},
		{Name: "previous-found", Keys: []string{"N"}, Help: "to the place before", Group: GroupMove, Run: simply(t.text.Prev)},
		{Name: "wrap", Keys: []string{"w"}, Help: "break long lines, or let them be scrolled", Group: GroupView, Hint: 4, Run: simply(func() { t.text.SetWrap(!t.text.Wrap()) })},
		{Name: "copy-text", Keys: []string{"y"}, Short: "copy", Help: "copy all of this text", Group: GroupView, Hint: 5, Run: func([]string) error { return t.p.app.copy("text", t.text.Text()) }},
		t.p.copyIDAction(), t.p.copyJSONAction(),
	}
}

// errorsMost is how many failed attempts are shown.
const errorsMost = 20

// errorTab shows what went wrong: with the run, and with the attempts of its steps.
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
		lines = append(lines, widget.TextLine("The run "+runEnding(r)+" "+t.p.app.clock.show(r.GetFinishedAt()), render.Strong), widget.Line{})
		if !render.Ended(r.GetStatus()) {
			lines[0] = widget.TextLine("The last attempt of the run failed", render.Strong)
		}
		lines = append(lines, errorLines(r.GetError())...)
	}
	failures := failedAttempts(t.p.run.Steps())
	for i, s := range failures {
		if i == errorsMost {
			lines = append(lines, widget.Line{}, widget.TextLine(fmt.Sprintf("and %d failed attempts before these", len(failures)-i), render.Dim))
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
			lines = append(lines, indented(widget.TextLine("the same error", render.Dim)))
			continue
		}
		for _, line := range errorLines(s.GetError()) {
			lines = append(lines, indented(line))
		}
	}
	if lines == nil {
		return t.nothing(r)
	}
	return lines
}

// attemptHead says which attempt failed, when and where.
func (t *errorTab) attemptHead(s *kagziv1.Step) widget.Line {
	what := fmt.Sprintf("attempt %d failed", s.GetAttemptNumber())
	if !s.GetIsLatest() || s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING {
		what += " and was retried"
		if s.GetIsLatest() {
			what = fmt.Sprintf("attempt %d failed and is tried again %s", s.GetAttemptNumber(), t.p.app.clock.show(s.GetRetryAt()))
		}
	}
	when := "  "
	if s.GetFinishedAt() != nil {
		when += t.p.app.clock.exact(s.GetFinishedAt().AsTime())
	}
	if s.GetWorkerId() != "" {
		when += "  on " + s.GetWorkerId()
	}
	return widget.Line{Cells: []render.Cell{{Text: s.GetName(), Style: render.Strong}, {Text: "  " + what}, {Text: when, Style: render.Dim}}}
}

// failedAttempts are the attempts that went wrong, the latest first.
func failedAttempts(steps []*kagziv1.Step) []*kagziv1.Step {
	var failed []*kagziv1.Step
	for _, s := range steps {
		if s.GetError() != nil {
			failed = append(failed, s)
		}
	}
	slices.SortStableFunc(failed, func(a, b *kagziv1.Step) int { return b.GetFinishedAt().AsTime().Compare(a.GetFinishedAt().AsTime()) })
	return failed
}

func sameError(a, b *kagziv1.ErrorDetail) bool {
	return b != nil && a.GetType() == b.GetType() && a.GetMessage() == b.GetMessage() && a.GetStack() == b.GetStack()
}

// nothing says that all is well, as far as that can be said.
func (t *errorTab) nothing(r *kagziv1.Workflow) []widget.Line {
	text := "Nothing has gone wrong so far."
	if render.Ended(r.GetStatus()) {
		text = "Nothing went wrong, and no step was retried."
	}
	return []widget.Line{{}, widget.TextLine(text, render.Good)}
}
