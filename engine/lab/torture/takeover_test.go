//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestWhatProvesNothing(t *testing.T) {
	start := func(request string, asked, answered int64) history.Event {
		return history.Event{Op: history.Start, Request: request, Outcome: history.OK, Invoked: asked * 1e9,
			Returned: answered * 1e9}
	}
	fault := history.Event{Op: history.Fault, Outcome: history.OK, Invoked: 10e9, Returned: 11e9}
	inTime := []history.Event{start("a", 1, 2), start("b", 21, 22), fault}
	late := []history.Event{start("a", 1, 9), start("b", 21, 29), fault}
	for name, test := range map[string]struct {
		events []history.Event
		need   need
		want   string
	}{
		"in time": {inTime, need{faults: 1}, ""},
		"late": {late, need{faults: 1},
			"0 of 2 starts outside the faults were acknowledged, want 80 %"},
		"more faults are needed": {inTime, need{faults: 2}, "1 faults did hit, want 2"},
		"upgrades done by then": {inTime, need{faults: 1, cutShort: 1},
			"0 upgrades were killed before the new schema was complete, want 1"},
	} {
		torture := &torture{scenario: scenario{need: test.need, inject: powerCuts}, events: test.events, faulty: 10e9,
			healed: 20e9}
		met, why := torture.vacuous()
		if got := strings.Join(why, "; "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		acknowledged := map[bool]int{true: 0, false: 2}[name == "late"]
		if want := fmt.Sprintf("1 of 1 faults did hit, %d of 2 starts outside of them were acknowledged in time",
			acknowledged); !strings.HasPrefix(met, want) {
			t.Errorf("%s: met %q, want %q", name, met, want)
		}
	}
}

func TestARunThatItsWorkerGaveBackWasNotTakenOver(t *testing.T) {
	event := func(op history.Op, proc, token string, at int64) history.Event {
		return history.Event{Op: op, Proc: proc, Run: "r", Token: token, Outcome: history.OK, Invoked: at, Returned: at}
	}
	struck := history.Event{Op: history.Fault, Step: faultOnWorker + "a", Outcome: history.OK, Invoked: 2, Returned: 5}
	for name, test := range map[string]struct {
		events []history.Event
		want   int
	}{
		"taken over": {[]history.Event{
			event(history.Claim, "a", "1", 1), event(history.Claim, "b", "2", 9)}, 1},
		"parked when it was back": {[]history.Event{
			event(history.Claim, "a", "1", 1), event(history.Park, "a", "1", 6), event(history.Claim, "b", "2", 9)}, 0},
		"given back before": {[]history.Event{
			event(history.Claim, "a", "0", 0), event(history.Park, "a", "0", 1), event(history.Claim, "b", "2", 9)}, 0},
		"a step reported, then taken over": {[]history.Event{
			event(history.Claim, "a", "1", 1), event(history.Complete, "a", "1", 6), event(history.Claim, "b", "2", 9)},
			1},
	} {
		torture := &torture{events: append(test.events, struck)}
		if got := len(torture.takeovers()); got != test.want {
			t.Errorf("%s: %d takeovers, want %d", name, got, test.want)
		}
	}
}

func TestATakeoverBeginsWithTheFaultThatTookTheLease(t *testing.T) {
	event := func(op history.Op, proc, run, token string, second int64) history.Event {
		return history.Event{Op: op, Proc: proc, Run: run, Token: token, Outcome: history.OK, Invoked: second * 1e9,
			Returned: second * 1e9}
	}
	stopped := func(from, to int64) history.Event {
		return history.Event{Op: history.Fault, Step: faultOnWorker + "a", Outcome: history.OK, Invoked: from * 1e9,
			Returned: to * 1e9}
	}
	for name, test := range map[string]struct {
		events []history.Event
		want   []time.Duration
	}{
		"each freeze of a life takes its own leases": {[]history.Event{
			event(history.Claim, "a", "r", "1", 1), stopped(2, 6), event(history.Claim, "b", "r", "2", 5),
			event(history.Claim, "a", "s", "3", 11), stopped(12, 19), event(history.Claim, "b", "s", "4", 18),
			stopped(22, 29)}, []time.Duration{3e9, 6e9}},
		"a freeze before the claim takes no lease": {[]history.Event{
			stopped(2, 6), event(history.Claim, "a", "r", "1", 7), event(history.Claim, "b", "r", "2", 9)}, nil},
		"a freeze after the next claim takes no lease": {[]history.Event{
			event(history.Claim, "a", "r", "1", 7), event(history.Claim, "b", "r", "2", 9), stopped(10, 11)}, nil},
		"a freeze that the lease outlived did not take it": {
			[]history.Event{event(history.Claim, "a", "r", "1", 1), stopped(2, 3),
				event(history.Complete, "a", "r", "1", 4), stopped(5, 9), event(history.Claim, "b", "r", "2", 9)},
			[]time.Duration{4e9}},
		"a freeze that the lease outlived took it if there was no other": {
			[]history.Event{event(history.Claim, "a", "r", "1", 1), stopped(2, 3),
				event(history.Complete, "a", "r", "1", 4), event(history.Claim, "b", "r", "2", 9)},
			[]time.Duration{7e9}},
		"a result from before its end proves nothing": {
			[]history.Event{event(history.Claim, "a", "r", "1", 1), stopped(3, 8),
				event(history.Complete, "a", "r", "1", 2), event(history.Claim, "b", "r", "2", 7)},
			[]time.Duration{4e9}},
	} {
		torture := &torture{events: test.events}
		if got := torture.takeovers(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestTakeoversExcludeThePauseAfterRepeatedLosses(t *testing.T) {
	event := func(op history.Op, proc, token string, second int64) history.Event {
		return history.Event{Op: op, Proc: proc, Run: "r", Token: token, Outcome: history.OK, Invoked: second * 1e9,
			Returned: second * 1e9}
	}
	struck := func(worker string, second int64) history.Event {
		return history.Event{Op: history.Fault, Step: faultOnWorker + worker, Outcome: history.OK,
			Invoked: second * 1e9, Returned: second * 1e9}
	}
	lost := []history.Event{
		event(history.Claim, "a", "1", 1), struck("a", 2), event(history.Claim, "b", "2", 5), struck("b", 6),
		event(history.Claim, "c", "3", 10), struck("c", 11),
	}
	for name, test := range map[string]struct {
		then []history.Event
		want []time.Duration
	}{
		"three losses cost pauses of 1 s and 2 s": {
			[]history.Event{event(history.Claim, "d", "4", 16)}, []time.Duration{3e9, 3e9, 3e9}},
		"a result resets the count": {[]history.Event{
			event(history.Complete, "c", "3", 10), event(history.Claim, "d", "4", 16)},
			[]time.Duration{3e9, 3e9, 5e9}},
	} {
		torture := &torture{events: slices.Concat(lost, test.then)}
		if got := torture.takeovers(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
