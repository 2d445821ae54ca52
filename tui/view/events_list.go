package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/format"
	"github.com/kagzi/kagzi/tui/widget"
)

// eventList is where the page is in its rows. Rows may take several lines of the screen.
type eventList struct {
	follow, wrap bool
	at           int64 // sequence of the event under the cursor; 0: none yet
	top          int   // the first row on the screen
	page         int   // rows on the screen at the last draw
	upper        int   // line of the screen where the first row is
	lines        []int // the row of each line of the screen
}

// index is the row under the cursor; -1 when there is none.
func (l *eventList) index(rows *eventRows) int {
	if l.follow || l.at == 0 {
		return rows.find(rows.last)
	}
	return rows.find(l.at)
}

// below is how many events have come below the cursor.
func (l *eventList) below(rows *eventRows) int {
	n := 0
	for _, row := range rows.list[max(l.index(rows), 0):] {
		if row.event != nil {
			n++
		}
	}
	return n - 1
}

// move puts the cursor some events further down, or up, which ends following.
func (l *eventList) move(n int, rows *eventRows) {
	i := l.index(rows)
	if i < 0 {
		return
	}
	step := 1
	if n < 0 {
		step, n, l.follow = -1, -n, false
	}
	for to := i + step; n > 0 && to >= 0 && to < len(rows.list); to += step {
		if rows.list[to].event != nil {
			i = to
			n--
		}
	}
	l.at = rows.list[i].event.GetSequence()
}

// key moves the cursor as tables do; false when the key means nothing.
func (l *eventList) key(name string, rows *eventRows) bool {
	n, ok := widget.MovesBy(name, len(rows.list), l.page)
	if ok {
		l.move(n, rows)
	}
	return ok
}

// point puts the cursor on the event at a line of the screen.
func (l *eventList) point(y int, rows *eventRows) bool {
	y -= l.upper
	if y < 0 || y >= len(l.lines) || l.lines[y] >= len(rows.list) || rows.list[l.lines[y]].event == nil {
		return false
	}
	l.follow, l.at = false, rows.list[l.lines[y]].event.GetSequence()
	return true
}

// Columns of the list, in cells.
const (
	levelWidth     = 7
	kindWidth      = 8
	leastSubject   = 12
	mostSubject    = 34
	narrowestEvent = 100 // below it there is no room for kinds
)

// eventColumns is where the columns begin; kind is below zero where it is left out.
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

// draw draws the titles and the rows around the cursor.
func (l *eventList) draw(c widget.Canvas, p *eventsPage) {
	c = c.Part(1, 0, c.W-2, c.H)
	rows, look := &p.rows, c.Theme
	at := eventColumnsOf(c.W, p.timeWidth())
	head := look.Role(theme.Head)
	c.Text(0, 0, "TIME", head)
	c.Text(at.level, 0, "LEVEL", head)
	if at.kind >= 0 {
		c.Text(at.kind, 0, "KIND", head)
	}
	c.Text(at.subject, 0, "SUBJECT", head)
	c.Text(at.text, 0, "MESSAGE", head)
	body := c.Part(0, 1, c.W, c.H-1)
	l.place(rows, at, body.H)
	l.lines, l.upper, l.page = l.lines[:0], body.Y, 0
	cursor := l.index(rows)
	for i, y := l.top, 0; i < len(rows.list) && y < body.H; i++ {
		texts := l.texts(rows.list[i], at)
		h := min(len(texts), body.H-y)
		p.drawEvent(body.Part(0, y, body.W, h), rows.list[i], texts, at, i == cursor)
		for range h {
			l.lines = append(l.lines, i)
		}
		y += h
		l.page++
	}
	if l.top > 0 {
		c.Text(c.W-1, 0, look.Glyph(theme.Up), look.Role(theme.Faint))
	}
	if l.top+l.page < len(rows.list) {
		c.Text(c.W-1, c.H-1, look.Glyph(theme.Down), look.Role(theme.Faint))
	}
}

