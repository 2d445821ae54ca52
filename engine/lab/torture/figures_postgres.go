//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
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

// freezing is the name of the fault by which Postgres stands still.
const freezing = "freeze Postgres"

// fewLeasesLost wants workers to be given time when Postgres is back from a standstill in which nobody could be heard: of the leases that were
// held when it began hardly any may be lost.
func fewLeasesLost(t *torture) figure {
	const most = 5 // percent
	lost, held, gone, back := t.leasesLost(), 0, 0, 0
	for _, fault := range t.events {
		if fault.Op != history.Fault || fault.Step != freezing {
			continue
		}
		for _, events := range t.runs() {
			for i, e := range events {
				if e.Op != history.Claim || e.Returned >= fault.Invoked || ended(events, e.Token, fault.Invoked) {
					continue
				}
				if next := slices.IndexFunc(events[i+1:], func(e history.Event) bool { return e.Op == history.Claim }); next >= 0 && events[i+1+next].Returned < fault.Invoked {
					continue // it was lost before
				}
				held++
				i := slices.IndexFunc(events, func(own history.Event) bool { return ends(own, e.Token) && own.Outcome == history.OK })
				switch {
				case i >= 0 && events[i].Op == history.Release:
					back++ // by a worker that was heard by nobody for longer than the lease
				case i < 0 && lost[e.Token]:
					gone++
				}
			}
		}
	}
	return figure{name: "leases lost of those held when Postgres stood still", got: fmt.Sprintf("%d of %d, %d more handed back", gone, held, back),
		limit: fmt.Sprintf("≤ %d %%", most), ok: held > 0 && 100*gone <= most*held}
}

// askMode notes what each server says of how it hears of others.
func askMode(ctx context.Context, t *torture) error {
	for i := range t.rig.servers {
		call, cancel := context.WithTimeout(ctx, callLimit)
		info, err := kagziv1.NewAdminServiceClient(t.load.clients[i].sdk.Conn()).GetServerInfo(call, &kagziv1.GetServerInfoRequest{})
		cancel()
		if err != nil {
			return err
		}
		t.modes = append(t.modes, info.Notifications)
	}
	return nil
}

// polls wants each server to say that it is not notified.
func polls(t *torture) figure {
	return figure{name: "notifications", got: strings.Join(t.modes, ", "), limit: "polling", hard: true,
		ok: len(t.modes) > 0 && !slices.ContainsFunc(t.modes, func(m string) bool { return m != "polling" })}
}

// codeSoon wants the code of a run to begin soon after its start was acknowledged, of those that were started while the faults lasted.
func codeSoon(limit time.Duration) func(t *torture) figure {
	return func(t *torture) figure {
		f := figure{name: "from a start until its code runs", got: "no run began", limit: "p99 ≤ " + limit.String()}
		var delays []time.Duration
		for _, events := range t.runs() {
			started, begun := int64(0), int64(0)
			for _, e := range events {
				if e.Op == history.Start && e.Outcome == history.OK && (started == 0 || e.Returned < started) {
					started = e.Returned
				}
				if e.Op == history.CodeBegins && (begun == 0 || e.Invoked < begun) {
					begun = e.Invoked
				}
			}
			if started >= t.faulty && started <= t.healed && begun > 0 {
				delays = append(delays, max(0, time.Duration(begun-started)))
			}
		}
		if slices.Sort(delays); len(delays) > 0 {
			f.got = fmt.Sprintf("p50 %s, p99 %s, longest %s", round(percentile(delays, 50)), round(percentile(delays, 99)), round(delays[len(delays)-1]))
			f.ok = percentile(delays, 99) <= limit
		}
		return f
	}
}
