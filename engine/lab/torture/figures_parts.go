//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"context"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// keptLeases requires that no lease was lost if each killed server was back within half a lease.
func keptLeases(t *torture) figure {
	f := noLeaseLost(t)
	half := t.system.shape.Lease / 2
	f.name, f.hard = "leases lost while servers were away for less than "+half.String(), true
	f.got += fmt.Sprintf(", longest away for %s", round(t.outage))
	if t.outage >= half { // the machine was too slow to show it
		f.ok, f.hard = false, false
	}
	return f
}

// endedSoon requires processes to stop soon after they are asked to.
func endedSoon(t *torture) figure {
	const limit = 5 * time.Second
	f := figure{name: "from asking a process to stop until it has ended", got: "none was", limit: "≤ " + limit.String()}
	if exits := slices.Sorted(slices.Values(t.exits)); len(exits) > 0 {
		f.got = fmt.Sprintf("%d of them, p50 %s, longest %s", len(exits), round(percentile(exits, 50)),
			round(exits[len(exits)-1]))
		f.ok = exits[len(exits)-1] <= limit
	}
	return f
}

// clientsAnswered requires each client call to be answered at the first attempt; retries that the
// SDK makes by itself are allowed.
func clientsAnswered(t *torture) figure {
	calls, failed := 0, map[string]int{}
	n := 0
	for _, e := range t.events {
		switch e.Op {
		case history.Start, history.Cancel, history.Observe:
		default:
			continue
		}
		if calls++; e.Outcome == history.Unknown {
			n++
			failed[fmt.Sprintf("%s %s", e.Op, e.Code)]++
		}
	}
	return figure{name: "calls of clients that failed", got: fmt.Sprintf("%d of %d %v", n, calls, failed), limit: "0",
		ok: n == 0 && calls > 0}
}

// poisoned requires each run that kills its workers to have failed for that, with one run of its
// handler. I8 checks how often they were tried.
func poisoned(t *torture) figure {
	kinds := map[string]workload.Kind{}
	for n := range t.load.Started.Load() {
		e := t.load.Mix.Errand(t.load.Seed, int(n))
		kinds[e.Name] = e.Kind
	}
	handled := map[string]int{}
	for _, r := range t.dump.Runs {
		if r.FailedRun != "" && r.Type == workload.HandlerType && r.Status == string(check.Completed) {
			handled[r.FailedRun]++
		}
	}
	runs, failed, once, others, exits := 0, 0, 0, 0, 0
	for _, r := range t.dump.Runs {
		if kinds[r.Request] != workload.Poison {
			if r.Crashed {
				others++
			}
			continue
		}
		runs++
		if r.Crashed {
			failed++
		}
		if handled[r.ID] == 1 {
			once++
		}
	}
	for _, w := range t.system.workers {
		exits += w.exits[workload.PoisonExit]
	}
	return figure{name: "runs that failed because they killed their workers",
		limit: "all, each with its handler once, and no other run", hard: true,
		got: fmt.Sprintf("%d of %d, after %d ended workers; %d with their handler once; %d others", failed, runs, exits,
			once, others),
		ok: runs > 0 && failed == runs && once == runs && others == 0}
}

// begunUnconfirmed requires that a worker which was frozen for longer than its lease begins no step
// before the server confirms that it holds its leases. The worker's own record has its step begins
// and the confirmed heartbeats.
func begunUnconfirmed(t *torture) figure {
	lease := int64(t.system.shape.Lease)
	of := map[string][]history.Event{}
	back := map[string]int64{} // worker's life: when it was first continued
	for _, e := range t.events {
		if name, ok := strings.CutPrefix(e.Step, faultOnWorker); e.Op == history.Fault && ok {
			if at, again := back[name]; !again || e.Returned < at {
				back[name] = e.Returned
			}
			continue
		}
		of[e.Proc] = append(of[e.Proc], e)
	}
	begun, wrong := 0, 0
	for name, since := range back {
		beats := workload.Confirmations(of[name])
		for _, e := range of[name] {
			if e.Op != history.CodeBegins || e.Returned < since {
				continue
			}
			begun++
			if !slices.ContainsFunc(beats, func(b history.Event) bool {
				return b.Returned <= e.Returned && e.Returned-b.Invoked <= lease
			}) {
				wrong++
			}
		}
	}
	return figure{name: "steps begun by workers that were frozen",
		got:   fmt.Sprintf("%d, %d without a heartbeat confirmed within the lease before", begun, wrong),
		limit: "some, none of them without", ok: begun > 0 && wrong == 0, hard: true}
}

// span is a period between two moments.
type span struct{ from, to int64 }

