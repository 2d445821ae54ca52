//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// recovery compares the rate of runs that ended after the last fault with the rate before the
// first.
func recovery(t *torture) figure {
	f := figure{name: "recovery ratio", limit: "≥ 95 %, less chance"}
	before := t.endsBetween(t.calm+(t.faulty-t.calm)/2, t.faulty)
	after := t.endsBetween(t.healed+(t.over-t.healed)/2, t.over)
	if before == 0 {
		f.got = "no run ended before the faults"
		return f
	}
	f.got = fmt.Sprintf("%.0f %% (%.1f/s before, %.1f/s after)", 100*after/before, before, after)
	// Short periods differ by chance alone.
	chance := 2 * math.Sqrt(before/(float64(t.faulty-t.calm)/2e9)+after/(float64(t.over-t.healed)/2e9))
	f.ok = after >= 0.95*before-chance
	return f
}

// backAgain measures how long after the last fault the first start was acknowledged.
func backAgain(t *torture) figure {
	const limit = 5 * time.Second
	first := int64(math.MaxInt64)
	for _, e := range t.events {
		if e.Op == history.Start && e.Outcome == history.OK && e.Returned >= t.healed {
			first = min(first, e.Returned)
		}
	}
	f := figure{name: "first start acknowledged after the last fault", got: "never", limit: "≤ " + limit.String()}
	if first < math.MaxInt64 {
		f.got = "after " + round(time.Duration(first-t.healed)).String()
		f.ok = first-t.healed <= int64(limit)
	}
	return f
}

// heard measures how long after a run's end its client learned of it. A client that was cut off, or
// whose server was down, learns of it later. A client that cancels its run listens only after that.
func heard(t *torture) figure {
	const limit = 10 * time.Second
	var delays []time.Duration
	for _, events := range t.runs() {
		over, seen := int64(0), int64(0)
		for _, e := range events { // in the order of their answers
			switch {
			case e.Op == history.Cancel:
				over, seen = 0, -1
			case e.Outcome != history.OK:
			case over == 0 && (e.Op == history.End || e.Op == history.EndBadly && e.Status != "PENDING"):
				over = e.Returned
			case seen == 0 && e.Op == history.Observe && check.Ended(e.Status):
				seen = e.Returned
			}
		}
		if over > 0 && seen > 0 {
			delays = append(delays, time.Duration(max(0, seen-over)))
		}
	}
	f := figure{name: "from a run's end until its client learns of it, over all faults", got: "nobody waited",
		limit: "longest ≤ " + limit.String(), ok: true}
	if len(delays) > 0 {
		slices.Sort(delays)
		longest := delays[len(delays)-1]
		f.got = fmt.Sprintf("p50 %s, p99 %s, longest %s", round(percentile(delays, 50)), round(percentile(delays, 99)),
			round(longest))
		f.ok = longest <= limit
	}
	return f
}

// endsBetween returns the rate at which runs ended.
func (t *torture) endsBetween(from, to int64) float64 {
	n := 0
	for _, e := range t.events {
		if e.Op == history.End && e.Outcome == history.OK && e.Returned >= from && e.Returned < to {
			n++
		}
	}
	return float64(n) * 1e9 / float64(max(1, to-from))
}

// takeovers returns the times from the fault that took a run's worker until another worker got the
// run, without the delay of a run that was lost several times in a row.
func (t *torture) takeovers() []time.Duration {
	struck := map[string][]history.Event{} // worker's life: the faults that struck it, in order
	for _, e := range t.events {
		if target, ok := strings.CutPrefix(e.Step, faultOnWorker); e.Op == history.Fault && ok {
			struck[target] = append(struck[target], e)
		}
	}
	for _, faults := range struck {
		slices.SortFunc(faults, func(a, b history.Event) int { return cmp.Compare(a.Invoked, b.Invoked) })
	}
	var delays []time.Duration
	for _, events := range t.runs() {
		losses := 0 // in a row, as far as is known
		for i, e := range events {
			if e.Op != history.Claim {
				continue
			}
			next, progressed, lost := afterLease(events[i+1:], e.Token)
			if !lost {
				losses = 0
				continue
			}
			if progressed {
				losses = 0
			}
			losses++
			if at, ok := takenAt(struck[e.Proc], e, next, events[i+1:]); ok && !ended(events[i+1:], e.Token, at) {
				delays = append(delays, time.Duration(next.Returned-at)-pauseAfter(losses))
			}
		}
	}
	slices.Sort(delays)
	return delays
}

