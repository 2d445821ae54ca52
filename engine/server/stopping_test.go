package server

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAStoppingServerDoesNotWaitForSilentCallers(t *testing.T) {
	for name, open := range map[string]func(context.Context, *grpc.ClientConn) (grpc.ClientStream, error){
		"waits": func(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
			return kagziv1.NewWorkflowServiceClient(conn).AwaitWorkflows(ctx)
		},
		"a session": func(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
			return kagziv1.NewWorkerServiceClient(conn).Session(ctx)
		},
		"an import": func(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
			return kagziv1.NewWorkflowServiceClient(conn).ImportWorkflow(ctx)
		},
		"reflection that has been asked": func(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
			stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err != nil {
				return nil, err
			}
			if err := stream.Send(&reflectionpb.ServerReflectionRequest{
				MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
			}); err != nil {
				return nil, err
			}
			_, err = stream.Recv()
			return stream, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(servertest.StubStore{}, matching.New(servertest.StubStore{}, nil),
				Options{DrainTimeout: 5 * time.Second})
			l := bufconn.Listen(1 << 20)
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- s.Run(ctx, l) }()
			conn, err := grpc.NewClient("passthrough:bufconn",
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					return l.DialContext(ctx)
				}),
				grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			stream, err := open(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			for s.methods.OpenStreams() == 0 { // until the server has met it
				if _, err := kagziv1.NewAdminServiceClient(conn).HealthCheck(
					t.Context(), &kagziv1.HealthCheckRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			err = stream.RecvMsg(&kagziv1.AwaitWorkflowsResponse{})
			if status.Code(err) != codes.Unavailable || len(status.Convert(err).Details()) != 1 {
				t.Errorf("the stream ended with %v, want the word that the server stops", err)
			}
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
}
