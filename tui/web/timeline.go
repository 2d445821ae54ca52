package web

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/timescale"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	mostBars  = 500 // of a timeline
	mostRows  = 200 // longer timelines have a row for several steps
	axisCells = 120 // that the width of the axis counts as
)

// bar is a period of a row, as it is drawn.
type bar struct {
	from, to time.Duration // since the begin
	class    string
	title    string
	work     bool
}

// row is a line of a timeline: a step, or several neighbours.
type row struct {
	label, url string
	worker     string // raw text
	sign       theme.Sign
	bars       []bar
}

// timeline is a run over time.
type timeline struct {
	rows  []row
	begin time.Time
	scale timescale.Scale
}

// timelineSection shows the steps of a run over time.
func (p *page) timelineSection(r *kagziv1.Workflow, lanes []model.Lane) g.Node {
	t := p.timeline(r, lanes)
	if len(t.rows) == 0 {
		return nil
	}
	return h.Section(h.ID("timeline"), h.Data("live", "run"), h.H2(h.Text("Timeline")), t.node())
}

// laterTimeline stands for the timeline of a long run, whose steps are read when the page is there.
func (p *page) laterTimeline(r *kagziv1.Workflow) g.Node {
	url := p.runURL(r.GetRunId(), "timeline")
	return h.Section(h.ID("timeline"), h.Data("later", url), h.H2(h.Text("Timeline")), h.P(h.Class("empty"),
		h.A(h.Href(url),
			h.Text("Show the timeline of all "+format.Number(r.GetStepCount())+" steps"))))
}

// runTimeline shows the whole timeline of a long run.
func (p *page) runTimeline() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	steps, err := p.allSteps(p.ctx, r.GetRunId())
	if err != nil {
		return err
	}
	return p.write(http.StatusOK, p.runDocument(r, "", h.Section(h.ID("timeline"), h.H2(h.Text("Timeline")),
		p.timeline(r, model.Lanes(steps)).node())))
}

// timeline places the lanes of a run. Of many steps, neighbours share a row, and bars that touch are
// drawn as one, so that there are never more than mostBars.
func (p *page) timeline(r *kagziv1.Workflow, lanes []model.Lane) *timeline {
	t := &timeline{}
	end := time.Time{}
	if render.Ended(r.GetStatus()) && r.GetFinishedAt() != nil {
		end = r.GetFinishedAt().AsTime()
	}
	for i := range lanes {
		for _, s := range lanes[i].Spans {
			if !model.Kept(r, s.Step) && (t.begin.IsZero() || s.From.Before(t.begin)) {
				t.begin = s.From
			}
		}
	}
	if t.begin.IsZero() {
		return t
	}
	each := (len(lanes) + mostRows - 1) / mostRows // steps of a row
	last := end
	if last.IsZero() {
		last = p.now
	}
	var busy []timescale.Stretch
	for i := 0; i < len(lanes); i += each {
		group := lanes[i:min(i+each, len(lanes))]
		one := row{label: group[0].Name, url: p.runURL(r.GetRunId(), "step", "name", group[0].Name),
			worker: p.workerOf(group), sign: theme.OfAttempt(group[0].Step, !end.IsZero())}
		if len(group) > 1 {
			one.label = fmt.Sprintf("%s … %s", group[0].Name, group[len(group)-1].Name)
			one.url, one.sign = "", worst(group, !end.IsZero())
		}
		for _, l := range group {
			for _, s := range l.Spans {
				if model.Kept(r, s.Step) {
					continue
				}
				to := s.To
				if to.IsZero() {
					to = last
				}
				b := bar{from: s.From.Sub(t.begin), to: max(to.Sub(t.begin), s.From.Sub(t.begin)), class: spanClass(s),
					work: s.Kind == model.Work}
				b.title = fmt.Sprintf("%s, attempt %d: %s from +%s", l.Name, s.Step.GetAttemptNumber(),
					render.Duration(b.to-b.from), render.Duration(b.from))
				if worker := p.workerName(s.Step.GetWorkerId()); worker != "" && b.work {
					b.title += " on " + worker
				}
				if b.work {
					busy = append(busy, timescale.Stretch{From: b.from, To: b.to})
				}
				t.scale.Total = max(t.scale.Total, b.to)
				one.bars = append(one.bars, b)
			}
		}
		t.rows = append(t.rows, one)
	}
	t.scale.Total = max(t.scale.Total, time.Microsecond)
	t.scale.Gaps = timescale.Fold(timescale.Quiet(busy), t.scale.Total, axisCells)
	t.scale.PerCell = timescale.Fit(t.scale.Total, t.scale.Gaps, axisCells)
	for i := range t.rows {
		t.rows[i].bars = t.merged(t.rows[i].bars, max(mostBars/len(t.rows), 1))
	}
	return t
}

// worst returns the sign of the step that a person would look at first.
func worst(group []model.Lane, ended bool) theme.Sign {
	signs := make([]theme.Sign, len(group))
	for i := range group {
		signs[i] = theme.OfAttempt(group[i].Step, ended)
	}
	for _, style := range []render.Style{render.Bad, render.Waiting, render.Busy, render.Asleep, render.Stopped} {
		if i := slices.IndexFunc(signs, func(s theme.Sign) bool { return s.Style == style }); i >= 0 {
			return signs[i]
		}
	}
	return signs[0]
}

