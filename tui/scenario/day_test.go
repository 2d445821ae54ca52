package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/sandbox"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/scenario"
)

var begin = time.Date(2026, 11, 12, 9, 30, 0, 0, time.UTC)

// played is a day that has been played on a server of its own, and all that server's runs as text.
func played(t *testing.T, seed uint64) (*scenario.Day, *sandbox.Sandbox, string) {
	t.Helper()
	var db *memory.Database
	box := sandbox.New(sandbox.Options{Seed: seed, Begin: begin.Add(-scenario.Running), Version: "test", Open: func(h sandbox.Hooks) engine.Store {
		db = memory.New(memory.Options{Now: h.Now, Due: h.Due, Notify: h.Notify, Outcomes: h.Outcomes, Wrote: h.Wrote})
		return db.Open(nil)
	}})
	d, err := scenario.Play(box, seed, begin)
	if err != nil {
		t.Fatal(err)
	}
	d.Advance(10 * time.Minute)
	var b strings.Builder
	for _, r := range db.Runs() {
		fmt.Fprintf(&b, "%s %s %s %s %s %v\n", r.ID, r.Namespace, r.Type, r.Status, r.CreatedAt, r.FinishedAt)
		for _, s := range r.Steps {
			fmt.Fprintf(&b, "  %s %s %s %d %s %v\n", s.ID, s.Name, s.Status, s.Attempt, s.StartedAt, s.FinishedAt)
		}
	}
	return d, box, b.String()
}

func TestOneSeedMakesOneDay(t *testing.T) {
	_, _, first := played(t, 1)
	_, _, second := played(t, 1)
	_, _, other := played(t, 2)
	if first == other {
		t.Error("another seed makes the same day")
	}
	had := strings.Split(second, "\n")
	for i, line := range strings.Split(first, "\n") {
		if line != had[i] {
			t.Fatalf("line %d is %q the first time and %q the second", i, line, had[i])
		}
	}
}

func TestPiecesAreWhatTheySay(t *testing.T) {
	d, box, _ := played(t, 1)
	runs := kagziv1.NewWorkflowServiceClient(box.Direct())
	for _, p := range []scenario.Piece{scenario.Waiting, scenario.Busy, scenario.FanOut, scenario.Growing, scenario.Sleeping, scenario.Signalled, scenario.Parent, scenario.Retrying, scenario.Paused, scenario.Cancelling, scenario.Gated, scenario.Delayed, scenario.Draining,
		scenario.Family, scenario.Overridden, scenario.Retried, scenario.Chatty, scenario.Big, scenario.Text, scenario.Binary, scenario.Failed, scenario.TimedOut, scenario.Cancelled, scenario.Terminated, scenario.Crashed, scenario.Hostile, scenario.Pinned} {
		r, err := runs.GetWorkflow(context.Background(), &kagziv1.GetWorkflowRequest{RunId: d.ID(p)})
		if err != nil {
			t.Error(p, err)
			continue
		}
		x, _ := runs.ExplainWorkflow(context.Background(), &kagziv1.ExplainWorkflowRequest{RunId: d.ID(p)})
		w := r.Workflow
		t.Logf("%-12s %s %s steps %d att %d: %.200s", p, w.WorkflowType, w.Status, w.StepCount, w.Attempts, x.GetSummary())
	}
	_ = maps.Keys[map[string]int]
	_ = slices.Sort[[]int]
}
