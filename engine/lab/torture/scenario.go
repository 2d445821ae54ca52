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
	pass     string   // expected outcome, apart from no violation
	on       []string // kinds of databases; nil: all

	mix      workload.Mix   // zero: the standard one
	rate     float64        // of starts, relative to the standard one; 0: 1
	settle   time.Duration  // how long everything may take to end after the last fault; 0: settleLimit
	least    time.Duration  // minimum duration of its faults, whatever was requested: it does not fit into less
	after    time.Duration  // minimum load after its last fault; 0: leastRecovery
	catchUp  int            // missed ticks that the schedules catch up; 0: all
	shape    func(s *shape) // changes the default shape
	scaled   bool           // the workers' slots are those at scale 1, and change with the load
	prepare  func(ctx context.Context, t *torture) error
	inject   func(ctx context.Context, t *torture) error // until ctx ends
	figures  []func(t *torture) figure
	need     need          // it proves nothing without these
	readings time.Duration // how old a server's reading of a settable clock may be
	lossy    bool          // acknowledged writes may be lost here
	control  bool          // acknowledged writes must be lost here: shows that the fault has an effect
	disk     diskMaker

	alone func(ctx context.Context, o options) (*report, error) // a scenario without a load under faults

	proof func(t *torture) (missing []string) // what it lacks to prove anything, apart from need
}

// need is the minimum that must have happened.
type need struct {
	faults    int
	takeovers int // runs that continued under another lease than the one that a fault took
	late      int // writes that were refused because their lease was lost
	cutShort  int // upgrades that were killed before the new schema was complete
	repeated  int // starts that were repeated
}

// figure is a number with a limit.
type figure struct {
	name  string
	got   string
	limit string
	ok    bool
	hard  bool // a promise, not a speed that depends on the machine
}

func (f figure) String() string {
	verdict := "ok"
	if !f.ok {
		verdict = "missed"
	}
	return fmt.Sprintf("     %-8s %s: %s (pass: %s)", verdict, f.name, f.got, f.limit)
}

// every calls do repeatedly, with pauses between, until ctx ends or do fails.
func (t *torture) every(ctx context.Context, from, to time.Duration, do func() error) error {
	for t.pause(ctx, from, to) {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a time between from and to; false if ctx ended first.
func (t *torture) pause(ctx context.Context, from, to time.Duration) bool {
	select {
	case <-time.After(t.system.random.between(from, to)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// result is the outcome of one attempt, for the table at the end.
type result struct {
	attempt attempt
	seed    uint64
	took    time.Duration
	code    int
	report  *report // nil: it did not run
	why     string  // why it did not run
}

// tableHead is the head of the table.
const tableHead = "| scenario | database | seed | took | result | verdict |\n|---|---|---|---|---|---|"

// row returns the result as a line of a Markdown table.
func (r result) row() string {
	cells := []string{r.attempt.scenario.id + " " + r.attempt.scenario.name, withoutURL(r.attempt.db),
		fmt.Sprint(r.seed), r.took.Round(time.Second).String(),
		r.told(), verdicts[r.code]}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", "\\|"), "\n", " ")
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// told returns the figures in short; missed ones are marked.
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

// scope returns how much was checked against the promises.
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
