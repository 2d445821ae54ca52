package overview

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// Block is a part of the overview with a list of items.
type Block struct {
	id, title, note string
	empty           widget.Line // shown if there are no items
	Items           []*Item
	left            int  // number of an item's cells on the left; the rest are right-aligned
	spare           int  // index of the cell to leave out on a narrow screen; 0: none
	more            bool // the list is longer than items
}

// Item is an entry of a block that can be opened.
type Item struct {
	ID      string
	Cells   []render.Cell // for a tile: number, label, further text
	bar     *queueBar     // after the cells on the left; nil: none
	Open    func() error
	Message proto.Message // for copying
}

// MostCells is the highest number of cells of an item.
const MostCells = 4

// queueBar is a bar of running and waiting runs in a queue, relative to the largest queue.
type queueBar struct{ most, running, waiting float64 }

// Blocks returns all blocks with their current items.
func (p *Board) Blocks() map[string]*Block {
	return map[string]*Block{
		tilesBlock:    {id: tilesBlock, Items: p.Tiles()},
		warningsBlock: p.warnings(),
		queuesBlock:   p.queues(),
		FailuresBlock: p.failures(),
		firesBlock:    p.fires(),
	}
}

// opens returns a function that opens a view.
func (p *Board) opens(view string, args ...string) func() error {
	return func() error { return p.Open(view, args...) }
}

// Tiles returns the four key numbers.
func (p *Board) Tiles() []*Item {
	stats, o := p.Overview.Stats(), p.Overview
	if stats == nil {
		return nil
	}
	tile := func(id string, glyph theme.Glyph, n string, what, more string, style render.Style,
		open func() error) *Item {
		return &Item{ID: id, Open: open, Message: stats, Cells: []render.Cell{
			{Text: p.Look().Glyph(glyph) + " " + n, Style: style}, {Text: what, Style: render.Dim},
			{Text: more, Style: render.Dim},
		}}
	}
	oldest, waits := "nothing waits", render.Plain
	if d := o.OldestPending(); d >= time.Second {
		oldest = "oldest " + format.Waited(d)
		if d > longWait {
			waits = render.Waiting
		}
	} else if stats.GetPendingWorkflows() > 0 {
		oldest = "none overdue" // waits less than a second, or is not due yet
	}
	failed, _, since := p.Failed(stats)
	bad, which := render.Plain, p.FailedFilter+" since:1h"
	if failed > 0 {
		bad = render.Bad
	}
	if p.File || o.Sealed() {
		which = p.FailedFilter
	}
	var active, slots int64
	for _, w := range o.Workers().All() {
		if w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_ONLINE {
			active, slots = active+int64(w.GetActiveWorkflowCount()), slots+int64(w.GetMaxConcurrent())
		}
	}
	load := fmt.Sprintf("%s of %s slots", format.Number(active), format.Number(slots))
	if !o.Workers().Loaded() { // or the caller may not see them
		load = ""
	}
	online, total, up := stats.GetOnlineWorkers(), stats.GetTotalWorkers(), render.Good
	if online == 0 {
		up = render.Bad
	}
	return []*Item{
		tile("running", theme.Running, format.Number(stats.GetRunningWorkflows()), "running",
			format.Number(stats.GetWorkflowsByStatus()["SLEEPING"])+" sleeping", render.Busy,
			p.opens("runs", "status:running")),
		tile("pending", theme.Pending, format.Number(stats.GetPendingWorkflows()), "pending", oldest, waits,
			p.opens("runs", "status:pending")),
		tile("failed", theme.Failed, format.Number(failed), "failed", since, bad, p.opens("runs", which)),
		tile("workers", theme.Online, fmt.Sprintf("%d/%d", online, total), "workers", load, up, p.opens("workers")),
	}
}

// longWait is how long a run can wait for a worker before it is highlighted.
const longWait = time.Minute

// warnings returns the block of warnings.
func (p *Board) warnings() *Block {
	b := &Block{id: warningsBlock, title: "Warnings", left: 2}
	if !p.Overview.Queues().Loaded() || !p.Overview.Schedules().Loaded() {
		b.note = "reading …"
	}
	for _, w := range p.Overview.Warnings() {
		line := p.warningLine(w)
		view, args := viewOf(w)
		b.Items = append(b.Items, &Item{ID: w.Text, Cells: line.Cells, Open: p.opens(view, args...)})
	}
	if len(b.Items) == 0 && b.note == "" {
		b.title, b.note = "", p.Look().Glyph(theme.Completed)+" No warnings."
	}
	return b
}

// viewOf returns the view with more about a warning: that of its subject, if it has one.
func viewOf(w model.Warning) (view string, args []string) {
	switch {
	case w.Filter == "":
		return w.View, nil
	case w.View == "workers":
		return "worker", []string{w.Filter}
	case w.View == "schedules":
		return "schedule", []string{w.Filter}
	}
	return w.View, []string{w.Filter}
}

// warningLine returns a warning with a sign of its level.
func (p *Board) warningLine(w model.Warning) widget.Line {
	glyph, word, style := theme.Alert, "warning", render.Waiting
	switch w.Level {
	case model.Critical:
		glyph, word, style = theme.Failed, "critical", render.Bad
	case model.Notice:
		glyph, word, style = theme.Paused, "notice", render.Dim
	}
	return widget.Line{Cells: []render.Cell{{Text: p.Look().Glyph(glyph) + " " + word, Style: style}, {Text: w.Text}}}
}

