package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/render"
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

// contains says whether any of the cells holds the text, whatever its case; "!" in front turns it around.
func contains(text string, cells ...string) bool {
	text, not := strings.CutPrefix(strings.ToLower(text), "!")
	for _, cell := range cells {
		if strings.Contains(strings.ToLower(cell), text) {
			return !not
		}
	}
	return not
}
