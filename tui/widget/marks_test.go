package widget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func TestMarks_of_more_cover_nothing(t *testing.T) {
	const w, h = 40, 8
	long := strings.Repeat("x", 2*w) + " "
	lines := numberedLines(50)
	for i := range lines {
		lines[i].Cells = append(lines[i].Cells, render.Cell{Text: long})
	}
	nodes := make([]widget.Node, 50)
	for i := range nodes {
		nodes[i] = widget.Node{ID: fmt.Sprint(i), Cells: []render.Cell{{Text: long}}}
	}
	cut := widget.NewLines(plain).SetLines(lines)
	cut.SetWrap(false)
	payload := widget.NewDocument(plain)
	payload.SetPayload(long, fmt.Appendf(nil, "[%s]", strings.TrimSuffix(strings.Repeat(`"`+long+`",`, 50), ",")), "")
	table := widget.NewTable(plain, []widget.Column{{ID: "a", Title: "A", Priority: 1, Flex: true},
		{ID: "age", Title: "AGE", Priority: 1, Right: true}})
	rows := make(fixedRows, 50)
	for i := range rows {
		rows[i] = widget.Row{ID: fmt.Sprint(i), Cells: []render.Cell{{Text: long}, {Text: "4m ago"}}}
	}
	table.SetRows(rows)
	for name, p := range map[string]tview.Primitive{"lines": widget.NewLines(plain).SetLines(lines),
		"cut lines": cut, "document": payload, "tree": widget.NewTree(plain).SetRoots(nodes), "table": table} {
		widgettest.Draw(t, p, w, h, nil)
		widgettest.Press(t, p, "pgdn", "pgdn", "pgdn")
		seen := 0
		for _, line := range strings.Split(widgettest.Draw(t, p, w, h, nil), "\n") {
			cells := []rune(line)
			if len(cells) < w {
				continue
			}
			if last := cells[w-1]; last == '▲' || last == '▼' {
				seen++
			} else {
				t.Errorf("%s: %q is in the column of the marks", name, last)
			}
		}
		if seen != 2 {
			t.Errorf("%s shows %d marks, want 2:\n%s", name, seen, widgettest.Draw(t, p, w, h, nil))
		}
	}
}

// fixedRows are rows that do not change.
type fixedRows []widget.Row

func (r fixedRows) Len() int                     { return len(r) }
func (r fixedRows) Row(i int) (widget.Row, bool) { return r[i], true }
func (r fixedRows) Find(id string) (int, bool) {
	i := slices.IndexFunc(r, func(row widget.Row) bool { return row.ID == id })
	return i, i >= 0
}
