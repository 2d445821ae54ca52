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
	ID       string // "status"; for sorting and exports
	Title    string
	Priority int  // 1 is always shown, 2 and 3 if they fit, 4 only in a wide table
	Comfort  int  // cells of a Flex column below which columns of priority 3 are not shown; 0: 20
	Min, Max int  // cells; 0: as wide as its title, and as its widest cell
	Right    bool // right-aligned: numbers
	Flex     bool // can shrink to Min, and takes free space: names, texts
}

// Row is one row of a Table, with a cell for each column.
type Row struct {
	ID    string // the cursor and marks follow it
	Cells []render.Cell
	Fresh bool // changed recently
	Stale bool // may be out of date
}

// Rows provides the rows of a Table, which asks only for visible ones.
type Rows interface {
	Len() int
	Row(i int) (row Row, ok bool) // ok false: not loaded yet
	Find(id string) (i int, ok bool)
}

// Table shows any number of rows. The cursor and the marks follow their rows by id. When rows are
// added or removed around it, the row under the cursor keeps its line on the screen.
//
// It is not tview's Table: that shows all columns from the left instead of those that fit, their
// widths change while rows scroll, and its cursor is an index. With all of this in a TableContent,
// only the drawing of cells would be tview's, which asks three times for each.
type Table struct {
	*tview.Box
	look    func() *theme.Theme
	columns []Column
	rows    Rows

	selected int    // index of the row under the cursor
	id       string // its id; empty: none yet
	line     int    // its line on the screen
	offset   int    // index of the first visible row
	height   int    // visible rows at the last draw
	top      bool   // the first row was visible
	follow   bool   // the cursor was never moved: it may stay at the top when its row moves down

	marks  map[string]bool
	anchor string // start of a range of marks

	order      []int // columns to show; nil: those that fit, by priority
	wide       bool
	left       int         // columns scrolled out on the left
	widths     map[int]int // by column, the widest so far
	width      int         // of the table when widths were measured
	sort       string      // id of the column
	descending bool
	empty      []Line

	// Opened is called with the row chosen by enter or a double click, Moved when the cursor moves
	// to another row, and Viewed after a draw with the visible rows, last excluded.
	Opened func(id string)
	Moved  func(id string)
	Viewed func(first, last int)
}

// NewTable returns an empty table.
func NewTable(look func() *theme.Theme, columns []Column) *Table {
	return &Table{Box: tview.NewBox(), look: look, columns: columns, rows: none{}, marks: map[string]bool{},
		widths: map[int]int{}, top: true, follow: true}
}

// none is an empty set of rows.
type none struct{}

func (none) Len() int                { return 0 }
func (none) Row(int) (Row, bool)     { return Row{}, false }
func (none) Find(string) (int, bool) { return 0, false }

// SetRows replaces the rows. The cursor stays on its row if it still exists.
func (t *Table) SetRows(rows Rows) *Table {
	t.rows = rows
	return t
}

// SetEmpty sets the lines shown if there are no rows.
func (t *Table) SetEmpty(lines []Line) { t.empty = lines }

// Columns returns all columns, shown or not.
func (t *Table) Columns() []Column { return t.columns }

// SetWide sets whether all columns are shown at full width, scrolled sideways, instead of those
// that fit.
func (t *Table) SetWide(wide bool) {
	t.wide, t.left = wide, 0
	t.forget()
}

// Wide reports whether all columns are shown.
func (t *Table) Wide() bool { return t.wide }

// SetSort marks the sort column. It does not sort the rows.
func (t *Table) SetSort(column string, descending bool) { t.sort, t.descending = column, descending }

// Sort returns the marked column.
func (t *Table) Sort() (column string, descending bool) { return t.sort, t.descending }

// Selected returns the row under the cursor; ok is false if there is none.
func (t *Table) Selected() (id string, ok bool) {
	t.settle()
	return t.id, t.id != ""
}

// Index returns the index of the row under the cursor.
func (t *Table) Index() int {
	t.settle()
	return t.selected
}

// Select moves the cursor to a row by id; false if there is none.
func (t *Table) Select(id string) bool {
	i, ok := t.rows.Find(id)
	if ok {
		t.Go(i)
	}
	return ok
}

// Go moves the cursor to the row at an index, within the range.
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

// Top moves the cursor to the first row, and keeps it there while new rows arrive.
func (t *Table) Top() {
	t.top, t.offset = true, 0
	t.Go(0)
	t.follow = true
}

// scroll scrolls the cursor into view.
func (t *Table) scroll() {
	t.selected, t.offset = inView(t.selected, t.offset, t.rows.Len(), t.height)
	t.line = t.selected - t.offset
}

// settle finds the row under the cursor again after changes, and keeps it on its line. While the
// cursor is visible from the top, the top stays visible, so that new rows show. A cursor that was
// never moved does not follow its row down.
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

// Marked returns the ids of the marked rows that still exist, in no order.
func (t *Table) Marked() []string {
	var ids []string
	for id := range t.marks {
		if _, ok := t.rows.Find(id); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Targets returns the rows that an action applies to: the marked ones in table order, or else the
// one under the cursor.
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

// ToggleMark marks or unmarks the row under the cursor, and moves to the next.
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

// errNoAnchor refuses to mark a range whose start is unknown.
var errNoAnchor = errors.New(
	"the row marked last is no longer loaded: mark a loaded row first")

// MarkRange marks all rows from the last marked one to the one under the cursor, or only the latter
// if none was marked. It fails if the last marked row no longer exists.
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

// ClearMarks removes all marks.
func (t *Table) ClearMarks() {
	clear(t.marks)
	t.anchor = ""
}

// InputHandler moves the cursor, opens rows and scrolls columns.
func (t *Table) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(t.Box, func(event *tcell.EventKey) { t.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
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
func (t *Table) MouseHandler() mouseHandler {
	return mouse(t.Box, func(rows int) {
		t.follow = false
		t.Go(t.selected + rows)
	}, func(_, y int, double bool) {
		row := t.offset + y - 1
		if y < 1 || row >= t.rows.Len() {
			return
		}
		t.follow = false
		t.Go(row)
		if double && t.Opened != nil {
			t.Opened(t.id)
		}
	})
}

// Show shows exactly these columns, by id and in this order. The error names an unknown one.
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

// Export returns the titles of all columns and the loaded rows, as text.
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
