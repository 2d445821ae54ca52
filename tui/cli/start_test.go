package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestStart(t *testing.T) {
	t.Run("prints only the run id on stdout", func(t *testing.T) {
		s := &session{}
		out, msg := s.want(t, ExitOK, "wf", "start", "order", "--external-id", "taken", "-n", "ns")
		if out != "run-1\n" || !strings.Contains(msg, "already exists") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		if r := s.server.requests[0].(*kagziv1.StartWorkflowRequest); r.RequestId != "new-id" || r.Namespace != "ns" {
			t.Errorf("request %v", r)
		}
	})
	t.Run("does not report an existing run as started", func(t *testing.T) {
		s := &session{server: &fake{runs: []*kagziv1.Workflow{
			{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED}}}}
		_, msg := s.want(t, ExitOK, "wf", "start", "order", "--external-id", "taken", "--wait")
		if !strings.Contains(msg, "already exists") || strings.Contains(msg, "started") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("batch counts existing runs separately", func(t *testing.T) {
		s := &session{stdin: `{"external_id":"taken"}` + "\n" + `{"external_id":"e"}`}
		out, msg := s.want(t, ExitOK, "wf", "start", "order", "--batch", "-")
		if out != "run-1\nrun-2\n" || !strings.Contains(msg, "started 1 of 2 runs") ||
			!strings.Contains(msg, "for 1 of them a run with the external id already exists") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("batch uses flags as defaults and keeps the line order", func(t *testing.T) {
		s := &session{stdin: `{"workflow_type":"a","input":{"x":1},"tags":{"k":"v"}}` + "\n\n" +
			`{"workflow_type":"bad"}` + "\n" + `{"external_id":"e"}`}
		out, msg := s.want(t, ExitError, "wf", "start", "order", "--batch", "-", "--queue", "q", "--tag", "all=1")
		if out != "run-1\n-\nrun-3\n" || !strings.Contains(msg, "started 2 of 3 runs") ||
			!strings.Contains(msg, "--batch, line 3: bad type") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		requests := s.server.requests[0].(*kagziv1.StartWorkflowsRequest).Requests
		if r := requests[0]; string(r.Input.Data) != `{"x":1}` || r.TaskQueue != "q" || r.Tags["k"] != "v" ||
			r.Tags["all"] != "1" || r.RequestId == "" {
			t.Errorf("first request %v", r)
		}
		if r := requests[2]; r.WorkflowType != "order" || r.ExternalId != "e" || len(r.Tags) != 1 {
			t.Errorf("third request %v", r)
		}
	})
	t.Run("batch keeps the times of a line", func(t *testing.T) {
		s := &session{since: 123456789,
			stdin: `{"start_at":"2026-11-21T00:00:00Z","deadline_at":"2026-11-22T00:00:00Z"}` + "\n{}\n" +
				`{"start_in":"90s"}`}
		s.want(t, ExitOK, "wf", "start", "order", "--batch", "-", "--delay", "1h", "--deadline", "+2h")
		runs := s.server.requests[0].(*kagziv1.StartWorkflowsRequest).Requests
		midnight := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		if own := runs[0]; own.StartIn != nil || !own.StartAt.AsTime().Equal(midnight) ||
			!own.DeadlineAt.AsTime().Equal(midnight.Add(24*time.Hour)) {
			t.Errorf("starts at %v, ends by %v", own.StartAt.AsTime(), own.DeadlineAt.AsTime())
		}
		if other := runs[1]; !other.StartAt.AsTime().Equal(noon.Add(s.since+time.Hour)) ||
			!other.DeadlineAt.AsTime().Equal(noon.Add(s.since+2*time.Hour)) {
			t.Errorf("without its own it starts at %v, ends by %v", other.StartAt.AsTime(), other.DeadlineAt.AsTime())
		}
		if other := runs[1]; other.StartIn.AsDuration() != time.Hour {
			t.Errorf("without its own it starts in %v, want an hour", other.StartIn.AsDuration())
		}
		if own := runs[2]; own.StartIn.AsDuration() != 90*time.Second || own.StartAt != nil {
			t.Errorf("starts in %v, at %v", own.StartIn.AsDuration(), own.StartAt)
		}
	})
	t.Run("batch starts nothing if a line is invalid", func(t *testing.T) {
		for stdin, want := range map[string]string{
			`{"workflow_type":"a"}` + "\n{":         "line 2 is not valid JSON",
			`{"workflow_typ":"a"}`:                  "line 1",
			`{"input":1}`:                           "workflow_type is missing",
			`[1]`:                                   "must be an object",
			"\n":                                    "no lines",
			`{"workflow_type":"a","namespace":"n"}`: "use --namespace",
		} {
			s := &session{stdin: stdin}
			_, msg := s.want(t, ExitUsage, "wf", "start", "--batch", "-")
			if !strings.Contains(msg, want) || len(s.server.requests) > 0 {
				t.Errorf("%q: stderr %q, %d calls", stdin, msg, len(s.server.requests))
			}
		}
	})
	t.Run("batch sends at most 1000 runs per call", func(t *testing.T) {
		s := &session{stdin: strings.Repeat("{}\n", 2500)}
		s.want(t, ExitOK, "wf", "start", "order", "--batch", "-")
		var sizes []int
		for _, r := range s.server.requests {
			sizes = append(sizes, len(r.(*kagziv1.StartWorkflowsRequest).Requests))
		}
		if len(sizes) != 3 || sizes[0] != 1000 || sizes[2] != 500 {
			t.Errorf("calls of %v runs", sizes)
		}
	})
	t.Run("an interrupted batch tells how to continue", func(t *testing.T) {
		lines := strings.Repeat("{}\n", 1000) + "\n" + `{"request_id":"own"}` + "\n{}\n"
		s := &session{stdin: lines}
		s.server = &fake{fail: map[string]error{"StartWorkflows": status.Error(codes.DeadlineExceeded, "late")}}
		_, msg := s.want(t, ExitUnavailable, "wf", "start", "order", "--batch", "-")
		if !strings.Contains(msg, "add: --request-id new-id\n") {
			t.Errorf("stderr %q", msg)
		}
		ids := func(args ...string) (ids []string) {
			s := &session{stdin: lines}
			s.want(t, ExitOK, append([]string{"wf", "start", "order", "--batch", "-"}, args...)...)
			for _, call := range requestsOf[*kagziv1.StartWorkflowsRequest](s.server) {
				for _, r := range call.Requests {
					ids = append(ids, r.RequestId)
				}
			}
			return ids
		}
		first := ids()
		if again := ids("--request-id", "new-id"); !slices.Equal(first, again) {
			t.Errorf("repeated it asks under other ids: %q, %q", first[:3], again[:3])
		}
		if n := len(first); n != 1002 || first[0] != "new-id:1" || first[n-2] != "own" || first[n-1] != "new-id:1003" {
			t.Errorf("%d ids: %q … %q", n, first[:2], first[n-2:])
		}
		s.server.fail["StartWorkflows"] = status.Error(codes.Unavailable, "connection error: nobody is there")
		if _, msg := s.want(t, ExitUnavailable, "wf", "start", "order", "--batch", "-"); strings.Contains(
			msg, "--request-id") {
			t.Errorf("of a batch of which no server has heard it says %q", msg)
		}
	})
}
