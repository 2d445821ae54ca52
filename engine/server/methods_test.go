package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// later holds the methods of the API that this server does not implement yet.
var later = []string{"AdminService/Backup"}

// call makes one call of any method with one request, and returns the first answer's error.
func call(ctx context.Context, conn grpc.ClientConnInterface, method protoreflect.MethodDescriptor,
	request proto.Message) error {
	path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	if !method.IsStreamingClient() && !method.IsStreamingServer() {
		return conn.Invoke(ctx, path, request, newOutput(method))
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil {
		return stream.RecvMsg(newOutput(method))
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(newOutput(method))
}

func emptyRequest(method protoreflect.MethodDescriptor) proto.Message {
	return newMessage(method.Input())
}

func newOutput(method protoreflect.MethodDescriptor) proto.Message {
	return newMessage(method.Output())
}

func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return t.New().Interface()
}

func TestEachMethodOfTheContractAnswers(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	seen := 0
	servertest.EachMethod(func(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		seen++
		name := string(service.Name()) + "/" + string(method.Name())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := call(ctx, conn, method, emptyRequest(method))
		missing := slices.Contains(later, name)
		switch got := status.Code(err); {
		case missing && got != codes.Unimplemented:
			t.Errorf("%s answers %s, want UNIMPLEMENTED", name, got)
		case !missing && (got == codes.Unimplemented || got == codes.Unavailable || got == codes.DeadlineExceeded):
			t.Errorf("%s answers %v", name, err)
		}
	})
	if seen < 60 {
		t.Errorf("the contract has %d methods: it was not found", seen)
	}
	err := conn.Invoke(t.Context(), "/kagzi.v1.WorkflowService/NoSuchCall", &kagziv1.GetWorkflowRequest{},
		&kagziv1.GetWorkflowResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a call that does not exist answers %v, want UNIMPLEMENTED", err)
	}
}

func TestEachOperationOfASessionAnswers(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	stream, err := kagziv1.NewWorkerServiceClient(conn).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *kagziv1.SessionRequest) *kagziv1.SessionResponse {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	hello := &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}}
	if a := send(&kagziv1.SessionRequest{Seq: 1,
		Operation: &kagziv1.SessionRequest_Hello{Hello: hello}}); a.GetWelcome() == nil {
		t.Fatalf("hello is answered with %v", a)
	}
	operations := (&kagziv1.SessionRequest{}).ProtoReflect().Descriptor().Oneofs().ByName("operation").Fields()
	for i := range operations.Len() {
		request := &kagziv1.SessionRequest{Seq: int64(i + 2)}
		request.ProtoReflect().Mutable(operations.Get(i))
		if request.GetGoodbye() != nil {
			continue // which is the end
		}
		a := send(request)
		if code := a.GetError().GetCode(); code != kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT &&
			request.GetHeartbeat() == nil || a.Seq != request.Seq {
			t.Errorf("an empty %s is answered with %v, want what is missing, under the same number",
				operations.Get(i).Name(), a)
		}
	}
	a := send(&kagziv1.SessionRequest{Seq: 0,
		Operation: &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{Tasks: 1}}})
	if a.GetError().GetMetadata()["field"] != "seq" {
		t.Errorf("an operation without a number is answered with %v", a)
	}
	a = send(&kagziv1.SessionRequest{Seq: 99})
	if a.GetError().GetMetadata()["field"] != "operation" {
		t.Errorf("a request without an operation is answered with %v", a)
	}
	a = send(&kagziv1.SessionRequest{Seq: 100, Operation: &kagziv1.SessionRequest_Hello{Hello: hello}})
	if a.GetError().GetMetadata()["field"] != "hello" {
		t.Errorf("a second hello is answered with %v", a)
	}
}
