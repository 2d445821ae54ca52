package transport

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// house is a server in a bubble that can be away.
type house struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedAdminServiceServer
	listener atomic.Pointer[bufconn.Listener] // nil while it is away
	calls    atomic.Int32
	ill      atomic.Bool   // it refuses calls
	stuck    chan struct{} // if set, calls hang until their connection breaks
}

func (h *house) GetWorkflow(ctx context.Context, r *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	h.calls.Add(1)
	if h.stuck != nil {
		close(h.stuck)
		h.stuck = nil
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if h.ill.Load() {
		return nil, status.Error(codes.Unavailable, "ill")
	}
	return &kagziv1.GetWorkflowResponse{Workflow: &kagziv1.Workflow{RunId: r.RunId}}, nil
}

func (h *house) DrainWorker(context.Context, *kagziv1.DrainWorkerRequest) (*kagziv1.DrainWorkerResponse, error) {
	h.calls.Add(1)
	return nil, status.Error(codes.Unavailable, "ill")
}

// open starts the server; leave stops it at once, with all connections.
func (h *house) open() (leave func()) {
	l, server := bufconn.Listen(1<<20), grpc.NewServer()
	kagziv1.RegisterWorkflowServiceServer(server, h)
	kagziv1.RegisterAdminServiceServer(server, h)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	h.listener.Store(l)
	return func() {
		h.listener.Store(nil)
		server.Stop()
		<-served
	}
}

func TestUnavailableServer(t *testing.T) {
	type scenario func(t *testing.T, h *house, get func() error)
	for name, tell := range map[string]scenario{
		"a call goes out when the server is back": func(t *testing.T, h *house, get func() error) {
			h.open()()
			back := time.AfterFunc(2*time.Second, func() { t.Cleanup(h.open()) })
			defer back.Stop()
			began := time.Now()
			if err := get(); err != nil || time.Since(began) > 3*time.Second || h.calls.Load() != 1 {
				t.Errorf("%v after %s with %d calls, want one within a second of the server", err, time.Since(began),
					h.calls.Load())
			}
		},
		"a call whose connection breaks goes again": func(t *testing.T, h *house, get func() error) {
			h.stuck = make(chan struct{})
			stuck, leave := h.stuck, h.open()
			go func() {
				<-stuck
				leave()
				time.Sleep(time.Second)
				t.Cleanup(h.open())
			}()
			began := time.Now()
			if err := get(); err != nil || time.Since(began) > 2*time.Second || h.calls.Load() != 2 {
				t.Errorf("%v after %s with %d calls, want the second within a second of the server", err,
					time.Since(began), h.calls.Load())
			}
		},
		"a server that stays away is told of in time": func(t *testing.T, h *house, get func() error) {
			began := time.Now()
			if err := get(); status.Code(err) != codes.Unavailable || time.Since(began) != retryFor {
				t.Errorf("%v after %s, want UNAVAILABLE after %s", err, time.Since(began), retryFor)
			}
		},
		"a refused call is repeated for a while": func(t *testing.T, h *house, get func() error) {
			t.Cleanup(h.open())
			h.ill.Store(true)
			if err := get(); status.Code(err) != codes.Unavailable || h.calls.Load() != 1+maxDelays {
				t.Errorf("%v after %d calls, want UNAVAILABLE after %d", err, h.calls.Load(), 1+maxDelays)
			}
			well := time.AfterFunc(100*time.Millisecond, func() { h.ill.Store(false) })
			defer well.Stop()
			if err := get(); err != nil {
				t.Errorf("of a server that has recovered: %v", err)
			}
		},
		"a herd does not storm a server that is ill": func(t *testing.T, h *house, get func() error) {
			t.Cleanup(h.open())
			h.ill.Store(true)
			for range 1000 {
				if err := get(); status.Code(err) != codes.Unavailable {
					t.Fatal(err)
				}
			}
			if n := h.calls.Load(); n > 1000+refusedLimit/10 {
				t.Errorf("%d calls of 1000, want each once, but for the first few", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &house{}
				get := h.client(t)
				tell(t, h, func() error {
					_, err := kagziv1.NewWorkflowServiceClient(get).GetWorkflow(
						t.Context(), &kagziv1.GetWorkflowRequest{RunId: "r"})
					return err
				})
			})
		})
	}
	t.Run("a call that may have a second effect is made once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &house{}
			conn := h.client(t)
			t.Cleanup(h.open())
			_, err := kagziv1.NewAdminServiceClient(conn).DrainWorker(t.Context(), &kagziv1.DrainWorkerRequest{})
			if status.Code(err) != codes.Unavailable || h.calls.Load() != 1 {
				t.Errorf("%v after %d calls, want UNAVAILABLE after one", err, h.calls.Load())
			}
		})
	})
}

// client returns a connection as the SDK makes it.
func (h *house) client(t *testing.T) *grpc.ClientConn {
	conn, err := Dial("passthrough:///house", "", nil,
		[]grpc.DialOption{ReconnectSoon, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if l := h.listener.Load(); l != nil {
					return l.DialContext(ctx)
				}
				return nil, errors.New("nobody is there")
			})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
