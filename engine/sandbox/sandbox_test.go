package sandbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func options(h Hooks) memory.Options {
	return memory.Options{Now: h.Now, Due: h.Due, Notify: h.Notify, Outcomes: h.Outcomes, Wrote: h.Wrote}
}

// fresh returns a sandbox and its database.
func fresh() (*Sandbox, *memory.Database) {
	var db *memory.Database
	return New(Options{Seed: 7, Begin: began, Version: "test", Open: func(h Hooks) engine.Store {
		db = memory.New(options(h))
		return db.Open(nil)
	}}), db
}

func start(t *testing.T, s *Sandbox, r *kagziv1.StartWorkflowRequest) string {
	t.Helper()
	r.WorkflowType = "t"
	answer, err := kagziv1.NewWorkflowServiceClient(s.Direct()).StartWorkflow(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer.RunId
}

func TestTimePassesOnlyWhenItIsMoved(t *testing.T) {
	s, _ := fresh()
	runs := kagziv1.NewWorkflowServiceClient(s.Direct())
	id := start(t, s, &kagziv1.StartWorkflowRequest{Timeouts: &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 3_600_000}})
	later := start(t, s, &kagziv1.StartWorkflowRequest{StartIn: durationpb.New(time.Minute), TaskQueue: "later"})
	if due := s.TakeDue(); len(due) != 1 || due[0] != [2]string{"default", "default"} {
		t.Errorf("due are %v", due)
	}
	if next := s.NextDue(); next.Sub(began).Round(time.Second) != time.Minute {
		t.Errorf("the next run is due at %v", next)
	}
	if next := s.Upkeep(); next.IsZero() || next.After(began.Add(time.Hour)) {
		t.Errorf("the next upkeep is at %v", next)
	}
	s.SetNow(began.Add(2 * time.Hour))
	s.Upkeep()
	for id, want := range map[string]kagziv1.WorkflowStatus{
		id: kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT, later: kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING} {
		if answer, err := runs.GetWorkflow(t.Context(), &kagziv1.GetWorkflowRequest{RunId: id}); err != nil ||
			answer.Workflow.Status != want {
			t.Errorf("the run is %v, %v; want %v", answer, err, want)
		}
	}
}

func TestASnapshotContinuesWithTheCountsOfTheServer(t *testing.T) {
	s, db := fresh()
	start(t, s, &kagziv1.StartWorkflowRequest{})
	s.SetNow(began.Add(2 * time.Minute))
	snapshot := s.Snapshot()
	open := func() *Sandbox {
		return snapshot.Open(func(h Hooks) engine.Store { return db.CloneWith(options(h)).Open(nil) })
	}
	ask := func(s *Sandbox) (*kagziv1.GetActivityResponse, *kagziv1.GetServerInfoResponse) {
		admin := kagziv1.NewAdminServiceClient(s.Direct())
		activity, err := admin.GetActivity(t.Context(), &kagziv1.GetActivityRequest{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := admin.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return activity, info
	}
	one, other := open(), open()
	want, about := ask(s)
	for _, copied := range []*Sandbox{one, other} {
		activity, info := ask(copied)
		if !proto.Equal(activity, want) {
			t.Errorf("its activity is %v, want %v", activity, want)
		}
		if !proto.Equal(info.StartedAt, about.StartedAt) || len(info.Methods) == 0 {
			t.Errorf("it started at %v and knows of %d methods", info.StartedAt, len(info.Methods))
		}
	}
	if a, b := start(t, one, &kagziv1.StartWorkflowRequest{}), start(t, one, &kagziv1.StartWorkflowRequest{}); a == b {
		t.Error("two runs have one id")
	}
}

func TestStreamsWithinTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails when a goroutine is left
		s, _ := fresh()
		id := start(t, s, &kagziv1.StartWorkflowRequest{})
		runs := kagziv1.NewWorkflowServiceClient(s.Direct())
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := runs.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: id})
		if err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			event, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			done = event.SnapshotDone
		}
		cancel()
		if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("a stream that was given up ends with %v", err)
		}
		missing, err := runs.WatchWorkflow(t.Context(),
			&kagziv1.WatchWorkflowRequest{RunId: "01890000-0000-7000-8000-000000000000"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := missing.Recv(); status.Code(err) != codes.NotFound {
			t.Errorf("the stream of no run ends with %v", err)
		}
		if err := s.Direct().Invoke(t.Context(), "/kagzi.v1.WorkflowService/Nothing", &kagziv1.GetWorkflowRequest{},
			&kagziv1.GetWorkflowResponse{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("an unknown method is answered with %v", err)
		}
	})
}
