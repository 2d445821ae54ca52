package render

import (
	"slices"
	"strings"
)

// Column heads one column of a table.
type Column struct {
	Title string
	Right bool // right-aligned: counts
	Flex  bool // may be cut on a narrow terminal: free text
	Spare int  // above 0: may be left out if cutting is not enough, highest first
}

// Cell is one value of a table: safe text with its meaning.
type Cell struct {
	Text  string
	Style Style
}

// Text returns a plain cell of user text.
func Text(s string) Cell { return Cell{Text: Safe(s)} }

// Table is a list for a terminal.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Layout describes the output of a table.
type Layout struct {
	Width  int // cells of a line; 0: unlimited
	Colour bool
}

const (
	gap     = 2 // blanks between two columns
	minFlex = 8 // least cells of a cut column
)

// Lines lays the table out: one line of titles, one per row, two blanks between columns, no
// trailing blanks. To fit the width it first drops columns without values, then cuts free text,
// then drops spare columns.
func (t Table) Lines(l Layout) []string {
	widths := t.natural()
	if l.Width > 0 {
		t, widths = t.fit(l.Width)
	}
	titles := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = Cell{Text: c.Title, Style: Dim}
	}
	lines := append(make([]string, 0, len(t.Rows)+1), t.line(titles, widths, l.Colour))
	for _, row := range t.Rows {
		lines = append(lines, t.line(row, widths, l.Colour))
	}
	return lines
}

// natural returns the full width of each column.
func (t Table) natural() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = Width(c.Title)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], Width(row[i].Text))
		}
	}
	return widths
}

// fit makes the table fit the limit, as far as possible.
func (t Table) fit(limit int) (Table, []int) {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if len(t.Rows) > 0 && t.empty(i) {
			t = t.without(i)
		}
	}
	widths := t.natural()
	total := sum(widths) + gap*(len(widths)-1)
	for total > limit {
		if widest := t.widestFlex(widths); widest >= 0 {
			widths[widest]--
			total--
			continue
		}
		spare := t.spare()
		if spare < 0 {
			break
		}
		return t.without(spare).fit(limit)
	}
	return t, widths
}

func (t Table) empty(column int) bool {
	for _, row := range t.Rows {
		if row[column].Text != "" {
			return false
		}
	}
	return true
}

// spare returns the column to drop next, or -1.
func (t Table) spare() int {
	spare := -1
	for i, c := range t.Columns {
		if c.Spare > 0 && (spare < 0 || c.Spare > t.Columns[spare].Spare) {
			spare = i
		}
	}
	return spare
}

func (t Table) without(column int) Table {
	narrower := Table{Columns: slices.Delete(slices.Clone(t.Columns), column, column+1)}
	for _, row := range t.Rows {
		narrower.Rows = append(narrower.Rows, slices.Delete(slices.Clone(row), column, column+1))
	}
	return narrower
}

func sum(list []int) int {
	n := 0
	for _, v := range list {
		n += v
	}
	return n
}

// widestFlex returns the column to take the next cell from, or -1 if none can shrink.
func (t Table) widestFlex(widths []int) int {
	widest := -1
	for i, c := range t.Columns {
		if c.Flex && widths[i] > minFlex && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	return widest
}

func (t Table) line(row []Cell, widths []int, colour bool) string {
	var b strings.Builder
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	for i, cell := range row[:last+1] {
		text := Truncate(cell.Text, widths[i])
		pad := strings.Repeat(" ", widths[i]-Width(text))
		if colour {
			text = Paint(text, cell.Style)
		}
		switch {
		case t.Columns[i].Right:
			b.WriteString(pad + text)
		case i == last:
			b.WriteString(text)
		default:
			b.WriteString(text + pad)
		}
		if i < last {
			b.WriteString(strings.Repeat(" ", gap))
		}
	}
	return b.String()
}
