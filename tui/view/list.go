package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// list is the common part of all table pages. A page embeds it and provides the rows.
type list struct {
	app  *App
	name string
	tab  *widget.Table
	// messages returns the loaded rows as messages, in order, for files and the clipboard.
	messages func() []proto.Message
	// message returns the message of a row.
	message func(id string) proto.Message
}

// newList creates the table of a page with the columns from the settings.
func newList(a *App, name string, columns []widget.Column) list {
	l := list{app: a, name: name, tab: widget.NewTable(a.theme, columns)}
	if chosen := a.options.Config.Columns[name]; chosen != nil {
		if err := l.tab.Show(chosen); err != nil {
			a.complain(fmt.Errorf("columns.%s in tui.toml: %w", name, err))
		}
	}
	return l
}

func (l *list) Name() string                   { return l.name }
func (l *list) Crumb() string                  { return l.name }
func (l *list) Status() string                 { return "" }
func (l *list) Key(event *tcell.EventKey) bool { return l.tab.Key(event) }
func (l *list) Close()                         {}
func (l *list) table() *widget.Table           { return l.tab }

func (l *list) Draw(c widget.Canvas) {
	l.tab.SetRect(c.X, c.Y, c.W, c.H)
	l.tab.Draw(c.Screen)
}

func (l *list) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := l.tab.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// CopyID returns the id of the row under the cursor.
func (l *list) CopyID() string {
	id, _ := l.tab.Selected()
	return id
}

// CopyAll returns the row under the cursor as JSON.
func (l *list) CopyAll() string {
	id, ok := l.tab.Selected()
	if !ok || l.message == nil {
		return ""
	}
	return document(l.message(id))
}

// Rows returns the titles and the loaded rows.
func (l *list) Rows() (titles []string, rows [][]string) { return l.tab.Export() }

// JSON returns the loaded rows in the shape that the command line prints.
func (l *list) JSON() ([]byte, error) {
	raw, err := render.JSON(render.Documents(l.messages()), "  ")
	return append(raw, '\n'), err
}

// document returns a message as JSON; empty for nil.
func document(m proto.Message) string {
	if m == nil || !m.ProtoReflect().IsValid() {
		return ""
	}
	raw, err := render.JSON(render.Document(m), "  ")
	if err != nil {
		return ""
	}
	return string(raw)
}

// nextSort returns the column to the right or left of the sort column.
func (l *list) nextSort(step int) string {
	columns := l.tab.Columns()
	now, _ := l.tab.Sort()
	i := slices.IndexFunc(columns, func(c widget.Column) bool { return c.ID == now })
	if i < 0 && step < 0 {
		i = 0
	}
	return columns[(i+step+len(columns))%len(columns)].ID
}

// rangeTitle shows which rows are on the screen: "Runs (1–46 of 12481)".
func rangeTitle(title string, first, last int, total string) string {
	if last <= first {
		return title
	}
	return fmt.Sprintf("%s (%d–%d of %s)", title, first+1, last, total)
}

// listPage is a page with a list that is loaded whole: workers, schedules, queues, namespaces.
type listPage[T proto.Message] struct {
	list
	title string
	items *model.Collection[T]
	row   func(T) widget.Row
	order map[string]func(a, b T) int // of columns that do not sort by the text of their cells
	// shown instead of items if there are none; the namespace may have changed
	empty func() []widget.Line
}

// newListPage creates the page; the caller adds the actions on rows.
func newListPage[T proto.Message](a *App, name, title string, columns []widget.Column, items *model.Collection[T],
	row func(T) widget.Row) listPage[T] {
	s := listPage[T]{list: newList(a, name, columns), title: title, items: items, row: row}
	s.messages = func() []proto.Message {
		messages := make([]proto.Message, 0, items.Len())
		for i := range items.Len() {
			item, _ := items.Row(i)
			messages = append(messages, item)
		}
		return messages
	}
	s.message = func(id string) proto.Message {
		if item, ok := items.Get(id); ok {
			return item
		}
		return nil
	}
	s.tab.SetRows(listRows[T]{a, items, row})
	items.Changed = func() {} // every posted function is followed by a draw
	return s
}

