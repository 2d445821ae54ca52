// Package eventlist keeps the rows of the event log that match a filter, and draws them around a
// cursor that can follow new events.
package eventlist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// List holds the cursor and the scroll position. A row can take several screen lines.
type List struct {
	Follow, Wrap bool
	at           int64 // sequence of the event under the cursor; 0: none
	top          int   // the first row on the screen
	page         int   // rows on the screen at the last draw
	upper        int   // screen line of the first row
	lines        []int // the row of each line of the screen
}

// Index returns the row under the cursor; -1 if there is none.
func (l *List) Index(rows *Rows) int {
	if l.Follow || l.at == 0 {
		return rows.find(rows.last)
	}
	return rows.find(l.at)
}

// Below returns how many events are below the cursor.
func (l *List) Below(rows *Rows) int {
	n := 0
	for _, row := range rows.List[max(l.Index(rows), 0):] {
		if row.Event != nil {
			n++
		}
	}
	return n - 1
}

// Move moves the cursor by n events, down if positive. Moving up stops following.
func (l *List) Move(n int, rows *Rows) {
	i := l.Index(rows)
	if i < 0 {
		return
	}
	step := 1
	if n < 0 {
		step, n, l.Follow = -1, -n, false
	}
	for to := i + step; n > 0 && to >= 0 && to < len(rows.List); to += step {
		if rows.List[to].Event != nil {
			i = to
			n--
		}
	}
	l.at = rows.List[i].Event.GetSequence()
}

// Key moves the cursor as tables do; false if the key has no meaning.
func (l *List) Key(name string, rows *Rows) bool {
	n, ok := widget.MovesBy(name, len(rows.List), l.page)
	if ok {
		l.Move(n, rows)
	}
	return ok
}

// Point puts the cursor on the event at a screen line.
func (l *List) Point(y int, rows *Rows) bool {
	y -= l.upper
	if y < 0 || y >= len(l.lines) || l.lines[y] >= len(rows.List) || rows.List[l.lines[y]].Event == nil {
		return false
	}
	l.Follow, l.at = false, rows.List[l.lines[y]].Event.GetSequence()
	return true
}

// Columns of the list, in cells.
const (
	levelWidth     = 7
	kindWidth      = 8
	leastSubject   = 12
	mostSubject    = 34
	leastMessage   = 6   // least cells of a message
	narrowestEvent = 100 // below it, kinds are left out
)

// eventColumns holds the start of each column; kind is negative if it is left out.
type eventColumns struct{ level, kind, subject, text, width int }

func eventColumnsOf(width, clock int) eventColumns {
	c := eventColumns{level: clock + 2, kind: -1, width: width}
	c.subject = c.level + levelWidth + 2
	if width >= narrowestEvent {
		c.kind = c.subject
		c.subject += kindWidth + 2
	}
	c.text = c.subject + min(max(width/5, leastSubject), mostSubject) + 2
	return c
}

// Draw draws the titles and the rows around the cursor.
func (l *List) Draw(c widget.Canvas, rows *Rows, at *clock.Clock, down bool) {
	outer := c
	c = c.Part(1, 0, c.W-2, c.H)
	look := c.Theme
	columns := eventColumnsOf(c.W, timeWidth(rows, at))
	head := look.Role(theme.Head)
	c.Text(0, 0, "TIME", head)
	c.Text(columns.level, 0, "LEVEL", head)
	if columns.kind >= 0 {
		c.Text(columns.kind, 0, "KIND", head)
	}
	c.Text(columns.subject, 0, "SUBJECT", head)
	c.Text(columns.text, 0, "MESSAGE", head)
	body := c.Part(0, 1, c.W, c.H-1)
	l.place(rows, columns, body.H)
	l.lines, l.upper, l.page = l.lines[:0], body.Y, 0
	cursor := l.Index(rows)
	for i, y := l.top, 0; i < len(rows.List) && y < body.H; i++ {
		texts := l.texts(rows.List[i], columns)
		h := min(len(texts), body.H-y)
		drawEvent(body.Part(0, y, body.W, h), rows.List[i], texts, columns, eventTime(rows.List[i].Event, at),
			i == cursor, down)
		for range h {
			l.lines = append(l.lines, i)
		}
		y += h
		l.page++
	}
	if l.top > 0 {
		outer.Text(outer.W-1, 0, look.Glyph(theme.Up), look.Role(theme.Key))
	}
	if l.top+l.page < len(rows.List) {
		outer.Text(outer.W-1, outer.H-1, look.Glyph(theme.Down), look.Role(theme.Key))
	}
}

