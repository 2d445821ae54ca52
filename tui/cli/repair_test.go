package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const failedRun, sleepingRun = "01936b2e-0000-7000-8000-000000000003", "01936b2e-0000-7000-8000-000000000002"

// first returns the first request of a kind that a server got.
func first[R any](t *testing.T, f *fake) R {
	t.Helper()
	list := requestsOf[R](f)
	if len(list) == 0 {
		t.Fatalf("no %T among the requests %v", *new(R), f.requests)
	}
	return list[0]
}

func TestPause_and_resume_answer_for_each_run(t *testing.T) {
	s := &session{server: sampleServer()}
	out, msg := s.want(t, ExitNotFound, "wf", "pause", sleepingRun, "none", "--reason", "why")
	if want := sleepingRun + "  SLEEPING paused\nnone  error: not found (run none)\n"; out != want ||
		!strings.Contains(msg, "kagzi workflow list --namespace default") {
		t.Errorf("stdout %q, want %q; stderr %q", out, want, msg)
	}
	if r := first[*kagziv1.PauseWorkflowRequest](t, s.server); r.Reason != "why" || r.Namespace != "default" {
		t.Errorf("request %v", r)
	}
	if out, _ := s.want(t, ExitOK, "wf", "list"); !strings.Contains(out, "SLEEPING paused") {
		t.Errorf("the list does not say that it is paused:\n%s", out)
	}
	if out, _ := s.want(t, ExitOK, "wf", "resume", sleepingRun); out != sleepingRun+"  SLEEPING\n" {
		t.Errorf("stdout %q", out)
	}
}

func TestPause_waits_for_the_running_step_unless_now(t *testing.T) {
	open := func() *session {
		s := &session{server: sampleServer()}
		s.server.runs = []*kagziv1.Workflow{{RunId: "a", WorkflowType: "order", Status: runningStatus},
			{RunId: "b", WorkflowType: "order", Status: runningStatus, Pausing: true},
			{RunId: "c", WorkflowType: "order", Status: runningStatus, Paused: true}}
		return s
	}
	s := open()
	if out, _ := s.want(t, ExitOK, "wf", "pause", "a"); out != "a  RUNNING pausing\n" {
		t.Errorf("stdout %q", out)
	}
	if r := first[*kagziv1.PauseWorkflowRequest](t, s.server); r.Now {
		t.Errorf("request %v", r)
	}
	if out, _ := s.want(t, ExitOK, "wf", "pause", "a", "--now"); out != "a  RUNNING paused\n" {
		t.Errorf("stdout %q", out)
	}
	if r := requestsOf[*kagziv1.PauseWorkflowRequest](s.server); !r[len(r)-1].Now {
		t.Errorf("request %v", r)
	}
	for _, c := range []struct{ args, want string }{
		{"pause", "pause: 1 of 1 done, 0 failed\n"}, {"pause --now", "pause: 2 of 2 done, 0 failed\n"},
		{"resume", "resume: 2 of 2 done, 0 failed\n"},
	} {
		if out, _ := open().want(t, ExitOK, append(append([]string{"wf"}, strings.Fields(c.args)...), "-q",
			"type = order", "-y")...); out != c.want {
			t.Errorf("%s -q: stdout %q, want %q", c.args, out, c.want)
		}
	}
}

const runningStatus = kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING

func TestPin_keeps_a_run_and_unpin_lets_it_go(t *testing.T) {
	s := &session{server: sampleServer()}
	s.want(t, ExitOK, "wf", "pin", "--external", "order-17", "--reason", "why")
	if r := first[*kagziv1.PinWorkflowRequest](t, s.server); !r.Pinned || r.RunId != failedRun || r.Reason != "why" {
		t.Errorf("request %v", r)
	}
	if out, _ := s.want(t, ExitOK, "wf", "show", failedRun); !strings.Contains(out, "Pinned       kept") {
		t.Errorf("show does not say that it is pinned:\n%s", out)
	}
	if out, _ := s.want(t, ExitOK, "wf", "unpin", failedRun); out != failedRun+"  FAILED  not pinned\n" {
		t.Errorf("stdout %q", out)
	}
}

