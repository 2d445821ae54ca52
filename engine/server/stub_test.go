package server

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// serve starts a server over a store and connects to it.
func serve(t *testing.T, store engine.Store) (*Server, *grpc.ClientConn) {
	t.Helper()
	return serveWith(t, store, Options{DrainTimeout: time.Second})
}

func serveWith(t *testing.T, store engine.Store, options Options) (*Server, *grpc.ClientConn) {
	t.Helper()
	options.AutoNamespaces = true // stubs know no namespaces; engine/lab/e2e tests explicit ones
	s := New(store, matching.New(servertest.StubStore{}, nil), options)
	l := bufconn.Listen(1 << 20)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	conn, err := grpc.NewClient("passthrough:bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil after a stop that was asked for", err)
		}
	})
	return s, conn
}
