//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestHealthThatServersReport(t *testing.T) {
	says := func(at int64, well bool) healthAnswer { return healthAnswer{at * sec, well} }
	for name, test := range map[string]struct {
		heard      []healthAnswer
		red, green time.Duration
	}{
		"soon, and back": {[]healthAnswer{
			says(9, true), says(11, false), says(21, false), says(23, true), says(24, true)}, time.Second,
			3 * time.Second},
		"never":            {[]healthAnswer{says(9, true), says(11, true), says(21, true)}, -1, time.Second},
		"before it failed": {[]healthAnswer{says(9, false), says(11, true), says(21, true)}, -1, time.Second},
		"only when there is space": {[]healthAnswer{says(11, true), says(21, false), says(22, true)}, -1,
			2 * time.Second},
		"back, and then not": {[]healthAnswer{says(12, false), says(21, true), says(22, false), says(25, true)},
			2 * time.Second, 5 * time.Second},
		"never back": {[]healthAnswer{says(12, false), says(19, true), says(22, false)},
			2 * time.Second, -1},
		"without a word since then": {[]healthAnswer{says(12, false)}, 2 * time.Second, -1},
	} {
		w := &healthWatch{heard: make([][]healthAnswer, 2)}
		for _, v := range test.heard {
			w.note(0, v)
		}
		red, green := w.tell(10*sec, 20*sec)
		if red[0] != test.red || green[0] != test.green || red[1] != -1 || green[1] != -1 {
			t.Errorf(
				"%s: not well after %v, well again after %v, want %v and %v of the first, and nothing of the second",
				name, red, green, test.red, test.green)
		}
		if w.allWell(20 * sec) {
			t.Errorf("%s: all are well, of whom one has said nothing", name)
		}
	}
}

func TestServersMustReportAFullDiskInTime(t *testing.T) {
	for name, test := range map[string]struct {
		red      time.Duration
		ok, hard bool
	}{
		"in time":  {unwellLimit, true, false},
		"too late": {unwellLimit + 1, false, false},
		"never":    {-1, false, true},
	} {
		filled := &torture{filled: []*noRoom{{red: []time.Duration{1, test.red}, green: []time.Duration{1}}}}
		if f := toldOfNoRoom(filled); f.ok != test.ok || f.hard != test.hard {
			t.Errorf("%s: %s, hard %t, want ok %t, hard %t", name, f, f.hard, test.ok, test.hard)
		}
		filled.filled[0].green[0] = test.red + wellLimit - unwellLimit
		if test.red < 0 {
			filled.filled[0].green[0] = -1
		}
		if f := wellWithRoom(filled); f.ok != test.ok || f.hard != test.hard {
			t.Errorf("%s: %s, hard %t, want ok %t, hard %t", name, f, f.hard, test.ok, test.hard)
		}
	}
	if f := toldOfNoRoom(&torture{}); f.ok || !f.hard {
		t.Errorf("without a period without space: %s, want that it is missed", f)
	}
}

func TestNothingMayBeAcknowledgedOnAFullDisk(t *testing.T) {
	event := func(op history.Op, o history.Outcome, asked, answered int64) history.Event {
		return history.Event{Op: op, Outcome: o, Invoked: asked * sec, Returned: answered * sec}
	}
	refused := event(history.Start, history.Unknown, 12, 13)
	for name, test := range map[string]struct {
		with history.Event
		ok   bool
	}{
		"refused alone":             {refused, true},
		"a start":                   {event(history.Start, history.OK, 12, 13), false},
		"a result":                  {event(history.Complete, history.OK, 12, 13), false},
		"an end":                    {event(history.End, history.OK, 12, 13), false},
		"a start of before":         {event(history.Start, history.OK, 9, 11), true},
		"one that waited for space": {event(history.Start, history.OK, 12, 21), true},
		"a read":                    {event(history.Observe, history.OK, 12, 13), true},
		"one of a time before that": {event(history.End, history.OK, 2, 3), true},
	} {
		filled := &torture{filled: []*noRoom{{failed: 10 * sec, freed: 20 * sec}, {freed: 5 * sec}},
			events: []history.Event{refused, test.with}}
		if f := quietWithoutRoom(filled); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.ok)
		}
	}
	if f := quietWithoutRoom(&torture{filled: []*noRoom{{freed: 20 * sec}}, events: []history.Event{refused}}); f.ok {
		t.Errorf("when no write failed: %s, want that it is missed", f)
	}
}