// takenAt returns when the fault began that took a lease: the first on its worker after the claim
// that the lease did not outlive, or else the last.
func takenAt(faults []history.Event, claim, next history.Event, events []history.Event) (at int64, ok bool) {
	for _, f := range faults {
		if f.Invoked < claim.Returned || f.Invoked >= next.Returned {
			continue
		}
		at, ok = f.Invoked, true
		outlived := f.Returned > 0 && slices.ContainsFunc(events, func(e history.Event) bool {
			return e.Token == claim.Token && e.Proc == claim.Proc && e.Outcome == history.OK && check.Writes(e.Op) &&
				e.Invoked > f.Returned
		})
		if !outlived {
			return at, true
		}
	}
	return at, ok
}

// pauseAfter returns how long a run waits after this many losses in a row: nothing after the first,
// then a second, doubled each time.
func pauseAfter(losses int) time.Duration {
	if losses < 2 {
		return 0
	}
	return min(time.Second<<(min(losses, 12)-2), 5*time.Minute)
}

// afterLease is the claim after a lost lease: no operation is known to have ended it. progressed
// reports whether a step's result was recorded under it.
func afterLease(events []history.Event, token string) (next history.Event, progressed, lost bool) {
	for _, e := range events {
		switch {
		case ends(e, token) && e.Outcome == history.OK:
			return history.Event{}, false, false
		case e.Op == history.Claim:
			return e, progressed, true
		}
		progressed = progressed || e.Op == history.Complete && e.Token == token && e.Outcome == history.OK
	}
	return history.Event{}, false, false
}

// runs returns the events of each run in the order of their answers.
func (t *torture) runs() map[string][]history.Event {
	runs := map[string][]history.Event{}
	for _, e := range t.events {
		if e.Run != "" {
			runs[e.Run] = append(runs[e.Run], e)
		}
	}
	for _, events := range runs {
		slices.SortStableFunc(events, func(a, b history.Event) int { return int(a.Returned - b.Returned) })
	}
	return runs
}

// ended reports whether a lease had, or may have, ended before a moment: an operation that ends it
// had been sent.
func ended(events []history.Event, token string, at int64) bool {
	return slices.ContainsFunc(events, func(e history.Event) bool { return ends(e, token) && e.Invoked < at })
}

// ends reports whether an operation ends a lease.
func ends(e history.Event, token string) bool {
	return e.Token == token && check.Writes(e.Op) && e.Op != history.Complete
}

// faultOnWorker is the prefix of faults that end or stop a worker.
const faultOnWorker = check.OnWorker

// takeover requires runs of lost workers to be handed out again within the lease, the suspect
// period and a second.
func takeover(t *torture) figure {
	limit := t.system.shape.Lease + t.system.shape.Heartbeat + 2*time.Second
	delays := t.takeovers()
	f := figure{name: "time until a lost worker's run is handed out again",
		limit: fmt.Sprintf("p99 ≤ %s, longest ≤ %s", limit, limit+2*time.Second)}
	if len(delays) == 0 {
		f.got, f.ok = "none", true
		return f
	}
	p99, longest := percentile(delays, 99), delays[len(delays)-1]
	f.got = fmt.Sprintf("%d of them, p50 %s, p99 %s, longest %s", len(delays), round(percentile(delays, 50)),
		round(p99), round(longest))
	f.ok = p99 <= limit && longest <= limit+2*time.Second
	return f
}

// restart requires servers to serve soon after they are started.
func restart(t *torture) figure {
	const limit = 2 * time.Second
	var starts []time.Duration
	for _, s := range t.system.servers {
		starts = append(starts, s.starts[1:]...)
	}
	slices.Sort(starts)
	f := figure{name: "time until a restarted server serves", limit: "≤ " + limit.String(), ok: true,
		got: "never restarted"}
	if len(starts) > 0 {
		f.got = fmt.Sprintf("%d restarts, p50 %s, longest %s", len(starts), round(percentile(starts, 50)),
			round(starts[len(starts)-1]))
		f.ok = starts[len(starts)-1] <= limit
	}
	return f
}