// place chooses the first row on the screen so that the cursor is on it, and no line is empty that need not be.
func (l *eventList) place(rows *eventRows, at eventColumns, height int) {
	cursor := l.index(rows)
	l.top = min(l.top, cursor)
	used := 0
	for i := cursor; i >= l.top; i-- { // from the cursor up: what does not fit above it is not shown
		used += len(l.texts(rows.list[i], at))
		if used > height && i < cursor {
			l.top = i + 1
			break
		}
	}
	used = 0
	for i := l.top; i < len(rows.list) && used < height; i++ {
		used += len(l.texts(rows.list[i], at))
	}
	for l.top > 0 && used < height {
		if used += len(l.texts(rows.list[l.top-1], at)); used > height {
			return
		}
		l.top--
	}
}

// texts are the lines of a row's message, safe.
func (l *eventList) texts(row eventRow, at eventColumns) []string {
	if !l.wrap || row.event == nil {
		return []string{row.text}
	}
	return format.Wrapped(render.Safe(row.text), max(at.width-at.text, leastCell))
}

// drawEvent draws a row.
func (p *eventsPage) drawEvent(c widget.Canvas, row eventRow, texts []string, at eventColumns, selected bool) {
	style := c.Theme.Style
	switch {
	case selected:
		style = p.selectedStyle
		c.Clear(c.Theme.Role(theme.Selected))
	case p.app.link.State().Down():
		style = p.staleStyle
	}
	e := row.event
	if e == nil {
		c.Cut(at.level, 0, c.W-at.level, c.Theme.Glyph(theme.Break)+" "+missedEvents(row.gap), c.Theme.Role(theme.Warning))
		return
	}
	level := levelCell(c.Theme, e.GetLevel())
	c.Cut(0, 0, at.level-2, p.app.eventTime(e), style(render.Dim))
	c.Cut(at.level, 0, levelWidth, level.Text, style(level.Style))
	if at.kind >= 0 {
		c.Cut(at.kind, 0, kindWidth, row.kind, style(render.Dim))
	}
	c.Cut(at.subject, 0, at.text-at.subject-2, row.subject, style(render.Plain))
	message := render.Plain
	if e.GetLevel() != "INFO" {
		message = level.Style
	}
	for i, text := range texts {
		c.Cut(at.text, i, c.W-at.text, text, style(message))
	}
}

// eventRow is an event as it is shown, or a gap in front of one.
type eventRow struct {
	event               *kagziv1.ServerEvent // nil: a gap
	gap                 int64                // events that never came
	kind, subject, text string               // raw
}

// eventRows are the events that a filter keeps, oldest first, with the gaps between them.
type eventRows struct {
	list  []eventRow
	count int // of the events among them

	newest      *kagziv1.ServerEvent // of those that the rows were made of; another server's has the same sequences
	first, last int64                // sequences
	of          int
	filter      string
	namespace   string
	down        bool
}

// fill makes the rows, unless they are made of the same events already. down says that the events are not followed now.
func (r *eventRows) fill(events []*kagziv1.ServerEvent, f eventFilter, namespace string, down bool) {
	var newest *kagziv1.ServerEvent
	first, last := int64(0), int64(0)
	if n := len(events); n > 0 {
		newest, first, last = events[n-1], events[0].GetSequence(), events[n-1].GetSequence()
	}
	if r.of == len(events) && r.newest == newest && r.first == first && r.filter == f.text && r.namespace == namespace && r.down == down {
		return
	}
	*r = eventRows{newest: newest, first: first, last: last, of: len(events), filter: f.text, namespace: namespace, down: down}
	for i, e := range events {
		if i > 0 {
			if gap := e.GetSequence() - events[i-1].GetSequence() - 1; gap > 0 {
				r.list = append(r.list, eventRow{gap: gap})
			}
		}
		row := rowOfEvent(e, namespace)
		if f.keeps(row) {
			r.list = append(r.list, row)
			r.count++
		}
	}
	if r.count == 0 {
		r.list = nil
	}
}

// find is the row of an event, or of the next one that is shown; -1 when there are none.
func (r *eventRows) find(sequence int64) int {
	last := -1
	for i, row := range r.list {
		if row.event == nil {
			continue
		}
		last = i
		if row.event.GetSequence() >= sequence {
			return i
		}
	}
	return last
}

// subjects are what an event may be about, by the keys of its attributes.
var subjects = []string{"run", "worker", "schedule", "queue"}

