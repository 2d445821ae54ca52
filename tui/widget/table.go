package widget

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// Column is one column of a Table.
type Column struct {
	ID       string // "status"; what sorting and files of rows call it
	Title    string
	Priority int  // 1 is always shown, 2 and 3 as there is room, 4 only when the table is wide
	Comfort  int  // cells that a column which may be cut should have before columns of priority 3 are shown; 0: 20
	Min, Max int  // cells; 0: as wide as its title, and as its widest cell
	Right    bool // aligned to the right: numbers
	Flex     bool // may be cut down to Min, and takes what room is left: names, texts
}

// Row is one row of a Table: a cell for each of its columns.
type Row struct {
	ID    string // what it is about; the cursor and the marks stay with it
	Cells []render.Cell
	Fresh bool // it has just changed
	Stale bool // it may be out of date
}

// Rows are what a Table shows. It asks only for those that are on the screen.
type Rows interface {
	Len() int
	Row(i int) (row Row, ok bool) // not ok: it is not loaded yet
	Find(id string) (i int, ok bool)
}

// Table shows rows of which there may be any number. The cursor and the marks stay with their rows
// by id, and the row under the cursor stays on its line, when rows come and go around it.
type Table struct {
	*tview.Box
	look    func() *theme.Theme
	columns []Column
	rows    Rows

	selected int    // index of the row under the cursor
	id       string // its id; empty: none yet
	line     int    // where it stood on the screen
	offset   int    // index of the first row on the screen
	height   int    // rows on the screen at the last draw
	top      bool   // the first row was on the screen
	follow   bool   // nobody has moved the cursor: it may stay at the top when its row is pushed off the screen

	marks  map[string]bool
	anchor string // the row that a range of marks begins at

	order      []int // of the columns to show; nil: those that fit, by priority
	wide       bool
	left       int         // columns scrolled out on the left
	widths     map[int]int // of columns, as wide as they have been on the screen
	width      int         // of the table when widths were taken
	sort       string      // id of the column
	descending bool
	empty      []Line

	// Opened is called with the row under the cursor when it is chosen with enter or a double
	// click, Moved when the cursor goes to another row, and Viewed after a draw with the rows that
	// are on the screen, last excluded.
	Opened func(id string)
	Moved  func(id string)
	Viewed func(first, last int)
}

// NewTable makes an empty table.
func NewTable(look func() *theme.Theme, columns []Column) *Table {
	return &Table{Box: tview.NewBox(), look: look, columns: columns, rows: none{}, marks: map[string]bool{},
		widths: map[int]int{}, top: true, follow: true}
}

// none is the rows of a table that has been given none.
type none struct{}

func (none) Len() int                { return 0 }
func (none) Row(int) (Row, bool)     { return Row{}, false }
func (none) Find(string) (int, bool) { return 0, false }

// SetRows shows other rows. The cursor stays on its row if it is among them.
func (t *Table) SetRows(rows Rows) *Table {
	t.rows = rows
	return t
}

// SetEmpty says what stands in place of rows when there are none.
func (t *Table) SetEmpty(lines []Line) { t.empty = lines }

// Columns are the columns, shown or not.
func (t *Table) Columns() []Column { return t.columns }

// SetColumns replaces them; the rows must have a cell for each.
func (t *Table) SetColumns(columns []Column) {
	t.columns, t.order, t.left = columns, nil, 0
	t.forget()
}

// SetWide shows all columns at their width, to be scrolled sideways, instead of those that fit.
func (t *Table) SetWide(wide bool) {
	t.wide, t.left = wide, 0
	t.forget()
}

// Wide says whether all columns are shown.
func (t *Table) Wide() bool { return t.wide }

// SetSort marks the column that the rows are sorted by. The rows sort themselves.
func (t *Table) SetSort(column string, descending bool) { t.sort, t.descending = column, descending }

// Sort is the column that is marked so.
func (t *Table) Sort() (column string, descending bool) { return t.sort, t.descending }

// Selected is the row under the cursor; ok is false when there is none.
func (t *Table) Selected() (id string, ok bool) {
	t.settle()
	return t.id, t.id != ""
}

// Index is the place of the row under the cursor.
func (t *Table) Index() int {
	t.settle()
	return t.selected
}

// AtTop says whether the first row was on the screen when it was last drawn.
func (t *Table) AtTop() bool { return t.top }

// Select puts the cursor on a row, if there is one with that id.
func (t *Table) Select(id string) bool {
	i, ok := t.rows.Find(id)
	if ok {
		t.Go(i)
	}
	return ok
}

// Go puts the cursor on the row at a place, or on the nearest there is.
func (t *Table) Go(i int) {
	t.follow = false
	n := t.rows.Len()
	if n == 0 {
		t.selected, t.id, t.line, t.offset = 0, "", 0, 0
		return
	}
	i = min(max(i, 0), n-1)
	row, ok := t.rows.Row(i)
	was := t.id
	t.selected, t.id = i, ""
	if ok {
		t.id = row.ID
	}
	t.scroll()
	if t.Moved != nil && t.id != was {
		t.Moved(t.id)
	}
}

// Top puts the cursor on the first row, and lets it stay there while new rows come.
func (t *Table) Top() {
	t.top, t.offset = true, 0
	t.Go(0)
	t.follow = true
}

// scroll moves the screen so that the cursor is on it.
func (t *Table) scroll() {
	t.selected, t.offset = inView(t.selected, t.offset, t.rows.Len(), t.height)
	t.line = t.selected - t.offset
}

