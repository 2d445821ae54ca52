//go:build linux

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestRunsThatKillTheirWorkersMustFailWithOneHandler(t *testing.T) {
	m := workload.Mix{Longest: 10, Poison: 3}
	run := func(n int, crashed bool) check.Run {
		return check.Run{ID: m.Errand(1, n).Name, Request: m.Errand(1, n).Name, Crashed: crashed}
	}
	handler := func(n int, status string) check.Run {
		return check.Run{Type: workload.HandlerType, FailedRun: m.Errand(1, n).Name, Status: status}
	}
	all := []check.Run{run(0, false), run(1, false), run(2, true), run(5, true), handler(2, "COMPLETED"),
		handler(5, "COMPLETED")}
	without := func(i int, other ...check.Run) []check.Run { return slices.Concat(all[:i], all[i+1:], other) }
	for name, test := range map[string]struct {
		runs []check.Run
		ok   bool
	}{
		"all of them":                     {all, true},
		"one came to a good end":          {without(3, run(5, false)), false},
		"one of the others failed":        {without(1, run(1, true)), false},
		"one has no handler":              {without(5), false},
		"one has two":                     {slices.Concat(all, []check.Run{handler(5, "COMPLETED")}), false},
		"one whose handler has not ended": {without(5, handler(5, "RUNNING")), false},
		"there was none":                  {all[:2], false},
	} {
		tortured := &torture{system: &system{}, load: &workload.Load{Mix: m, Seed: 1},
			dump: check.Dump{Runs: test.runs}}
		tortured.load.Started.Store(6)
		if f := poisoned(tortured); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.ok)
		}
	}
}

func TestAFrozenWorkerBeginsNothingBeforeItsLeasesAreConfirmed(t *testing.T) {
	stopped := history.Event{Op: history.Fault, Step: faultOnWorker + "a", Outcome: history.OK, Invoked: 10 * sec,
		Returned: 15 * sec}
	beat := func(sent, confirmed int64) history.Event {
		return history.Event{Op: history.Beat, Proc: "a", Outcome: history.OK, Invoked: sent * sec,
			Returned: confirmed * sec}
	}
	begins := func(proc string, at int64) history.Event {
		return history.Event{Op: history.CodeBegins, Proc: proc, Outcome: history.OK, Invoked: at * sec,
			Returned: at * sec}
	}
	refused := beat(16, 16)
	refused.Outcome = history.Refused
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"after a heartbeat":                  {[]history.Event{beat(9, 9), beat(16, 16), begins("a", 17)}, true},
		"before it":                          {[]history.Event{beat(9, 9), begins("a", 16), beat(16, 17)}, false},
		"after one that was refused":         {[]history.Event{beat(9, 9), refused, begins("a", 17)}, false},
		"after the answer to one of before":  {[]history.Event{beat(9, 16), begins("a", 17)}, false},
		"nothing":                            {[]history.Event{beat(9, 9), beat(16, 16), begins("a", 9)}, false},
		"another, which has not stood still": {[]history.Event{beat(16, 16), begins("a", 17), begins("b", 16)}, true},
	} {
		tortured := &torture{system: &system{shape: shape{Lease: 2 * time.Second}},
			events: append(test.events, stopped)}
		if f := begunUnconfirmed(tortured); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.ok)
		}
	}
}

func TestLeasesAreKeptWhileServersAreAwayBriefly(t *testing.T) {
	lost := []history.Event{{Op: history.Complete, Run: "r", Token: "a", Outcome: history.Refused, Code: "LEASE_LOST",
		Status: "RUNNING"}}
	for name, test := range map[string]struct {
		events   []history.Event
		outage   time.Duration
		ok, hard bool
	}{
		"none lost":               {nil, 5 * time.Second, true, true},
		"one lost":                {lost, 5 * time.Second, false, true},
		"away for half the lease": {lost, 6 * time.Second, false, false},
	} {
		f := keptLeases(&torture{system: &system{shape: shape{Lease: 12 * time.Second}}, events: test.events,
			outage: test.outage})
		if f.ok != test.ok || f.hard != test.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard %t", name, f, f.hard, test.ok, test.hard)
		}
	}
}

func TestProcessesMustStopSoon(t *testing.T) {
	for name, test := range map[string]struct {
		exits []time.Duration
		ok    bool
	}{
		"in time":  {[]time.Duration{5 * time.Second, 1}, true},
		"too late": {[]time.Duration{5*time.Second + 1, 1}, false},
		"never":    {nil, false},
	} {
		if f := endedSoon(&torture{exits: test.exits}); f.ok != test.ok {
			t.Errorf("%s: %s, want ok %t", name, f, test.ok)
		}
	}
}

func TestCallsOfClientsThatFailAreCounted(t *testing.T) {
	call := func(op history.Op, o history.Outcome) history.Event { return history.Event{Op: op, Outcome: o} }
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"all answered": {[]history.Event{call(history.Start, history.OK), call(history.Cancel, history.Refused),
			call(history.Observe, history.OK)}, true},
		"a start was not": {[]history.Event{call(history.Start, history.Unknown), call(history.Start, history.OK)},
			false},
		"a look was not": {[]history.Event{call(history.Observe, history.Unknown)}, false},
		"a worker's was not": {[]history.Event{call(history.Start, history.OK),
			call(history.Complete, history.Unknown)}, true},
		"there was none": {nil, false},
	} {
		if f := clientsAnswered(&torture{events: test.events}); f.ok != test.ok {
			t.Errorf("%s: %s, want ok %t", name, f, test.ok)
		}
	}
}
