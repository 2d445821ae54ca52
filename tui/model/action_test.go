package model

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

func TestJob_acts_on_eight_at_a_time_and_tells_of_each(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		gate := make(chan struct{})
		now, most := 0, 0
		s.act = func(run string) error {
			s.mu.Lock()
			now++
			most = max(most, now)
			s.mu.Unlock()
			<-gate
			s.mu.Lock()
			now--
			s.mu.Unlock()
			if run == "r7" {
				return status.Error(codes.FailedPrecondition, "the run has ended")
			}
			return nil
		}
		var targets []string
		for i := range 20 {
			targets = append(targets, fmt.Sprint("r", i))
		}
		told := 0
		j := Perform(l, Scope{}.Cancel(targets, 0, ""), func(j *Job) { told++ })
		u.settle()
		if now != jobWorkers || !j.Running() {
			t.Fatalf("%d at a time, running %t", now, j.Running())
		}
		close(gate)
		u.settle()
		if told != 20 || j.Tried != 20 || j.Failed != 1 || most != jobWorkers || j.Running() {
			t.Fatalf("told %d times, %d tried, %d failed, at most %d at a time", told, j.Tried, j.Failed, most)
		}
		if r := j.Results[7]; r.Target != "r7" || r.Err == nil || r.Uncertain() || r.Text != "" {
			t.Fatalf("result %+v", r)
		}
		if r := j.Results[0]; r.Text != "CANCELLED" || r.Err != nil {
			t.Fatalf("result %+v", r)
		}
	})
}

func TestJob_that_is_repeated_is_the_same_request(t *testing.T) {
	withLink(t, func(s *server) {
		s.refuse = status.Error(codes.Unavailable, "gone")
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		j := Perform(l, Scope{}.Retry([]string{"a", "b"}, RetryOptions{}), func(*Job) {})
		u.settle()
		if j.Failed != 2 || !j.Results[0].Uncertain() {
			t.Fatalf("results %+v", j.Results)
		}
		s.mu.Lock()
		s.refuse = nil
		s.mu.Unlock()
		j.Again()
		u.settle()
		if j.Failed != 0 || j.Tried != 2 || j.Results[1].ID != "new" {
			t.Fatalf("results %+v", j.Results)
		}
		slices.Sort(s.requests)
		if ids := slices.Compact(slices.Clone(s.requests)); len(s.requests) != 4 || len(ids) != 2 || ids[0] == "" {
			t.Fatalf("request ids %q, want two, each used twice", s.requests)
		}
		j.Again()
		u.settle()
		if len(s.requests) != 4 {
			t.Fatal("what had worked was done again")
		}
	})
}

func TestJob_that_is_stopped_leaves_the_rest_alone(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		s.act = func(string) error { <-time.After(time.Second); return nil }
		j := Perform(l, Scope{}.Cancel(make([]string, 100), time.Minute, ""), func(*Job) {})
		u.settle()
		j.Stop()
		u.advance(5 * time.Second)
		if j.Tried != jobWorkers || j.Running() || j.Results[50].Done {
			t.Fatalf("%d tried, running %t", j.Tried, j.Running())
		}
	})
}

func TestCommandLine(t *testing.T) {
	elsewhere := Home{Namespace: "shop", Address: "db:1", Flags: []string{"--profile", "prod", "--tls-ca", "my ca"}}
	for _, try := range []struct {
		action Action
		want   string
	}{
		{Scope{}.Cancel([]string{"a", "b"}, 90*time.Second, ""), "kagzi workflow cancel a b --grace 1m30s"},
		{Scope{Namespace: "default", Address: "127.0.0.1:50051"}.Terminate([]string{"a"}, "it's over"),
			`kagzi workflow terminate a --reason 'it'\''s over'`},
		{Scope{Namespace: "prod", Address: "db:1"}.Pause([]string{"a"}, false, ""),
			"kagzi workflow pause a --namespace prod --address db:1"},
		{Scope{Namespace: "prod"}.Drain([]string{"w1", "w2"}), "kagzi worker drain w1 && kagzi worker drain w2"},
		{Scope{}.Retry([]string{"-a"}, RetryOptions{FromStep: "-x", Reason: "$(reboot)"}),
			"kagzi workflow retry --from-step=-x --reason '$(reboot)' -- -a"},
		{Scope{}.Signal([]string{"a"}, "go", []byte(`{"by": "ada"}`)),
			`kagzi workflow signal a go --input '{"by": "ada"}'`},
		{Scope{}.Pin([]string{"a"}, false, ""), "kagzi workflow unpin a"},
		{Scope{Home: elsewhere}.Pause([]string{"a"}, false, ""),
			"kagzi workflow pause a --namespace default --profile prod --tls-ca 'my ca'"},
		{Scope{Home: elsewhere, Address: "127.0.0.1:50051"}.Drain([]string{"w1"}),
			"kagzi worker drain w1 --address 127.0.0.1:50051 --profile prod --tls-ca 'my ca'"},
		{Scope{Home: elsewhere, Namespace: "shop", Address: "db:1"}.Pause([]string{"-a"}, false, ""),
			"kagzi workflow pause --profile prod --tls-ca 'my ca' -- -a"},
	} {
		if got := try.action.CommandLine(); got != try.want {
			t.Errorf("%s: %s, want %s", try.action.Name, got, try.want)
		}
	}
}

// moved is a server whose run "a" continued as run "b".
type moved struct{ tui.API }

func (moved) SignalWorkflow(_ context.Context, r *kagziv1.SignalWorkflowRequest,
	_ ...grpc.CallOption) (*kagziv1.SignalWorkflowResponse, error) {
	if r.RunId != "a" {
		return &kagziv1.SignalWorkflowResponse{}, nil
	}
	s, err := status.New(codes.FailedPrecondition, "has ended").WithDetails(
		&kagziv1.ErrorDetail{Metadata: map[string]string{"continued_as_run_id": "b"}})
	if err != nil {
		return nil, err
	}
	return nil, s.Err()
}

func TestASignalFollowsARunThatContinuedAsNew(t *testing.T) {
	action := Scope{}.Signal([]string{"a", "b"}, "go", nil)
	for run, want := range map[string]string{"a": "delivered to b, which it continued as", "b": "delivered"} {
		if got, err := action.do(t.Context(), moved{}, run, "id"); err != nil || got.Text != want {
			t.Errorf("to %s: %q, %v, want %q", run, got.Text, err, want)
		}
	}
}