// settle finds the row under the cursor again after rows have come and gone, and keeps it on its
// line. At the top the screen stays at the top as long as the cursor is on it, so that what is new
// is seen; a cursor that nobody has moved is not carried off by its row.
func (t *Table) settle() {
	n := t.rows.Len()
	if n == 0 {
		t.selected, t.offset, t.line = 0, 0, 0
		t.id = ""
		return
	}
	if t.id != "" {
		if i, ok := t.rows.Find(t.id); ok && t.follow && t.top && i >= max(t.height, 1) {
			t.selected, t.offset = 0, 0
		} else if ok {
			t.selected = i
			if !t.top || i >= max(t.height, 1) {
				t.offset = i - t.line
			} else {
				t.offset = 0
			}
			t.scroll()
			return
		}
	}
	t.selected = min(t.selected, n-1)
	t.id = ""
	if row, ok := t.rows.Row(t.selected); ok {
		t.id = row.ID
	}
	t.scroll()
}

// Marked are the ids of the marked rows that are still there, in no order.
func (t *Table) Marked() []string {
	var ids []string
	for id := range t.marks {
		if _, ok := t.rows.Find(id); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Targets are the rows that an action is for: the marked ones in the order of the table, or else
// the one under the cursor.
func (t *Table) Targets() []string {
	if len(t.marks) > 0 {
		var ids []string
		for i := range t.rows.Len() {
			if row, ok := t.rows.Row(i); ok && t.marks[row.ID] {
				ids = append(ids, row.ID)
			}
		}
		if len(ids) > 0 {
			return ids
		}
	}
	if id, ok := t.Selected(); ok {
		return []string{id}
	}
	return nil
}

// ToggleMark marks the row under the cursor, or takes the mark away, and goes on to the next.
func (t *Table) ToggleMark() {
	id, ok := t.Selected()
	if !ok {
		return
	}
	if t.marks[id] {
		delete(t.marks, id)
	} else {
		t.marks[id] = true
	}
	t.anchor = id
	t.Go(t.selected + 1)
}

// errNoAnchor refuses to mark a part of what was meant.
var errNoAnchor = errors.New(
	"the row that was marked last is no longer among those that are loaded: mark one of these first")

// MarkRange marks all rows from the one that was marked last to the one under the cursor; only that
// when none has been marked. It refuses when the one that was marked last is not there any more.
func (t *Table) MarkRange() error {
	to := t.Index()
	from := to
	if t.anchor != "" {
		var ok bool
		if from, ok = t.rows.Find(t.anchor); !ok {
			return errNoAnchor
		}
	}
	for i := min(from, to); i <= max(from, to); i++ {
		if row, ok := t.rows.Row(i); ok {
			t.marks[row.ID] = true
		}
	}
	return nil
}

// ClearMarks takes all marks away.
func (t *Table) ClearMarks() {
	clear(t.marks)
	t.anchor = ""
}

// InputHandler moves the cursor, opens rows and scrolls columns.
func (t *Table) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return t.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { t.Key(event) })
}

// Key does what a key means to the table; ok is false when it means nothing.
func (t *Table) Key(event *tcell.EventKey) (ok bool) {
	t.settle()
	t.follow = false
	key := KeyName(event)
	switch key {
	case "g", "home":
		t.Top()
	case "l", "right":
		t.left = min(t.left+1, len(t.columns)-1)
	case "h", "left":
		t.left = max(t.left-1, 0)
	case "enter":
		if id, ok := t.Selected(); ok && t.Opened != nil {
			t.Opened(id)
		}
	default:
		rows, ok := MovesBy(key, t.rows.Len(), t.height)
		if ok {
			t.Go(t.selected + rows)
		}
		return ok
	}
	return true
}

// MouseHandler moves with the wheel, and selects and opens with clicks.
func (t *Table) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
	return t.WrapMouseHandler(func(action tview.MouseAction, event *tcell.EventMouse, _ func(tview.Primitive)) (bool,
		tview.Primitive) {
		x, y := event.Position()
		if !t.InRect(x, y) {
			return false, nil
		}
		_, top, _, _ := t.GetInnerRect()
		row := t.offset + y - top - 1
		t.follow = false
		switch action {
		case tview.MouseScrollUp:
			t.Go(t.selected - 3)
		case tview.MouseScrollDown:
			t.Go(t.selected + 3)
		case tview.MouseLeftClick, tview.MouseLeftDoubleClick:
			if y <= top || row >= t.rows.Len() {
				return true, nil
			}
			t.Go(row)
			if action == tview.MouseLeftDoubleClick && t.Opened != nil {
				t.Opened(t.id)
			}
		default:
			return false, nil
		}
		return true, nil
	})
}

// Show shows these columns, by their ids and in this order, whatever their priority. The error
// names one that is not there.
func (t *Table) Show(ids []string) error {
	var order []int
	for _, id := range ids {
		i := slices.IndexFunc(t.columns, func(c Column) bool { return c.ID == id })
		if i < 0 {
			var known []string
			for _, c := range t.columns {
				known = append(known, c.ID)
			}
			return fmt.Errorf("there is no column %q; there are %s", id, strings.Join(known, ", "))
		}
		order = append(order, i)
	}
	t.order = order
	return nil
}

// Export is the titles of all columns and the rows that are loaded, as they read.
func (t *Table) Export() (titles []string, rows [][]string) {
	for _, c := range t.columns {
		titles = append(titles, c.Title)
	}
	for i := range t.rows.Len() {
		row, ok := t.rows.Row(i)
		if !ok {
			continue
		}
		cells := make([]string, len(t.columns))
		for j := range min(len(cells), len(row.Cells)) {
			cells[j] = row.Cells[j].Text
		}
		rows = append(rows, cells)
	}
	return titles, rows
}
