package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const day = 24 * time.Hour

func keeps(list map[string]time.Duration) map[string]*durationpb.Duration {
	keep := map[string]*durationpb.Duration{}
	for outcome, d := range list {
		keep[outcome] = durationpb.New(d)
	}
	return keep
}

func TestNamespace_create(t *testing.T) {
	s := &session{server: sampleServer()}
	s.want(t, ExitOK, "namespace", "create", "stage", "--display-name", "Stage", "--description", "tests",
		"--retention", "720h", "--keep", "completed=3d,failed=90d", "--keep", "Timed-Out=2w", "--failure-queue", "f")
	want := &kagziv1.CreateNamespaceRequest{
		Namespace: "stage", DisplayName: "Stage", Description: new("tests"), Retention: durationpb.New(30 * day),
		FailureTaskQueue: "f",
		Keep: keeps(map[string]time.Duration{
			"completed": 3 * day, "failed": 90 * day, "timed_out": 14 * day}),
	}
	if diff := cmp.Diff(want, first[*kagziv1.CreateNamespaceRequest](t, s.server), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	s.want(t, ExitConflict, "namespace", "create", "payments")
}

func TestNamespace_update_changes_only_what_is_named(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want *kagziv1.UpdateNamespaceRequest
	}{
		"texts": {
			[]string{"--display-name", "P", "--description", "", "--failure-queue", ""},
			&kagziv1.UpdateNamespaceRequest{DisplayName: new("P"), Description: new(""), FailureTaskQueue: new("")}},
		"the retention, back to the server's": {
			[]string{"--retention", "default"}, &kagziv1.UpdateNamespaceRequest{Retention: durationpb.New(0)}},
		"one of the outcomes": {[]string{"--keep", "failed=180d,cancelled=1d"}, &kagziv1.UpdateNamespaceRequest{
			Keep: &kagziv1.Keep{Keep: keeps(map[string]time.Duration{
				"completed": 3 * day, "failed": 180 * day, "cancelled": day})},
		}},
		"an outcome, back to the retention": {[]string{"--keep", "failed=default"},
			&kagziv1.UpdateNamespaceRequest{Keep: &kagziv1.Keep{
				Keep: keeps(map[string]time.Duration{"completed": 3 * day})}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: sampleServer()}
			s.want(t, ExitOK, append([]string{"namespace", "update", "payments", "--reason", "why"}, c.args...)...)
			c.want.Namespace, c.want.Reason = "payments", "why"
			if diff := cmp.Diff(c.want, first[*kagziv1.UpdateNamespaceRequest](t, s.server),
				protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNamespace_commands(t *testing.T) {
	s := &session{server: sampleServer()}
	t.Run("show defaults to --namespace", func(t *testing.T) {
		if out, _ := s.want(t, ExitOK, "ns", "show", "-n", "payments"); !strings.HasPrefix(
			out, "Namespace      payments\n") {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("disable and enable take several names and a reason", func(t *testing.T) {
		out, _ := s.want(t, ExitNotFound, "ns", "disable", "payments", "none", "--reason", "why")
		if out != "payments  DISABLED\nnone  error: namespace none not found\n" ||
			first[*kagziv1.DisableNamespaceRequest](t, s.server).Reason != "why" {
			t.Errorf("stdout %q", out)
		}
		if out, _ := s.want(t, ExitOK, "ns", "enable", "payments", "--reason", "again"); out != "payments  ENABLED\n" ||
			first[*kagziv1.EnableNamespaceRequest](t, s.server).Reason != "again" {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("list is paged", func(t *testing.T) {
		if out, msg := s.want(t, ExitOK, "ns", "list", "--limit", "1"); strings.Count(out, "\n") != 2 ||
			!strings.Contains(msg, "--page-token 1") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
}

func TestNamespace_delete(t *testing.T) {
	t.Run("asks, and says what force destroys", func(t *testing.T) {
		s := &session{server: sampleServer(), tty: true, stdin: "n\n"}
		_, msg := s.want(t, ExitError, "ns", "delete", "payments", "--force")
		want := "delete namespace payments with 203 runs, 1 schedule, 2 workers (5 runs open), and the keys for it alone? "
		if !strings.HasPrefix(msg, want) {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("refuses default before it asks", func(t *testing.T) {
		s := &session{server: sampleServer(), tty: true, stdin: "y\n"}
		_, msg := s.want(t, ExitUsage, "ns", "delete", "payments", "default")
		if !strings.HasPrefix(msg, "error: namespace default always exists") || len(s.server.requests) != 0 {
			t.Errorf("stderr %q after %v", msg, s.server.requests)
		}
	})
	t.Run("needs -y without a terminal", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitUsage, "ns", "delete", "payments")
	})
	t.Run("is refused with what the namespace holds", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, _ := s.want(t, ExitConflict, "ns", "delete", "-y", "payments")
		if out != "payments  error: namespace payments is not empty: it has 1 run\n" {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("goes on until everything is deleted", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, msg := s.want(t, ExitOK, "ns", "delete", "-y", "--force", "payments", "--reason", "why")
		if out != "payments  deleted, with 203 runs, 1 schedule, 1 key\n" ||
			msg != "namespace payments: 200 runs deleted so far\n" {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		if r := first[*kagziv1.DeleteNamespaceRequest](t, s.server); r.Reason != "why" || !r.Force {
			t.Errorf("request %v", r)
		}
	})
}