// listRows presents the items as rows of a table.
type listRows[T proto.Message] struct {
	app   *App
	items *model.Collection[T]
	row   func(T) widget.Row
}

func (r listRows[T]) Len() int                   { return r.items.Len() }
func (r listRows[T]) Find(id string) (int, bool) { return r.items.Find(id) }

func (r listRows[T]) Row(i int) (widget.Row, bool) {
	item, ok := r.items.Row(i)
	if !ok {
		return widget.Row{}, false
	}
	row := r.row(item)
	row.Stale = r.app.link.State().Down()
	return row, true
}

func (s *listPage[T]) Show()          { s.items.Show() }
func (s *listPage[T]) Hide()          { s.items.Hide() }
func (s *listPage[T]) Close()         { s.items.Close() }
func (s *listPage[T]) Refresh()       { s.items.Refresh() }
func (s *listPage[T]) Failure() error { return s.items.Err() }

// Title shows how many items there are.
func (s *listPage[T]) Title() string {
	if !s.items.Loaded() {
		return s.title
	}
	count := format.Number(int64(s.items.Len()))
	if s.items.More() {
		count += " and more"
	}
	title := fmt.Sprintf("%s (%s)", s.title, count)
	if s.items.Filter() != "" {
		title = fmt.Sprintf("%s (%s of %s)  %s", s.title, count, format.Number(int64(len(s.items.All()))),
			s.items.Filter())
	}
	return title
}

func (s *listPage[T]) Draw(c widget.Canvas) {
	switch {
	case !s.items.Loaded():
		s.tab.SetEmpty([]widget.Line{widget.TextLine("Reading …", render.Dim)})
	case s.items.Filter() != "":
		s.tab.SetEmpty([]widget.Line{widget.TextLine(
			fmt.Sprintf("0 of %d match  %s   esc clears", len(s.items.All()), s.items.Filter()), render.Dim)})
	default:
		s.tab.SetEmpty(s.empty())
	}
	s.list.Draw(c)
}

// Status shows the sort column.
func (s *listPage[T]) Status() string {
	column, desc := s.tab.Sort()
	if column == "" {
		return ""
	}
	if desc {
		return "sort: " + column + " down"
	}
	return "sort: " + column
}

// SortBy sorts the items by a column.
func (s *listPage[T]) SortBy(column string, descending bool) error {
	at := -1
	for i, c := range s.tab.Columns() {
		if c.ID == column {
			at = i
		}
	}
	if at < 0 {
		return fmt.Errorf("there is no column %q; there are %s", column, strings.Join(columnIDs(s.tab), ", "))
	}
	order := s.order[column]
	if order == nil {
		order = func(a, b T) int { return cmp.Compare(s.row(a).Cells[at].Text, s.row(b).Cells[at].Text) }
	}
	s.items.SortBy(func(a, b T) int {
		if descending {
			return order(b, a)
		}
		return order(a, b)
	})
	s.tab.SetSort(column, descending)
	return nil
}

func (s *listPage[T]) Filter() string                      { return s.items.Filter() }
func (s *listPage[T]) CompleteFilter(text string) []string { return nil }
func (s *listPage[T]) TryFilter(text string)               { s.items.SetFilter(text) }

func (s *listPage[T]) SetFilter(text string) error {
	s.items.SetFilter(text)
	return nil
}

// Escape clears the filter.
func (s *listPage[T]) Escape() bool {
	if s.items.Filter() == "" {
		return false
	}
	s.items.SetFilter("")
	return true
}

// under returns the item under the cursor.
func (s *listPage[T]) under() (item T, ok bool) {
	id, ok := s.tab.Selected()
	if !ok {
		return item, false
	}
	return s.items.Get(id)
}
