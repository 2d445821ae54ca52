package kagzi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
)

// fakeServer records requests and answers them as the test says, for calls that the SDK only
// translates.
type fakeServer struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedWorkflowScheduleServiceServer
	kagziv1.UnimplementedAdminServiceServer
	kagziv1.UnimplementedNamespaceServiceServer

	listener *bufconn.Listener
	mu       sync.Mutex
	asked    []proto.Message
	metadata []metadata.MD
	answers  map[string]func(request proto.Message) (proto.Message, error) // by method name
	// sent by ExportWorkflow, received by ImportWorkflow
	capsule []byte
	refuse  error // error of streams
}

func newFakeServer(t *testing.T) *fakeServer {
	d := &fakeServer{answers: map[string]func(proto.Message) (proto.Message, error){},
		listener: bufconn.Listen(1 << 20)}
	server := grpc.NewServer(grpc.UnaryInterceptor(d.answer), grpc.MaxRecvMsgSize(transport.MaxMessage),
		grpc.MaxSendMsgSize(transport.MaxMessage))
	kagziv1.RegisterWorkflowServiceServer(server, d)
	kagziv1.RegisterWorkflowScheduleServiceServer(server, d)
	kagziv1.RegisterAdminServiceServer(server, d)
	kagziv1.RegisterNamespaceServiceServer(server, d)
	go func() { _ = server.Serve(d.listener) }()
	t.Cleanup(server.Stop)
	return d
}

func (d *fakeServer) dial() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return d.listener.DialContext(ctx)
	})}
}

func (d *fakeServer) client(t *testing.T) *Client {
	t.Helper()
	c, err := NewClient(ClientOptions{Address: "passthrough:///door", DialOptions: d.dial(), Namespace: "shop",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (d *fakeServer) answer(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	_ grpc.UnaryHandler) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	request := req.(proto.Message)
	d.asked = append(d.asked, proto.Clone(request))
	md, _ := metadata.FromIncomingContext(ctx)
	d.metadata = append(d.metadata, md)
	answer := d.answers[path.Base(info.FullMethod)]
	if answer == nil {
		return nil, status.Error(codes.Unimplemented, info.FullMethod)
	}
	return answer(request)
}

// on sets a fixed answer for a method.
func (d *fakeServer) on(method string, answer proto.Message) {
	d.answers[method] = func(proto.Message) (proto.Message, error) { return answer, nil }
}

// wants checks the last request, except the named fields, which hold ids made by the SDK.
func (d *fakeServer) wants(t *testing.T, want proto.Message, made ...protoreflect.Name) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		t.Fatal("the server was not asked")
	}
	if diff := cmp.Diff(want, d.asked[len(d.asked)-1], protocmp.Transform(),
		protocmp.IgnoreFields(want, made...)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func (d *fakeServer) ExportWorkflow(req *kagziv1.ExportWorkflowRequest,
	stream grpc.ServerStreamingServer[kagziv1.Capsule]) error {
	d.mu.Lock()
	d.asked = append(d.asked, req)
	parts, refuse := slices.Collect(slices.Chunk(d.capsule, 1000)), d.refuse
	d.mu.Unlock()
	for _, p := range parts {
		if err := stream.Send(&kagziv1.Capsule{Data: p}); err != nil {
			return err
		}
	}
	return refuse
}

func (d *fakeServer) ImportWorkflow(stream grpc.ClientStreamingServer[kagziv1.Capsule,
	kagziv1.ImportWorkflowResponse]) error {
	var got bytes.Buffer
	for n := 0; ; n++ {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if d.refuse != nil {
			return d.refuse
		}
		got.Write(part.GetData())
		part.Data = nil
		if n == 0 || !proto.Equal(part, &kagziv1.Capsule{}) {
			d.mu.Lock()
			d.asked = append(d.asked, part)
			d.mu.Unlock()
		}
	}
	d.mu.Lock()
	d.capsule = got.Bytes()
	d.mu.Unlock()
	return stream.SendAndClose(&kagziv1.ImportWorkflowResponse{RunId: "imported", Runs: 2, AlreadyImported: true})
}
