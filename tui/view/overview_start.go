package view

import (
	"fmt"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// drawStart says what to do with a namespace in which there is nothing yet.
func (p *overviewPage) drawStart(c widget.Canvas) {
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

// startLines are three commands to begin with, and what is wrong.
func (p *overviewPage) startLines() []widget.Line {
	if p.app.options.File { // nobody can start anything in it from here
		return []widget.Line{widget.TextLine(fmt.Sprintf("Nothing has happened in %q of this database yet.", p.app.link.Namespace()), render.Strong)}
	}
	where := p.app.scope().Reach()
	lines := []widget.Line{widget.TextLine(fmt.Sprintf("Nothing has happened in %q yet. Three commands to begin with:", p.app.link.Namespace()), render.Strong), {}}
	for _, s := range [...]struct{ command, help string }{
		{"kagzi demo", "see it work: workers, failures, a server that is killed"},
		{`kagzi workflow start hello --input '{"name":"you"}'` + where, "start a run; it waits until a worker serves it"},
		{"kagzi schedule create hello --cron '0 2 * * *'" + where, "start one every night"},
	} {
		lines = append(lines, widget.TextLine("  "+s.command, render.Busy), widget.TextLine("      "+s.help, render.Dim))
	}
	lines = append(lines, widget.Line{}, widget.TextLine("This page fills by itself as soon as something happens.  ? lists the keys.", render.Dim))
	for _, w := range p.app.overview.Warnings() {
		lines = append(lines, p.warningLine(w))
	}
	return lines
}
