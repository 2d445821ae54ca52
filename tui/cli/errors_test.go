package cli

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestServer_errors_become_a_clear_line_and_their_exit_code(t *testing.T) {
	detailed := func(code codes.Code, message string, d *kagziv1.ErrorDetail) error {
		st, err := status.New(code, message).WithDetails(d)
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	for name, c := range map[string]struct {
		err  error
		code int
		want string
	}{
		"no server": {unavailable, ExitUnavailable,
			"error: no server answers at 127.0.0.1:50051; start one with: kagzi server\n"},
		"a lost way": {status.Error(codes.Unavailable, `connection error: desc = "transport: no route to host"`),
			ExitUnavailable, "  transport: no route to host\n"},
		"a frozen server": {status.Error(codes.Unavailable,
			`connection error: desc = "error reading server preface: raw-read tcp 127.0.0.1:2->127.0.0.1:1: use of closed network connection"`), ExitUnavailable,
			"error: the process that listens at 127.0.0.1:50051 does not answer\n  the server hangs"},
		"a stop": {detailed(codes.Unavailable, "the server is stopping; try again",
			&kagziv1.ErrorDetail{}), ExitUnavailable, "error: the server is stopping; try again\n"},
		"silence": {status.Error(codes.DeadlineExceeded, "context deadline exceeded"), ExitUnavailable,
			"error: no answer from 127.0.0.1:50051 in time"},
		"a missing run": {notFound("r1"), ExitNotFound,
			"error: not found (run r1)\n  looked in namespace default;"},
		"a missing schedule": {detailed(codes.NotFound, "no schedule x",
			&kagziv1.ErrorDetail{Subject: "schedule", SubjectId: "x"}), ExitNotFound,
			"error: no schedule x\n  looked in namespace default; see: kagzi schedule list --namespace default\n"},
		"a missing step": {detailed(codes.NotFound, "no step x",
			&kagziv1.ErrorDetail{Subject: "step", SubjectId: "x"}), ExitNotFound,
			"error: no step x\n  list the steps of a run: kagzi workflow show ID\n"},
		"a missing worker": {detailed(codes.NotFound, "no worker x",
			&kagziv1.ErrorDetail{Subject: "worker", SubjectId: "x"}), ExitNotFound,
			"error: no worker x\n  list workers: kagzi worker list\n"},
		"a wrong field": {detailed(codes.InvalidArgument, "too long",
			&kagziv1.ErrorDetail{Metadata: map[string]string{"field": "workflow_type"}}), ExitUsage,
			"error: --type: too long\n"},
		"a missing namespace": {detailed(codes.NotFound, "no namespace x",
			&kagziv1.ErrorDetail{Subject: "namespace", SubjectId: "x"}), ExitNotFound,
			"error: no namespace x\n  list namespaces: kagzi namespace list\n"},
		"an ended run": {detailed(codes.FailedPrecondition, "run r1 has ended",
			&kagziv1.ErrorDetail{Subject: "run", SubjectId: "r1", Metadata: map[string]string{"status": "COMPLETED"}}),
			ExitConflict, "error: run r1 has ended, it is COMPLETED\n"},
		"a taken name": {status.Error(codes.AlreadyExists, "taken"), ExitConflict, "error: taken\n"},
		"no key":       {status.Error(codes.Unauthenticated, "no key"), ExitPermissionDenied, "KAGZI_API_KEY"},
		"a refused key": {status.Error(codes.Unauthenticated, "the key is revoked"), ExitPermissionDenied,
			"error: the key is revoked\n  give a key with --api-key-file"},
		"a wrong key": {status.Error(codes.PermissionDenied, "not yours"), ExitPermissionDenied,
			"error: not yours\n  kagzi doctor shows your role"},
		"an old server":  {status.Error(codes.Unimplemented, "unknown method"), ExitError, "does not support this"},
		"a full disk":    {status.Error(codes.ResourceExhausted, "disk full"), ExitError, "error: disk full\n"},
		"a server's bug": {status.Error(codes.Internal, "internal error"), ExitError, "error: internal error\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, msg := (&session{server: &fake{fail: map[string]error{"ListWorkflows": c.err}}}).want(
				t, c.code, "wf", "list")
			if !strings.Contains(msg, c.want) {
				t.Errorf("stderr %q, want %q", msg, c.want)
			}
		})
	}
	t.Run("connection refused is reported once, also on Windows", func(t *testing.T) {
		for _, err := range []error{unavailable,
			status.Error(codes.Unavailable, "connection error: desc = \"transport: Error while dialing: "+
				"dial tcp 127.0.0.1:50051: connectex: No connection could be made because the target machine actively refused it.\"")} {
			_, msg := (&session{server: &fake{fail: map[string]error{"ListWorkflows": err}}}).want(
				t, ExitUnavailable, "wf", "list")
			if want := "error: no server answers at 127.0.0.1:50051; start one with: kagzi server\n"; msg != want {
				t.Errorf("of %v: stderr %q, want %q", err, msg, want)
			}
		}
	})
	t.Run("a wrong field is named as typed", func(t *testing.T) {
		for line, c := range map[string]struct{ method, field, message, want string }{
			"wf start a --queue q": {
				"StartWorkflow", "task_queue", "task_queue: is odd", "--queue: is odd"},
			"wf start a": {
				"StartWorkflow", "workflow_type", "workflow_type: is odd", "TYPE: is odd"},
			"wf start b": {
				"StartWorkflow", "priority", "priority: is odd", "--priority: is odd"},
			"wf start a --tag k=v": {
				"StartWorkflow", "tags", `tags key: must not be "task_queue"`, `tags key: must not be "task_queue"`},
			"wf start a --tag k=w": {
				"StartWorkflow", "tags key", "tags key: is odd", "--tag: is odd"},
			"wf start a --delay 3s": {
				"StartWorkflow", "start_at", "start_at: is odd", "--delay: is odd"},
			"wf start a --start-at +3s": {
				"StartWorkflow", "start_at", "start_at: is odd", "--start-at: is odd"},
			"wf start a --retry-attempts 9": {
				"StartWorkflow", "retry_policy.maximum_attempts", "retry_policy.maximum_attempts: is odd",
				"--retry-attempts: is odd"},
			"wf start a --retry-attempts 9 --run-retry-attempts 8": {
				"StartWorkflow", "run_retry_policy.maximum_attempts", "run_retry_policy.maximum_attempts: is odd",
				"--run-retry-attempts: is odd"},
			"wf start a --concurrency-limit 2": {
				"StartWorkflow", "concurrency_limit", "concurrency_limit: needs a concurrency_key",
				"--concurrency-limit: needs a --concurrency-key"},
			"wf start c": {
				"StartWorkflow", "traceparent", "traceparent: is odd", "traceparent: is odd"},
			"wf show a": {
				"GetWorkflow", "run_id", "run_id: must be a UUID", "ID: must be a UUID"},
			"wf signal a b": {"SignalWorkflow", "name", "name: is odd", "NAME: is odd"},
			"wf list --parent a": {
				"ListWorkflows", "parent_run_id", "parent_run_id: must be a UUID", "--parent: must be a UUID"},
			"worker show a": {
				"GetWorker", "worker_id", "worker_id: Invalid worker_id: is odd", "ID: is odd"},
			"namespace show a": {
				"GetNamespace", "namespace", "namespace: is odd", "NAME: is odd"},
			"wf list -n a": {
				"ListWorkflows", "namespace", "namespace: is odd", "--namespace: is odd"},
			"schedule create a --cron @daily --name b": {
				"CreateWorkflowSchedule", "name", "name: is odd", "--name: is odd"},
			"schedule create a --cron x": {
				"CreateWorkflowSchedule", "cron_expr", "cron_expr: is odd", "--cron: is odd"},
			"schedule preview x": {
				"PreviewSchedule", "cron_expr", "cron_expr: is odd", "EXPR: is odd"},
			"schedule show a": {
				"GetWorkflowSchedule", "schedule_id", "schedule_id: is odd", "ID|NAME: is odd"},
			"wf import -": {
				"ImportWorkflow", "runs[0].version", "runs[0].version: is odd", "runs[0].version: is odd"},
			"key create a --role worker -n b --queue c*d": {
				"CreateKey", "key.queues", "key.queues: is odd", "--queue: is odd"},
		} {
			wrong := detailed(codes.InvalidArgument, c.message,
				&kagziv1.ErrorDetail{Metadata: map[string]string{"field": c.field}})
			s := &session{stdin: "x", server: sampleServer()}
			s.server.fail = map[string]error{c.method: wrong}
			out, msg := s.want(t, ExitUsage, strings.Fields(line)...)
			if !strings.Contains(out+msg, "error: "+c.want+"\n") {
				t.Errorf("kagzi %s: %q, want %q", line, out+msg, c.want)
			}
		}
	})
	t.Run("an error in a filter points at the place", func(t *testing.T) {
		for _, c := range []struct {
			field string
			args  []string
			want  string
		}{
			{"workflow_types", []string{"-q", `queue = "a" and type = "bad name"`},
				"error: -q: type: is odd\n  queue = \"a\" and type = \"bad name\"\n                  ^\n"},
			{"tags", []string{"-q", `tag.x = "\x1b"`}, "error: -q: tag: is odd\n  tag.x = \"\\x1b\"\n  ^\n"},
			{"search", []string{"-q", `external_id = "b"`},
				"error: -q: external_id: is odd\n  external_id = \"b\"\n  ^\n"},
			{"workflow_types", []string{"-q", `queue = "a"`, "--type", "bad name"}, "error: --type: is odd\n"},
		} {
			wrong := detailed(codes.InvalidArgument, c.field+": is odd",
				&kagziv1.ErrorDetail{Metadata: map[string]string{"field": c.field}})
			s := &session{server: &fake{fail: map[string]error{"ListWorkflows": wrong}}}
			if _, msg := s.want(t, ExitUsage, append([]string{"wf", "list"}, c.args...)...); msg != c.want {
				t.Errorf("%q: %q, want %q", c.args, msg, c.want)
			}
		}
	})
	t.Run("an invalid run id suggests --external", func(t *testing.T) {
		wrong := detailed(codes.InvalidArgument, "run_id: must be a UUID",
			&kagziv1.ErrorDetail{Metadata: map[string]string{"field": "run_id"}})
		s := &session{server: &fake{fail: map[string]error{
			"GetWorkflow": wrong, "WaitWorkflow": wrong, "WatchWorkflow": wrong}}}
		for _, verb := range []string{"show", "wait", "watch"} {
			if _, msg := s.want(t, ExitUsage, "wf", verb, "order-17"); !strings.Contains(msg, "add --external") {
				t.Errorf("%s: stderr %q", verb, msg)
			}
		}
	})
	t.Run("draining an unknown worker does not suggest registering", func(t *testing.T) {
		gone := detailed(codes.NotFound, "Worker not found or offline; register again",
			&kagziv1.ErrorDetail{Subject: "worker", SubjectId: "w"})
		s := &session{server: &fake{fail: map[string]error{"DrainWorker": gone, "ForceOfflineWorker": gone}}}
		for _, verb := range []string{"drain", "offline"} {
			if _, msg := s.want(t, ExitNotFound, "worker", verb,
				"w"); msg !=
				"error: no worker w that is online or draining\n  list workers: kagzi worker list\n" {
				t.Errorf("%s: stderr %q", verb, msg)
			}
		}
	})
	t.Run("an invalid capsule is named", func(t *testing.T) {
		wrong := detailed(codes.InvalidArgument, "data: is not a zip file",
			&kagziv1.ErrorDetail{Metadata: map[string]string{"field": "data"}})
		s := &session{stdin: "x", server: &fake{fail: map[string]error{"ImportWorkflow": wrong}}}
		if _, msg := s.want(t, ExitUsage, "wf", "import", "-"); !strings.Contains(
			msg, "  give a complete file written by kagzi workflow export: -\n") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("an uncertain start tells how to repeat it", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"StartWorkflow": status.Error(codes.DeadlineExceeded, "late")}}}
		if _, msg := s.want(t, ExitUnavailable, "wf", "start", "a"); !strings.Contains(msg, "--request-id new-id") {
			t.Errorf("stderr %q", msg)
		}
	})
}