// spanClass returns the class of a span: what happened in it.
func spanClass(s model.Span) string {
	switch {
	case s.Kind == model.Between:
		return "between"
	case render.CutShort(s.Step):
		return "stopped"
	case s.Failed:
		return "bad"
	case s.Kind == model.Rest:
		return "asleep"
	}
	return classes[render.StepStyle(s.Step.GetStatus())]
}

// merged joins bars of one meaning that touch, and then the closest ones until at most so many are left.
func (t *timeline) merged(bars []bar, most int) []bar {
	if len(bars) <= most {
		return bars
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return int(a.from - b.from) })
	for distance := 1.0; len(bars) > most; distance *= 2 {
		kept := bars[:1]
		for _, b := range bars[1:] {
			last := &kept[len(kept)-1]
			near := t.scale.Cell(b.from)-t.scale.Cell(last.to) < distance/2
			if near && (b.class == last.class || distance > 2) {
				last.to = max(last.to, b.to)
				if b.class == "bad" {
					last.class = b.class
				}
				last.title = "several attempts until +" + render.Duration(last.to)
				continue
			}
			kept = append(kept, b)
		}
		bars = kept
	}
	return bars
}

// percent writes a place on the axis.
func (t *timeline) percent(cells float64) string {
	return strconv.FormatFloat(math.Round(cells/axisCells*1e4)/100, 'f', -1, 64) + "%"
}

// node draws the timeline. Places are attributes in percent: the page may have no inline styles.
func (t *timeline) node() g.Node {
	class := "lanes"
	if slices.ContainsFunc(t.rows, func(r row) bool { return r.worker != "" }) {
		class = "lanes by"
	}
	return h.Div(h.Class(class), h.Div(h.Class("lane axis"), h.Span(), t.axis()), g.Map(t.rows, func(r row) g.Node {
		label := g.Node(h.Span(h.Class("label"), cut(r.label, 48)))
		if r.url != "" {
			label = h.A(h.Class("label"), h.Href(r.url), cut(r.label, 48))
		}
		return h.Div(h.Class("lane"), h.Span(h.Class("name"), sign(r.sign), label),
			svg(h.Class("bars"), h.Attr("role", "img"), h.Aria("label", t.spoken(r)), g.Map(r.bars, t.bar),
				g.Map(t.scale.Gaps,
					func(gap timescale.Gap) g.Node {
						x, to := t.scale.Cell(gap.From), t.scale.Cell(gap.To)
						return h.El("rect", h.Class("gap"), h.Attr("x", t.percent(x)), h.Attr("width", t.percent(to-x)),
							h.Attr("y", "0"), h.Attr("height", "16"))
					})),
			g.Iff(r.worker != "", func() g.Node { return h.Span(h.Class("worker"), cut(r.worker, 48)) }))
	}))
}

func svg(children ...g.Node) g.Node {
	return h.El("svg", append([]g.Node{h.Attr("width", "100%"), h.Attr("height", "16")}, children...)...)
}

// bar draws one bar, never too thin to see.
func (t *timeline) bar(b bar) g.Node {
	x := t.scale.Cell(b.from)
	width := max(t.scale.Cell(b.to)-x, 0.3)
	y, height := "3", "10"
	if b.class == "between" {
		y, height = "7", "2"
	}
	return h.El("rect", h.Class(b.class), h.Attr("x", t.percent(min(x, axisCells-0.3))), h.Attr("width",
		t.percent(width)),
		h.Attr("y", y), h.Attr("height", height), h.Attr("rx", "2"), h.El("title", text(b.title)))
}

// spoken is the row for those who do not see it.
func (t *timeline) spoken(r row) string {
	if len(r.bars) == 0 {
		return "nothing ran"
	}
	first, last := r.bars[0], r.bars[len(r.bars)-1]
	return fmt.Sprintf("%s from +%s to +%s", r.sign.Word, render.Duration(first.from), render.Duration(last.to))
}

// axis draws round times, and where time was left out.
func (t *timeline) axis() g.Node {
	const apart = 12 // cells between labels
	var marks g.Group
	taken := -1.0
	mark := func(at time.Duration, label string) {
		x := t.scale.Cell(at)
		if x < taken || x > axisCells-apart/2 {
			return
		}
		taken = x + apart
		marks = append(marks, h.El("text", h.Attr("x", t.percent(x)), h.Attr("y", "12"), h.Text(label)))
	}
	step := timescale.TickStep(time.Duration(math.Min(t.scale.PerCell*apart, math.MaxInt64/4)))
	type tick struct {
		at    time.Duration
		label string
	}
	var ticks []tick
	for _, gap := range t.scale.Gaps {
		ticks = append(ticks, tick{gap.To, "≈ " + timescale.TickLabel(timescale.Rounded(gap.To))})
	}
	for at := time.Duration(0); at <= t.scale.Total; at += step {
		if gap, ok := t.scale.GapAt(at); ok {
			at = (gap.To - 1) / step * step
			continue
		}
		ticks = append(ticks, tick{at, timescale.TickLabel(at)})
	}
	slices.SortStableFunc(ticks, func(a, b tick) int { return int(min(max(a.at-b.at, -1), 1)) })
	for _, one := range ticks {
		mark(one.at, one.label)
	}
	return svg(h.Class("ticks"), h.Aria("hidden", "true"), marks)
}
