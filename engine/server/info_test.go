package server

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// described is a store with something to say of itself.
type described struct{ servertest.StubStore }

func (described) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Backend: "stub",
		Facts: []engine.Fact{{Name: "write-ahead log", Value: "4.1 MiB"}, {Name: "pool", Value: "2 of 8"}}}, nil
}

func TestServerInfoHasFactsInOrder(t *testing.T) {
	s := serverOver(&servertest.Books{})
	s.store = described{}
	s.options.Facts = func() []Fact {
		return []Fact{{"coordinator", "next due", "soon", ""}, {"settings", "listen", "127.0.0.1:1", "flag"}}
	}
	info, err := s.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := []*kagziv1.ServerFact{
		{Section: "database", Name: "write-ahead log", Value: "4.1 MiB"},
		{Section: "database", Name: "pool", Value: "2 of 8"},
		{Section: "coordinator", Name: "next due", Value: "soon"},
		{Section: "settings", Name: "listen", Value: "127.0.0.1:1", Source: "flag"},
	}
	if diff := cmp.Diff(want, info.Facts, protocmp.Transform()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestServerInfoHasTheUseOfMethods(t *testing.T) {
	_, conn := serve(t, servertest.StubStore{})
	admin, runs := kagziv1.NewAdminServiceClient(conn), kagziv1.NewWorkflowServiceClient(conn)
	for range 3 {
		if _, err := runs.GetWorkflow(t.Context(), &kagziv1.GetWorkflowRequest{RunId: servertest.AnID}); status.Code(
			err) != codes.NotFound {
			t.Fatal(err)
		}
	}
	if _, err := admin.HealthCheck(t.Context(), &kagziv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	stream, err := admin.Watch(ctx, &kagziv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	info, err := admin.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.OpenStreams != 1 || info.OpenConnections != 1 {
		t.Errorf("%d streams over %d connections are open, want one each", info.OpenStreams, info.OpenConnections)
	}
	type use struct {
		Method        string
		Calls, Errors int64
		InFlight      int32
		Measured      bool
	}
	coarse := runtime.GOOS == "windows" // by whose clock a call in the process may have taken no time
	var got []use
	for _, m := range info.Methods {
		got = append(got, use{m.Method, m.Calls, m.Errors, m.InFlight, m.P50Ms > 0 && m.P95Ms >= m.P50Ms || coarse &&
			m.Calls > 0})
	}
	want := []use{
		{"AdminService/GetServerInfo", 0, 0, 1, false}, {"AdminService/HealthCheck", 1, 0, 0, true},
		{"AdminService/Watch", 0, 0, 1, false}, {"WorkflowService/GetWorkflow", 3, 3, 0, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
	hangUp()
	for { // the stream's end comes to the server in its own time
		info, err := admin.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if info.OpenStreams == 0 {
			if m := info.Methods[2]; m.Calls != 1 || m.Errors != 0 || m.InFlight != 0 {
				t.Errorf("a stream that its caller ended counts as %v, want no error", m)
			}
			return
		}
	}
}

func TestAConnectionIsCountedWhileItIsOpen(t *testing.T) {
	s, conn := serve(t, servertest.StubStore{})
	call := func(conn *grpc.ClientConn) int32 {
		t.Helper()
		info, err := kagziv1.NewAdminServiceClient(conn).GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return info.OpenConnections
	}
	if n := call(conn); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
	c := &countedConn{Conn: nobodysConn{}, open: &s.connections}
	s.connections.Add(1)
	if n := call(conn); n != 2 {
		t.Errorf("%d connections are open, want 2", n)
	}
	for range 3 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := call(conn); n != 1 {
		t.Errorf("%d connections are open after one was closed three times, want 1", n)
	}
	handshake := countedHandshake{insecure.NewCredentials(), &s.connections}
	if _, _, err := handshake.Clone().ServerHandshake(nobodysConn{}); err != nil || s.connections.Load() != 2 {
		t.Errorf("a handshake: %v, %d connections, want 2", err, s.connections.Load())
	}
}

// nobodysConn is a connection that can only be closed.
type nobodysConn struct{ net.Conn }

func (nobodysConn) Close() error { return nil }
