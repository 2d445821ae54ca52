package check

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// OnWorker begins the name of a fault that takes a worker's life, or stops it. The rest is the
// worker's name in the history.
const OnWorker = "worker "

// orderly begin the names of faults that take no lease: they ask a process to end.
var orderly = []string{"stop worker-", "stop server-"}

// lossesCountWorkers is the part of I8 that is about lost workers. A run counts those that it has
// lost since the last result of a step was recorded, and nothing else: no sleep, no worker that
// ends in good order, no cancellation. Not every lease is in the history, for a task may not
// arrive, so that most counts cannot be told to the last one; three can be told in part.
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

// firstLoss is a moment before which no worker can have been lost that held a run: no fault had
// struck, and no lease had begun that was lost.
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

// struckWorkers is when a fault struck each worker first, where faults struck nothing but workers;
// else it is empty. A server that dies may take a lease with it of which it has told, but which is
// not on the disk yet: nobody has lost that one.
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

// lease is a token under which a worker was handed a run.
type lease struct {
	worker   string
	claimed  int64 // when the worker had it
	given    bool  // an operation that ends it may have counted
	refused  bool  // an operation was refused because it was lost
	result   bool  // a step's result may have been recorded under it
	recorded bool  // one has been
	ended    bool  // the run ended under it
}

// leasesOf are the leases of a run in the order in which workers had them.
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

// sureLosses is how many workers a run has surely lost since a step's result may have been recorded
// last. One is lost for sure that was struck, for the first time, while it held the run and had not
// begun to give it back, when another lease followed: what it was handed after an earlier fault may
// have been on its way for so long that it had lost it by then.
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

// endsWithResult reports whether a run ended under a lease under which a step's result had been recorded.
func endsWithResult(events []history.Event) bool {
	return slices.ContainsFunc(leasesOf(events), func(t *lease) bool { return t.ended && t.recorded })
}

// overAt is when somebody was first told that a run had ended.
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
