//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// scenario is one row of the matrix of faults.
type scenario struct {
	id, name string
	pass     string   // what is to come out, beside no violation
	on       []string // kinds of databases; nil means all

	mix      workload.Mix   // the standard one when zero
	rate     float64        // of starts, to the standard one; 0 is 1
	settle   time.Duration  // how long all may take to end after the last fault; 0 is settleLimit
	least    time.Duration  // of its faults, whatever was asked for: what it is about does not fit into less
	after    time.Duration  // of load after its last fault, at least; 0 is leastRecovery
	catchUp  int            // missed ticks that the schedules catch up with; 0 is all
	shape    func(s *shape) // changes the usual one
	scaled   bool           // the workers' slots are those at scale 1, and change with the load
	prepare  func(ctx context.Context, t *torture) error
	inject   func(ctx context.Context, t *torture) error // until ctx ends
	figures  []func(t *torture) figure
	need     need          // without which it proves nothing
	readings time.Duration // how old a reading of a clock that was set may be when a server goes by it
	lossy    bool          // acknowledged writes may be lost here
	control  bool          // acknowledged writes must be lost here: it shows that the fault bites
	disk     diskMaker

	alone func(ctx context.Context, o options) (*report, error) // a scenario that is no load under faults

	proof func(t *torture) (missing []string) // what it would have to have to prove anything, beside need
}

// need is the least that must have happened.
type need struct {
	faults    int
	takeovers int // runs that went on under another lease than the one that a fault took
	late      int // writes that were refused because their lease was lost
	cutShort  int // upgrades that were killed before the new schema was there
	repeated  int // starts that were asked for again
}

// figure is a number that is to keep within a limit.
type figure struct {
	name  string
	got   string
	limit string
	ok    bool
	hard  bool // a promise, and not a speed that depends on the machine
}

func (f figure) String() string {
	verdict := "ok"
	if !f.ok {
		verdict = "missed"
	}
	return fmt.Sprintf("     %-8s %s: %s (pass: %s)", verdict, f.name, f.got, f.limit)
}

// every calls do again and again, with pauses between, until ctx ends or do fails.
func (t *torture) every(ctx context.Context, from, to time.Duration, do func() error) error {
	for t.pause(ctx, from, to) {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a time between from and to; false when ctx ended first.
func (t *torture) pause(ctx context.Context, from, to time.Duration) bool {
	select {
	case <-time.After(t.system.random.between(from, to)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// result is what came of one attempt, for the table at the end.
type result struct {
	attempt attempt
	seed    uint64
	took    time.Duration
	code    int
	report  *report // nil: it was not carried out
	why     string  // it was not
}

// tableHead is the first lines of the table.
const tableHead = "| scenario | database | seed | took | what came of it | verdict |\n|---|---|---|---|---|---|"

// row is the result as a line of a Markdown table.
func (r result) row() string {
	cells := []string{r.attempt.scenario.id + " " + r.attempt.scenario.name, withoutURL(r.attempt.db),
		fmt.Sprint(r.seed), r.took.Round(time.Second).String(),
		r.told(), verdicts[r.code]}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", "\\|"), "\n", " ")
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// told is the figures in short: what was missed is said to be.
func (r result) told() string {
	if r.report == nil {
		return fmt.Sprintf("%.160s", r.why)
	}
	var parts []string
	if r.report.scope != "" {
		parts = append(parts, r.report.scope)
	}
	if n := check.Violated(r.report.lines) + len(r.report.trouble); n > 0 {
		parts = append(parts, fmt.Sprintf("%d violations", n))
	}
	for _, f := range r.report.figures {
		text := f.name + ": " + f.got
		if !f.ok {
			text = "missed: " + text + " (pass: " + f.limit + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(append(parts, r.report.vacuous...), "; ")
}

// scope is how much was held to the promises.
func (t *torture) scope() string {
	faults, operations := 0, 0
	for _, e := range t.events {
		switch {
		case e.Op == history.Fault && e.Outcome == history.OK:
			faults++
		case e.Op != history.Fault && e.Op != history.CodeBegins:
			operations++
		}
	}
	return fmt.Sprintf("%d faults, %d runs, %d operations", faults, len(t.dump.Runs), operations)
}