// meets reports whether an event was in flight at some time of the span.
func (s span) meets(e history.Event) bool { return e.Invoked <= s.to && e.Returned >= s.from }

// lost counts acknowledged writes and observed ends that are missing: all, and those that were not
// in flight while WAL was withheld from the standby. Earlier answers had reached the standby, and
// later ones came from the new primary.
func (t *torture) lost() (all, elsewhere int) {
	c := check.Case{Dump: t.dump, Expected: map[string]check.Wanted{}, Events: t.events}
	t.load.Expected.Range(func(request, want any) bool {
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

// lostInTheLag requires a lagging standby to have lost only acknowledged writes of the time in
// which it lagged.
func lostInTheLag(t *torture) figure {
	all, elsewhere := t.lost()
	return figure{name: "acknowledged writes that were lost", limit: "some while the standby lagged, no others",
		hard: true,
		got: fmt.Sprintf("%d, %d of them outside the %d periods of lag", all, elsewhere,
			len(t.withheld)), ok: elsewhere == 0}
}

// someLost is the proof of F-31.
func someLost(t *torture) []string {
	if all, _ := t.lost(); all == 0 {
		return []string{"no acknowledged write was lost: the standby did not lag"}
	}
	return nil
}

// backEachTime requires a start to be acknowledged and a run to be handed out soon after each time
// that Postgres answers again.
func backEachTime(limit time.Duration) func(t *torture) figure {
	return func(t *torture) figure {
		f := figure{name: "from Postgres's answer until a start is acknowledged and a run handed out, each time",
			limit: "≤ " + limit.String()}
		var starts, claims []time.Duration
		for _, at := range t.system.cluster.Back.All() {
			starts, claims = append(starts, t.firstAfter(at, history.Start)),
				append(claims, t.firstAfter(at, history.Claim))
		}
		s, c := figure{}.within(starts, limit), figure{}.within(claims, limit)
		f.got, f.ok, f.hard = "starts: "+s.got+"; runs: "+c.got, s.ok && c.ok, s.hard || c.hard
		return f
	}
}

// firstAfter returns how long after a moment an operation was first answered with OK; -1: never.
func (t *torture) firstAfter(at int64, op history.Op) time.Duration {
	first := time.Duration(-1)
	for _, e := range t.events {
		if after := time.Duration(e.Returned - at); e.Op == op && e.Outcome == history.OK && after >= 0 &&
			(first < 0 || after < first) {
			first = after
		}
	}
	return first
}

// freezing is the name of the fault that freezes Postgres.
const freezing = "freeze Postgres"

// fewLeasesLost requires workers to get time after Postgres was frozen and no worker could be
// heard: nearly all leases that were held when it began must be kept.
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
				if next := slices.IndexFunc(events[i+1:], func(e history.Event) bool {
					return e.Op == history.Claim
				}); next >= 0 && events[i+1+next].Returned < fault.Invoked {
					continue // it was lost before
				}
				held++
				i := slices.IndexFunc(events, func(own history.Event) bool {
					return ends(own, e.Token) && own.Outcome == history.OK
				})
				switch {
				case i >= 0 && events[i].Op == history.Release:
					back++ // heartbeats were not heard for longer than the lease
				case i < 0 && lost[e.Token]:
					gone++
				}
			}
		}
	}
	return figure{name: "leases lost of those held when Postgres froze",
		got:   fmt.Sprintf("%d of %d, %d more handed back", gone, held, back),
		limit: fmt.Sprintf("≤ %d %%", most), ok: held > 0 && 100*gone <= most*held}
}

// askMode notes how each server says it learns about other servers' changes.
func askMode(ctx context.Context, t *torture) error {
	for i := range t.system.servers {
		call, cancel := context.WithTimeout(ctx, workload.CallLimit)
		info, err := kagziv1.NewAdminServiceClient(t.load.Clients[i].SDK.Conn()).GetServerInfo(
			call, &kagziv1.GetServerInfoRequest{})
		cancel()
		if err != nil {
			return err
		}
		t.modes = append(t.modes, info.Notifications)
	}
	return nil
}

// polls requires each server to report that it polls.
func polls(t *torture) figure {
	return figure{name: "notifications", got: strings.Join(t.modes, ", "), limit: "polling", hard: true,
		ok: len(t.modes) > 0 && !slices.ContainsFunc(t.modes, func(m string) bool { return m != "polling" })}
}

// codeSoon requires the code of a run to begin soon after its start was acknowledged, for runs
// started during the faults.
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
			f.got = fmt.Sprintf("p50 %s, p99 %s, longest %s", round(percentile(delays, 50)),
				round(percentile(delays, 99)), round(delays[len(delays)-1]))
			f.ok = percentile(delays, 99) <= limit
		}
		return f
	}
}