// noLeaseLost requires that no healthy worker lost a lease.
func noLeaseLost(t *torture) figure {
	lost := t.leasesLost()
	return figure{name: "leases lost by healthy workers", got: fmt.Sprint(len(lost)), limit: "0",
		ok: len(lost) == 0}
}

// leasesLost returns the tokens of leases that workers lost: a write was refused for it, or another
// worker got the run although the lease had not been given back.
func (t *torture) leasesLost() map[string]bool {
	lost := map[string]bool{}
	for _, events := range t.runs() {
		holder := ""
		for _, e := range events {
			if e.Code == "LEASE_LOST" && !check.Ended(e.Status) {
				lost[e.Token] = true
			}
			if e.Op == history.Claim {
				if holder != "" && !ended(events, holder, e.Returned) {
					lost[holder] = true
				}
				holder = e.Token
			}
		}
	}
	return lost
}

// hard turns a machine-dependent figure into a promise.
func hard(of func(t *torture) figure) func(t *torture) figure {
	return func(t *torture) figure {
		f := of(t)
		f.hard = true
		return f
	}
}

// clientErrors measures the periods in which clients got no answer.
func clientErrors(t *torture) figure {
	first := map[string]int64{}
	var waits []time.Duration
	events := slices.Clone(t.events)
	slices.SortFunc(events, func(a, b history.Event) int { return int(a.Invoked - b.Invoked) })
	for _, e := range events {
		if e.Op != history.Start {
			continue
		}
		if _, ok := first[e.Request]; !ok {
			first[e.Request] = e.Invoked
		}
		if e.Outcome == history.OK {
			waits = append(waits, time.Duration(e.Returned-first[e.Request]))
		}
	}
	slices.Sort(waits)
	f := figure{name: "time until a start is acknowledged, over all faults", limit: "p99 ≤ 3s"}
	if len(waits) > 0 {
		f.got = fmt.Sprintf("p50 %s, p99 %s, longest %s", round(percentile(waits, 50)), round(percentile(waits, 99)),
			round(waits[len(waits)-1]))
		f.ok = percentile(waits, 99) <= 3*time.Second
	}
	return f
}

// during requires the load to continue during the fault.
func during(t *torture) figure { return goesOn(0.9)(t) }

// goesOn requires a share of the earlier load during the fault.
func goesOn(share float64) func(t *torture) figure {
	return func(t *torture) figure {
		f := figure{name: "throughput during the fault",
			limit: fmt.Sprintf("≥ %.0f %% of before, less chance", 100*share)}
		before, now := t.endsBetween(t.calm+(t.faulty-t.calm)/2, t.faulty), t.endsBetween(t.faulty, t.healed)
		f.got = fmt.Sprintf("%.1f/s before, %.1f/s during", before, now)
		f.ok = now >= share*before-2*math.Sqrt(before/(float64(t.faulty-t.calm)/2e9))
		return f
	}
}

// noInternal requires that no operation ends with an internal error, whatever the fault. Answers
// that did not arrive are in the servers' logs. Errors of workflow code do not count.
func noInternal(t *torture) figure {
	n := 0
	for _, e := range t.events {
		if strings.EqualFold(e.Code, "INTERNAL") && e.Outcome != history.OK {
			n++
		}
	}
	return figure{name: "answers with an internal error", got: fmt.Sprint(n), limit: "0", ok: n == 0, hard: true}
}

// forged requires every write that was repeated with other content to be refused.
func forged(t *torture) figure {
	refusals, accepted, repeated := 0, 0, 0
	for _, e := range t.replays.Events() {
		switch {
		case e.Value != forgery && e.Outcome == history.OK:
			repeated++
		case e.Value == forgery && e.Outcome == history.Refused:
			refusals++
		case e.Value == forgery && e.Outcome == history.OK:
			accepted++
		}
	}
	return figure{name: "forged writes", got: fmt.Sprintf(
		"%d refused, %d accepted; %d true repetitions were answered as before", refusals, accepted, repeated),
		limit: "some refused and some repeated, none accepted", ok: refusals > 0 && repeated > 0 &&
			accepted == 0, hard: true}
}

// percentile returns a percentile of sorted durations; there is at least one.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
