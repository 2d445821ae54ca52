package wire_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/wire"
)

func TestInvalidUTF8IsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer() // a request is written when there is a connection
	go server.Serve(l)
	defer server.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(wire.NameText))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const broken = "a\xffb"
	for field, request := range map[string]proto.Message{
		"reason": &kagziv1.PauseWorkflowRequest{RunId: "r", Reason: broken},
		"tags":   &kagziv1.StartWorkflowRequest{Tags: map[string]string{broken: "v"}},
		"input.metadata": &kagziv1.StartWorkflowRequest{
			Input: &kagziv1.Payload{Metadata: map[string]string{"k": broken}}},
		"requests.namespace": &kagziv1.StartWorkflowsRequest{
			Requests: []*kagziv1.StartWorkflowRequest{{}, {Namespace: broken}}},
		"task_queues": &kagziv1.RegisterRequest{TaskQueues: []string{"q", broken}},
		"begin_step.step_name": &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{
			BeginStep: &kagziv1.BeginStepRequest{StepName: broken}}},
	} {
		err := conn.Invoke(t.Context(), "/kagzi.v1.WorkflowService/PauseWorkflow", request, &kagziv1.Workflow{})
		st := status.Convert(err)
		if st.Code() != codes.InvalidArgument || st.Message() != field+": is not valid UTF-8" {
			t.Errorf("%s: %v", field, err)
		}
		for _, d := range st.Details() {
			if got := d.(*kagziv1.ErrorDetail).GetMetadata()["field"]; got != field {
				t.Errorf("%s: the answer names %q", field, got)
			}
		}
		if len(st.Details()) != 1 {
			t.Errorf("%s: %d details", field, len(st.Details()))
		}
	}
	for name, failed := range map[string]error{
		"another refusal": status.Error(codes.Internal, "a defect"),
		"an answer that is no UTF-8": status.Error(
			codes.Internal, "grpc: failed to unmarshal: string field contains invalid UTF-8"),
		"a refusal of another's text": status.Error(codes.InvalidArgument, "invalid UTF-8"),
	} {
		err := wire.NameText(t.Context(), "m", &kagziv1.PauseWorkflowRequest{Reason: "fine"}, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return failed })
		if err != failed {
			t.Errorf("%s became %v", name, err)
		}
	}
}
