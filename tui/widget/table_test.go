package widget

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// sliceRows holds the ids of rows.
type sliceRows []string

func (s sliceRows) Len() int { return len(s) }

func (s sliceRows) Row(i int) (Row, bool) {
	if i < 0 || i >= len(s) {
		return Row{}, false
	}
	return Row{ID: s[i], Cells: []render.Cell{
		{Text: "● running", Style: render.Busy}, {Text: "order"}, {Text: s[i]}, {Text: "orders"}, {Text: "12"},
		{Text: "hidden unless wide"},
	}}, true
}

func (s sliceRows) Find(id string) (int, bool) {
	i := slices.Index(s, id)
	return i, i >= 0
}

var testColumns = []Column{
	{ID: "status", Title: "STATUS", Priority: 1}, {ID: "type", Title: "TYPE", Priority: 1, Flex: true},
	{ID: "id", Title: "ID", Priority: 1, Flex: true, Min: 6},
	{ID: "queue", Title: "QUEUE", Priority: 2}, {ID: "count", Title: "COUNT", Priority: 3, Right: true},
	{ID: "more", Title: "MORE", Priority: 4},
}

func numbered(from, to int) sliceRows {
	var s sliceRows
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprintf("row-%04d", i))
	}
	return s
}

func look() *theme.Theme { return theme.Default() }