func TestHold_takes_a_filter(t *testing.T) {
	failed, running := kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	server := func() *fake {
		return &fake{runs: []*kagziv1.Workflow{
			{RunId: "a", WorkflowType: "order", Status: running},
			{RunId: "b", WorkflowType: "order", Status: running, Paused: true},
			{RunId: "c", WorkflowType: "order", Status: running}, {RunId: "d", WorkflowType: "mail", Status: running},
			{RunId: "e", WorkflowType: "order", Status: failed},
			{RunId: "f", WorkflowType: "order", Status: failed, Pinned: true},
		}}
	}
	for verb, want := range map[string]struct {
		args []string
		line string
		runs []string // that the server is asked to change
	}{
		"pause": {[]string{"pause", "-q", "type = order"}, "pause: 2 of 2 done, 0 failed\n",
			[]string{"a", "c"}},
		"pause, up to a limit": {[]string{"pause", "-q", "type = order", "--limit", "1"},
			"pause: 1 of 1 done, 0 failed\n", []string{"a"}},
		"resume": {[]string{"resume", "-q", "type = order"}, "resume: 1 of 1 done, 0 failed\n",
			[]string{"b"}},
		"pin": {[]string{"pin", "-q", "type = order and status = FAILED"},
			"pin: 1 of 1 done, 0 failed\n", []string{"e"}},
		"pin, whatever the status": {[]string{"pin", "-q", "type = order"}, "pin: 4 of 4 done, 0 failed\n",
			[]string{"a", "b", "c", "e"}},
		"unpin": {[]string{"unpin", "-q", "type = order"}, "unpin: 1 of 1 done, 0 failed\n",
			[]string{"f"}},
	} {
		t.Run(verb, func(t *testing.T) {
			s := &session{server: server()}
			out, _ := s.want(t, ExitOK, append(append([]string{"wf"}, want.args...), "-y", "--reason", "why")...)
			if out != want.line {
				t.Errorf("stdout %q, want %q", out, want.line)
			}
			var runs []string
			for _, r := range s.server.requests {
				if r, ok := r.(interface {
					GetRunId() string
					GetReason() string
				}); ok && r.GetReason() == "why" {
					runs = append(runs, r.GetRunId())
				}
			}
			if diff := cmp.Diff(want.runs, runs); diff != "" {
				t.Errorf("asked to change: %s", diff)
			}
		})
	}
	t.Run("asks with the number of runs that it would change", func(t *testing.T) {
		s := &session{server: server(), tty: true, stdin: "n\n"}
		if _, msg := s.want(t, ExitError, "wf", "pause", "-q", "type = order"); !strings.Contains(
			msg, "pause 2 runs matching") {
			t.Errorf("stderr %q", msg)
		}
	})
}

func TestRetry(t *testing.T) {
	t.Run("keeps completed steps by default, under a new request id", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, _ := s.want(t, ExitOK, "wf", "retry", failedRun, "--reason", "why")
		want := &kagziv1.RetryWorkflowRequest{Namespace: "default", RunId: failedRun, RequestId: "new-id",
			Reason: "why"}
		if diff := cmp.Diff(want, first[*kagziv1.RetryWorkflowRequest](t, s.server),
			protocmp.Transform()); diff != "" || out != failedRun+"  retried as "+failedRun+"-again\n" {
			t.Errorf("stdout %q; %s", out, diff)
		}
		if out, _ := s.want(t, ExitOK, "wf", "retry", failedRun); !strings.Contains(out, "already retried as") {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("--keep-all is asked for, singly and in bulk", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "wf", "retry", failedRun, "--keep-all")
		if r := first[*kagziv1.RetryWorkflowRequest](t, s.server); !r.KeepAll {
			t.Errorf("asked for %v", r)
		}
		s.want(t, ExitOK, "wf", "retry", "-y", "-q", "type = order", "--keep-all")
		if r := first[*kagziv1.BulkWorkflowsRequest](t, s.server); !r.KeepAll {
			t.Errorf("asked for %v", r)
		}
	})
	t.Run("a refusal for compensations names the flags", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.server.fail = map[string]error{"RetryWorkflow": status.Error(codes.FailedPrecondition,
			"would keep steps: refund (keep_all)")}
		if _, msg := s.want(t, ExitConflict, "wf", "retry", failedRun); !strings.Contains(msg,
			"--from-step STEP, --restart, --keep-all") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("--restart takes a new input from stdin", func(t *testing.T) {
		s := &session{server: sampleServer(), stdin: `{"total":13}`}
		s.want(t, ExitOK, "wf", "retry", failedRun, "--restart", "--input", "-", "--request-id", "r")
		if r := first[*kagziv1.RetryWorkflowRequest](t, s.server); !r.Restart ||
			string(r.Input.Data) != `{"total":13}` || r.RequestId != "r" {
			t.Errorf("request %v", r)
		}
	})
	t.Run("--from-step names the step", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "wf", "retry", failedRun, "--from-step", "charge")
		if r := first[*kagziv1.RetryWorkflowRequest](t, s.server); r.FromStep != "charge" || r.Restart {
			t.Errorf("request %v", r)
		}
	})
	t.Run("an uncertain retry tells how to repeat it", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.server.fail = map[string]error{"RetryWorkflow": status.Error(codes.DeadlineExceeded, "late")}
		if _, msg := s.want(t, ExitUnavailable, "wf", "retry", failedRun); !strings.Contains(
			msg, "--request-id new-id") {
			t.Errorf("stderr %q", msg)
		}
	})
}

