package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// requestsOf returns the requests of a kind that a server got.
func requestsOf[R any](f *fake) []R {
	var list []R
	for _, r := range f.requests {
		if r, ok := r.(R); ok {
			list = append(list, r)
		}
	}
	return list
}

func TestStop_by_ids(t *testing.T) {
	t.Run("continues after a failure and exits with its code", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"CancelWorkflow b": status.Error(codes.FailedPrecondition, "run is COMPLETED")}}}
		out, _ := s.want(t, ExitConflict, "wf", "cancel", "a", "b", "c", "--reason", "r")
		if want := "a  RUNNING  cancel requested, grace ends in 30s\nb  error: run is COMPLETED\n" +
			"c  RUNNING  cancel requested, grace ends in 30s\n"; out != want {
			t.Errorf("stdout %q, want %q", out, want)
		}
		r := requestsOf[*kagziv1.CancelWorkflowRequest](s.server)[0]
		if r.Reason != "r" || r.Grace.AsDuration() != 30*time.Second {
			t.Errorf("request %v", r)
		}
	})
	t.Run("different failures exit 1 and print each hint once", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"CancelWorkflow a": notFound("a"), "CancelWorkflow b": notFound("b"),
			"CancelWorkflow c": status.Error(codes.FailedPrecondition, "run is COMPLETED"),
		}}}
		_, msg := s.want(t, ExitError, "wf", "cancel", "a", "b", "c")
		if strings.Count(msg, "looked in namespace default") != 1 {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("stops at once if the server is gone", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{"CancelWorkflow a": unavailable}}}
		if s.want(t, ExitUnavailable, "wf", "cancel", "a", "b"); len(s.server.requests) != 1 {
			t.Errorf("%d calls, want 1", len(s.server.requests))
		}
	})
	t.Run("--grace 0 cancels at once", func(t *testing.T) {
		s := &session{server: &fake{}}
		out, _ := s.want(t, ExitOK, "wf", "cancel", "a", "--grace", "0")
		if r := requestsOf[*kagziv1.CancelWorkflowRequest](s.server)[0]; out != "a  CANCELLED\n" || r.Grace != nil {
			t.Errorf("stdout %q, request %v", out, r)
		}
	})
	t.Run("--grace prints until when the code may run", func(t *testing.T) {
		s := &session{server: &fake{}}
		out, _ := s.want(t, ExitOK, "wf", "cancel", "a", "--grace", "90s")
		if out != "a  RUNNING  cancel requested, grace ends in 1m\n" {
			t.Errorf("stdout %q", out)
		}
		if r := requestsOf[*kagziv1.CancelWorkflowRequest](s.server)[0]; r.Grace.AsDuration() != 90*time.Second {
			t.Errorf("request %v", r)
		}
		out, _ = s.want(t, ExitOK, "wf", "cancel", "a", "--grace", "90s", "-o", "jsonl")
		if want :=
			`{"run_id":"a","status":"RUNNING","requested":true,"grace_until":"2026-11-20T12:01:30Z","error":null}` +
				"\n"; out != want {
			t.Errorf("stdout %q, want %q", out, want)
		}
	})
	t.Run("finds runs by external id", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, _ := s.want(t, ExitOK, "wf", "terminate", "--external", "order-17")
		if r := requestsOf[*kagziv1.TerminateWorkflowRequest](s.server)[0]; r.RunId != s.server.runs[0].RunId ||
			out != "order-17  TERMINATED\n" {
			t.Errorf("request %v, stdout %q", r, out)
		}
	})
}

