//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

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
	cells := []string{r.attempt.scenario.id + " " + r.attempt.scenario.name, withoutURL(r.attempt.db), fmt.Sprint(r.seed), r.took.Round(time.Second).String(),
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