func TestSignal(t *testing.T) {
	t.Run("a signal id is delivered once", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, _ := s.want(t, ExitOK, "wf", "signal", sleepingRun, "approval", "--payload", `{"by":"ada"}`, "--signal-id",
			"ticket-5")
		r := first[*kagziv1.SignalWorkflowRequest](t, s.server)
		if r.Name != "approval" || r.SignalId != "ticket-5" || string(r.Payload.Data) != `{"by":"ada"}` ||
			out != sleepingRun+"  signal approval delivered\n" {
			t.Errorf("request %v, stdout %q", r, out)
		}
		if out, _ := s.want(t, ExitOK, "wf", "signal", sleepingRun, "approval", "--signal-id",
			"ticket-5"); !strings.Contains(out, "was already delivered") {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("sends no payload and a generated id by default", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "wf", "signal", "--external", "order-17", "go")
		if r := first[*kagziv1.SignalWorkflowRequest](t, s.server); r.Payload != nil || r.SignalId != "new-id" ||
			r.RunId != failedRun {
			t.Errorf("request %v", r)
		}
	})
	t.Run("an uncertain signal tells how to repeat it", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"SignalWorkflow": status.Error(codes.DeadlineExceeded, "late")}}}
		if _, msg := s.want(t, ExitUnavailable, "wf", "signal", "a", "go"); !strings.Contains(
			msg, "--signal-id new-id") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("a signal goes to the run it continued as", func(t *testing.T) {
		gone := func(next string) error {
			s, _ := status.New(codes.FailedPrecondition, "has ended").WithDetails(&kagziv1.ErrorDetail{
				Message: "has ended", Metadata: map[string]string{"status": "COMPLETED", "continued_as_run_id": next},
			})
			return s.Err()
		}
		s := &session{server: sampleServer()}
		s.server.fail = map[string]error{"SignalWorkflow a": gone("b"), "SignalWorkflow b": gone(sleepingRun),
			"SignalWorkflow c": gone("d"), "SignalWorkflow d": gone("c")}
		out, msg := s.want(t, ExitOK, "wf", "signal", "a", "go")
		if out != sleepingRun+"  signal go delivered\n" || !strings.Contains(msg, "the run continued as "+sleepingRun) {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		if out, _ := s.want(t, ExitOK, "wf", "signal", "b", "go", "-o", "json"); !strings.Contains(
			out, `"run_id": "`+sleepingRun) {
			t.Errorf("stdout %q", out)
		}
		s.want(t, ExitConflict, "wf", "signal", "c", "go") // a cycle of continuations
	})
	t.Run("a signal to an ended run is a conflict", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"SignalWorkflow": status.Error(codes.FailedPrecondition, "run a has ended")}}}
		s.want(t, ExitConflict, "wf", "signal", "a", "go")
	})
}

func TestExplain_of_an_unknown_run_is_not_found(t *testing.T) {
	s := &session{server: sampleServer()}
	s.want(t, ExitNotFound, "wf", "explain", "none")
	s.want(t, ExitOK, "wf", "explain", "--external", "order-17")
}

