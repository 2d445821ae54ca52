package check

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// OnWorker is the prefix of faults that end or stop a worker. The rest is the worker's name in the
// history.
const OnWorker = "worker "

// orderly are the prefixes of faults that take no lease: they ask a process to stop.
var orderly = []string{"stop worker-", "stop server-"}

// lossesCountWorkers is the part of I8 about lost workers. A run counts those that it lost since a
// step's result was last recorded, and nothing else: no sleep, no graceful stop of a worker, no
// cancellation. Not every lease is in the history, because a task may not arrive, so most counts
// cannot be checked exactly; three can be checked partly.
func (i *indexed) lossesCountWorkers(l *Line) {
	calm, struck := i.firstLoss(), i.struckWorkers()
	for _, r := range i.Dump.Runs {
		events := i.byRun[r.ID]
		if r.Crashed && r.LeaseLosses != mostLosses {
			l.violate("run %s failed for its lost workers after %d of them, want %d", r.ID, r.LeaseLosses, mostLosses)
		}
		if i.Lossy {
			continue
		}
		if least := sureLosses(events, struck); r.LeaseLosses < least {
			l.violate("run %s counts %d lost workers in a row, want %d at least", r.ID, r.LeaseLosses, least)
		}
		switch {
		case r.LeaseLosses == 0:
		case overAt(events) < calm:
			l.violate("run %s counts %d lost workers, and ended before any was lost", r.ID, r.LeaseLosses)
		case endsWithResult(events):
			l.violate(
				"run %s counts %d lost workers in a row, and a step's result was recorded under the lease that ended it", r.ID, r.LeaseLosses)
		}
	}
}

// firstLoss returns a moment before which no worker that held a run can have been lost: no fault
// had struck, and no lost lease had begun.
func (i *indexed) firstLoss() int64 {
	first := int64(math.MaxInt64)
	for _, e := range i.Events {
		if e.Op == history.Fault && !slices.ContainsFunc(orderly, func(begin string) bool {
			return strings.HasPrefix(e.Step, begin)
		}) {
			first = min(first, e.Invoked)
		}
	}
	for _, events := range i.byRun {
		leases := leasesOf(events)
		for n, lease := range leases {
			if lease.refused || n+1 < len(leases) && !lease.given {
				first = min(first, lease.claimed)
			}
		}
	}
	return first
}

// struckWorkers returns when a fault first struck each worker, if faults struck only workers;
// otherwise it is empty. A server that dies may take a lease with it that a worker knows of but
// that is not on disk yet: that loss does not count.
func (i *indexed) struckWorkers() map[string]int64 {
	struck := map[string]int64{}
	for _, e := range i.Events {
		if e.Op != history.Fault {
			continue
		}
		worker, ok := strings.CutPrefix(e.Step, OnWorker)
		if !ok {
			return nil
		}
		if at, again := struck[worker]; e.Outcome == history.OK && (!again || e.Invoked < at) {
			struck[worker] = e.Invoked
		}
	}
	return struck
}

// lease is a token under which a worker got a run.
type lease struct {
	worker   string
	claimed  int64 // when the worker had it
	given    bool  // an operation that ends it may have counted
	refused  bool  // an operation was refused because it was lost
	result   bool  // a step's result may have been recorded under it
	recorded bool  // a step's result was recorded
	ended    bool  // the run ended under it
}

// leasesOf returns the leases of a run in the order in which workers had them.
func leasesOf(events []history.Event) []*lease {
	byToken := map[string]*lease{}
	var leases []*lease
	for _, e := range events {
		if e.Op == history.Claim && byToken[e.Token] == nil {
			byToken[e.Token] = &lease{worker: e.Proc, claimed: e.Returned}
			leases = append(leases, byToken[e.Token])
		}
	}
	for _, e := range events {
		t := byToken[e.Token]
		switch {
		case t == nil || !Writes(e.Op):
		case e.Code == "LEASE_LOST" && !Ended(e.Status):
			t.refused = true
		case e.Outcome == history.Refused:
		case e.Op == history.Complete:
			t.result = true
			t.recorded = t.recorded || e.Outcome == history.OK
		default:
			t.given = true
			t.ended = t.ended || e.Outcome == history.OK &&
				(e.Op == history.End || e.Op == history.EndBadly && e.Status == "FAILED")
		}
	}
	slices.SortStableFunc(leases, func(a, b *lease) int { return cmp.Compare(a.claimed, b.claimed) })
	return leases
}

// sureLosses returns how many workers a run surely lost since a step's result may have been
// recorded last. A worker is surely lost if it was struck for the first time while it held the run
// and had not begun to give it back, and another lease followed. A task that it got after an
// earlier fault may have been in transit for so long that the lease was lost by then.
func sureLosses(events []history.Event, struck map[string]int64) int {
	losses := 0
	leases := leasesOf(events)
	for n, lease := range leases {
		if lease.result {
			losses = 0
		}
		at, ok := struck[lease.worker]
		if n+1 < len(leases) && ok && lease.claimed < at && at < leases[n+1].claimed && !lease.given && !lease.refused {
			losses++
		}
	}
	return losses
}

// endsWithResult reports whether a run ended under a lease under which a step's result had been
// recorded.
func endsWithResult(events []history.Event) bool {
	return slices.ContainsFunc(leasesOf(events), func(t *lease) bool { return t.ended && t.recorded })
}

// overAt returns when a client was first told that a run had ended.
func overAt(events []history.Event) int64 {
	over := int64(math.MaxInt64)
	for _, e := range events {
		if e.Outcome != history.OK {
			continue
		}
		switch e.Op {
		case history.End, history.Cancel:
			over = min(over, e.Returned)
		case history.EndBadly, history.Observe:
			if Ended(e.Status) {
				over = min(over, e.Returned)
			}
		}
	}
	return over
}
