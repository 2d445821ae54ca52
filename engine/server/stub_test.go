package server

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
)

// stubStore answers the few calls that tests of the door need; every other call is a defect, a panic.
type stubStore struct {
	engine.Store
	getRun func() (engine.Run, error)
}

func (stubStore) Now() time.Time               { return engine.Micros(time.Now()) }
func (stubStore) Health(context.Context) error { return nil }
func (s stubStore) GetRun(context.Context, string, engine.ID) (engine.Run, error) {
	if s.getRun == nil {
		return engine.Run{}, engine.ErrNotFound
	}
	return s.getRun()
}
func (stubStore) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Backend: "stub"}, nil
}
func (stubStore) Keyring(context.Context) ([]engine.APIKey, error)     { return nil, nil }
func (stubStore) NoteRefusal(context.Context, engine.AuditEvent) error { return nil }
func (stubStore) RegisterWorker(_ context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	p.Worker.Status = engine.WorkerOnline
	return p.Worker, nil
}

// serve starts a server over a store and connects to it.
func serve(t *testing.T, store engine.Store) (*Server, *grpc.ClientConn) {
	t.Helper()
	return serveWith(t, store, Options{DrainTimeout: time.Second})
}

func serveWith(t *testing.T, store engine.Store, options Options) (*Server, *grpc.ClientConn) {
	t.Helper()
	s := New(store, matching.New(stubStore{}, nil), options)
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

var errBroken = errors.New("select * from secrets: connection to /var/lib/db broken")
