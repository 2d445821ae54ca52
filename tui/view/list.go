package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/format"
	"github.com/kagzi/kagzi/tui/widget"
)

// list is what all pages that are a table have in common. A page embeds it and says what its rows are.
type list struct {
	app  *App
	name string
	tab  *widget.Table
	// messages are what the loaded rows are about, in their order, for files and for the clipboard.
	messages func() []proto.Message
	// message is the one of a row.
	message func(id string) proto.Message
}

// newList makes the table of a page, with the columns that the settings choose.
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

// CopyID is the id of the row under the cursor.
func (l *list) CopyID() string {
	id, _ := l.tab.Selected()
	return id
}

// CopyAll is the row under the cursor as JSON.
func (l *list) CopyAll() string {
	id, ok := l.tab.Selected()
	if !ok || l.message == nil {
		return ""
	}
	return document(l.message(id))
}

// Rows are the titles and the loaded rows.
func (l *list) Rows() (titles []string, rows [][]string) { return l.tab.Export() }

// JSON is the loaded rows in the shape that the command line prints.
func (l *list) JSON() ([]byte, error) {
	raw, err := render.JSON(render.Documents(l.messages()), "  ")
	return append(raw, '\n'), err
}

// document is a message as JSON; empty for none.
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

// nextSort is the column to the right or left of the one that rows are sorted by.
func (l *list) nextSort(step int) string {
	columns := l.tab.Columns()
	now, _ := l.tab.Sort()
	i := slices.IndexFunc(columns, func(c widget.Column) bool { return c.ID == now })
	if i < 0 && step < 0 {
		i = 0
	}
	return columns[(i+step+len(columns))%len(columns)].ID
}

// rangeTitle says which rows are on the screen: "Runs (1–46 of 12481)".
func rangeTitle(title string, first, last int, total string) string {
	if last <= first {
		return title
	}
	return fmt.Sprintf("%s (%d–%d of %s)", title, first+1, last, total)
}

// shelf is a page that shows a list which is loaded whole: workers, schedules, queues, namespaces.
type shelf[T proto.Message] struct {
	list
	title string
	items *model.Collection[T]
	row   func(T) widget.Row
	order map[string]func(a, b T) int // of columns that do not sort by what their cells say
	// in place of items when there are none at all; the namespace may be another one than before
	empty func() []widget.Line
}

// newShelf makes the page; the caller sets what is done with rows.
func newShelf[T proto.Message](a *App, name, title string, columns []widget.Column, items *model.Collection[T],
	row func(T) widget.Row) shelf[T] {
	s := shelf[T]{list: newList(a, name, columns), title: title, items: items, row: row}
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
	s.tab.SetRows(shelfRows[T]{a, items, row})
	items.Changed = func() {} // what changed is drawn after every posted function
	return s
}

// shelfRows are the items as rows of a table.
type shelfRows[T proto.Message] struct {
	app   *App
	items *model.Collection[T]
	row   func(T) widget.Row
}

func (r shelfRows[T]) Len() int                   { return r.items.Len() }
func (r shelfRows[T]) Find(id string) (int, bool) { return r.items.Find(id) }

func (r shelfRows[T]) Row(i int) (widget.Row, bool) {
	item, ok := r.items.Row(i)
	if !ok {
		return widget.Row{}, false
	}
	row := r.row(item)
	row.Stale = r.app.link.State().Down()
	return row, true
}

func (s *shelf[T]) Show()          { s.items.Show() }
func (s *shelf[T]) Hide()          { s.items.Hide() }
func (s *shelf[T]) Close()         { s.items.Close() }
func (s *shelf[T]) Refresh()       { s.items.Refresh() }
func (s *shelf[T]) Failure() error { return s.items.Err() }

// Title says how many there are.
func (s *shelf[T]) Title() string {
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

func (s *shelf[T]) Draw(c widget.Canvas) {
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

// Status is what the rows are sorted by.
func (s *shelf[T]) Status() string {
	column, desc := s.tab.Sort()
	if column == "" {
		return ""
	}
	if desc {
		return "sort: " + column + " down"
	}
	return "sort: " + column
}

// SortBy orders the items by a column.
func (s *shelf[T]) SortBy(column string, descending bool) error {
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

func (s *shelf[T]) Filter() string                      { return s.items.Filter() }
func (s *shelf[T]) CompleteFilter(text string) []string { return nil }
func (s *shelf[T]) TryFilter(text string)               { s.items.SetFilter(text) }

func (s *shelf[T]) SetFilter(text string) error {
	s.items.SetFilter(text)
	return nil
}

// Escape clears the filter.
func (s *shelf[T]) Escape() bool {
	if s.items.Filter() == "" {
		return false
	}
	s.items.SetFilter("")
	return true
}

// under is the item under the cursor.
func (s *shelf[T]) under() (item T, ok bool) {
	id, ok := s.tab.Selected()
	if !ok {
		return item, false
	}
	return s.items.Get(id)
}
