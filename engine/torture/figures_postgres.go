//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine/torture/check"
	"github.com/kagzi/kagzi/engine/torture/history"
)

// span is from one moment to another.
type span struct{ from, to int64 }

// meets says that an event was under way at some time of the span.
func (s span) meets(e history.Event) bool { return e.Invoked <= s.to && e.Returned >= s.from }

// lost counts the acknowledged writes, and observed ends, that are not there: all, and those that were not under way when WAL was withheld from
// the standby. What was answered before that began had reached the standby, and what was answered after the primary's death is of the new one.
func (t *torture) lost() (all, elsewhere int) {
	c := check.Case{Dump: t.dump, Expected: map[string]check.Wanted{}, Events: t.events}
	t.load.expected.Range(func(request, want any) bool {
		c.Expected[request.(string)] = want.(check.Wanted)
		return true
	})
	all = check.Violated(check.Acknowledged(&c))
	c.Events = slices.Clone(t.events)
	for i, e := range c.Events {
		if e.Outcome == history.OK && slices.ContainsFunc(t.withheld, func(s span) bool { return s.meets(e) }) {
			c.Events[i].Outcome = history.Unknown
		}
	}
	return all, check.Violated(check.Acknowledged(&c))
}

// lostInTheLag wants a standby that lagged behind to have lost no acknowledged write but of the time for which it did.
func lostInTheLag(t *torture) figure {
	all, elsewhere := t.lost()
	return figure{name: "acknowledged writes that were lost", limit: "some while the standby lagged behind, none else", hard: true,
		got: fmt.Sprintf("%d, %d of them not of a time when it did, of which there were %d", all, elsewhere, len(t.withheld)), ok: elsewhere == 0}
}

// someLost is the proof of F-31.
func someLost(t *torture) []string {
	if all, _ := t.lost(); all == 0 {
		return []string{"no acknowledged write was lost: the standby did not lag behind"}
	}
	return nil
}

// backEachTime wants a start to be acknowledged and a run to be handed out soon after each time that Postgres answers again.
func backEachTime(limit time.Duration) func(t *torture) figure {
	return func(t *torture) figure {
		f := figure{name: "each time that Postgres answered again, until a start was acknowledged and a run handed out", limit: "≤ " + limit.String()}
		var starts, claims []time.Duration
		for _, at := range t.rig.cluster.back.all() {
			starts, claims = append(starts, t.firstAfter(at, history.Start)), append(claims, t.firstAfter(at, history.Claim))
		}
		s, c := figure{}.within(starts, limit), figure{}.within(claims, limit)
		f.got, f.ok, f.hard = "starts: "+s.got+"; runs: "+c.got, s.ok && c.ok, s.hard || c.hard
		return f
	}
}

// firstAfter is how long after a moment an operation was first answered with OK; -1 for never.
func (t *torture) firstAfter(at int64, op history.Op) time.Duration {
	first := time.Duration(-1)
	for _, e := range t.events {
		if after := time.Duration(e.Returned - at); e.Op == op && e.Outcome == history.OK && after >= 0 && (first < 0 || after < first) {
			first = after
		}
	}
	return first
}
