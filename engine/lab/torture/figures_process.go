//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// keptLeases wants no lease to be lost where each killed server was back within half of one.
func keptLeases(t *torture) figure {
	f := noLeaseLost(t)
	half := t.rig.shape.Lease / 2
	f.name, f.hard = "leases lost while servers were away for less than "+half.String(), true
	f.got += fmt.Sprintf(", longest away for %s", round(t.outage))
	if t.outage >= half { // for the machine was too slow to show it
		f.ok, f.hard = false, false
	}
	return f
}

// endedSoon wants what is asked to end to do so.
func endedSoon(t *torture) figure {
	const limit = 5 * time.Second
	f := figure{name: "until a process that is asked to end has ended", got: "none was", limit: "≤ " + limit.String()}
	if exits := slices.Sorted(slices.Values(t.exits)); len(exits) > 0 {
		f.got = fmt.Sprintf("%d of them, p50 %s, longest %s", len(exits), round(percentile(exits, 50)), round(exits[len(exits)-1]))
		f.ok = exits[len(exits)-1] <= limit
	}
	return f
}

// clientsAnswered wants each call of a client to be answered at the first time of asking, the repetitions that the SDK makes by itself aside.
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
	return figure{name: "calls of clients that failed", got: fmt.Sprintf("%d of %d %v", n, calls, failed), limit: "0", ok: n == 0 && calls > 0}
}

// poisoned wants each run that ends its workers to have failed for that, and to be followed by its handler, once. I8 holds how often they were tried.
func poisoned(t *torture) figure {
	kinds := map[string]kind{}
	for n := range t.load.started.Load() {
		e := t.load.mix.errand(t.load.seed, int(n))
		kinds[e.Name] = e.Kind
	}
	handled := map[string]int{}
	for _, r := range t.dump.Runs {
		if r.FailedRun != "" && r.Type == handlerType && r.Status == string(check.Completed) {
			handled[r.FailedRun]++
		}
	}
	runs, failed, once, others, exits := 0, 0, 0, 0, 0
	for _, r := range t.dump.Runs {
		if kinds[r.Request] != poison {
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
	for _, w := range t.rig.workers {
		exits += w.exits[poisonExit]
	}
	return figure{name: "runs that failed for the workers that they ended", limit: "all, each with its handler once, and no other", hard: true,
		got: fmt.Sprintf("%d of %d, after %d ended workers; %d with their handler once; %d others", failed, runs, exits, once, others),
		ok:  runs > 0 && failed == runs && once == runs && others == 0}
}

// begunUnconfirmed wants no worker that has stood still for longer than its lease to begin a step before the server has told it again that it holds
// its leases: its own record has what it began, and the heartbeats that were confirmed.
func begunUnconfirmed(t *torture) figure {
	lease := int64(t.rig.shape.Lease)
	of := map[string][]history.Event{}
	back := map[string]int64{} // worker's life: when it was continued first
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
		beats := confirmations(of[name])
		for _, e := range of[name] {
			if e.Op != history.CodeBegins || e.Returned < since {
				continue
			}
			begun++
			if !slices.ContainsFunc(beats, func(b history.Event) bool { return b.Returned <= e.Returned && e.Returned-b.Invoked <= lease }) {
				wrong++
			}
		}
	}
	return figure{name: "steps begun by workers that had stood still", got: fmt.Sprintf("%d, %d without a heartbeat that was confirmed within the lease before", begun, wrong),
		limit: "some, none of them without", ok: begun > 0 && wrong == 0, hard: true}
}
