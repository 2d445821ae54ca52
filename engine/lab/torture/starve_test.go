//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestAWorkerWasStarvedWhenItsHeartbeatsCameLateWhileItHeldLeases(t *testing.T) {
	beat := func(sent, confirmed int64) history.Event {
		return history.Event{Op: history.Beat, Outcome: history.OK, Invoked: sent * 1e8, Returned: confirmed * 1e8}
	}
	event := func(op history.Op, token string, at int64) history.Event {
		return history.Event{Op: op, Run: token, Token: token, Outcome: history.OK, Invoked: at * 1e8,
			Returned: at * 1e8}
	}
	calm := []history.Event{beat(0, 1), beat(10, 11), beat(20, 21), beat(30, 31)}
	claims := []history.Event{event(history.Claim, "1", 2), event(history.Claim, "2", 2), event(history.Claim, "3", 2)}
	late := []history.Event{beat(41, 42), beat(55, 58)}
	refused := beat(45, 46)
	refused.Outcome = history.Refused
	for name, test := range map[string]struct {
		events [][]history.Event
		want   starvation
		hit    bool
	}{
		"late, with three leases": {[][]history.Event{calm, claims, late},
			starvation{1700 * time.Millisecond, 1, 3}, true},
		"late, with two": {[][]history.Event{calm, claims[:2], late},
			starvation{1700 * time.Millisecond, 1, 2}, false},
		"one was given back": {[][]history.Event{calm, claims, late, {event(history.Park, "2", 50)}},
			starvation{1700 * time.Millisecond, 1, 2}, false},
		"one came later": {[][]history.Event{calm, claims[:2], late, {event(history.Claim, "3", 50)}},
			starvation{1700 * time.Millisecond, 1, 2}, false},
		"in time": {[][]history.Event{calm, claims, {beat(40, 41), beat(50, 51)}},
			starvation{1100 * time.Millisecond, 0, 0}, false},
		"as late as before": {[][]history.Event{
			{beat(5, 6), beat(30, 38)}, claims, {beat(40, 41), beat(55, 58)}},
			starvation{1800 * time.Millisecond, 0, 0}, false},
		"a refusal confirms nothing": {[][]history.Event{calm, claims, {beat(40, 41), refused, beat(55, 58)}},
			starvation{1800 * time.Millisecond, 1, 3}, true},
		"nothing was confirmed": {[][]history.Event{calm[:3], claims}, starvation{}, false},
	} {
		var all []history.Event
		for _, events := range test.events {
			all = append(all, events...)
		}
		if got := starvationOf(all, 39*1e8, 60*1e8, time.Second); got != test.want || got.hit() != test.hit {
			t.Errorf("%s: %+v, hit %t, want %+v and %t", name, got, got.hit(), test.want, test.hit)
		}
	}
}
