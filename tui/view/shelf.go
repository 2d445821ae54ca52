package view

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// shelf is a page that shows a list which is loaded whole: workers, schedules, queues, namespaces.
type shelf[T proto.Message] struct {
	list
	title string
	items *model.Collection[T]
	row   func(T) widget.Row
	order map[string]func(a, b T) int // of columns that do not sort by what their cells say
	empty func() []widget.Line        // in place of items when there are none at all; the namespace may be another one than before
}

// newShelf makes the page; the caller sets what is done with rows.
func newShelf[T proto.Message](a *App, name, title string, columns []widget.Column, items *model.Collection[T], row func(T) widget.Row) shelf[T] {
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
	count := number(int64(s.items.Len()))
	if s.items.More() {
		count += " and more"
	}
	title := fmt.Sprintf("%s (%s)", s.title, count)
	if s.items.Filter() != "" {
		title = fmt.Sprintf("%s (%s of %s)  %s", s.title, count, number(int64(len(s.items.All()))), s.items.Filter())
	}
	return title
}

func (s *shelf[T]) Draw(c widget.Canvas) {
	switch {
	case !s.items.Loaded():
		s.tab.SetEmpty([]widget.Line{widget.TextLine("Reading …", render.Dim)})
	case s.items.Filter() != "":
		s.tab.SetEmpty([]widget.Line{widget.TextLine(fmt.Sprintf("0 of %d match  %s   esc clears", len(s.items.All()), s.items.Filter()), render.Dim)})
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
