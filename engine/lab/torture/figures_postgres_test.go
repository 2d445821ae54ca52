//go:build linux

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestWhatALaggingStandbyMayLose(t *testing.T) {
	start := func(request, run string, asked, answered int64) history.Event {
		return history.Event{Op: history.Start, Request: request, Run: run, Outcome: history.OK, Invoked: asked * sec,
			Returned: answered * sec}
	}
	complete := func(value string, at int64) history.Event {
		return history.Event{Op: history.Complete, Run: "a", Step: "s0", Value: value, Outcome: history.OK,
			Invoked: at * sec, Returned: at * sec}
	}
	kept := start("a", "a", 1, 2)
	for name, test := range map[string]struct {
		events         []history.Event
		all, elsewhere int
	}{
		"nothing":                       {[]history.Event{kept, complete("v", 3)}, 0, 0},
		"a start of the lag":            {[]history.Event{kept, start("b", "b", 11, 12)}, 1, 0},
		"one that was asked for before": {[]history.Event{kept, start("b", "b", 9, 11)}, 1, 0},
		"one that was answered after":   {[]history.Event{kept, start("b", "b", 19, 21)}, 1, 0},
		"one of before":                 {[]history.Event{kept, start("b", "b", 8, 9)}, 1, 1},
		"one of after":                  {[]history.Event{kept, start("b", "b", 21, 22)}, 1, 1},
		"a result that was done again":  {[]history.Event{kept, complete("w", 15), complete("v", 25)}, 1, 0},
		"one that had reached it":       {[]history.Event{kept, complete("w", 5), complete("v", 25)}, 1, 1},
		"an end that nobody knows of": {[]history.Event{
			kept, {Op: history.End, Run: "a", Outcome: history.OK, Value: "o", Invoked: 15 * sec, Returned: 15 * sec}},
			1, 0},
		"an end that was seen before it": {[]history.Event{
			kept, {Op: history.Observe, Run: "a", Status: "COMPLETED", Outcome: history.OK, Value: "o",
				Invoked: 5 * sec, Returned: 5 * sec}}, 1, 1},
		"what was never acknowledged": {[]history.Event{
			kept, {Op: history.Start, Request: "b", Invoked: 5 * sec}}, 0, 0},
	} {
		lagged := &torture{load: &workload.Load{}, events: test.events, withheld: []span{{10 * sec, 20 * sec}},
			dump: check.Dump{
				Runs:  []check.Run{{ID: "a", Request: "a", Type: "t", Status: "RUNNING"}},
				Steps: []check.Step{{Run: "a", Name: "s0", Status: check.Completed, Latest: true, Output: "v"}},
			}}
		for _, request := range []string{"a", "b"} {
			lagged.load.Expected.Store(request, check.Wanted{Type: "t"})
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

func TestEachReturnOfPostgresIsHeldToItsLimit(t *testing.T) {
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
		"in time": {[]int64{10 * sec}, []history.Event{start, claim}, true, false},
		"at its limit": {[]int64{10 * sec, 30 * sec}, append([]history.Event{start, claim}, late...),
			true, false},
		"too late once": {[]int64{10 * sec, 30*sec - 1}, append([]history.Event{start, claim}, late...),
			false, false},
		"no run is handed on": {[]int64{10 * sec}, []history.Event{start, event(history.Claim, history.OK, 9*sec)},
			false, true},
		"no start": {[]int64{10 * sec},
			[]history.Event{claim, event(history.Start, history.Unknown, 11*sec)}, false, true},
		"it was never away": {nil, []history.Event{start, claim}, false, true},
	} {
		away := &torture{system: &system{cluster: &fixture.Cluster{Back: &fixture.Moments{At: test.back}}},
			events: test.events}
		if f := backEachTime(5 * time.Second)(away); f.ok != test.ok || f.hard != test.hard {
			t.Errorf("%s: %s, hard %t, want ok %t, hard %t", name, f, f.hard, test.ok, test.hard)
		}
	}
}

func TestFewLeasesMayBeLostWhenPostgresFreezes(t *testing.T) {
	claim := func(run, token string, at int64) history.Event {
		return history.Event{Op: history.Claim, Run: run, Token: token, Outcome: history.OK, Invoked: at * sec,
			Returned: at * sec}
	}
	end := func(run, token string, at int64) history.Event {
		return history.Event{Op: history.End, Run: run, Token: token, Outcome: history.OK, Invoked: at * sec,
			Returned: at * sec}
	}
	events := []history.Event{{Op: history.Fault, Step: freezing, Outcome: history.OK, Invoked: 10 * sec,
		Returned: 10 * sec}}
	for i := range 20 {
		run := fmt.Sprint("r", i)
		events = append(events, claim(run, run+"1", 5))
	}
	again := func(run string, at int64) []history.Event {
		return []history.Event{claim(run, run+"2", at), end(run, run+"2", at+1)}
	}
	for name, test := range map[string]struct {
		more []history.Event
		got  string
		ok   bool
	}{
		"none": {nil, "0 of 20, 0 more handed back", true},
		"one":  {again("r0", 25), "1 of 20, 0 more handed back", true},
		"two":  {append(again("r0", 25), again("r1", 26)...), "2 of 20, 0 more handed back", false},
		"a refused write": {append(again("r0", 25),
			history.Event{Op: history.Complete, Run: "r1", Token: "r11", Code: "LEASE_LOST", Status: "RUNNING",
				Returned: 26 * sec}), "2 of 20, 0 more handed back", false},
		"one that was lost then": {append([]history.Event{claim("s", "s1", 4), claim("s", "s2", 6), end("s", "s2", 7)},
			again("r0", 25)...), "1 of 20, 0 more handed back", true},
		"one that had ended then": {append([]history.Event{claim("s", "s1", 4), end("s", "s1", 9)}, again("s", 20)...),
			"0 of 20, 0 more handed back", true},
		"one that was handed back": {append([]history.Event{
			{Op: history.Release, Run: "r0", Token: "r01", Outcome: history.OK, Invoked: 15 * sec, Returned: 16 * sec}},
			again("r0", 25)...),
			"0 of 20, 1 more handed back", true},
		"one that parked, and was refused then": {
			[]history.Event{{Op: history.Park, Run: "r0", Token: "r01", Outcome: history.OK, Invoked: 15 * sec,
				Returned: 16 * sec},
				{Op: history.Release, Run: "r0", Token: "r01", Code: "LEASE_LOST", Status: "SLEEPING",
					Invoked:  17 * sec,
					Returned: 18 * sec}}, "0 of 20, 0 more handed back", true},
		"one that came later": {append([]history.Event{claim("s", "s1", 12)}, again("s", 20)...),
			"0 of 20, 0 more handed back", true},
	} {
		if f := fewLeasesLost(&torture{events: slices.Concat(events, test.more)}); f.got != test.got ||
			f.ok != test.ok {
			t.Errorf("%s: %s, want %s, ok %t", name, f, test.got, test.ok)
		}
	}
	if f := fewLeasesLost(&torture{events: events[1:]}); f.ok {
		t.Errorf("without a freeze: %s, want that it is missed", f)
	}
}

func TestServersBehindAPoolerMustReportIt(t *testing.T) {
	for _, test := range []struct {
		modes []string
		ok    bool
	}{{[]string{"polling", "polling"}, true}, {[]string{"polling", "listen"}, false}, {nil, false}} {
		if f := polls(&torture{modes: test.modes}); f.ok != test.ok || !f.hard {
			t.Errorf("%q: %s, hard %t, want ok %t and hard", test.modes, f, f.hard, test.ok)
		}
	}
}

func TestTheCodeOfARunMustBeginSoonAfterItsStart(t *testing.T) {
	run := func(id string, started, begun int64) []history.Event {
		return []history.Event{{Op: history.Start, Run: id, Outcome: history.OK, Returned: started},
			{Op: history.CodeBegins, Run: id, Invoked: begun},
			{Op: history.CodeBegins, Run: id, Invoked: begun + 9*sec}}
	}
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"in time":             {run("a", 10*sec, 11*sec), true},
		"before its answer":   {run("a", 11*sec, 10*sec), true},
		"too late":            {run("a", 10*sec, 11*sec+1), false},
		"of before the fault": {append(run("a", 10*sec, 11*sec), run("b", 1*sec, 19*sec)...), true},
		"none":                {run("a", 10*sec, 0)[:1], false},
	} {
		if f := codeSoon(time.Second)(&torture{faulty: 5 * sec, healed: 20 * sec,
			events: test.events}); f.ok != test.ok {
			t.Errorf("%s: %s, want ok %t", name, f, test.ok)
		}
	}
}

func TestTheLoadDuringTheFaultMustKeepItsShare(t *testing.T) {
	slower := &torture{faulty: 20 * sec, healed: 40 * sec,
		events: slices.Concat(endsAt(1000, 10*sec, 20*sec), endsAt(1700, 20*sec, 40*sec))}
	if f := goesOn(0.9)(slower); !f.ok {
		t.Errorf("of 90 %%, within chance: %s, want ok", f)
	}
	if f := goesOn(0.95)(slower); f.ok {
		t.Errorf("of 95 %%, beyond chance: %s, want that it is missed", f)
	}
}
