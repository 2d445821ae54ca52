package demo

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/tui/render"
)

// summarize prints the result of each scene, and the differences.
func summarize(out screen, verdicts []verdict, took time.Duration) {
	table := render.Table{Columns: []render.Column{
		{Title: "WORKFLOW"}, {Title: "STATUS"}, {Title: "RESULT"}, {Title: "TIME", Right: true}}}
	right := 0
	for _, v := range verdicts {
		result := render.Cell{Text: "right", Style: render.Good}
		if len(v.differs) > 0 {
			result = render.Cell{Text: "WRONG", Style: render.Bad}
		} else {
			right++
		}
		table.Rows = append(table.Rows, []render.Cell{
			render.Text(v.title), {Text: v.status, Style: v.style}, result, render.Text(render.Duration(v.took)),
		})
	}
	out.line("")
	for _, line := range withNotes(table, verdicts, out.width).Lines(render.Layout{Colour: out.colour}) {
		out.line(line)
	}
	out.line("")
	for _, v := range verdicts {
		for _, d := range v.differs {
			out.line(out.paint("differs", render.Bad) + "  " + v.title + ": " + render.Safe(d))
		}
	}
	out.line(fmt.Sprintf("%d of %d results are correct, in %s", right, len(verdicts), render.Duration(took)))
}

// withNotes adds what was checked to a table of verdicts. A narrow terminal gets more lines;
// nothing is cut off.
func withNotes(table render.Table, verdicts []verdict, width int) render.Table {
	room := 0
	if width > 0 {
		// the last column is right-aligned, so all lines are as long
		room = width - 1 - render.Width(table.Lines(render.Layout{})[0]+"  ")
	}
	annotated := render.Table{Columns: append(table.Columns, render.Column{Title: "CHECKED"})}
	for i, v := range verdicts {
		row := table.Rows[i]
		for _, part := range wrapWords(render.Safe(v.note), room) {
			annotated.Rows = append(annotated.Rows, append(row, render.Cell{Text: part}))
			row = make([]render.Cell, len(table.Columns))
		}
	}
	return annotated
}