// place chooses the first row so that the cursor is visible and the list is as full as possible.
func (l *List) place(rows *Rows, at eventColumns, height int) {
	cursor := l.Index(rows)
	l.top = min(l.top, cursor)
	used := 0
	for i := cursor; i >= l.top; i-- { // from the cursor up, as far as rows fit
		used += len(l.texts(rows.List[i], at))
		if used > height && i < cursor {
			l.top = i + 1
			break
		}
	}
	used = 0
	for i := l.top; i < len(rows.List) && used < height; i++ {
		used += len(l.texts(rows.List[i], at))
	}
	for l.top > 0 && used < height {
		if used += len(l.texts(rows.List[l.top-1], at)); used > height {
			return
		}
		l.top--
	}
}

// texts returns the lines of a row's message, made safe.
func (l *List) texts(row Row, at eventColumns) []string {
	if !l.Wrap || row.Event == nil {
		return []string{row.Text}
	}
	return format.Wrapped(render.Safe(row.Text), max(at.width-at.text, leastMessage))
}

// drawEvent draws a row.
func drawEvent(c widget.Canvas, row Row, texts []string, at eventColumns, noted string, selected, down bool) {
	style := c.Theme.Style
	switch {
	case selected:
		style = func(render.Style) tcell.Style { return c.Theme.Role(theme.Selected) }
		c.Clear(c.Theme.Role(theme.Selected))
	case down:
		style = func(render.Style) tcell.Style { return c.Theme.Role(theme.Stale) }
	}
	e := row.Event
	if e == nil {
		c.Cut(at.level, 0, c.W-at.level, c.Theme.Glyph(theme.Break)+" "+Missed(row.gap), c.Theme.Role(theme.Warning))
		return
	}
	level := LevelCell(c.Theme, e.GetLevel())
	c.Cut(0, 0, at.level-2, noted, style(render.Dim))
	c.Cut(at.level, 0, levelWidth, level.Text, style(level.Style))
	if at.kind >= 0 {
		c.Cut(at.kind, 0, kindWidth, row.Kind, style(render.Dim))
	}
	c.Cut(at.subject, 0, at.text-at.subject-2, row.Subject, style(render.Plain))
	message := render.Plain
	if e.GetLevel() != "INFO" {
		message = level.Style
	}
	for i, text := range texts {
		c.Cut(at.text, i, c.W-at.text, text, style(message))
	}
}

// Row is an event, or a gap before one.
type Row struct {
	Event               *kagziv1.ServerEvent // nil: a gap
	gap                 int64                // number of missed events
	Kind, Subject, Text string               // raw
}

// Rows holds the events that match a filter, oldest first, with the gaps between them.
type Rows struct {
	List  []Row
	Count int // number of events

	newest      *kagziv1.ServerEvent // when the rows were made; sequences repeat across servers
	first, last int64                // sequences
	of          int
	filter      string
	namespace   string
	down        bool
}

// Fill makes the rows, unless they are made of the same events already. down means that events do
// not arrive now.
func (r *Rows) Fill(events []*kagziv1.ServerEvent, f Filter, namespace string, down bool) {
	var newest *kagziv1.ServerEvent
	first, last := int64(0), int64(0)
	if n := len(events); n > 0 {
		newest, first, last = events[n-1], events[0].GetSequence(), events[n-1].GetSequence()
	}
	if r.of == len(events) && r.newest == newest && r.first == first && r.filter == f.Text &&
		r.namespace == namespace && r.down == down {
		return
	}
	*r = Rows{newest: newest, first: first, last: last, of: len(events), filter: f.Text, namespace: namespace,
		down: down}
	for i, e := range events {
		if i > 0 {
			if gap := e.GetSequence() - events[i-1].GetSequence() - 1; gap > 0 {
				r.List = append(r.List, Row{gap: gap})
			}
		}
		row := rowOfEvent(e, namespace)
		if f.keeps(row) {
			r.List = append(r.List, row)
			r.Count++
		}
	}
	if r.Count == 0 {
		r.List = nil
	}
}

// find returns the row of an event, or of the next one that is shown; -1 if there is none.
func (r *Rows) find(sequence int64) int {
	last := -1
	for i, row := range r.List {
		if row.Event == nil {
			continue
		}
		last = i
		if row.Event.GetSequence() >= sequence {
			return i
		}
	}
	return last
}

// subjects lists what an event can be about, by the keys of its attributes.
var subjects = []string{"run", "worker", "schedule", "queue"}

