//go:build linux

package workload

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// moody answers starts with the given errors in order, and then with a run.
type moody struct {
	kagziv1.UnimplementedWorkflowServiceServer
	errors []error
}

func (m *moody) StartWorkflow(context.Context, *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	if len(m.errors) == 0 {
		return &kagziv1.StartWorkflowResponse{RunId: "r"}, nil
	}
	next := m.errors[0]
	m.errors = m.errors[1:]
	return nil, next
}

// said is an error with the detail that marks it as a server's own.
func said(code codes.Code) error {
	s, err := status.New(code, "said").WithDetails(&kagziv1.ErrorDetail{Message: "said"})
	if err != nil {
		panic(err) // the detail is our own
	}
	return s.Err()
}

func TestACallOfTheSDKIsNotedWhoseEffectIsNotKnown(t *testing.T) {
	for name, test := range map[string]struct {
		errors []error
		want   []string
	}{
		"acknowledged":       {nil, nil},
		"refused":            {[]error{said(codes.ResourceExhausted)}, nil},
		"refused, by nobody": {[]error{status.Error(codes.ResourceExhausted, "")}, []string{"ResourceExhausted"}},
		"unanswered":         {[]error{said(codes.Internal)}, []string{"Internal"}},
		"made again and refused": {[]error{said(codes.Unavailable), said(codes.ResourceExhausted)},
			[]string{"Unavailable"}},
		"made again and taken": {[]error{said(codes.Unavailable)}, []string{"Unavailable"}},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		kagziv1.RegisterWorkflowServiceServer(server, &moody{errors: test.errors})
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		log := history.NewLog("client")
		sdk, err := kagzi.NewClient(kagzi.ClientOptions{
			Profile: kagzi.NoProfile, Address: l.Addr().String(), Logger: Quiet,
			DialOptions: []grpc.DialOption{TriedIn(log)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sdk.Close() })
		_, _ = kagzi.Start(t.Context(), sdk, jobType, "", kagzi.StartOptions{RequestID: "a"})
		var got []string
		for _, e := range log.Events() {
			if e.Op != history.Tried || e.Request != "a" || e.Outcome != history.Unknown || e.Invoked == 0 ||
				e.Returned != 0 {
				t.Errorf("%s: noted %+v", name, e)
			}
			got = append(got, e.Why)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: noted %q, want %q", name, got, test.want)
		}
	}
}

func TestEachStartOfABatchIsNotedByItself(t *testing.T) {
	detail := &kagziv1.ErrorDetail{Message: "said"}
	reply := &kagziv1.StartWorkflowsResponse{Results: []*kagziv1.StartWorkflowsResponse_Result{
		{Started: &kagziv1.StartWorkflowResponse{RunId: "r"}},
		{Error: detail, StatusCode: int32(codes.ResourceExhausted)},
		{Error: detail, StatusCode: int32(codes.Unavailable)},
	}}
	for n, want := range []bool{false, false, true, true} { // the last one has no answer
		if _, got := open(reply, n, nil); got != want {
			t.Errorf("the start %d of a batch may have counted: %t, want %t", n, got, want)
		}
	}
	if _, got := open(reply, 0, said(codes.Internal)); !got {
		t.Error("the call failed as a whole, and its starts are said not to have counted")
	}
	batch := &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
		{RequestId: "a"}, {RequestId: "b"}}}
	if got := startsOf(batch); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("starts = %q", got)
	}
	if got := startsOf(&kagziv1.GetWorkflowRequest{}); got != nil {
		t.Errorf("starts of a call that starts nothing = %q", got)
	}
}
