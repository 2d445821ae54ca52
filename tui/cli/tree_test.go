package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	completed = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	failed    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	running   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
)

// family is a run with two generations of children, one of which continued as another run, and a
// handled failure.
func family() *fake {
	step := func(run, name string, sequence int64, attempt int32, s kagziv1.StepStatus, child *string) *kagziv1.Step {
		return &kagziv1.Step{
			StepId: run + name, RunId: run, Name: name, Sequence: sequence, AttemptNumber: attempt, Status: s,
			ChildRunId: child,
			StartedAt:  at(-time.Minute), FinishedAt: at(-30 * time.Second),
		}
	}
	run := func(id, workflowType string, s kagziv1.WorkflowStatus, created time.Duration) *kagziv1.Workflow {
		return &kagziv1.Workflow{RunId: id, WorkflowType: workflowType, Status: s, Attempts: 1, CreatedAt: at(created),
			StartedAt: at(created), FinishedAt: at(-10 * time.Second)}
	}
	root, ship, label, next := run("root", "order", failed, -time.Hour),
		run("ship", "shipping", completed, -50*time.Minute), run("label", "label", completed, -40*time.Minute),
		run("ship-2", "shipping", running, -30*time.Minute)
	mail, handler, other := run("mail", "mail", completed, -20*time.Minute),
		run("handler", "alert", completed, -10*time.Second), run("handler-2", "alert", completed, -10*time.Second)
	root.OnFailureWorkflow, root.Error = "alert", &kagziv1.ErrorDetail{Message: "card declined"}
	ship.ParentRunId, next.ParentRunId, label.ParentRunId, mail.ParentRunId = new("root"), new("root"), new("ship"),
		new("root")
	ship.ContinuedAsRunId, next.ContinuedFromRunId, next.FinishedAt = new("ship-2"), new("ship"), nil
	mail.ParentStepId = new("rootcharge")
	label.ParentClosePolicy = kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_CANCEL
	handler.FailedRunId, other.FailedRunId = new("root"), new("another")
	f := &fake{runs: []*kagziv1.Workflow{other, handler, mail, next, label, ship, root}} // newest first
	overridden := step("root", "charge", 2, 2, kagziv1.StepStatus_STEP_STATUS_FAILED, nil)
	overridden.OverriddenBy = "ada"
	f.stepList = []*kagziv1.Step{
		step("root", "ship-it", 1, 1, kagziv1.StepStatus_STEP_STATUS_COMPLETED, new("ship")),
		step("root", "charge", 2, 1, kagziv1.StepStatus_STEP_STATUS_FAILED, nil), overridden,
		step("ship", "print", 1, 1, kagziv1.StepStatus_STEP_STATUS_COMPLETED, nil),
	}
	overridden.StepId = "rootcharge:2" // mail was started by the first attempt
	return f
}

func TestTree(t *testing.T) {
	t.Run("shows steps, children, handlers and continuations", func(t *testing.T) {
		for _, format := range []string{"table", "json", "jsonl", "yaml"} {
			out, _ := (&session{server: family()}).want(t, ExitOK, "wf", "show", "root", "--tree", "-o", format)
			golden(t, "workflow-tree."+format, out)
			assertParses(t, format, out)
		}
	})
	t.Run("fits a terminal", func(t *testing.T) {
		out, _ := (&session{server: family(), tty: true, width: 80}).want(
			t, ExitOK, "wf", "show", "root", "--tree", "--no-color")
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
				t.Errorf("line %q is %d wide", line, n)
			}
		}
	})
	t.Run("ends if runs refer to each other in a cycle", func(t *testing.T) {
		s := &session{server: family()}
		for _, r := range s.server.runs {
			r.ContinuedAsRunId = new("root")
			if r.RunId == "root" {
				r.ParentRunId = new("label")
			}
		}
		out, _ := s.want(t, ExitOK, "wf", "show", "root", "--tree")
		if !strings.Contains(out, "… shown above") {
			t.Errorf("stdout\n%s", out)
		}
	})
	t.Run("stops at --depth and counts what is left out", func(t *testing.T) {
		for depth, want := range map[string]string{
			"0": "… 4 runs below, beyond --depth", "1": "… 1 run below, beyond --depth"} {
			out, _ := (&session{server: family()}).want(t, ExitOK, "wf", "show", "root", "--tree", "--depth", depth)
			if strings.Count(out, want) != 1 {
				t.Errorf("depth %s lacks %q:\n%s", depth, want, out)
			}
		}
	})
	t.Run("shows children deleted by retention as steps", func(t *testing.T) {
		s := &session{server: family()}
		s.server.runs = slices.DeleteFunc(s.server.runs, func(r *kagziv1.Workflow) bool {
			return r.RunId == "ship" || r.RunId == "ship-2"
		})
		if out, _ := s.want(t, ExitOK, "wf", "show", "root", "--tree"); !strings.Contains(out, "run ship\n") {
			t.Errorf("stdout\n%s", out)
		}
	})
	t.Run("shows a thousand children and reports a larger tree", func(t *testing.T) {
		for children, more := range map[int]bool{1000: false, maxTreeRuns + 5: true} {
			s := &session{server: &fake{runs: []*kagziv1.Workflow{{RunId: "root"}}}}
			for i := range children {
				s.server.runs = append(s.server.runs,
					&kagziv1.Workflow{RunId: fmt.Sprintf("child-%d", i), ParentRunId: new("root")})
			}
			out, _ := s.want(t, ExitOK, "wf", "show", "root", "--tree")
			if strings.Count(out, "child-") != min(children, maxTreeRuns-1) ||
				strings.Contains(out, "6 runs more, too many") != more {
				t.Errorf("%d children: %d shown\n%s", children, strings.Count(out, "child-"),
					out[max(0, len(out)-300):])
			}
		}
	})
	t.Run("does not indent a chain of continuations", func(t *testing.T) {
		s := &session{server: &fake{}}
		for i := range 300 {
			s.server.runs = append(s.server.runs, &kagziv1.Workflow{
				RunId: fmt.Sprintf("run-%03d", i), WorkflowType: "loop",
				ContinuedAsRunId: new(fmt.Sprintf("run-%03d", i+1))})
		}
		out, _ := s.want(t, ExitOK, "wf", "show", "run-000", "--tree")
		if strings.Count(out, "\ncontinued as: loop") != 299 {
			t.Errorf("stdout\n%s", out)
		}
	})
}