func TestOverride(t *testing.T) {
	t.Run("sets a result", func(t *testing.T) {
		s := &session{server: sampleServer(), stdin: `{"id":"ch_7"}`}
		s.want(t, ExitOK, "wf", "override", failedRun, "charge", "--result", "-", "--reason", "by hand")
		r := first[*kagziv1.OverrideStepRequest](t, s.server)
		if string(r.GetOutput().GetData()) != `{"id":"ch_7"}` || r.Reason != "by hand" || r.StepName != "charge" ||
			r.GetError() != nil {
			t.Errorf("request %v", r)
		}
	})
	t.Run("sets an error for good", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "wf", "override", failedRun, "charge", "--error", "stolen", "--error-type", "CardDeclined",
			"--reason", "so")
		want := &kagziv1.ErrorDetail{Message: "stolen", Type: "CardDeclined", NonRetryable: true}
		if diff := cmp.Diff(want, first[*kagziv1.OverrideStepRequest](t, s.server).GetError(),
			protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("show lists who overrode what, when and why", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "wf", "override", failedRun, "charge", "--result", `"ok"`, "--reason", "by hand")
		out, _ := s.want(t, ExitOK, "wf", "show", failedRun)
		want :=
			"Overridden steps\nSTEP    WHEN  WHO    WHY      NOW              BEFORE\ncharge  now   local  by hand  COMPLETED: \"ok\"  FAILED: CardDeclined: card declined\n"
		if !strings.Contains(out, want) {
			t.Errorf("stdout lacks\n%s\n%s", want, out)
		}
	})
}

func TestShow_tells_what_was_done_to_a_run(t *testing.T) {
	s := &session{server: sampleServer()}
	s.server.audit = []*kagziv1.AuditEvent{ // newest first, as in lists
		{At: at(0), Actor: "ada (key_2)", Method: "RetryWorkflow", SubjectId: failedRun, Outcome: "FAILED_PRECONDITION",
			Reason: "too early"},
		{At: at(-60e9), Actor: "local", Method: "PauseWorkflow", SubjectId: failedRun, Outcome: "ok", Reason: "why",
			Detail: "x"},
		{At: at(0), Actor: "local", Method: "PauseWorkflow", SubjectId: "another", Outcome: "ok"},
	}
	t.Run("lists actions oldest first", func(t *testing.T) {
		out, _ := s.want(t, ExitOK, "wf", "show", failedRun)
		want := "Done by people\nWHEN    WHO          WHAT           OUTCOME              DETAIL  REASON\n" +
			"1m ago  local        PauseWorkflow  ok                   x       why\nnow     ada (key_2)  RetryWorkflow  FAILED_PRECONDITION          too early\n"
		if !strings.Contains(out, want) {
			t.Errorf("stdout lacks\n%s\n%s", want, out)
		}
	})
	for _, code := range []codes.Code{codes.Unimplemented, codes.PermissionDenied} {
		t.Run("omits the audit log when the server answers "+code.String(), func(t *testing.T) {
			s.server.fail = map[string]error{"ListAuditEvents": status.Error(code, "no"),
				"ListSignals": status.Error(codes.Unimplemented, "no")}
			out, msg := s.want(t, ExitOK, "wf", "show", failedRun, "-o", "json")
			if !strings.Contains(out, `"audit_events": null`) || !strings.Contains(out, `"signals": null`) ||
				msg != "" {
				t.Errorf("stdout %s, stderr %q", out, msg)
			}
		})
	}
	t.Run("fails if the server is gone", func(t *testing.T) {
		s.server.fail = map[string]error{"ListAuditEvents": unavailable}
		s.want(t, ExitUnavailable, "wf", "show", failedRun)
	})
}

func TestShow_names_all_that_is_set(t *testing.T) {
	run := &kagziv1.Workflow{
		RunId: "r", WorkflowType: "order", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, Paused: true,
		Note: "3 of 7 done", ConcurrencyKey: "card-1", ConcurrencyLimit: 2,
		ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN,
		ContinuedAsRunId: new("next"), ContinuedFromRunId: new("last"), RetriedFromRunId: new("old"),
		FailedRunId: new("bad"), DeadlineAt: at(36e11), CancelRequestedAt: at(-1e9), CancelGraceUntil: at(60e9),
		ScheduledAt: at(0), OnFailureWorkflow: "alert", OnFailureTaskQueue: "alerts", Pinned: true,
	}
	out, _ := (&session{server: &fake{runs: []*kagziv1.Workflow{run}}}).want(t, ExitOK, "wf", "show", "r")
	for label, value := range map[string]string{
		"Status": "RUNNING paused", "Note": "3 of 7 done", "Concurrency": "card-1, at most 2 open at a time",
		"Continued as": "next", "Continued from": "last", "Retried from": "old", "Handles": "bad",
		"Deadline": "in 1h", "Cancel requested": "1s ago", "Grace until": "in 1m", "Scheduled for": "now",
		"On failure": "alert in queue alerts", "Pinned": "kept",
	} {
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.HasPrefix(line, label+" ") &&
				strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(line, label)), value)
		}
		if !found {
			t.Errorf("no line %q with %q in\n%s", label, value, out)
		}
	}
}
