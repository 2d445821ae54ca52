package scenario_test

import (
	"fmt"
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

// played is a played day with its server.
type played struct {
	day *scenario.Day
	box *sandbox.Sandbox
	db  *memory.Database
}

func play(t *testing.T, seed uint64) *played {
	t.Helper()
	var p played
	p.box = sandbox.New(sandbox.Options{Seed: seed, Begin: begin.Add(-scenario.Running), Version: "test",
		Open: func(h sandbox.Hooks) engine.Store {
			p.db = memory.New(options(h))
			return p.db.Open(nil)
		}})
	var err error
	if p.day, err = scenario.Play(p.box, seed, begin); err != nil {
		t.Fatal(err)
	}
	return &p
}

func options(h sandbox.Hooks) memory.Options {
	return memory.Options{Now: h.Now, Due: h.Due, Notify: h.Notify, Outcomes: h.Outcomes, Wrote: h.Wrote}
}

// copied returns the same day on its own server.
func (p *played) copied() *played {
	var c played
	c.box = p.box.Snapshot().Open(func(h sandbox.Hooks) engine.Store {
		c.db = p.db.CloneWith(options(h))
		return c.db.Open(nil)
	})
	c.day = p.day.On(c.box)
	return &c
}

// history returns all runs and their steps as text.
func (p *played) history() []string {
	var lines []string
	for _, r := range p.db.Runs() {
		lines = append(lines, fmt.Sprint(r.ID, r.Namespace, r.Type, r.Status, r.CreatedAt, r.FinishedAt, r.Note))
		for _, s := range r.Steps {
			lines = append(lines, fmt.Sprint("  ", s.ID, s.Name, s.Status, s.Attempt, s.StartedAt, s.FinishedAt))
		}
	}
	return lines
}

// same fails at the first difference of two histories.
func same(t *testing.T, one, other *played) {
	t.Helper()
	had := other.history()
	for i, line := range one.history() {
		if i >= len(had) || line != had[i] {
			t.Fatalf("line %d is %q in one history and %q in the other", i, line, append(had, "")[min(i, len(had))])
		}
	}
}

func TestASeedMakesTheSameDayEachTime(t *testing.T) {
	first, second := play(t, 1), play(t, 1)
	same(t, first, second)
	if third := play(t, 2); strings.Join(third.history(), "") == strings.Join(first.history(), "") {
		t.Error("another seed makes the same day")
	}
}

func TestACopyGoesOnByItself(t *testing.T) {
	p := play(t, 1)
	before := p.history()
	one := p.copied()
	one.day.Advance(3 * time.Minute)
	other := p.copied()
	other.day.Advance(3 * time.Minute)
	same(t, one, other)
	if len(one.history()) <= len(before) {
		t.Error("nothing has happened in the copy")
	}
	if len(p.history()) != len(before) {
		t.Error("what happened in a copy has happened in the day that it is of, too")
	}
}

func TestEachPieceIsExplainedAsWhatItIs(t *testing.T) {
	p := play(t, 1)
	runs := kagziv1.NewWorkflowServiceClient(p.box.Direct())
	for piece, want := range map[scenario.Piece]string{
		scenario.Waiting:    "no online worker serves type onboarding in queue emails",
		scenario.Busy:       "all workers that could take it are busy",
		scenario.FanOut:     "runs ",
		scenario.Growing:    "runs step day-",
		scenario.Sleeping:   "sleeps in cool-off, wakes in 23h",
		scenario.Signalled:  "waits for signal approval",
		scenario.Parent:     "waits for child run ",
		scenario.Retrying:   "retries pull-contacts, attempt ",
		scenario.Paused:     "paused by local 23m ago",
		scenario.Cancelling: "runs step drop-staging-tables",
		scenario.Gated:      "waits for a slot of concurrency key crm:acme",
		scenario.Delayed:    "starts in 2h",
		scenario.Draining:   "runs step ship on worker orders-0",
		scenario.Family:     "completed 1h",
		scenario.Overridden: "failed 51m",
		scenario.Retried:    "completed 41m",
		scenario.Chatty:     "completed 2h",
		scenario.Big:        "completed 3",
		scenario.Text:       "completed 3",
		scenario.Binary:     "completed 4",
		scenario.Failed:     "failed 8m",
		scenario.TimedOut:   "timed out 1h",
		scenario.Cancelled:  "cancelled 54m",
		scenario.Terminated: "terminated 1h",
		scenario.Crashed:    "completed 2h",
		scenario.Hostile:    "failed 2",
		scenario.Pinned:     "completed 3h",
	} {
		answer, err := runs.ExplainWorkflow(t.Context(), &kagziv1.ExplainWorkflowRequest{RunId: p.day.ID(piece)})
		if err != nil {
			t.Errorf("%s: %v", piece, err)
		} else if !strings.Contains(answer.Summary, want) {
			t.Errorf("%s: %q, want %q in it", piece, answer.Summary, want)
		}
	}
}

func TestAPersonsCallIsHeardByTheWorkers(t *testing.T) {
	p := play(t, 1)
	runs := kagziv1.NewWorkflowServiceClient(p.box.Direct())
	started, err := runs.StartWorkflow(t.Context(),
		&kagziv1.StartWorkflowRequest{WorkflowType: "invoice.send", TaskQueue: "emails"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runs.TerminateWorkflow(t.Context(),
		&kagziv1.TerminateWorkflowRequest{RunId: p.day.ID(scenario.FanOut)}); err != nil {
		t.Fatal(err)
	}
	p.day.Advance(20 * time.Second)
	for id, want := range map[string]kagziv1.WorkflowStatus{
		started.RunId:             kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED,
		p.day.ID(scenario.FanOut): kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED,
	} {
		answer, err := runs.GetWorkflow(t.Context(), &kagziv1.GetWorkflowRequest{RunId: id})
		if err != nil || answer.Workflow.Status != want {
			t.Errorf("the run %s is %v, %v; want %v", id, answer.GetWorkflow().GetStatus(), err, want)
		}
	}
}
