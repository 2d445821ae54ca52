//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/torture/check"
	"github.com/kagzi/kagzi/engine/torture/history"
)

func TestWhatALaggingStandbyMayLose(t *testing.T) {
	start := func(request, run string, asked, answered int64) history.Event {
		return history.Event{Op: history.Start, Request: request, Run: run, Outcome: history.OK, Invoked: asked * sec, Returned: answered * sec}
	}
	complete := func(value string, at int64) history.Event {
		return history.Event{Op: history.Complete, Run: "a", Step: "s0", Value: value, Outcome: history.OK, Invoked: at * sec, Returned: at * sec}
	}
	kept := start("a", "a", 1, 2)
	for name, test := range map[string]struct {
		events         []history.Event
		all, elsewhere int
	}{
		"nothing":                        {[]history.Event{kept, complete("v", 3)}, 0, 0},
		"a start of the lag":             {[]history.Event{kept, start("b", "b", 11, 12)}, 1, 0},
		"one that was asked for before":  {[]history.Event{kept, start("b", "b", 9, 11)}, 1, 0},
		"one that was answered after":    {[]history.Event{kept, start("b", "b", 19, 21)}, 1, 0},
		"one of before":                  {[]history.Event{kept, start("b", "b", 8, 9)}, 1, 1},
		"one of after":                   {[]history.Event{kept, start("b", "b", 21, 22)}, 1, 1},
		"a result that was done again":   {[]history.Event{kept, complete("w", 15), complete("v", 25)}, 1, 0},
		"one that had reached it":        {[]history.Event{kept, complete("w", 5), complete("v", 25)}, 1, 1},
		"an end that nobody knows of":    {[]history.Event{kept, {Op: history.End, Run: "a", Outcome: history.OK, Value: "o", Invoked: 15 * sec, Returned: 15 * sec}}, 1, 0},
		"an end that was seen before it": {[]history.Event{kept, {Op: history.Observe, Run: "a", Status: "COMPLETED", Outcome: history.OK, Value: "o", Invoked: 5 * sec, Returned: 5 * sec}}, 1, 1},
		"what was never acknowledged":    {[]history.Event{kept, {Op: history.Start, Request: "b", Invoked: 5 * sec}}, 0, 0},
	} {
		lagged := &torture{load: &load{}, events: test.events, withheld: []span{{10 * sec, 20 * sec}}, dump: check.Dump{
			Runs:  []check.Run{{ID: "a", Request: "a", Type: "t", Status: "RUNNING"}},
			Steps: []check.Step{{Run: "a", Name: "s0", Status: check.Completed, Latest: true, Output: "v"}},
		}}
		for _, request := range []string{"a", "b"} {
			lagged.load.expected.Store(request, check.Wanted{Type: "t"})
		}
		if all, elsewhere := lagged.lost(); all != test.all || elsewhere != test.elsewhere {
			t.Errorf("%s: %d lost, %d elsewhere, want %d and %d", name, all, elsewhere, test.all, test.elsewhere)
		}
		if f := lostInTheLag(lagged); f.ok != (test.elsewhere == 0) || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.elsewhere == 0)
		}
		if got := someLost(lagged); (got == nil) != (test.all > 0) {
			t.Errorf("%s: %q is missing", name, got)
		}
	}
}

func TestEachTimeThatPostgresIsBackIsHeldToItsLimit(t *testing.T) {
	event := func(op history.Op, o history.Outcome, at int64) history.Event {
		return history.Event{Op: op, Outcome: o, Returned: at}
	}
	start, claim := event(history.Start, history.OK, 11*sec), event(history.Claim, history.OK, 12*sec)
	late := []history.Event{event(history.Start, history.OK, 35*sec), event(history.Claim, history.OK, 35*sec)}
	for name, test := range map[string]struct {
		back     []int64
		events   []history.Event
		ok, hard bool
	}{
		"in time":             {[]int64{10 * sec}, []history.Event{start, claim}, true, false},
		"at its limit":        {[]int64{10 * sec, 30 * sec}, append([]history.Event{start, claim}, late...), true, false},
		"too late once":       {[]int64{10 * sec, 30*sec - 1}, append([]history.Event{start, claim}, late...), false, false},
		"no run is handed on": {[]int64{10 * sec}, []history.Event{start, event(history.Claim, history.OK, 9*sec)}, false, true},
		"no start":            {[]int64{10 * sec}, []history.Event{claim, event(history.Start, history.Unknown, 11*sec)}, false, true},
		"it was never away":   {nil, []history.Event{start, claim}, false, true},
	} {
		away := &torture{rig: &rig{cluster: &cluster{back: &moments{at: test.back}}}, events: test.events}
		if f := backEachTime(5 * time.Second)(away); f.ok != test.ok || f.hard != test.hard {
			t.Errorf("%s: %s, hard %t, want ok %t, hard %t", name, f, f.hard, test.ok, test.hard)
		}
	}
}