// subjectOf is what an event is about; "server" when it is about nothing in particular.
func subjectOf(e *kagziv1.ServerEvent) (kind, id string) {
	for _, at := range e.GetAttributes() {
		if slices.Contains(subjects, at.GetKey()) {
			return at.GetKey(), at.GetValue()
		}
	}
	return "server", ""
}

// rowOfEvent says what an event is about in a few words, and puts the rest behind its message.
func rowOfEvent(e *kagziv1.ServerEvent, namespace string) eventRow {
	kind, id := subjectOf(e)
	row := eventRow{event: e, kind: kind, subject: format.ShortID(id)}
	var text strings.Builder
	text.WriteString(e.GetMessage())
	said := false // the subject itself
	for _, at := range e.GetAttributes() {
		key, value := at.GetKey(), at.GetValue()
		switch {
		case key == kind && value == id && !said:
			said = true
		case key == "name" && kind == "schedule" && value != "":
			row.subject = value
		case key == "type" && kind == "run":
			row.subject = value + " " + row.subject
		case key == "namespace" && value == namespace, value == "":
		case key == "error" || key == "reason":
			fmt.Fprintf(&text, ": %s", value)
		case slices.Contains(subjects, key):
			fmt.Fprintf(&text, "  %s=%s", key, format.ShortID(value))
		default:
			fmt.Fprintf(&text, "  %s=%s", key, value)
		}
	}
	row.text = text.String()
	return row
}

// levels are the levels of events, the mildest first.
var levels = []string{"INFO", "WARN", "ERROR"}

// levelCell is a level as a sign and a word.
func levelCell(look *theme.Theme, level string) render.Cell {
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

// eventFilter chooses events by a text, and by the least level.
type eventFilter struct {
	text  string // as it was typed
	holds string // what the event must hold, or with "!" in front must not
	level int    // of levels
}

func parseEventFilter(text string) (eventFilter, error) {
	f := eventFilter{text: strings.TrimSpace(text)}
	var words []string
	for _, word := range strings.Fields(text) {
		name, found := strings.CutPrefix(word, "level:")
		if !found {
			words = append(words, word)
			continue
		}
		f.level = slices.IndexFunc(levels, func(l string) bool { return strings.EqualFold(l, name) })
		if f.level < 0 {
			return eventFilter{}, fmt.Errorf("there is no level %q; there are info, warn and error", name)
		}
	}
	f.holds = strings.Join(words, " ")
	return f, nil
}

// keeps says whether the filter chooses a row. A level that is not known counts as the worst.
func (f eventFilter) keeps(row eventRow) bool {
	if i := slices.Index(levels, row.event.GetLevel()); i >= 0 && i < f.level {
		return false
	}
	if f.holds == "" || f.holds == "!" {
		return true
	}
	cells := []string{row.event.GetMessage(), row.kind, row.subject, row.text}
	for _, at := range row.event.GetAttributes() {
		cells = append(cells, at.GetValue())
	}
	return format.Contains(f.holds, cells...)
}

// eventTime is when an event was noted: the time of day, and the day as well when it was another one. Ages would change all the time.
func (a *App) eventTime(e *kagziv1.ServerEvent) string {
	zone, suffix := a.clock.Zone, ""
	switch a.clock.Style {
	case "epoch":
		return strconv.FormatInt(e.GetAt().GetSeconds(), 10)
	case "utc":
		zone, suffix = time.UTC, "Z"
	}
	at, now := e.GetAt().AsTime().In(zone), a.now().In(zone)
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format(time.TimeOnly) + suffix
	}
	return at.Format("01-02 15:04") + suffix
}

// timeWidth is how much room the times of events need, of which the first and the last are the widest.
func (p *eventsPage) timeWidth() int {
	first, last := p.rows.find(p.rows.first), p.rows.find(p.rows.last)
	return max(len(p.app.eventTime(p.rows.list[first].event)), len(p.app.eventTime(p.rows.list[last].event)))
}

func (p *eventsPage) selectedStyle(render.Style) tcell.Style {
	return p.app.look.Role(theme.Selected)
}

func (p *eventsPage) staleStyle(render.Style) tcell.Style { return p.app.look.Role(theme.Stale) }
