//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// judge reads what is left and checks it against the invariants.
func (t *torture) judge(ctx context.Context) (*report, error) {
	events, err := t.system.events()
	if err != nil {
		return nil, err
	}
	events = append(events, t.replays.Events()...)
	if t.onlooker != nil {
		events = append(events, t.onlooker.Log.Events()...)
	}
	for _, c := range t.load.Clients {
		events = append(events, c.Log.Events()...)
	}
	t.byTheirClock(events)
	t.events = events
	if err := history.Write(filepath.Join(t.options.dir, "history.jsonl"), events); err != nil {
		return nil, err
	}
	if t.dump, err = dump(ctx, t.options.program, t.options.dir, t.system.url(), periods); err != nil {
		return nil, err
	}
	expected := map[string]check.Wanted{}
	t.load.Expected.Range(func(request, want any) bool {
		expected[request.(string)] = want.(check.Wanted)
		return true
	})
	r := &report{scope: t.scope(), trouble: t.system.trouble}
	r.lines = check.Invariants(&check.Case{Events: events, Dump: t.dump, Expected: expected, Ended: true,
		Lossy: t.scenario.lossy})
	r.figures = append(r.figures, recovery(t), backAgain(t), heard(t), noInternal(t))
	for _, f := range t.scenario.figures {
		r.figures = append(r.figures, f(t))
	}
	r.met, r.vacuous = t.vacuous()
	r.vacuous = append(r.vacuous, blind(r.lines, t.scenario.lossy)...)
	if t.scenario.control {
		r.turnOver()
	}
	return r, nil
}

// turnOver makes the report of a control run: without losses it proves nothing, and with some it is
// as expected.
func (r *report) turnOver() {
	lost := lostAcknowledgements(r)
	if lost == 0 {
		r.vacuous = append(r.vacuous, "no acknowledged write was lost: the fault has no effect")
	}
	r.lines, r.trouble = nil, nil
	r.figures = []figure{{name: "acknowledged writes that the control run lost", got: fmt.Sprint(lost), limit: "> 0",
		ok: lost > 0}}
}

// vacuous is I14: what happened, and what is missing for the scenario to prove anything.
func (t *torture) vacuous() (met string, why []string) {
	want := func(ok bool, format string, args ...any) {
		if !ok {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	var faults, hits, late, repeated int
	starts := map[string]int{}
	for _, e := range t.events {
		switch {
		case e.Op == history.Start:
			if starts[e.Request]++; starts[e.Request] == 2 {
				repeated++
			}
		case e.Op == history.Fault:
			faults++
			if e.Outcome == history.OK {
				hits++
			}
		case e.Code == "LEASE_LOST" && !check.Ended(e.Status):
			late++
		}
	}
	n := t.scenario.need
	taken := len(t.takeovers())
	calmStarts, calmAcks := t.calmStarts()
	want(calmStarts > 0 && 10*calmAcks >= 8*calmStarts,
		"%d of %d starts outside the faults were acknowledged, want 80 %%", calmAcks, calmStarts)
	want(t.scenario.inject == nil || faults > 0 &&
		20*hits >= 19*faults, "%d of %d faults did hit, want 95 %%", hits, faults)
	want(hits >= n.faults, "%d faults did hit, want %d", hits, n.faults)
	want(taken >= n.takeovers, "%d runs were taken over, want %d", taken, n.takeovers)
	want(late >= n.late, "%d late writes were refused, want %d", late, n.late)
	want(t.cutShort >= n.cutShort, "%d upgrades were killed before the new schema was complete, want %d", t.cutShort,
		n.cutShort)
	want(repeated >= n.repeated, "%d starts were repeated, want %d", repeated, n.repeated)
	if t.scenario.proof != nil {
		why = append(why, t.scenario.proof(t)...)
	}
	return fmt.Sprintf(
		"%d of %d faults did hit, %d of %d starts outside of them were acknowledged in time, %d starts were repeated, %d runs taken over, %d late writes refused",
		hits, faults, calmAcks, calmStarts, repeated, taken, late), why
}

// blind returns the invariants that checked nothing although every load has something for them.
// Where writes may be lost, no order is checked.
func blind(lines []check.Line, lossy bool) []string {
	var why []string
	for _, l := range lines {
		always := strings.Contains(" I1 I2 I4 I5 I6 I7 I8 I9 I12 I13 ", " "+l.ID+" ") || l.ID == "LIN" && !lossy
		if l.Checked == 0 && always {
			why = append(why, l.ID+" checked nothing: there are no "+l.Of)
		}
	}
	return why
}

// calmStarts counts the starts outside the faults, and those acknowledged in time.
func (t *torture) calmStarts() (asked, acknowledged int) {
	first := map[string]int64{}
	for _, e := range t.events {
		if at, ok := first[e.Request]; e.Op == history.Start && (!ok || e.Invoked < at) {
			first[e.Request] = e.Invoked
		}
	}
	inTime := map[string]bool{}
	for _, e := range t.events {
		if e.Op == history.Start && e.Outcome == history.OK && e.Returned-first[e.Request] < int64(workload.CallLimit) {
			inTime[e.Request] = true
		}
	}
	for request, at := range first {
		if at < t.faulty || at > t.healed {
			asked++
			if inTime[request] {
				acknowledged++
			}
		}
	}
	return asked, acknowledged
}

// print writes the report and returns its exit code.
func (r *report) print(s scenario, o options, took time.Duration) int {
	fmt.Printf("%s %s on %s, seed %d (%s)\n", s.id, s.name, withoutURL(o.db), o.seed, took.Round(time.Second))
	for _, l := range r.lines {
		fmt.Println("  " + strings.ReplaceAll(l.String(), "\n", "\n  "))
	}
	missed := false
	for _, f := range r.figures {
		fmt.Println("  " + f.String())
		missed = missed || !f.ok && (f.hard || o.strict)
	}
	verdict, details := "ok", r.met
	if len(r.vacuous) > 0 {
		verdict, details = "VACUOUS", strings.Join(r.vacuous, "; ")
	}
	fmt.Printf("  I14  %-8s %s\n", verdict, details)
	for _, text := range r.trouble {
		fmt.Printf("  TROUBLE %.1000q\n", text)
	}
	code := exitHeld
	switch {
	case check.Violated(r.lines) > 0 || len(r.trouble) > 0 || missed:
		code = exitViolated
	case len(r.vacuous) > 0:
		code = exitVacuous
	}
	fmt.Printf("  => %s\n", verdicts[code])
	return code
}

// withoutURL names a database without what a URL may hold.
func withoutURL(db string) string {
	if strings.Contains(db, ":") {
		return "a given database"
	}
	return db
}

// tortured returns the directory of one torture.
func tortured(base string, s scenario, db string) string {
	return filepath.Join(base, s.id+"-"+map[bool]string{true: db, false: "given"}[!strings.Contains(db, ":")])
}
