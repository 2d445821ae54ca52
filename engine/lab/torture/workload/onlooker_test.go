//go:build linux

package workload

import (
	"context"
	"net"
	"reflect"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// shelf is a server with a running and a failed run, newest first.
type shelf struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedAdminServiceServer
	more string
	away bool
}

func (s *shelf) ListWorkflows(_ context.Context,
	r *kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse, error) {
	if s.away {
		return nil, status.Error(codes.Internal, "away")
	}
	failed := &kagziv1.Workflow{RunId: "old", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
		FinishedAt: &timestamppb.Timestamp{Seconds: 1},
		Error:      &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, Message: "broken"}}
	if r.GetSearch() != "" {
		return &kagziv1.ListWorkflowsResponse{Workflows: []*kagziv1.Workflow{failed}}, nil
	}
	return &kagziv1.ListWorkflowsResponse{Workflows: []*kagziv1.Workflow{
		{RunId: "new", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING}, failed}}, nil
}

func (s *shelf) ListSteps(_ context.Context, r *kagziv1.ListStepsRequest) (*kagziv1.ListStepsResponse, error) {
	if s.away || r.RunId != "old" {
		return nil, status.Error(codes.NotFound, "no such run")
	}
	function, completed := kagziv1.StepKind_STEP_KIND_FUNCTION, kagziv1.StepStatus_STEP_STATUS_COMPLETED
	return &kagziv1.ListStepsResponse{Page: &kagziv1.PageInfo{NextPageToken: s.more}, Steps: []*kagziv1.Step{
		{Name: "s0", Kind: function, Status: completed, Output: data("v0")},
		{Name: "s1", Kind: function, Status: kagziv1.StepStatus_STEP_STATUS_FAILED},
		{Name: "nap", Kind: kagziv1.StepKind_STEP_KIND_SLEEP, Status: completed},
	}}, nil
}

func TestAnOnlookerWritesDownWhatListsShow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	library := &shelf{}
	service := grpc.NewServer()
	kagziv1.RegisterWorkflowServiceServer(service, library)
	kagziv1.RegisterAdminServiceServer(service, library)
	go func() { _ = service.Serve(l) }()
	t.Cleanup(service.Stop)
	door, err := fixture.NewProxy("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	running := history.Event{Op: history.Listed, Run: "new", Status: "RUNNING"}
	failed := history.Event{Op: history.Listed, Run: "old", Status: "FAILED", Code: "TIMEOUT", Message: "broken",
		Ended: 1e6}
	steps := history.Event{Op: history.ListedSteps, Run: "old", Steps: map[string]string{"s0": "v0"}}
	part := steps
	part.Part = true
	for _, test := range []struct {
		name  string
		shelf shelf
		mix   Mix
		want  []history.Event
	}{
		{"all", shelf{}, Mix{}, []history.Event{running, failed, failed, steps}},
		{"a part of the steps", shelf{more: "x"}, Mix{}, []history.Event{running, failed, failed, part}},
		{"no large steps", shelf{}, Mix{Filler: 1}, []history.Event{running, failed, failed}},
		{"a server that is away", shelf{away: true}, Mix{}, nil},
	} {
		library.more, library.away = test.shelf.more, test.shelf.away
		o, err := NewOnlooker(test.mix, 1, []string{door.Address()})
		if err != nil {
			t.Fatal(err)
		}
		o.read(t.Context(), o.clients[0])
		o.close()
		var got []history.Event
		for _, e := range o.Log.Events() {
			if e.Proc != "onlooker" || e.Outcome != history.OK || e.Invoked == 0 || e.Returned < e.Invoked {
				t.Errorf("%s: %+v, want it seen whole", test.name, e)
			}
			e.Proc, e.Seq, e.Outcome, e.Invoked, e.Returned = "", 0, "", 0, 0
			got = append(got, e)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: written down %+v\nwant %+v", test.name, got, test.want)
		}
	}
}