// drawTable draws a table and returns the screen, one string per line.
func drawTable(t *testing.T, table *Table, w, h int) []string {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(w, h)
	table.SetRect(0, 0, w, h)
	table.Draw(screen)
	screen.Show()
	cells, width, _ := screen.GetContents()
	lines := make([]string, h)
	for y := range lines {
		var b strings.Builder
		for x := range width {
			b.WriteString(string(cells[y*width+x].Runes))
		}
		lines[y] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

func lineOf(lines []string, text string) int {
	return slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
}

func press(table *Table, keys ...string) {
	named := map[string]tcell.Key{"down": tcell.KeyDown, "pgdn": tcell.KeyPgDn, "pgup": tcell.KeyPgUp,
		"ctrl-d": tcell.KeyCtrlD, "enter": tcell.KeyEnter}
	for _, k := range keys {
		if key, ok := named[k]; ok {
			table.Key(tcell.NewEventKey(key, 0, 0))
			continue
		}
		table.Key(tcell.NewEventKey(tcell.KeyRune, rune(k[0]), 0))
	}
}

func TestTheCursorStaysOnItsRowAndLineWhenRowsComeAndGoAboveIt(t *testing.T) {
	table := NewTable(look, testColumns).SetRows(numbered(100, 200))
	drawTable(t, table, 80, 11)
	press(table, "pgdn", "pgdn", "k", "k", "k")
	before := drawTable(t, table, 80, 11)
	id, _ := table.Selected()
	line := lineOf(before, id)
	if line == 1 || line == 10 {
		t.Fatalf("the cursor is on line %d, want it in the middle", line)
	}

	table.SetRows(numbered(0, 200)) // a hundred new ones on top
	after := drawTable(t, table, 80, 11)
	if now, _ := table.Selected(); now != id || lineOf(after, id) != line {
		t.Fatalf("the cursor is on %s at line %d, want %s at line %d", now, lineOf(after, id), id, line)
	}
	table.SetRows(numbered(103, 200)) // and some go
	after = drawTable(t, table, 80, 11)
	if now, _ := table.Selected(); now != id || lineOf(after, id) != line {
		t.Fatalf("the cursor is on %s at line %d, want %s at line %d", now, lineOf(after, id), id, line)
	}
}

func TestAtTheTopNewRowsAreSeenAndTheCursorGoesDownWithItsRow(t *testing.T) {
	table := NewTable(look, testColumns).SetRows(numbered(10, 50))
	drawTable(t, table, 80, 11)
	table.SetRows(numbered(8, 50))
	lines := drawTable(t, table, 80, 11)
	if lineOf(lines, "row-0008") != 1 || lineOf(lines, "row-0010") != 3 {
		t.Fatalf("want the new row on top and the old one two lines below:\n%s", strings.Join(lines, "\n"))
	}
	if id, _ := table.Selected(); id != "row-0010" {
		t.Fatalf("the cursor is on %s, want row-0010", id)
	}
	press(table, "j")
	// more rows than fit, above a cursor that was moved: it stays visible on its row
	table.SetRows(numbered(0, 50))
	lines = drawTable(t, table, 80, 11)
	if lineOf(lines, "row-0011") < 0 {
		t.Fatalf("the cursor's row has left the screen:\n%s", strings.Join(lines, "\n"))
	}
}

func TestACursorThatNobodyHasMovedIsNotCarriedOffByItsRow(t *testing.T) {
	table := NewTable(look, testColumns).SetRows(numbered(40, 100))
	drawTable(t, table, 80, 11)
	for from := 30; from >= 0; from -= 15 {
		table.SetRows(numbered(from, 100))
		lines := drawTable(t, table, 80, 11)
		if id, _ := table.Selected(); lineOf(lines, numbered(from, from+1)[0]) != 1 || id != numbered(from, from+1)[0] {
			t.Fatalf("the cursor is on %s:\n%s", id, strings.Join(lines, "\n"))
		}
	}
	press(table, "G", "g")
	table.SetRows(append(sliceRows{"new-0000"}, numbered(0, 100)...))
	if lines := drawTable(t, table, 80, 11); lineOf(lines, "new-0000") != 1 {
		t.Fatalf("after g the newest is not on top:\n%s", strings.Join(lines, "\n"))
	}
}

func TestWhenTheRowUnderTheCursorIsGoneTheNextTakesItsPlace(t *testing.T) {
	table := NewTable(look, testColumns).SetRows(numbered(0, 5))
	drawTable(t, table, 80, 11)
	press(table, "j", "j")
	table.SetRows(sliceRows{"row-0000", "row-0001", "row-0003", "row-0004"})
	if id, _ := table.Selected(); id != "row-0003" {
		t.Fatalf("the cursor is on %q, want row-0003", id)
	}
	table.SetRows(sliceRows{})
	if id, ok := table.Selected(); ok {
		t.Fatalf("the cursor is on %q of no rows", id)
	}
	table.SetRows(sliceRows{"row-0009"})
	if id, _ := table.Selected(); id != "row-0009" {
		t.Fatalf("the cursor is on %q, want row-0009", id)
	}
}

func TestMarksStayWithTheirRows(t *testing.T) {
	table := NewTable(look, testColumns).SetRows(numbered(0, 20))
	drawTable(t, table, 80, 11)
	press(table, "j")
	table.ToggleMark() // row 1, and on to row 2
	press(table, "j", "j")
	if err := table.MarkRange(); err != nil { // to row 4
		t.Fatal(err)
	}
	if got, want := table.Targets(), numbered(1, 5); !slices.Equal(got, want) {
		t.Fatalf("targets = %v, want %v", got, want)
	}
	table.SetRows(numbered(2, 20))
	if got, want := table.Targets(), numbered(2, 5); !slices.Equal(got, want) {
		t.Fatalf("targets after a row went = %v, want %v", got, want)
	}
	table.ClearMarks()
	if got := table.Targets(); !slices.Equal(got, []string{"row-0004"}) {
		t.Fatalf("targets without marks = %v, want the row under the cursor", got)
	}
}

func TestARangeIsMarkedFromTheLastMarkOrNotAtAll(t *testing.T) {
	table := NewTable(look, testColumns).SetRows(numbered(0, 20))
	drawTable(t, table, 80, 11)
	if err := table.MarkRange(); err != nil || len(table.Marked()) != 1 {
		t.Fatalf("without a mark before, %v are marked, error %v; want the row under the cursor", table.Marked(), err)
	}
	table.ClearMarks()
	table.ToggleMark()
	table.SetRows(numbered(10, 20)) // row 0 is no longer loaded
	drawTable(t, table, 80, 11)
	if err := table.MarkRange(); err == nil || len(table.Marked()) != 0 {
		t.Fatalf("%v are marked, error %v; want nothing marked and an error: the row that was marked last is not there",
			table.Marked(), err)
	}
}

func TestWhatCouldBeLeftOutDoesNotSqueezeWhatIsNeeded(t *testing.T) {
	const id, worker = "01a20774…b6df46843dc9", "01a20774-5111-7e10-b6df-46843dc92d7a"
	table := NewTable(look, []Column{
		{ID: "id", Title: "ID", Priority: 1, Flex: true, Min: 12},
		{ID: "worker", Title: "WORKER", Priority: 3, Flex: true, Min: 10, Max: 24},
	}).SetRows(one{Row{ID: id, Cells: []render.Cell{{Text: id}, {Text: worker}}}})
	for width := 35; width < 50; width++ {
		if lines := drawTable(t, table, width, 3); !strings.Contains(lines[1], id) ||
			!strings.Contains(lines[0], "WORKER") {
			t.Errorf("at %d columns the row is %q, want all of %q and something of the worker", width, lines[1], id)
		}
	}
}

// one is a single row.
type one struct{ row Row }

func (o one) Len() int                   { return 1 }
func (o one) Row(int) (Row, bool)        { return o.row, true }
func (o one) Find(id string) (int, bool) { return 0, id == o.row.ID }

func TestColumnsAreChosenByPriorityAsTheyFit(t *testing.T) {
	for _, c := range []struct {
		width int
		head  string
	}{
		{30, "  STATUS     TYPE   ID"}, {40, "  STATUS     TYPE   ID        QUEUE"},
		{80, "  STATUS     TYPE   ID        QUEUE    COUNT"},
	} {
		table := NewTable(look, testColumns).SetRows(numbered(0, 3))
		if got := drawTable(t, table, c.width, 5)[0]; got != c.head {
			t.Errorf("at %d columns the head is %q, want %q", c.width, got, c.head)
		}
	}
	table := NewTable(look, testColumns).SetRows(numbered(0, 3))
	table.SetWide(true)
	if got := drawTable(t, table, 120, 5)[0]; !strings.Contains(got, "MORE") {
		t.Errorf("a wide table shows %q, want all columns", got)
	}
	if err := table.Show([]string{"id", "more"}); err != nil {
		t.Fatal(err)
	}
	table.SetWide(false)
	if got := drawTable(t, table, 80, 5)[0]; got != "  ID        MORE" {
		t.Errorf("with chosen columns the head is %q, want ID and MORE", got)
	}
	if err := table.Show([]string{"no"}); err == nil ||
		!strings.Contains(err.Error(), `no column "no"; there are status`) {
		t.Errorf("an unknown column gives %v, want an error that names those there are", err)
	}
}

// counted is a large set of rows that counts the calls.
type counted struct {
	n, asked int
}

func (c *counted) Len() int { return c.n }
func (c *counted) Row(i int) (Row, bool) {
	c.asked++
	return sliceRows{fmt.Sprintf("row-%07d", i)}.Row(0)
}

func (c *counted) Find(id string) (int, bool) {
	var i int
	_, err := fmt.Sscanf(id, "row-%d", &i)
	return i, err == nil && i < c.n
}

func TestOnlyRowsOnTheScreenAreAskedFor(t *testing.T) {
	rows := &counted{n: 100_000}
	table := NewTable(look, testColumns).SetRows(rows)
	drawTable(t, table, 200, 50)
	press(table, "G")
	rows.asked = 0
	lines := drawTable(t, table, 200, 50)
	if rows.asked > 60 {
		t.Errorf("%d rows were asked for to draw 49", rows.asked)
	}
	if lineOf(lines, "row-0099999") != 49 {
		t.Errorf("the last row is not on the last line:\n%s", lines[49])
	}
}

func BenchmarkDrawHundredThousandRows(b *testing.B) {
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		b.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(200, 50)
	rows := &counted{n: 100_000}
	table := NewTable(look, testColumns).SetRows(rows)
	table.SetRect(0, 0, 200, 50)
	for b.Loop() {
		press(table, "pgdn")
		table.Draw(screen)
		screen.Show()
	}
}
