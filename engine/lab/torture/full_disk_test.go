//go:build linux

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func filled(left, from, to int64) history.Event {
	return history.Event{Op: history.Fault, Step: fmt.Sprintf("%s%d MiB", faultLeave, left), Outcome: history.OK,
		Invoked: from, Returned: to}
}

func TestAFullDiskMustRefuseStartsAndNotSteps(t *testing.T) {
	little, none, again := filled(roomForEnds, 10, 20), filled(0, 30, 40), filled(0, 50, 60)
	write := func(op history.Op, o history.Outcome, code string, at int64) history.Event {
		return history.Event{Op: op, Outcome: o, Code: code, Invoked: at}
	}
	refused := write(history.Start, history.Refused, "RESOURCE_EXHAUSTED", 12)
	taken := write(history.Complete, history.OK, "", 13)
	failed := write(history.Complete, history.Refused, "RESOURCE_EXHAUSTED", 35)
	once := []history.Event{little, none, refused, taken, failed}
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"all of it": {once, true},
		"an end that failed": {[]history.Event{
			little, none, refused, taken, write(history.End, history.Refused, "RESOURCE_EXHAUSTED", 35)}, true},
		"an end with an unknown outcome": {[]history.Event{
			little, none, refused, taken, write(history.End, history.Unknown, "UNAVAILABLE", 35)}, true},
		"an end that took too long": {[]history.Event{
			little, none, refused, taken, write(history.End, history.Unknown, "DEADLINE_EXCEEDED", 35)}, false},
		"no start refused": {[]history.Event{
			little, none, taken, failed, write(history.Start, history.Refused, "RESOURCE_EXHAUSTED", 2)}, false},
		"none refused but when full": {[]history.Event{
			little, none, taken, failed, write(history.Start, history.Refused, "RESOURCE_EXHAUSTED", 35)}, false},
		"refused for another reason": {[]history.Event{
			little, none, taken, failed, write(history.Start, history.Refused, "NOT_FOUND", 12)}, false},
		"no step taken": {[]history.Event{little, none, refused, failed}, false},
		"no write failed": {[]history.Event{
			little, none, refused, taken, write(history.Start, history.Refused, "RESOURCE_EXHAUSTED", 35)}, false},
		"none failed when full": {[]history.Event{
			little, none, refused, taken, write(history.Complete, history.Refused, "RESOURCE_EXHAUSTED", 12)}, false},
		"none failed the second time": {slices.Concat(once, []history.Event{again}), false},
		"some failed the second time, too": {slices.Concat(
			once, []history.Event{again, write(history.Park, history.Refused, "RESOURCE_EXHAUSTED", 55)}), true},
		"no fault, but all that goes along": {[]history.Event{refused, taken, failed}, false},
	} {
		if f := littleRoom(&torture{events: test.events}); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %+v, want ok %v", name, f, test.ok)
		}
	}
}

func TestAStartOnAFullDiskMustBeRefusedAtOnce(t *testing.T) {
	start := func(code string, took time.Duration) history.Event {
		return history.Event{Op: history.Start, Outcome: history.Refused, Code: code, Invoked: 5,
			Returned: 5 + int64(took)}
	}
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"at once":        {[]history.Event{start("RESOURCE_EXHAUSTED", 100*time.Millisecond)}, true},
		"as gRPC has it": {[]history.Event{start("ResourceExhausted", 101*time.Millisecond)}, false},
		"too late":       {[]history.Event{start("RESOURCE_EXHAUSTED", 101*time.Millisecond)}, false},
		"for another reason": {[]history.Event{start("RESOURCE_EXHAUSTED", 1), start("UNAVAILABLE", time.Second)},
			true},
		"never": {nil, false},
	} {
		if f := refusedAtOnce(&torture{events: test.events}); f.ok != test.ok {
			t.Errorf("%s: %s, want ok %t", name, f, test.ok)
		}
	}
}

func TestStartsMustBeAcceptedSoonAfterThereIsSpace(t *testing.T) {
	start := func(o history.Outcome, at int64) history.Event {
		return history.Event{Op: history.Start, Outcome: o, Returned: at}
	}
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"in time":  {[]history.Event{filled(0, 1*sec, 2*sec), start(history.OK, 7*sec)}, true},
		"too late": {[]history.Event{filled(0, 1*sec, 2*sec), start(history.OK, 7*sec+1)}, false},
		"refused": {[]history.Event{
			filled(0, 1*sec, 2*sec), start(history.Refused, 3*sec), start(history.OK, 8*sec)}, false},
		"once too late": {[]history.Event{
			filled(0, 1*sec, 2*sec), start(history.OK, 3*sec), filled(0, 10*sec, 11*sec), start(history.OK, 20*sec)},
			false},
		"never": {[]history.Event{filled(0, 1*sec, 2*sec), start(history.OK, 1*sec)}, false},
		"there was always enough": {[]history.Event{
			filled(roomForEnds, 1*sec, 2*sec), start(history.OK, 3*sec)}, false},
	} {
		if f := backWithRoom(&torture{events: test.events}); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s, want ok %t and hard", name, f, test.ok)
		}
	}
}
