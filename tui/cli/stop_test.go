package cli

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestStop(t *testing.T) {
	t.Run("goes on after a run that cannot be stopped and says so with its code", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{"CancelWorkflow b": status.Error(codes.FailedPrecondition, "run is COMPLETED")}}}
		out, _ := s.want(t, ExitConflict, "wf", "cancel", "a", "b", "c", "--reason", "r")
		if want := "a  CANCELLED\nb  error: run is COMPLETED\nc  CANCELLED\n"; out != want {
			t.Errorf("stdout %q, want %q", out, want)
		}
		r := s.server.requests[0].(*kagziv1.CancelWorkflowRequest)
		if r.Reason != "r" {
			t.Errorf("request %v", r)
		}
	})
	t.Run("ends at once when the server is gone", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{"CancelWorkflow a": unavailable}}}
		if s.want(t, ExitUnavailable, "wf", "cancel", "a", "b"); len(s.server.requests) != 1 {
			t.Errorf("%d calls, want 1", len(s.server.requests))
		}
	})
	t.Run("by filter refuses without a terminal and without -y", func(t *testing.T) {
		s := &session{server: sampleServer()}
		_, msg := s.want(t, ExitUsage, "wf", "terminate", "-q", "type = order")
		if !strings.Contains(msg, "-y") || len(s.server.requests) != 0 {
			t.Errorf("stderr %q, %d calls", msg, len(s.server.requests))
		}
	})
	t.Run("by filter asks with the count and takes no for an answer", func(t *testing.T) {
		for _, answer := range []string{"n\n", "\n", "", "nay\n"} {
			s := &session{server: sampleServer(), tty: true, stdin: answer}
			out, msg := s.want(t, ExitError, "wf", "cancel", "-q", "type = order")
			if out != "" || !strings.Contains(msg, "cancel 3 runs matching") {
				t.Errorf("stdout %q, stderr %q", out, msg)
			}
		}
	})
	t.Run("by filter stops what the filter chooses among the runs that have not ended", func(t *testing.T) {
		for _, s := range []*session{{tty: true, stdin: "y\n"}, {}} {
			s.server = sampleServer()
			args := []string{"wf", "terminate", "-q", "type = order"}
			if !s.tty {
				args = append(args, "-y")
			}
			out, _ := s.want(t, ExitOK, args...)
			if strings.Count(out, "TERMINATED") != 3 {
				t.Errorf("stdout %q", out)
			}
			if r := s.server.requests[0].(*kagziv1.ListWorkflowsRequest); len(r.Statuses) != 3 || r.WorkflowTypes[0] != "order" {
				t.Errorf("request %v", r)
			}
		}
	})
}
