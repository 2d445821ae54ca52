package view

import (
	"slices"
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

// timelineTab shows the steps of a run over time.
type timelineTab struct {
	tabBase
	gantt  *widget.Gantt
	sdks   *model.SDKs
	placed bool   // the cursor was placed initially
	chosen bool   // whether to show earlier attempts was decided
	last   string // the step that began last
}

func newTimelineTab(p *runPage) *timelineTab {
	t := &timelineTab{tabBase: newTabBase(p), gantt: widget.NewGantt(p.app.theme),
		sdks: model.NewSDKs(p.app.link)}
	t.sdks.Changed = t.Changed
	t.gantt.Clock = p.app.clock.Exact
	t.gantt.OnEnter(func(l widget.Lane) { p.showAttempts(l.ID) })
	return t
}

func (t *timelineTab) Draw(c widget.Canvas) {
	now := t.p.app.now()
	if t.refreshed() {
		t.load(endOf(t.p.workflow()), now)
	}
	t.gantt.SetNow(now)
	if len(t.p.run.Lanes()) == 0 {
		drawMiddle(c, t.p.noSteps()...)
		return
	}
	t.gantt.SetRect(c.X, c.Y, c.W, c.H)
	t.gantt.Draw(c.Screen)
}

// load shows the current steps. Earlier attempts are shown once there are any. A cursor at the end
// of an open run follows it.
func (t *timelineTab) load(end, now time.Time) {
	lanes := t.p.run.Lanes()
	list := make([]widget.Lane, len(lanes))
	earlier := false
	for i := range lanes {
		list[i] = timelineLane(t.p.workflow(), &lanes[i], end, t.sdks.Of)
		earlier = earlier || len(list[i].Overlay) > 0
	}
	if earlier && !t.chosen {
		t.chosen = true
		t.gantt.Overlay(true)
	}
	atEnd := t.placed && t.last != "" && t.selected() == t.last
	t.gantt.SetLanes(list, now)
	if len(list) == 0 {
		return
	}
	t.last = list[len(list)-1].ID
	switch {
	case t.placed && atEnd && end.IsZero():
		t.gantt.Select(t.last)
	case !t.placed && t.p.run.Loaded():
		t.placed = true
		t.gantt.Select(t.p.firstLook())
	}
}

func (t *timelineTab) selected() string {
	lane, _ := t.gantt.Selected()
	return lane.ID
}

// firstLook returns the step to start at: the last that failed, or else the newest of an open run,
// or else the first.
func (p *runPage) firstLook() string {
	lanes := p.run.Lanes()
	if len(lanes) == 0 {
		return ""
	}
	for _, l := range slices.Backward(lanes) {
		if l.Failed {
			return l.Name
		}
	}
	if endOf(p.workflow()).IsZero() {
		return lanes[len(lanes)-1].Name
	}
	return lanes[0].Name
}

// endOf returns when a run ended; zero while it is open.
func endOf(r *kagziv1.Workflow) time.Time {
	if !render.Ended(r.GetStatus()) || r.GetFinishedAt() == nil {
		return time.Time{}
	}
	return r.GetFinishedAt().AsTime()
}

// noSteps says why there are no steps.
func (p *runPage) noSteps() []widget.Line {
	r := p.workflow()
	switch {
	case !p.run.Loaded():
		return []widget.Line{widget.TextLine("Reading …", render.Dim)}
	case render.Ended(r.GetStatus()):
		return []widget.Line{widget.TextLine("This run had no steps.", render.Dim)}
	case r.GetStartedAt() == nil:
		return []widget.Line{
			widget.TextLine("No step has started yet.", render.Plain),
			widget.TextLine("The run was created "+p.app.clock.Show(r.GetCreatedAt())+".", render.Dim),
		}
	}
	return []widget.Line{widget.TextLine("No step has started yet.", render.Plain)}
}

// spanKinds maps the model's kinds of spans to the widget's.
var spanKinds = map[model.SpanKind]widget.SpanKind{
	model.Work: widget.Work, model.Rest: widget.Rest, model.Between: widget.Between}

// timelineLane returns a step as a row: its latest attempt, with earlier ones to overlay. end is
// when the run ended: no span goes beyond it. A step that a retry kept has no spans: they would
// stretch the time of the run to that of the run before. sdk tells the SDK of a worker.
func timelineLane(r *kagziv1.Workflow, l *model.Lane, end time.Time, sdk func(worker string) string) widget.Lane {
	lane := widget.Lane{ID: l.Name, Label: l.Name, Sign: theme.OfAttempt(l.Step, !end.IsZero()), Note: laneNote(l, sdk)}
	for _, s := range l.Spans {
		if model.Kept(r, s.Step) {
			lane.Instead = "kept from run " + format.ShortID(r.GetRetriedFromRunId())
			continue
		}
		span := widget.Span{From: s.From, To: s.To, Kind: spanKinds[s.Kind], Style: spanStyle(s)}
		if s.To.IsZero() && !end.IsZero() {
			span.To = end
		}
		if s.Failed && s.Kind != model.Between {
			span.End = theme.Failed
			switch {
			case render.CutShort(s.Step):
				span.End = theme.Cancelled
			case s.Step.GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_TIMEOUT:
				span.End = theme.TimedOut
			}
		}
		if s.Step == l.Step {
			lane.Spans = append(lane.Spans, span)
		} else {
			lane.Overlay = append(lane.Overlay, span)
		}
	}
	return lane
}

func spanStyle(s model.Span) render.Style {
	switch {
	case s.Kind == model.Between:
		return render.Waiting
	case render.CutShort(s.Step):
		return render.Stopped
	case s.Failed:
		return render.Bad
	case s.Kind == model.Rest:
		return render.Asleep
	}
	return render.StepStyle(s.Step.GetStatus())
}

// laneNote returns what to show of a step beside its times: "attempt 2  worker-1 (python 0.1.0)  run 0199…".
func laneNote(l *model.Lane, sdk func(worker string) string) string {
	note := ""
	if n := l.Step.GetAttemptNumber(); n > 1 {
		note = "attempt " + strconv.Itoa(int(n))
	}
	worker := l.Step.GetWorkerId()
	if by := sdk(worker); by != "" {
		worker += " (" + by + ")"
	}
	for _, part := range []string{worker, l.Note} {
		if part == "" {
			continue
		}
		if note != "" {
			note += "  "
		}
		note += part
	}
	return note
}

// Close ends the questions about workers.
func (t *timelineTab) Close() { t.sdks.Close() }

func (t *timelineTab) Key(event *tcell.EventKey) bool { return t.gantt.Key(event) }

func (t *timelineTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := t.gantt.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// Step returns the step of the lane under the cursor.
func (t *timelineTab) Step() (string, bool) {
	lane, ok := t.gantt.Selected()
	return lane.ID, ok
}

// Status shows the zoom.
func (t *timelineTab) Status() string {
	if t.gantt.Zoomed() {
		return "0 fits all"
	}
	return ""
}

// Actions change the visible range, and go to failed steps.
func (t *timelineTab) Actions() []*Action {
	g, p := t.gantt, t.p
	return []*Action{
		{Name: "attempts", Keys: []string{"enter"}, Help: "show all attempts with errors and output",
			Group: GroupMove, Hint: 1, Run: p.openStep},
		{Name: "zoom-in", Keys: []string{"+", "="}, Short: "zoom", Help: "show half of the time", Group: GroupView,
			Hint: 3, Run: simply(g.ZoomIn)},
		{Name: "zoom-out", Keys: []string{"-"}, Help: "show twice the time", Group: GroupView, Run: simply(g.ZoomOut)},
		{Name: "fit", Keys: []string{"0"}, Help: "show all of the time", Group: GroupView, Run: simply(g.Fit)},
		{Name: "collapse", Keys: []string{"z"}, Short: "gaps", Help: "collapse or show times in which nothing ran",
			Group: GroupView, Hint: 5, Run: simply(func() { g.Collapse(!g.Collapsed()) })},
		{Name: "overlay", Keys: []string{"o"}, Help: "show or hide earlier attempts", Group: GroupView,
			Run: simply(func() {
				t.chosen = true
				g.Overlay(!g.Overlaid())
			})},
		{Name: "next-failed", Keys: []string{"f"}, Short: "next failed", Help: "go to the next failed step",
			Group: GroupMove, Hint: 4, Off: t.unlessFailed, Run: simply(func() { g.NextFailed() })},
		{Name: "previous-failed", Keys: []string{"F"}, Help: "go to the previous failed step", Group: GroupMove,
			Off: t.unlessFailed, Run: simply(func() { g.PrevFailed() })},
		p.copyIDAction(), p.copyJSONAction(), p.showJSONAction(),
	}
}

func (t *timelineTab) unlessFailed() string {
	if slices.ContainsFunc(t.p.run.Lanes(), func(l model.Lane) bool { return l.Failed && !render.CutShort(l.Step) }) {
		return ""
	}
	return "no step has failed"
}
