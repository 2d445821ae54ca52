package view

import (
	"fmt"
	"slices"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

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
	row := eventRow{event: e, kind: kind, subject: shortID(id)}
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
			fmt.Fprintf(&text, "  %s=%s", key, shortID(value))
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
	return contains(f.holds, cells...)
}