// queues returns the block of the queues with the largest backlog.
func (p *Board) queues() *Block {
	b := &Block{id: queuesBlock, title: "Queues", left: 1, spare: 1,
		empty: widget.TextLine("No queue has open runs or workers.", render.Dim)}
	b.more, _, _ = p.Overview.More()
	most := int64(1)
	for _, q := range p.Overview.Deepest() {
		most = max(most, q.GetPending()+q.GetRunning())
	}
	for _, q := range p.Overview.Deepest() {
		name := render.Cell{Text: q.GetTaskQueue()}
		if len(q.GetUnservedByType()) > 0 {
			name.Style = render.Bad
		}
		running, waiting, oldest := render.Cell{Text: format.Number(q.GetRunning()) + " running", Style: render.Busy},
			render.Cell{Text: format.Number(q.GetPending()) + " waiting"}, ""
		if q.GetRunning() == 0 {
			running.Style = render.Dim
		}
		if q.GetPending() == 0 {
			waiting.Style = render.Dim
		}
		if d := p.Overview.OldestIn(q); d >= time.Second {
			oldest = format.Waited(d)
		}
		b.Items = append(b.Items, &Item{
			ID: q.GetTaskQueue(), Message: q, Cells: []render.Cell{name, running, waiting, {Text: oldest}},
			Open: p.opens("runs", "status:open queue:"+q.GetTaskQueue()),
			bar:  &queueBar{float64(most), float64(q.GetRunning()), float64(q.GetPending())},
		})
	}
	return b
}

// failures returns the failed runs that were created last, in the server's order. A run that was
// created long ago and failed just now may be missing.
func (p *Board) failures() *Block {
	b := &Block{id: FailuresBlock, title: "Recent failures", left: 2,
		empty: widget.TextLine(p.Look().Glyph(theme.Completed)+" No failed runs.", render.Dim)}
	_, b.more, _ = p.Overview.More()
	for _, r := range p.Overview.Failures() {
		what := r.GetWorkflowType()
		if r.GetError().GetSubject() == "step" && r.GetError().GetSubjectId() != "" {
			what += " " + p.Look().Glyph(theme.Right) + " " + r.GetError().GetSubjectId()
		}
		b.Items = append(b.Items, &Item{ID: r.GetRunId(), Message: r, Open: p.opens("run", r.GetRunId()),
			Cells: []render.Cell{
				{Text: what}, {Text: render.ErrorLine(r.GetError()), Style: render.Bad},
				{Text: p.Clock.Show(r.GetFinishedAt()), Style: render.Dim},
			}})
	}
	return b
}

// fires returns the block of the next ticks.
func (p *Board) fires() *Block {
	b := &Block{id: firesBlock, title: "Next ticks", left: 2, spare: 1,
		empty: widget.TextLine("No ticks ahead.", render.Dim)}
	_, _, b.more = p.Overview.More()
	for _, s := range p.Overview.Fires() {
		b.Items = append(b.Items, &Item{ID: s.GetScheduleId(), Message: s, Open: p.opens("schedule", s.GetScheduleId()),
			Cells: []render.Cell{
				{Text: cmp.Or(s.GetName(), s.GetScheduleId())}, {Text: s.GetWorkflowType(), Style: render.Dim},
				{Text: p.Clock.Show(s.GetNextFireAt())},
			}})
	}
	return b
}

// drawStart draws what to do in an empty namespace.
func (p *Board) drawStart(c widget.Canvas) {
	lines := p.startLines()
	width := 0
	for _, line := range lines {
		width = max(width, line.Width())
	}
	x, y := max((c.W-width)/2, 1), max((c.H-len(lines))/3, 0)
	for i, line := range lines {
		line.Draw(c.Part(x, y+i, c.W-x, 1))
	}
}

// startLines returns three first commands, and warnings.
func (p *Board) startLines() []widget.Line {
	if p.File { // a file is read-only
		return []widget.Line{widget.TextLine(fmt.Sprintf(
			"Nothing has happened in %q of this database yet.", p.Link.Namespace()), render.Strong)}
	}
	where := p.Reach()
	lines := []widget.Line{widget.TextLine(fmt.Sprintf(
		"Nothing has happened in %q yet. Three commands to begin with:", p.Link.Namespace()), render.Strong), {}}
	for _, s := range [...]struct{ command, help string }{
		{"kagzi demo", "see it work: workers, failures, a server that is killed"},
		{`kagzi workflow start hello --input '{"name":"you"}'` + where,
			"start a run; it waits until a worker serves it"},
		{"kagzi schedule create hello --cron '0 2 * * *'" + where, "start one every night"},
	} {
		lines = append(lines, widget.TextLine("  "+s.command, render.Busy),
			widget.TextLine("      "+s.help, render.Dim))
	}
	lines = append(lines, widget.Line{}, widget.TextLine(
		"This page updates by itself.  ? shows the help.", render.Dim))
	for _, w := range p.Overview.Warnings() {
		lines = append(lines, p.warningLine(w))
	}
	return lines
}