// SubjectOf returns the subject of an event; "server" if it has none.
func SubjectOf(e *kagziv1.ServerEvent) (kind, id string) {
	for _, at := range e.GetAttributes() {
		if slices.Contains(subjects, at.GetKey()) {
			return at.GetKey(), at.GetValue()
		}
	}
	return "server", ""
}

// rowOfEvent returns an event as a row; attributes follow the message.
func rowOfEvent(e *kagziv1.ServerEvent, namespace string) Row {
	kind, id := SubjectOf(e)
	row := Row{Event: e, Kind: kind, Subject: format.ShortID(id)}
	var text strings.Builder
	text.WriteString(e.GetMessage())
	said := false // whether the subject itself was skipped
	for _, at := range e.GetAttributes() {
		key, value := at.GetKey(), at.GetValue()
		switch {
		case key == kind && value == id && !said:
			said = true
		case key == "name" && kind == "schedule" && value != "":
			row.Subject = value
		case key == "type" && kind == "run":
			row.Subject = value + " " + row.Subject
		case key == "namespace" && value == namespace, value == "":
		case key == "error" || key == "reason":
			fmt.Fprintf(&text, ": %s", value)
		case slices.Contains(subjects, key):
			fmt.Fprintf(&text, "  %s=%s", key, format.ShortID(value))
		default:
			fmt.Fprintf(&text, "  %s=%s", key, value)
		}
	}
	row.Text = text.String()
	return row
}

// levels lists the levels of events, lowest first.
var levels = []string{"INFO", "WARN", "ERROR"}

// LevelCell returns a level as a sign and a word.
func LevelCell(look *theme.Theme, level string) render.Cell {
	switch level {
	case "WARN":
		return look.Cell(theme.Sign{Glyph: theme.Alert, Word: "warn", Style: render.Waiting})
	case "ERROR":
		return look.Cell(theme.Sign{Glyph: theme.Failed, Word: "error", Style: render.Bad})
	case "INFO":
		return render.Cell{Text: "  info", Style: render.Dim}
	}
	return render.Cell{Text: "  " + strings.ToLower(level)}
}

// Filter selects events by a text and by their lowest level.
type Filter struct {
	Text  string // as typed
	holds string // text that the event must contain; after "!" must not
	level int    // index in levels
}

// ParseFilter parses a filter: words, and "level:warn" for the lowest level.
func ParseFilter(text string) (Filter, error) {
	f := Filter{Text: strings.TrimSpace(text)}
	var words []string
	for _, word := range strings.Fields(text) {
		name, found := strings.CutPrefix(word, "level:")
		if !found {
			words = append(words, word)
			continue
		}
		f.level = slices.IndexFunc(levels, func(l string) bool { return strings.EqualFold(l, name) })
		if f.level < 0 {
			return Filter{}, fmt.Errorf("there is no level %q; want info, warn or error", name)
		}
	}
	f.holds = strings.Join(words, " ")
	return f, nil
}

// keeps reports whether a row matches the filter. An unknown level counts as the highest.
func (f Filter) keeps(row Row) bool {
	if i := slices.Index(levels, row.Event.GetLevel()); i >= 0 && i < f.level {
		return false
	}
	if f.holds == "" || f.holds == "!" {
		return true
	}
	cells := []string{row.Event.GetMessage(), row.Kind, row.Subject, row.Text}
	for _, at := range row.Event.GetAttributes() {
		cells = append(cells, at.GetValue())
	}
	return format.Contains(f.holds, cells...)
}

// eventTime returns when an event was recorded: the time, with the date unless it is today.
// Relative times would change constantly.
func eventTime(e *kagziv1.ServerEvent, c *clock.Clock) string {
	zone, suffix := c.Zone, ""
	switch c.Style {
	case "epoch":
		return strconv.FormatInt(e.GetAt().GetSeconds(), 10)
	case "utc":
		zone, suffix = time.UTC, "Z"
	}
	at, now := e.GetAt().AsTime().In(zone), c.Now().In(zone)
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format(time.TimeOnly) + suffix
	}
	return at.Format("01-02 15:04") + suffix
}

// timeWidth returns the width of the column of times. The first and the last event have the widest
// ones.
func timeWidth(rows *Rows, c *clock.Clock) int {
	first, last := rows.find(rows.first), rows.find(rows.last)
	return max(len(eventTime(rows.List[first].Event, c)), len(eventTime(rows.List[last].Event, c)))
}

// Missed returns a text about the number of missed events.
func Missed(n int64) string {
	if n == 1 {
		return "1 event was missed"
	}
	return format.Number(n) + " events were missed"
}