func TestBulk(t *testing.T) {
	open := []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING}
	server := func() *fake {
		f := &fake{progress: []*kagziv1.BulkWorkflowsProgress{{Matched: 3, Done: 1}, {Matched: 3, Done: 3}}}
		for _, id := range []string{"a", "b", "c"} {
			f.runs = append(f.runs, &kagziv1.Workflow{
				RunId: id, WorkflowType: "order", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING},
				&kagziv1.Workflow{RunId: id + "-failed", WorkflowType: "order",
					Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED})
		}
		return f
	}
	t.Run("without a terminal and -y refuses before any call", func(t *testing.T) {
		for _, verb := range []string{"cancel", "terminate", "retry", "pause", "resume", "pin", "unpin"} {
			s := &session{server: server()}
			_, msg := s.want(t, ExitUsage, "wf", verb, "-q", "type = order")
			if !strings.Contains(msg, "-y") || len(s.server.requests) != 0 {
				t.Errorf("stderr %q, %d calls", msg, len(s.server.requests))
			}
		}
	})
	t.Run("asks with the number of runs and accepts no", func(t *testing.T) {
		for _, answer := range []string{"n\n", "\n", "", "nay\n"} {
			s := &session{server: server(), tty: true, stdin: answer}
			out, msg := s.want(t, ExitError, "wf", "cancel", "-q", "type = order")
			if out != "" || !strings.Contains(msg, "cancel 3 runs matching") ||
				len(requestsOf[*kagziv1.BulkWorkflowsRequest](s.server)) != 0 {
				t.Errorf("stdout %q, stderr %q", out, msg)
			}
		}
		s := &session{server: server(), tty: true, stdin: "n\n"}
		if _, msg := s.want(t, ExitError, "wf", "cancel", "-q", "type = order", "--limit", "2"); !strings.Contains(
			msg, "cancel 2 runs") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("sends the filter with the default statuses to the server", func(t *testing.T) {
		for verb, want := range map[string]*kagziv1.BulkWorkflowsRequest{
			"cancel": {Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Grace: durationpb.New(30 * time.Second),
				Filter: &kagziv1.ListWorkflowsRequest{Statuses: open}},
			"terminate": {Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE,
				Filter: &kagziv1.ListWorkflowsRequest{Statuses: open}},
			"retry": {Action: kagziv1.BulkAction_BULK_ACTION_RETRY, Filter: &kagziv1.ListWorkflowsRequest{
				Statuses: []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
					kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT},
			}},
		} {
			want.Reason, want.Limit = "why", 2
			want.Filter.Namespace, want.Filter.WorkflowTypes = "default", []string{"order"}
			for _, s := range []*session{{tty: true, stdin: "y\n"}, {}} {
				s.server = server()
				args := []string{"wf", verb, "-q", "type = order", "--limit", "2", "--reason", "why"}
				if !s.tty {
					args = append(args, "-y")
				}
				s.want(t, ExitOK, args...)
				if diff := cmp.Diff([]*kagziv1.BulkWorkflowsRequest{want},
					requestsOf[*kagziv1.BulkWorkflowsRequest](s.server), protocmp.Transform()); diff != "" {
					t.Errorf("%s: %s", verb, diff)
				}
			}
		}
	})
	t.Run("sends a filter that no other field holds as a query, with the default statuses", func(t *testing.T) {
		s := &session{server: server()}
		s.want(t, ExitOK, "wf", "terminate", "-q", "type = order or type = refund", "-y")
		const want = "(type = order or type = refund) and status in (PENDING, RUNNING, SLEEPING)"
		bulk := requestsOf[*kagziv1.BulkWorkflowsRequest](s.server)
		list := requestsOf[*kagziv1.ListWorkflowsRequest](s.server)
		if len(bulk) != 1 || len(list) != 1 || bulk[0].Filter.Query != want || list[0].Query != want {
			t.Errorf("sent %v after %v, want the query %s in both", bulk, list, want)
		}
	})
	t.Run("keeps statuses named in the filter", func(t *testing.T) {
		s := &session{server: server()}
		s.want(t, ExitOK, "wf", "terminate", "-q", "status = SLEEPING", "-y")
		if r := requestsOf[*kagziv1.ListWorkflowsRequest](s.server)[0]; len(r.Statuses) != 1 ||
			r.Statuses[0] != kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING {
			t.Errorf("request %v", r)
		}
	})
	t.Run("reports no matching runs without a bulk call", func(t *testing.T) {
		s := &session{server: server()}
		out, msg := s.want(t, ExitOK, "wf", "cancel", "-q", "type = none", "-y")
		if out != "" || !strings.Contains(msg, "no runs match") ||
			len(requestsOf[*kagziv1.BulkWorkflowsRequest](s.server)) != 0 {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		if out, _ := s.want(t, ExitOK, "wf", "cancel", "-q", "type = none", "-y", "-o", "json"); !strings.Contains(
			out, `"matched": 0`) {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("reports each failure and exits 1", func(t *testing.T) {
		s := &session{server: server()}
		s.server.progress = []*kagziv1.BulkWorkflowsProgress{
			{Matched: 2, Done: 1}, {Matched: 3, Done: 1, Failed: 1, LastRunId: "b",
				LastError: &kagziv1.ErrorDetail{Message: "has ended\x1b"}}, {Matched: 3, Done: 2, Failed: 1},
		}
		out, msg := s.want(t, ExitError, "wf", "cancel", "-q", "type = order", "-y")
		if out != "cancel: 2 of 3 done, 1 failed\n" || msg != "run b: has ended\\x1b\n" {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		out, _ = s.want(t, ExitError, "wf", "cancel", "-q", "type = order", "-y", "-o", "json")
		golden(t, "workflow-cancel-bulk.json", out)
		assertParses(t, "json", out)
	})
	t.Run("counts unchanged runs", func(t *testing.T) {
		s := &session{server: server()}
		s.server.progress = []*kagziv1.BulkWorkflowsProgress{{Matched: 3, Done: 3, Unchanged: 2}}
		if out, _ := s.want(t, ExitOK, "wf", "retry", "-q", "type = order",
			"-y"); out != "retry: 3 of 3 done (2 unchanged), 0 failed\n" {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("reports progress when the server is lost", func(t *testing.T) {
		s := &session{server: server()}
		s.server.progress, s.server.fail = s.server.progress[:1], map[string]error{"BulkWorkflows end": unavailable}
		out, msg := s.want(t, ExitUnavailable, "wf", "cancel", "-q", "type = order", "-y")
		if out != "" || !strings.Contains(msg, "cancel: 1 of 3 done, 0 failed, then it stopped") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
}

func TestBulk_without_a_server_action_acts_on_each_run(t *testing.T) {
	server := func() *fake {
		f := &fake{fail: map[string]error{}}
		for _, id := range []string{"a", "b", "c"} {
			f.runs = append(f.runs, &kagziv1.Workflow{
				RunId: id, ExternalId: "o-" + id, WorkflowType: "order",
				Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED})
		}
		return f
	}
	t.Run("says which failed", func(t *testing.T) {
		s := &session{server: server()}
		s.server.fail = map[string]error{"PauseWorkflow c": status.Error(codes.FailedPrecondition, "has ended")}
		out, msg := s.want(t, ExitError, "wf", "pause", "-q", "status = FAILED", "-y")
		if r := requestsOf[*kagziv1.PauseWorkflowRequest](s.server); len(r) != 3 ||
			out != "pause: 2 of 3 done, 1 failed\n" || msg != "run c: has ended\n" {
			t.Errorf("%d requests, stdout %q, stderr %q", len(r), out, msg)
		}
	})
	t.Run("matches external ids exactly", func(t *testing.T) {
		s := &session{server: server()}
		s.server.runs[1].ExternalId = "o-a-too"
		s.want(t, ExitOK, "wf", "retry", "-q", `external_id = "o-a"`, "-y")
		if r := requestsOf[*kagziv1.RetryWorkflowRequest](s.server); len(r) != 1 || r[0].RunId != "a" {
			t.Errorf("requests %v", r)
		}
	})
	t.Run("--from-step stops at the limit", func(t *testing.T) {
		s := &session{server: server()}
		out, _ := s.want(t, ExitOK, "wf", "retry", "-q", "type = order", "--from-step", "charge", "--limit", "2", "-y")
		if r := requestsOf[*kagziv1.RetryWorkflowRequest](s.server); len(r) != 2 || r[1].FromStep != "charge" ||
			out != "retry: 2 of 2 done, 0 failed\n" {
			t.Errorf("requests %v, stdout %q", r, out)
		}
		if out, _ := s.want(t, ExitOK, "wf", "retry", "-q", "type = order", "--from-step", "charge", "--limit", "2",
			"-y"); out != "retry: 2 of 2 done (2 unchanged), 0 failed\n" {
			t.Errorf("the same again: stdout %q", out)
		}
	})
	t.Run("repeating it retries no run twice", func(t *testing.T) {
		ids := func(args ...string) string {
			s := &session{server: server()}
			s.want(t, ExitOK, append([]string{"wf", "retry", "-y"}, args...)...)
			var ids []string
			for _, r := range requestsOf[*kagziv1.RetryWorkflowRequest](s.server) {
				ids = append(ids, r.RequestId)
				if !r.UnlessRetried {
					t.Errorf("%q asks for a retry of %s although it may have been retried by hand", args, r.RunId)
				}
			}
			return strings.Join(ids, " ")
		}
		all := []string{"-q", "type = order"}
		ways := [][]string{
			append(all, "--from-step", "charge"), append(all, "--from-step", "ship"), append(all, "--restart"),
			append(all, "--restart", "--input", "1"),
		}
		seen := map[string]bool{}
		for _, args := range ways {
			first := ids(args...)
			if again := ids(args...); again != first {
				t.Errorf("%q asks under %q, and again under %q", args, first, again)
			}
			for id := range strings.FieldsSeq(first) {
				if seen[id] {
					t.Errorf("%q asks under %q, which something else was asked under", args, id)
				}
				seen[id] = true
			}
		}
		if len(seen) != 3*len(ways) {
			t.Errorf("%d ids of %d retries", len(seen), 3*len(ways))
		}
		if got, want := ids("-q", `external_id = "o-a"`), "bulk-retry:a"; got != want {
			t.Errorf("it asks under %q, want %q as the server does for runs that it chooses itself", got, want)
		}
		s := &session{server: server()}
		s.server.fail["RetryWorkflow"] = status.Error(codes.DeadlineExceeded, "late")
		if _, msg := s.want(t, ExitUnavailable, "wf", "retry", "-y", "-q", "type = order",
			"--restart"); strings.Contains(msg, "--request-id") {
			t.Errorf("it advises a flag that goes with ids only: %q", msg)
		}
	})
	t.Run("counts runs retried before as unchanged", func(t *testing.T) {
		s := &session{server: server()}
		s.server.retriedBefore = true
		if out, _ := s.want(t, ExitOK, "wf", "retry", "-y", "-q", "type = order",
			"--restart"); out != "retry: 3 of 3 done (3 unchanged), 0 failed\n" {
			t.Errorf("stdout %q", out)
		}
	})
}

func TestProgress(t *testing.T) {
	three := []*kagziv1.BulkWorkflowsProgress{{Done: 9, Matched: 20}, {Done: 10, Matched: 20}, {Done: 20, Matched: 20}}
	show := func(tty bool, step time.Duration) string {
		var b strings.Builder
		now := noon
		p := &progress{out: &output{streams: streams{err: &b, errTTY: tty}}, verb: "cancel", total: 20,
			now: func() time.Time { return now }}
		for _, event := range three {
			p.show(event)
			now = now.Add(step)
		}
		p.end()
		return b.String()
	}
	t.Run("rewrites one line in a terminal", func(t *testing.T) {
		want := "\rcancel: 9 of 20 done, 0 failed\rcancel: 10 of 20 done, 0 failed\rcancel: 20 of 20 done, 0 failed\r" +
			strings.Repeat(" ", 31) + "\r"
		if got := show(true, 0); got != want {
			t.Errorf("stderr %q, want %q", got, want)
		}
	})
	t.Run("prints a line at intervals elsewhere", func(t *testing.T) {
		if got := show(false, time.Second); got != "" {
			t.Errorf("stderr %q", got)
		}
		if got, want := show(false, sparse),
			"cancel: 10 of 20 done, 0 failed\ncancel: 20 of 20 done, 0 failed\n"; got != want {
			t.Errorf("stderr %q, want %q", got, want)
		}
	})
}
